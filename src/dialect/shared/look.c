/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a list of a dialect: reads its cells, and asks the dialect what they amount to.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "dialect/shared/dialect.h"
#include "dialect/shared/foreign.h"
#include "dialect/shared/record.h"

/* How many cells are asked for at the same time: more than most lists have, and a bounded amount of
 * memory in flight. */
#define CELLS_INFLIGHT_MAX 1024
/* How often a read is repeated whose answer was lost. */
#define GET_TRIES_MAX 3
/* How often a look is repeated that met a change half done; */
#define LOOK_TRIES_MAX 16
/* after so many looks with pauses in between. */
#define LOOKS_AT_ONCE 4

static void items_reset(struct items *items)
{
    fold_fini(&items->fold);
    fold_init(&items->fold);
    items->count = 0;
    items->bytes = 0;
}

struct cell *work_add_cell(struct work *w, enum cell_role role, uint32_t number)
{
    w->cells = array_room(w->cells, w->cell_count, &w->cell_cap, sizeof *w->cells);
    struct cell *cell = &w->cells[w->cell_count++];
    *cell = (struct cell){.role = role, .number = number, .ttl_s = -1};
    return cell;
}

void work_forget_cells(struct work *w)
{
    for (size_t i = 0; i < w->cell_count; i++) {
        cell_forget(&w->cells[i]);
    }
    w->cell_count = 0;
    w->read_bytes = 0;
    w->next_cell = w->first_cell = 0;
    w->get_tries = 0;
    items_reset(&w->items);
}

void work_forget_texts(struct work *w)
{
    for (size_t i = 0; i < w->text_count; i++) {
        block_unref(&w->texts[i]);
    }
    free(w->texts);
    w->texts = NULL;
    w->text_count = 0;
}

static enum be_verb verb_for(const struct cell *cell)
{
    return cell->check || cell->bare ? BE_SIZE : BE_GET;
}

static void ask_for_cells(struct engine *e, struct work *w)
{
    while (!w->failed && w->next_cell < w->cell_count && w->op.due < CELLS_INFLIGHT_MAX) {
        size_t i = (w->next_cell++ + w->first_cell) % w->cell_count;
        struct cell *cell = &w->cells[i];
        if (cell->state == CELL_UNREAD || cell->check) {
            metric_inc(e->metrics, METRIC_list_part_reads);
            cell_send(e, &w->op, cell, verb_for(cell), NULL, i);
        }
    }
}

void work_unwrap(struct work *w, struct cell *cell)
{
    struct record record;
    if (list_migrates(w->op.list) && cell->state == CELL_THERE &&
        cell_has_own_key(w->op.list, cell->role) && record_parse(cell->value, &record)) {
        w->met_record = true;
        cell->value = record.before;
    }
}

/* A cell that has changed since it was read is read again. */
static void check_cell(struct work *w, struct cell *cell, const struct op_event *event)
{
    bool same = cell->state == CELL_THERE
                    ? event->status == BE_HIT && event->reply->cas == cell->cas
                    : event->status == BE_MISS;
    cell->check = false;
    if (!same) {
        cell_forget(cell);
        bool last = cell == &w->cells[w->cell_count - 1];
        w->changed_older = w->changed_older || !last;
        w->changed_last = w->changed_last || last;
    }
}

bool work_is_asked(const struct work *w, enum list_verb verb)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    return call != NULL && call->verb == verb;
}

bool work_finds_nothing_to_drop(const struct work *w)
{
    return work_is_asked(w, LIST_DROP) && w->items.count == 0 &&
           TAILQ_FIRST(&w->calls)->condition == LIST_IF_PRESENT;
}

bool work_drops_nothing(struct engine *e, struct work *w)
{
    if (!work_finds_nothing_to_drop(w) || w->failed ||
        w->read_bytes > w->op.list->policy->fold_memory_bytes) {
        return false;
    }
    for (size_t i = 0; i < w->cell_count; i++) {
        if (w->cells[i].foreign) {
            return false;
        }
    }
    work_finish_first(e, w, LIST_NOT_STORED);
    return true;
}

/* Does the operation not need what the list holds? A list that is too large to be read can be
 * dropped. */
static bool is_drop(const struct work *w)
{
    return work_is_asked(w, LIST_DROP);
}

static const char too_large[] = "list needs more than fold_memory_bytes to be read";

/* Keeps what was read until the work is done, up to fold_memory_bytes. */
static void keep_cell(struct work *w, struct cell *cell)
{
    w->read_bytes += cell->value.len;
    if (w->read_bytes <= w->op.list->policy->fold_memory_bytes) {
        return;
    }
    if (!is_drop(w)) {
        work_note_text(w, "%s", too_large);
    } else if (!cell_has_own_key(w->op.list, cell->role)) {
        block_unref(&cell->block);
        cell->value = SLICE_NONE;
    }
}

static void take_cell(struct engine *e, struct work *w, const struct op_event *event)
{
    struct cell *cell = &w->cells[event->tag];
    struct list *list = w->op.list;
    if (event->reply->caps != NULL) {
        list->item_size_max = event->reply->caps->item_size_max;
        list->no_times = list->no_times || event->reply->no_times;
        if (event->tag == 0) {
            list->head_server = event->reply->caps->server_name;
        }
    }
    bool answered = event->status == BE_HIT || event->status == BE_MISS;
    if (answered && cell->check) {
        check_cell(w, cell, event);
    } else if (answered) {
        cell_take(cell, event->reply);
        work_unwrap(w, cell);
        keep_cell(w, cell);
    } else if (event->status == BE_LOST && w->get_tries < GET_TRIES_MAX) {
        w->get_tries++;
        cell_send(e, &w->op, cell, verb_for(cell), NULL, event->tag);
    } else {
        w->failed = true;
        snprintf(w->error, sizeof w->error, "%s",
                 event->text != NULL ? event->text : "backend refused to read the list");
    }
}

