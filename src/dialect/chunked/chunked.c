/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X = +0+1, a signed log of numbers, names the sublists X.0 and X.1, signed logs, of which
 * the later ones win. The largest number is the newest.
 *
 * Order of writes: changes are an APPEND to the newest sublist; then the index is read again, and
 * if there is a newer one by now, the change is repeated there. The first change writes the index,
 * then the sublist. One that has become too long: ADD the next, then APPEND its number to the
 * index. For folding and lset see fold.c.
 *
 * Cannot promise: sublists cannot be read at one instant; beside two foldings in quick succession a
 * read may see an item that was deleted.
 */
#include "dialect/chunked/chunked.h"

#include <stdlib.h>

#include "dialect/migrate/migrate.h"
#include "dialect/shared/foreign.h"
#include "dialect/shared/grammar.h"

#define TRIES_MAX 8
/* Names in a row that may be taken by something that is not the list's. */
#define ORPHANS_MAX 16

enum { TAG_INDEX = 1, TAG_SIZE };

static struct signs signs_in(const struct work *w)
{
    return signs_of(w->op.list->policy);
}

bool sublists_number(struct slice text, uint32_t *number)
{
    uint64_t value;
    bool leading_zero = text.len > 1 && text.p[0] == '0';
    if (leading_zero || !slice_to_u64(text, &value) || value > SUBLIST_NUMBER_MAX) {
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

/* The largest number that the index lists. False: none. */
static bool newest_in(const struct list *list, struct slice index, uint32_t *newest)
{
    struct fold fold;
    uint32_t at = 0, number;
    char op;
    struct slice item;
    bool found = false;
    fold_init(&fold);
    signed_fold(&fold, index, signs_of(list->policy));
    while (fold_next(&fold, true, &at, &op, &item)) {
        if (sublists_number(item, &number) && (!found || number > *newest)) {
            *newest = number;
            found = true;
        }
    }
    fold_fini(&fold);
    return found;
}

void sublists_append_number(struct block **b, enum entry_op op, uint32_t number, struct signs signs)
{
    char digits[24];
    size_t len = format_u64(digits, number);
    signed_append(b, op, slice_make(digits, len), signs);
}

/* ---- looking ---- */

/* Those that there were last time are asked for together with the index. */
static void sublists_parts(struct work *w)
{
    const struct list *list = w->op.list;
    (void)work_add_part(w, PART_KEY, 0);
    w->sublists.checks = 0;
    w->sublists.in_order = list->newest_known;
    if (list->newest_known) {
        w->first_part = 1; /* the index last, see sublists_look */
        for (uint64_t n = list->oldest; n <= list->newest; n++) {
            (void)work_add_part(w, PART_SUBLIST, (uint32_t)n);
        }
    }
}

static int by_number(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* One of the first parts, which are in order. */
static struct part *find_part(struct work *w, size_t count, uint32_t number)
{
    struct part wanted = {.number = number};
    return bsearch(&wanted, w->parts + 1, count - 1, sizeof *w->parts, by_number);
}

/* Puts new ones where they belong, each once. */
static void sort_parts(struct work *w)
{
    size_t kept = 2;
    qsort(w->parts + 1, w->part_count - 1, sizeof *w->parts, by_number);
    for (size_t i = 2; i < w->part_count; i++) {
        if (w->parts[i].number != w->parts[kept - 1].number) {
            w->parts[kept++] = w->parts[i];
        }
    }
    w->part_count = kept;
    w->next_part = 1;
}

/* Names the parts that the index lists. False: there are some to be read. */
static bool list_parts(struct work *w)
{
    struct fold index;
    uint32_t at = 0, number;
    char op;
    struct slice item;
    size_t before = w->part_count;
    fold_init(&index);
    signed_fold(&index, w->parts[0].value, signs_in(w));
    while (fold_next(&index, true, &at, &op, &item)) {
        if (sublists_number(item, &number)) {
            struct part *part = find_part(w, before, number);
            part = part != NULL ? part : work_add_part(w, PART_SUBLIST, number);
            part->listed = true;
        }
    }
    fold_fini(&index);
    if (w->part_count > before) {
        sort_parts(w);
        return false;
    }
    return true;
}

/* False: one holds something. It has been taken out of the index since it was read, and what it
 * holds stands in another by now, which may have been read before. */
static bool drop_unlisted(struct work *w)
{
    bool empty = true;
    size_t kept = 1;
    for (size_t i = 1; i < w->part_count; i++) {
        if (w->parts[i].listed) {
            w->parts[kept++] = w->parts[i];
        } else {
            empty = empty && w->parts[i].value.len == 0;
            part_forget(&w->parts[i]);
        }
    }
    w->part_count = kept;
    return empty;
}

/* One connection answers in the order in which it was asked. */
static bool one_connection(const struct engine *e, const struct work *w)
{
    const struct pool_config *pool = &e->config->pools[w->op.list->policy->pool_index];
    for (size_t i = 1; i < w->part_count; i++) {
        if (w->parts[i].server != w->parts[0].server) {
            return false;
        }
    }
    return pool->connections == 1;
}

/* An item that was added again moves to a newer sublist, and then leaves the older one. So the
 * older ones must have been read before the newer ones, and the index last of all, or it may be
 * seen in neither. Those that cannot be sure of it are checked until nothing but the newest has
 * changed; that one is read again, and then the index must still be the same. Folding goes by what
 * older ones do not hold, too, and always checks. False: there is something to check, or to read
 * again. */
static bool is_sound(struct engine *e, struct work *w, enum look *look)
{
    enum { CHECKS_MAX = 8 };
    bool folds = w->lane != LANE_READ;
    bool all = w->sublists.checks == 0 || w->changed_older;
    *look = LOOK_MORE;
    if ((!folds && w->sublists.in_order && one_connection(e, w)) || (!all && !w->changed_last)) {
        return true;
    }
    if (++w->sublists.checks > CHECKS_MAX) {
        *look = LOOK_AGAIN;
        return false;
    }
    for (size_t i = 0; i < w->part_count; i++) {
        w->parts[i].check = i == 0 || (all && (folds || i > 1));
    }
    w->sublists.checked_all = all;
    w->changed_older = w->changed_last = false;
    w->next_part = 0;
    return false;
}

static bool all_read(const struct work *w)
{
    for (size_t i = 0; i < w->part_count; i++) {
        if (w->parts[i].state == PART_UNREAD) {
            return false;
        }
    }
    return true;
}

static void note_numbers(struct list *list, const struct work *w)
{
    list->newest_known = w->part_count > 1;
    if (list->newest_known) {
        list->oldest = w->parts[1].number;
        list->newest = w->parts[w->part_count - 1].number;
        if (list->newest - list->oldest >= 2 * w->part_count) {
            list->oldest = list->newest; /* numbers with large gaps are not worth guessing */
        }
    }
}

static enum look sublists_look(struct engine *e, struct work *w)
{
    uint64_t stored = 0;
    bool empty = false;
    enum look look;
    if (w->parts[0].state == PART_THERE && !foreign_refuse_parts(e, w, 0, 1)) {
        return LOOK_FAILED;
    }
    if (!all_read(w) || !list_parts(w)) {
        w->sublists.in_order = false;
        w->next_part = 0;
        return LOOK_MORE;
    }
    if (!drop_unlisted(w)) {
        w->op.list->newest_known = false;
        return LOOK_AGAIN;
    }
    if (!foreign_refuse_parts(e, w, 1, w->part_count)) {
        return LOOK_FAILED;
    }
    if (w->part_count > 1 && !is_sound(e, w, &look)) {
        return look;
    }
    for (size_t i = 1; i < w->part_count; i++) {
        signed_fold(&w->items.fold, w->parts[i].value, signs_in(w));
        stored += w->parts[i].value.len;
        empty = empty || (w->parts[i].value.len == 0 && i + 1 < w->part_count);
    }
    items_settle(&w->items);
    w->can_shrink = empty || stored > w->items.bytes + w->items.count;
    note_numbers(w->op.list, w);
    return LOOK_DONE;
}

/* ---- changing ---- */

/* Takes an index as it was read. False: the list has moved to another layout, or it is none. */
static bool take_index(struct engine *e, struct work *w, const struct op_event *event, bool *found,
                       uint32_t *newest)
{
    struct record record;
    struct slice value = event->status == BE_HIT ? event->reply->value : SLICE_NONE;
    if (list_migrates(w->op.list) && record_parse(value, &record)) {
        w->failed = w->move.moved = true;
        return false;
    }
    if (!foreign_refuse_reply(e, w, PART_KEY, 0, event->reply)) {
        return false;
    }
    *found = newest_in(w->op.list, value, newest);
    return true;
}

/* Reads the index. Ends with newest_known, or not: there is none. */
static enum progress read_index(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->outer;
    struct list *list = w->op.list;
    CO_BEGIN(co);
    part_send(e, &w->op, &(struct part){.role = PART_KEY}, BE_GET, NULL, TAG_INDEX);
    CO_AWAIT(co, "reading which sublists there are");
    if (event->status == BE_HIT || event->status == BE_MISS) {
        if (!take_index(e, w, event, &list->newest_known, &w->sublists.newest)) {
            CO_RETURN(co);
        }
        w->sublists.index_there = event->status == BE_HIT;
        if (list->newest_known &&
            (list->newest != w->sublists.newest || list->oldest > w->sublists.newest)) {
            list->oldest = list->newest = w->sublists.newest;
        }
    } else {
        work_note_error(w, event);
    }
    CO_END(co);
}

/* It holds nothing, not even a value of another kind. */
static bool is_free(const struct be_reply *reply)
{
    return reply->value.len == 0 && grammar_flags_of_text(reply->flags);
}

static void send_next(struct engine *e, struct work *w, enum be_verb verb)
{
    struct part next = {.role = PART_SUBLIST, .number = (uint32_t)w->sublists.next};
    struct block *nothing = block_new(16);
    part_send(e, &w->op, &next, verb, verb == BE_ADD ? nothing : NULL, 0);
    block_unref(&nothing);
}

/* May the first sublist be that one? X.0 may have been written before the index; of the others only
 * one that is not in use. */
static bool may_begin_with(const struct work *w, const struct be_reply *reply)
{
    uint32_t number = (uint32_t)w->sublists.next;
    return reply->status == BE_MISS ||
           (number == 0 ? foreign_allows(w->op.list, PART_SUBLIST, number, reply) : is_free(reply));
}

static void send_index(struct engine *e, struct work *w)
{
    struct block *value = block_new(16);
    sublists_append_number(&value, ENTRY_ADD, (uint32_t)w->sublists.next, signs_in(w));
    part_send(e, &w->op, &(struct part){.role = PART_KEY},
              w->sublists.index_there ? BE_APPEND : BE_ADD, value, 0);
    block_unref(&value);
}

/* There is no list: its index comes first, so that no sublist is without. But nothing else may
 * stand where the sublist is to be. */
static enum progress create_index(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->outer;
    CO_BEGIN(co);
    for (w->sublists.next = 0; w->sublists.next < ORPHANS_MAX; w->sublists.next++) {
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
    if (w->sublists.next == ORPHANS_MAX) {
        work_note_text(w, "the names of the list's first %d sublists are taken, nothing done",
                       ORPHANS_MAX);
        CO_RETURN(co);
    }
    send_index(e, w);
    CO_AWAIT(co, "writing a list's index");
    (void)work_written(e, w, event); /* if somebody else was faster, it is there now */
    w->sublists.missed = w->sublists.next + 1;
    CO_END(co);
}

/* Takes the index. False: the one that has become too long is not the newest any more. */
static bool take_newest(struct engine *e, struct work *w, const struct op_event *event)
{
    uint32_t newest;
    bool found;
    if (event->status != BE_HIT) {
        w->op.list->newest_known = false;
        return false;
    }
    part_take(&w->move.control, event->reply);
    if (!take_index(e, w, event, &found, &newest)) {
        return false;
    }
    /* Somebody else may have named it. */
    w->sublists.added = w->sublists.added && newest != w->sublists.next;
    return found && newest == w->sublists.newest;
}

static void name_next(struct engine *e, struct work *w)
{
    struct block *value = block_new(w->move.control.value.len + 16);
    block_append(&value, w->move.control.value.p, w->move.control.value.len);
    sublists_append_number(&value, ENTRY_ADD, (uint32_t)w->sublists.next, signs_in(w));
    part_write(e, &w->op, &w->move.control, value, 0);
    block_unref(&value);
}

/* A sublist that was added and not named: by CAS, since somebody else may have named it, and
 * written to it. */
static enum progress take_back_added(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->undoing;
    CO_BEGIN(co);
    if (!w->sublists.added) {
        CO_RETURN(co);
    }
    part_forget(&w->sublists.not_named);
    w->sublists.not_named =
        (struct part){.role = PART_SUBLIST, .number = (uint32_t)w->sublists.next};
    send_next(e, w, BE_GET);
    CO_AWAIT(co, "reading a sublist that is not needed");
    if (event->status != BE_HIT || !is_free(event->reply)) {
        CO_RETURN(co);
    }
    part_take(&w->sublists.not_named, event->reply);
    part_remove(e, &w->op, &w->sublists.not_named, 0);
    CO_AWAIT(co, "removing a sublist that is not needed");
    CO_END(co);
}

/* The next sublist, and behind it its number in the index: by CAS, since a list that was replaced
 * meanwhile has nothing to do with it. One that is there, holds something and has no name was left
 * by somebody who died: it stays without. */
static enum progress roll_over(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->outer;
    CO_BEGIN(co);
    w->failed = false;
    for (w->sublists.next = (uint64_t)w->sublists.newest + 1;
         w->sublists.next <= (uint64_t)w->sublists.newest + ORPHANS_MAX; w->sublists.next++) {
        if (w->sublists.next > SUBLIST_NUMBER_MAX) {
            break;
        }
        send_next(e, w, BE_ADD);
        CO_AWAIT(co, "adding a sublist");
        if (event->status != BE_STORED && event->status != BE_NOT_STORED) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
        w->sublists.added = event->status == BE_STORED;
        w->sublists.orphan = false;
        if (event->status == BE_NOT_STORED) {
            send_next(e, w, BE_GET);
            CO_AWAIT(co, "looking into a sublist that is there");
            w->sublists.orphan = event->status == BE_HIT && !is_free(event->reply);
        }
        part_send(e, &w->op, &(struct part){.role = PART_KEY}, BE_GET, NULL, TAG_INDEX);
        CO_AWAIT(co, "reading the index to name the new sublist");
        if (!take_newest(e, w, event)) {
            CO_CALL(co, take_back_added(e, w, event));
            CO_RETURN(co);
        }
        if (w->sublists.orphan) {
            continue;
        }
        name_next(e, w);
        CO_AWAIT(co, "naming the new sublist in the index");
        if (!work_written(e, w, event)) {
            CO_CALL(co, take_back_added(e, w, event));
        } else if (!w->failed) {
            w->op.list->newest = w->sublists.newest = (uint32_t)w->sublists.next;
            foreign_note_known(w->op.list,
                               &(struct part){.role = PART_SUBLIST, .number = w->sublists.newest});
        }
        CO_RETURN(co);
    }
    work_note_text(w, "backend has no room for this list in its last sublist, nothing done");
    CO_END(co);
}

/* How long the sublist has become, and whether it is still the newest. */
static enum progress check_newest(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->outer;
    uint32_t newest;
    bool found;
    CO_BEGIN(co);
    w->sublists.newest_bytes = 0;
    w->sublists.rolled = false;
    part_send(e, &w->op, &w->append.target, BE_SIZE, NULL, TAG_SIZE);
    part_send(e, &w->op, &(struct part){.role = PART_KEY}, BE_GET, NULL, TAG_INDEX);
    while (w->op.due > 0) {
        CO_AWAIT(co, "looking for a newer sublist");
        if (event->tag == TAG_SIZE) {
            w->sublists.newest_bytes = event->status == BE_HIT ? event->reply->size_bytes : 0;
        } else if (event->status == BE_HIT) {
            w->sublists.rolled =
                !take_index(e, w, event, &found, &newest) || !found || newest != w->sublists.newest;
        } else if (event->status == BE_MISS) {
            w->sublists.rolled = true;
        } else {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}

/* One attempt: ends with failed, or moved (again, where the list is now), or append.status. */
static enum progress change_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->inner;
    struct list *list = w->op.list;
    CO_BEGIN(co);
    w->sublists.rolled = false;
    w->append.status = BE_MISS;
    w->sublists.newest = list->newest;
    if (!list->newest_known || w->tries > 0) {
        CO_CALL(co, read_index(e, w, event));
        if (w->failed || (!list->newest_known && !w->sublists.adds)) {
            CO_RETURN(co); /* deleting from nothing */
        }
    }
    if (!list->newest_known && list_migrates(list) && !w->sublists.index_there) {
        w->failed = w->move.moved = true; /* an index would hide the native list */
        CO_RETURN(co);
    }
    if (!list->newest_known) {
        CO_CALL(co, create_index(e, w, event));
        w->sublists.rolled = true;
        CO_RETURN(co);
    }
    part_forget(&w->append.target);
    w->append.target = (struct part){.role = PART_SUBLIST, .number = w->sublists.newest};
    /* One that is not there may have been replaced: it is created if the index still names it. */
    w->append.only_there = w->sublists.missed != (uint64_t)w->sublists.newest + 1;
    CO_CALL(co, work_append(e, w, event));
    if (!w->failed && w->append.status == BE_MISS && w->append.only_there) {
        w->sublists.missed = (uint64_t)w->sublists.newest + 1;
        w->sublists.rolled = true;
    } else if (!w->failed && w->append.status == BE_TOO_LARGE) {
        if (w->sublists.room_from != 0 && w->sublists.newest >= w->sublists.room_from) {
            work_note_text(w, "backend has no room for these items in one sublist, nothing done");
            CO_RETURN(co);
        }
        w->sublists.room_from = (uint64_t)w->sublists.newest + 1;
        CO_CALL(co, roll_over(e, w, event));
        w->sublists.rolled = true;
    } else if (!w->failed) {
        CO_CALL(co, check_newest(e, w, event));
    }
    CO_END(co);
}

static enum progress sublists_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->body;
    CO_BEGIN(co);
    signed_batch(w);
    /* A newest sublist that is missing stands for what is in older ones. */
    w->sublists.adds = w->append.create != NULL;
    if (!w->sublists.adds) {
        w->append.create = block_ref(w->append.value);
    }
    do {
        CO_CALL(co, change_once(e, w, event));
        w->wrote_any = w->wrote_any || w->append.status == BE_STORED;
    } while (!w->failed && w->sublists.rolled && ++w->tries < TRIES_MAX);
    if (!w->failed && w->sublists.rolled) {
        w->op.list->newest_known = false;
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: the list's sublists change too fast, outcome unknown");
    }
    if (w->failed && w->wrote_any && !w->move.moved) {
        work_note_unknown(w);
    }
    if (w->failed) {
        work_fail(e, w, w->error);
        CO_RETURN(co);
    }
    dialect_appended(e, w->op.list, w->append.value->used);
    work_finish(e, w);
    if (w->sublists.newest_bytes >= list_sublist_limit(w->op.list)) {
        CO_CALL(co, roll_over(e, w, event));
    }
    CO_END(co);
}

const struct dialect dialect_sublists = {
    .name = "sublists",
    .lanes = {[LIST_ADD] = LANE_CHANGE,
              [LIST_DEL] = LANE_CHANGE,
              [LIST_SET] = LANE_ALONE,
              DIALECT_READS,
              [LIST_DROP] = LANE_ALONE,
              [LIST_COMPACT] = LANE_ALONE},
    .never = dialect_not_exact,
    .parts = sublists_parts,
    .look = sublists_look,
    .change = sublists_change,
    .set = sublists_set,
    .drop = sublists_set, /* its numbers go on: those of a list that was dropped may still be
                             written */
    .compact = sublists_compact,
};
