/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * There is no head, or none that can be appended to: a look before the append found that, or the
 * append answered NOT_STORED. That means: there is no head, or the item is at the server's size
 * limit, or the server has no memory left, or it moved the item to disk. Order of writes, each only
 * after a look at the head:
 *
 *   1. head missing: ADD it with the changes as its log. NOT_STORED: another writer was
 *      faster, or no memory: look again.
 *   2. head there: APPEND once more (it was created in between).
 *   3. still refused, though far below the limit: no memory, or on disk. CAS a folded head with
 *      the changes, which is smaller. Refused again: "out of memory". Never loops blindly.
 *
 * A head that says the list is missing (format/absent.h): a LIST_SET is written by CAS, which ends
 * its lease and its expiry; what precedes it finds nothing. Where a client has a lease, other
 * changes are appended: what that client has read to fill the list may be older than they are, so
 * they have to stand behind the fill.
 */
#include "list/change/round.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"
#include "list/format/layout.h"
#include "list/format/log_fold.h"

#define TRIES_MAX 5

enum { TAG_CREATE = 16 };

/* May a client fill the list that was found missing? */
static bool is_leased(const struct op_round *round)
{
    return round->found != NULL && head_is_absent(round->found) && round->found->marks.lease != 0;
}

/* on_missing = refuse and there is no list: whatever comes before the first LIST_SET finds nothing.
 * Returns false when no LIST_SET is there; otherwise the round's writes and batch are cut down to
 * begin with it. */
static bool refuse_up_to_set(struct engine *e, struct op_round *round)
{
    struct list_call *call;
    while ((call = TAILQ_FIRST(&round->writes)) != NULL && call->verb != LIST_SET) {
        TAILQ_REMOVE(&round->writes, call, link);
        bool adds = list_verb_has(call->verb, LIST_MAKES);
        call_finish(e, round->op.list, call, adds ? LIST_NOT_STORED : LIST_MISSING);
    }
    if (call == NULL) {
        return false;
    }
    round_renew_batch(round);
    return true;
}

/* Does the batch leave anything in a list that was missing? */
static bool batch_adds(const struct op_round *round)
{
    struct slice rest = slice_make(round->batch->data, round->batch->used);
    struct entry entry;
    while (entry_next(&rest, &entry) == ENTRY_OK) {
        if (entry.op == ENTRY_ADD || entry.op == ENTRY_READD || entry.op == ENTRY_TIMED) {
            return true;
        }
    }
    return false;
}

static void emit_new_head(struct engine *e, struct op_round *round)
{
    struct block *value = block_new(round->batch->used + 32);
    struct head_marks marks = {.cap = list_policy_cap(round->op.list->policy)};
    head_append_header(&value, &marks, NULL, 0, NULL, 0);
    block_append(&value, round->batch->data, round->batch->used);
    emit_add_head(e, &round->op, value, TAG_CREATE);
    block_unref(&value);
}

/* There is a LIST_SET in the batch: nothing else of the absent head counts but announcements. */
static void emit_filled_head(struct engine *e, struct op_round *round)
{
    const struct head *head = round->found;
    struct layout layout;
    struct carry carry = {.now_s = e->now.wall_s,
                          .grace_s = round->op.list->policy->announcement_grace_s,
                          .keep_ops = false};
    layout_init(&layout, head);
    layout_fill(&layout);
    layout.marks.cap = list_policy_cap(round->op.list->policy);
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, head->announcements, &carry));
    block_append(&layout.log, round->batch->data, round->batch->used);
    struct block *value = layout_value(&layout);
    emit_cas_new(e, &round->op, head, value, TAG_CREATE);
    block_unref(&value);
    layout_fini(&layout);
}

static void emit_folded_head(struct engine *e, struct op_round *round)
{
    const struct head *head = round->found;
    struct layout layout;
    struct carry carry = {.now_s = e->now.wall_s,
                          .grace_s = round->op.list->policy->announcement_grace_s,
                          .keep_ops = false};
    struct log_fold log;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    layout_init(&layout, head);
    metric_add(e->metrics, METRIC_list_sweeps, layout_fold_log(&layout, head, &log.fold, &carry));
    log_fold_fini(&log);
    block_append(&layout.log, round->batch->data, round->batch->used);
    struct block *value = layout_value(&layout);
    if (head->marks.absent && !layout.marks.absent) {
        emit_cas_new(e, &round->op, head, value, TAG_CREATE);
    } else {
        emit_cas(e, &round->op, head, value, TAG_CREATE);
    }
    block_unref(&value);
    layout_fini(&layout);
}

