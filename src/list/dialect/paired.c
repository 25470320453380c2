/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: follow-X holds what was added, unfollow-X what was deleted, both as delimited text. An
 * item that was deleted k times and added m times is in the list if m > k; the first k of its
 * places are void.
 *
 * Order of writes: an addition is an APPEND (or ADD) to the first item, a deletion to the second.
 * Folding writes the first before the second, and both so that the list reads the same at each
 * instant, though a crash may leave it half done:
 *
 *   1. the first: what is in the list; an item with k deletions k + 1 times
 *   2. the second: the deletions of what is in the list
 *
 * What stays behind in the second goes when it has become more than half of the first: the second
 * is emptied, then the first has each item once. Between these two a deletion of such an item shows
 * only after the second of them, and if that never comes, after the next folding but one addition.
 *
 * Cannot promise: what tombstone cannot; and two items cannot be read at one instant.
 */
#include "list/dialect/dialect.h"

#define TRIES_MAX 16

enum { DELETES, ADDS };

static void paired_parts(struct work *w)
{
    (void)work_add_part(w, PART_DELETES, 0);
    (void)work_add_part(w, PART_ADDS, 0);
}

static char delimiter_of(const struct work *w)
{
    return (char)w->op.list->policy->delimiter;
}

static enum look paired_look(struct engine *e, struct work *w)
{
    (void)e;
    counted_fold(&w->items.fold, w->parts[ADDS].value, w->parts[DELETES].value, delimiter_of(w));
    items_settle(&w->items);
    w->can_shrink =
        w->parts[ADDS].value.len + w->parts[DELETES].value.len > w->items.bytes + w->items.count;
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

/* What the two items are to hold. */
static struct block *new_text(const struct work *w, int which)
{
    struct counts deletes;
    struct block *text = block_new(w->stored_bytes + 16);
    counts_init(&deletes, w->parts[DELETES].value, delimiter_of(w));
    for (size_t i = 0; i < w->items.count; i++) {
        const uint32_t *count = counts_find(&deletes, w->items.at[i]);
        uint32_t times = (count != NULL ? *count : 0) + (which == ADDS);
        if (w->shrinking) {
            times = which == ADDS;
        }
        while (times-- > 0) {
            text_append(&text, w->items.at[i], delimiter_of(w));
        }
    }
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
static void apply_set(struct work *w)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    if (call != NULL && call->verb == LIST_SET) {
        fold_apply(&w->items.fold, ENTRY_CLEAR, SLICE_NONE);
        for (size_t i = 0; i < call->item_count; i++) {
            fold_apply(&w->items.fold, ENTRY_ADD, call->items[i]);
        }
        items_settle(&w->items);
    }
}

static bool should_shrink(const struct work *w)
{
    return w->parts[DELETES].value.len * 2 > w->parts[ADDS].value.len;
}

/* Writes one after the other. Ends with conflict or failed set, or neither. */
static enum progress write_both(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->inner;
    CO_BEGIN(co);
    w->conflict = false;
    for (w->next_part = 0; w->next_part < 2 && !w->conflict && !w->failed; w->next_part++) {
        /* The other way round what stays behind would come back; see above. */
        if (!write_text(e, w, w->shrinking ? (int)w->next_part : (int)(1 - w->next_part))) {
            continue;
        }
        CO_AWAIT(co, "writing the folded items");
        w->conflict = !work_written(e, w, event);
    }
    CO_END(co);
}

/* lcompact and lset. */
static enum progress paired_rewrite(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->body;
    CO_BEGIN(co);
    for (w->tries = 0; w->tries < TRIES_MAX; w->tries++) {
        if (w->tries > 0 && w->conflict) {
            CO_SLEEP(co, "backing off after a conflict", e->now.mono_us + work_backoff_us(e, w));
        }
        CO_CALL(co, work_look(e, w, event));
        if (w->failed) {
            break;
        }
        apply_set(w);
        CO_CALL(co, write_both(e, w, event));
        if (w->failed) {
            break;
        }
        if (w->conflict) {
            w->shrinking = false;
            continue;
        }
        if (TAILQ_EMPTY(&w->calls) || TAILQ_FIRST(&w->calls)->verb == LIST_SET) {
            work_finish(e, w);
        }
        if (w->shrinking || !should_shrink(w)) {
            break;
        }
        w->shrinking = true;
    }
    if (w->tries == TRIES_MAX) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: other writers were faster each time");
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
    .compact = paired_rewrite,
};
