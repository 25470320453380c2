/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is taken off a list and picked out of it: lpop, lrandom, lafter, lbefore. Their draws are
 * their own, so that the other draws of a seed stay.
 */
#ifndef SIM_POPS_H
#define SIM_POPS_H

#include "oracle.h"

struct params;

/* One of them instead of that verb, now and then. number: of the call. */
enum list_verb pops_choose(const struct params *p, uint64_t number, enum list_verb verb);
/* Fills in how many, and beside which item. */
void pops_plan(const struct params *p, struct sim_call *call);

/* The lpop takes effect: takes off as many items as the engine says, and remembers which; not fewer
 * than were asked for, unless the log has no room for them. used: bytes of the deletions of lpops
 * before it in the same request. */
void pops_apply(struct oracle *o, struct ids *items, struct sim_call *call, uint64_t *used,
                int64_t now_s);
/* Was it answered what it took? */
bool pops_answered(const struct oracle *o, struct sim_call *call);

/* Would lrandom, lafter or lbefore be answered like this by that version? */
bool pops_match(const struct sim_call *call, const struct ids *answer, const struct version *v);

#endif
