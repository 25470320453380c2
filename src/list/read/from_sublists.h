/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A read: answers one call from a head and the sublists that it names. Nothing is written. A
 * sublist that is not there sends it back to the head; if that head still names the sublist, the
 * list is damaged (names never return), and that is said: a shortened answer never looks complete.
 */
#ifndef LIST_READ_FROM_SUBLISTS_H
#define LIST_READ_FROM_SUBLISTS_H

#include "list/core/op.h"

/* Answers the call from this head (NULL: there is none), of which it takes a reference of its own.
 */
void read_start(struct engine *e, struct list *list, struct list_call *call, struct head *head);

/* ---- calls that wait in a queue, each with a head of its own (list_call.head) ---- */

/* Takes the call off; its head is the caller's. */
struct head *reads_take(struct call_queue *calls, struct list_call *call);
/* The same, and lets go of the head. */
void reads_drop(struct call_queue *calls, struct list_call *call);
/* Takes all of them off, and answers each from its head and the sublists that it names. */
void reads_start(struct engine *e, struct list *list, struct call_queue *calls);

#endif
