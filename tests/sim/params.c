/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "format.h"
#include "list/content/locator.h"

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
    p->expiry_s = rng_below(rng, 2) == 0 ? 1000000 : 0;
    p->miss_damaged = rng_below(rng, 2) == 0;
    p->servers = 1 + (unsigned)rng_below(rng, 3);
    p->delay_us = rng_below(rng, 2) == 0 ? 50 : 1000;
    p->think_us = 20u << rng_below(rng, 8);
    p->depth = 1 + (unsigned)rng_below(rng, 4);
    p->clock_skew_s = rng_below(rng, 4) == 0 ? 1 + rng_below(rng, 3) : 0;
    p->mixed_limits = rng_below(rng, 4) == 0;
    p->answer_limit = rng_below(rng, 6) == 0 ? 128u << rng_below(rng, 4) : 0;
    p->views = rng_below(rng, 3) > 0;
    p->fold_memory = rng_below(rng, 4) == 0 ? 1 + (unsigned)rng_below(rng, 3) : 0;
}

static void mix_faults(struct params *p, unsigned kind, struct rng *rng)
{
    static const uint64_t every_us[] = {1000, 5000, 20000, 100000};
    if (kind == KIND_ALONE || kind == KIND_MANY || kind == KIND_BUSY) {
        return;
    }
    p->fault_us = every_us[rng_below(rng, 4)];
    bool all = kind == KIND_ALL;
    p->faults[FAULT_LOSS] = all || kind == KIND_LOSSES ? 4 : 0;
    p->faults[FAULT_CRASH] = all || kind == KIND_CRASHES ? 2 : 0;
    p->faults[FAULT_PAUSE] = all || kind == KIND_PAUSES ? 2 : 0;
    p->faults[FAULT_RESTART] = kind == KIND_RESTARTS ? 1 : 0;
    p->faults[FAULT_EVICTION] = kind == KIND_EVICTIONS ? 2 : 0;
    p->faults[FAULT_EXPIRY] = kind == KIND_EVICTIONS ? rng_below(rng, 2) : 0;
    p->faults[FAULT_SHORTAGE] = all || kind == KIND_SHORTAGES ? 1 : 0;
    p->faults[FAULT_DISK] = kind == KIND_SHORTAGES ? 3 : all ? 1 : 0;
    if (kind == KIND_EVICTIONS) {
        /* Slow, long lists: there is time to touch and to heal what is cached. */
        p->think_us = 20000u << rng_below(rng, 3);
        p->fault_us = 50000;
        p->cache_bytes = 1 << 20;
        p->growth = 80;
        p->items = 800;
    }
    bool slow = all || kind == KIND_CRASHES || kind == KIND_PAUSES || kind == KIND_RESTARTS;
    if (slow && p->fault_us < 20000) {
        p->fault_us = 20000;
    }
    if (p->faults[FAULT_EXPIRY] > 0) {
        p->expiry_s = 0;
    }
}

/* By an own draw, so that all else of a seed stays as it was. */
static void mix_deadlines(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 104729);
    p->deadline_us = 1000000;
    if (rng_below(&rng, 3) > 0) {
        return;
    }
    /* Operations of several steps do not come to their end. */
    p->deadline_us = p->delay_us << (2 + rng_below(&rng, 6));
    bool faults = p->fault_us > 0;
    p->faults[FAULT_STALL] = faults ? 2 : 0;
    if (p->faults[FAULT_EVICTION] == 0 && rng_below(&rng, 2) == 0) {
        p->long_ms = 10u << rng_below(&rng, 6);
    }
}

/* What shows only in few worlds. */
static void mix_rarities(struct params *p, struct rng *rng)
{
    static const uint32_t two_months_s = 60 * 60 * 24 * 60;
    p->pause_us = p->grace_s * 2500000ULL;
    if (p->faults[FAULT_PAUSE] > 0 && rng_below(rng, 3) == 0) {
        /* Life goes on slowly: what a pause has missed is swept and forgotten by its end. */
        p->think_us = 20000u << rng_below(rng, 3);
        p->fault_us = 500000;
        p->pause_us = p->grace_s * 10000000ULL;
    }
    if (p->proxies > 1 && rng_below(rng, 12) == 0) {
        /* Half of the proxies have as little memory as they may, and read what the others have
         * compacted. */
        p->mixed_limits = true;
        p->fold_memory = 1;
        p->log_limit = 64;
        p->log_hard_limit = 128;
        p->items = 800;
        p->growth = 96;
        p->lists = 1;
    }
    if (p->faults[FAULT_RESTART] > 0 && rng_below(rng, 2) == 0) {
        /* While one of them takes its time, another restarts and has the list again. */
        p->servers = 2;
        p->far_server = 1;
        p->spread = true;
        p->refuse = false;
        p->fault_us = 20000;
    }
    p->wrong_clocks = p->faults[FAULT_CRASH] > 0 && rng_below(rng, 4) == 0;
    /* More than a month is sent as a moment. */
    if (p->expiry_s > 0 && rng_below(rng, 2) == 0) {
        p->expiry_s = two_months_s;
    }
}

