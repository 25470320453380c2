/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/pass.h"

#include "list/core/deadline.h"

void pass_begin(struct pass *pass)
{
    struct list_call *call;
    pass->e->session_mark++;
    TAILQ_FOREACH(call, &pass->list->active, active)
    {
        /* A read under way may have to begin again on a newer head: a later one must not be
         * answered from an older. */
        pass_set_phase(pass, call, PHASE_BLOCKED);
    }
}

void pass_activate(const struct pass *pass, struct list_call *call)
{
    TAILQ_REMOVE(&pass->list->queue, call, link);
    TAILQ_INSERT_TAIL(&pass->list->active, call, active);
}

static void defer(struct list_call *call)
{
    deadline_stop(call);
    session_defer(call);
}

void pass_defer(const struct pass *pass, struct list_call *call)
{
    defer(call);
    pass_set_phase(pass, call, PHASE_DEFERRED);
}

/* The time of a deferred call begins when the client lets it go on. */
static void release(const struct pass *pass, struct list_call *call)
{
    if (call->deferred) {
        session_release(call);
        deadline_renew(pass->e, call);
    }
}

static void consider(struct pass *pass, struct list_call *call)
{
    release(pass, call);
    if (call->session->gone && list_verb_reads(call->verb)) {
        pass_activate(pass, call);
        call_finish(pass->e, pass->list, call, LIST_SERVER_ERROR); /* its client is gone */
    } else if (pass_phase(pass, call) == PHASE_DEFERRED) {
        defer(call);
    } else if (!pass->take(pass, call) && !call->deferred) {
        pass_set_phase(pass, call, PHASE_BLOCKED);
    }
}

void pass_queue(struct pass *pass)
{
    for (struct list_call *call = TAILQ_FIRST(&pass->list->queue), *next; call != NULL;
         call = next) {
        next = TAILQ_NEXT(call, link);
        consider(pass, call);
    }
}

void pass_defer_large(struct engine *e, struct list *list, struct call_queue *reads)
{
    struct pass pass = {.e = e, .list = list};
    struct list_call *call, *next, *last_back = NULL;
    e->session_mark++;
    for (call = TAILQ_FIRST(reads); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (pass_phase(&pass, call) != PHASE_DEFERRED && session_admit(call, list->extent)) {
            continue;
        }
        session_discharge(call);
        pass_defer(&pass, call);
        TAILQ_REMOVE(reads, call, link);
        call_leave(call);
        TAILQ_REMOVE(&list->active, call, active);
        if (last_back == NULL) {
            TAILQ_INSERT_HEAD(&list->queue, call, link);
        } else {
            TAILQ_INSERT_AFTER(&list->queue, last_back, call, link);
        }
        last_back = call;
    }
}
