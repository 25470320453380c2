/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over the queue picks what starts now:
 *
 *     recent reads           answered at once (read/recent.h)
 *     blind changes, reads   into one round: the changes in one APPEND, the reads behind it on
 *                            one head read
 *     the same, in turns     where sessions have sent several such pairs at once: see
 *                            change/turns.h
 *     exact changes          into one exact operation
 *     lpop                   into one operation of their own, those of one end
 *     llease                 into one operation of their own
 *     fills                  one at a time, beside everything else
 *     lpurge                 the same
 *     ldrop, lcompact        one at a time
 *     lmigrate               beside everything else
 *
 * Within a round a session's changes come before its reads, so a read may join changes, but a
 * change may not join an earlier read.
 */
#include "list/schedule.h"

#include "base/number.h"
#include "list/change/capped.h"
#include "list/change/exact.h"
#include "list/change/forget.h"
#include "list/change/turns.h"
#include "list/change/lease.h"
#include "list/change/pop.h"
#include "list/change/put.h"
#include "list/change/renew.h"
#include "list/change/round.h"
#include "list/compact/compact.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/core/finish.h"
#include "list/core/pass.h"
#include "list/moving/migrate.h"
#include "list/read/recent.h"

/* So many batches of different workers that know nothing of each other fit the log together. */
#define BATCHES_AT_ONCE 8u

/* What a pass starts. */
struct start {
    struct pass pass;
    struct op_round *round;
    struct op_cas *exact, *pop, *lease;
    struct list_call *compaction, *fill, *purge, *migration;
    struct call_queue recent; /* reads that need no request */
    bool change_waits; /* an exact change could not start: blind changes behind it wait, or it would
                          never get through */
    bool exact_is_alone;
    size_t exact_bytes; /* what its calls take in the log at most */
    bool log_full;      /* as far as known, the log has no room for a change */
};

static bool round_possible(const struct start *start)
{
    return start->pass.list->round == NULL || start->round != NULL;
}

/* Does what stands in the way of blind changes wait for a transaction itself? Then it has read
 * nothing yet that they could change. */
static bool exact_is_held(const struct list *list)
{
    return (list->exact == NULL || list->exact->is_held) &&
           (list->turns == NULL || list->turns->is_held) &&
           (list->exact != NULL || list->turns != NULL);
}

static struct op_round *get_round(struct start *start)
{
    if (start->round == NULL) {
        start->round = round_create(start->pass.e, start->pass.list);
    }
    return start->round;
}

static bool take_change(struct start *start, struct list_call *call)
{
    struct list *list = start->pass.list;
    enum phase phase = pass_phase(&start->pass, call);
    bool exact = list->exact != NULL || list->turns != NULL || start->change_waits;
    if (list->publisher || (exact && !exact_is_held(list)) || timer_is_set(&list->append_backoff) ||
        (phase != PHASE_FREE && phase != PHASE_CHANGED)) {
        list->has_turns = list->has_turns || (phase == PHASE_LOOKING && turns_take(call->verb));
        return false;
    }
    size_t bytes = list_call_log_bytes(call);
    size_t batched = start->round != NULL ? round_bytes(start->round) : 0;
    if (batched + bytes > list_log_room(list) || list_awaits_compactor(start->pass.e, list, call)) {
        /* It waits until a compaction makes room, or until its time is over. */
        start->log_full = true;
        return false;
    }
    if (!round_possible(start)) {
        return false;
    }
    /* Others append at the same moment: a batch takes its part of the room alone. A change that is
     * longer than that goes by itself, so none waits for room that is there. */
    size_t most = list->looks_shared > 0 ? list_log_room(list) / BATCHES_AT_ONCE
                                         : list_log_hard_limit(list) / 2;
    if (batched > 0 && batched + bytes > most) {
        return false;
    }
    if (batched > 0) {
        metric_inc(start->pass.e->metrics, METRIC_list_appends_combined);
    }
    pass_activate(&start->pass, call);
    round_add_write(get_round(start), call);
    pass_set_phase(&start->pass, call, PHASE_CHANGED);
    return true;
}

