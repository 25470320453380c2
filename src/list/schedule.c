/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over the queue picks what starts now:
 *
 *     blind changes, reads   into one round: the changes in one APPEND, the reads behind it on
 *                            one head read
 *     the same, in turns     where sessions have sent several such pairs at once: op_turns.h
 *     exact changes          into one exact operation
 *     ldrop, lcompact        one at a time
 *
 * Only each session's own order must be kept. Per session the pass notes how far its earlier calls
 * are; within a round a session's changes come before its reads, so a read may join changes, but a
 * change may not join an earlier read.
 */
#include "list/schedule.h"

#include "base/number.h"
#include "list/engine_state.h"
#include "list/op_compact.h"
#include "list/op_exact.h"
#include "list/op_round.h"
#include "list/op_turns.h"

enum phase {
    PHASE_FREE,    /* nothing of this session is under way on this list */
    PHASE_CHANGED, /* it has a change in the round being made */
    PHASE_LOOKING, /* it has an lhas in that round: changes may follow in turns */
    PHASE_READING, /* it has another read in that round: only reads may follow */
    PHASE_BLOCKED, /* an earlier call must end first */
    PHASE_HELD,    /* an earlier call waits for the client to take answers, and so does this one */
};

enum kind { KIND_CHANGE, KIND_READ, KIND_EXACT, KIND_COMPACTION };

static enum kind kind_of(const struct list_call *call)
{
    switch (call->verb) {
    case LIST_ADD:
    case LIST_DEL:
    case LIST_SET:
        return KIND_CHANGE;
    case LIST_ADDX:
    case LIST_DELX:
    case LIST_CREATE:
        return KIND_EXACT;
    case LIST_DROP:
    case LIST_COMPACT:
        return KIND_COMPACTION;
    default:
        return KIND_READ;
    }
}

/* What a pass makes. */
struct pass {
    struct engine *e;
    struct list *list;
    struct op_round *round;
    struct op_exact *exact;
    struct list_call *compaction;
    bool change_waits; /* an exact change could not start: blind changes behind it wait, or it would
                          never get through */
    bool exact_is_create;
    bool log_full; /* as far as known, the log has no room for a change */
};

static enum phase phase_of(const struct pass *pass, const struct list_call *call)
{
    return call->session->mark == pass->e->session_mark ? (enum phase)call->session->phase
                                                        : PHASE_FREE;
}

static void set_phase(const struct pass *pass, struct list_call *call, enum phase phase)
{
    call->session->mark = pass->e->session_mark;
    call->session->phase = phase;
}

static void mark_active(const struct pass *pass)
{
    struct list_call *call;
    TAILQ_FOREACH(call, &pass->list->active, active)
    {
        /* A read under way may have to begin again on a newer head: a later one must not be
         * answered from an older. */
        set_phase(pass, call, PHASE_BLOCKED);
    }
}

static void activate(struct pass *pass, struct list_call *call)
{
    TAILQ_REMOVE(&pass->list->queue, call, link);
    TAILQ_INSERT_TAIL(&pass->list->active, call, active);
}

static bool round_possible(const struct pass *pass)
{
    return pass->list->round == NULL || pass->round != NULL;
}

static struct op_round *get_round(struct pass *pass)
{
    if (pass->round == NULL) {
        pass->round = round_create(pass->e, pass->list);
    }
    return pass->round;
}

static bool take_change(struct pass *pass, struct list_call *call)
{
    struct list *list = pass->list;
    enum phase phase = phase_of(pass, call);
    bool exact = list->exact != NULL || list->turns != NULL;
    if (list->hold || exact || pass->change_waits || timer_is_set(&list->hold_back) ||
        (phase != PHASE_FREE && phase != PHASE_CHANGED)) {
        list->has_turns = list->has_turns || (phase == PHASE_LOOKING && turns_take(call->verb));
        return false;
    }
    size_t bytes = round_call_bytes(call);
    size_t batched = pass->round != NULL ? round_bytes(pass->round) : 0;
    if (batched + bytes > list_log_room(list)) {
        /* It waits until a compaction makes room, or until its time is over. */
        pass->log_full = true;
        return false;
    }
    if (!round_possible(pass)) {
        return false;
    }
    /* A batch stays far below the hard limit, so that the limit is overshot by little. */
    size_t most = list_log_hard_limit(list) / 2;
    if (batched > 0 && batched + bytes > most) {
        return false;
    }
    if (batched > 0) {
        metric_inc(pass->e->metrics, METRIC_list_appends_combined);
    }
    activate(pass, call);
    round_add_write(get_round(pass), call);
    set_phase(pass, call, PHASE_CHANGED);
    return true;
}

