/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/from_index.h"

#include <stdlib.h>

#include "base/memory.h"
#include "list/core/answer.h"
#include "list/core/engine_state.h"
#include "list/read/from_sublists.h"
#include "list/read/index_op.h"
#include "list/read/touch.h"

/* Where an index could not be made, the list is read without for so long. */
#define RETRY_US 1000000u
/* A range from the list's beginning is not worth an index while the newer runs, which it needs
 * besides, are this part of the oldest one. */
#define NEWER_PART 16u

/* ---- lhas ---- */

/* lhas, and lttl of an item. */
static bool looks(const struct list_call *call)
{
    return call->verb == LIST_HAS || (call->verb == LIST_TTL && call->item_count > 0);
}

static bool is_of_head(const struct op_index *o, const struct list_call *call)
{
    return call->head == o->head;
}

/* Lines of a megabyte ask for several hundred thousand. */
static size_t looks_bytes(const struct op_index *o)
{
    return o->look_count * (sizeof *o->looks + sizeof *o->found);
}

static void begin_looks(struct op_index *o)
{
    struct list_call *call;
    size_t count = 0;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        count += is_of_head(o, call) && looks(call) ? call->item_count : 0;
    }
    o->look_count = count;
    o->looks = calloc(count + 1, sizeof *o->looks);
    o->found = calloc(count + 1, sizeof *o->found);
    CHECK(o->looks != NULL && o->found != NULL);
    memory_take(looks_bytes(o));
    outline_of(o)->answers = o->found;
    count = 0;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        for (size_t i = 0; is_of_head(o, call) && looks(call) && i < call->item_count;
             i++, count++) {
            struct look *look = &o->looks[count];
            *look = (struct look){.call = call, .item = i};
            outline_ask_item(outline_of(o), call->items[i], (uint32_t)count, &look->has);
        }
    }
}

static void end_looks(struct op_index *o)
{
    memory_give(looks_bytes(o));
    free(o->looks);
    free(o->found);
    o->looks = NULL;
    o->found = NULL;
    o->look_count = 0;
}

/* Takes the call off; its head is the caller's. */
static void take_call(struct op_index *o, struct list_call *call, struct head **head)
{
    TAILQ_REMOVE(&o->calls, call, link);
    *head = call->head;
    call->head = NULL;
}

static void answer_looks(struct engine *e, struct op_index *o)
{
    struct head *head;
    for (size_t i = 0; i < o->look_count;) {
        struct list_call *call = o->looks[i].call;
        if (call == NULL) {
            i++;
            continue;
        }
        bool has = false;
        call->number = 0;
        for (; i < o->look_count && o->looks[i].call == call; i++) {
            has = o->looks[i].has || o->found[i].found;
            size_t item = o->looks[i].item;
            if (call->inner != NULL) {
                call->inner->members->verdict[item] = has ? ENTRY_ADD : ENTRY_DEL;
            } else if (has && call->verb == LIST_HAS) {
                answer_member(o->op.list, call, call->items[item]);
            }
        }
        take_call(o, call, &head);
        metric_inc(e->metrics, METRIC_list_indexed_reads);
        if (call->verb == LIST_TTL) {
            answer_item_time(e, o->op.list, call, o->head, has, 0);
        } else {
            answer_call(e, o->op.list, call, o->head, call->number > 0 ? LIST_OK : LIST_MISSING);
        }
        head_unref(&head);
    }
}

static enum progress looks_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    begin_looks(o);
    CO_CALL(co, index_questions_step(e, o, event));
    if (!o->failed) {
        answer_looks(e, o);
    }
    end_looks(o);
    CO_END(co);
}

/* ---- the others ---- */

/* The first such call that is to be answered from this head; it is taken off. */
static struct list_call *next_call(struct op_index *o)
{
    struct list_call *call;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        if (is_of_head(o, call) && !looks(call)) {
            struct head *head;
            take_call(o, call, &head);
            head_unref(&head);
            return call;
        }
    }
    return NULL;
}

static bool any_of_head(const struct op_index *o, bool look)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        if (is_of_head(o, call) && looks(call) == look) {
            return true;
        }
    }
    return false;
}

static void answer_length(struct engine *e, struct op_index *o)
{
    o->call->number = view_count(view_of(o));
    metric_inc(e->metrics, METRIC_list_indexed_reads);
    answer_call(e, o->op.list, o->call, o->head, LIST_OK);
    o->call = NULL;
}

/* Answers the calls of o->head, whose runs the outline has. More of both kinds may come for the
 * same head while some are answered. */
static enum progress answers_step(struct engine *e, struct op_index *o,
                                  const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    view_take_log(view_of(o), o->head);
    while (!o->failed && (any_of_head(o, true) || any_of_head(o, false))) {
        if (any_of_head(o, true)) {
            CO_CALL(co, looks_step(e, o, event));
            continue;
        }
        outline_ask_log(outline_of(o));
        CO_CALL(co, index_questions_step(e, o, event));
        if (o->failed) {
            break;
        }
        outline_settle(outline_of(o));
        o->call = next_call(o);
        if (o->call != NULL && o->call->verb == LIST_LEN) {
            answer_length(e, o);
        } else if (o->call != NULL) {
            CO_CALL(co, index_items_step(e, o, event));
        }
    }
    CO_END(co);
}

