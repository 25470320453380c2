/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists in one item, changed by read, decide, CAS. At a conflict, another client has written: the
 * operation reads again after a pause, which grows slowly, and ends with "busy" some time before
 * its deadline. Pauses help against others that try the same; against clients that append all the
 * time only further tries do.
 */
#include "dialect/single/single.h"

#include <stdio.h>

#include "base/array.h"
#include "base/number.h"
#include "dialect/shared/foreign.h"
#include "list/core/answer.h"

/* It tries so often at least, however near the deadline is, and where there is none. */
#define TRIES_MIN 64
/* The pause is twice as long after so many tries, and at most 2^6 times the first one. */
#define TRIES_PER_STEP 4
#define STEPS_MAX 6

void single_cells(struct work *w)
{
    (void)work_add_cell(w, CELL_KEY, 0);
}

/* Adds or deletes the call's items. Returns how many that changed. */
static uint64_t apply_items(struct items *items, const struct list_call *call)
{
    uint64_t changed = 0;
    for (size_t i = 0; i < call->item_count; i++) {
        bool deletes = call->verb == LIST_DELX || list_call_deletes(call, i);
        if (items_have(items, call->items[i]) == deletes) {
            items_change(items, deletes ? ENTRY_DEL : ENTRY_ADD, call->items[i]);
            changed++;
        }
    }
    return changed;
}

/* Do items hold the delimiter that are in the list by now, behind the calls in front? */
static bool delimiter_within(const struct work *w)
{
    uint32_t at = 0;
    struct slice item;
    while (fold_next_item(&w->items.fold, ENTRY_NEVER_OVER, &at, &item)) {
        if (foreign_holds_delimiter(w->op.list, item)) {
            return true;
        }
    }
    return false;
}

/* lpop: takes items off one end, as many as an answer holds. Returns how many. */
static uint64_t pop_items(struct work *w, struct list_call *call)
{
    struct fold *fold = &w->items.fold;
    uint64_t wanted = call->count < 0 ? 0 - (uint64_t)call->count : (uint64_t)call->count;
    uint64_t most = w->op.list->policy->max_answer_bytes;
    uint32_t at = call->count < 0 ? fold->count : 0;
    struct slice item, *taken = NULL;
    size_t count = 0, cap = 0;
    chain_clear(&call->answer); /* of a try that met another writer */
    call->number = 0;
    if (call->ghost) {
        return 0; /* no client waits for the items any more */
    }
    if (call->form == LIST_FORM_JOINED && delimiter_within(w)) {
        call->status = LIST_SERVER_ERROR;
        snprintf(call->error, sizeof call->error, "%s", foreign_delimiter_text);
        return 0;
    }
    while (count < wanted && (count == 0 || call->answer.bytes < most) &&
           (call->count < 0 ? fold_previous(fold, ENTRY_NEVER_OVER, &at, &item)
                            : fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item))) {
        answer_member(w->op.list, call, item);
        taken = array_room(taken, count, &cap, sizeof *taken);
        taken[count++] = item;
    }
    for (size_t i = 0; i < count; i++) {
        items_change(&w->items, ENTRY_DEL, taken[i]);
    }
    free(taken);
    return count;
}

static bool is_empty(const struct fold *fold)
{
    uint32_t at = 0;
    struct slice item;
    return !fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item);
}

/* What the call's condition says of the list: LIST_OK when it is met. changes: a call before it, in
 * the same write, has changed the list, which then has another version than any that was answered.
 */
static enum list_status met(const struct work *w, const struct list_call *call, bool changes)
{
    const struct cell *cell = &w->cells[0];
    bool empty = is_empty(&w->items.fold);
    switch (call->verb == LIST_CREATE ? LIST_IF_MISSING : call->condition) {
    case LIST_IF_MISSING:
        return empty ? LIST_OK : LIST_NOT_STORED;
    case LIST_IF_PRESENT:
        return empty ? LIST_NOT_STORED : LIST_OK;
    case LIST_IF_VERSION:
        return empty                                                               ? LIST_MISSING
               : changes || head_version(cell->cas, cell->value) != call->expected ? LIST_EXISTS
                                                                                   : LIST_OK;
    default:
        return LIST_OK;
    }
}

/* An addition that an lpurge has to see: it trusts that each of them changes the stored item, also
 * that of a name which is in the list already. */
static bool must_show(const struct work *w, const struct list_call *call)
{
    return call->verb == LIST_ADD && call->item_count > 0 && !list_migrates(w->op.list);
}

/* Applies the calls to what was found, one after the other. True: something has to be written. */
static bool apply_calls(struct work *w)
{
    struct list_call *call;
    bool changes = false;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        bool conditional = call->verb == LIST_CREATE || call->verb == LIST_SET;
        call->status = conditional ? met(w, call, changes) : LIST_OK;
        if (call->status != LIST_OK) {
            continue;
        }
        if (call->verb == LIST_SET) {
            items_change(&w->items, ENTRY_CLEAR, SLICE_NONE);
            changes = true;
        }
        call->number = call->verb == LIST_POP ? pop_items(w, call) : apply_items(&w->items, call);
        changes = changes || call->number > 0 || must_show(w, call);
    }
    return changes;
}

