/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/interleaved.h"

#include "list/core/answer.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/read/from_view.h"
#include "list/read/touch.h"

/* CAS attempts: a writer who is faster again will be so a third time. */
#define TRIES_MAX 2
/* Rounds only, for so long after another writer was faster; doubles each time in a row, up to 2^9
 * times that: a second. */
#define PAUSE_US 2000u
#define PAUSE_DOUBLINGS_MAX 9u

enum { TAG_GET = 1, TAG_CAS };

bool turns_possible(const struct engine *e, const struct list *list)
{
    bool viewed =
        list->view != NULL ? list->viewing == NULL && !list->view_lags : list->has_no_runs;
    /* Under a cap a change may take out what no call names. */
    bool capped = list->cap.max != 0 || list->policy->max_items != 0;
    return viewed && !capped && list->publisher == NULL && !list_writing(list) &&
           !timer_is_set(&list->append_backoff) && !list_is_crowded_far(list) &&
           e->now.mono_us >= list->turns_after_us;
}

/* The view that shows the head, or NULL. */
static struct view *view_of(struct engine *e, struct op_turns *t)
{
    struct list *list = t->op.list;
    struct view *view = list->view != NULL ? lists_get_view(&e->lists, list) : &t->own;
    if (list->viewing == NULL) {
        view_advance(view, t->head->read_s);
    }
    if (list->viewing != NULL || !view_has_runs(view, t->head)) {
        list->view_lags = list->view != NULL;
        return NULL;
    }
    if (t->head->marks.cap.max != 0) {
        return NULL;
    }
    view_take_log(view, t->head);
    return view;
}

/* A CAS that keeps the expiry has to ask for the server's clock first (expiry.h), and may undo a
 * touch that comes in between. Appends leave it alone. */
static bool expires(const struct head *head)
{
    return head->ttl_s >= 0;
}

/* Decides call by call, each on top of those before it. */
static void decide(struct op_turns *t, const struct view *view)
{
    struct fold changes;
    struct list_call *call;
    fold_init(&changes);
    view_expect_calls(view, &t->calls);
    TAILQ_FOREACH(call, &t->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            struct slice item = call->items[i];
            char outcome = fold_outcome(&changes, item);
            struct view_item known = outcome == 0 ? view_find(view, item)
                                                  : (struct view_item){.in = outcome != ENTRY_DEL};
            if (call->verb == LIST_HAS && known.in) {
                answer_member(t->op.list, call, item);
            } else if (call->verb != LIST_HAS &&
                       (known.timed || known.in || !list_call_deletes(call, i))) {
                /* One with a time gets none; one that is over here may be in for another proxy.
                 * Additions of what is in are written as well: an lpurge must see them. */
                bool deletes = list_call_deletes(call, i);
                enum entry_op op = deletes ? ENTRY_DEL : list_call_adds(call);
                fold_apply(&changes, op, item);
                entry_append(&t->entries, op, item);
            }
        }
    }
    fold_fini(&changes);
}

static void forget_decisions(struct op_turns *t)
{
    struct list_call *call;
    t->entries->used = 0;
    TAILQ_FOREACH(call, &t->calls, link)
    {
        chain_clear(&call->answer);
        call->number = 0;
    }
}

static void finish_all(struct engine *e, struct op_turns *t)
{
    struct list *list = t->op.list;
    /* What was written has a number of its own, which no answer has told. */
    const struct head *seen = t->entries->used == 0 ? t->head : NULL;
    while (!TAILQ_EMPTY(&t->calls)) {
        struct list_call *call = TAILQ_FIRST(&t->calls);
        TAILQ_REMOVE(&t->calls, call, link);
        bool found = call->verb != LIST_HAS || call->number > 0;
        answer_call(e, list, call, seen, found ? LIST_OK : LIST_MISSING);
    }
    t->over = true;
    list->turns_failures = 0;
}

