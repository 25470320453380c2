/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dialects of one item, the one under the list's key, do alike.
 */
#ifndef DIALECT_SINGLE_SINGLE_H
#define DIALECT_SINGLE_SINGLE_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_simple, dialect_tombstone, dialect_signed;

/* Members of their tables. */
work_step single_change, single_exact, single_touch, single_purge, single_compact, single_remove;
void single_cells(struct work *w);
/* Sends what the items of the last look amount to by now, in place of what was read. */
void single_send(struct engine *e, struct work *w);

/* purge.c: the dialect's own memory of an operation. */
struct purge;
void single_work_fini(struct work *w);
void single_replace_call(struct work *w, const struct list_call *call, struct list_call *ghost);

#define SINGLE_TABLE \
    .essential = ROLE(CELL_KEY), .one_item = true, .cells = single_cells, .exact = single_exact, \
    .touch = single_touch, .purge = single_purge, .drop = dialect_drop, .compact = single_compact, \
    .remove = single_remove, .work_bytes = sizeof(struct purge *), .work_fini = single_work_fini, \
    .replace_call = single_replace_call

#endif
