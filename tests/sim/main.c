/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build/sim                     a bounded set of seeds
 * build/sim --seed 7 --trace    one of them, every step shown
 *
 * docs/simulator.md tells what it does and how to read it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "run.h"
#include "world.h"

/* Run without arguments, and of each other dialect; and of both on nodes of a cluster. */
#define SEEDS_DEFAULT 160
#define SEEDS_DIALECT 25
#define SEEDS_COUCHBASE 40
#define SEEDS_DIALECT_COUCHBASE 12
/* And of a crowd of proxies that add to one list of servers that are far. */
#define SEEDS_CROWD 2
static const char crowd[] =
    "ops=24000 proxies=20 clients=8 depth=4 only_adds=1 no_errors=1 way_us=49000 delay_us=2000 "
    "think_us=2 deadline_us=2000000 long_ms=0 lists=1 items=4000 servers=1 log_limit=16384 "
    "log_hard_limit=131072 sublist_limit=131072 item_size_max=1048576 cache_bytes=1048576 "
    "fold_memory=0 answer_limit=0 session_limit=0 grace_s=100 touch_interval_s=0 expiry_s=0 "
    "touches=0 ttl_s=0 leases=0 timed=0 max_items=0 "
    "fault_us=0 far_server=0 clock_skew_s=0 wrong_clocks=0 mixed_limits=0 reloads=0 refuse=0 "
    "spread=0 "
    "history=0 views=1 view_limit=0 foreign=0 joints=0 purges=0 txs=0";
/* Transactions that meet in few lists of few items, in the worlds of all seeds. */
static const char transactions[] =
    "txs=75 lists=4 items=5 growth=0 clients=6 log_limit=512 log_hard_limit=8192 "
    "item_size_max=18432 leases=0 timed=0 max_items=0 purges=0 touches=0 ttl_s=0 ttl_renew=0 "
    "expiry_s=0 expiries=0 history=0 only_adds=0";
/* Servers that tell no times to live; every second one in the worlds of odd seeds. What is given a
 * time by others loses it there. */
#define SEEDS_NO_TIMES 20
static const char no_times[] = "no_times=1 expiry_s=0 expiries=0";
static const char some_without_times[] = "no_times=2 expiry_s=0 expiries=0";
/* Lists that move to other servers. */
#define SEEDS_MOVING 20
static const char moving[] = "moving=1";
static const char some_moving[] = "moving=1 dead=1";
/* Calls as the seed says. */
#define OPS_DEFAULT UINT64_MAX
#define JOBS_MAX 64

struct options {
    uint64_t seed, seeds, first, ops, jobs;
    enum list_dialect dialect;
    bool all_dialects, couchbase;
    bool has_seed, trace, keep_size, brief;
    const char *changes;
    struct ranges without_calls, without_faults;
};

static const char usage[] =
    "usage: sim [--seeds N] [--first N] [--jobs N]   seeds from --first on (default: 160 from 1)\n"
    "       sim --seed N [--trace]                   one seed; --trace shows every step\n"
    "  --dialect NAME        how lists are stored (default: native; without any option, some "
    "seeds\n"
    "                        of each)\n"
    "  --ops N               calls of clients per seed\n"
    "  --crowd               20 proxies that add to one list of a server that is far\n"
    "  --couchbase           servers are nodes of a Couchbase cluster\n"
    "  --no-times            servers tell no times to live\n"
    "  --moving              lists move to other servers\n"
    "  --transactions        most calls are transactions, which meet in few lists\n"
    "  --set \"NAME=N ...\"    another world: the names that the first line of a run shows\n"
    "  --without-calls LIST  leaves out these calls, as 3-10,17\n"
    "  --without-faults LIST the same for faults\n"
    "  --keep-size           do not look for a smaller run that fails\n"
    "  --brief               of seeds that fail, only say which rule they break\n";

static void __attribute__((noreturn)) refuse(const char *what)
{
    fprintf(stderr, "sim: %s\n%s", what, usage);
    exit(2);
}

static uint64_t number(const char *text)
{
    uint64_t value;
    if (!slice_to_u64(slice_of(text), &value)) {
        refuse("not a number");
    }
    return value;
}

static void ranges(struct ranges *out, const char *text)
{
    if (!ranges_parse(out, slice_of(text))) {
        refuse("not a list of numbers, as 3-10,17");
    }
}

