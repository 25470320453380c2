/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions: changes of several lists in one step, of all of them or of none (ltx, lmove,
 * lpopto). The record of a transaction is the log of one of its lists, the primary. Order of
 * writes, where "the others" are all lists but the primary:
 *
 *     1. APPEND ? to the primary, read it. Conflicting intents in front of it that are undecided
 *        are settled (core/settle.h). On only after STORED. An intent is sent once
 *     2. APPEND ? to the others, read them; what conflicts in front is settled
 *     3. validate: two lists and nothing to settle: the read of 2 serves. Otherwise the others are
 *        read again, once everything in front is decided. The own ? must be there, undecided, with
 *        no conflicting entry behind it. Conditions are judged here, the primary's in 1
 *     4. APPEND &c to the primary, read it: the first decision counts. Where the answer is lost,
 *        APPEND &a and read again: that makes it definite
 *     5. APPEND &c to the others, read them. All committed: the client is answered
 *     6. APPEND &d to the primary
 *
 * The instant of the transaction lies right before the last validating read: all intents are in,
 * whatever conflicts in front is decided, and nothing that conflicts stands behind. Until 4 a
 * failure leaves nothing done: &a goes to all lists that may have the intent. Nothing but this
 * operation ever writes the first &c, so it may abort in any order.
 *
 * docs/list-format.md has the bytes, docs/guarantees.md the promises, docs/model/transactions every
 * order of requests.
 */
#ifndef LIST_TX_TX_H
#define LIST_TX_TX_H

#include "list/core/op.h"

/* Carries out a call of kind TX, which has left the list's queue. */
void tx_start(struct engine *e, struct list *list, struct list_call *call);

#endif
