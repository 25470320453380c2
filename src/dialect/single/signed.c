/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: +1234+222+987-222   under the list's key; the signs are any two bytes. The later sign of
 * an item wins.
 *
 * Order of writes: one item, one write. Additions and deletions are an APPEND, or an ADD where
 * nothing is. All else reads, decides and writes by CAS.
 *
 * Cannot promise: the list has to fit one item, with what was deleted until it is folded.
 */
#include "dialect/single/single.h"

/* One deletion alone may as well be a number with a minus: it is left as it is. */
static bool may_be_number(struct slice text, struct signs signs)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len && count < 2; i++) {
        count += text.p[i] == signs.add || text.p[i] == signs.delete;
    }
    return count == 1 && text.p[0] == signs.delete;
}

static enum look signed_look(struct engine *e, struct work *w)
{
    struct slice text = w->cells[0].value;
    struct signs signs = signs_of(w->op.list->policy);
    (void)e;
    signed_fold(&w->items.fold, text, signs);
    items_settle(&w->items);
    w->can_shrink = text.len > w->items.bytes + w->items.count && !may_be_number(text, signs);
    return LOOK_DONE;
}

static const char *signed_grammar(const struct grammar *g, const struct cell *cell)
{
    return cell->role == CELL_KEY ? grammar_signed(g, g->value, grammar_item) : NULL;
}

const struct dialect dialect_signed = {
    .name = "signed",
    .lanes = {[LIST_ADD] = LANE_CHANGE, [LIST_DEL] = LANE_CHANGE, DIALECT_LANES_SINGLE},
    SINGLE_TABLE,
    .grammar = signed_grammar,
    .reserved = signed_reserved,
    .look = signed_look,
    .change = single_change,
    .batch = signed_batch,
    .encode = signed_encode,
};
