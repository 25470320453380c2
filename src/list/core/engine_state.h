/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's own memory, shared by the rooms that make it up.
 */
#ifndef LIST_CORE_ENGINE_STATE_H
#define LIST_CORE_ENGINE_STATE_H

#include "base/spare.h"
#include "list/core/cache.h"
#include "list/core/expiry.h"
#include "list/core/fetch.h"
#include "list/core/inner.h"
#include "list/core/lists.h"
#include "list/core/own_changes.h"

enum timer_kind { TIMER_OP, TIMER_APPEND_BACKOFF };

TAILQ_HEAD(due_queue, list_call);

struct engine {
    const struct config *config;
    struct cache *const *caches;     /* by list_policy.index */
    struct run_indexes *indexes;     /* or NULL */
    struct own_changes *own_changes; /* NULL: all reads are exact */
    const struct list_plugin *plugin;
    struct rng *rng;
    struct metrics *metrics;
    struct now now;   /* of the call in progress */
    uint64_t passes;  /* of engine_run */
    uint64_t pass_us; /* between the last two */

    struct call_queue arrived; /* since the last engine_run: not looked up yet */
    struct lists lists;
    struct timers timers;
    struct due_queue due, due_long; /* calls in the order of their deadlines, see deadline.h */
    struct timer deadline_timer;    /* set for the first of them, or earlier */
    struct list_session ghosts;     /* the session of calls that were answered already */
    TAILQ_HEAD(, op) all_ops;
    struct spare_list spare_ops; /* of the size that most have */
    TAILQ_HEAD(runnable_ops, op) runnable;
    struct fetches fetches;
    struct expiries expiries; /* writes that wait for a server's clock */
    struct inners inners;
    TAILQ_HEAD(joint_turns, joint) turns; /* on large lists, and not let in yet: joint/joint.h */
    bool is_dropped;                      /* by engine_destroy */
    TAILQ_HEAD(tx_open, op_tx)
    transactions;     /* announced and not over, the oldest first: tx/tx.c */
    size_t calls;     /* submitted and not done, also those that wait for nothing but a moment */
    unsigned touches; /* touch operations under way */
    int64_t clock_lead_s;  /* what a server's clock has shown, less this proxy's, as seen last */
    unsigned renewals;     /* operations under way that renew a list's time to live */
    uint64_t session_mark; /* the current pass over a queue, see schedule.c */

    struct request_queue outbox;
    struct spare_list spare_requests; /* each with room for its carrier behind it */
    struct call_queue done;
    struct log_limit damaged_log;
    struct log_limit foreign_log;
    struct log_limit over_log;
};

/* When an item expires that has so many seconds left; 0: never. */
static inline uint64_t mono_us_in(const struct engine *e, int64_t ttl_s)
{
    return ttl_s < 0 ? 0 : e->now.mono_us + (uint64_t)ttl_s * 1000000;
}

static inline struct cache *engine_cache(const struct engine *e, const struct list *list)
{
    return e->caches[list->policy->index];
}

#endif
