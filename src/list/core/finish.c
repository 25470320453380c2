/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/finish.h"

#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/core/settle.h"
#include "list/format/intent.h"

/* Transactions of one wish: more only where others begin and die as fast as these are finished. */
#define FINISHED_MAX 1024u
/* The next wish of its own accord where a server did not answer, by chance up to twice that. */
#define PAUSE_US 1000000u

/* Other lists have their number as the tag. */
enum { TAG_HEAD = INTENT_KEYS_MAX, TAG_DONE };

/* Another list of the transaction, counted as one with an operation. */
struct finish_other {
    struct list *list;
    bool is_missing;
    bool may_be_old; /* its node does not show that it knows of the commit: settle.h, 1. */
};

struct op_finish {
    struct op op;
    int64_t grace_s;
    struct head *head; /* the primary's, as last read */
    struct name name;  /* of the transaction that is being finished */
    struct finish_other others[INTENT_KEYS_MAX];
    size_t other_count;
    bool all_know; /* each of these has answered, and knows of the commit or is gone */
    unsigned finished;
    unsigned passed_over; /* since not all know; they are the first of those that are left */
    bool failed;          /* the primary cannot be read */
};

/* As announcement_is_dead. */
static bool is_old(const struct head_intent *intent, int64_t now_s, int64_t grace_s)
{
    return intent->created_s < now_s - grace_s || intent->created_s > now_s + grace_s;
}

static bool is_left(const struct head_intent *intent, int64_t now_s, int64_t grace_s)
{
    return intent->state == INTENT_COMMITTED && intent->primary && !intent->done &&
           (grace_s == GRACE_NONE || is_old(intent, now_s, grace_s));
}

/* The first that is to be finished, behind so many; NULL: none. */
static const struct head_intent *find_left(const struct head *head, int64_t now_s, int64_t grace_s,
                                           unsigned passed_over)
{
    for (size_t i = 0; i < head->intent_count; i++) {
        if (is_left(&head->intents[i], now_s, grace_s) && passed_over-- == 0) {
            return &head->intents[i];
        }
    }
    return NULL;
}

void finish_consider(struct engine *e, struct list *list, const struct head *head)
{
    int64_t grace_s = list->policy->announcement_grace_s;
    if (head->residue == NULL || finish_is_pending(list) ||
        e->now.mono_us < list->finish_after_us ||
        find_left(head, e->now.wall_s, grace_s, 0) == NULL) {
        return;
    }
    list->finish_grace_s = grace_s;
    list->wants_finish = true;
    lists_mark_ready(&e->lists, list);
}

void finish_wish(struct engine *e, struct list *list)
{
    list->finish_grace_s = GRACE_NONE;
    list->wants_finish = true;
    lists_mark_ready(&e->lists, list);
}

static void forget_others(struct op_finish *f)
{
    while (f->other_count > 0) {
        f->others[--f->other_count].list->ops--;
    }
}

/* Asks all other lists of that transaction for their heads. */
static void ask_others(struct engine *e, struct op_finish *f, const struct head_intent *left)
{
    struct intent intent;
    bool whole = intent_parse(left->bytes, &intent);
    CHECK(whole); /* head_read checked it */
    f->name = intent.name;
    f->all_know = true;
    for (size_t i = 0; i < intent.key_count; i++) {
        struct slice key = intent.keys[i];
        if (slice_equal(key, list_key(f->op.list))) {
            continue;
        }
        struct list *other = lists_get(&e->lists, key, config_list_policy(e->config, key));
        other->ops++;
        emit_get_of(e, &f->op, other, f->other_count);
        f->others[f->other_count++] = (struct finish_other){.list = other};
    }
}

/* Whatever stands in the list's place: it must not wait for the decision any more. */
static void take_other(struct op_finish *f, const struct op_event *event)
{
    struct finish_other *other = &f->others[event->tag];
    enum intent_state state =
        event->head != NULL ? head_intent_state(event->head, &f->name) : INTENT_GONE;
    bool knows = event->head != NULL && state != INTENT_OPEN;
    bool in_bucket = other->list->policy->pool_type == POOL_COUCHBASE;
    f->all_know = f->all_know && (op_head_has_gone(event) || knows);
    other->is_missing = event->status == BE_MISS;
    other->may_be_old = in_bucket && state == INTENT_GONE && (knows || other->is_missing);
}

