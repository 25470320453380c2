/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that are about several lists at one instant: what clients ask, and whether an answer is
 * that of one instant.
 */
#ifndef SIM_JOINT_H
#define SIM_JOINT_H

#include <stdbool.h>

#include "oracle.h"

struct client;
struct sim_world;

static inline bool is_joint(const struct sim_call *call)
{
    return call->list_count > 0;
}
static inline bool joint_call_stores(const struct sim_call *call)
{
    return list_verb_has(call->call.verb, LIST_STORES) || call->call.verb == LIST_COPY;
}

/* Does the client ask such a call next? By draws of its own. */
bool joint_call_wants(struct client *client, enum list_verb *verb);
/* Chooses the lists. */
void joint_call_choose(struct client *client, struct sim_call *call);
/* The call is asked, answered. */
void joint_call_asked(const struct oracle *o, struct sim_call *call);
void joint_call_answered(const struct oracle *o, struct sim_call *call);
/* Is there a moment between question and answer when all lists together would give this answer? */
bool joint_call_is_right(const struct oracle *o, struct sim_call *call);
/* A content that was computed from other lists is stored now: items becomes that. It must be what
 * they amounted to at one moment since the question. If the list that was made is one of them, it
 * was then as it was right up to now. */
void joint_call_apply(struct oracle *o, struct ids *items, struct sim_call *call, int64_t now_s);
void joint_call_fini(struct sim_call *call);

#endif
