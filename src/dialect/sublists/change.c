/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changing a list of sublists: APPEND to the newest one, look whether it still is the newest, and
 * add a further one when it has become too long.
 */
#include "dialect/sublists/sublists.h"
#include "dialect/shared/foreign.h"
#include "dialect/shared/record.h"

#define TRIES_MAX 8
/* How many names in a row may be taken by values that are not the list's. */
#define ORPHANS_MAX 16

enum { TAG_INDEX = 1, TAG_SIZE };

/* Takes an index as it was read. False: the list has moved to another layout, or this is no index.
 * */
static bool take_index(struct engine *e, struct work *w, const struct op_event *event, bool *found,
                       uint32_t *newest)
{
    struct record record;
    struct slice value = event->status == BE_HIT ? event->reply->value : SLICE_NONE;
    if (list_migrates(w->op.list) && record_parse(value, &record)) {
        w->failed = w->moved = true;
        return false;
    }
    if (!foreign_refuse_reply(e, w, CELL_KEY, event->reply)) {
        return false;
    }
    *found = sublists_newest(w->op.list, value, newest);
    return true;
}

/* Reads the index. Ends with newest_known; if that is false, there is no index. */
static enum progress read_index(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct sublists_list *list = sublists_list(w->op.list);
    CO_BEGIN(co);
    cell_send(e, &w->op, &(struct cell){.role = CELL_KEY}, BE_GET, NULL, TAG_INDEX);
    CO_AWAIT(co, "reading which sublists there are");
    if (event->status == BE_HIT || event->status == BE_MISS) {
        if (!take_index(e, w, event, &list->newest_known, &sublists_own(w)->newest)) {
            CO_RETURN(co);
        }
        sublists_own(w)->index_there = event->status == BE_HIT;
        if (list->newest_known &&
            (list->newest != sublists_own(w)->newest || list->oldest > sublists_own(w)->newest)) {
            list->oldest = list->newest = sublists_own(w)->newest;
        }
    } else {
        work_note_error(w, event);
    }
    CO_END(co);
}

/* The item is empty, and its flags are those of text. */
static bool is_free(const struct be_reply *reply)
{
    return reply->value.len == 0 && grammar_flags_of_text(reply->flags);
}

static void send_next(struct engine *e, struct work *w, enum be_verb verb)
{
    struct cell next = {.role = CELL_SUBLIST, .number = (uint32_t)sublists_own(w)->next};
    struct block *nothing = block_new(16);
    cell_send(e, &w->op, &next, verb, verb == BE_ADD ? nothing : NULL, 0);
    block_unref(&nothing);
}

/* May the first sublist be that one? X.0 may have been written before the index. Another one may
 * not if it is in use. */
static bool may_begin_with(const struct work *w, const struct be_reply *reply)
{
    uint32_t number = (uint32_t)sublists_own(w)->next;
    return reply->status == BE_MISS ||
           (number == 0 ? foreign_allows(w->op.list, CELL_SUBLIST, number, reply) : is_free(reply));
}

static void send_index(struct engine *e, struct work *w)
{
    struct block *value = block_new(16);
    sublists_append_number(w->op.list, &value, ENTRY_ADD, (uint32_t)sublists_own(w)->next);
    cell_send(e, &w->op, &(struct cell){.role = CELL_KEY},
              sublists_own(w)->index_there ? BE_APPEND : BE_ADD, value, 0);
    block_unref(&value);
}

/* There is no list: writes its index first, so that no sublist is without one. No other value may
 * stand where the sublist is to be. */
static enum progress create_index(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    for (sublists_own(w)->next = 0; sublists_own(w)->next < ORPHANS_MAX; sublists_own(w)->next++) {
        send_next(e, w, BE_GET);
        CO_AWAIT(co, "looking where the first sublist is to be");
        if (event->status != BE_HIT && event->status != BE_MISS) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
        if (may_begin_with(w, event->reply)) {
            break;
        }
    }
    if (sublists_own(w)->next == ORPHANS_MAX) {
        work_note_text(w, "the names of the list's first %d sublists are taken, nothing done",
                       ORPHANS_MAX);
        CO_RETURN(co);
    }
    send_index(e, w);
    CO_AWAIT(co, "writing a list's index");
    (void)work_written(e, w, event); /* if another client was faster, the index is there now */
    sublists_own(w)->missed = sublists_own(w)->next + 1;
    CO_END(co);
}