/* Half of the worlds have numbers in their slots; of the others half have counters that are set
 * back. */
static void mix_ring(struct params *p, unsigned drawn)
{
    p->slot = drawn < 6 ? drawn % FORMAT_SLOTS_NUMBERED
                        : FORMAT_SLOTS_NUMBERED + drawn % (FORMAT_SLOTS - FORMAT_SLOTS_NUMBERED);
    p->counter_wraps = drawn >= 9;
}

static void mix_dialect(struct params *p, struct rng *rng)
{
    static const uint32_t chances[] = {0, 1, 3, 20};
    p->manual_format = rng_below(rng, 2) == 0;
    p->hands = (unsigned)rng_below(rng, 3);
    p->compact_chance = chances[rng_below(rng, 4)];
    p->capacity = 4u << rng_below(rng, 6);
    mix_ring(p, (unsigned)rng_below(rng, 12));
    p->drops = rng_below(rng, 3) > 0;
    p->items = p->items == 800 ? 200 : p->items;
    /* What only the native one has. */
    p->spread = p->refuse = p->miss_damaged = false;
    p->cache_bytes = p->touch_interval_s = p->fold_memory = 0;
    p->faults[FAULT_EXPIRY] = 0;
    if (!params_one_item(p) && p->faults[FAULT_RESTART] + p->faults[FAULT_EVICTION] > 0) {
        /* Nothing is promised for lists that lose a part. */
        p->faults[FAULT_RESTART] = p->faults[FAULT_EVICTION] = 0;
        p->faults[FAULT_LOSS] = p->faults[FAULT_CRASH] = p->faults[FAULT_PAUSE] = 1;
    }
    p->history = p->history && (p->dialect == DIALECT_SIMPLE || p->dialect == DIALECT_SIGNED) &&
                 p->hands == 0;
}

/* By an own draw. */
static void mix_texts(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 472882027);
    p->delimited = p->dialect == DIALECT_SUBLISTS && rng_below(&rng, 3) == 0;
}

/* By an own draw, so that all other seeds stay as they were. */
static void mix_hands(struct params *p)
{
    struct rng rng;
    bool delimited = p->dialect == DIALECT_SIMPLE || p->dialect == DIALECT_TOMBSTONE ||
                     p->dialect == DIALECT_PAIRED || p->delimited;
    rng_init_seed(&rng, p->seed * 49979687 + p->dialect);
    p->unclosed = delimited && rng_below(&rng, 2) == 0;
    /* They have to meet each other's steps. */
    p->drops += p->drops > 0 && rng_below(&rng, 4) == 0;
    if ((p->dialect == DIALECT_FLIP || p->dialect == DIALECT_MARKER) && rng_below(&rng, 8) == 0) {
        p->compact_chance = 1;
        p->drops = 2;
        p->growth = 40;
        p->items = 20;
    }
}

/* By an own draw, so that all other seeds stay as they were. */
static void mix_foreign(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 15485863 + p->dialect);
    p->foreign = rng_below(&rng, 5) == 0 ? 1 + (unsigned)rng_below(&rng, 2) : 0;
}

/* By an own draw, so that all other seeds stay as they were. */
static void mix_lives(struct params *p)
{
    static const uint32_t times_s[] = {2, 4, 1000, 1000000, 5000000};
    struct rng rng;
    rng_init_seed(&rng, p->seed * 32452843 + p->dialect);
    if (!params_one_item(p) || rng_below(&rng, 3) > 0) {
        return;
    }
    p->touches = (unsigned)rng_below(&rng, 3);
    if (rng_below(&rng, 2) == 0) {
        p->ttl_s = times_s[rng_below(&rng, 5)];
        p->ttl_renew = p->dialect == DIALECT_NATIVE ? (uint32_t)rng_below(&rng, 3) : 0;
        p->expiry_s = 0;
    }
    if (p->touches > 0) {
        p->expiry_s = 0;
        p->faults[FAULT_EXPIRY] = p->fault_us > 0 && p->touches > 1 ? 1 : 0;
    }
    p->history = p->history && !lives_end(p);
}