static void finish_calls(struct engine *e, struct work *w)
{
    while (!TAILQ_EMPTY(&w->calls)) {
        work_finish_first(e, w, TAILQ_FIRST(&w->calls)->status);
    }
}

/* An lset may bring a time to live: with the content in one step, so that neither comes alone. */
static struct life life_of_calls(const struct work *w)
{
    const struct cell *cell = &w->cells[0];
    const struct list_call *call;
    struct life life =
        cell->state == CELL_THERE ? life_kept(cell->ttl_s) : life_new(w->op.list->policy);
    TAILQ_FOREACH(call, &w->calls, link)
    {
        if (call->verb == LIST_SET && call->has_exptime && call->status == LIST_OK) {
            life = life_given(call->exptime);
        }
    }
    return life;
}

void single_send(struct engine *e, struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    struct life life = life_of_calls(w);
    struct block *value = block_new(w->stored_bytes + w->call_bytes + 16);
    dialect_of(w->op.list)->encode(policy, &w->items.fold, &value);
    cell_write_for(e, &w->op, &w->cells[0], &life, value, 0);
    block_unref(&value);
}

/* Sends the one write that follows from what was read. False: there is none; the answers are as of
 * the read. */
typedef bool send_write(struct engine *e, struct work *w);

static uint64_t pause_us(struct engine *e, const struct work *w)
{
    uint64_t steps = u64_least(w->tries / TRIES_PER_STEP, STEPS_MAX);
    return 1 + rng_below(e->rng, WORK_BACKOFF_US << steps);
}

/* Other writers' appends need no look, so they may be faster any number of times: the operation
 * tries for most of the time that its client grants. What it tries then is answered before that is
 * over. An lcompact has more time than that is worth. */
static bool tries_again(const struct engine *e, const struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    if (w->tries < TRIES_MIN) {
        return true;
    }
    return call != NULL && !list_verb_has(call->verb, LIST_LONG) &&
           call->deadline_us > e->now.mono_us + call->time_us / 4;
}

static enum progress write_as_read(struct engine *e, struct work *w, const struct op_event *event,
                                   send_write *send, const char *waiting)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->tries = 0;
    for (;;) {
        CO_CALL(co, work_look(e, w, event));
        if (w->failed || !send(e, w)) {
            break;
        }
        CO_AWAIT(co, waiting);
        if (work_written(e, w, event)) {
            w->wrote_any = !w->failed;
            break;
        }
        w->tries++;
        if (!tries_again(e, w)) {
            work_note_busy(e, w);
            break;
        }
        CO_SLEEP(&w->op, co, "backing off after a conflict", e->now.mono_us + pause_us(e, w));
    }
    if (w->failed) {
        work_fail(e, w, w->error);
    } else {
        finish_calls(e, w);
    }
    CO_END(co);
}

static bool send_exact(struct engine *e, struct work *w)
{
    if (!apply_calls(w)) {
        return false;
    }
    single_send(e, w);
    return true;
}

enum progress single_exact(struct engine *e, struct work *w, const struct op_event *event)
{
    return write_as_read(e, w, event, send_exact, "writing the list");
}

/* Unchanged bytes with the new time: a touch by memcached would be undone by a proxy that has read
 * the list before, and is about to write it. */
static bool send_touched(struct engine *e, struct work *w)
{
    struct list_call *call = TAILQ_FIRST(&w->calls);
    const struct cell *cell = &w->cells[0];
    if (w->items.count == 0) {
        call->status = LIST_MISSING;
        return false;
    }
    call->status = LIST_OK;
    struct life life = life_given(call->exptime);
    struct block *value = block_new(cell->value.len);
    block_append(&value, cell->value.p, cell->value.len);
    cell_write_for(e, &w->op, cell, &life, value, 0);
    block_unref(&value);
    return true;
}

enum progress single_touch(struct engine *e, struct work *w, const struct op_event *event)
{
    return write_as_read(e, w, event, send_touched, "writing the list with another time");
}

static bool send_folded(struct engine *e, struct work *w)
{
    if (w->can_shrink) {
        single_send(e, w);
    }
    return w->can_shrink;
}

enum progress single_compact(struct engine *e, struct work *w, const struct op_event *event)
{
    enum progress progress = write_as_read(e, w, event, send_folded, "writing the folded list");
    if (progress == PROGRESS_DONE && w->wrote_any) {
        metric_inc(e->metrics, METRIC_list_folds);
    }
    return progress;
}

enum progress single_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->append.target = (struct cell){.role = CELL_KEY};
    dialect_of(w->op.list)->batch(w);
    CO_CALL(co, work_append(e, w, event));
    if (w->append.status == BE_TOO_LARGE) {
        /* It may fit when it is folded. */
        CO_CALL(co, single_exact(e, w, event));
    } else if (w->failed) {
        work_fail(e, w, w->error);
    } else {
        dialect_appended(e, w->op.list, w->append.value->used);
        work_finish(e, w);
    }
    CO_END(co);
}

static bool send_removal(struct engine *e, struct work *w)
{
    cell_remove(e, &w->op, &w->cells[0]);
    return true;
}

/* Removes a list that may move as it was read, or not at all: a record of a move must stay. */
enum progress single_remove(struct engine *e, struct work *w, const struct op_event *event)
{
    return write_as_read(e, w, event, send_removal, "removing the list");
}
