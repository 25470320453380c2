/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Renewing the time to live of a list that is in use (ttl_renew). Each CAS of the head renews it
 * anyway (life_renewed). A blind append and a read write no time, so a CAS of the unchanged head
 * follows them, when less than 7/8 of ttl_s are left: a hot list pays for one in ttl_s / 8. No call
 * waits for it.
 */
#ifndef LIST_CHANGE_RENEW_H
#define LIST_CHANGE_RENEW_H

#include "list/core/op.h"

/* The list was read, or changed by a blind append: renews its time if the policy says so and it is
 * time. */
void renew_consider(struct engine *e, struct list *list, bool changed);
/* The step of an operation that is a struct op_cas and that clients take for a read: cas_step, and
 * behind it what the list may need, a renewal or a compaction. */
enum progress renew_cas_step(struct engine *e, struct op *op, const struct op_event *event);

#endif
