/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/number.h"
#include "dialect/shared/dialect.h"
#include "list/core/engine_state.h"

/* ---- items ---- */

void items_push(struct items *items, struct slice item)
{
    items->at = array_room(items->at, items->count, &items->cap, sizeof *items->at);
    items->at[items->count++] = item;
    items->bytes += item.len;
}

void items_settle(struct items *items)
{
    uint32_t at = 0;
    struct slice item;
    items->count = 0;
    items->bytes = 0;
    while (fold_next_item(&items->fold, ENTRY_NEVER_OVER, &at, &item)) {
        items_push(items, item);
    }
}

void items_change(struct items *items, enum entry_op op, struct slice item)
{
    fold_apply(&items->fold, op, item);
    items->count = 0;
    items->bytes = 0;
}

/* ---- calls ---- */

/* Keeps copies of the items: what is written is made of slices of them, and may be written after
 * the call's deadline. */
static void keep_items(struct work *w, struct list_call *call)
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

void work_add(struct work *w, struct list_call *call)
{
    call_enter(&w->op, &w->calls, call);
    if (w->lane != LANE_READ && call->item_count > 0) {
        keep_items(w, call);
    }
    for (size_t i = 0; i < call->item_count; i++) {
        w->call_bytes += entry_bytes(call->items[i].len);
    }
}

/* What was written beside a list that has moved meanwhile does not count. A single item is written
 * by CAS, which says so itself. */
static bool is_in_doubt(const struct work *w)
{
    const struct list *list = w->op.list;
    return list_migrates(list) && !dialect_of(list)->one_item;
}

void work_finish_first(struct engine *e, struct work *w, enum list_status status)
{
    struct list_call *call = TAILQ_FIRST(&w->calls);
    TAILQ_REMOVE(&w->calls, call, link);
    if (is_in_doubt(w)) {
        call->status = status;
        TAILQ_INSERT_TAIL(&w->written, call, link);
    } else {
        call_finish(e, w->op.list, call, status);
    }
}

void work_finish(struct engine *e, struct work *w)
{
    while (!TAILQ_EMPTY(&w->calls)) {
        work_finish_first(e, w, LIST_OK);
    }
}

/* Puts the calls back into the queue, in front; the list is looked for anew. */
static void requeue(struct engine *e, struct work *w, struct call_queue *calls, bool in_doubt)
{
    struct list *list = w->op.list;
    struct list_call *next;
    for (struct list_call *call = TAILQ_FIRST(calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        call->in_doubt = call->in_doubt || in_doubt;
        if (call->ghost) {
            TAILQ_REMOVE(calls, call, link);
            free(call);
        }
    }
    calls_give_back(e, list, calls);
    known_of(list)->kept = KEPT_UNKNOWN;
    list->is_native = false;
    dialect_forget(list);
}

void work_fail(struct engine *e, struct work *w, const char *text)
{
    if (w->moved) {
        requeue(e, w, &w->calls, w->wrote_any);
    } else {
        calls_fail(e, w->op.list, &w->calls, text);
    }
}

void work_end(struct engine *e, struct work *w)
{
    if (w->failed) {
        work_fail(e, w, w->error);
    } else {
        work_finish(e, w);
    }
}

void work_note_busy(struct engine *e, struct work *w)
{
    metric_inc(e->metrics, METRIC_list_busy);
    work_note_text(w, "busy, nothing done: other writers were faster each time");
}

void work_note_no_room(struct work *w)
{
    work_note_text(w, "backend has no room for this list in one item, nothing done");
}

void work_note_error(struct work *w, const struct op_event *event)
{
    w->failed = true;
    if (event->status == BE_TOO_LARGE || event->status == BE_NO_MEMORY) {
        work_note_no_room(w);
    } else {
        op_error_text(event, w->error);
    }
}

void work_note_unknown(struct work *w)
{
    static const char unknown[] = ", outcome unknown";
    static const char *const claims[] = {", nothing done", ", not sent"};
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        char *claim = strstr(w->error, claims[i]);
        if (claim != NULL) {
            *claim = '\0';
        }
    }
    size_t len = strlen(w->error), most = sizeof w->error - sizeof unknown;
    if (strstr(w->error, "outcome unknown") == NULL) {
        len = len < most ? len : most;
        memcpy(w->error + len, unknown, sizeof unknown);
    }
}

void work_note_text(struct work *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(w->error, sizeof w->error, format, args);
    va_end(args);
    w->failed = true;
}

