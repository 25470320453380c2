/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of lists that are too large for a view: counts, memberships and ranges, by the indexes of
 * their runs (core/run_index.h) and what the worker knows of the list besides (content/outline.h).
 * They fetch the sublists that the answer stands in, and those that a lookup leads to.
 *
 * An index is made when all of its run passes by: by the worker that writes the run in a flip, a
 * merge or a fill, or at the first read that wants one. It takes 13 bytes for each entry in the
 * meantime. Read as from_sublists.h says are: lists whose index has no room in index_bytes, or is
 * being made by another worker, items that are over in a second of their own, a log that empties
 * the list, and lget. A range from the list's beginning waits for no index either.
 */
#ifndef LIST_READ_FROM_INDEX_H
#define LIST_READ_FROM_INDEX_H

#include "list/core/op.h"

/* Takes the calls that it answers from this head off the queue. The others, all of them where the
 * list's indexes do not fit into memory, are for from_sublists.h. head: not NULL. */
void index_start_reads(struct engine *e, struct list *list, struct call_queue *calls,
                       struct head *head);

#endif
