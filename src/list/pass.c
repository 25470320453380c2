/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/pass.h"

void pass_begin(struct pass *pass)
{
    struct list_call *call;
    pass->e->session_mark++;
    TAILQ_FOREACH(call, &pass->list->active, active)
    {
        /* A read under way may have to begin again on a newer head: a later one must not be
         * answered from an older. */
        pass_set_phase(pass, call, PHASE_BLOCKED);
    }
}

void pass_activate(const struct pass *pass, struct list_call *call)
{
    TAILQ_REMOVE(&pass->list->queue, call, link);
    TAILQ_INSERT_TAIL(&pass->list->active, call, active);
}

void pass_hold(const struct pass *pass, struct list_call *call)
{
    session_hold(call);
    pass_set_phase(pass, call, PHASE_HELD);
}

static const char *waited_for(const struct pass *pass)
{
    const char *waiting = engine_waiting(pass->e, list_key(pass->list));
    if (waiting[0] != '\0') {
        return waiting;
    }
    return timer_is_set(&pass->list->hold_back)
               ? "a compaction by another proxy, for which changes are held back"
               : "a busy worker: nothing was under way for this list";
}

static void log_expired(const struct pass *pass)
{
    struct engine *e = pass->e;
    char key[128];
    uint64_t suppressed;
    if (log_limit_pass(&e->expired_log, e->now.wall_s, &suppressed)) {
        log_warn("list %s: calls waited for timeout_ms; what they waited for: %s (%llu more such "
                 "events in between)",
                 slice_escape(list_key(pass->list), key, sizeof key), waited_for(pass),
                 (unsigned long long)suppressed);
    }
}

bool pass_expired(struct pass *pass, struct list_call *call)
{
    const struct pool_config *pool = &pass->e->config->pools[pass->list->policy->pool_index];
    if (pass->e->now.mono_us - call->submitted_us < (uint64_t)pool->timeout_ms * 1000) {
        return false;
    }
    enum metric metric;
    const char *text = pass->late(pass, call, &metric);
    metric_inc(pass->e->metrics, metric);
    log_expired(pass);
    pass_activate(pass, call);
    call_fail(pass->e, pass->list, call, "%s", text);
    return true;
}

/* A held call's time begins when the client lets it go on. */
static void release(const struct pass *pass, struct list_call *call)
{
    if (call->held) {
        session_release(call);
        call->submitted_us = pass->e->now.mono_us;
    }
}

static void consider(struct pass *pass, struct list_call *call)
{
    release(pass, call);
    if (call->session->gone && list_verb_reads(call->verb)) {
        pass_activate(pass, call);
        call_finish(pass->e, pass->list, call, LIST_SERVER_ERROR); /* nobody hears it */
    } else if (pass_phase(pass, call) == PHASE_HELD) {
        session_hold(call);
    } else if (!pass_expired(pass, call) && !pass->take(pass, call) && !call->held) {
        pass_set_phase(pass, call, PHASE_BLOCKED);
    }
}

void pass_queue(struct pass *pass)
{
    for (struct list_call *call = TAILQ_FIRST(&pass->list->queue), *next; call != NULL;
         call = next) {
        next = TAILQ_NEXT(call, link);
        consider(pass, call);
    }
}
