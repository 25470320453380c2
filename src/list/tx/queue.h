/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wait queue of a list: this worker's transactions on it, in the order in which they came. One
 * that changes or asks for an item that another one in front of it does waits until that has left,
 * instead of being aborted by it. Items are compared by a few bits of their hashes, so two may wait
 * for each other's places that need not. A transaction takes its places in all queues at once, so
 * no two wait for each other. Nothing depends on that: transactions of other workers and proxies
 * are in no queue here.
 */
#ifndef LIST_TX_QUEUE_H
#define LIST_TX_QUEUE_H

#include "list/tx/tx_op.h"

/* Takes a place in the queue of each list. op_tx.blockers: those in front that it waits for. */
void tx_queue_enter(struct op_tx *o);
/* Leaves all of them; wakes those that waited for it alone. Fine when it is in none. */
void tx_queue_leave(struct engine *e, struct op_tx *o);
/* The bits of an item, for tx_part.item_bits. */
uint64_t tx_queue_bits(struct slice item);

#endif
