/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build/sim                     a bounded set of seeds
 * build/sim --seed 7 --trace    one of them, every step shown
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "params.h"

static uint64_t number(const char *text)
{
    uint64_t value;
    if (!slice_to_u64(slice_of(text), &value)) {
        fprintf(stderr, "sim: %s is no number\n", text);
        exit(2);
    }
    return value;
}

struct options {
    struct params given; /* zero: not given */
    bool has_seed;
    uint64_t seeds, first;
};

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"seed", 1, NULL, 's'},    {"ops", 1, NULL, 'o'},
                                          {"trace", 0, NULL, 't'},   {"proxies", 1, NULL, 'p'},
                                          {"clients", 1, NULL, 'c'}, {"seeds", 1, NULL, 'n'},
                                          {"first", 1, NULL, 'f'},   {NULL, 0, NULL, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 's') {
            o->given.seed = number(optarg);
            o->has_seed = true;
        } else if (c == 'o') {
            o->given.ops = number(optarg);
        } else if (c == 't') {
            o->given.trace = true;
        } else if (c == 'p') {
            o->given.proxies = (unsigned)number(optarg);
        } else if (c == 'c') {
            o->given.clients = (unsigned)number(optarg);
        } else if (c == 'n') {
            o->seeds = number(optarg);
        } else if (c == 'f') {
            o->first = number(optarg);
        } else {
            fprintf(stderr, "usage: sim [--seed N] [--ops N] [--trace] [--proxies N] [--clients N] "
                            "[--seeds N]\n");
            exit(2);
        }
    }
}

static void run_one(const struct options *o, uint64_t seed)
{
    struct params p;
    params_of_seed(&p, seed);
    p.ops = o->given.ops != 0 ? o->given.ops : p.ops;
    p.proxies = o->given.proxies != 0 ? o->given.proxies : p.proxies;
    p.clients = o->given.clients != 0 ? o->given.clients : p.clients;
    p.proxies = p.proxies < PROXIES_MAX ? p.proxies : PROXIES_MAX;
    p.clients = p.clients < CLIENTS_MAX ? p.clients : CLIENTS_MAX;
    sim_trace = o->given.trace;
    params_print(&p);
    world_run(&p);
}

/* Each seed in a process of its own: a failed check must not end the others. */
static bool run_apart(const struct options *o, uint64_t seed)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run_one(o, seed);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("sim");
        return false;
    }
    if (status != 0) {
        printf("FAILED: seed %llu; again with: build/sim --seed %llu --trace\n",
               (unsigned long long)seed, (unsigned long long)seed);
    }
    return status == 0;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = SEEDS_DEFAULT, .first = 1};
    parse(argc, argv, &o);
    if (log_open("/dev/null", LOG_ERROR_LEVEL) != 0) {
        return 2;
    }
    if (o.has_seed) {
        run_one(&o, o.given.seed);
        return 0;
    }
    unsigned passed = 0, failed = 0;
    for (uint64_t seed = o.first; seed < o.first + o.seeds; seed++) {
        bool good = run_apart(&o, seed);
        passed += good;
        failed += !good;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
