/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules 4 to 6 of tx.h: the decision, and how it gets to all lists.
 */
#include "list/tx/tx_op.h"

#include "base/number.h"
#include "list/core/engine_state.h"

/* Requests to a server that does not answer, until others are to find out what became of the
 * transaction; and the first pause between two, which doubles up to 2^8 times that. */
#define TRIES_MAX 10
#define BACKOFF_US 1000u

static uint64_t pause_end_us(struct engine *e, const struct op_tx *o)
{
    return op_backoff_end_us(e, BACKOFF_US, o->tries);
}

/* ---- rule 4 ---- */

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

enum progress tx_commit_step(struct engine *e, struct op_tx *o, const struct op_event *event)
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
    for (o->tries = 0; o->state == TX_GOING && !o->refused && o->tries < TRIES_MAX; o->tries++) {
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

/* ---- rule 5 ---- */

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

enum progress tx_publish_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    for (o->tries = 0; o->tries < TRIES_MAX && !all_published(o); o->tries++) {
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

enum progress tx_done_step(struct engine *e, struct op_tx *o, const struct op_event *event)
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
enum progress tx_abort_step(struct engine *e, struct op_tx *o, const struct op_event *event)
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