/* By an own draw. */
static void mix_reloads(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 179424673 + p->dialect);
    /* Where some have too little memory for the lists of others, it matters which of them it is
     * that is asked in the end. */
    p->reloads = p->mixed_limits && p->fold_memory == 0 && rng_below(&rng, 2) == 0;
}

/* By an own draw. */
static void mix_leases(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 49979687);
    if (p->dialect != DIALECT_NATIVE || rng_below(&rng, 4) > 0) {
        return;
    }
    p->leases = p->refuse = true;
    p->touches = 0;
    p->ttl_s = p->ttl_renew = 0;
    p->faults[FAULT_EXPIRY] = 0;
    if (rng_below(&rng, 3) == 0) {
        p->think_us = 100000u << rng_below(&rng, 3); /* time for what expires by itself */
    }
}

/* By an own draw. */
static void mix_order(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 67867967);
    p->recent = p->dialect == DIALECT_NATIVE && rng_below(&rng, 4) == 0;
    /* The checker of histories knows lists that keep items in their places. */
    p->history = p->history && !p->recent;
}

/* By an own draw. */
static void mix_joints(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 86028121);
    bool exact = p->dialect == DIALECT_NATIVE || p->dialect == DIALECT_SIMPLE ||
                 p->dialect == DIALECT_TOMBSTONE || p->dialect == DIALECT_SIGNED;
    p->joints = exact && !p->only_adds && rng_below(&rng, 4) > 0;
}

/* By an own draw. */
static void mix_index(struct params *p)
{
    static const uint32_t checks[] = {0, 2, 6, LOCATOR_CHECK_BITS};
    struct rng rng;
    rng_init_seed(&rng, p->seed * 122949823);
    p->view_limit = rng_below(&rng, 2) == 0 ? 4096u << rng_below(&rng, 4) : 0;
    p->index_bytes = rng_below(&rng, 3) == 0 ? 8192u << rng_below(&rng, 4) : 1 << 20;
    p->index_checks = checks[rng_below(&rng, 4)];
    if (rng_below(&rng, 8) == 0 || p->dialect != DIALECT_NATIVE) {
        p->index_bytes = 0;
    }
}

/* By an own draw. */
static void mix_timed(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 141650939);
    bool apart = p->dialect != DIALECT_NATIVE || p->only_adds || p->wrong_clocks;
    p->timed = rng_below(&rng, 3) == 0 && !apart;
    if (!p->timed) {
        return;
    }
    p->history = false; /* its checker knows no times */
    if (rng_below(&rng, 2) == 0) {
        p->think_us = 10000u << rng_below(&rng, 5); /* so that minutes pass */
    }
}

/* By an own draw. */
static void mix_caps(struct params *p)
{
    static const unsigned sizes[] = {1, 2, 5, 20};
    struct rng rng;
    rng_init_seed(&rng, p->seed * 198491317);
    if (p->dialect != DIALECT_NATIVE || p->timed || rng_below(&rng, 3) > 0) {
        return;
    }
    p->max_items = sizes[rng_below(&rng, 4)];
    p->cap_refuses = rng_below(&rng, 3) == 0;
    p->cap_mix = (unsigned)rng_below(&rng, 3);
    uint32_t least = 4 * (32 + 16) * p->max_items; /* max_item_bytes, and what an entry takes */
    p->log_hard_limit = p->log_hard_limit < least ? least : p->log_hard_limit;
    p->item_size_max = p->item_size_max < 4 * least ? 4 * least : p->item_size_max;
    p->history = false; /* its checker knows no caps */
}

/* By an own draw: some round trips, or many. */
static void mix_stale(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 275604541);
    if (p->dialect != DIALECT_NATIVE || p->history || rng_below(&rng, 4) > 0) {
        return;
    }
    p->max_stale_ms = 1u << rng_below(&rng, 12);
    p->views = true;
    p->foreign = 0; /* who overwrites a list in the server is seen as late as all others */
}

/* By an own draw. */
static void mix_counts(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 198491317);
    bool counted = p->dialect == DIALECT_TOMBSTONE || p->dialect == DIALECT_PAIRED;
    p->blind = counted && rng_below(&rng, 2) == 0;
}

