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

static struct slice name_of(const struct list *list, int which, char text[KEY_BYTES_MAX])
{
    return slice_make(text, cell_name(list, two_logs_role(which), 0, text));
}

/* The log's name without what both names begin with and end with. */
static struct slice short_name(const struct list *list, int which, char text[KEY_BYTES_MAX])
{
    char other_text[KEY_BYTES_MAX];
    struct slice name = name_of(list, which, text), other = name_of(list, 1 - which, other_text);
    while (name.len > 0 && other.len > 0 && *name.p == *other.p) {
        (void)slice_take(&name, 1);
        (void)slice_take(&other, 1);
    }
    while (name.len > 0 && other.len > 0 && name.p[name.len - 1] == other.p[other.len - 1]) {
        name.len--;
        other.len--;
    }
    return name;
}

int two_logs_named(const struct list *list, struct slice value)
{
    char text[KEY_BYTES_MAX];
    for (int which = 0; which < 2 && value.len > 0; which++) {
        if (slice_equal(value, name_of(list, which, text)) ||
            slice_equal(value, short_name(list, which, text))) {
            return which + 1;
        }
    }
    return 0;
}

struct slice two_logs_pointer_text(const struct list *list, int which, struct slice before,
                                   char text[KEY_BYTES_MAX])
{
    int named = two_logs_named(list, before);
    bool whole = named == 0 || slice_equal(before, name_of(list, named - 1, text));
    return whole ? name_of(list, which, text) : short_name(list, which, text);
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
    .outlives_drop = two_logs_outlive_drop,
    .compact = two_logs_rewrite,
};
