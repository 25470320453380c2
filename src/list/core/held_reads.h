/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reply to emit_get that brings a head with undecided intents does not reach its operation. It is
 * held: one operation for each list, the settler, settles them (settle.h), and sends the held reads
 * again.
 */
#ifndef LIST_CORE_HELD_READS_H
#define LIST_CORE_HELD_READS_H

struct be_reply;
struct list_request;
struct engine;

/* Takes the reply to a read of a head (list_request.list): hands it to its operation, or holds it.
 */
void held_reads_reply(struct engine *e, const struct list_request *request,
                      const struct be_reply *reply);

#endif