/* Settles the reply to a write of this file. True when the round's writes are answered by it. */
static bool settled(struct engine *e, struct op_round *round, const struct op_event *event)
{
    if (event->status == BE_STORED) {
        /* Two of the three writes add the batch to what was found; the third makes it smaller than
         * that. */
        list_note_size(round->op.list,
                       (round->found != NULL ? round->found->value.len : 0) + round->batch->used);
        round_finish_writes(e, round);
        return true;
    }
    if (event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        round_fail_writes(e, round, "backend out of memory, nothing done");
        return true;
    }
    if (write_was_refused(event->status)) {
        return false;
    }
    op_error_text(event, round->error);
    round_fail_writes(e, round, round->error);
    return true;
}

static bool has_set(const struct op_round *round)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &round->writes, link)
    {
        if (call->verb == LIST_SET) {
            return true;
        }
    }
    return false;
}

/* Nothing was found. True when that settles all writes. */
static bool settle_missing(struct engine *e, struct op_round *round)
{
    bool refuse = round->op.list->policy->on_missing == ON_MISSING_REFUSE;
    if (is_leased(round)) {
        return false; /* what comes before a LIST_SET is kept, and then replaced by that */
    }
    if (refuse ? !refuse_up_to_set(e, round) : !batch_adds(round)) {
        /* Deleting from nothing: nothing is what is there. */
        round_finish_writes(e, round);
        return true;
    }
    return false;
}

static bool log_full(struct engine *e, struct op_round *round)
{
    if (list_has_room(round->op.list, round->found, round->batch->used)) {
        return false;
    }
    metric_inc(e->metrics, METRIC_list_log_full);
    round_fail_writes(e, round, "list log full, nothing done: compaction is behind, try again");
    return true;
}

enum progress create_step(struct engine *e, struct op_round *round, const struct op_event *event)
{
    struct op *op = &round->op;
    struct co *co = &round->op.co;
    enum head_result got;

    CO_BEGIN(co);
    for (round->tries = 0; round->tries < TRIES_MAX; round->tries++) {
        got = round->looked;
        if (!round->has_looked) {
            head_unref(&round->found);
            emit_get(e, op, TAG_CREATE);
            CO_AWAIT(co, "looking why the append was not stored");
            got = op_take_head(e, op, event, &round->found, round->error);
        }
        round->has_looked = false;
        if (TAILQ_EMPTY(&round->writes)) {
            break; /* their time was over */
        }
        round_forget_late(round);
        if (got == GOT_ERROR) {
            round_fail_writes(e, round, round->error);
            break;
        }
        if (got == GOT_NOTHING || (got == GOT_ABSENT && (has_set(round) || !is_leased(round)))) {
            if (settle_missing(e, round)) {
                break;
            }
            round->sent = true;
            if (got == GOT_NOTHING) {
                emit_new_head(e, round);
            } else {
                emit_filled_head(e, round);
            }
            CO_AWAIT(co, "creating the head");
            if (event->status == BE_STORED) {
                metric_inc(e->metrics, METRIC_list_creates);
                op->list->has_head = true;
                op->list->cap = list_policy_cap(op->list->policy);
            }
            round->appended_again = false;
        } else {
            if (log_full(e, round)) {
                break;
            }
            round->sent = true;
            if (!round->appended_again) {
                round->appended_again = true;
                emit_append_blind(e, op, round->batch, TAG_CREATE);
                CO_AWAIT(co, "appending again");
            } else {
                emit_folded_head(e, round);
                CO_AWAIT(co, "writing a folded head");
            }
        }
        round->sent = event->status == BE_LOST;
        if (settled(e, round, event)) {
            break;
        }
        round->conflict = event->status != BE_NOT_STORED;
    }
    if (!TAILQ_EMPTY(&round->writes)) {
        metric_inc(e->metrics, round->conflict ? METRIC_list_busy : METRIC_list_out_of_memory);
        round_fail_writes(e, round,
                          round->conflict ? "busy, nothing done"
                                          : "backend out of memory, nothing done");
    }
    round->tries = 0;
    CO_END(co);
}