static void take_option(struct options *o, int c)
{
    switch (c) {
    case 's':
        o->all_dialects = false;
        o->seed = number(optarg);
        o->has_seed = true;
        break;
    case 'o':
        o->ops = number(optarg);
        break;
    case 't':
        o->trace = true;
        break;
    case 'k':
        o->keep_size = true;
        break;
    case 'b':
        o->brief = true;
        break;
    case 'n':
        o->all_dialects = false;
        o->seeds = number(optarg);
        break;
    case 'f':
        o->all_dialects = false;
        o->first = number(optarg);
        break;
    case 'j':
        o->jobs = number(optarg);
        break;
    case 'D':
        if (!dialect_of_name(optarg, &o->dialect)) {
            refuse("no such dialect");
        }
        o->all_dialects = false;
        break;
    case 'S':
        o->changes = optarg;
        break;
    case 'W':
        o->changes = crowd;
        o->all_dialects = false;
        break;
    case 'T':
        o->changes = transactions;
        o->all_dialects = false;
        break;
    case 'M':
        o->changes = moving;
        o->all_dialects = false;
        break;
    case 'N':
        o->changes = no_times;
        o->all_dialects = false;
        break;
    case 'B':
        o->couchbase = true;
        o->all_dialects = false;
        break;
    case 'C':
        ranges(&o->without_calls, optarg);
        break;
    case 'F':
        ranges(&o->without_faults, optarg);
        break;
    default:
        refuse("unknown option");
    }
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"seed", 1, NULL, 's'},
                                          {"ops", 1, NULL, 'o'},
                                          {"trace", 0, NULL, 't'},
                                          {"keep-size", 0, NULL, 'k'},
                                          {"brief", 0, NULL, 'b'},
                                          {"seeds", 1, NULL, 'n'},
                                          {"first", 1, NULL, 'f'},
                                          {"jobs", 1, NULL, 'j'},
                                          {"set", 1, NULL, 'S'},
                                          {"without-calls", 1, NULL, 'C'},
                                          {"without-faults", 1, NULL, 'F'},
                                          {"dialect", 1, NULL, 'D'},
                                          {"crowd", 0, NULL, 'W'},
                                          {"transactions", 0, NULL, 'T'},
                                          {"no-times", 0, NULL, 'N'},
                                          {"moving", 0, NULL, 'M'},
                                          {"couchbase", 0, NULL, 'B'},
                                          {NULL, 0, NULL, 0}};
    int c;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        take_option(o, c);
    }
    if (optind < argc) {
        refuse("too many words");
    }
    if (o->jobs == 0 || o->jobs > JOBS_MAX || o->seeds == 0 || o->ops == 0) {
        refuse("a number is out of range");
    }
    if (o->has_seed ? o->seeds != SEEDS_DEFAULT || o->first != 1 : o->trace) {
        refuse("--trace and --seed are about one seed, --seeds and --first about many");
    }
}

static void choose_params(const struct options *o, uint64_t seed, struct params *p)
{
    params_of_seed(p, seed, o->dialect);
    if (o->couchbase) {
        nodes_mix(p);
    }
    if (o->ops != OPS_DEFAULT) {
        p->ops = o->ops;
    }
    const char *changes = o->changes == no_times && seed % 2 == 1 ? some_without_times
                          : o->changes == moving && seed % 4 == 1 ? some_moving
                                                                  : o->changes;
    if (changes != NULL && !params_change(p, slice_of(changes))) {
        refuse("--set: not understood, or out of range");
    }
    params_settle_moving(p);
    p->without_calls = o->without_calls;
    p->without_faults = o->without_faults;
}

/* Shows the end of it, and a smaller run that fails as well. */
static void explain(const struct options *o, uint64_t seed)
{
    struct params p;
    choose_params(o, seed, &p);
    printf("\nthe end of seed %llu:\n", (unsigned long long)seed);
    (void)run_wait(&p, TRACE_KEEP, false);
    printf("again with: ");
    params_print_command(&p);
    if (!o->keep_size) {
        minimise(&p);
    }
}

struct running {
    pid_t child;
    uint64_t seed;
};

/* Waits for one of them, and puts the last into its place. Returns the seed if it failed. */
static bool await_one(struct running *jobs, unsigned *count, uint64_t *failed_seed)
{
    int status = 0;
    pid_t child = wait(&status);
    for (unsigned i = 0; i < *count; i++) {
        if (jobs[i].child == child) {
            *failed_seed = jobs[i].seed;
            jobs[i] = jobs[--*count];
            break;
        }
    }
    return status != 0;
}

/* Returns how many failed; explains the first of them. */
static uint64_t run_seeds(const struct options *o)
{
    struct running jobs[JOBS_MAX];
    unsigned count = 0;
    uint64_t failed = 0, first_failed = 0, seed = o->first;
    while (seed < o->first + o->seeds || count > 0) {
        if (seed < o->first + o->seeds && count < o->jobs) {
            struct params p;
            choose_params(o, seed, &p);
            jobs[count] = (struct running){run_start(&p, TRACE_OFF, false), seed};
            if (jobs[count].child < 0) {
                exit(2);
            }
            count++;
            seed++;
            continue;
        }
        uint64_t failed_seed = 0;
        if (await_one(jobs, &count, &failed_seed)) {
            printf("FAILED: --dialect %s%s%s --seed %llu\n", dialect_name(o->dialect),
                   o->couchbase ? " --couchbase" : "",
                   o->changes == crowd          ? " --crowd"
                   : o->changes == transactions ? " --transactions"
                   : o->changes == no_times     ? " --no-times"
                   : o->changes == moving       ? " --moving"
                                                : "",
                   (unsigned long long)failed_seed);
            first_failed = failed++ == 0 ? failed_seed : first_failed;
        }
    }
    struct sim_totals totals = sim_totals[o->dialect];
    if (failed > 0 && !o->brief) {
        explain(o, first_failed);
    }
    sim_totals[o->dialect] = totals;
    return failed;
}

