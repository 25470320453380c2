/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a list may hold after two changes, of which it is known how they ended.
 */
#ifndef SWEEP_DIALECTS_MAYBE_H
#define SWEEP_DIALECTS_MAYBE_H

#include "dialects.h"

#define MAYBE_MAX 64
struct maybe {
    letters sets[MAYBE_MAX];
    unsigned count;
};

letters letters_of(const char *items);
/* The set after that change. */
letters applied(const struct op_spec *spec, letters set);

/* Adds what there may be when two comes behind one. */
void maybe_after(struct maybe *maybe, letters first, const struct asked *one,
                 const struct asked *two);
/* The same when y was added and b deleted by hand: before one of the changes, between them or
 * behind both; both_before: behind both, if they were done at all. */
void maybe_with_hand(struct maybe *maybe, letters first, const struct asked *one,
                     const struct asked *two, bool both_before);

/* In lists of several items what replaces the content is not done in one moment, and what is
 * deleted beside other changes may come back; but for pairs. */
bool is_weak(enum list_dialect dialect, const struct asked *a, const struct asked *b);
/* weak: the set may hold more. */
bool is_allowed(const struct maybe *maybe, letters set, bool weak);

#endif