static bool take_read(struct start *start, struct list_call *call)
{
    if (pass_phase(&start->pass, call) == PHASE_BLOCKED || !round_possible(start) ||
        start->pass.list->held_round != NULL) {
        return false;
    }
    if (!session_admit(call, start->pass.list->extent)) {
        pass_defer(&start->pass, call);
        return false;
    }
    if (!TAILQ_EMPTY(&get_round(start)->reads)) {
        metric_inc(start->pass.e->metrics, METRIC_list_head_reads_combined);
    }
    pass_activate(&start->pass, call);
    round_add_read(start->round, call);
    bool looks = call->verb == LIST_HAS && pass_phase(&start->pass, call) != PHASE_READING;
    pass_set_phase(&start->pass, call, looks ? PHASE_LOOKING : PHASE_READING);
    return true;
}

/* It waits for no request that is under way. */
static bool take_recent(struct start *start, struct list_call *call)
{
    const struct list *list = start->pass.list;
    if (!recent_is_wanted(start->pass.e, list) || !recent_may_answer(start->pass.e, list, call) ||
        pass_phase(&start->pass, call) != PHASE_FREE || !session_admit(call, list->extent)) {
        return false;
    }
    pass_activate(&start->pass, call);
    TAILQ_INSERT_TAIL(&start->recent, call, link);
    return true;
}

/* It writes nothing that others could meet while the list is there, but its place is that of exact
 * changes. */
static bool take_lease(struct start *start, struct list_call *call)
{
    struct list *list = start->pass.list;
    bool mine = start->lease != NULL;
    if (list->publisher || list_writing(list) != mine ||
        pass_phase(&start->pass, call) != PHASE_FREE) {
        start->change_waits = true;
        return false;
    }
    if (!mine) {
        start->lease = lease_create(start->pass.e, list);
    }
    pass_activate(&start->pass, call);
    cas_add(start->lease, call);
    pass_set_phase(&start->pass, call, PHASE_BLOCKED);
    return true;
}

static bool take_pop(struct start *start, struct list_call *call)
{
    struct list *list = start->pass.list;
    bool mine = start->pop != NULL;
    if (list->publisher || list_writing(list) != mine ||
        pass_phase(&start->pass, call) != PHASE_FREE || (mine && !pop_takes(start->pop, call))) {
        start->change_waits = true;
        return false;
    }
    if (!mine) {
        start->pop = pop_create(start->pass.e, list);
    }
    pass_activate(&start->pass, call);
    pop_add(start->pop, call);
    pass_set_phase(&start->pass, call, PHASE_BLOCKED);
    return true;
}

static bool take_exact(struct start *start, struct list_call *call)
{
    struct list *list = start->pass.list;
    if (call->verb == LIST_LEASE) {
        return take_lease(start, call);
    }
    bool alone = list_verb_has(call->verb, LIST_ALONE);
    bool free_place =
        list->exact == NULL || (start->exact != NULL && !alone && !start->exact_is_alone);
    if (list_awaits_compactor(start->pass.e, list, call)) {
        start->log_full = true;
        start->change_waits = true;
        return false;
    }
    if (call->room_bytes > list_log_room(list) ||
        (call->room_bytes > 0 && timer_is_set(&list->append_backoff))) {
        /* As take_change does. Changes behind it that are shorter need not wait as well: it comes
         * first once there is room. */
        start->log_full = start->log_full || !timer_is_set(&list->append_backoff);
        return false;
    }
    if (call->verb == LIST_POP) {
        return take_pop(start, call);
    }
    if (list->publisher || list_writing(list) != (start->exact != NULL) || !free_place ||
        pass_phase(&start->pass, call) != PHASE_FREE) {
        start->change_waits = true;
        return false;
    }
    if (call->verb == LIST_TOUCH && list_wanted_until_s(start->pass.e, list) != 0 &&
        (list->compaction != NULL || list->merge != NULL || list->wish != WISH_NONE)) {
        return false; /* it waits for sublists that live longer: others may go before it */
    }
    size_t bytes = list_call_log_bytes(call);
    if (start->exact != NULL && start->exact_bytes + bytes > list_log_hard_limit(list) / 2) {
        start->change_waits = true; /* together they might find no room in a log that is empty */
        return false;
    }
    if (start->exact == NULL) {
        start->exact = exact_create(start->pass.e, list);
        start->exact_is_alone = alone;
    }
    start->exact_bytes += bytes;
    pass_activate(&start->pass, call);
    exact_add(start->exact, call);
    pass_set_phase(&start->pass, call, PHASE_BLOCKED);
    return true;
}

