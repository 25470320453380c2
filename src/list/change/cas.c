/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/cas.h"

#include "list/core/engine_state.h"

void cas_fail(struct engine *e, struct op_cas *x, const char *text)
{
    struct list_call *call;
    TAILQ_FOREACH(call, &x->calls, link)
    {
        chain_clear(&call->answer);
    }
    calls_fail(e, x->op.list, &x->calls, text);
}

void cas_finish(struct engine *e, struct op_cas *x, enum list_status status)
{
    while (!TAILQ_EMPTY(&x->calls)) {
        struct list_call *call = TAILQ_FIRST(&x->calls);
        TAILQ_REMOVE(&x->calls, call, link);
        call_finish(e, x->op.list, call, status);
    }
}

/* What was decided for a write that was not made. */
static void forget_decisions(struct op_cas *x)
{
    struct list_call *call;
    x->entries->used = 0;
    TAILQ_FOREACH(call, &x->calls, link)
    {
        chain_clear(&call->answer);
        call->number = 0;
        call->refused = false;
    }
}

void cas_give_back(struct engine *e, struct op_cas *x)
{
    forget_decisions(x);
    calls_give_back(e, x->op.list, &x->calls);
}

bool cas_has_room(struct engine *e, struct op_cas *x)
{
    struct list_call *call;
    size_t bytes = x->entries->used;
    if (x->head == NULL || list_has_room(x->op.list, x->head, bytes)) {
        return true;
    }
    if (x->op.list->head_full) {
        metric_inc(e->metrics, METRIC_list_log_full);
        cas_fail(e, x, LIST_LOG_FULL);
        return false;
    }
    TAILQ_FOREACH(call, &x->calls, link)
    {
        call->room_bytes = bytes;
    }
    cas_give_back(e, x);
    return false;
}

void cas_emit_entries(struct engine *e, struct op_cas *x)
{
    struct block *value =
        head_with_entries(x->head, slice_make(x->entries->data, x->entries->used));
    emit_cas(e, &x->op, x->head, value, TAG_CAS_WRITE);
    block_unref(&value);
}

/* True when the write's reply settles the calls; else another writer was faster. */
static bool settled(struct engine *e, struct op_cas *x, const struct op_event *event)
{
    x->sent = false;
    if (event->status == BE_STORED) {
        x->kind->stored(e, x);
        return true;
    }
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND ||
        (event->status == BE_NOT_STORED && x->tries < x->kind->tries_max / 2)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    if (x->kind->gives_back && event->status != BE_LOST) {
        return true;
    }
    if (op_found_no_memory(event) || event->status == BE_NOT_STORED) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        cas_fail(e, x, "backend out of memory, nothing done");
        return true;
    }
    op_error_text(event, x->error);
    cas_fail(e, x, x->error);
    return true;
}

static bool goes_on(const struct op_cas *x)
{
    return x->tries < x->kind->tries_max && (x->kind->carries_none || !TAILQ_EMPTY(&x->calls));
}

/* Is what was read no head, because the server did not say? */
static bool read_failed(struct engine *e, struct op_cas *x, const struct op_event *event)
{
    x->got = op_take_head(e, &x->op, event, &x->head, x->error);
    if (x->got == GOT_ERROR && !x->kind->gives_back) {
        cas_fail(e, x, x->error);
    }
    return x->got == GOT_ERROR;
}

enum progress cas_step(struct engine *e, struct op_cas *x, const struct op_event *event)
{
    struct co *co = &x->op.co;
    CO_BEGIN(co);
    for (x->tries = 0; goes_on(x); x->tries++) {
        if (x->tries > 0 && x->kind->pause_us > 0 && x->decision != CAS_AT_ONCE) {
            CO_SLEEP(&x->op, co, x->kind->pausing,
                     op_backoff_end_us(e, x->kind->pause_us, x->tries));
        }
        if (x->tries > 0) {
            head_unref(&x->head);
            forget_decisions(x);
        }
        emit_get(e, &x->op, TAG_CAS_GET);
        CO_AWAIT(co, x->kind->reading);
        if (read_failed(e, x, event)) {
            break;
        }
        CO_CALL(co, x->kind->decide(e, x, event));
        if (x->decision == CAS_ENDS) {
            break;
        }
        if (x->decision != CAS_WRITES) {
            continue;
        }
        x->sent = true;
        CO_AWAIT(co, x->writing);
        if (settled(e, x, event)) {
            break;
        }
    }
    if (!TAILQ_EMPTY(&x->calls) && !x->kind->gives_back) {
        metric_inc(e->metrics, METRIC_list_busy);
        cas_fail(e, x, x->busy);
    }
    CO_END(co);
}

static enum progress step_alone(struct engine *e, struct op *op, const struct op_event *event)
{
    return cas_step(e, (struct op_cas *)op, event);
}

static enum list_known cas_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_cas *x = (struct op_cas *)op;
    if (x->kind->let_go != NULL) {
        x->kind->let_go(x, call);
    }
    TAILQ_REMOVE(&x->calls, call, link);
    if (x->sent) {
        return KNOWN_UNKNOWN;
    }
    if (TAILQ_EMPTY(&x->calls)) {
        op_abort(e, op);
    }
    return KNOWN_NOTHING;
}

static void cas_fini(struct engine *e, struct op *op)
{
    struct op_cas *x = (struct op_cas *)op;
    if (x->kind->fini != NULL) {
        x->kind->fini(e, x);
    }
    head_unref(&x->head);
    block_unref(&x->entries);
}

void *cas_create(struct engine *e, struct list *list, struct op **place, size_t size,
                 const struct cas_kind *kind, op_step *step)
{
    struct op_cas *x = op_create(e, list, size, step != NULL ? step : step_alone, cas_fini);
    x->op.let_go = cas_let_go;
    x->kind = kind;
    x->busy = "busy, nothing done: other writers were faster each time";
    TAILQ_INIT(&x->calls);
    x->entries = block_new(BLOCK_BYTES);
    op_enter(&x->op, place);
    return x;
}

void cas_add(struct op_cas *x, struct list_call *call)
{
    call_enter(&x->op, &x->calls, call);
}
