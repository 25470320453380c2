/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.a and X.b, signed logs, and X.active, which holds the name of the active one.
 *
 * Order of writes: read the pointer, then APPEND changes to the active log. The first change writes
 * the pointer, then the log. For folding see fold.c: there the pointer is replaced by CAS.
 *
 * Not guaranteed: a writer that reads the pointer and then pauses writes to the old log. Its
 * additions are not lost, but they count as of the moment when the rest is drained: an item that
 * was deleted in the meantime comes back.
 */
#include "dialect/two_logs/two_logs.h"

static void pointer_parts(struct work *w)
{
    (void)work_add_part(w, PART_A, 0);
    (void)work_add_part(w, PART_B, 0);
    (void)work_add_part(w, PART_ACTIVE, 0);
}

int two_logs_named(const struct list *list, struct slice value)
{
    char name[KEY_BYTES_MAX];
    for (int which = 0; which < 2; which++) {
        uint8_t len = part_name(list, two_logs_role(which), 0, name);
        if (slice_equal(value, slice_make(name, len))) {
            return which + 1;
        }
    }
    return 0;
}

static enum look pointer_look(struct engine *e, struct work *w)
{
    const struct part *parts = w->parts;
    int named = two_logs_named(w->op.list, parts[TWO_LOGS_POINTER].value);
    bool only_b = parts[0].state == PART_MISSING && parts[1].state == PART_THERE;
    two_logs_own(w)->active = named != 0 ? named - 1 : only_b;
    return two_logs_look(e, w);
}

static const char *pointer_grammar(const struct grammar *g, const struct part *part)
{
    switch (part->role) {
    case PART_A:
    case PART_B:
        return grammar_signed(g, g->value, grammar_item);
    case PART_ACTIVE:
        return two_logs_named(g->list, g->value) != 0 ? NULL
                                                      : "not the name of one of the two logs";
    default:
        return NULL;
    }
}

const struct dialect dialect_two_logs_pointer = {
    .name = "flip",
    .lanes = {[LIST_ADD] = LANE_CHANGE, [LIST_DEL] = LANE_CHANGE, DIALECT_LANES_SEVERAL},
    .unsupported_reason = dialect_not_exact,
    .grammar = pointer_grammar,
    .essential = ROLE(PART_A) | ROLE(PART_B),
    .reserved = signed_reserved,
    .refusal = two_logs_refusal,
    .work_bytes = sizeof(struct two_logs),
    .list_bytes = sizeof(struct two_logs_list),
    .forget = two_logs_forget,
    .parts = pointer_parts,
    .look = pointer_look,
    .change = two_logs_change,
    .set = two_logs_rewrite,
    .drop = dialect_drop,
    .compact = two_logs_rewrite,
};
