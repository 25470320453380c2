/* SPDX-License-Identifier: BSD-3-Clause */
/* How operations let go of calls: they end, or wait in the list's queue again. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "list/core/deadline.h"
#include "list/core/engine_state.h"
#include "list/core/inner.h"

void calls_give_back(struct engine *e, struct list *list, struct call_queue *calls)
{
    struct list_call *call;
    while ((call = TAILQ_LAST(calls, call_queue)) != NULL) {
        TAILQ_REMOVE(calls, call, link);
        call_leave(call);
        TAILQ_REMOVE(&list->active, call, active);
        TAILQ_INSERT_HEAD(&list->queue, call, link);
    }
    lists_mark_ready(&e->lists, list);
}

void call_finish(struct engine *e, struct list *list, struct list_call *call,
                 enum list_status status)
{
    if (call->ghost) {
        free(call);
        return;
    }
    if (call->inner != NULL) {
        inner_finish(e, list, call, status);
        return;
    }
    deadline_stop(call);
    call_leave(call);
    TAILQ_REMOVE(&list->active, call, active);
    if (call->session->joint == call) {
        call->session->joint = NULL;
    }
    e->calls--;
    /* What the same session asked for next may have waited for this. */
    lists_mark_ready(&e->lists, list);
    call->status = status;
    TAILQ_INSERT_TAIL(&e->done, call, link);
}

void call_fail(struct engine *e, struct list *list, struct list_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->error, sizeof call->error, format, args);
    va_end(args);
    if (call->in_doubt) {
        char text[LIST_ERROR_MAX];
        memcpy(text, call->error, sizeof text);
        snprintf(call->error, sizeof call->error,
                 "outcome unknown: the list has moved to the native layout, and then: %.160s",
                 text);
    }
    call_finish(e, list, call, LIST_SERVER_ERROR);
}

void calls_fail(struct engine *e, struct list *list, struct call_queue *calls, const char *text)
{
    while (!TAILQ_EMPTY(calls)) {
        struct list_call *call = TAILQ_FIRST(calls);
        TAILQ_REMOVE(calls, call, link);
        call_fail(e, list, call, "%s", text);
    }
}