static int run_one(const struct options *o)
{
    struct params p;
    choose_params(o, o->seed, &p);
    if (o->trace) {
        trace_mode = TRACE_PRINT;
        params_print(&p);
        sim_run(&p);
        return 0;
    }
    if (run_wait(&p, TRACE_OFF, false)) {
        return 0;
    }
    explain(o, o->seed);
    return 1;
}

/* Runs the seeds of one dialect. Returns how many failed. */
static uint64_t run_dialect(const struct options *o)
{
    time_t start = time(NULL);
    uint64_t failed = run_seeds(o);
    const struct sim_totals *t = &sim_totals[o->dialect];
    if (o->dialect != DIALECT_NATIVE || o->couchbase) {
        printf("%s%s: ", dialect_name(o->dialect), o->couchbase ? " on Couchbase" : "");
    }
    printf("%llu calls of clients, %llu answers checked, %llu faults, %llu histories checked (%llu "
           "undecided), %lld s\n",
           (unsigned long long)t->calls, (unsigned long long)t->checked,
           (unsigned long long)t->faults, (unsigned long long)t->histories,
           (unsigned long long)t->undecided, (long long)(time(NULL) - start));
    if (t->indexed > 0) {
        printf("%llu reads answered by an index\n", (unsigned long long)t->indexed);
    }
    if (t->recent > 0) {
        printf("%llu reads answered without a request\n", (unsigned long long)t->recent);
    }
    if (t->committed + t->aborted > 0) {
        printf("%llu transactions committed, %llu aborted\n", (unsigned long long)t->committed,
               (unsigned long long)t->aborted);
    }
    if (t->came_back > 0) {
        printf("%s: %llu sights of deleted items that have come back\n", dialect_name(o->dialect),
               (unsigned long long)t->came_back);
    }
    if (t->refused > 0) {
        printf("%s: %llu calls met values that are no lists\n", dialect_name(o->dialect),
               (unsigned long long)t->refused);
    }
    return failed;
}

static uint64_t run_more(struct options *o, enum list_dialect dialect, uint64_t seeds,
                         uint64_t *all_seeds)
{
    memset(&sim_totals[dialect], 0, sizeof *sim_totals);
    o->dialect = dialect;
    o->seeds = seeds;
    *all_seeds += seeds;
    return run_dialect(o);
}

/* What a run without arguments has beside its first seeds; adds to seeds. Returns how many failed.
 */
static uint64_t run_all_dialects(struct options *o, uint64_t *seeds)
{
    uint64_t failed = 0;
    for (unsigned d = DIALECT_NATIVE; d < DIALECT_COUNT; d++) {
        if (d != DIALECT_NATIVE) {
            failed += run_more(o, d, SEEDS_DIALECT, seeds);
        }
        o->couchbase = true;
        uint64_t more = d == DIALECT_NATIVE ? SEEDS_COUCHBASE : SEEDS_DIALECT_COUCHBASE;
        failed += run_more(o, d, more, seeds);
        o->couchbase = false;
    }
    const char *given = o->changes;
    o->changes = given == NULL ? no_times : given;
    failed += run_more(o, DIALECT_NATIVE, SEEDS_NO_TIMES, seeds);
    o->changes = given == NULL ? moving : given;
    failed += run_more(o, DIALECT_NATIVE, SEEDS_MOVING, seeds);
    o->changes = given == NULL ? crowd : given;
    return failed + run_more(o, DIALECT_NATIVE, SEEDS_CROWD, seeds);
}

int main(int argc, char **argv)
{
    struct options o = {
        .seeds = SEEDS_DEFAULT, .first = 1, .jobs = 1, .ops = OPS_DEFAULT, .all_dialects = true};
    parse(argc, argv, &o);
    sim_totals = mmap(NULL, DIALECT_COUNT * sizeof *sim_totals, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sim_totals == MAP_FAILED || log_open("/dev/null", LOG_ERROR_LEVEL) != 0) {
        return 2;
    }
    if (o.has_seed) {
        return run_one(&o);
    }
    uint64_t seeds = o.seeds, failed = run_dialect(&o);
    if (o.all_dialects) {
        failed += run_all_dialects(&o, &seeds);
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)(seeds - failed),
           (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}