/* One call for which such an operation is made; is_there: the list has one. */
static bool take_one(struct start *start, bool is_there, struct list_call **taken,
                     struct list_call *call)
{
    if (is_there || *taken != NULL || pass_phase(&start->pass, call) != PHASE_FREE) {
        return false;
    }
    pass_activate(&start->pass, call);
    *taken = call;
    pass_set_phase(&start->pass, call, PHASE_BLOCKED);
    return true;
}

static bool take(struct pass *pass, struct list_call *call)
{
    struct start *start = (struct start *)pass;
    const struct list *list = pass->list;
    if (call->fills) {
        return take_one(start, list->put != NULL, &start->fill, call);
    }
    switch (list_verb_kind(call->verb)) {
    case LIST_KIND_BLIND:
        return capped_is_exact(call) ? take_exact(start, call) : take_change(start, call);
    case LIST_KIND_READ:
        return take_recent(start, call) || take_read(start, call);
    case LIST_KIND_EXACT:
        return take_exact(start, call);
    case LIST_KIND_COMPACTION:
        return take_one(start, list->compaction != NULL, &start->compaction, call);
    case LIST_KIND_PURGE:
        return take_one(start, list->forget != NULL, &start->purge, call);
    case LIST_KIND_CONVERSION:
        return take_one(start, false, &start->migration, call);
    case LIST_KIND_FILL: /* taken above */
    case LIST_KIND_JOINT:
    case LIST_KIND_TX:
        break; /* translate_moved and start_several of engine.c have left none */
    }
    CHECK(!"a verb that the schedule does not know");
}

/* A change that cannot go in turns, and that nothing of its own session holds up: those behind it
 * wait, or it would never get through. */
static bool stops_turns(const struct start *start, const struct list_call *call)
{
    return list_verb_changes(call->verb) && !turns_take(call->verb) && !call->fills &&
           pass_phase(&start->pass, call) == PHASE_FREE;
}

/* Takes what sessions change and look into in turns, of each up to the first call of another kind.
 */
static void take_turns(struct start *start)
{
    struct engine *e = start->pass.e;
    struct list *list = start->pass.list;
    struct op_cas *turns = NULL;
    uint64_t room = u64_least(list_log_hard_limit(list) / 2, list_log_room(list)), bytes = 0;
    list->has_turns = false;
    pass_begin(&start->pass);
    for (struct list_call *call = TAILQ_FIRST(&list->queue), *next; call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        enum phase phase = pass_phase(&start->pass, call);
        bool change = list_verb_kind(call->verb) == LIST_KIND_BLIND;
        size_t call_bytes = change ? list_call_log_bytes(call) : 0;
        if (stops_turns(start, call)) {
            list->has_turns = true;
            break;
        }
        if (phase == PHASE_BLOCKED || call->deferred || !turns_take(call->verb) ||
            bytes + call_bytes > room) {
            pass_set_phase(&start->pass, call, PHASE_BLOCKED);
            continue;
        }
        bytes += call_bytes;
        list->has_turns = list->has_turns || (change && phase == PHASE_LOOKING);
        if (turns == NULL) {
            turns = turns_create(e, list);
        }
        pass_activate(&start->pass, call);
        cas_add(turns, call);
        pass_set_phase(&start->pass, call, change ? PHASE_CHANGED : PHASE_LOOKING);
    }
    if (turns != NULL) {
        op_run(e, &turns->op);
    }
}

