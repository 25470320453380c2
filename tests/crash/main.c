/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build/crash --jobs 2             all cases, in two processes
 * build/crash --case 7 --trace     one of them, every step shown
 * build/crash --from 13 --to 26    the groups 13 to 25: one scene with one operation of A each
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "sweep.h"

#define JOBS_MAX 64

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
    uint64_t one, shown_max, from, to, jobs;
    bool has_one, trace;
};

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"case", 1, NULL, 'c'},  {"trace", 0, NULL, 't'},
                                          {"shown", 1, NULL, 's'}, {"from", 1, NULL, 'f'},
                                          {"to", 1, NULL, 'o'},    {"jobs", 1, NULL, 'j'},
                                          {NULL, 0, NULL, 0}};
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
        } else if (c == 'j') {
            o->jobs = number(optarg);
        } else {
            fprintf(stderr, "usage: crash [--case N [--trace]] [--shown N] [--from GROUP] "
                            "[--to GROUP] [--jobs N]\n");
            exit(2);
        }
    }
    if (o->jobs == 0 || o->jobs > JOBS_MAX) {
        fprintf(stderr, "crash: --jobs is out of range\n");
        exit(2);
    }
}

static int run_one(const struct options *o)
{
    static struct crash_world world;
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
                                   : "no case: a proxy comes to rest before\n");
        return 2;
    }
    printf("%s\n", world.base.failed ? world.base.violation : "passed");
    return world.base.failed ? 1 : 0;
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

/* Lives in memory that the jobs share; each has a tally of its own. */
struct sweep_jobs {
    _Atomic uint64_t next; /* the first group that no job has taken */
    struct tally tallies[JOBS_MAX];
};

/* Groups take from no time to seconds: a job that is free takes the next one. */
static void run_job(struct sweep_jobs *jobs, unsigned job, const struct options *o)
{
    uint64_t i;
    while ((i = atomic_fetch_add(&jobs->next, 1)) < group_count() && i < o->to) {
        run_group(group_at((unsigned)i), &jobs->tallies[job], o->shown_max);
    }
}

static void run_jobs(struct sweep_jobs *jobs, const struct options *o)
{
    pid_t children[JOBS_MAX];
    fflush(stdout);
    for (unsigned job = 0; job < o->jobs; job++) {
        children[job] = fork();
        CHECK(children[job] >= 0);
        if (children[job] == 0) {
            run_job(jobs, job, o);
            exit(0);
        }
    }
    for (unsigned job = 0; job < o->jobs; job++) {
        int status = 0;
        CHECK(waitpid(children[job], &status, 0) == children[job] && status == 0);
    }
}

static int run_all(const struct options *o)
{
    uint64_t passed = 0, failed = 0;
    bool whole = o->from == 0 && o->to >= group_count();
    bounds_print();
    struct sweep_jobs *jobs =
        mmap(NULL, sizeof *jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(jobs != MAP_FAILED);
    jobs->next = o->from;
    run_jobs(jobs, o);
    struct tally *sum = &jobs->tallies[0];
    for (unsigned job = 1; job < o->jobs; job++) {
        tally_add(sum, &jobs->tallies[job]);
    }
    if (sum->hidden > 0) {
        printf("%llu more are not shown: --shown N\n", (unsigned long long)sum->hidden);
    }
    for (unsigned i = 0; i < FAMILIES; i++) {
        printf("%-8s %8llu cases  %s\n", family_name((enum family)i),
               (unsigned long long)(sum->passed[i] + sum->failed[i]), family_text((enum family)i));
        passed += sum->passed[i];
        failed += sum->failed[i];
    }
    unsigned never = metrics_print(sum);
    if (never > 0 && whole) {
        printf("FAILED: %u of these never happened\n", never);
        failed += never;
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options o = {.shown_max = 100, .to = UINT64_MAX, .jobs = 1};
    parse(argc, argv, &o);
    if (log_open("/dev/null", LOG_ERROR_LEVEL) != 0) {
        return 2;
    }
    return o.has_one ? run_one(&o) : run_all(&o);
}
