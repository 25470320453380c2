/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpop: takes items off one end of a list, each for one caller. Waiting calls travel together,
 * those of one end. Order of writes: read the head, find the first living items from that end on
 * (content/ends.h), then ONE CAS of the same head with their deletions added. When another writer
 * was faster: all over again, with growing back-off. What a call gets is answered only behind the
 * CAS; when its outcome is unknown, so is whether the items are still there.
 *
 * A call gets fewer items than it wants when there are no more, or when the deletions of more would
 * take over half of the log. One that would get none for the second reason waits for the next CAS.
 */
#ifndef LIST_CHANGE_POP_H
#define LIST_CHANGE_POP_H

#include "list/change/cas.h"

/* Makes the operation and takes the list's place for exact changes; fill it with pop_add, then
 * op_run. */
struct op_cas *pop_create(struct engine *e, struct list *list);
/* May the call join those that were added? */
bool pop_takes(const struct op_cas *pop, const struct list_call *call);
void pop_add(struct op_cas *pop, struct list_call *call);

#endif
