/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/held_reads.h"

#include <stdlib.h>

#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/core/settle.h"

/* Rounds of one read: each time there were new intents, or decisions that were not stored. */
#define ROUNDS_MAX 16

struct held {
    TAILQ_ENTRY(held) link;
    struct op *op; /* stays: the answer is outstanding */
    struct list *list;
    uint64_t tag;
    uint8_t rounds;
};
TAILQ_HEAD(held_queue, held);

struct op_settle {
    struct op op;
    struct settle settle;
    struct held_queue held;
};

static void hold(struct op_settle *o, const struct list_request *request)
{
    struct held *held = malloc(sizeof *held);
    CHECK(held != NULL);
    *held = (struct held){.op = request->op,
                          .list = request->list,
                          .tag = request->tag,
                          .rounds = (uint8_t)(request->rounds + 1)};
    TAILQ_INSERT_TAIL(&o->held, held, link);
}

/* The operation waits for the settler. Blind changes of its list do not. */
static void let_changes_pass(struct engine *e, struct op *op)
{
    struct list *list = op->list;
    op->is_held = true;
    if (list->round == op && !list->round_writes && list->held_round == NULL) {
        op_enter(op, &list->held_round);
    }
    lists_mark_ready(&e->lists, list);
}

/* May that read bring a head that is cut? */
static bool takes_part(const struct op *op, const struct list *list)
{
    return op->takes_cut && list == op->list;
}

/* Where the intents could not be settled, a compaction goes on with what is decided in front. */
static void let_go(struct engine *e, struct op_settle *o, struct held *held)
{
    struct op_event event = {
        .tag = held->tag, .status = BE_REFUSED, .text = o->settle.error, .was_held = true};
    held->op->is_held = false;
    bool fails = o->settle.state == SETTLE_FAILED && !takes_part(held->op, held->list);
    if (held->op->finished || fails) {
        op_deliver(e, held->op, &event);
    } else {
        emit_get_again(e, held->op, held->list, held->tag, held->rounds);
    }
}

static enum progress settler_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_settle *o = (struct op_settle *)op;
    struct co *co = &op->co;
    struct held *held;
    CO_BEGIN(co);
    CO_CALL(co, settle_step(e, &o->settle, event));
    op_leave(op);
    metric_add(e->metrics, METRIC_list_busy, o->settle.gave_up);
    while ((held = TAILQ_FIRST(&o->held)) != NULL) {
        TAILQ_REMOVE(&o->held, held, link);
        let_go(e, o, held);
        free(held);
    }
    list_consider_compaction(e, op->list, list_log_bytes(op->list));
    CO_END(co);
}

static void settler_fini(struct engine *e, struct op *op)
{
    struct op_settle *o = (struct op_settle *)op;
    struct held *held;
    (void)e;
    settle_fini(&o->settle);
    while ((held = TAILQ_FIRST(&o->held)) != NULL) {
        TAILQ_REMOVE(&o->held, held, link);
        free(held);
    }
}

/* For lstat: what a read has met, and not only what it has found in the end. */
static void note_met(struct list *list, const struct head *head, bool again)
{
    list->met = again ? list->met : (struct head_open){0};
    for (size_t i = 0; i < head->intent_count; i++) {
        const struct head_intent *intent = &head->intents[i];
        if (intent->state == INTENT_OPEN) {
            list->met.waiting += !intent->primary;
            list->met.pending += intent->primary;
            list->met.oldest_s = list->met.oldest_s == 0 || intent->created_s < list->met.oldest_s
                                     ? intent->created_s
                                     : list->met.oldest_s;
        }
    }
}

static void hold_for_settling(struct engine *e, const struct list_request *request,
                              const struct head *head)
{
    struct list *list = request->list;
    bool first = list->settler == NULL;
    if (first) {
        struct op_settle *o =
            op_create(e, list, sizeof(struct op_settle), settler_step, settler_fini);
        op_enter(&o->op, &list->settler);
        TAILQ_INIT(&o->held);
        settle_init(&o->settle, &o->op, list);
        settle_add_open(e, &o->settle, head);
        note_met(list, head, request->rounds > 0);
    }
    hold((struct op_settle *)list->settler, request);
    let_changes_pass(e, request->op);
    if (first) {
        op_run(e, list->settler);
    }
}

/* Has its coordinator died, as it seems? By the wall clock: what is done then is right in any case.
 * One that seems to come from the future counts as well, or it would stay until then. */
static bool is_left(const struct engine *e, const struct head_intent *intent)
{
    enum { AT_WORK_S = 2 };
    int64_t age_s = e->now.wall_s - intent->created_s;
    return intent->state == INTENT_OPEN && (age_s > AT_WORK_S || age_s < -AT_WORK_S);
}

/* A compaction of a list whose coordinators are at work goes on with what is decided, unless what
 * has been added behind the first of them is about to fill the log. */
static bool takes_cut(const struct engine *e, const struct list_request *request,
                      const struct head *head)
{
    const struct list *list = request->list;
    bool left = false;
    size_t tail_bytes = 0;
    for (size_t i = head->intent_count; i-- > 0;) {
        const struct head_intent *intent = &head->intents[i];
        left = left || is_left(e, intent);
        tail_bytes = intent->state == INTENT_OPEN ? head->raw_log_bytes - intent->at : tail_bytes;
    }
    bool goes_on = !left && tail_bytes <= list_log_hard_limit(list) / 2;
    return takes_part(request->op, list) && (goes_on || request->rounds > 0);
}

void held_reads_reply(struct engine *e, const struct list_request *request,
                      const struct be_reply *reply)
{
    struct op_event event = {.tag = request->tag,
                             .reply = reply,
                             .request = request,
                             .status = reply->status,
                             .text = reply->text,
                             .appended_bytes = request->appended_bytes,
                             .was_held = request->rounds > 0};
    struct head *head = NULL;
    if (!request->op->finished && reply->status == BE_HIT && reply->flags == 0 &&
        head_read(reply, list_key(request->list), &head) == HEAD_OK) {
        bool holds = head->open_count > 0 && !request->is_raw;
        if (holds && takes_cut(e, request, head)) {
            struct head *whole = head;
            head = head_cut(whole);
            head_unref(&whole);
        } else if (holds && request->rounds < ROUNDS_MAX) {
            hold_for_settling(e, request, head);
            head_unref(&head);
            return;
        } else if (holds) {
            metric_inc(e->metrics, METRIC_list_busy);
            event.reply = NULL;
            event.status = BE_REFUSED;
            event.text = settle_busy;
            head_unref(&head);
        } else if (request->rounds > 0) {
            head->met = request->list->met;
        }
    }
    event.head = head;
    op_deliver(e, request->op, &event);
    head_unref(&head);
}
