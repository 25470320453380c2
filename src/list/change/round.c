/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/round.h"

#include <stdio.h>

#include "list/change/renew.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/core/pass.h"
#include "list/format/absent.h"
#include "list/format/layout.h"
#include "list/format/log_fold.h"
#include "list/read/from_view.h"
#include "list/read/recent.h"

enum { TAG_APPEND = 1, TAG_SIZE, TAG_GET, TAG_SIZE_BEFORE, TAG_CREATE = 16 };

#define READ_TRIES_MAX 3
/* Between two looks at a log that has no room. */
#define PROBE_PAUSE_US 1000

static void append_call(struct block **batch, const struct list_call *call)
{
    if (call->verb == LIST_SET) {
        entry_append(batch, ENTRY_CLEAR, SLICE_NONE);
    }
    enum entry_op adds = list_call_adds(call);
    for (size_t i = 0; i < call->item_count; i++) {
        struct entry entry = {list_call_deletes(call, i) ? ENTRY_DEL : adds, call->until_s,
                              call->items[i]};
        entry_put(batch, &entry);
    }
}

void round_add_write(struct op_round *round, struct list_call *call)
{
    if (round->batch == NULL) {
        round->batch = block_new_small();
    }
    append_call(&round->batch, call);
    const struct list_policy *policy = call->policy;
    bool may_be_absent = policy->on_missing == ON_MISSING_REFUSE;
    round->sets = round->sets || (call->verb == LIST_SET && may_be_absent);
    call_enter(&round->op, &round->writes, call);
    round->op.list->round_writes = true;
}

/* Makes the batch anew, of the writes that are left. */
static void renew_batch(struct op_round *round)
{
    const struct list_call *call;
    round->fewer = false;
    block_unref(&round->batch);
    round->batch = block_new_small();
    TAILQ_FOREACH(call, &round->writes, link)
    {
        append_call(&round->batch, call);
    }
}

/* The same, if there are fewer than before. */
static void forget_over(struct op_round *round)
{
    if (round->fewer) {
        renew_batch(round);
    }
}

void round_add_read(struct op_round *round, struct list_call *call)
{
    call_enter(&round->op, &round->reads, call);
}

/* Are changes of this round under way? Of one that has left its place (held_reads.h) none are. */
static bool is_writing(const struct op_round *round)
{
    const struct list *list = round->op.list;
    return list->round == &round->op && list->round_writes;
}

static void end_writes(struct engine *e, struct op_round *round)
{
    round->op.list->round_writes = false;
    op_check_quiet(e, round->op.list);
}

/* Answers all writes well. */
static void finish_writes(struct engine *e, struct op_round *round)
{
    while (!TAILQ_EMPTY(&round->writes)) {
        struct list_call *call = TAILQ_FIRST(&round->writes);
        TAILQ_REMOVE(&round->writes, call, link);
        call_finish(e, round->op.list, call, LIST_OK);
    }
    end_writes(e, round);
}

static void fail_writes(struct engine *e, struct op_round *round, const char *text)
{
    calls_fail(e, round->op.list, &round->writes, text);
    end_writes(e, round);
}

/* The size is asked for only when what this worker appended since it last knew could have crossed
 * the line. */
static bool wants_size(const struct op_round *round)
{
    const struct list *list = round->op.list;
    return !list->size_known || list_is_far(list) ||
           list_log_bytes(list) + round_bytes(round) >= list_log_limit(list);
}

static void send_round(struct engine *e, struct op_round *round, bool with_append)
{
    struct op *op = &round->op;
    round->sent_us = e->now.mono_us;
    round->changes = recent_changes(e, op->list);
    if (round->probe && TAILQ_EMPTY(&round->reads)) {
        emit_size(e, op, TAG_SIZE);
    }
    if (with_append) {
        round->sent = true;
        if (list_is_far(op->list)) {
            emit_size(e, op, TAG_SIZE_BEFORE);
        }
        bool asks_size = TAILQ_EMPTY(&round->reads) && wants_size(round);
        emit_append_blind(e, op, round->batch, TAG_APPEND);
        if (asks_size) {
            emit_size(e, op, TAG_SIZE);
        }
    }
    if (!TAILQ_EMPTY(&round->reads) || (with_append && round->sets)) {
        emit_get(e, op, TAG_GET);
    }
}

