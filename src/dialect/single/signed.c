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
#include "dialect/shared/dialect.h"

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
    struct slice text = w->parts[0].value;
    struct signs signs = signs_of(w->op.list->policy);
    (void)e;
    signed_fold(&w->items.fold, text, signs);
    items_settle(&w->items);
    w->can_shrink = text.len > w->items.bytes + w->items.count && !may_be_number(text, signs);
    return LOOK_DONE;
}

const struct dialect dialect_signed = {
    .name = "signed",
    .lanes = {[LIST_ADD] = LANE_CHANGE,
              [LIST_DEL] = LANE_CHANGE,
              [LIST_SET] = LANE_EXACT,
              [LIST_ADDX] = LANE_EXACT,
              [LIST_DELX] = LANE_EXACT,
              [LIST_CREATE] = LANE_EXACT,
              DIALECT_READS,
              [LIST_DROP] = LANE_ALONE,
              [LIST_COMPACT] = LANE_ALONE},
    .parts = single_parts,
    .look = signed_look,
    .change = single_change,
    .drop = dialect_drop,
    .compact = single_compact,
    .batch = signed_batch,
    .encode = signed_encode,
};
