/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/inner.h"

#include <stdlib.h>

#include "base/memory.h"
#include "list/core/engine_state.h"

struct inner *inner_new(struct engine *e, struct op *op, struct list *list, enum list_verb verb)
{
    struct inner *inner = calloc(1, sizeof *inner);
    CHECK(inner != NULL);
    memory_take(sizeof *inner);
    inner->op = op;
    inner->call.verb = verb;
    inner->call.form = LIST_FORM_JOINED;
    inner->call.key = list_key(list);
    inner->call.policy = list->policy;
    inner->call.session = &inner->session;
    inner->call.list = list;
    inner->call.inner = inner;
    chain_init(&inner->call.answer);
    TAILQ_INIT(&inner->session.deferred);
    fold_init(&inner->items);
    TAILQ_INSERT_TAIL(&e->inners, inner, all);
    return inner;
}

static void inner_free(struct engine *e, struct inner *inner)
{
    TAILQ_REMOVE(&e->inners, inner, all);
    head_unref(&inner->head);
    fold_fini(&inner->items);
    chain_fini(&inner->call.answer);
    memory_give(sizeof *inner);
    free(inner);
}

/* Takes it out of where it waits, as at a deadline. */
static void let_go(struct engine *e, struct list_call *call)
{
    struct list *list = call->list;
    struct op *op = call->op;
    if (op == NULL) {
        TAILQ_REMOVE(&list->queue, call, link);
        return;
    }
    (void)op->let_go(e, op, call);
    TAILQ_REMOVE(&list->active, call, active);
    lists_mark_ready(&e->lists, list);
}

void inner_drop(struct engine *e, struct inner **slot)
{
    struct inner *inner = *slot;
    *slot = NULL;
    if (inner == NULL || e->is_dropped) {
        return; /* inners_fini does it: what carries it may be gone */
    }
    if (!inner->done) {
        let_go(e, &inner->call);
    }
    inner_free(e, inner);
}

void inner_look(struct engine *e, struct inner *inner, struct list *list)
{
    inner->looks = true;
    TAILQ_INSERT_TAIL(&list->queue, &inner->call, link);
    lists_mark_ready(&e->lists, list);
}

void inner_finish(struct engine *e, struct list *list, struct list_call *call,
                  enum list_status status)
{
    struct inner *inner = call->inner;
    call_leave(call);
    TAILQ_REMOVE(&list->active, call, active);
    lists_mark_ready(&e->lists, list);
    call->status = status;
    inner->done = true;
    op_wake(e, inner->op);
}

void inners_fini(struct engine *e)
{
    while (!TAILQ_EMPTY(&e->inners)) {
        inner_free(e, TAILQ_FIRST(&e->inners));
    }
}
