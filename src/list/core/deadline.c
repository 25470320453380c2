/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/deadline.h"

#include "list/core/pass.h"

static struct due_queue *queue_of(struct engine *e, const struct list_call *call)
{
    return list_verb_has(call->verb, LIST_LONG) || call->fills ? &e->due_long : &e->due;
}

static uint64_t next_us(const struct engine *e)
{
    const struct list_call *a = TAILQ_FIRST(&e->due), *b = TAILQ_FIRST(&e->due_long);
    uint64_t a_us = a != NULL ? a->deadline_us : UINT64_MAX;
    uint64_t b_us = b != NULL ? b->deadline_us : UINT64_MAX;
    return a_us < b_us ? a_us : b_us;
}

/* Where it goes in the queue when that is not the end: behind the one that is returned, or NULL. */
static RARE struct list_call *place_of(struct due_queue *queue, const struct list_call *call)
{
    struct list_call *before = TAILQ_LAST(queue, due_queue), *sibling = call->session->newest_due;
    /* The keys of one request have the time of all, and come a few at a time: behind them there
     * are those of all requests that have come since. */
    if (sibling != NULL && sibling->due_in == queue && sibling->deadline_us == call->deadline_us) {
        return sibling;
    }
    while (before != NULL && before->deadline_us > call->deadline_us) {
        before = TAILQ_PREV(before, due_queue, due);
    }
    return before;
}

void deadline_start(struct engine *e, struct list_call *call)
{
    struct due_queue *queue = queue_of(e, call);
    if (call->deadline_us == 0 || call->due_in != NULL) {
        return;
    }
    /* Nearly all calls have the same time, so that the last place is the right one. */
    struct list_call *before = TAILQ_LAST(queue, due_queue);
    if (before != NULL && before->deadline_us > call->deadline_us) {
        before = place_of(queue, call);
    }
    call->due_in = queue;
    call->session->newest_due = call;
    if (before == NULL) {
        TAILQ_INSERT_HEAD(queue, call, due);
    } else {
        TAILQ_INSERT_AFTER(queue, before, call, due);
    }
    struct timer *timer = &e->deadline_timer;
    if (!timer_is_set(timer) || timer->at_us > call->deadline_us) {
        timer_set(&e->timers, timer, call->deadline_us);
    }
}

void deadline_stop(struct list_call *call)
{
    if (call->due_in == NULL) {
        return;
    }
    if (call->session->newest_due == call) {
        struct list_call *before = TAILQ_PREV(call, due_queue, due);
        bool is_sibling = before != NULL && before->session == call->session;
        call->session->newest_due = is_sibling ? before : NULL;
    }
    TAILQ_REMOVE(call->due_in, call, due);
    call->due_in = NULL;
}

void deadline_renew(struct engine *e, struct list_call *call)
{
    deadline_stop(call);
    if (call->deadline_us != 0) {
        call->deadline_us = e->now.mono_us + call->time_us;
    }
    deadline_start(e, call);
}

static const char *waits_for(const struct engine *e, const struct list *list)
{
    const char *waiting = op_waiting(e, list);
    if (waiting[0] != '\0') {
        return waiting;
    }
    return timer_is_set(&list->append_backoff)
               ? "a compaction by another proxy, for which changes are held back"
               : "a busy worker: nothing was under way for this list";
}

static RARE void log_over(struct engine *e, const struct list *list)
{
    char key[128], more[LOG_MORE_MAX];
    if (log_limit_pass(&e->over_log, e->now.wall_s, "events", more)) {
        log_warn("list %s: requests ended at their deadline; what they waited for: %s%s",
                 slice_escape(list_key(list), key, sizeof key), waits_for(e, list), more);
    }
}

static const char *text_of(const struct list_call *call, enum list_known known)
{
    if (list_verb_reads(call->verb)) {
        return "deadline over: the list was not read in time";
    }
    if (call->verb == LIST_COMPACT && known != KNOWN_UNKNOWN) {
        return "deadline over: the list is not compact yet";
    }
    return known == KNOWN_UNKNOWN ? "deadline over, outcome unknown"
                                  : "deadline over, nothing done";
}

/* It was not started. */
static void expire_waiting(struct engine *e, struct list *list, struct list_call *call,
                           wait_reason *reason)
{
    struct pass pass = {.e = e, .list = list};
    unsigned metric = METRIC_list_timeouts;
    const char *text = reason(list, call, &metric);
    metric_inc(e->metrics, metric);
    pass_activate(&pass, call);
    call_fail(e, list, call, "%s",
              text != NULL ? text : "deadline over, nothing done: earlier requests took too long");
}

static const char *memory_text(const struct list_call *call, enum list_known known)
{
    return known == KNOWN_NOTHING || list_verb_reads(call->verb)
               ? "out of memory: memory_limit_bytes is reached, nothing done"
               : "out of memory: memory_limit_bytes is reached, outcome unknown";
}

/* The operation lets go of it. text says why. */
static void end_started(struct engine *e, struct list_call *call,
                        const char *(*text)(const struct list_call *call, enum list_known known))
{
    struct list *list = call->list;
    struct op *op = call->op;
    enum list_known known = op->let_go(e, op, call);
    chain_clear(&call->answer);
    call->op = NULL;
    if (known == KNOWN_DONE || known == KNOWN_TOLD) {
        call_finish(e, list, call, known == KNOWN_DONE ? LIST_OK : LIST_SERVER_ERROR);
        return;
    }
    if (known == KNOWN_UNKNOWN && !list_verb_reads(call->verb)) {
        metric_inc(e->metrics, METRIC_outcomes_unknown);
        op->told_unknown = true; /* it goes on: what it has sent is not answered */
    }
    call_fail(e, list, call, "%s", text(call, known));
}

static void expire(struct engine *e, struct list_call *call, wait_reason *reason)
{
    struct list *list = call->list;
    deadline_stop(call);
    metric_inc(e->metrics, METRIC_deadlines_over);
    log_over(e, list);
    if (call->op == NULL) {
        expire_waiting(e, list, call, reason);
    } else {
        end_started(e, call, text_of);
    }
}

void deadline_give_up(struct engine *e, struct list_call *call)
{
    if (call->op != NULL) {
        deadline_stop(call);
        end_started(e, call, text_of);
    }
}

void deadline_end_for_memory(struct engine *e, struct list_call *call)
{
    deadline_stop(call);
    metric_inc(e->metrics, METRIC_list_ended_for_memory);
    end_started(e, call, memory_text);
}

static void expire_queue(struct engine *e, struct due_queue *queue, wait_reason *reason)
{
    struct list_call *call;
    while ((call = TAILQ_FIRST(queue)) != NULL && call->deadline_us <= e->now.mono_us) {
        expire(e, call, reason);
    }
}

void deadline_pass(struct engine *e, wait_reason *reason)
{
    timer_stop(&e->timers, &e->deadline_timer);
    expire_queue(e, &e->due, reason);
    expire_queue(e, &e->due_long, reason);
    uint64_t at_us = next_us(e);
    if (at_us != UINT64_MAX) {
        timer_set(&e->timers, &e->deadline_timer, at_us);
    }
}
