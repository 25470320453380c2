/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/turns.h"

#include "list/change/cas.h"
#include "list/content/view.h"
#include "list/core/answer.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/read/from_view.h"
#include "list/read/touch.h"

/* Rounds only, for so long after another writer was faster; doubles each time in a row, up to 2^9
 * times that: a second. */
#define PAUSE_US 2000u
#define PAUSE_DOUBLINGS_MAX 9u

struct op_turns {
    struct op_cas cas; /* its calls in their order */
    struct view own;   /* of a list that has no runs, and no view */
};

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
    struct list *list = t->cas.op.list;
    struct view *view = list->view != NULL ? lists_get_view(&e->lists, list) : &t->own;
    if (list->viewing == NULL) {
        view_advance(view, t->cas.head->read_s);
    }
    if (list->viewing != NULL || !view_has_runs(view, t->cas.head)) {
        list->view_lags = list->view != NULL;
        return NULL;
    }
    if (t->cas.head->marks.cap.max != 0) {
        return NULL;
    }
    view_take_log(view, t->cas.head);
    return view;
}

/* A CAS that keeps the expiry has to ask for the server's clock first (expiry.h), and may undo a
 * touch that comes in between. Appends leave it alone. */
static bool expires(const struct head *head)
{
    return head->ttl_s >= 0;
}

/* Decides call by call, each on top of those before it. */
static void decide_calls(struct op_turns *t, const struct view *view)
{
    struct fold changes;
    struct list_call *call;
    fold_init(&changes);
    view_expect_calls(view, &t->cas.calls);
    TAILQ_FOREACH(call, &t->cas.calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            struct slice item = call->items[i];
            char outcome = fold_outcome(&changes, item);
            struct view_item known = outcome == 0 ? view_find(view, item)
                                                  : (struct view_item){.in = outcome != ENTRY_DEL};
            if (call->verb == LIST_HAS && known.in) {
                answer_member(t->cas.op.list, call, item);
            } else if (call->verb != LIST_HAS &&
                       (known.timed || known.in || !list_call_deletes(call, i))) {
                /* One with a time gets none; one that is over here may be in for another proxy.
                 * Additions of what is in are written as well: an lpurge must see them. */
                bool deletes = list_call_deletes(call, i);
                enum entry_op op = deletes ? ENTRY_DEL : list_call_adds(call);
                fold_apply(&changes, op, item);
                entry_append(&t->cas.entries, op, item);
            }
        }
    }
    fold_fini(&changes);
}

static void finish_all(struct engine *e, struct op_cas *cas)
{
    struct list *list = cas->op.list;
    /* What was written has a number of its own, which no answer has told. */
    const struct head *seen = cas->entries->used == 0 ? cas->head : NULL;
    while (!TAILQ_EMPTY(&cas->calls)) {
        struct list_call *call = TAILQ_FIRST(&cas->calls);
        TAILQ_REMOVE(&cas->calls, call, link);
        bool found = call->verb != LIST_HAS || call->number > 0;
        answer_call(e, list, call, seen, found ? LIST_OK : LIST_MISSING);
    }
    list->turns_failures = 0;
    if (cas->head->run_count > 0) {
        touch_consider(e, list, cas->head);
    }
}

static void stored(struct engine *e, struct op_cas *cas)
{
    list_note_size(cas->op.list, cas->head->value.len + cas->entries->used);
    finish_all(e, cas);
}

/* Nothing was done: the calls go back to the front of the queue. A view that lags is not tried
 * again before it has caught up; after anything else they go the other way for a while. */
static void give_back(struct engine *e, struct op_cas *cas)
{
    struct list *list = cas->op.list;
    cas_give_back(e, cas);
    if (!list->view_lags) {
        list->turns_after_us = e->now.mono_us + ((uint64_t)PAUSE_US << list->turns_failures);
        list->turns_failures += list->turns_failures < PAUSE_DOUBLINGS_MAX;
    }
}

/* Where nothing is written, calls that are not answered go back. */
static enum progress decide(struct engine *e, struct op_cas *cas, const struct op_event *event)
{
    struct op_turns *t = (struct op_turns *)cas;
    const struct view *view;
    (void)event;
    cas->decision = CAS_ENDS;
    if (cas->got != GOT_HEAD || expires(cas->head) || (view = view_of(e, t)) == NULL) {
        return PROGRESS_DONE;
    }
    decide_calls(t, view);
    if (cas->op.list->view != NULL) {
        lists_count_view(&e->lists, cas->op.list);
    }
    if (cas->entries->used == 0) {
        finish_all(e, cas); /* the answers hold as of the head's reading */
    } else if (list_has_room(cas->op.list, cas->head, cas->entries->used)) {
        cas->decision = CAS_WRITES;
        cas->writing = "writing changes";
        cas_emit_entries(e, cas);
    }
    return PROGRESS_DONE;
}

static enum progress turns_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_cas *cas = (struct op_cas *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    CO_CALL(co, cas_step(e, cas, event));
    if (!TAILQ_EMPTY(&cas->calls)) {
        give_back(e, cas);
    }
    list_consider_compaction(e, op->list, 0);
    CO_END(co);
}

static void turns_fini(struct engine *e, struct op_cas *cas)
{
    (void)e;
    view_fini(&((struct op_turns *)cas)->own);
}

/* A writer who is faster again will be so a third time. Also those that only look fail when the
 * outcome is unknown: they stand between changes that may have been done or not. */
static const struct cas_kind in_turns = {
    .reading = "reading head",
    .tries_max = 2,
    .gives_back = true,
    .decide = decide,
    .stored = stored,
    .fini = turns_fini,
};

struct op_cas *turns_create(struct engine *e, struct list *list)
{
    struct op_turns *t = cas_create(e, list, &list->turns, sizeof *t, &in_turns, turns_step);
    view_init(&t->own);
    metric_inc(e->metrics, METRIC_list_turns);
    return &t->cas;
}