bool work_written(struct engine *e, struct work *w, const struct op_event *event)
{
    if (write_was_refused(event->status)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    if (event->status != BE_STORED) {
        work_note_error(w, event);
    }
    return true;
}

enum progress work_try(struct engine *e, struct work *w, const struct op_event *event,
                       work_step *once, unsigned tries_max, unsigned rounds_max)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->rounds = w->conflicts = 0;
    do {
        if (w->rounds++ > 0 && w->conflict) {
            CO_SLEEP(&w->op, co, "backing off after a conflict",
                     op_backoff_end_us(e, WORK_BACKOFF_US, w->tries + w->conflicts));
        }
        w->conflict = w->goes_on = false;
        CO_CALL(co, work_look(e, w, event));
        if (!w->failed) {
            CO_CALL(co, once(e, w, event));
        }
        w->conflicts += w->conflict;
    } while (!w->failed && (w->conflict || w->goes_on) && w->conflicts < tries_max &&
             w->rounds != rounds_max);
    CO_END(co);
}

/* ---- calls whose deadline passes while they are at work ----
 *
 * One written text often holds the items of several calls, so a change stays in it as a ghost: a
 * copy of the call that is carried out, and whose answer goes to no client.
 */

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

/* The operation's late. */
static enum list_known work_let_go(struct engine *e, struct op *op, struct list_call *call)
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

/* Frees ghosts that were not carried out. */
static void work_free_ghosts(struct work *w)
{
    free_ghosts(&w->calls);
    free_ghosts(&w->written);
}

/* ---- the operation ---- */

static void finish_written(struct engine *e, struct work *w)
{
    struct list_call *call;
    if (w->moved) {
        requeue(e, w, &w->written, true);
    }
    while ((call = TAILQ_FIRST(&w->written)) != NULL) {
        TAILQ_REMOVE(&w->written, call, link);
        if (w->failed) {
            work_note_unknown(w);
            call_fail(e, w->op.list, call, "%s", w->error);
        } else {
            call_finish(e, w->op.list, call, call->status);
        }
    }
}

/* May it have written beside a list that has moved meanwhile? */
static bool has_written(const struct work *w)
{
    const struct migration *migration = migration_of(w->op.list);
    return is_in_doubt(w) && w->lane != LANE_READ && w->run != migration->resolve &&
           w->run != migration->convert;
}

static enum progress work_step_all(struct engine *e, struct op *op, const struct op_event *event)
{
    struct work *w = (struct work *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    CO_CALL(co, w->run(e, w, event));
    CHECK(TAILQ_EMPTY(&w->calls));
    if (has_written(w)) {
        CO_CALL(co, migration_of(op->list)->verify(e, w, event));
        finish_written(e, w);
        if (w->moved && !w->met_record) {
            CO_CALL(co, migration_of(op->list)->clean(e, w, event));
        }
    }
    CO_END(co);
}

static void work_fini(struct engine *e, struct op *op)
{
    struct work *w = (struct work *)op;
    (void)e;
    work_free_ghosts(w);
    arena_fini(&w->kept);
    work_forget_cells(w);
    work_forget_texts(w);
    fold_fini(&w->items.fold);
    append_fini(&w->append);
    if (dialect_of(op->list)->work_fini != NULL) {
        dialect_of(op->list)->work_fini(w);
    }
    if (w->move != NULL) {
        migration_of(op->list)->fini(w);
    }
    free(w->items.at);
    free(w->cells);
}

static size_t aligned(size_t bytes)
{
    size_t to = _Alignof(max_align_t);
    return (bytes + to - 1) / to * to;
}

/* The operation, behind it the dialect's own state, and that of a list that may move. */
struct work *work_create(struct engine *e, struct list *list, enum lane lane, work_step *run)
{
    const struct dialect *dialect = dialect_of(list);
    const struct migration *migration = migration_of(list);
    size_t own = aligned(sizeof(struct work)), move = own + aligned(dialect->work_bytes);
    size_t bytes = move + (migration != NULL ? migration->work_bytes : 0);
    struct work *w = op_create(e, list, bytes, work_step_all, work_fini);
    w->own = (char *)w + own;
    if (migration != NULL) {
        w->move = (struct move *)((char *)w + move);
        migration->init(w);
    }
    w->lane = lane;
    w->run = run;
    w->op.let_go = work_let_go;
    arena_init(&w->kept);
    TAILQ_INIT(&w->calls);
    TAILQ_INIT(&w->written);
    fold_init(&w->items.fold);
    op_enter(&w->op, lane == LANE_READ ? &list->reader : &list->writer);
    return w;
}
