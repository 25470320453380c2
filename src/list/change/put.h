/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filling: one call replaces the whole content of a list, of any size, in one step for readers.
 * Order of writes, with content that does not fit the log:
 *
 *   1. APPEND the announcement of a fresh name, and read the head behind it; or ADD a head with it,
 *      when there is none.
 *   2. ADD the sublists. No head refers to them yet. An announcement that grows old is made anew,
 *      by CAS: it never stands there twice, or a sweep of the older one would delete the run.
 *   3. ONE CAS of the head, whatever it is by then, as long as it still holds the announcement: the
 *      new run in its header, the old ones named as garbage, no log but others' announcements. What
 *      the call asks to be so (its condition) is looked at in the same head.
 *
 * Content that fits the log is its entries: step 3 alone, or an ADD.
 *
 * Where a missing list is not an empty one, step 1 is left out: a proxy that still takes the list
 * for one that is there could append to a head, and answer as done what no reader sees. Step 3 is
 * an ADD then, or a CAS of a head that says that the list is missing. No proxy knows the name, so
 * none sweeps it. Only where lists move to other servers such a head is made to announce in.
 *
 * A crash before 3 leaves the old content, and names that the announcement tells, or that
 * scripts/sweep finds. When the CAS is refused, the head is read again, and the next try needs only
 * 3. When the announcement has gone, all begins anew under another name. This worker's own changes
 * wait while a try is under way.
 */
#ifndef LIST_CHANGE_PUT_H
#define LIST_CHANGE_PUT_H

#include "list/core/write_run.h"

/* Of the write that replaces the content, and of a look at the server's clock. */
enum { PUT_TAG_PUBLISH = TAG_OWN, PUT_TAG_CLOCK };

/* For schedule.c alone; list.put must be NULL. Answers the call. */
void put_start(struct engine *e, struct list *list, struct list_call *call);

#endif
