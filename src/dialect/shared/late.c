/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls whose deadline passes while they are at work. One written text often holds the items of
 * several calls, so a change stays in it as a ghost: a copy of the call that is carried out, and
 * whose answer goes to no client.
 */
#include <stdlib.h>

#include "dialect/shared/dialect.h"
#include "list/core/engine_state.h"

/* Keeps copies of the items: what is written is made of slices of them, and may be written after
 * the call's deadline. */
void work_keep_items(struct work *w, struct list_call *call)
{
    struct slice *items = arena_alloc(&w->kept, call->item_count * sizeof *items);
    for (size_t i = 0; i < call->item_count; i++) {
        items[i] = arena_copy(&w->kept, call->items[i]);
    }
    call->given_items = call->items;
    call->given_ops = call->ops;
    call->items = items;
    if (call->ops != NULL) {
        struct slice ops = arena_copy(&w->kept, slice_make(call->ops, call->item_count));
        call->ops = ops.p;
    }
}

static bool is_among(const struct call_queue *calls, const struct list_call *call)
{
    const struct list_call *other;
    TAILQ_FOREACH(other, calls, link)
    {
        if (other == call) {
            return true;
        }
    }
    return false;
}

/* Puts a ghost in the call's place: what the call asks for may be written already, together with
 * other calls' items. */
static void leave_ghost(struct engine *e, struct work *w, struct list_call *call)
{
    struct call_queue *queue = is_among(&w->calls, call) ? &w->calls : &w->written;
    struct list_call *ghost = malloc(sizeof *ghost);
    CHECK(ghost != NULL);
    *ghost = *call;
    ghost->ghost = true;
    ghost->session = &e->ghosts;
    ghost->key = list_key(w->op.list);
    ghost->due_in = NULL;
    ghost->given_items = NULL;
    ghost->given_ops = NULL;
    chain_init(&ghost->answer);
    const struct dialect *dialect = dialect_of(w->op.list);
    if (dialect->replace_call != NULL) {
        dialect->replace_call(w, call, ghost);
    }
    TAILQ_INSERT_AFTER(queue, call, ghost, link);
    TAILQ_REMOVE(queue, call, link);
}

enum list_known work_late(struct engine *e, struct op *op, struct list_call *call)
{
    struct work *w = (struct work *)op;
    bool only = call == TAILQ_FIRST(&w->calls) && TAILQ_NEXT(call, link) == NULL;
    if (w->lane == LANE_READ || (only && !op->has_written)) {
        TAILQ_REMOVE(&w->calls, call, link);
        if (TAILQ_EMPTY(&w->calls)) {
            op_abort(e, op);
        }
        return KNOWN_NOTHING;
    }
    leave_ghost(e, w, call);
    return call->verb == LIST_COMPACT ? KNOWN_NOTHING : KNOWN_UNKNOWN;
}

static void free_ghosts(struct call_queue *calls)
{
    struct list_call *call, *next;
    for (call = TAILQ_FIRST(calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (call->ghost) {
            TAILQ_REMOVE(calls, call, link);
            free(call);
        }
    }
}

void work_free_ghosts(struct work *w)
{
    free_ghosts(&w->calls);
    free_ghosts(&w->written);
}
