/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/op.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "list/core/engine_state.h"

/* Most operations fit into this, and have the memory of others that have ended. */
#define ROOM_BYTES 1024u

void ops_init(struct engine *e, size_t request_room)
{
    size_t bytes = config_spare_bytes(e->config);
    spare_init(&e->spare_ops, ROOM_BYTES, bytes);
    spare_init(&e->spare_requests, sizeof(struct list_request) + request_room, bytes);
}

static struct op *op_new(struct engine *e, size_t size)
{
    struct op *op;
    if (size <= ROOM_BYTES) {
        op = spare_take(&e->spare_ops);
    } else {
        op = malloc(size);
        CHECK(op != NULL);
        memory_take(size);
    }
    memset(op, 0, size);
    return op;
}

void *op_create(struct engine *e, struct list *list, size_t size, op_step *step, op_fini *fini)
{
    struct op *op = op_new(e, size);
    op->size_bytes = size;
    op->co.waiting = "";
    op->step = step;
    op->fini = fini;
    op->list = op->reads = list;
    op->timer.owner = op;
    op->timer.kind = TIMER_OP;
    TAILQ_INSERT_TAIL(&e->all_ops, op, all);
    list->ops++;
    return op;
}

void op_leave(struct op *op)
{
    if (op->place != NULL) {
        CHECK(*op->place == op);
        *op->place = NULL;
        op->place = NULL;
    }
}

void op_enter(struct op *op, struct op **place)
{
    op_leave(op);
    CHECK(*place == NULL);
    *place = op;
    op->place = place;
}

static void op_free(struct engine *e, struct op *op)
{
    TAILQ_REMOVE(&e->all_ops, op, all);
    if (op->size_bytes <= ROOM_BYTES) {
        spare_give(&e->spare_ops, op);
    } else {
        memory_give(op->size_bytes);
        free(op);
    }
}

void ops_drop(struct engine *e)
{
    while (!TAILQ_EMPTY(&e->all_ops)) {
        struct op *op = TAILQ_FIRST(&e->all_ops);
        if (!op->finished) {
            op->fini(e, op);
        }
        op_free(e, op);
    }
}

void op_wake(struct engine *e, struct op *op)
{
    if (!op->runnable) {
        op->runnable = true;
        TAILQ_INSERT_TAIL(&e->runnable, op, run);
    }
}

void op_stop_waking(struct op *op, struct engine *e)
{
    if (op->runnable) {
        op->runnable = false;
        TAILQ_REMOVE(&e->runnable, op, run);
    }
}

static RARE void wake_publishers(struct engine *e, struct list *list)
{
    struct op *const waiters[] = {list->compaction, list->merge, list->put, list->forget};
    for (size_t i = 0; i < sizeof waiters / sizeof waiters[0]; i++) {
        if (waiters[i] != NULL && waiters[i]->waits_quiet) {
            op_wake(e, waiters[i]);
        }
    }
}

void op_check_quiet(struct engine *e, struct list *list)
{
    /* Those that wait have become the publisher, or wait for the one that has. */
    if (UNLIKELY(list->publisher != NULL)) {
        wake_publishers(e, list);
    }
    lists_mark_ready(&e->lists, list);
}

bool op_become_publisher(struct op *op)
{
    struct list *list = op->list;
    if (list->publisher == NULL) {
        list->publisher = op;
    }
    op->waits_quiet = list->publisher != op || list_writing(list);
    return !op->waits_quiet;
}

void op_stop_publishing(struct engine *e, struct op *op)
{
    struct list *list = op->list;
    op->waits_quiet = false;
    if (list->publisher == op) {
        list->publisher = NULL;
        wake_publishers(e, list);
    }
    op_check_quiet(e, list);
}

uint64_t op_backoff_end_us(struct engine *e, uint64_t unit_us, unsigned conflicts)
{
    return e->now.mono_us + 1 + rng_below(e->rng, unit_us << u64_least(conflicts, 8));
}

static void op_leave_queues(struct engine *e, struct op *op)
{
    op_stop_waking(op, e);
    timer_stop(&e->timers, &op->timer);
}

