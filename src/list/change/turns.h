/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions that change a list and look into it in turns, without waiting for answers:
 *
 *     ladd hot a   lhas hot b   ladd hot c   lhas hot c   ...
 *
 * A round (round.h) takes no change behind a read of the same session, so each pair would cost a
 * round trip. Here all of them travel together: read the head, decide call by call, each on top of
 * those before it, then ONE CAS of the same head with the entries added that change something; none
 * when nothing changes. Membership comes from the list's view.
 *
 * Whatever is out of the ordinary (no list, runs that the view does not have, a full log, another
 * writer who was faster) changes nothing: the calls go back to where they came from, and for a
 * while they travel in rounds.
 */
#ifndef LIST_CHANGE_TURNS_H
#define LIST_CHANGE_TURNS_H

#include "list/change/cas.h"

/* May the list's calls go this way now? */
bool turns_possible(const struct engine *e, const struct list *list);
/* Can a call of that verb? */
static inline bool turns_take(enum list_verb verb)
{
    return list_verb_has(verb, LIST_IN_TURNS);
}

/* Makes the operation and takes the list's place for it; fill it with cas_add, in the order of
 * the calls, then op_run. */
struct op_cas *turns_create(struct engine *e, struct list *list);

#endif
