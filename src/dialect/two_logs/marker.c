/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.a and X.b, signed logs; one that begins with the mark ("^+1234") is closed, the other
 * one is active.
 *
 * Order of writes: changes are an APPEND to the log that is not closed. For folding see
 * fold.c; there the old log is closed by PREPEND, and counts as closed when the other one is
 * there.
 *
 * Cannot promise: what flip cannot. And that a log was closed is seen when it is read or gone:
 * until then a proxy goes on to append to it.
 */
#include "dialect/two_logs/two_logs.h"

static void marker_parts(struct work *w)
{
    (void)work_add_part(w, PART_A, 0);
    (void)work_add_part(w, PART_B, 0);
}

/* Of two that are both open, or both closed: a copy that is not finished does not count yet, one
 * that was closed, too, is the newer. Else the one that was made as a copy once: the other one
 * began without knowing of it. Else the first, also for a list that begins. */
static int of_equals(const struct work *w, bool closed)
{
    struct note note;
    if (logs_has_taken(w, 1, &note)) {
        return closed;
    }
    if (logs_has_taken(w, 0, &note)) {
        return !closed;
    }
    return logs_number(w, 0) == 0 && logs_number(w, 1) != 0;
}

static enum look marker_look(struct engine *e, struct work *w)
{
    bool a_closed = logs_closed(w, 0), b_closed = logs_closed(w, 1);
    bool a_there = w->parts[0].state == PART_THERE, b_there = w->parts[1].state == PART_THERE;
    if (a_closed != b_closed) {
        logs_of(w)->active = a_closed;
    } else if (a_there != b_there) {
        logs_of(w)->active = b_there;
    } else {
        logs_of(w)->active = of_equals(w, a_closed);
    }
    return logs_look(e, w);
}

static const char *marker_grammar(const struct grammar *g, const struct part *part)
{
    bool log = part->role == PART_A || part->role == PART_B;
    return log ? grammar_signed(g, logs_behind_marks(g->list, g->value), grammar_item) : NULL;
}

static size_t marker_reserved(const struct list_policy *policy, char *out)
{
    out[0] = (char)policy->closed_mark;
    return 1 + signed_reserved(policy, out + 1);
}

const struct dialect dialect_marker = {
    .name = "marker",
    .lanes = {[LIST_ADD] = LANE_CHANGE, [LIST_DEL] = LANE_CHANGE, DIALECT_LANES_SEVERAL},
    .never = dialect_not_exact,
    .grammar = marker_grammar,
    .essential = ROLE(PART_A) | ROLE(PART_B),
    .reserved = marker_reserved,
    .refusal = logs_refusal,
    .work_bytes = sizeof(struct logs),
    .list_bytes = sizeof(struct logs_list),
    .forget = logs_forget,
    .parts = marker_parts,
    .look = marker_look,
    .change = logs_change,
    .set = logs_rewrite,
    .drop = dialect_drop,
    .compact = logs_rewrite,
};