static void op_finish(struct engine *e, struct op *op)
{
    struct list *list = op->list;
    op->fini(e, op);
    list->round_writes = list->round_writes && list->round != op;
    op_leave(op);
    CHECK(list->publisher != op);
    list->ops--;
    op->finished = true;
    op_check_quiet(e, list);
    if (op->outstanding == 0) {
        op_free(e, op);
    }
}

void op_abort(struct engine *e, struct op *op)
{
    op_leave_queues(e, op);
    op_finish(e, op);
}

static void op_step_once(struct engine *e, struct op *op, const struct op_event *event)
{
    op_leave_queues(e, op);
    enum progress progress = op->step(e, op, event);
    if (progress == PROGRESS_DONE) {
        op_leave_queues(e, op); /* an inner call may have woken it meanwhile */
        op_finish(e, op);
    } else if (progress == PROGRESS_YIELD) {
        op_wake(e, op);
    } else if (progress == PROGRESS_SLEEPING) {
        timer_set(&e->timers, &op->timer, op->wake_us);
    }
}

void op_run(struct engine *e, struct op *op)
{
    op_step_once(e, op, NULL);
}

void op_deliver(struct engine *e, struct op *op, const struct op_event *event)
{
    CHECK(op->outstanding > 0);
    op->outstanding--;
    if ((event->tag & TAG_SCAN) == 0) {
        op->due--;
    }
    if (op->finished) {
        if (op->outstanding == 0) {
            op_free(e, op);
        }
        return;
    }
    if ((event->tag & TAG_SCAN) != 0 && (uint32_t)(event->tag >> 8) != op->scan_generation) {
        return;
    }
    op_step_once(e, op, event);
}

const char *op_waiting(const struct engine *e, const struct list *list)
{
    const struct op *op;
    if (list != NULL && list->settler != NULL) {
        return list->settler->co.waiting; /* the others may wait for it */
    }
    TAILQ_FOREACH(op, &e->all_ops, all)
    {
        if (op->list == list && !op->finished) {
            return op->co.waiting;
        }
    }
    return "";
}

struct list_request *request_new(struct engine *e, const struct list *list, enum be_verb verb)
{
    enum { FROM = offsetof(struct list_request, placement_at) };
    struct list_request *r = spare_take(&e->spare_requests);
    memset((char *)r + FROM, 0, sizeof *r - FROM);
    r->pool_index = list->policy->pool_index;
    r->be.verb = verb;
    r->be.durable = be_changes(verb);
    r->be.time_optional = true;
    return r;
}

void request_free(struct engine *e, struct list_request **slot)
{
    struct list_request *r = *slot;
    *slot = NULL;
    block_unref(&r->be.block);
    spare_give(&e->spare_requests, r);
}

void request_send(struct engine *e, struct list_request *request)
{
    /* A CAS number belongs to the connection that it came over; without one it was never read. */
    CHECK_SLOW(!be_is_conditional(request->be.verb) || request->be.epoch != 0);
    STAILQ_INSERT_TAIL(&e->outbox, request, link);
}

void op_prepare(struct op *op, struct list_request *r, struct block *value, uint64_t tag)
{
    if (value != NULL) {
        r->be.block = block_ref(value);
        r->be.value = slice_make(value->data, value->used);
    }
    r->op = op;
    r->tag = tag;
    if (r->be.verb >= BE_ADD) {
        op->has_written = true;
        op->told_unknown = false;
    }
    op->outstanding++;
    op->due++;
}

void op_send(struct engine *e, struct op *op, struct list_request *r, struct block *value,
             uint64_t tag)
{
    op_prepare(op, r, value, tag);
    request_send(e, r);
}

bool op_found_no_memory(const struct op_event *event)
{
    return event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE;
}

void op_error_text(const struct op_event *event, char error[LIST_ERROR_MAX])
{
    const char *text = event->text;
    if (op_found_no_memory(event)) {
        text = "backend out of memory";
    } else if (text == NULL) {
        text = event->status == BE_LOST ? "connection to backend lost, outcome unknown"
                                        : "backend refused the change";
    }
    snprintf(error, LIST_ERROR_MAX, "%s", text);
}
