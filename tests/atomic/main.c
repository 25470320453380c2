/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build/atomic --jobs 2                all cases, in two processes
 * build/atomic --case 0,3,7,2,0,4 --trace   one of them, every step shown
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomic.h"
#include "base/log.h"

#define JOBS_MAX 64

struct shared {
    _Atomic unsigned next; /* the first group that no job has taken */
    struct sweep sweeps[JOBS_MAX];
};

static int run_one(const char *text)
{
    struct atomic_case c = {{0}};
    struct slice rest = slice_of(text);
    for (unsigned i = 0; i < NUMBERS_MAX && rest.len > 0; i++) {
        const char *end = memchr(rest.p, ',', rest.len);
        struct slice word = slice_take(&rest, end == NULL ? rest.len : (size_t)(end - rest.p));
        uint64_t number = UINT64_MAX;
        if (!slice_to_u64(word, &number) || number > 1000) {
            fprintf(stderr, "atomic: not a case\n");
            return 2;
        }
        c.numbers[i] = (unsigned)number;
        if (end != NULL) {
            (void)slice_take(&rest, 1);
        }
    }
    return case_run_one(&c) ? 0 : 1;
}

static int run_all(unsigned jobs)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sweep sum = {0};
    bool died = false;
    CHECK(shared != MAP_FAILED);
    for (unsigned job = 0; job < jobs; job++) {
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            unsigned group;
            while ((group = atomic_fetch_add(&shared->next, 1)) < group_count()) {
                group_run(&shared->sweeps[job], group);
            }
            exit(0);
        }
    }
    for (unsigned job = 0; job < jobs; job++) {
        int status = 0;
        CHECK(wait(&status) > 0);
        died = died || status != 0;
    }
    for (unsigned job = 0; job < jobs; job++) {
        sum.passed += shared->sweeps[job].passed;
        sum.failed += shared->sweeps[job].failed;
        sum.left_out += shared->sweeps[job].left_out;
        sum.committed += shared->sweeps[job].committed;
    }
    sum.failed += died || sum.committed == 0;
    printf("%llu transactions committed; %llu cases are like others and not counted\n",
           (unsigned long long)sum.committed, (unsigned long long)sum.left_out);
    printf("%llu passed, %llu failed\n", (unsigned long long)sum.passed,
           (unsigned long long)sum.failed);
    return sum.failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"case", 1, NULL, 'c'},
                                          {"trace", 0, NULL, 't'},
                                          {"jobs", 1, NULL, 'j'},
                                          {NULL, 0, NULL, 0}};
    const char *one = NULL;
    uint64_t jobs = 1;
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'c') {
            one = optarg;
        } else if (option == 'j' && slice_to_u64(slice_of(optarg), &jobs) && jobs > 0 &&
                   jobs <= JOBS_MAX) {
            continue;
        } else if (option != 't') {
            fprintf(stderr, "usage: atomic [--case N,N,... [--trace]] [--jobs N]\n");
            return 2;
        }
    }
    if (log_open("/dev/null", LOG_ERROR_LEVEL) != 0) {
        return 2;
    }
    return one != NULL ? run_one(one) : run_all((unsigned)jobs);
}
