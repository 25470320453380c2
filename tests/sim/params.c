/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <stdio.h>

/* Every seed has a kind of world: the number behind its last ten. */
enum {
    KIND_ALONE,
    KIND_MANY,
    KIND_LOSSES,
    KIND_CRASHES,
    KIND_PAUSES,
    KIND_RESTARTS,
    KIND_EVICTIONS,
    KIND_SHORTAGES,
    KIND_ALL,
    KIND_BUSY,
    KIND_COUNT
};

static const char *const kinds[] = {
    "one proxy", "several proxies", "lost connections", "crashes",           "pauses",
    "restarts",  "evictions",       "out of memory",    "all but evictions", "busy, no faults"};

static void mix_sizes(struct params *p, struct rng *rng)
{
    static const uint32_t log_limits[] = {64, 128, 256, 512};
    p->log_limit = log_limits[rng_below(rng, 4)];
    p->log_hard_limit = p->log_limit * (uint32_t)(2 + 2 * rng_below(rng, 4));
    p->sublist_limit = 128u << rng_below(rng, 4);
    p->item_size_max = rng_below(rng, 4) == 0 ? 4096 : 1 << 20;
    p->cache_bytes = rng_below(rng, 3) == 0 ? 0 : rng_below(rng, 2) == 0 ? 8192 : 1 << 20;
    p->lists = 1 + (unsigned)rng_below(rng, 3);
    p->items = rng_below(rng, 3) == 0 ? 6 : rng_below(rng, 2) == 0 ? 60 : 800;
    p->growth = p->items >= 60 ? (rng_below(rng, 2) == 0 ? 96 : 60) : 0;
    p->grace_s = 1 + (uint32_t)rng_below(rng, 2);
    p->touch_interval_s = rng_below(rng, 2) == 0 ? 1 : 0;
    p->refuse = rng_below(rng, 3) == 0;
    p->spread = rng_below(rng, 2) == 0;
    p->expiring = rng_below(rng, 2) == 0;
    p->miss_damaged = rng_below(rng, 2) == 0;
    p->servers = 1 + (unsigned)rng_below(rng, 3);
    p->delay_us = rng_below(rng, 2) == 0 ? 50 : 1000;
    p->think_us = 20u << rng_below(rng, 8);
    p->depth = 1 + (unsigned)rng_below(rng, 4);
}

static void mix_faults(struct params *p, unsigned kind, struct rng *rng)
{
    static const uint64_t every_us[] = {1000, 5000, 20000, 100000};
    if (kind == KIND_ALONE || kind == KIND_MANY || kind == KIND_BUSY) {
        return;
    }
    p->fault_us = every_us[rng_below(rng, 4)];
    bool all = kind == KIND_ALL;
    p->losses = all || kind == KIND_LOSSES ? 4 : 0;
    p->crashes = all || kind == KIND_CRASHES ? 2 : 0;
    p->pauses = all || kind == KIND_PAUSES ? 2 : 0;
    p->restarts = kind == KIND_RESTARTS ? 1 : 0;
    p->evictions = kind == KIND_EVICTIONS ? 1 : 0;
    p->shortages = all || kind == KIND_SHORTAGES ? 1 : 0;
    if (kind == KIND_EVICTIONS) {
        /* Slow, long lists: there is time to touch and to heal what is cached. */
        p->think_us = 20000u << rng_below(rng, 3);
        p->fault_us = 50000;
        p->cache_bytes = 1 << 20;
        p->growth = 80;
        p->items = 800;
    }
    if (p->crashes + p->restarts + p->pauses + p->shortages > 0 && p->fault_us < 20000) {
        p->fault_us = 20000;
    }
}

void params_of_seed(struct params *p, uint64_t seed)
{
    struct rng rng;
    unsigned kind = (unsigned)(seed % KIND_COUNT);
    rng_init_seed(&rng, seed * 7919);
    *p = (struct params){.seed = seed, .ops = 3000};
    mix_sizes(p, &rng);
    mix_faults(p, kind, &rng);
    p->proxies = kind == KIND_ALONE ? 1 : 2 + (unsigned)rng_below(&rng, 3);
    p->clients = 1 + (unsigned)rng_below(&rng, 6);
}

void params_print(const struct params *p)
{
    printf("seed %llu (%s): %u proxies of %u clients, depth %u, %u lists, %u items, %u servers, "
           "log %u..%u, "
           "sublists %u, item %llu, cache %llu, grace %us, touch %u, growth %u, delay %llu, think "
           "%llu, fault %llu%s%s%s%s\n",
           (unsigned long long)p->seed, kinds[p->seed % KIND_COUNT], p->proxies, p->clients,
           p->depth, p->lists, p->items, p->servers, p->log_limit, p->log_hard_limit,
           p->sublist_limit, (unsigned long long)p->item_size_max,
           (unsigned long long)p->cache_bytes, p->grace_s, p->touch_interval_s, p->growth,
           (unsigned long long)p->delay_us, (unsigned long long)p->think_us,
           (unsigned long long)p->fault_us, p->refuse ? ", refuse" : "",
           p->spread ? ", spread" : "", p->miss_damaged ? ", miss" : "",
           p->expiring ? ", expiring" : "");
    fflush(stdout);
}