/* Takes the index. False: the sublist that has become too long is not the newest any more. */
static bool take_newest(struct engine *e, struct work *w, const struct op_event *event)
{
    uint32_t newest;
    bool found;
    if (event->status != BE_HIT) {
        sublists_list(w->op.list)->newest_known = false;
        return false;
    }
    cell_take(&sublists_own(w)->index, event->reply);
    if (!take_index(e, w, event, &found, &newest)) {
        return false;
    }
    /* Another proxy may have named it. */
    sublists_own(w)->added = sublists_own(w)->added && newest != sublists_own(w)->next;
    return found && newest == sublists_own(w)->newest;
}

static void name_next(struct engine *e, struct work *w)
{
    struct slice index = sublists_own(w)->index.value;
    char delimiter = (char)w->op.list->policy->delimiter;
    struct block *value = block_new(index.len + 16);
    block_append(&value, index.p, index.len);
    if (closing_is_open(w->op.list, index)) {
        block_append(&value, &delimiter, 1);
    }
    sublists_append_number(w->op.list, &value, ENTRY_ADD, (uint32_t)sublists_own(w)->next);
    cell_write(e, &w->op, &sublists_own(w)->index, value, 0);
    block_unref(&value);
}

/* Removes a sublist that was added and not named: by CAS, since another proxy may have named it and
 * written to it. */
static enum progress take_back_added(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (!sublists_own(w)->added) {
        CO_RETURN(co);
    }
    cell_forget(&sublists_own(w)->not_named);
    sublists_own(w)->not_named =
        (struct cell){.role = CELL_SUBLIST, .number = (uint32_t)sublists_own(w)->next};
    send_next(e, w, BE_GET);
    CO_AWAIT(co, "reading a sublist that is not needed");
    if (event->status != BE_HIT || !is_free(event->reply)) {
        CO_RETURN(co);
    }
    cell_take(&sublists_own(w)->not_named, event->reply);
    cell_remove(e, &w->op, &sublists_own(w)->not_named);
    CO_AWAIT(co, "removing a sublist that is not needed");
    CO_END(co);
}

/* Adds the next sublist, then its number to the index: by CAS, so that a list that was replaced
 * meanwhile keeps its own index. A sublist that is there, holds something and has no name was left
 * by a proxy that died: it stays without a name. */
static enum progress roll_over(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    for (sublists_own(w)->next = (uint64_t)sublists_own(w)->newest + 1;
         sublists_own(w)->next <= (uint64_t)sublists_own(w)->newest + ORPHANS_MAX;
         sublists_own(w)->next++) {
        if (sublists_own(w)->next > SUBLIST_NUMBER_MAX) {
            break;
        }
        send_next(e, w, BE_ADD);
        CO_AWAIT(co, "adding a sublist");
        if (event->status != BE_STORED && event->status != BE_NOT_STORED) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
        sublists_own(w)->added = event->status == BE_STORED;
        sublists_own(w)->orphan = false;
        if (event->status == BE_NOT_STORED) {
            send_next(e, w, BE_GET);
            CO_AWAIT(co, "looking into a sublist that is there");
            sublists_own(w)->orphan = event->status == BE_HIT && !is_free(event->reply);
        }
        cell_send(e, &w->op, &(struct cell){.role = CELL_KEY}, BE_GET, NULL, TAG_INDEX);
        CO_AWAIT(co, "reading the index to name the new sublist");
        if (!take_newest(e, w, event)) {
            CO_CALL(co, take_back_added(e, w, event));
            CO_RETURN(co);
        }
        if (sublists_own(w)->orphan) {
            continue;
        }
        name_next(e, w);
        CO_AWAIT(co, "naming the new sublist in the index");
        if (!work_written(e, w, event)) {
            CO_CALL(co, take_back_added(e, w, event));
        } else if (!w->failed) {
            sublists_list(w->op.list)->newest = sublists_own(w)->newest =
                (uint32_t)sublists_own(w)->next;
            foreign_note_known(w->op.list, &(struct cell){.role = CELL_SUBLIST,
                                                          .number = sublists_own(w)->newest});
        }
        CO_RETURN(co);
    }
    work_note_text(w, "backend has no room for this list in its last sublist, nothing done");
    CO_END(co);
}

