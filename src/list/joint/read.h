/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of several lists at one instant: lgetx, linter, lunion, ldiff and their counts.
 */
#ifndef LIST_JOINT_READ_H
#define LIST_JOINT_READ_H

#include "list/core/op.h"

/* The step of their operations, by which they are told. */
op_step joint_read_step;
/* Answers a call of kind JOINT, which has left the list's queue. */
void joint_read_start(struct engine *e, struct list *list, struct list_call *call);
/* Why the call is refused, as the text behind CLIENT_ERROR, or NULL. text is room for it. */
const char *joint_read_refusal(const struct engine *e, const struct list_call *call,
                               char text[LIST_ERROR_MAX]);

#endif