static void hold(const struct pass *pass, struct list_call *call)
{
    session_hold(call);
    set_phase(pass, call, PHASE_HELD);
}

static bool take_read(struct pass *pass, struct list_call *call)
{
    if (phase_of(pass, call) == PHASE_BLOCKED || !round_possible(pass)) {
        return false;
    }
    if (!session_admit(call, pass->list->extent)) {
        hold(pass, call);
        return false;
    }
    if (!TAILQ_EMPTY(&get_round(pass)->reads)) {
        metric_inc(pass->e->metrics, METRIC_list_head_reads_combined);
    }
    activate(pass, call);
    round_add_read(pass->round, call);
    bool looks = call->verb == LIST_HAS && phase_of(pass, call) != PHASE_READING;
    set_phase(pass, call, looks ? PHASE_LOOKING : PHASE_READING);
    return true;
}

static bool take_exact(struct pass *pass, struct list_call *call)
{
    struct list *list = pass->list;
    bool create = call->verb == LIST_CREATE;
    bool free_place =
        list->exact == NULL || (pass->exact != NULL && !create && !pass->exact_is_create);
    if (list->hold || list_writing(list) != (pass->exact != NULL) || !free_place ||
        phase_of(pass, call) != PHASE_FREE) {
        pass->change_waits = true;
        return false;
    }
    if (pass->exact == NULL) {
        pass->exact = exact_create(pass->e, list);
        pass->exact_is_create = create;
    }
    activate(pass, call);
    exact_add(pass->exact, call);
    set_phase(pass, call, PHASE_BLOCKED);
    return true;
}

static bool take_compaction(struct pass *pass, struct list_call *call)
{
    if (pass->list->compaction != NULL || pass->compaction != NULL ||
        phase_of(pass, call) != PHASE_FREE) {
        return false;
    }
    activate(pass, call);
    pass->compaction = call;
    set_phase(pass, call, PHASE_BLOCKED);
    return true;
}

static void log_expired(const struct pass *pass)
{
    struct engine *e = pass->e;
    char key[128];
    uint64_t suppressed;
    if (log_limit_pass(&e->expired_log, e->now.wall_s, &suppressed)) {
        log_warn("list %s: calls waited for timeout_ms; what they waited for: %s (%llu more such "
                 "events in between)",
                 slice_escape(list_key(pass->list), key, sizeof key),
                 engine_waiting(e, list_key(pass->list)), (unsigned long long)suppressed);
    }
}

/* A call that waited longer than its pool's timeout is not started any more: every request ends
 * within its time. */
static bool expired(struct pass *pass, struct list_call *call)
{
    const struct pool_config *pool = &pass->e->config->pools[pass->list->policy->pool_index];
    if (pass->e->now.mono_us - call->submitted_us < (uint64_t)pool->timeout_ms * 1000) {
        return false;
    }
    const char *text = "timeout, nothing done: earlier requests for this list took too long";
    enum metric metric = METRIC_list_timeouts;
    if (kind_of(call) == KIND_COMPACTION) {
        text = "busy: this list is being compacted";
        metric = METRIC_list_busy;
    } else if (kind_of(call) == KIND_CHANGE && round_call_bytes(call) > list_log_room(pass->list)) {
        text = "list log full, nothing done: compaction is behind, try again";
        metric = METRIC_list_log_full;
    }
    metric_inc(pass->e->metrics, metric);
    log_expired(pass);
    activate(pass, call);
    call_fail(pass->e, pass->list, call, "%s", text);
    return true;
}

