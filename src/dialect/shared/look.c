/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a list of a dialect: reads its parts, and asks the dialect what they amount to.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "dialect/shared/dialect.h"
#include "dialect/shared/foreign.h"
#include "dialect/shared/record.h"

/* How many parts are asked for at the same time: more than most lists have, and a bounded amount of
 * memory in flight. */
#define PARTS_INFLIGHT_MAX 1024
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

struct part *work_add_part(struct work *w, enum part_role role, uint32_t number)
{
    w->parts = array_room(w->parts, w->part_count, &w->part_cap, sizeof *w->parts);
    struct part *part = &w->parts[w->part_count++];
    *part = (struct part){.role = role, .number = number, .ttl_s = -1};
    return part;
}

void work_forget_parts(struct work *w)
{
    for (size_t i = 0; i < w->part_count; i++) {
        part_forget(&w->parts[i]);
    }
    w->part_count = 0;
    w->read_bytes = 0;
    w->next_part = w->first_part = 0;
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

static enum be_verb verb_for(const struct part *part)
{
    return part->check || part->bare ? BE_SIZE : BE_GET;
}

static void ask_for_parts(struct engine *e, struct work *w)
{
    while (!w->failed && w->next_part < w->part_count && w->op.due < PARTS_INFLIGHT_MAX) {
        size_t i = (w->next_part++ + w->first_part) % w->part_count;
        struct part *part = &w->parts[i];
        if (part->state == PART_UNREAD || part->check) {
            metric_inc(e->metrics, METRIC_list_part_reads);
            part_send(e, &w->op, part, verb_for(part), NULL, i);
        }
    }
}

void work_unwrap(struct work *w, struct part *part)
{
    struct record record;
    if (list_migrates(w->op.list) && part->state == PART_THERE &&
        part_has_own_key(w->op.list, part->role) && record_parse(part->value, &record)) {
        w->met_record = true;
        part->value = record.before;
    }
}

/* A part that has changed since it was read is read again. */
static void check_part(struct work *w, struct part *part, const struct op_event *event)
{
    bool same = part->state == PART_THERE
                    ? event->status == BE_HIT && event->reply->cas == part->cas
                    : event->status == BE_MISS;
    part->check = false;
    if (!same) {
        part_forget(part);
        bool last = part == &w->parts[w->part_count - 1];
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
    for (size_t i = 0; i < w->part_count; i++) {
        if (w->parts[i].foreign) {
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
static void keep_part(struct work *w, struct part *part)
{
    w->read_bytes += part->value.len;
    if (w->read_bytes <= w->op.list->policy->fold_memory_bytes) {
        return;
    }
    if (!is_drop(w)) {
        work_note_text(w, "%s", too_large);
    } else if (!part_has_own_key(w->op.list, part->role)) {
        block_unref(&part->block);
        part->value = SLICE_NONE;
    }
}

static void take_part(struct engine *e, struct work *w, const struct op_event *event)
{
    struct part *part = &w->parts[event->tag];
    struct list *list = w->op.list;
    if (event->reply->caps != NULL) {
        list->item_size_max = event->reply->caps->item_size_max;
        list->no_times = list->no_times || event->reply->no_times;
        if (event->tag == 0) {
            list->head_server = event->reply->caps->server_name;
        }
    }
    bool answered = event->status == BE_HIT || event->status == BE_MISS;
    if (answered && part->check) {
        check_part(w, part, event);
    } else if (answered) {
        part_take(part, event->reply);
        work_unwrap(w, part);
        keep_part(w, part);
    } else if (event->status == BE_LOST && w->get_tries < GET_TRIES_MAX) {
        w->get_tries++;
        part_send(e, &w->op, part, verb_for(part), NULL, event->tag);
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
    w->get_tries = 0;
    ask_for_parts(e, w);
    while (w->op.due > 0) {
        CO_AWAIT(co, "reading the list's items");
        take_part(e, w, event);
        ask_for_parts(e, w);
    }
    CO_END(co);
}

/* Is the list not there, or not there any more? */
static bool is_gone(const struct work *w)
{
    const struct dialect *dialect = dialect_of(w->op.list);
    if (dialect_keeps_key(w->op.list)) {
        return w->parts[0].state != PART_THERE || w->met_record;
    }
    for (size_t i = 0; i < w->part_count; i++) {
        if (w->parts[i].state == PART_THERE && (dialect->essential & ROLE(w->parts[i].role)) != 0) {
            return false;
        }
    }
    return true;
}

static enum look look_at_parts(struct engine *e, struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct dialect *dialect = dialect_of(w->op.list);
    items_reset(&w->items);
    if (!dialect->look_proves && !foreign_refuse_parts(e, w, 0, w->part_count)) {
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
    for (size_t i = 0; i < w->part_count; i++) {
        w->stored_bytes += w->parts[i].value.len;
        if (!w->partial && !w->parts[i].foreign && !w->parts[i].bare) {
            foreign_note_known(list, &w->parts[i]);
            if (w->read_bytes <= list->policy->fold_memory_bytes) { /* else values were left out */
                closing_note_read(list, &w->parts[i]);
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
        work_forget_parts(w);
        dialect_of(w->op.list)->parts(w);
        do {
            CO_CALL(co, work_gather(e, w, event));
            look = w->failed ? LOOK_FAILED : look_at_parts(e, w);
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
    for (size_t i = 0; i < w->part_count; i++) {
        if (w->parts[i].state == PART_THERE) {
            return true;
        }
    }
    return false;
}

bool work_all_read(const struct work *w)
{
    for (size_t i = 0; i < w->part_count; i++) {
        if (w->parts[i].state == PART_UNREAD) {
            return false;
        }
    }
    return true;
}

bool work_read_in_order(const struct engine *e, const struct work *w)
{
    const struct pool_config *pool = &e->config->pools[w->op.list->policy->pool_index];
    for (size_t i = 1; i < w->part_count; i++) {
        if (w->parts[i].server != w->parts[0].server) {
            return false;
        }
    }
    return w->op.list->policy->pool_type == POOL_MEMCACHED && pool->connections == 1;
}

uint64_t work_version(const struct work *w, bool with_key)
{
    uint64_t version = 0;
    if (w->part_count == 1) {
        return w->parts[0].state == PART_THERE ? w->parts[0].cas : 0;
    }
    for (size_t i = 0; i < w->part_count; i++) {
        uint64_t cas = w->parts[i].state == PART_THERE ? w->parts[i].cas : 0;
        if (with_key || !part_has_own_key(w->op.list, w->parts[i].role)) {
            version = hash_stable(slice_make((const char *)&cas, sizeof cas), version);
        }
    }
    return version;
}