static void take_reply(struct engine *e, struct op_round *round, const struct op_event *event)
{
    struct list *list = round->op.list;
    if (event->status != BE_LOST && event->status != BE_DOWN && !event->was_held) {
        list_note_trip(list, e->now.mono_us - round->sent_us);
    }
    if (event->tag == TAG_APPEND) {
        round->write_outcome = *event;
        round->sent = event->status == BE_LOST;
        round->stored = event->status == BE_STORED;
        if (event->status != BE_STORED) {
            op_error_text(event, round->error);
        } else if (!round->sets) {
            finish_writes(e, round); /* the read behind it may wait for a transaction */
        }
    } else if (event->tag == TAG_SIZE_BEFORE) {
        round->size_before = event->status == BE_HIT ? event->reply->size_bytes : 0;
        round->has_size_before = event->status == BE_HIT;
    } else if (event->tag == TAG_SIZE) {
        if (event->status == BE_HIT) {
            list_note_seen(list, event->reply->size_bytes, event->appended_bytes);
        } else if (event->status == BE_MISS) {
            list_note_seen(list, 0, event->appended_bytes);
            list->has_head = false;
        }
    } else {
        head_unref(&round->head);
        round->got = op_take_head(e, &round->op, event, &round->head, round->read_error);
        round->reread = event->status == BE_LOST;
    }
}

static void settle_append(struct engine *e, struct op_round *round)
{
    if (round->write_outcome.status == BE_STORED) {
        finish_writes(e, round);
        return;
    }
    if (round->write_outcome.status == BE_NO_MEMORY) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        snprintf(round->error, sizeof round->error, "backend out of memory");
    }
    fail_writes(e, round, round->error);
}

static void start_reads(struct engine *e, struct op_round *round)
{
    if (round->got == GOT_ERROR) {
        calls_fail(e, round->op.list, &round->reads, round->read_error);
        return;
    }
    struct head *head = round->got == GOT_HEAD ? round->head : NULL;
    if (head != NULL) {
        pass_defer_large(e, round->op.list, &round->reads);
    }
    view_start_reads(e, round->op.list, &round->reads, head);
    if (recent_is_wanted(e, round->op.list)) {
        recent_note(round->op.list, head, round->sent_us, round->changes);
    }
}

/* The log right before the append, as far as known. A probe finds out about others' appends: near,
 * it takes the log for one that no worker compacts. */
static uint64_t log_bytes_before(const struct op_round *round)
{
    const struct list *list = round->op.list;
    if (!list_is_far(list)) {
        return round->probe ? 0 : round->log_bytes_before;
    }
    if (!round->has_size_before || !round->stored) {
        return UINT64_MAX;
    }
    return round->size_before > list->header_bytes ? round->size_before - list->header_bytes : 0;
}

/* May the changes be appended to what a raw read has brought, though intents are not decided there?
 * It is a list. */
static bool takes_appends(struct list *list, const struct op_event *event)
{
    struct head *head = event->head;
    if (head == NULL || head->open_count == 0 || head->marks.absent) {
        return false;
    }
    list_note_head(list, head, event->appended_bytes);
    return true;
}

/* What stands under the list's name, which this worker does not know. Changes wait for no
 * transaction: where all that is asked is whether it is a list, the first reply tells. */
static enum progress look_step(struct engine *e, struct op_round *round,
                               const struct op_event *event)
{
    struct co *co = &round->op.co;
    struct list *list = round->op.list;
    CO_BEGIN(co);
    emit_get_raw_of(e, &round->op, list, TAG_GET);
    CO_AWAIT(co, "looking whether it is a list");
    if (takes_appends(list, event)) {
        list->has_head = true;
        list->is_absent = false;
        round->looked = GOT_HEAD;
        CO_RETURN(co);
    }
    if (event->head != NULL && event->head->open_count > 0) {
        emit_get(e, &round->op, TAG_GET);
        CO_AWAIT(co, "looking whether it is a list");
    }
    round->looked = op_take_head(e, &round->op, event, &round->found, round->error);
    CO_END(co);
}

