/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * llease: which client fills a missing list. Waiting ones travel together: the first of them has
 * the lease, if it is to be had. Order of writes: read the head, then ONE write of an absent head
 * with a fresh token: an ADD where nothing is, or a CAS of the absent head whose lease is over.
 * When another writer was faster: all over again.
 *
 * The head of a lease expires by itself, a while after the lease, unless it names what is to be
 * collected.
 */
#ifndef LIST_CHANGE_LEASE_H
#define LIST_CHANGE_LEASE_H

#include "list/change/cas.h"

/* Makes the operation and takes the list's place for exact changes; fill it with cas_add, then
 * op_run. */
struct op_cas *lease_create(struct engine *e, struct list *list);

/* Takes the lease of a missing list away, by a CAS of its head as it was read: no fill that was
 * begun before goes through from then on. What was appended to the head goes with it. The operation
 * gets one event, as from emit_cas. */
void lease_emit_end(struct engine *e, struct op *op, const struct head *absent, uint64_t tag);

/* Why there are no leases under that policy, or NULL. */
const char *lease_refusal(const struct list_policy *policy);

#endif
