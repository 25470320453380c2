/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dialects of one item, the one under the list's key, do alike.
 */
#ifndef DIALECT_SINGLE_SINGLE_H
#define DIALECT_SINGLE_SINGLE_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_simple, dialect_tombstone, dialect_signed;

/* Members of their tables. */
work_step single_change, single_exact, single_touch, single_compact, single_remove;
void single_parts(struct work *w);

#define SINGLE_TABLE \
    .essential = ROLE(PART_KEY), .keeps_key = true, .one_item = true, .parts = single_parts, \
    .exact = single_exact, .touch = single_touch, .drop = dialect_drop, .compact = single_compact, \
    .remove = single_remove

#endif
