/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.a and X.b, signed logs, and X.active, which holds the name of the active one, or what
 * tells the two names apart: "b".
 *
 * Order of writes: read the pointer, then APPEND changes to the active log. The first change writes
 * the pointer, then the log. For folding see two_logs.c: there the pointer is replaced by CAS.
 *
 * Not guaranteed: a writer that reads the pointer and then pauses writes to the old log. Its
 * additions are not lost, but they count as of the moment when the rest is drained: an item that
 * was deleted in the meantime comes back.
 */
#include "dialect/two_logs/two_logs.h"

static void pointer_cells(struct work *w)
{
    two_logs_begin_look(w);
    (void)work_add_cell(w, CELL_ACTIVE, 0);
}

static enum look pointer_look(struct engine *e, struct work *w)
{
    const struct cell *cells = w->cells;
    int named = two_logs_named(w->op.list, cells[TWO_LOGS_POINTER].value);
    bool only_b = cells[0].state == CELL_MISSING && cells[1].state == CELL_THERE;
    two_logs_own(w)->active = named != 0 ? named - 1 : only_b;
    return two_logs_look(e, w);
}

static const char *pointer_grammar(const struct grammar *g, const struct cell *cell)
{
    switch (cell->role) {
    case CELL_A:
    case CELL_B:
        return grammar_signed(g, g->value, grammar_item);
    case CELL_ACTIVE:
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
    .essential = ROLE(CELL_A) | ROLE(CELL_B),
    .reserved = signed_reserved,
    .refusal = two_logs_refusal,
    .work_bytes = sizeof(struct two_logs),
    .list_bytes = sizeof(struct two_logs_list),
    .forget = two_logs_forget,
    .cells = pointer_cells,
    .look = pointer_look,
    .change = two_logs_change,
    .set = two_logs_rewrite,
    .drop = dialect_drop,
    .nth_drop = two_logs_nth_drop,
    .outlives_drop = two_logs_outlive_drop,
    .compact = two_logs_rewrite,
};