/* ---- the operation ---- */

static void read_slowly(struct engine *e, struct op_index *o)
{
    struct list_call *call;
    struct head *head;
    while ((call = TAILQ_FIRST(&o->calls)) != NULL) {
        take_call(o, call, &head);
        read_start(e, o->op.list, call, head);
        head_unref(&head);
    }
}

static enum progress index_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_index *o = (struct op_index *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    while (!o->failed && !TAILQ_EMPTY(&o->calls)) {
        head_unref(&o->head);
        o->head = head_ref(TAILQ_FIRST(&o->calls)->head);
        CO_CALL(co, index_runs_step(e, o, event));
        if (!o->failed) {
            CO_CALL(co, answers_step(e, o, event));
        }
        if (!o->failed) {
            touch_consider(e, op->list, o->head);
        }
    }
    if (o->failed) {
        outline_clear(outline_of(o));
        op->list->index_after_us = e->now.mono_us + RETRY_US;
    }
    op_leave(op);
    read_slowly(e, o);
    lists_count_outline(&e->lists, op->list);
    CO_END(co);
}

/* What was begun for it goes on: the next read has it. */
static enum list_known index_late(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_index *o = (struct op_index *)op;
    (void)e;
    if (call == o->call) {
        o->call = NULL;
        o->output.out = NULL;
        return KNOWN_NOTHING;
    }
    for (size_t i = 0; i < o->look_count; i++) {
        if (o->looks[i].call == call) {
            o->looks[i].call = NULL;
        }
    }
    TAILQ_REMOVE(&o->calls, call, link);
    head_unref(&call->head);
    return KNOWN_NOTHING;
}

static void index_fini(struct engine *e, struct op *op)
{
    struct op_index *o = (struct op_index *)op;
    struct list_call *call;
    struct head *head;
    (void)e;
    scan_stop(op, &o->scan);
    run_index_give_up(&o->build);
    index_drop_locators(o);
    end_looks(o);
    pick_fini(&o->pick);
    while ((call = TAILQ_FIRST(&o->calls)) != NULL) {
        take_call(o, call, &head);
        head_unref(&head);
    }
    head_unref(&o->head);
}

/* ---- which reads ---- */

static bool can_index(const struct engine *e, const struct list *list, const struct head *head)
{
    uint64_t items = 0;
    for (size_t i = 0; i < head->run_count; i++) {
        items += head->runs[i].items;
    }
    return e->indexes != NULL && run_indexes_limit_bytes(e->indexes) > 0 && head->run_count > 0 &&
           !head->clears && !head_is_timed(head) && e->now.mono_us >= list->index_after_us &&
           run_indexes_would_fit(e->indexes, items) && !head_names_run(head, &list->suspect);
}

/* Is what takes longest, the oldest run's index, at hand? */
static bool is_indexed(const struct engine *e, const struct list *list, const struct head *head)
{
    const struct name *oldest = &head->runs[0].range.name;
    if (list->outline != NULL && list->outline->view.run_count > 0 && list->indexing == NULL &&
        name_equal(&list->outline->view.runs[0].name, oldest)) {
        return true;
    }
    struct locator *locator = run_indexes_get(e->indexes, list_key(list), oldest);
    bool is_there = locator != NULL;
    locator_unref(&locator);
    return is_there;
}

/* Would this call be answered as soon without an index that is still to be made? */
static bool is_cheap(const struct list_call *call, const struct head *head)
{
    uint64_t oldest = head->runs[0].bytes;
    bool from_here = list_verb_has(call->verb, LIST_RANGES) && call->from >= 0 && call->to >= 0;
    if (head->run_count == 1 && head->log.len == 0) {
        return from_here || call->verb == LIST_LEN; /* the head says how many there are */
    }
    return from_here && list_verb_has(call->verb, LIST_FROM_OLDEST) &&
           head_run_bytes(head) - oldest <= oldest / NEWER_PART;
}

static bool is_served(const struct list_call *call, const struct head *head, bool indexed)
{
    bool is_kind = looks(call) || call->verb == LIST_LEN ||
                   list_verb_has(call->verb, LIST_RANGES | LIST_PICKS);
    return is_kind && (indexed || !is_cheap(call, head));
}

void index_start_reads(struct engine *e, struct list *list, struct call_queue *calls,
                       struct head *head)
{
    struct op_index *o = (struct op_index *)list->indexing;
    bool starts = o == NULL;
    if (TAILQ_EMPTY(calls) || !can_index(e, list, head)) {
        return;
    }
    bool indexed = is_indexed(e, list, head);
    struct list_call *call, *next;
    for (call = TAILQ_FIRST(calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (!is_served(call, head, indexed)) {
            continue;
        }
        if (o == NULL) {
            o = op_create(e, list, sizeof *o, index_step, index_fini);
            o->op.late = index_late;
            o->lists = &e->lists;
            TAILQ_INIT(&o->calls);
            (void)lists_get_outline(&e->lists, list);
            op_enter(&o->op, &list->indexing);
        }
        TAILQ_REMOVE(calls, call, link);
        call->head = head_ref(head);
        call_enter(&o->op, &o->calls, call);
    }
    if (starts && o != NULL) {
        op_run(e, &o->op);
    }
}
