/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How reads are answered, wherever the content comes from: a pass over the sublists
 * (read/from_sublists.c) or a view (read/from_view.c).
 */
#ifndef LIST_CORE_ANSWER_H
#define LIST_CORE_ANSWER_H

#include "list/content/output.h"
#include "list/core/op.h"

/* Ends the call; head is the one that it was answered from, or NULL. A read that gives the
 * list's items, or its time, and has counted none, says that there is no list, unless on_missing =
 * refuse. */
void answer_call(struct engine *e, struct list *list, struct list_call *call,
                 const struct head *head, enum list_status status);
/* lttl of an item: whether it is in the list, and until when; 0: for ever. */
void answer_item_time(struct engine *e, struct list *list, struct list_call *call,
                      const struct head *head, bool in, uint32_t until_s);
/* One item more that is in the list. */
void answer_member(const struct list *list, struct list_call *call, struct slice item);
/* Where the items go. */
void answer_begin(const struct list *list, struct list_call *call, struct output *output);
/* lrange, lrevrange: the positions asked for, of a list with so many items (any large number, if no
 * position counts from the end). False when there is none. */
bool answer_range(const struct list_call *call, uint64_t count, struct output *output);
/* Ends a read whose items were passed on to the output, with an error when they were too many. */
void answer_content(struct engine *e, struct list *list, struct list_call *call,
                    const struct head *head, const struct output *output);

#endif
