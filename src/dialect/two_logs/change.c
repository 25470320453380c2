/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing: the entries of calls are appended to the active log. */
#include "dialect/shared/foreign.h"
#include "dialect/two_logs/two_logs.h"

static void aim(struct work *w, int which, bool may_create)
{
    struct append *a = &w->append;
    cell_forget(&a->target);
    a->target = (struct cell){.role = two_logs_role(which)};
    a->only_there = !may_create;
}

/* The log that was known is gone: looks for the active one, and creates it if need be. */
static enum progress append_after_look(struct engine *e, struct work *w,
                                       const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_look(e, w, event));
    if (w->failed || (w->append.create == NULL && w->stored_bytes == 0)) {
        CO_RETURN(co); /* deleting from nothing */
    }
    if (two_logs_wants_pointer(w)) {
        two_logs_write_pointer(e, w, two_logs_own(w)->active);
        CO_AWAIT(co, "writing which log is active");
        w->conflict = !work_written(e, w, event);
        if (w->failed || w->conflict) {
            CO_RETURN(co);
        }
    }
    if (w->append.create == NULL && w->cells[two_logs_own(w)->active].state != CELL_THERE) {
        w->append.create = block_ref(w->append.value); /* what it deletes is in the other log */
    }
    /* A log that was found may be gone by now: then another one is active. */
    aim(w, two_logs_own(w)->active, w->cells[two_logs_own(w)->active].state != CELL_THERE);
    CO_CALL(co, work_append(e, w, event));
    w->conflict = !w->failed && w->append.status == BE_MISS && w->append.only_there;
    CO_END(co);
}

/* Ends with append.status, conflict or failed. */
static enum progress change_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct two_logs_list *list = two_logs_list(w->op.list);
    CO_BEGIN(co);
    w->failed = w->conflict = false;
    w->append.status = BE_MISS;
    if (two_logs_have_pointer(w->op.list)) {
        /* The pointer is small, and read before each append, as clients by hand do. Without one, a
         * closed log is noticed when it is gone. */
        cell_send(e, &w->op, &(struct cell){.role = CELL_ACTIVE}, BE_GET, NULL, 0);
        CO_AWAIT(co, "reading which log is active");
        list->active =
            event->status == BE_HIT ? two_logs_named(w->op.list, event->reply->value) : 0;
        if (!foreign_refuse_reply(e, w, CELL_ACTIVE, event->reply)) {
            CO_RETURN(co);
        }
    }
    if (list->active != 0) {
        aim(w, list->active - 1, false);
        CO_CALL(co, work_append(e, w, event));
    }
    if (!w->failed && w->append.status == BE_MISS) {
        CO_CALL(co, append_after_look(e, w, event));
    }
    CO_END(co);
}

static bool deletes(const struct work *w)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            if (list_call_deletes(call, i)) {
                return true;
            }
        }
    }
    return false;
}

enum progress two_logs_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    signed_batch(w);
    for (w->tries = 0; w->tries < WORK_TRIES_MAX; w->tries++) {
        CO_CALL(co, change_once(e, w, event));
        if (!w->failed && w->append.status == BE_TOO_LARGE && !two_logs_own(w)->folded) {
            /* It may fit when it is folded. Deletions make room: they do not wait for it. */
            two_logs_own(w)->folded = true;
            two_logs_own(w)->in_place = deletes(w);
            CO_CALL(co, two_logs_fold(e, w, event));
            w->conflict = !TAILQ_EMPTY(&w->calls);
        }
        if (w->failed || !w->conflict) {
            break;
        }
    }
    bool is_done = w->failed || TAILQ_EMPTY(&w->calls);
    if (!is_done && w->tries == WORK_TRIES_MAX) {
        work_note_text(w, "busy, nothing done: other writers were faster each time");
    } else if (!is_done && w->append.status == BE_TOO_LARGE) {
        work_note_no_room(w);
    }
    if (!w->failed) {
        dialect_appended(e, w->op.list, w->append.value->used);
    }
    work_end(e, w);
    CO_END(co);
}
