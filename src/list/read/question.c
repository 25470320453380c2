/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/question.h"

#include "list/core/engine_state.h"
#include "list/read/from_sublists.h"
#include "list/read/from_view.h"

static void ask(struct engine *e, struct question *q, struct op *op, struct list *list,
                enum list_verb verb)
{
    q->read = inner_new(e, op, list, verb);
    q->read->pinned = true;
}

static void settle(struct engine *e, struct question *q)
{
    if (q->read->done) {
        op_stop_waking(q->read->op, e); /* it goes on as it is */
    }
}

static void start(struct engine *e, struct question *q, struct head *head)
{
    struct list_call *call = &q->read->call;
    struct call_queue calls;
    TAILQ_INIT(&calls);
    TAILQ_INSERT_TAIL(&calls, call, link);
    TAILQ_INSERT_TAIL(&call->list->active, call, active);
    view_start_reads(e, call->list, &calls, head);
    settle(e, q);
}

void question_items(struct engine *e, struct question *q, struct op *op, struct list *list,
                    struct head *head, const struct slice *items, size_t count)
{
    members_init(&q->members, items, count, head->read_s);
    members_feed_log(&q->members, head->log, head->marks.cap);
    if (q->members.unknown == 0 || head->run_count == 0) {
        return;
    }
    ask(e, q, op, list, LIST_HAS);
    q->read->members = &q->members;
    q->read->call.items = items;
    q->read->call.item_count = count;
    start(e, q, head);
}

void question_any(struct engine *e, struct question *q, struct op *op, struct list *list,
                  struct head *head)
{
    ask(e, q, op, list, LIST_RANGE);
    TAILQ_INSERT_TAIL(&list->active, &q->read->call, active);
    read_start(e, list, &q->read->call, head); /* ends with the first item that it meets */
    settle(e, q);
}

void question_range(struct engine *e, struct question *q, struct op *op, struct list *list,
                    struct head *head, bool newest, int64_t count, struct gather *gather)
{
    ask(e, q, op, list, newest ? LIST_REVRANGE : LIST_RANGE);
    q->read->gather = gather;
    q->read->call.to = count - 1;
    start(e, q, head);
}

static enum question_state state_of(const struct inner *read)
{
    enum list_status status = read->call.status;
    bool failed = status == LIST_SERVER_ERROR || status == LIST_CLIENT_ERROR;
    return status == LIST_EXISTS ? QUESTION_OLD
           : !failed             ? QUESTION_ANSWERED
           : read->unreadable    ? QUESTION_UNREADABLE
                                 : QUESTION_FAILED;
}

enum progress question_step(struct question *q, struct op *op, const char *waiting)
{
    struct co *co = &op->co;
    CO_BEGIN(co);
    while (q->read != NULL && !q->read->done) {
        CO_AWAIT(co, waiting);
    }
    if (q->read != NULL) {
        q->state = state_of(q->read);
        q->any = q->read->call.number > 0;
    }
    CO_END(co);
}

void question_forget(struct engine *e, struct question *q)
{
    if (q->read != NULL) {
        inner_drop(e, &q->read);
    }
    members_fini(&q->members);
    q->any = false;
    q->state = QUESTION_ANSWERED;
}