static bool take(struct pass *pass, struct list_call *call)
{
    switch (kind_of(call)) {
    case KIND_CHANGE:
        return take_change(pass, call);
    case KIND_READ:
        return take_read(pass, call);
    case KIND_EXACT:
        return take_exact(pass, call);
    case KIND_COMPACTION:
        return take_compaction(pass, call);
    }
    return false;
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
    if (call->session->gone && kind_of(call) == KIND_READ) {
        activate(pass, call);
        call_finish(pass->e, pass->list, call, LIST_SERVER_ERROR); /* nobody hears it */
    } else if (phase_of(pass, call) == PHASE_HELD) {
        session_hold(call);
    } else if (!expired(pass, call) && !take(pass, call) && !call->held) {
        set_phase(pass, call, PHASE_BLOCKED);
    }
}

/* A change that cannot go in turns, and that nothing of its own session holds up: those behind it
 * wait, or it would never get through. */
static bool stops_turns(const struct pass *pass, const struct list_call *call)
{
    enum kind kind = kind_of(call);
    return (kind == KIND_CHANGE || kind == KIND_EXACT) && !turns_take(call->verb) &&
           phase_of(pass, call) == PHASE_FREE;
}

/* Takes what sessions change and look into in turns, of each up to the first call of another kind.
 */
static void take_turns(struct pass *pass)
{
    struct engine *e = pass->e;
    struct list *list = pass->list;
    struct op_turns *turns = NULL;
    uint64_t room = u64_least(list_log_hard_limit(list) / 2, list_log_room(list)), bytes = 0;
    list->has_turns = false;
    mark_active(pass);
    for (struct list_call *call = TAILQ_FIRST(&list->queue), *next; call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        enum phase phase = phase_of(pass, call);
        bool change = kind_of(call) == KIND_CHANGE;
        size_t call_bytes = change ? round_call_bytes(call) : 0;
        if (stops_turns(pass, call)) {
            list->has_turns = true;
            break;
        }
        if (phase == PHASE_BLOCKED || call->held || !turns_take(call->verb) ||
            bytes + call_bytes > room) {
            set_phase(pass, call, PHASE_BLOCKED);
            continue;
        }
        if (expired(pass, call)) {
            continue;
        }
        bytes += call_bytes;
        list->has_turns = list->has_turns || (change && phase == PHASE_LOOKING);
        if (turns == NULL) {
            turns = turns_create(e, list);
        }
        activate(pass, call);
        turns_add(turns, call);
        set_phase(pass, call, change ? PHASE_CHANGED : PHASE_LOOKING);
    }
    if (turns != NULL) {
        op_start(e, &turns->op);
    }
}

void schedule_list(struct engine *e, struct list *list)
{
    struct pass pass = {.e = e, .list = list};
    if (TAILQ_EMPTY(&list->queue)) {
        return;
    }
    if (list->has_turns && turns_possible(e, list)) {
        e->session_mark++;
        take_turns(&pass);
    }
    e->session_mark++;
    mark_active(&pass);
    for (struct list_call *call = TAILQ_FIRST(&list->queue), *next; call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        consider(&pass, call);
    }
    if (pass.log_full && round_possible(&pass)) {
        /* What is known may be old: others have flipped since. */
        get_round(&pass)->probe = true;
    }
    if (pass.round != NULL) {
        op_start(e, &pass.round->op);
    }
    if (pass.exact != NULL) {
        exact_start(e, pass.exact);
    }
    if (pass.compaction != NULL) {
        compact_start(e, list, pass.compaction->verb == LIST_DROP ? COMPACT_DROP : COMPACT_FULL,
                      pass.compaction);
    }
}

void schedule_hold_large(struct engine *e, struct list *list, struct call_queue *reads)
{
    struct pass pass = {.e = e, .list = list};
    struct list_call *call, *next, *last_back = NULL;
    e->session_mark++;
    for (call = TAILQ_FIRST(reads); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (phase_of(&pass, call) != PHASE_HELD && session_admit(call, list->extent)) {
            continue;
        }
        session_discharge(call);
        hold(&pass, call);
        TAILQ_REMOVE(reads, call, link);
        TAILQ_REMOVE(&list->active, call, active);
        if (last_back == NULL) {
            TAILQ_INSERT_HEAD(&list->queue, call, link);
        } else {
            TAILQ_INSERT_AFTER(&list->queue, last_back, call, link);
        }
        last_back = call;
    }
}
