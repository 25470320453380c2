/* SPDX-License-Identifier: BSD-3-Clause */
/* What a list holds by one head: which of some items, and which items at one end. */
#include "list/tx/tx_op.h"

#include <stdlib.h>

#include "list/core/engine_state.h"
#include "list/read/from_view.h"

void tx_question_begin(struct op_tx *o, struct list *list, struct head *head,
                       const struct slice *items, size_t count)
{
    o->question =
        (struct tx_question){.list = list, .head = head_ref(head), .items = items, .count = count};
    o->question.in = calloc(count + 1, sizeof *o->question.in);
    CHECK(o->question.in != NULL);
    tx_count_memory(o);
}

void tx_question_forget(struct engine *e, struct op_tx *o)
{
    struct tx_question *q = &o->question;
    inner_drop(e, &q->read);
    inner_drop(e, &o->range);
    free(q->in);
    head_unref(&q->head);
    *q = (struct tx_question){0};
    tx_count_memory(o);
}

/* All of the list is in the log. */
static void ask_log(struct tx_question *q)
{
    struct fold fold;
    fold_init(&fold);
    fold_set_cap(&fold, q->head->marks.cap);
    bool whole = fold_apply_entries(&fold, q->head->log);
    CHECK(whole); /* head_read checked it */
    for (size_t i = 0; i < q->count; i++) {
        const struct fold_item *known = fold_find(&fold, q->items[i]);
        q->in[i] = known != NULL && entry_is_in(known->outcome, known->until_s, q->head->read_s);
    }
    fold_fini(&fold);
}

static void ask_runs(struct engine *e, struct op_tx *o)
{
    struct tx_question *q = &o->question;
    struct call_queue calls;
    TAILQ_INIT(&calls);
    q->read = inner_new(e, &o->op, q->list, LIST_HAS);
    q->read->pinned = true;
    q->read->found = q->in;
    q->read->call.items = q->items;
    q->read->call.item_count = q->count;
    TAILQ_INSERT_TAIL(&calls, &q->read->call, link);
    TAILQ_INSERT_TAIL(&q->list->active, &q->read->call, active);
    view_start_reads(e, q->list, &calls, q->head);
}

static void take_read(struct op_tx *o)
{
    const struct list_call *call = &o->question.read->call;
    if (call->status == LIST_EXISTS) {
        o->state = TX_AGAIN; /* it was compacted away meanwhile */
    } else if (call->status == LIST_SERVER_ERROR || call->status == LIST_CLIENT_ERROR) {
        tx_fail_undone(o, call->error);
    }
}

enum progress tx_ask_step(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    (void)event;
    CO_BEGIN(co);
    if (o->question.head->run_count == 0 || o->question.head->clears) {
        ask_log(&o->question);
        CO_RETURN(co);
    }
    ask_runs(e, o);
    while (!o->question.read->done) {
        CO_AWAIT(co, "looking whether items are in a list");
    }
    take_read(o);
    CO_END(co);
}

enum progress tx_range_step(struct engine *e, struct op_tx *o, struct head *head)
{
    struct co *co = &o->op.co;
    struct call_queue calls;
    struct list *list = o->parts[0].list;
    CO_BEGIN(co);
    gather_clear(&o->gather);
    inner_drop(e, &o->range);
    o->range = inner_new(e, &o->op, list, o->count < 0 ? LIST_REVRANGE : LIST_RANGE);
    o->range->pinned = true;
    o->range->gather = &o->gather;
    o->range->call.from = 0;
    o->range->call.to = o->range_count - 1;
    TAILQ_INIT(&calls);
    TAILQ_INSERT_TAIL(&calls, &o->range->call, link);
    TAILQ_INSERT_TAIL(&list->active, &o->range->call, active);
    view_start_reads(e, list, &calls, head);
    while (!o->range->done) {
        CO_AWAIT(co, "reading the items at the end of a list");
    }
    tx_count_memory(o);
    if (o->gather.full) {
        tx_fail(o, TX_FAILED, "the items take more than fold_memory_bytes (%llu), nothing done",
                (unsigned long long)o->gather.limit_bytes);
    } else if (o->range->call.status == LIST_EXISTS) {
        o->state = TX_AGAIN;
    } else if (o->range->call.status == LIST_SERVER_ERROR ||
               o->range->call.status == LIST_CLIENT_ERROR) {
        tx_fail_undone(o, o->range->call.error);
    }
    CO_END(co);
}
