/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "run.h"
#include "world.h"

#define TRIES_MAX 600
#define TIME_MAX_S 60

struct search {
    struct params best;
    struct sim_totals reach; /* of the best one */
    const char *rule;        /* that all of them break; NULL: not known yet */
    unsigned tries;
    time_t end;
};

/* Takes the candidate if it breaks the same rule. A smaller world that breaks another one is a find
 * of its own, or none: it may not be one that a seed stands for. */
static bool attempt(struct search *s, const struct params *candidate)
{
    if (s->tries >= TRIES_MAX || time(NULL) > s->end) {
        return false;
    }
    s->tries++;
    struct sim_totals *totals = &sim_totals[candidate->dialect];
    *totals = (struct sim_totals){0};
    if (run_wait(candidate, TRACE_OFF, true) || (s->rule != NULL && s->rule != totals->rule)) {
        return false;
    }
    s->rule = totals->rule;
    s->best = *candidate;
    s->reach = *totals;
    return true;
}

static bool attempt_value(struct search *s, const struct param *param, uint64_t value)
{
    struct params candidate = s->best;
    param_set(&candidate, param, value);
    return attempt(s, &candidate);
}

/* What comes behind the violation does not matter; often half is enough. */
static void fewer_calls(struct search *s)
{
    struct params candidate = s->best;
    if (s->reach.calls < candidate.ops) {
        candidate.ops = s->reach.calls;
        (void)attempt(s, &candidate);
    }
    for (uint64_t part = s->best.ops / 2; part > 0; part /= 2) {
        candidate = s->best;
        if (candidate.ops > part) {
            candidate.ops -= part;
            (void)attempt(s, &candidate);
        }
    }
}

static bool is_one_of(const char *name, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Each number as small as it goes: the least, or half. */
static void smaller_world(struct search *s)
{
    static const char *const fixed[] = {
        "ops",     "delay_us",      "think_us",    "fault_us",      "log_limit",  "log_hard_limit",
        "grace_s", "sublist_limit", "cache_bytes", "item_size_max", "index_bytes"};
    /* Lists that live for less than the run are not there in the end, as they should not be. */
    static const char *const all_or_none[] = {"expiry_s", "ttl_s", "touches"};
    for (size_t i = 0; param_at(i) != NULL; i++) {
        const struct param *param = param_at(i);
        bool skip = is_one_of(param->name, fixed, sizeof fixed / sizeof fixed[0]);
        bool half = !is_one_of(param->name, all_or_none, sizeof all_or_none / sizeof *all_or_none);
        while (!skip && param_get(&s->best, param) > param->min) {
            uint64_t now = param_get(&s->best, param);
            if (!attempt_value(s, param, param->min) &&
                !(half && attempt_value(s, param, param->min + (now - param->min) / 2))) {
                break;
            }
        }
    }
}

/* Behind all that are there. False: there is no room for more. */
static bool ranges_add(struct ranges *r, uint64_t from, uint64_t to)
{
    if (r->count > 0 && r->range[r->count - 1].to + 1 == from) {
        r->range[r->count - 1].to = (uint32_t)to;
        return true;
    }
    if (r->count == RANGES_MAX) {
        return false;
    }
    r->range[r->count].from = (uint32_t)from;
    r->range[r->count++].to = (uint32_t)to;
    return true;
}

static bool leave_out(struct search *s, size_t ranges_at, uint64_t from, uint64_t to)
{
    struct params candidate = s->best;
    return ranges_add((struct ranges *)((char *)&candidate + ranges_at), from, to) &&
           attempt(s, &candidate);
}

/* Leaves out stretches of so many of those that are still in. */
static void leave_out_stretches(struct search *s, size_t ranges_at, uint64_t last, uint64_t length)
{
    struct ranges old = *(struct ranges *)((char *)&s->best + ranges_at);
    struct params begin = s->best;
    ((struct ranges *)((char *)&begin + ranges_at))->count = 0;
    struct params kept = s->best;
    s->best = begin;
    uint64_t from = 1;
    bool any = false;
    while (from <= last) {
        uint64_t to = from;
        bool was_out = ranges_have(&old, from);
        while (to < last && to - from + 1 < length && ranges_have(&old, to + 1) == was_out) {
            to++;
        }
        if (was_out) {
            /* Out before, stays out: not tried alone. */
            (void)ranges_add((struct ranges *)((char *)&s->best + ranges_at), from, to);
        } else {
            any = leave_out(s, ranges_at, from, to) || any;
        }
        from = to + 1;
    }
    /* What was out before came in again for a while: it must fail with all of it left out. */
    struct params found = s->best;
    s->best = kept;
    if (any) {
        (void)attempt(s, &found);
    }
}

void minimise(const struct params *params)
{
    struct search s = {.best = *params, .end = time(NULL) + TIME_MAX_S};
    if (!attempt(&s, params)) {
        printf("it does not fail again\n");
        return;
    }
    fewer_calls(&s);
    smaller_world(&s);
    fewer_calls(&s);
    for (uint64_t n = s.reach.faults; n > 0; n /= 2) {
        leave_out_stretches(&s, offsetof(struct params, without_faults), s.reach.faults, n);
    }
    for (uint64_t n = s.best.ops / 2; n > 0; n /= 2) {
        leave_out_stretches(&s, offsetof(struct params, without_calls), s.best.ops, n);
    }
    printf("\nthe smallest run found that fails, in %u tries:\n", s.tries);
    (void)run_wait(&s.best, TRACE_KEEP, false);
    printf("again with: ");
    params_print_command(&s.best);
}
