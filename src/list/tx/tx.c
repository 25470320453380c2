/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/tx/tx.h"

#include "base/number.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/tx/queue.h"
#include "list/tx/tx_op.h"
#include "proto/client/list_format.h"

/* Attempts while other writers are in the way, and the first pause between two, which doubles up to
 * 2^8 times that: 77 ms. */
#define ATTEMPTS_MAX 16
#define BACKOFF_US 300u

/* ---- the answer ---- */

static void answer_items(struct op_tx *o)
{
    const struct list *to = o->parts[1].list;
    char delimiter = (char)to->policy->delimiter;
    for (size_t i = 0; i < o->moved_count; i++) {
        if (o->call->form == LIST_FORM_ITEMS) {
            list_format_item(&o->call->answer, list_key(to), o->moved[i]);
            continue;
        }
        chain_copy_behind(&o->call->answer, i > 0, delimiter, o->moved[i]);
    }
}

static void answer_moved(struct op_tx *o)
{
    if (o->verb == LIST_TX || o->state != TX_COMMITTED) {
        return;
    }
    o->call->number = o->moved_count;
    if (o->verb == LIST_POPTO) {
        answer_items(o);
    }
}

static void answer(struct engine *e, struct op_tx *o)
{
    static const enum list_status ends[] = {
        [TX_COMMITTED] = LIST_OK,          [TX_NOTHING] = LIST_OK,
        [TX_NOT_STORED] = LIST_NOT_STORED, [TX_MISSING] = LIST_MISSING,
        [TX_REFUSED] = LIST_CLIENT_ERROR,  [TX_FAILED] = LIST_SERVER_ERROR,
        [TX_UNKNOWN] = LIST_SERVER_ERROR};
    struct list_call *call = o->call;
    if (call == NULL) {
        return;
    }
    answer_moved(o);
    o->call = NULL;
    if (o->state == TX_FAILED || o->state == TX_UNKNOWN) {
        call_fail(e, o->op.list, call, "%s", o->error);
        return;
    }
    if (o->state == TX_REFUSED) {
        memcpy(call->error, o->error, sizeof o->error);
    }
    call_finish(e, o->op.list, call, ends[o->state]);
}

/* ---- what is under way, for `stats` ---- */

static const unsigned phase_metrics[] = {[TX_PHASE_WAITING] = METRIC_transactions_waiting,
                                         [TX_PHASE_PENDING] = METRIC_transactions_pending,
                                         [TX_PHASE_COMMITTED] = METRIC_transactions_committed};

/* Levels, in the counters of the worker. That of the age holds the second in which the oldest has
 * begun, and 0 when there is none: proxy/stats.c. */
static void enter_phase(struct engine *e, struct op_tx *o, enum tx_phase phase)
{
    if (o->phase == phase) {
        return;
    }
    if (o->phase == TX_PHASE_NOT_BEGUN) {
        o->begun_s = e->now.wall_s;
        TAILQ_INSERT_TAIL(&e->transactions, o, open);
    } else {
        metric_add(e->metrics, phase_metrics[o->phase], (uint64_t)-1);
    }
    o->phase = phase;
    if (phase == TX_PHASE_NOT_BEGUN) {
        TAILQ_REMOVE(&e->transactions, o, open);
    } else {
        metric_inc(e->metrics, phase_metrics[phase]);
    }
    const struct op_tx *oldest = TAILQ_FIRST(&e->transactions);
    uint64_t second = oldest == NULL ? 0 : (uint64_t)oldest->begun_s;
    metric_add(e->metrics, METRIC_transaction_age,
               second - metric_get(e->metrics, METRIC_transaction_age));
}

/* Requests to a server that does not answer, until others are to find out what became of the
 * transaction; and the first pause between two, which doubles up to 2^8 times that. */
#define ASKS_MAX 10
#define ASK_PAUSE_US 1000u

static uint64_t pause_end_us(struct engine *e, const struct op_tx *o)
{
    return op_backoff_end_us(e, ASK_PAUSE_US, o->tries);
}

/* ---- rule 4: the decision ---- */

