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
 */
#ifndef DIALECT_MIGRATE_MIGRATE_H
#define DIALECT_MIGRATE_MIGRATE_H

#include "dialect/shared/dialect.h"
#include "dialect/shared/record.h"

/* Of lists with migrate = native. */
extern const struct migration migration_native;

/* Of an operation on such a list. */
struct move {
    struct part control; /* the item under the list's key */
    bool head_there;
    bool taken;                 /* there is a head, and it is another's */
    bool imported_again;        /* for a head in place of the record's */
    struct name_range replaced; /* the run of the record's; count 0: none */
    bool has_import;            /* the sublists of import were written */
    bool inlined;               /* the items are in the head */
    struct run import;
    struct fold imported; /* what import held when it was written */
    struct block *head;
};

/* Finds out where the list is, and lets its calls go on there. */
work_step migrate_resolve;
/* Inner: has the list moved by now? Ends with moved or failed, or neither. */
work_step migrate_verify;
/* lconvert. */
work_step migrate_convert;
/* Inner: carries out what the record in w->move->control leaves to be done. */
work_step migrate_complete;

/* Deletes what somebody who took the list for one of the dialect has written beside the native one;
 * w is that work, done. */
work_step migrate_clean;

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