enum progress work_gather(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    ask_for_cells(e, w);
    while (w->op.due > 0) {
        CO_AWAIT(co, "reading the list's items");
        take_cell(e, w, event);
        ask_for_cells(e, w);
    }
    if (w->failed) {
        foreign_look_back(w);
    }
    CO_END(co);
}

enum progress work_read(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_gather(e, w, event));
    if (!w->failed) {
        w->failed = !foreign_refuse_cells(e, w, 0, w->cell_count);
    }
    CO_END(co);
}

/* Is the list not there, or not there any more? */
static bool is_gone(const struct work *w)
{
    const struct dialect *dialect = dialect_of(w->op.list);
    if (dialect_keeps_key(w->op.list)) {
        return w->cells[0].state != CELL_THERE || w->met_record;
    }
    for (size_t i = 0; i < w->cell_count; i++) {
        if (w->cells[i].state == CELL_THERE && (dialect->essential & ROLE(w->cells[i].role)) != 0) {
            return false;
        }
    }
    return true;
}

static enum look look_at_cells(struct engine *e, struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct dialect *dialect = dialect_of(w->op.list);
    items_reset(&w->items);
    if (!dialect->look_proves && !foreign_refuse_cells(e, w, 0, w->cell_count)) {
        return LOOK_FAILED;
    }
    enum look look = dialect->look(e, w);
    if (look == LOOK_DONE && list_migrates(w->op.list) && !w->completing && is_gone(w)) {
        w->failed = w->moved = true;
        return LOOK_FAILED;
    }
    if (!is_drop(w) && fold_bytes(&w->items.fold) > policy->fold_memory_bytes) {
        work_note_text(w, "%s", too_large);
        return LOOK_FAILED;
    }
    return look;
}

static void note_extent(struct work *w)
{
    struct list *list = w->op.list;
    w->stored_bytes = 0;
    for (size_t i = 0; i < w->cell_count; i++) {
        w->stored_bytes += w->cells[i].value.len;
        if (!w->partial && !w->cells[i].foreign && !w->cells[i].bare) {
            foreign_note_known(list, &w->cells[i]);
            if (w->read_bytes <= list->policy->fold_memory_bytes) { /* else values were left out */
                closing_note_read(list, &w->cells[i]);
            }
        }
    }
    if (!w->partial) {
        list->extent = (struct list_extent){.bytes = w->stored_bytes, .items = w->items.count};
        list_note_size(list, w->stored_bytes);
    }
}

enum progress work_look(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    enum look look;
    CO_BEGIN(co);
    w->failed = w->met_record = w->moved = false;
    w->look_tries = 0;
    do {
        if (w->look_tries > LOOKS_AT_ONCE) {
            CO_SLEEP(&w->op, co, "waiting until others have written",
                     e->now.mono_us + 1 + rng_below(e->rng, WORK_BACKOFF_US << w->look_tries / 2));
        }
        work_forget_cells(w);
        dialect_of(w->op.list)->cells(w);
        do {
            CO_CALL(co, work_gather(e, w, event));
            look = w->failed ? LOOK_FAILED : look_at_cells(e, w);
        } while (look == LOOK_MORE);
    } while (look == LOOK_AGAIN && ++w->look_tries < LOOK_TRIES_MAX);
    if (look == LOOK_AGAIN) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: the list's items change faster than they can be read");
    } else if (look == LOOK_DONE) {
        note_extent(w);
    }
    CO_END(co);
}

bool work_any_there(const struct work *w)
{
    for (size_t i = 0; i < w->cell_count; i++) {
        if (w->cells[i].state == CELL_THERE) {
            return true;
        }
    }
    return false;
}

bool work_all_read(const struct work *w)
{
    for (size_t i = 0; i < w->cell_count; i++) {
        if (w->cells[i].state == CELL_UNREAD) {
            return false;
        }
    }
    return true;
}

bool work_read_in_order(const struct engine *e, const struct work *w)
{
    const struct pool_config *pool = &e->config->pools[w->op.list->policy->pool_index];
    if (w->get_tries > 0) {
        return false;
    }
    for (size_t i = 1; i < w->cell_count; i++) {
        if (w->cells[i].server != w->cells[0].server) {
            return false;
        }
    }
    return w->op.list->policy->pool_type == POOL_MEMCACHED && pool->connections == 1;
}

uint64_t work_version(const struct work *w, bool with_key)
{
    uint64_t version = 0;
    if (w->cell_count == 1) {
        return w->cells[0].state == CELL_THERE ? w->cells[0].cas : 0;
    }
    for (size_t i = 0; i < w->cell_count; i++) {
        uint64_t cas = w->cells[i].state == CELL_THERE ? w->cells[i].cas : 0;
        if (with_key || !cell_has_own_key(w->op.list, w->cells[i].role)) {
            version = hash_stable(slice_make((const char *)&cas, sizeof cas), version);
        }
    }
    return version;
}