static void send_commit(struct engine *e, struct op_tx *o)
{
    struct block *value = block_new(128);
    decision_append(&value, &o->name, DECISION_COMMIT);
    if (o->part_count == 1) {
        decision_append(&value, &o->name, DECISION_DONE);
    }
    tx_send_write(e, tx_primary(o), value);
    tx_send_read_state(e, tx_primary(o));
    block_unref(&value);
}

/* Is it known that the server has not done the write, and never will? */
static bool is_not_done(const struct tx_part *part)
{
    return part->wrote != BE_STORED && part->wrote != BE_LOST && part->wrote != BE_HIT;
}

/* Takes what the primary says. TX_GOING: not decided, or not known. */
static void take_decision(struct op_tx *o)
{
    struct tx_part *part = tx_primary(o);
    o->refused = o->refused && is_not_done(part);
    if (tx_part_is_unknown(part)) {
        return;
    }
    if (part->state == INTENT_COMMITTED) {
        o->state = TX_COMMITTED;
    } else if (part->state == INTENT_ABORTED) {
        o->state = TX_AGAIN;
    } else if (part->state == INTENT_GONE) {
        /* Another proxy has aborted it, and folded that away; or the head has gone, by an eviction
         * say. Without a commit in it nothing was done. */
        o->state = o->refused || part->is_late ? TX_AGAIN : TX_UNKNOWN;
    }
}

static void send_abort_and_look(struct engine *e, struct op_tx *o)
{
    tx_send_decision(e, tx_primary(o), DECISION_ABORT);
    tx_send_read_state(e, tx_primary(o));
}

/* Ends with state: TX_COMMITTED, TX_AGAIN, TX_FAILED or TX_UNKNOWN. */
static enum progress commit_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    o->committing = o->refused = true;
    send_commit(e, o);
    CO_CALL(co, tx_await_step(e, o, event, "committing a transaction"));
    take_decision(o);
    if (o->state == TX_GOING && o->refused && tx_was_refused(tx_primary(o)) &&
        tx_primary(o)->state == INTENT_OPEN) {
        send_commit(e, o);
        CO_CALL(co, tx_await_step(e, o, event, "committing a transaction by CAS"));
        take_decision(o);
    }
    for (o->tries = 0; o->state == TX_GOING && !o->refused && o->tries < ASKS_MAX; o->tries++) {
        if (o->tries > 0) {
            CO_SLEEP(&o->op, co, "waiting for the primary's server", pause_end_us(e, o));
        }
        send_abort_and_look(e, o);
        CO_CALL(co, tx_await_step(e, o, event, "finding out whether it was committed"));
        o->refused = false;
        take_decision(o);
    }
    if (o->state == TX_GOING && o->refused) {
        tx_fail_undone(o, o->error);
    } else if (o->state == TX_GOING) {
        tx_fail(o, TX_UNKNOWN, "outcome unknown: the first list's server did not answer");
    } else if (o->state == TX_UNKNOWN) {
        tx_fail(o, TX_UNKNOWN,
                "outcome unknown: the first list was lost, or another proxy or a sweep settled it");
    }
    CO_END(co);
}

/* ---- rule 5: it gets to all lists ---- */

static bool all_published(const struct op_tx *o)
{
    size_t i = 0;
    while (i < o->part_count && (i == o->primary || o->parts[i].published)) {
        i++;
    }
    return i == o->part_count;
}

static void send_commits(struct engine *e, struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        if (i != o->primary && !part->published) {
            tx_send_decision(e, part, DECISION_COMMIT);
            tx_send_read_state(e, part);
        }
    }
}

/* Takes what the lists say; one that does not answer is asked again. */
static void take_commits(struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count; i++) {
        struct tx_part *part = &o->parts[i];
        if (i == o->primary || part->published || tx_part_is_unknown(part)) {
            continue;
        }
        part->published = part->state != INTENT_OPEN;
        /* Some list has folded it, or is gone: as committed, if the primary has known that all the
         * time. */
        o->confirms = o->confirms || part->state == INTENT_GONE;
        if (part->state == INTENT_ABORTED) {
            tx_fail(o, TX_UNKNOWN,
                    "outcome unknown: the first list was lost before all others had the change");
        }
    }
}

