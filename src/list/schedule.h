/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling: which of a list's waiting calls start now, and which travel together.
 */
#ifndef LIST_SCHEDULE_H
#define LIST_SCHEDULE_H

#include "list/core/lists.h"

/* Starts what can be started on this list. */
void schedule_list(struct engine *e, struct list *list);

/* Why a call that was not started has waited until its deadline, as the text behind SERVER_ERROR,
 * with its counter; NULL: only for those before it. */
const char *schedule_late(const struct list *list, const struct list_call *call,
                          enum metric *metric);

/* Reads that were started before their list's extent was known: puts those whose answers are too
 * large for now back into the queue, where they came from. */
void schedule_hold_large(struct engine *e, struct list *list, struct call_queue *reads);

#endif
