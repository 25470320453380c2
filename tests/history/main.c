/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check-history [--limit N] FILE...      "-" is standard input
 *
 * Decides whether recorded histories are linearizable (history.h has the file format). Exit code 0:
 * all are. 1: one is not. 2: one could not be decided within --limit configurations per list, none
 * is not. 3: a file cannot be read, or the command line.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "history.h"

#define EXIT_USAGE 3

/* Returns a verdict, or EXIT_USAGE. */
static int check_file(const char *name, uint64_t limit)
{
    static const char *const verdicts[] = {"linearizable", "NOT linearizable", "undecided"};
    char error[HISTORY_ERROR_MAX];
    struct history *history;
    struct history_result result;
    bool standard = strcmp(name, "-") == 0;
    FILE *file = standard ? stdin : fopen(name, "r");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", name, strerror(errno));
        return EXIT_USAGE;
    }
    bool good = history_read(file, name, limit, &history, error);
    if (!standard) {
        fclose(file);
    }
    if (!good) {
        fprintf(stderr, "%s\n", error);
        return EXIT_USAGE;
    }
    enum history_verdict verdict = history_check(history, stdout, &result);
    printf("%s: %s: %" PRIu64 " operations on %" PRIu64 " lists, %" PRIu64 " violated, %" PRIu64
           " undecided, %" PRIu64 " configurations\n",
           name, verdicts[verdict], result.operations, result.lists, result.violated,
           result.undecided, result.configurations);
    history_destroy(&history);
    return (int)verdict;
}

/* The worse of two: what is wrong counts more than what is undecided. */
static int worse(int a, int b)
{
    static const int weights[] = {[HISTORY_LINEARIZABLE] = 0,
                                  [HISTORY_UNDECIDED] = 1,
                                  [HISTORY_VIOLATED] = 2,
                                  [EXIT_USAGE] = 3};
    return weights[a] >= weights[b] ? a : b;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"limit", 1, NULL, 'l'}, {NULL, 0, NULL, 0}};
    uint64_t limit = 0;
    int c, verdict = HISTORY_LINEARIZABLE;
    bool usage = false;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        usage = usage || c != 'l' || !slice_to_u64(slice_of(optarg), &limit) || limit == 0;
    }
    if (usage || optind == argc) {
        fprintf(stderr, "usage: check-history [--limit CONFIGURATIONS] FILE...\n");
        return EXIT_USAGE;
    }
    for (int i = optind; i < argc; i++) {
        verdict = worse(check_file(argv[i], limit), verdict);
    }
    return verdict;
}