/* Finds out how long the sublist has become, and whether it still is the newest. */
static enum progress check_newest(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    uint32_t newest;
    bool found;
    CO_BEGIN(co);
    sublists_own(w)->newest_bytes = 0;
    sublists_own(w)->rolled = false;
    cell_send(e, &w->op, &w->append.target, BE_SIZE, NULL, TAG_SIZE);
    cell_send(e, &w->op, &(struct cell){.role = CELL_KEY}, BE_GET, NULL, TAG_INDEX);
    while (w->op.due > 0) {
        CO_AWAIT(co, "looking for a newer sublist");
        if (event->tag == TAG_SIZE) {
            sublists_own(w)->newest_bytes = event->status == BE_HIT ? event->reply->size_bytes : 0;
        } else if (event->status == BE_HIT) {
            sublists_own(w)->rolled = !take_index(e, w, event, &found, &newest) || !found ||
                                      newest != sublists_own(w)->newest;
        } else if (event->status == BE_MISS) {
            sublists_own(w)->rolled = true;
        } else {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}

/* One attempt: ends with failed, moved (to be repeated where the list is now), or append.status. */
static enum progress change_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct sublists_list *list = sublists_list(w->op.list);
    CO_BEGIN(co);
    sublists_own(w)->rolled = false;
    w->append.status = BE_MISS;
    sublists_own(w)->newest = list->newest;
    if (!list->newest_known || w->tries > 0) {
        CO_CALL(co, read_index(e, w, event));
        if (w->failed || (!list->newest_known && !sublists_own(w)->adds)) {
            CO_RETURN(co); /* deleting from nothing */
        }
    }
    if (!list->newest_known && list_migrates(w->op.list) && !sublists_own(w)->index_there) {
        w->failed = w->moved = true; /* an index would hide the native list */
        CO_RETURN(co);
    }
    if (!list->newest_known) {
        CO_CALL(co, create_index(e, w, event));
        sublists_own(w)->rolled = true;
        CO_RETURN(co);
    }
    cell_forget(&w->append.target);
    w->append.target = (struct cell){.role = CELL_SUBLIST, .number = sublists_own(w)->newest};
    /* A missing sublist may have been replaced: it is created only if the index still names it. */
    w->append.only_there = sublists_own(w)->missed != (uint64_t)sublists_own(w)->newest + 1;
    CO_CALL(co, work_append(e, w, event));
    if (!w->failed && w->append.status == BE_MISS && w->append.only_there) {
        sublists_own(w)->missed = (uint64_t)sublists_own(w)->newest + 1;
        sublists_own(w)->rolled = true;
    } else if (!w->failed && w->append.status == BE_TOO_LARGE) {
        if (sublists_own(w)->room_from != 0 &&
            sublists_own(w)->newest >= sublists_own(w)->room_from) {
            work_note_text(w, "backend has no room for these items in one sublist, nothing done");
            CO_RETURN(co);
        }
        sublists_own(w)->room_from = (uint64_t)sublists_own(w)->newest + 1;
        CO_CALL(co, roll_over(e, w, event));
        sublists_own(w)->rolled = true;
    } else if (!w->failed) {
        CO_CALL(co, check_newest(e, w, event));
    }
    CO_END(co);
}

enum progress sublists_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (sublists_is_delimited(w->op.list)) {
        delimited_batch(w);
    } else {
        signed_batch(w);
    }
    /* Deletions create a missing newest sublist as well: older ones may hold the items. */
    sublists_own(w)->adds = w->append.create != NULL;
    if (!sublists_own(w)->adds) {
        w->append.create = block_ref(w->append.value);
    }
    do {
        CO_CALL(co, change_once(e, w, event));
        w->wrote_any = w->wrote_any || w->append.status == BE_STORED;
    } while (!w->failed && sublists_own(w)->rolled && ++w->tries < TRIES_MAX);
    if (!w->failed && sublists_own(w)->rolled) {
        sublists_list(w->op.list)->newest_known = false;
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: the list's sublists change too fast, outcome unknown");
    }
    if (w->failed && w->wrote_any && !w->moved) {
        work_note_unknown(w);
    }
    if (w->failed) {
        work_fail(e, w, w->error);
        CO_RETURN(co);
    }
    dialect_appended(e, w->op.list, w->append.value->used);
    work_finish(e, w);
    if (sublists_own(w)->newest_bytes >= list_sublist_limit(w->op.list)) {
        CO_CALL(co, roll_over(e, w, event));
    }
    CO_END(co);
}
