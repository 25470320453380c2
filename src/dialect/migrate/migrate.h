/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a dialect to the native layout, list by list, while the lists are in use (migrate = native).
 *
 * What says which of the two a list is in is the item under the list's own key:
 *
 *     a record of a move    the list is native; its first head stands in the record
 *     anything else         the list is in its dialect, if that keeps something there
 *     nothing               the list is native if it has a head; else in its dialect, if it has
 *                           items there; else it is nowhere, and what is added makes a native one:
 *                           in a dialect of several items the empty list is converted first, since
 *                           others may be adding to it as to an old one
 *
 * Order of writes:
 *
 *     1. ADD the sublists of a run that nothing refers to
 *     2. CAS (or ADD) the item under the list's key: the record. From here on the list is native.
 *     3. ADD the head. What came to the dialect's items since they were read is in it.
 *     4. DELETE the dialect's items, then the record
 *
 * Whoever meets a record does 3 and 4 before anything else. Native heads are not removed in this
 * state, so that a late 3 finds one. Changes in a dialect of one item go by CAS, so none can come
 * behind the record; in the others whoever has written looks for a record or a head afterwards, and
 * repeats what was written on the native list when there is one. What was written behind step 4 is
 * deleted again.
 *
 * The record: "\1mclistd moved 1 HEAD_BYTES VERSION\n", the head, what stood there before. VERSION
 * is a mixture of the items' CAS numbers when they were read; 0: there are no others.
 */
#ifndef DIALECT_MIGRATE_MIGRATE_H
#define DIALECT_MIGRATE_MIGRATE_H

#include "dialect/shared/dialect.h"

struct record {
    struct slice head;
    struct slice before;
    uint64_t version;
};
/* Reads a record. False: it is something else. */
bool record_parse(struct slice value, struct record *record);

static inline bool list_migrates(const struct list *list)
{
    return list->policy->migrate == MIGRATE_NATIVE;
}

/* After a look: is the list not there (any more)? */
bool migrate_left(const struct work *w);

/* Finds out where the list is, and lets its calls go on there. */
work_step migrate_resolve;
/* Inner: has the list moved by now? Ends with moved or failed, or neither. */
work_step migrate_verify;
/* lconvert. */
work_step migrate_convert;
/* Inner: carries out what the record in w->move.control leaves to be done. */
work_step migrate_complete;

/* Deletes what somebody who took the list for one of the dialect has written beside the native one;
 * w is that work, done. */
work_step migrate_clean;

/* Puts the calls back into the queue, in front; the list is looked for anew. */
void migrate_requeue(struct engine *e, struct work *w, struct call_queue *calls);

/* The native content that is to be written: the sublists of one run, and the head. */
/* Fills w->texts with the sublists of what the list holds. */
void import_begin(struct engine *e, struct work *w);
/* Inner: adds them. */
work_step import_write;
/* Inner: takes them back. */
work_step import_undo;
/* The head of what was written, with what the list holds by now: NULL when that is too different.
 */
struct block *import_head(const struct work *w);

/* Is the reply a head that does without that run? */
bool head_lacks(const struct be_reply *reply, const struct name_range *range);

#endif
