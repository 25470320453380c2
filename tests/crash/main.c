/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build/crash                      all cases
 * build/crash --case 7 --trace     one of them, every step shown
 * build/crash --from 13 --to 26    the groups 13 to 25: one scene with one operation of A each
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "sweep.h"

static uint64_t number(const char *text)
{
    uint64_t value;
    if (!slice_to_u64(slice_of(text), &value)) {
        fprintf(stderr, "crash: %s is no number\n", text);
        exit(2);
    }
    return value;
}

struct options {
    uint64_t one, shown_max, from, to;
    bool has_one, trace;
};

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"case", 1, NULL, 'c'},  {"trace", 0, NULL, 't'},
                                          {"shown", 1, NULL, 's'}, {"from", 1, NULL, 'f'},
                                          {"to", 1, NULL, 'o'},    {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'c') {
            o->one = number(optarg);
            o->has_one = true;
        } else if (c == 't') {
            o->trace = true;
        } else if (c == 'f') {
            o->from = number(optarg);
        } else if (c == 'o') {
            o->to = number(optarg);
        } else if (c == 's') {
            o->shown_max = number(optarg);
        } else {
            fprintf(stderr,
                    "usage: crash [--case N [--trace]] [--shown N] [--from GROUP] [--to GROUP]\n");
            exit(2);
        }
    }
}

static int run_one(const struct options *o)
{
    static struct world world;
    struct crash_case c;
    struct scene scene;
    char text[512];
    if (!case_of_number(&c, o->one)) {
        fprintf(stderr, "crash: there is no such case\n");
        return 2;
    }
    case_describe(&c, text, sizeof text);
    printf("case %llu: %s\n", (unsigned long long)o->one, text);
    scene_init(&scene, &policies[c.policy], &scenes[c.scene]);
    enum case_result result = case_run(&world, &scene, &c, o->trace);
    scene_fini(&scene);
    if (result != CASE_DONE) {
        printf(result == CASE_SAME ? "ends like another case\n"
                                   : "no case: somebody comes to rest before\n");
        return 2;
    }
    printf("%s\n", world.failed ? world.violation : "passed");
    return world.failed ? 1 : 0;
}

/* A group in a process of its own, again without the case that ended it, if one does. */
static void run_group(struct group group, struct tally *tally, uint64_t shown_max)
{
    uint64_t died = 0;
    for (;;) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            group_run(group, tally, died, shown_max);
            exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (status == 0) {
            return;
        }
        char what[64];
        snprintf(what, sizeof what, WIFSIGNALED(status) ? "ended by signal %d" : "ended with %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        died = tally->current;
        report_failure(tally, died, what, shown_max);
    }
}

static int run_all(const struct options *o)
{
    uint64_t passed = 0, failed = 0;
    bool whole = o->from == 0 && o->to >= group_count();
    bounds_print();
    struct tally *tally =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(tally != MAP_FAILED);
    for (unsigned i = o->from; i < group_count() && i < o->to; i++) {
        run_group(group_at(i), tally, o->shown_max);
    }
    if (tally->shown > o->shown_max) {
        printf("%llu more are not shown: --shown N\n",
               (unsigned long long)(tally->shown - o->shown_max));
    }
    for (unsigned i = 0; i < FAMILIES; i++) {
        printf("%-8s %8llu cases  %s\n", family_name((enum family)i),
               (unsigned long long)(tally->passed[i] + tally->failed[i]),
               family_text((enum family)i));
        passed += tally->passed[i];
        failed += tally->failed[i];
    }
    unsigned never = metrics_print(tally);
    if (never > 0 && whole) {
        printf("FAILED: %u of these never happened\n", never);
        failed += never;
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options o = {.shown_max = 100, .to = UINT64_MAX};
    parse(argc, argv, &o);
    if (log_open("/dev/null", LOG_ERROR_LEVEL) != 0) {
        return 2;
    }
    return o.has_one ? run_one(&o) : run_all(&o);
}