static void fail_unpublished(struct op_tx *o)
{
    tx_fail(o, TX_UNKNOWN, "outcome unknown: committed, but the server of a list did not answer");
}

/* Takes what the primary says when a list has forgotten the transaction. */
static void take_confirmation(struct op_tx *o)
{
    if (tx_part_is_unknown(tx_primary(o))) {
        fail_unpublished(o);
    } else if (tx_primary(o)->state != INTENT_COMMITTED) {
        /* No head says which of the two. */
        tx_fail(o, TX_UNKNOWN,
                "outcome unknown: committed, and a list was lost, or another proxy or a sweep "
                "finished it");
    }
}

/* The lists' commits are in: TX_COMMITTED stays, or TX_UNKNOWN. */
static enum progress publish_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (o->tries = 0; o->tries < ASKS_MAX && !all_published(o); o->tries++) {
        if (o->tries > 0) {
            CO_SLEEP(&o->op, co, "waiting for the server of a list", pause_end_us(e, o));
        }
        send_commits(e, o);
        CO_CALL(co, tx_await_step(e, o, event, "telling the other lists of a commit"));
        take_commits(o);
    }
    if (!all_published(o)) {
        fail_unpublished(o);
    }
    if (o->state == TX_COMMITTED && o->confirms) {
        tx_send_read_state(e, tx_primary(o));
        CO_CALL(co, tx_await_step(e, o, event, "reading the primary again"));
        take_confirmation(o);
    }
    CO_END(co);
}

/* ---- rule 6, and the abort ---- */

static enum progress done_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    if (o->part_count > 1 && !tx_primary(o)->lost) {
        tx_send_decision(e, tx_primary(o), DECISION_DONE);
        CO_CALL(co, tx_await_step(e, o, event, "telling the primary that all lists know"));
    }
    CO_END(co);
}

/* To all lists, so that none of them has to ask the primary. */
static enum progress abort_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (size_t i = 0; i < o->part_count; i++) {
        if (o->parts[i].proposed && !o->parts[i].lost) {
            tx_send_decision(e, &o->parts[i], DECISION_ABORT);
        }
    }
    CO_CALL(co, tx_await_step(e, o, event, "aborting a transaction"));
    CO_END(co);
}

/* ---- the operation ---- */

static bool is_again(const struct op_tx *o)
{
    return o->state == TX_AGAIN || o->state == TX_ELSEWHERE;
}

/* Other writers were in the way each time. */
static void give_up(struct engine *e, struct op_tx *o)
{
    if (is_again(o)) {
        metric_inc(e->metrics, METRIC_list_busy);
        metric_inc(e->metrics, METRIC_list_transactions_busy);
        tx_fail(o, TX_FAILED,
                "busy, nothing done: other writers changed the same items at the same time");
    }
}

static void count_end(struct engine *e, const struct op_tx *o)
{
    if (o->state == TX_COMMITTED) {
        metric_inc(e->metrics, METRIC_list_transactions);
    } else if (o->state == TX_NOT_STORED) {
        metric_inc(e->metrics, METRIC_list_transactions_refused);
    } else if (o->state == TX_UNKNOWN && o->call != NULL) {
        metric_inc(e->metrics, METRIC_outcomes_unknown);
    }
}

/* A condition on a list that is missing has made a head, and an addition that was not done has. Who
 * has added something meanwhile keeps it: the compaction removes only what is empty. */
static bool leaves_nothing(const struct op_tx *o, const struct tx_part *part)
{
    struct slice entries = slice_make(part->entries->data, part->entries->used);
    struct entry entry;
    bool adds = false;
    while (o->state == TX_COMMITTED && entry_next(&entries, &entry) == ENTRY_OK) {
        adds = adds || entry.op == ENTRY_ADD || entry.op == ENTRY_READD;
    }
    return part->empty && !adds && part->list->policy->on_missing == ON_MISSING_CREATE;
}