/* By an own draw. */
static void mix_purges(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 217645199);
    bool one_place = p->dialect == DIALECT_NATIVE || p->dialect == DIALECT_SIMPLE ||
                     p->dialect == DIALECT_TOMBSTONE || p->dialect == DIALECT_SIGNED;
    /* The checker of histories knows no lpurge. */
    p->purges = one_place && !p->timed && p->max_items == 0 && !p->only_adds && !p->history &&
                rng_below(&rng, 2) == 0;
}

/* By an own draw. */
static void mix_txs(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 275604547);
    bool apart = p->dialect != DIALECT_NATIVE || p->timed || p->history || p->only_adds;
    if (rng_below(&rng, 2) > 0 || apart) {
        return;
    }
    p->txs = rng_below(&rng, 2) == 0 ? 5 : 60;
    p->lists = 2 + (unsigned)rng_below(&rng, 4);
    p->expiry_s = 0;                             /* such a list is no primary */
    uint32_t hard = 2048u << rng_below(&rng, 3); /* an intent takes a quarter at most */
    p->log_hard_limit = p->log_hard_limit < hard ? hard : p->log_hard_limit;
    if (p->txs > 5) {
        p->items = rng_below(&rng, 3) == 0 ? p->items : 5; /* they are in each other's way */
        p->growth = p->items > 5 ? p->growth : 0;
        p->clients = p->clients < 4 ? 4 : p->clients;
    }
}

/* By an own draw. */
static void mix_turns(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 334214467);
    if (p->dialect != DIALECT_NATIVE || p->only_adds || rng_below(&rng, 10) > 0) {
        return;
    }
    p->in_turns = p->views = true;
    p->lists = 1;
    p->depth = 4;
    p->items = p->items > 60 ? 60 : p->items;
    p->growth = 0;
    p->refuse = false; /* the list is there */
    /* No list that expires, or has a cap, is changed in that way. */
    p->expiry_s = p->touches = p->ttl_s = p->ttl_renew = p->faults[FAULT_EXPIRY] = 0;
    p->max_items = p->txs = 0;
    p->timed = p->leases = p->purges = false;
}

/* By an own draw. */
static void mix_full(struct params *p)
{
    enum { SMALL = 4096, LARGE = 18432 };
    struct rng rng;
    rng_init_seed(&rng, p->seed * 413158511);
    bool small = p->item_size_max <= LARGE || p->max_items == 0;
    if (p->dialect != DIALECT_NATIVE || p->fault_us == 0 || !small || rng_below(&rng, 4) > 0) {
        return;
    }
    p->faults[FAULT_FULL] = 2;
    p->item_size_max = p->item_size_max <= LARGE ? p->item_size_max : SMALL;
}

void params_of_seed(struct params *p, uint64_t seed, enum list_dialect dialect)
{
    struct rng rng;
    unsigned kind = (unsigned)(seed % KIND_COUNT);
    rng_init_seed(&rng, seed * 7919);
    *p = (struct params){.seed = seed, .ops = 3000};
    mix_sizes(p, &rng);
    mix_faults(p, kind, &rng);
    p->proxies = kind == KIND_ALONE ? 1 : 2 + (unsigned)rng_below(&rng, 3);
    p->clients = 1 + (unsigned)rng_below(&rng, 6);
    mix_rarities(p, &rng);
    p->session_limit = rng_below(&rng, 4) == 0 ? 64u << rng_below(&rng, 5) : 0;
    p->history = seed / KIND_COUNT % 10 == 1;
    mix_deadlines(p);
    p->dialect = dialect;
    if (dialect != DIALECT_NATIVE) {
        mix_dialect(p, &rng);
    }
    mix_texts(p);
    mix_hands(p);
    mix_foreign(p);
    mix_lives(p);
    mix_reloads(p);
    mix_leases(p);
    mix_order(p);
    mix_joints(p);
    mix_index(p);
    mix_timed(p);
    mix_caps(p);
    mix_purges(p);
    mix_counts(p);
    mix_txs(p);
    mix_turns(p);
    mix_stale(p);
    mix_full(p);
}

/* ---- by name ---- */

#define PARAM_FROM(field, least, most) \
    { \
#field, offsetof(struct params, field), sizeof(((struct params *)0)->field), least, most \
    }
#define PARAM(field, most) PARAM_FROM(field, 0, most)
#define FAULT(name, index) \
    { \
        name, offsetof(struct params, faults[index]), sizeof(unsigned), 0, 100 \
    }