const char *schedule_wait_reason(const struct list *list, const struct list_call *call,
                                 unsigned *metric)
{
    enum list_kind kind = list_verb_kind(call->verb);
    if (!list->is_native) {
        return NULL;
    }
    if (kind == LIST_KIND_COMPACTION) {
        *metric = METRIC_list_busy;
        return "busy: this list is being compacted";
    }
    if (call->fills && list->put != NULL) {
        *metric = METRIC_list_busy;
        return "busy, nothing done: another fill of this list was faster";
    }
    if (call->room_bytes > 0 || (kind == LIST_KIND_BLIND && !capped_is_exact(call) &&
                                 list_call_log_bytes(call) > list_log_room(list))) {
        *metric = METRIC_list_log_full;
        return list->cap.max != 0 && list->folded_bytes > list_log_hard_limit(list) / 2
                   ? "list log full, nothing done: max_items is too much for "
                     "log_hard_limit_bytes, or for the server's -I"
                   : LIST_LOG_FULL;
    }
    return NULL;
}

/* Calls on a list that has moved here from a dialect. What is native needs no conversion: that is
 * to say how many items there are. An lset with a time to live or a condition is a fill; so is an
 * ldrop of a list that has to be there, for a native ldrop does not look. */
static void translate_moved(struct list *list)
{
    struct list_call *call;
    TAILQ_FOREACH(call, &list->queue, link)
    {
        bool looks = call->condition != LIST_ALWAYS;
        if ((call->verb == LIST_SET && (call->has_exptime || looks)) ||
            (call->verb == LIST_DROP && looks)) {
            call->verb = LIST_PUT;
            call->fills = true;
        }
        call->verb = call->verb == LIST_CONVERT ? LIST_LEN : call->verb;
    }
}

static void grant_wish(struct engine *e, struct list *list)
{
    enum list_wish wish = list->wish;
    if (list->compaction == NULL && !compact_has_room(e, list)) {
        lists_wait(&e->lists, list); /* the wish stays */
        return;
    }
    list->wish = WISH_NONE;
    lists_stop_waiting(&e->lists, list);
    if (list->compaction != NULL) {
        return; /* a merge has come back to the place for short steps in the meantime */
    }
    if (wish == WISH_CLEAR || wish == WISH_HEAL) {
        compact_start_on(e, list, wish == WISH_HEAL ? COMPACT_HEAL : COMPACT_CLEAR,
                         &list->wish_about);
    } else {
        compact_start(e, list, wish == WISH_COMPACT_INSTEAD);
    }
}

void schedule_list(struct engine *e, struct list *list)
{
    if (list->wants_finish) {
        finish_start(e, list);
    }
    if (list->wants_renewal) {
        list->wants_renewal = false;
        renew_consider(e, list, true);
    }
    if (list->wish != WISH_NONE) {
        grant_wish(e, list);
    }
    if (list->policy->migrate != MIGRATE_NO) {
        translate_moved(list);
    }
    struct start start = {.pass = {.e = e, .list = list, .take = take}};
    if (TAILQ_EMPTY(&list->queue)) {
        return;
    }
    if (list->has_turns && turns_possible(e, list)) {
        take_turns(&start);
    }
    TAILQ_INIT(&start.recent);
    pass_begin(&start.pass);
    pass_queue(&start.pass);
    if (!TAILQ_EMPTY(&start.recent)) {
        recent_answer(e, list, &start.recent);
    }
    if (start.log_full && round_possible(&start)) {
        /* What is known may be old: others have flipped since. */
        get_round(&start)->probe = true;
    }
    if (start.round != NULL) {
        op_run(e, &start.round->op);
    }
    if (start.exact != NULL) {
        op_run(e, &start.exact->op);
    }
    if (start.pop != NULL) {
        op_run(e, &start.pop->op);
    }
    if (start.lease != NULL) {
        op_run(e, &start.lease->op);
    }
    if (start.fill != NULL) {
        put_start(e, list, start.fill);
    }
    if (start.purge != NULL) {
        forget_start(e, list, start.purge);
    }
    if (start.compaction != NULL) {
        compact_start_for(e, list, start.compaction);
    }
    if (start.migration != NULL) {
        migrate_start(e, list, start.migration);
    }
}
