/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: follow-X holds what was added, unfollow-X what was deleted, both as delimited text. An
 * item that was deleted k times and added m times is in the list if m > k; the first k of its
 * places are void.
 *
 * Order of writes: an addition is an APPEND (or ADD) to the first item, a deletion to the second.
 * Folding writes the first before the second, so that the list reads the same at each instant, and
 * so that an addition that comes in between counts:
 *
 *   1. the first: an item that is in the list and was deleted k times, k + 1 times; one that is
 * not, as often as it was added
 *   2. the second: an item that is in the list, as often as it was deleted; one that is not, as
 * often as it was added
 *
 * What stays behind in both goes when the second is more than half of the first, or when lcompact
 * asks for it: the second is emptied but for a number, then the first has what is in the list, each
 * item once, and what came in between. If the process dies between these two, or another one folds
 * in that moment, what was deleted comes back; nothing is lost.
 *
 * Cannot promise: what tombstone cannot; and two items cannot be read at one instant.
 */
#include <stdio.h>
#include <stdlib.h>

#include "list/dialect/dialect.h"

#define TRIES_MAX 16

enum { ADDS, DELETES };

static void paired_parts(struct work *w)
{
    (void)work_add_part(w, PART_ADDS, 0);
    (void)work_add_part(w, PART_DELETES, 0);
    w->read_again = false;
}

static char delimiter_of(const struct work *w)
{
    return (char)w->op.list->policy->delimiter;
}

/* Whoever empties the deletions leaves a number of its own there, as the deletion of what nobody
 * has:
 * @5d0c81f2a4b69e37 */
#define NUMBER_BYTES 17

static bool is_number(struct slice item)
{
    bool is = item.len == NUMBER_BYTES && item.p[0] == '@';
    for (size_t i = 1; is && i < item.len; i++) {
        is = memchr("0123456789abcdef", item.p[i], 16) != NULL;
    }
    return is;
}

static bool was_added(const struct work *w, struct slice item)
{
    struct slice rest = w->parts[ADDS].value, added;
    while (text_next(&rest, delimiter_of(w), &added)) {
        if (slice_equal(added, item)) {
            return true;
        }
    }
    return false;
}

/* The deletions, without such a number: it stands first, and what was added is none, even if it
 * looks like one. */
static size_t deleted_bytes(const struct work *w)
{
    struct slice rest = w->parts[DELETES].value, item;
    size_t bytes = 0;
    bool first = true;
    while (text_next(&rest, delimiter_of(w), &item)) {
        bytes += first && is_number(item) && !was_added(w, item) ? 0 : item.len + 1;
        first = false;
    }
    return bytes;
}

static bool should_shrink(const struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    size_t bytes = deleted_bytes(w);
    return bytes > 0 &&
           (bytes * 2 > w->parts[ADDS].value.len || (call != NULL && call->verb == LIST_COMPACT));
}

/* Deletions have to be read after the additions that they are set against: those read before may be
 * of additions that were folded away since. One connection answers in the order in which it was
 * asked; else the deletions are read once more. */
static enum look paired_look(struct engine *e, struct work *w)
{
    const struct pool_config *pool = &e->config->pools[w->op.list->policy->pool_index];
    bool in_order = pool->connections == 1 && w->parts[ADDS].server == w->parts[DELETES].server;
    if (!in_order && !w->read_again) {
        w->read_again = true;
        part_forget(&w->parts[DELETES]);
        w->next_part = DELETES;
        return LOOK_MORE;
    }
    counted_fold(&w->items.fold, w->parts[ADDS].value, w->parts[DELETES].value, delimiter_of(w));
    items_settle(&w->items);
    /* Folded, the additions are what is in the list and one for each deletion. */
    w->can_shrink = w->parts[ADDS].value.len > w->items.bytes + w->items.count + deleted_bytes(w) ||
                    should_shrink(w);
    return LOOK_DONE;
}

static enum progress paired_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->body;
    CO_BEGIN(co);
    delimited_batch(w);
    w->append.target.role = w->lane == LANE_ADD ? PART_ADDS : PART_DELETES;
    CO_CALL(co, work_append(e, w, event));
    if (!w->failed && w->append.status == BE_TOO_LARGE) {
        work_note_text(w, "backend has no room for this list in one item, nothing done");
    }
    if (w->failed) {
        work_fail(e, w, w->error);
    } else {
        dialect_appended(e, w->op.list, w->append.value->used);
        work_finish(e, w);
    }
    CO_END(co);
}

static void append_times(struct block **text, struct slice item, uint32_t times, char delimiter)
{
    while (times-- > 0) {
        text_append(text, item, delimiter);
    }
}

