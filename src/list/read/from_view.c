/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/from_view.h"

#include "list/content/view.h"
#include "list/core/answer.h"
#include "list/core/engine_state.h"
#include "list/core/scan.h"
#include "list/read/from_index.h"
#include "list/read/from_sublists.h"
#include "list/read/pick.h"
#include "list/read/recent.h"
#include "list/read/touch.h"

/* A log of a list without runs is worth keeping from there on; a shorter one is read as quickly. */
#define LOG_BYTES_MIN 4096u

/* Items of calls whose lookups are prepared for. */
#define EXPECTED_MAX 256u

struct op_view {
    struct op op;
    struct call_queue calls; /* each with its head */
    struct head *head;       /* of the first of them */
    struct scan scan;
    size_t keeps; /* runs that were in the view before the scan */
    struct lists *lists;
};

bool view_is_worth_it(const struct engine *e, const struct head *head)
{
    uint64_t log = head->log.len;
    return (head->run_count > 0 || log >= LOG_BYTES_MIN) &&
           lists_view_fits(&e->lists, head_run_bytes(head), log);
}

void view_expect_calls(const struct view *view, const struct call_queue *calls)
{
    struct slice items[EXPECTED_MAX];
    const struct list_call *call;
    size_t count = 0;
    TAILQ_FOREACH(call, calls, link)
    {
        for (size_t i = 0; i < call->item_count && count < EXPECTED_MAX; i++) {
            items[count++] = call->items[i];
        }
    }
    if (count > 1) {
        view_expect(view, items, count);
    }
}

/* lttl of an item. */
static void answer_item_ttl(struct engine *e, struct list *list, struct list_call *call,
                            const struct head *head)
{
    struct view_item item = view_find(list->view, call->items[0]);
    answer_item_time(e, list, call, head, item.in, item.until_s);
}

/* For an operation, which has to know of items that are over, too. */
static void tell_members(const struct view *view, const struct list_call *call)
{
    for (size_t i = 0; i < call->item_count; i++) {
        struct view_item item = view_find(view, call->items[i]);
        char in = item.timed ? ENTRY_TIMED : ENTRY_ADD, out = item.timed ? MEMBERS_OVER : ENTRY_DEL;
        call->inner->members->verdict[i] = item.in ? in : out;
    }
}

static void answer_has(const struct view *view, const struct list *list, struct list_call *call)
{
    if (call->inner != NULL) {
        tell_members(view, call);
        return;
    }
    for (size_t i = 0; i < call->item_count; i++) {
        if (view_has(view, call->items[i])) {
            answer_member(list, call, call->items[i]);
        }
    }
}

/* The view shows the call's head. */
static void answer_from(struct engine *e, struct list *list, struct list_call *call,
                        const struct head *head)
{
    struct view *view = list->view;
    struct output output = {.to = UINT64_MAX};
    call->number = 0;
    if (call->verb == LIST_TTL) {
        answer_item_ttl(e, list, call, head);
    } else if (call->verb == LIST_HAS) {
        answer_has(view, list, call);
        answer_call(e, list, call, head, call->number > 0 ? LIST_OK : LIST_MISSING);
    } else if (list_verb_has(call->verb, LIST_PICKS)) {
        pick_from_view(e, list, call, view, head);
    } else if (call->verb == LIST_LEN) {
        call->number = view_count(view);
        answer_call(e, list, call, head, LIST_OK);
    } else {
        answer_begin(list, call, &output);
        if (!list_verb_has(call->verb, LIST_RANGES) ||
            answer_range(call, view_count(view), &output)) {
            if (list_verb_has(call->verb, LIST_FROM_NEWEST)) {
                view_write_back(view, &output);
            } else {
                view_write(view, &output);
            }
        }
        answer_content(e, list, call, head, &output);
    }
}

/* A head may say less of its runs than they have, and other views may grow at the same time: all of
 * them count from sublist to sublist. */
static enum visited add_visit(void *arg, struct sublist *sublist)
{
    struct op_view *o = arg;
    struct list *list = o->op.list;
    view_add_sublist(list->view, &o->scan.runs[o->scan.visit.run], o->keeps + o->scan.visit.run,
                     sublist);
    lists_count_view(o->lists, list);
    if (o->lists->view_bytes <= o->lists->view_limit_bytes) {
        return true;
    }
    view_clear(list->view);
    lists_count_view(o->lists, list);
    return false;
}

/* Answers the calls at the front whose heads have the runs that the view has. */
static void answer_front(struct engine *e, struct op_view *o)
{
    struct list *list = o->op.list;
    struct view *view = list->view;
    while (!TAILQ_EMPTY(&o->calls)) {
        struct list_call *call = TAILQ_FIRST(&o->calls);
        struct head *head = call->head;
        view_advance(view, head->read_s);
        if (!view_has_runs(view, head)) {
            break;
        }
        list->view_lags = false;
        view_take_log(view, head);
        (void)reads_take(&o->calls, call);
        answer_from(e, list, call, head);
        head_unref(&head);
    }
    lists_count_view(&e->lists, list);
}

/* What the view lacks of the head's runs. */
static void start_scan(struct op_view *o)
{
    view_advance(o->op.list->view, o->head->read_s);
    o->keeps = view_keep(o->op.list->view, o->head);
    scan_start(&o->op, &o->scan, o->head->runs + o->keeps, o->head->run_count - o->keeps, false,
               true, add_visit, o);
}