static const struct param table[] = {
    PARAM_FROM(ops, 1, UINT32_MAX),
    PARAM_FROM(proxies, 1, PROXIES_MAX),
    PARAM_FROM(clients, 1, CLIENTS_MAX),
    PARAM_FROM(depth, 1, 64),
    PARAM_FROM(lists, 1, 16),
    PARAM_FROM(items, 1, 4096),
    PARAM_FROM(servers, 1, 4),
    PARAM_FROM(log_limit, 1, 1 << 20),
    PARAM_FROM(log_hard_limit, 1, 1 << 20),
    PARAM_FROM(sublist_limit, 1, 1 << 20),
    PARAM_FROM(item_size_max, 1, 1 << 30),
    PARAM(cache_bytes, 1 << 30),
    PARAM(fold_memory, 1000),
    PARAM(answer_limit, 1 << 30),
    PARAM(session_limit, 1 << 30),
    PARAM_FROM(grace_s, 1, 100),
    PARAM(touch_interval_s, 100),
    PARAM(growth, 100),
    PARAM_FROM(delay_us, 1, 1000000),
    PARAM_FROM(think_us, 1, 10000000),
    PARAM(way_us, 1000000),
    PARAM(only_adds, 1),
    PARAM(in_turns, 1),
    PARAM(no_errors, 1),
    PARAM(far_server, 4),
    PARAM(fault_us, 100000000),
    PARAM(clock_skew_s, 100),
    PARAM(wrong_clocks, 1),
    PARAM(pause_us, 100000000),
    PARAM_FROM(deadline_us, 1, 100000000),
    PARAM(long_ms, 100000000),
    PARAM(refuse, 1),
    PARAM(moving, 1),
    PARAM(dead, 1),
    PARAM(spread, 1),
    PARAM(miss_damaged, 1),
    PARAM(expiry_s, 100000000),
    PARAM(recent, 1),
    PARAM(joints, 1),
    PARAM(txs, 100),
    PARAM(max_items, 1000),
    PARAM(cap_refuses, 1),
    PARAM(cap_mix, 2),
    PARAM(purges, 1),
    PARAM(leases, 1),
    PARAM(timed, 1),
    PARAM(touches, 2),
    PARAM(ttl_s, 315360000),
    PARAM(ttl_renew, TTL_RENEW_READ),
    PARAM(max_stale_ms, 3600000),
    PARAM(views, 1),
    PARAM(view_limit, 1 << 30),
    PARAM(index_bytes, 1 << 30),
    PARAM(index_checks, LOCATOR_CHECK_BITS),
    PARAM(mixed_limits, 1),
    PARAM(reloads, 1),
    PARAM(no_times, 2),
    PARAM(couchbase, COUCHBASE_BLIND),
    PARAM(history, 1),
    PARAM(manual_format, 1),
    PARAM(hands, 8),
    PARAM(unclosed, 1),
    PARAM(foreign, FOREIGN_MAX),
    PARAM(drops, 2),
    PARAM(compact_chance, 1000),
    PARAM(capacity, CAPACITY_MAX),
    PARAM(slot, FORMAT_SLOTS - 1),
    PARAM(counter_wraps, 1),
    PARAM(blind, 1),
    PARAM(delimited, 1),
    PARAM(strict, 1),
    FAULT("evictions", FAULT_EVICTION),
    FAULT("expiries", FAULT_EXPIRY),
    FAULT("restarts", FAULT_RESTART),
    FAULT("disk", FAULT_DISK),
    FAULT("shortages", FAULT_SHORTAGE),
    FAULT("full", FAULT_FULL),
    FAULT("stalls", FAULT_STALL),
    FAULT("failovers", FAULT_FAILOVER),
    FAULT("moves", FAULT_MOVE),
    FAULT("losses", FAULT_LOSS),
    FAULT("crashes", FAULT_CRASH),
    FAULT("pauses", FAULT_PAUSE),
};

const struct param *param_at(size_t index)
{
    return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}

uint64_t param_get(const struct params *p, const struct param *param)
{
    const char *at = (const char *)p + param->offset;
    uint64_t value = 0;
    memcpy(&value, at, param->size); /* the low bytes first, as on all machines that we know */
    return value;
}

void param_set(struct params *p, const struct param *param, uint64_t value)
{
    memcpy((char *)p + param->offset, &value, param->size);
}

