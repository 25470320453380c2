/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.a and X.b, signed logs. A log that begins with the mark ("^+1234") is closed; the other
 * one is active.
 *
 * Order of writes: APPEND changes to the log that is not closed. For folding see two_logs.c: there
 * a PREPEND closes the old log, which counts as closed when the other one is there.
 *
 * Not guaranteed: the same as flip.c. Besides, a proxy sees that a log was closed when it
 * reads the log, or when the log is gone; until then it goes on to append to it.
 */
#include "dialect/two_logs/note.h"
#include "dialect/two_logs/two_logs.h"

static void mark_cells(struct work *w)
{
    two_logs_begin_look(w);
}

/* Which of two logs that are both open, or both closed, is active? A copy that is not finished does
 * not count yet; a copy that was closed, too, by a folding that was slow, is the newer one, a place
 * for a copy is not. Else the log that was made as a copy once, since the other one began without
 * knowing of it. Else the first, also for a list that begins. */
static int of_equals(const struct work *w, bool closed)
{
    struct note note;
    if (two_logs_has_taken(w, 1, &note)) {
        return closed && !two_logs_is_place(w, 1);
    }
    if (two_logs_has_taken(w, 0, &note)) {
        return !closed || two_logs_is_place(w, 0);
    }
    if (two_logs_was_copy(w, 0) != two_logs_was_copy(w, 1)) {
        return two_logs_was_copy(w, 1);
    }
    return two_logs_number(w, 0) == 0 && two_logs_number(w, 1) != 0;
}

/* A log that is closed takes no more changes, also while this look goes on: beside a log that a
 * client by hand begins, what comes late to it counts as older. */
static void forget_closed(struct work *w)
{
    int known = two_logs_list(w->op.list)->active;
    if (known != 0 && two_logs_closed(w, known - 1)) {
        two_logs_forget(w->op.list);
    }
}

static enum look mark_look(struct engine *e, struct work *w)
{
    forget_closed(w);
    bool a_closed = two_logs_closed(w, 0), b_closed = two_logs_closed(w, 1);
    bool a_there = w->cells[0].state == CELL_THERE, b_there = w->cells[1].state == CELL_THERE;
    if (a_closed != b_closed) {
        two_logs_own(w)->active = a_closed;
    } else if (a_there != b_there) {
        two_logs_own(w)->active = b_there;
    } else {
        two_logs_own(w)->active = of_equals(w, a_closed);
    }
    return two_logs_look(e, w);
}

static const char *mark_grammar(const struct grammar *g, const struct cell *cell)
{
    bool log = cell->role == CELL_A || cell->role == CELL_B;
    return log ? grammar_signed(g, two_logs_behind_marks(g->list, g->value), grammar_item) : NULL;
}

static size_t mark_reserved(const struct list_policy *policy, char *out)
{
    out[0] = (char)policy->closed_mark;
    return 1 + signed_reserved(policy, out + 1);
}

const struct dialect dialect_two_logs_mark = {
    .name = "marker",
    .lanes = {[LIST_ADD] = LANE_CHANGE, [LIST_DEL] = LANE_CHANGE, DIALECT_LANES_SEVERAL},
    .unsupported_reason = dialect_not_exact,
    .grammar = mark_grammar,
    .essential = ROLE(CELL_A) | ROLE(CELL_B),
    .reserved = mark_reserved,
    .refusal = two_logs_refusal,
    .work_bytes = sizeof(struct two_logs),
    .list_bytes = sizeof(struct two_logs_list),
    .forget = two_logs_forget,
    .cells = mark_cells,
    .look = mark_look,
    .change = two_logs_change,
    .set = two_logs_rewrite,
    .drop = dialect_drop,
    .nth_drop = two_logs_nth_drop,
    .outlives_drop = two_logs_outlive_drop,
    .compact = two_logs_rewrite,
};
