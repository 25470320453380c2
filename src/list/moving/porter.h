/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sublists of a list that moves: on their way to the new server before its head goes there, and
 * off the old one behind that; beside what clients ask for. A list has one porter at most.
 */
#ifndef LIST_MOVING_PORTER_H
#define LIST_MOVING_PORTER_H

#include "list/format/head.h"
#include "list/moving/moving.h"

struct moved_list;

/* Begins with those of the head's runs that are not there yet; removes: with all of them, on the
 * old server. Nothing where a porter is at work. */
void porter_begin(struct moving *m, struct moved_list *list, const struct head *head, bool removes);
/* Is that an answer to the list's porter? Then it goes on. */
bool porter_takes(struct moving *m, struct moved_list *list, const struct list_request *request,
                  const struct be_reply *reply);

/* Are all sublists of that run on the new server, as far as this worker has brought them there? */
bool porter_has(const struct moved_list *list, const struct name *name);
/* Forgets the runs that the head names no more, or all that it has brought. */
void porter_keep(struct moving *m, struct moved_list *list, const struct head *head);
void porter_forget(struct moving *m, struct moved_list *list);
/* Why sublists of that head could not be copied, or NULL; once. */
const char *porter_failure(struct moved_list *list, const struct head *head);

/* Ends it at once; its request must not be under way any more. */
void porter_drop(const struct moving *m, struct moved_list *list);

#endif
