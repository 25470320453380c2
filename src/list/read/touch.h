/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Touching: a list that is read from the cache looks cold to its backend, which would then throw
 * its sublists out long before the head. So cached sublists of lists in use are touched now and
 * then, at a bounded rate; one that is gone but still cached is healed by writing its run anew.
 * Nothing else is written.
 */
#ifndef LIST_READ_TOUCH_H
#define LIST_READ_TOUCH_H

#include "list/core/op.h"

/* The list was read from this head without asking the backend for a sublist: touches them if it is
 * time. */
void touch_consider(struct engine *e, struct list *list, struct head *head);

#endif