static enum progress view_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_view *o = (struct op_view *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    while (!TAILQ_EMPTY(&o->calls)) {
        head_unref(&o->head);
        o->head = head_ref(TAILQ_FIRST(&o->calls)->head);
        start_scan(o);
        SCAN_RUN(co, e, op, &o->scan, "reading sublists for a view");
        scan_stop(op, &o->scan);
        if (o->scan.state != SCAN_END || !view_has_runs(op->list->view, o->head)) {
            /* The other way finds out whether the list is damaged, or no list at all. */
            if (o->scan.state == SCAN_MISSING) {
                op->list->suspect = o->scan.missing.name;
            }
            view_clear(op->list->view);
            break;
        }
        if (o->scan.all_cached) {
            touch_consider(e, op->list, o->head);
        }
        answer_front(e, o);
    }
    op_leave(op);
    reads_start(e, op->list, &o->calls);
    lists_count_view(&e->lists, op->list);
    CO_END(co);
}

/* The view is made all the same: the next read has it. */
static enum list_known view_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_view *o = (struct op_view *)op;
    (void)e;
    reads_drop(&o->calls, call);
    return KNOWN_NOTHING;
}

static void view_op_fini(struct engine *e, struct op *op)
{
    struct op_view *o = (struct op_view *)op;
    (void)e;
    scan_stop(op, &o->scan);
    while (!TAILQ_EMPTY(&o->calls)) {
        reads_drop(&o->calls, TAILQ_FIRST(&o->calls));
    }
    head_unref(&o->head);
}

static void build(struct engine *e, struct list *list, struct call_queue *calls, struct head *head)
{
    struct op_view *o = (struct op_view *)list->viewing;
    bool starts = o == NULL;
    if (starts) {
        o = op_create(e, list, sizeof *o, view_step, view_op_fini);
        o->op.let_go = view_let_go;
        o->lists = &e->lists;
        TAILQ_INIT(&o->calls);
        op_enter(&o->op, &list->viewing);
    }
    while (!TAILQ_EMPTY(calls)) {
        struct list_call *call = TAILQ_FIRST(calls);
        TAILQ_REMOVE(calls, call, link);
        call->head = head_ref(head);
        call_enter(&o->op, &o->calls, call);
    }
    if (starts) {
        op_run(e, &o->op);
    }
}

/* Those that a view does not serve. */
static void start_others(struct engine *e, struct list *list, struct call_queue *calls,
                         struct head *head, bool all)
{
    struct list_call *call, *next;
    for (call = TAILQ_FIRST(calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        bool of_list = call->verb == LIST_TTL && call->item_count == 0;
        if (all || call->verb == LIST_STAT || of_list) {
            TAILQ_REMOVE(calls, call, link);
            read_start(e, list, call, head);
        }
    }
}

/* Looks are answered by the head itself. */
static void answer_looks(struct engine *e, struct list *list, struct call_queue *calls,
                         struct head *head)
{
    struct list_call *call, *next;
    for (call = TAILQ_FIRST(calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (inner_looks(call)) {
            TAILQ_REMOVE(calls, call, link);
            if (head != NULL) {
                call->inner->head = head_ref(head);
                call->inner->cas = head->cas;
                call->inner->epoch = head->epoch;
            }
            call_finish(e, list, call, head != NULL ? LIST_OK : LIST_MISSING);
        }
    }
}

void view_answer_shown(struct engine *e, struct list *list, struct call_queue *calls,
                       const struct head *head)
{
    view_expect_calls(list->view, calls);
    while (!TAILQ_EMPTY(calls)) {
        struct list_call *call = TAILQ_FIRST(calls);
        TAILQ_REMOVE(calls, call, link);
        answer_from(e, list, call, head);
    }
}

/* A list that is read without a request must have a view, however short it is. */
static bool keeps_view(const struct engine *e, const struct list *list, const struct head *head)
{
    return view_is_worth_it(e, head) ||
           (recent_is_wanted(e, list) &&
            lists_view_fits(&e->lists, head_run_bytes(head), head->log.len));
}

void view_start_reads(struct engine *e, struct list *list, struct call_queue *calls,
                      struct head *head)
{
    answer_looks(e, list, calls, head);
    if (TAILQ_EMPTY(calls)) {
        return;
    }
    bool keep = head != NULL && keeps_view(e, list, head);
    if (!keep && list->viewing == NULL) {
        lists_drop_view(&e->lists, list);
    }
    if (keep && list->indexing == NULL) {
        lists_drop_outline(&e->lists, list);
    } else if (head != NULL && !keep) {
        index_start_reads(e, list, calls, head);
    }
    start_others(e, list, calls, head, !keep);
    if (TAILQ_EMPTY(calls)) {
        return;
    }
    struct view *view = lists_get_view(&e->lists, list);
    if (list->viewing == NULL) {
        view_advance(view, head->read_s);
    }
    if (list->viewing != NULL || !view_has_runs(view, head)) {
        build(e, list, calls, head);
        return;
    }
    list->view_lags = false;
    view_take_log(view, head);
    view_answer_shown(e, list, calls, head);
    if (head->run_count > 0) {
        touch_consider(e, list, head);
    }
    lists_count_view(&e->lists, list);
}