bool params_change(struct params *p, struct slice changes)
{
    while (changes.len > 0) {
        const char *end = memchr(changes.p, ' ', changes.len);
        struct slice one =
            slice_take(&changes, end == NULL ? changes.len : (size_t)(end - changes.p));
        if (end != NULL) {
            (void)slice_take(&changes, 1);
        }
        const char *equals = one.len == 0 ? NULL : memchr(one.p, '=', one.len);
        const struct param *param;
        uint64_t value;
        size_t i = 0;
        if (equals == NULL) {
            return false;
        }
        struct slice name = slice_take(&one, (size_t)(equals - one.p));
        while ((param = param_at(i)) != NULL && !slice_equal(name, slice_of(param->name))) {
            i++;
        }
        (void)slice_take(&one, 1);
        if (param == NULL || !slice_to_u64(one, &value) || value < param->min ||
            value > param->max) {
            return false;
        }
        param_set(p, param, value);
    }
    return true;
}

bool ranges_have(const struct ranges *r, uint64_t number)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (number >= r->range[i].from && number <= r->range[i].to) {
            return true;
        }
    }
    return false;
}

bool ranges_parse(struct ranges *r, struct slice text)
{
    r->count = 0;
    while (text.len > 0) {
        const char *end = memchr(text.p, ',', text.len);
        struct slice one = slice_take(&text, end == NULL ? text.len : (size_t)(end - text.p));
        if (end != NULL) {
            (void)slice_take(&text, 1);
        }
        const char *dash = one.len == 0 ? NULL : memchr(one.p, '-', one.len);
        struct slice first = slice_take(&one, dash == NULL ? one.len : (size_t)(dash - one.p));
        uint64_t from, to;
        if (!slice_to_u64(first, &from)) {
            return false;
        }
        to = from;
        if (dash != NULL) {
            (void)slice_take(&one, 1);
            if (!slice_to_u64(one, &to)) {
                return false;
            }
        }
        if (r->count == RANGES_MAX || to < from || to > UINT32_MAX) {
            return false;
        }
        r->range[r->count].from = (uint32_t)from;
        r->range[r->count++].to = (uint32_t)to;
    }
    return true;
}

void params_settle_moving(struct params *p)
{
    if (p->moving) {
        p->servers = p->servers < 2 ? 2 : p->servers;
        p->spread = p->joints = p->purges = false;
        p->no_times = 0;
        p->faults[FAULT_EXPIRY] = 0;
    }
    p->dead = p->dead && p->moving;
    if (p->dead) {
        p->servers = p->servers < 3 ? 3 : p->servers;
        p->faults[FAULT_RESTART] += p->faults[FAULT_RESTART] == 0;
        p->fault_us = p->fault_us == 0 ? 20000 : p->fault_us;
    }
}

/* ---- shown ---- */

void params_print(const struct params *p)
{
    printf("seed %llu (%s%s%s):", (unsigned long long)p->seed, kinds[p->seed % KIND_COUNT],
           p->dialect == DIALECT_NATIVE ? "" : ", ",
           p->dialect == DIALECT_NATIVE ? "" : dialect_name(p->dialect));
    for (size_t i = 0; param_at(i) != NULL; i++) {
        uint64_t value = param_get(p, param_at(i));
        if (value != 0) {
            printf(" %s=%llu", param_at(i)->name, (unsigned long long)value);
        }
    }
    printf("\n");
}

static void print_ranges(const char *name, const struct ranges *r)
{
    if (r->count == 0) {
        return;
    }
    printf(" --%s ", name);
    for (unsigned i = 0; i < r->count; i++) {
        printf(r->range[i].from == r->range[i].to ? "%s%u" : "%s%u-%u", i == 0 ? "" : ",",
               r->range[i].from, r->range[i].to);
    }
}

void params_print_command(const struct params *p)
{
    struct params own;
    const char *before = " --set \"";
    params_of_seed(&own, p->seed, p->dialect);
    printf("build/sim --seed %llu", (unsigned long long)p->seed);
    if (p->dialect != DIALECT_NATIVE) {
        printf(" --dialect %s", dialect_name(p->dialect));
    }
    for (size_t i = 0; param_at(i) != NULL; i++) {
        uint64_t value = param_get(p, param_at(i));
        if (value != param_get(&own, param_at(i))) {
            printf("%s%s=%llu", before, param_at(i)->name, (unsigned long long)value);
            before = " ";
        }
    }
    printf("%s", before[1] == '\0' ? "\"" : "");
    print_ranges("without-calls", &p->without_calls);
    print_ranges("without-faults", &p->without_faults);
    printf(" --trace\n");
}
