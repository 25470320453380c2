/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling: which of a list's waiting calls start now, and which travel together.
 */
#ifndef LIST_SCHEDULE_H
#define LIST_SCHEDULE_H

#include "list/core/deadline.h"

/* Starts what can be started on this list. */
void schedule_list(struct engine *e, struct list *list);

/* Why a call waited that was not started. Lists of other layouts have no reasons of their own. */
wait_reason schedule_wait_reason;

#endif