/* Nothing was done: the calls go back to the front of the queue. A view that lags is not tried
 * again before it has caught up; after anything else they go the other way for a while. */
static void give_back(struct engine *e, struct op_turns *t)
{
    struct list *list = t->op.list;
    forget_decisions(t);
    calls_give_back(e, list, &t->calls);
    if (!list->view_lags) {
        list->turns_after_us = e->now.mono_us + ((uint64_t)PAUSE_US << list->turns_failures);
        list->turns_failures += list->turns_failures < PAUSE_DOUBLINGS_MAX;
    }
}

static void emit_changes(struct engine *e, struct op_turns *t)
{
    struct slice value = t->head->value;
    struct block *b = block_new(value.len + t->entries->used);
    block_append(&b, value.p, value.len);
    block_append(&b, t->entries->data, t->entries->used);
    emit_cas(e, &t->op, t->head, b, TAG_CAS);
    block_unref(&b);
}

static void settle_cas(struct engine *e, struct op_turns *t, const struct op_event *event)
{
    t->sent = false;
    if (event->status == BE_STORED) {
        list_note_size(t->op.list, t->head->value.len + t->entries->used);
        finish_all(e, t);
    } else if (event->status == BE_EXISTS) {
        metric_inc(e->metrics, METRIC_list_conflicts);
    } else if (event->status == BE_LOST) {
        /* Also those that only look: they stand between changes that may have been done or not. */
        op_error_text(event, t->error);
        calls_fail(e, t->op.list, &t->calls, t->error);
        t->over = true;
    } else {
        t->tries = TRIES_MAX;
    }
}

static enum progress turns_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_turns *t = (struct op_turns *)op;
    struct co *co = &op->co;
    const struct view *view;

    CO_BEGIN(co);
    for (t->tries = 0; t->tries < TRIES_MAX && !t->over; t->tries++) {
        head_unref(&t->head);
        forget_decisions(t);
        emit_get(e, op, TAG_GET);
        CO_AWAIT(co, "reading head");
        if (op_take_head(e, op, event, &t->head, t->error) != GOT_HEAD || expires(t->head) ||
            (view = view_of(e, t)) == NULL) {
            break;
        }
        decide(t, view);
        if (op->list->view != NULL) {
            lists_count_view(&e->lists, op->list);
        }
        if (t->entries->used == 0) {
            finish_all(e, t); /* the answers hold as of the head's reading */
            break;
        }
        if (!list_has_room(op->list, t->head, t->entries->used)) {
            break;
        }
        t->sent = true;
        emit_changes(e, t);
        CO_AWAIT(co, "writing changes");
        settle_cas(e, t, event);
    }
    if (!t->over) {
        give_back(e, t);
    } else if (t->head->run_count > 0) {
        touch_consider(e, op->list, t->head);
    }
    list_consider_compaction(e, op->list, 0);
    CO_END(co);
}

static enum list_known turns_late(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_turns *t = (struct op_turns *)op;
    (void)e;
    TAILQ_REMOVE(&t->calls, call, link);
    return t->sent ? KNOWN_UNKNOWN : KNOWN_NOTHING;
}

static void turns_fini(struct engine *e, struct op *op)
{
    struct op_turns *t = (struct op_turns *)op;
    (void)e;
    view_fini(&t->own);
    head_unref(&t->head);
    block_unref(&t->entries);
}

struct op_turns *turns_create(struct engine *e, struct list *list)
{
    struct op_turns *t = op_create(e, list, sizeof *t, turns_step, turns_fini);
    t->op.late = turns_late;
    TAILQ_INIT(&t->calls);
    view_init(&t->own);
    t->entries = block_new(BLOCK_BYTES);
    list->turns = &t->op;
    metric_inc(e->metrics, METRIC_list_turns);
    return t;
}

void turns_add(struct op_turns *turns, struct list_call *call)
{
    call_enter(&turns->op, &turns->calls, call);
}
