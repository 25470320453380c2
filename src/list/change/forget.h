/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpurge: the names in a list are those of plain items (what was cached for user 7). Deletes the
 * items, and takes their names off the list. A name comes off only if its item was deleted after
 * the name was added last: a client that stores an item and then adds its name has it purged by the
 * next lpurge, if not by this one.
 *
 * Order, for some names at a time:
 *
 *   1. Read the head.
 *   2. DELETE the plain items, many at once. What cannot be deleted stays in the list.
 *   3. Read the head again, and take off by CAS those names that were not added since 1; the others
 *      are deleted again, and stay.
 *
 * 3 needs to see each addition since 1. Where the head is the one of 1 there was none. Where it is
 * not, all begins again with a mark in 1: an APPEND of the withdrawal of a fresh name, which means
 * nothing to any reader. Blind additions stand behind it. Whatever else writes a head (a fold, a
 * flip, a merge, a fill) leaves withdrawals out, and a list that was dropped and made anew never
 * had it. So where the head of 3 begins with all of that of 1, all additions since stand behind
 * that; and where it does not, 1 and 2 are done once more.
 *
 * A crash leaves names in the list whose items are gone: the next lpurge deletes them once more.
 */
#ifndef LIST_CHANGE_FORGET_H
#define LIST_CHANGE_FORGET_H

#include "list/core/op.h"

/* Of the write that takes names off. */
enum { FORGET_TAG_HEAD = 1, FORGET_TAG_MARK, FORGET_TAG_WRITE };

/* For schedule.c alone; list.forget must be NULL. Answers the call. */
void forget_start(struct engine *e, struct list *list, struct list_call *call);

#endif