/* Pairs of items that are not in the list: as many deletions as additions. */
static void append_pairs(const struct work *w, struct block **text, const struct counts *deletes)
{
    struct slice adds = w->parts[ADDS].value, item;
    struct counts left;
    counts_init(&left, w->parts[DELETES].value, delimiter_of(w));
    while (text_next(&adds, delimiter_of(w), &item)) {
        uint32_t *count = counts_find(deletes, item) != NULL ? counts_find(&left, item) : NULL;
        if (!items_have(&w->items, item) && count != NULL && *count > 0) {
            --*count;
            text_append(text, item, delimiter_of(w));
        }
    }
    counts_fini(&left);
}

/* What the two items are to hold. */
static struct block *new_text(const struct work *w, int which)
{
    struct counts deletes;
    struct block *text = block_new(w->stored_bytes + 16);
    counts_init(&deletes, w->parts[DELETES].value, delimiter_of(w));
    for (size_t i = 0; i < w->items.count; i++) {
        const uint32_t *count = counts_find(&deletes, w->items.at[i]);
        append_times(&text, w->items.at[i], (count != NULL ? *count : 0) + (which == ADDS),
                     delimiter_of(w));
    }
    append_pairs(w, &text, &deletes);
    counts_fini(&deletes);
    return text;
}

/* True: a write was sent. */
static bool write_text(struct engine *e, struct work *w, int which)
{
    const struct part *part = &w->parts[which];
    struct block *text = new_text(w, which);
    bool differs = !slice_equal(part->value, block_text(text));
    if (differs) {
        part_write(e, &w->op, part, text, 0);
    }
    block_unref(&text);
    return differs;
}

/* lset: the new items in place of those found. */
static bool is_set(const struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    return call != NULL && call->verb == LIST_SET;
}

static void apply_set(struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    if (is_set(w)) {
        fold_apply(&w->items.fold, ENTRY_CLEAR, SLICE_NONE);
        for (size_t i = 0; i < call->item_count; i++) {
            fold_apply(&w->items.fold, ENTRY_ADD, call->items[i]);
        }
        items_settle(&w->items);
    }
}

/* Writes one after the other. Ends with conflict or failed set, or neither. */
static enum progress write_both(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->inner;
    CO_BEGIN(co);
    w->conflict = false;
    for (w->next_part = ADDS; w->next_part <= DELETES; w->next_part++) {
        if (!write_text(e, w, (int)w->next_part)) {
            continue;
        }
        CO_AWAIT(co, "writing the folded items");
        w->conflict = !work_written(e, w, event);
        w->wrote_any = w->wrote_any || event->status == BE_STORED;
        if (w->conflict || w->failed) {
            break;
        }
    }
    CO_END(co);
}

/* Keeps what the first item held when it was read; what of it is in the list, each once; and what
 * the second is to hold. */
static void keep_texts(struct engine *e, struct work *w)
{
    char number[NUMBER_BYTES + 1];
    work_forget_texts(w);
    w->texts = calloc(3, sizeof(struct block *));
    CHECK(w->texts != NULL);
    w->text_count = 3;
    w->texts[2] = block_new(sizeof number);
    (void)snprintf(number, sizeof number, "@%016llx", (unsigned long long)rng_next(e->rng));
    text_append(&w->texts[2], slice_make(number, NUMBER_BYTES), delimiter_of(w));
    w->texts[0] = block_new(w->parts[ADDS].value.len);
    block_append(&w->texts[0], w->parts[ADDS].value.p, w->parts[ADDS].value.len);
    w->texts[1] = block_new(w->items.bytes + w->items.count);
    for (size_t i = 0; i < w->items.count; i++) {
        text_append(&w->texts[1], w->items.at[i], delimiter_of(w));
    }
}

/* Has somebody else begun to fold since this one has emptied the deletions? Whoever folds says so
 * by a delimiter more, until the deletions are written anew; and then the number is gone. */
static bool folding_began(const struct work *w)
{
    struct slice text = w->parts[DELETES].value, number = block_text(w->texts[2]);
    char delimiter = delimiter_of(w), before = delimiter;
    if (text.len < number.len || memcmp(text.p, number.p, number.len) != 0) {
        return true;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == delimiter && before == delimiter) {
            return true;
        }
        before = text.p[i];
    }
    return false;
}