/* ---- the append found no head that can be appended to ----
 *
 * A look before the append found that, or the append answered NOT_STORED. That means: there is no
 * head, or the item is at the server's size limit, or the server has no memory left, or it moved
 * the item to disk. Order of writes, each only after a look at the head:
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

#define TRIES_MAX 5

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
    renew_batch(round);
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
        finish_writes(e, round);
        return true;
    }
    if (event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        fail_writes(e, round, "backend out of memory, nothing done");
        return true;
    }
    if (write_was_refused(event->status)) {
        return false;
    }
    op_error_text(event, round->error);
    fail_writes(e, round, round->error);
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
        finish_writes(e, round);
        return true;
    }
    return false;
}

/* Is there no room for the changes? They wait for a compaction, and the reads behind them as well.
 * Where the log is short, but the item full, none helps. */
static bool log_full(struct engine *e, struct op_round *round)
{
    struct list *list = round->op.list;
    if (list_has_room(list, round->found, round->batch->used)) {
        return false;
    }
    if (list->head_full) {
        metric_inc(e->metrics, METRIC_list_log_full);
        fail_writes(e, round, LIST_LOG_FULL);
    } else {
        calls_give_back(e, list, &round->reads);
        calls_give_back(e, list, &round->writes);
    }
    return true;
}

/* Ends with all writes answered, or waiting again. */
static enum progress create_step(struct engine *e, struct op_round *round,
                                 const struct op_event *event)
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
        forget_over(round);
        if (got == GOT_ERROR) {
            fail_writes(e, round, round->error);
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
        fail_writes(e, round,
                    round->conflict ? "busy, nothing done" : "backend out of memory, nothing done");
    }
    round->tries = 0;
    CO_END(co);
}

/* ---- the round ---- */

static enum progress round_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_round *round = (struct op_round *)op;
    struct co *co = &op->co;
    struct list *list = op->list;

    CO_BEGIN(co);
    round->log_bytes_before = list_log_bytes(list);
    if (list->round_writes && !list->has_head) {
        CO_CALL(co, look_step(e, round, event));
        round->has_looked = round->looked != GOT_HEAD;
        if (round->looked != GOT_ABSENT) {
            head_unref(&round->found);
        }
        forget_over(round);
        list->round_writes = !TAILQ_EMPTY(&round->writes);
    }
    if (!round->has_looked) {
        send_round(e, round, list->round_writes);
    }
    while (op->due > 0) {
        CO_AWAIT(co, is_writing(round) ? "appending" : "reading head");
        take_reply(e, round, event);
    }
    if (round->has_looked || (is_writing(round) && round->write_outcome.status == BE_NOT_STORED)) {
        list->appended_bytes = 0;
        CO_CALL(co, create_step(e, round, event));
        round->reread = true;
    } else if (is_writing(round)) {
        settle_append(e, round);
    }
    while (!TAILQ_EMPTY(&round->reads) && round->reread && round->tries < READ_TRIES_MAX) {
        round->tries++;
        round->sent_us = e->now.mono_us;
        emit_get(e, op, TAG_GET);
        CO_AWAIT(co, "reading head again");
        take_reply(e, round, event);
    }
    if (round->write_outcome.status == BE_STORED || !TAILQ_EMPTY(&round->reads)) {
        renew_consider(e, list, round->write_outcome.status == BE_STORED);
    }
    start_reads(e, round);
    if (round->write_outcome.status == BE_STORED) {
        list_consider_cap(e, list);
    }
    list_consider_compaction(e, list, log_bytes_before(round));
    if (round->probe) {
        list_back_off_appends(e, list, PROBE_PAUSE_US); /* a server that is down answers at once */
    }
    CO_END(co);
}

static enum list_known round_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_round *round = (struct op_round *)op;
    (void)e;
    if (list_verb_reads(call->verb)) {
        TAILQ_REMOVE(&round->reads, call, link);
        return KNOWN_NOTHING;
    }
    TAILQ_REMOVE(&round->writes, call, link);
    if (round->stored) {
        return KNOWN_DONE;
    }
    round->fewer = true;
    return round->sent ? KNOWN_UNKNOWN : KNOWN_NOTHING;
}

static void round_fini(struct engine *e, struct op *op)
{
    struct op_round *round = (struct op_round *)op;
    (void)e;
    block_unref(&round->batch);
    head_unref(&round->head);
    head_unref(&round->found);
}

struct op_round *round_create(struct engine *e, struct list *list)
{
    struct op_round *round = op_create(e, list, sizeof *round, round_step, round_fini);
    round->op.let_go = round_let_go;
    TAILQ_INIT(&round->writes);
    TAILQ_INIT(&round->reads);
    op_enter(&round->op, &list->round);
    list->round_writes = false;
    return round;
}
