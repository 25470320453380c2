/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the oracle makes of changes that a failover loses. Before each write of a head that may be
 * lost the oracle's state of that list is saved. Where writes are lost, the list is again what it
 * was before the oldest of them. Answers stay what they were: the list has gone through these
 * versions, and goes on with another one.
 *
 * Only blind changes may be lost behind their answer, and lists must stay well-formed: of what
 * other writes say, others may depend on it already.
 */
#ifndef SIM_ROLLBACK_H
#define SIM_ROLLBACK_H

#include "oracle.h"

struct saved;

/* The list's state, in front of that write. */
struct saved *rollback_save(struct oracle *o, unsigned list, const struct purpose *purpose);
void rollback_forget(void *saved);

/* The write is lost; of one list the newest first. Takes it over. */
void rollback_lose(struct oracle *o, struct saved *saved);
/* What is lost is all known. */
void rollback_end(struct oracle *o, int64_t now_s);

/* Is it an answer to a change that may not be lost, and has been? Returns what is wrong, or NULL.
 */
const char *rollback_judge(const struct sim_call *call);

#endif