/* The first item with what is in the list, and what came since. False: somebody else has folded. */
static bool write_rest(struct engine *e, struct work *w)
{
    struct slice now = w->parts[ADDS].value, then = block_text(w->texts[0]);
    struct slice kept = block_text(w->texts[1]);
    if (now.len < then.len || memcmp(now.p, then.p, then.len) != 0) {
        return false;
    }
    struct block *value = block_new(kept.len + now.len - then.len);
    block_append(&value, kept.p, kept.len);
    block_append(&value, now.p + then.len, now.len - then.len);
    part_write(e, &w->op, &w->parts[ADDS], value, 0);
    block_unref(&value);
    return true;
}

/* Empties the second item, and takes out of the first what was deleted. The latter must succeed
 * once the former has: additions that come in between are carried over. */
static enum progress shrink_both(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->inner;
    CO_BEGIN(co);
    keep_texts(e, w);
    part_write(e, &w->op, &w->parts[DELETES], w->texts[2], 0);
    CO_AWAIT(co, "emptying the deletions");
    w->conflict = !work_written(e, w, event);
    if (w->conflict || w->failed) {
        CO_RETURN(co);
    }
    part_forget(&w->parts[DELETES]);
    for (w->rounds = 0; w->rounds < TRIES_MAX && write_rest(e, w); w->rounds++) {
        CO_AWAIT(co, "taking out what was deleted");
        if (work_written(e, w, event)) {
            CO_RETURN(co);
        }
        part_send(e, &w->op, &w->parts[ADDS], BE_GET, NULL, 0);
        CO_AWAIT(co, "reading what was added meanwhile");
        if (event->status != BE_HIT) {
            break;
        }
        part_take(&w->parts[ADDS], event->reply);
        part_send(e, &w->op, &w->parts[DELETES], BE_GET, NULL, 0);
        CO_AWAIT(co, "reading what was deleted meanwhile");
        if (event->status != BE_HIT) {
            break;
        }
        part_take(&w->parts[DELETES], event->reply);
        if (folding_began(w)) {
            break;
        }
    }
    w->conflict = true;
    CO_END(co);
}

/* Whoever folds says so: by a delimiter more behind the deletions, which means nothing else. */
static void prepare_sign(struct work *w)
{
    char delimiter = delimiter_of(w);
    struct append *a = &w->append;
    a->target = (struct part){.role = PART_DELETES};
    a->verb = BE_APPEND;
    a->value = block_new(1);
    block_append(&a->value, &delimiter, 1);
    a->create = block_ref(a->value);
}

/* lcompact and lset. */
static enum progress paired_rewrite(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->body;
    CO_BEGIN(co);
    CO_CALL(co, work_look(e, w, event));
    if (!w->failed && (is_set(w) || w->can_shrink)) {
        prepare_sign(w);
        CO_CALL(co, work_append(e, w, event));
        if (!w->failed && w->append.status != BE_STORED) {
            work_note_text(w, "backend has no room for this list in one item, nothing done");
        }
    }
    for (w->tries = 0; !w->failed && (is_set(w) || w->can_shrink) && w->tries < TRIES_MAX;
         w->tries++) {
        if (w->tries > 0 && w->conflict) {
            CO_SLEEP(&w->op, co, "backing off after a conflict",
                     e->now.mono_us + work_backoff_us(e, w));
        }
        CO_CALL(co, work_look(e, w, event));
        if (w->failed) {
            break;
        }
        apply_set(w);
        CO_CALL(co, write_both(e, w, event));
        if (!w->failed && !w->conflict && is_set(w)) {
            work_finish(e, w);
        }
        if (w->failed || (!w->conflict && !should_shrink(w))) {
            break;
        }
        if (!w->conflict) {
            CO_CALL(co, work_look(e, w, event));
            if (w->failed || !should_shrink(w)) {
                break;
            }
            CO_CALL(co, shrink_both(e, w, event));
        }
        if (w->failed || !w->conflict) {
            break;
        }
    }
    if (w->tries == TRIES_MAX) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: other writers were faster each time");
    }
    if (w->failed && w->wrote_any) {
        work_note_unknown(w);
    }
    if (w->failed) {
        work_fail(e, w, w->error);
    } else {
        metric_inc(e->metrics, METRIC_list_folds);
        work_finish(e, w);
    }
    CO_END(co);
}

const struct dialect dialect_paired = {
    .name = "paired",
    .lanes = {[LIST_ADD] = LANE_ADD,
              [LIST_DEL] = LANE_DELETE,
              [LIST_SET] = LANE_ALONE,
              DIALECT_READS,
              [LIST_DROP] = LANE_ALONE,
              [LIST_COMPACT] = LANE_ALONE},
    .never = dialect_not_exact,
    .parts = paired_parts,
    .look = paired_look,
    .change = paired_change,
    .set = paired_rewrite,
    .drop = dialect_drop,
    .compact = paired_rewrite,
};
