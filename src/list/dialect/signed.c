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
#include "list/dialect/dialect.h"

static enum look signed_look(struct engine *e, struct work *w)
{
    (void)e;
    signed_fold(&w->items.fold, w->parts[0].value, signs_of(w->op.list->policy));
    items_settle(&w->items);
    w->can_shrink = w->parts[0].value.len > w->items.bytes + w->items.count;
    return LOOK_DONE;
}

void signed_batch(struct work *w)
{
    struct signs signs = signs_of(w->op.list->policy);
    struct block *text = block_new(w->call_bytes);
    struct list_call *call;
    bool adds = false;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        for (size_t i = 0; i < call->item_count; i++) {
            enum entry_op op = call->verb == LIST_DEL ? ENTRY_DEL : ENTRY_ADD;
            adds = adds || op == ENTRY_ADD;
            signed_append(&text, op, call->items[i], signs);
        }
    }
    w->append.verb = BE_APPEND;
    w->append.value = text;
    /* Deleting from nothing: nothing is what is there. */
    w->append.create = adds ? block_ref(text) : NULL;
}

void signed_encode(const struct list_policy *policy, const struct fold *fold, struct block **out)
{
    uint32_t at = 0;
    char op;
    struct slice item;
    while (fold_next(fold, true, &at, &op, &item)) {
        signed_append(out, ENTRY_ADD, item, signs_of(policy));
    }
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
    .compact = single_compact,
    .batch = signed_batch,
    .encode = signed_encode,
};