/* Where a node was failed over and does not know it, this fails. */
static void emit_proofs(struct engine *e, struct op_finish *f)
{
    for (size_t i = 0; i < f->other_count; i++) {
        struct finish_other *other = &f->others[i];
        if (other->may_be_old && other->is_missing) {
            settle_emit_place(e, &f->op, other->list, i);
        } else if (other->may_be_old) {
            struct block *value = block_new(64);
            decision_append(&value, &f->name, DECISION_COMMIT);
            emit_append_to(e, &f->op, other->list, value, i);
            block_unref(&value);
        }
    }
}

static enum progress proof_step(struct engine *e, struct op_finish *f, const struct op_event *event)
{
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    emit_proofs(e, f);
    while (f->op.due > 0) {
        CO_AWAIT(co, "having nodes show that they carry out changes");
        if (event != NULL) {
            f->all_know = f->all_know && event->status == BE_STORED;
        }
    }
    CO_END(co);
}

/* anew: by CAS of the head, since its server takes no appends to it. */
static void emit_done(struct engine *e, struct op_finish *f, bool anew)
{
    struct block *value = block_new(64);
    decision_append(&value, &f->name, DECISION_DONE);
    if (anew) {
        emit_cas_deciding(e, &f->op, f->op.list, f->head, value, TAG_DONE);
    } else {
        emit_append(e, &f->op, value, TAG_DONE);
    }
    block_unref(&value);
}

static enum progress others_step(struct engine *e, struct op_finish *f,
                                 const struct op_event *event)
{
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    while (f->op.due > 0) {
        CO_AWAIT(co, "reading the other lists of a transaction to finish it");
        if (event != NULL) {
            take_other(f, event);
        }
    }
    if (f->all_know) {
        CO_CALL(co, proof_step(e, f, event));
    }
    forget_others(f);
    if (!f->all_know) {
        f->passed_over++;
        CO_RETURN(co);
    }
    emit_done(e, f, false);
    CO_AWAIT(co, "telling the primary that all lists know");
    if (event->status == BE_NOT_STORED) {
        emit_done(e, f, true);
        CO_AWAIT(co, "telling the primary by CAS that all lists know");
    }
    f->finished += event->status == BE_STORED;
    f->passed_over += event->status != BE_STORED;
    CO_END(co);
}

/* The next one to be finished, by the primary's head. NULL: none, or the head cannot be read. */
static const struct head_intent *next_left(struct engine *e, struct op_finish *f,
                                           const struct op_event *event)
{
    char error[LIST_ERROR_MAX];
    head_unref(&f->head);
    enum head_result got = op_take_head(e, &f->op, event, &f->head, error);
    if (got != GOT_HEAD && got != GOT_ABSENT) {
        f->failed = got == GOT_ERROR;
        return NULL;
    }
    return f->finished + f->passed_over < FINISHED_MAX
               ? find_left(f->head, e->now.wall_s, f->grace_s, f->passed_over)
               : NULL;
}

static enum progress finish_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_finish *f = (struct op_finish *)op;
    struct co *co = &op->co;
    const struct head_intent *left;
    CO_BEGIN(co);
    while (!f->failed) {
        emit_get(e, op, TAG_HEAD);
        CO_AWAIT(co, "reading the head of a primary to finish its transactions");
        left = next_left(e, f, event);
        if (left == NULL) {
            break;
        }
        ask_others(e, f, left);
        CO_CALL(co, others_step(e, f, event));
    }
    metric_add(e->metrics, METRIC_list_transactions_finished, f->finished);
    if (f->failed || f->passed_over > 0) {
        op->list->finish_after_us = e->now.mono_us + PAUSE_US + rng_below(e->rng, PAUSE_US);
    }
    op_leave(op);
    lists_mark_ready(&e->lists, op->list);
    list_consider_compaction(e, op->list, list_log_bytes(op->list));
    CO_END(co);
}

static void finish_fini(struct engine *e, struct op *op)
{
    struct op_finish *f = (struct op_finish *)op;
    (void)e;
    forget_others(f);
    head_unref(&f->head);
}

void finish_start(struct engine *e, struct list *list)
{
    list->wants_finish = false;
    if (list->finisher != NULL) {
        return;
    }
    struct op_finish *f = op_create(e, list, sizeof *f, finish_step, finish_fini);
    f->grace_s = list->finish_grace_s;
    op_enter(&f->op, &list->finisher);
    op_run(e, &f->op);
}