/* What other changes do for their lists behind them. */
static void leave_lists(struct engine *e, struct op_tx *o)
{
    for (size_t i = 0; i < o->part_count; i++) {
        struct list *list = o->parts[i].list;
        if (o->state == TX_COMMITTED) {
            list_consider_cap(e, list);
        }
        list_consider_compaction(e, list, 0);
        if (leaves_nothing(o, &o->parts[i])) {
            lists_wish(&e->lists, list, WISH_COMPACT, NULL);
        }
        if (o->state == TX_COMMITTED && list->expires_us != 0) {
            list->wants_renewal = true;
            lists_mark_ready(&e->lists, list);
        }
    }
}

/* One attempt, under a name of its own. Ends with state. */
static enum progress attempt_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    o->state = TX_GOING;
    o->begun = o->committing = false;
    CO_CALL(co, tx_plan_step(e, o, event));
    if (tx_goes_on(o)) {
        CO_CALL(co, tx_prepare_step(e, o, event));
    }
    if (tx_goes_on(o)) {
        enter_phase(e, o, TX_PHASE_WAITING);
        CO_CALL(co, tx_propose_step(e, o, event));
    }
    if (tx_goes_on(o)) {
        enter_phase(e, o, TX_PHASE_PENDING);
        CO_CALL(co, commit_step(e, o, event));
    }
    if (o->state == TX_COMMITTED) {
        enter_phase(e, o, TX_PHASE_COMMITTED);
        CO_CALL(co, publish_step(e, o, event));
    }
    CO_END(co);
}

/* Leaves the lists in order behind an attempt. */
static enum progress tidy_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    if (o->state == TX_COMMITTED) {
        CO_CALL(co, done_step(e, o, event));
    } else if (o->begun && o->state != TX_UNKNOWN) {
        metric_inc(e->metrics, METRIC_list_transactions_aborted);
        CO_CALL(co, abort_step(e, o, event));
    }
    enter_phase(e, o, TX_PHASE_NOT_BEGUN);
    CO_END(co);
}

static enum progress tx_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_tx *o = (struct op_tx *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    while (o->blockers > 0) {
        CO_AWAIT(co, "waiting for another transaction of this worker");
    }
    for (o->attempts = 1; o->attempts <= ATTEMPTS_MAX; o->attempts++) {
        CO_CALL(co, attempt_step(e, o, event));
        if (!is_again(o) || o->call == NULL || o->attempts == ATTEMPTS_MAX) {
            break;
        }
        CO_CALL(co, tidy_step(e, o, event));
        o->begun = false;
        if (o->state == TX_AGAIN && o->call != NULL) {
            CO_SLEEP(op, co, "backing off after a conflict",
                     op_backoff_end_us(e, BACKOFF_US, o->attempts - 1));
        }
        if (o->call == NULL) {
            break;
        }
    }
    give_up(e, o);
    count_end(e, o);
    tx_queue_leave(e, o);
    answer(e, o);
    CO_CALL(co, tidy_step(e, o, event));
    leave_lists(e, o);
    CO_END(co);
}

/* Before &c nothing was done, and nothing will be: what was announced is aborted. */
static enum list_known tx_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_tx *o = (struct op_tx *)op;
    CHECK(o->call == call);
    o->call = NULL;
    if (o->committing && !is_again(o)) {
        return KNOWN_UNKNOWN;
    }
    o->over = true;
    if (!o->begun && o->op.due == 0) {
        op_abort(e, op);
    }
    return KNOWN_NOTHING;
}

static void tx_fini(struct engine *e, struct op *op)
{
    struct op_tx *o = (struct op_tx *)op;
    if (!e->is_dropped) {
        enter_phase(e, o, TX_PHASE_NOT_BEGUN);
        tx_queue_leave(e, o);
    }
    settle_fini(&o->settle);
    tx_plan_fini(e, o);
}

void tx_start(struct engine *e, struct list *list, struct list_call *call)
{
    struct op_tx *o = op_create(e, list, sizeof *o, tx_step, tx_fini);
    o->op.let_go = tx_let_go;
    o->call = call;
    o->verb = call->verb;
    o->count = call->count;
    call->op = &o->op;
    tx_plan_init(e, o);
    tx_queue_enter(o);
    op_run(e, &o->op);
}
