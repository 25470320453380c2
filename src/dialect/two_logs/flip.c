/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.a and X.b, signed logs, and X.active, which holds the name of the one that is active.
 *
 * Order of writes: changes are an APPEND to the active log, after a look at the pointer; the first
 * one writes the pointer, then the log. For folding see fold.c; there the pointer flips by
 * CAS.
 *
 * Cannot promise: a writer that read the pointer and then stands still writes to the old log. What
 * it adds is not lost; but it counts as of when the rest is drained: an item that was deleted in
 * the meantime comes back.
 */
#include "dialect/two_logs/two_logs.h"

static void flip_parts(struct work *w)
{
    (void)work_add_part(w, PART_A, 0);
    (void)work_add_part(w, PART_B, 0);
    (void)work_add_part(w, PART_ACTIVE, 0);
}

int logs_named(const struct list *list, struct slice value)
{
    char name[KEY_BYTES_MAX];
    for (int which = 0; which < 2; which++) {
        uint8_t len = part_name(list, logs_role(which), 0, name);
        if (slice_equal(value, slice_make(name, len))) {
            return which + 1;
        }
    }
    return 0;
}

static enum look flip_look(struct engine *e, struct work *w)
{
    const struct part *parts = w->parts;
    int named = logs_named(w->op.list, parts[LOGS_POINTER].value);
    bool only_b = parts[0].state == PART_MISSING && parts[1].state == PART_THERE;
    logs_of(w)->active = named != 0 ? named - 1 : only_b;
    return logs_look(e, w);
}

static const char *flip_grammar(const struct grammar *g, const struct part *part)
{
    switch (part->role) {
    case PART_A:
    case PART_B:
        return grammar_signed(g, g->value, grammar_item);
    case PART_ACTIVE:
        return logs_named(g->list, g->value) != 0 ? NULL : "not the name of one of the two logs";
    default:
        return NULL;
    }
}

const struct dialect dialect_flip = {
    .name = "flip",
    .lanes = {[LIST_ADD] = LANE_CHANGE, [LIST_DEL] = LANE_CHANGE, DIALECT_LANES_SEVERAL},
    .never = dialect_not_exact,
    .grammar = flip_grammar,
    .essential = ROLE(PART_A) | ROLE(PART_B),
    .reserved = signed_reserved,
    .refusal = logs_refusal,
    .work_bytes = sizeof(struct logs),
    .list_bytes = sizeof(struct logs_list),
    .forget = logs_forget,
    .parts = flip_parts,
    .look = flip_look,
    .change = logs_change,
    .set = logs_rewrite,
    .drop = dialect_drop,
    .compact = logs_rewrite,
};
