/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: user-1234,user-222,user-987,   under the list's key; the delimiter is any byte.
 *
 * Order of writes: one item, one write. An addition is an APPEND, or an ADD where nothing is. All
 * else reads, decides and writes by CAS: deletions, too, since every occurrence has to go.
 *
 * Cannot promise: deletions from a busy list contend, and may end with "busy". The list has to fit
 * one item. An item that was added twice takes its room twice until it is folded.
 */
#include "dialect/single/single.h"

static enum look simple_look(struct engine *e, struct work *w)
{
    struct slice rest = w->cells[0].value, item;
    char delimiter = (char)w->op.list->policy->delimiter;
    (void)e;
    while (text_next(&rest, delimiter, &item)) {
        fold_apply(&w->items.fold, ENTRY_ADD, item);
    }
    items_settle(&w->items);
    w->can_shrink = w->cells[0].value.len > w->items.bytes + w->items.count ||
                    text_has_gaps(w->cells[0].value, delimiter);
    return LOOK_DONE;
}

static void simple_encode(const struct list_policy *policy, const struct fold *fold,
                          struct block **out)
{
    text_append_items(out, fold, (char)policy->delimiter);
}

static const char *simple_grammar(const struct grammar *g, const struct cell *cell)
{
    return cell->role == CELL_KEY ? grammar_delimited(g, g->value, grammar_item) : NULL;
}

const struct dialect dialect_simple = {
    .name = "simple",
    .lanes = {[LIST_ADD] = LANE_ADD, [LIST_DEL] = LANE_EXACT, DIALECT_LANES_SINGLE},
    SINGLE_TABLE,
    .grammar = simple_grammar,
    .delimited = true,
    .look = simple_look,
    .change = single_change,
    .batch = delimited_batch,
    .encode = simple_encode,
};
