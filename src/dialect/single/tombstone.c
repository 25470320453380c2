/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: user-222,|user-1234,user-222,user-987,   under the list's key: what stands before the bar
 * is deleted. An item that was deleted k times and added m times is in the list if m > k; the first
 * k of its places are void.
 *
 * Order of writes: one item, one write. All changes read, decide and write by CAS, each item once
 * and nothing before the bar. With changes = blind additions are an APPEND, deletions a PREPEND;
 * where nothing is, an ADD that begins with the bar.
 *
 * Cannot promise: that a blind deletion deletes. An item that was added twice survives one, and one
 * that was deleted while it was not there swallows the next addition. A value without a bar, which
 * clients by hand may have written, is all additions; a PREPEND to it would be one, too, so the
 * value is looked at before this worker's first blind deletion.
 */
#include "dialect/single/single.h"

/* What a worker remembers of the list. */
struct tombstone_list {
    bool has_bar; /* deletions may be prepended */
};

static struct tombstone_list *tombstone_list(const struct list *list)
{
    return list_own(list);
}

static char delimiter_of(const struct work *w)
{
    return (char)w->op.list->policy->delimiter;
}

static enum look tombstone_look(struct engine *e, struct work *w)
{
    struct slice adds = w->cells[0].value, deletes = SLICE_NONE;
    const char *bar =
        adds.len == 0 ? NULL : memchr(adds.p, w->op.list->policy->deleted_delimiter, adds.len);
    (void)e;
    if (bar != NULL) {
        deletes = slice_take(&adds, (size_t)(bar - adds.p));
        (void)slice_take(&adds, 1);
    }
    tombstone_list(w->op.list)->has_bar = bar != NULL;
    counted_fold(&w->items.fold, adds, deletes, delimiter_of(w));
    items_settle(&w->items);
    w->can_shrink = w->cells[0].value.len > w->items.bytes + w->items.count + 1 ||
                    text_has_gaps(adds, delimiter_of(w));
    return LOOK_DONE;
}

static void tombstone_batch(struct work *w)
{
    char bar = (char)w->op.list->policy->deleted_delimiter;
    struct append *a = &w->append;
    delimited_batch(w);
    block_unref(&a->create);
    a->verb = w->lane == LANE_ADD ? BE_APPEND : BE_PREPEND;
    if (w->lane == LANE_ADD) {
        a->create = block_new(a->value->used + 1);
        block_append(&a->create, &bar, 1);
        block_append(&a->create, a->value->data, a->value->used);
    } /* else deleting from nothing */
}

static enum progress tombstone_change(struct engine *e, struct work *w,
                                      const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (w->lane == LANE_DELETE && !tombstone_list(w->op.list)->has_bar) {
        CO_CALL(co, work_look(e, w, event));
        if (w->failed) {
            work_fail(e, w, w->error);
            CO_RETURN(co);
        }
        if (!tombstone_list(w->op.list)->has_bar) {
            CO_CALL(co, single_exact(e, w, event));
            CO_RETURN(co);
        }
    }
    CO_CALL(co, single_change(e, w, event));
    if (w->append.status == BE_MISS) {
        tombstone_list(w->op.list)->has_bar = false; /* the client that makes it anew may write none
                                                      */
    }
    CO_END(co);
}

static void tombstone_encode(const struct list_policy *policy, const struct fold *fold,
                             struct block **out)
{
    char bar = (char)policy->deleted_delimiter;
    block_append(out, &bar, 1);
    text_append_items(out, fold, (char)policy->delimiter);
}

/* Deleted items, a bar, added items; without a bar only added ones. */
static const char *tombstone_grammar(const struct grammar *g, const struct cell *cell)
{
    struct slice adds = g->value, deletes = SLICE_NONE;
    int bar = g->list->policy->deleted_delimiter;
    const char *found = adds.len == 0 ? NULL : memchr(adds.p, bar, adds.len);
    if (cell->role != CELL_KEY) {
        return NULL;
    }
    if (found != NULL) {
        deletes = slice_take(&adds, (size_t)(found - adds.p));
        (void)slice_take(&adds, 1);
        found = adds.len == 0 ? NULL : memchr(adds.p, bar, adds.len);
    }
    if (found != NULL) {
        return grammar_says(g, "a second bar", found);
    }
    const char *reason = grammar_delimited(g, deletes, grammar_item);
    return reason != NULL ? reason : grammar_delimited(g, adds, grammar_item);
}

static size_t tombstone_reserved(const struct list_policy *policy, char *out)
{
    out[0] = (char)policy->deleted_delimiter;
    return 1;
}

static void tombstone_forget(struct list *list)
{
    tombstone_list(list)->has_bar = false;
}

const struct dialect dialect_tombstone = {
    .name = "tombstone",
    .lanes = {[LIST_ADD] = LANE_ADD, [LIST_DEL] = LANE_DELETE, DIALECT_LANES_SINGLE},
    SINGLE_TABLE,
    .grammar = tombstone_grammar,
    .counted = true,
    .delimited = true,
    .reserved = tombstone_reserved,
    .list_bytes = sizeof(struct tombstone_list),
    .forget = tombstone_forget,
    .look = tombstone_look,
    .change = tombstone_change,
    .batch = tombstone_batch,
    .encode = tombstone_encode,
};
