/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cap of a list: how many items it holds at most, and what becomes of an addition beyond. The
 * content is that of all changes, one after the other: an item added to a list that is full drops
 * the oldest one, or is not added. So it depends on the order of changes alone, and what was
 * dropped never comes back.
 *
 * The outcomes of two stretches of changes do not add up to the outcome of both under a cap.
 * Therefore a capped list has no runs: all of it is in the log of its head, which a fold writes
 * anew. The fold knows the cap (fold_apply.c); nothing else replays changes.
 */
#ifndef LIST_FORMAT_CAP_H
#define LIST_FORMAT_CAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* What a header can say; config/table.c and config/finish.c allow no more either. */
#define CAP_ITEMS_MAX 10000u

struct cap {
    uint32_t max; /* items; 0: there is no cap */
    bool refuses; /* an addition beyond is not done; else the oldest item goes */
};

static inline bool cap_equal(struct cap a, struct cap b)
{
    return a.max == b.max && a.refuses == b.refuses;
}

/* Room for a field, with the blank. */
#define CAP_FIELD_MAX 24
/* Writes " #MAX.drop" or " #MAX.refuse"; returns its length. */
uint32_t cap_format(char *out, struct cap cap);
/* Reads such a field, without the blank; false when it is none. */
bool cap_parse(struct slice field, struct cap *cap);

#endif
