/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads that a view answers (view.h): of lists that have runs, or a long log, as long as memory is
 * there for it. All others take the way of from_sublists.c.
 */
#ifndef LIST_READ_FROM_VIEW_H
#define LIST_READ_FROM_VIEW_H

#include "list/core/op.h"

struct view;

/* The view will be asked for these calls' items. */
void view_expect_calls(const struct view *view, const struct call_queue *calls);

/* May the list of that head have a view, as far as memory goes? */
bool view_is_worth_it(const struct engine *e, const struct head *head);

/* Answers these calls from this head, at once when the list's view only lacks what the log says. */
void view_start_reads(struct engine *e, struct list *list, struct call_queue *calls,
                      struct head *head);

/* Answers them from the view, which has shown that head already. */
void view_answer_shown(struct engine *e, struct list *list, struct call_queue *calls,
                       const struct head *head);

#endif
