/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finishing: what a coordinator leaves behind that dies after the commit. Its transaction stands in
 * the primary's log, committed and not done; it stays there, and the head with it, since other
 * lists may still have to ask for it. For each such transaction:
 *
 *   1. GET the heads of its other lists. A list that does not know of the commit is told by that:
 *      undecided intents are settled before a reply gets here (held_reads.h).
 *   2. All have answered, and know it or are gone: APPEND "done" to the primary. The next
 *      compaction folds what is left away. Otherwise it stays, and those behind it have their turn.
 *
 * Any proxy may do that at any time, also beside a coordinator that lives: each decision may be
 * appended twice. Only to leave the work to that one, grace_s counts.
 */
#ifndef LIST_CORE_FINISH_H
#define LIST_CORE_FINISH_H

#include "list/core/lists.h"

/* Wishes that the transactions be finished of which this head of the list, as just read, is the
 * primary, where they are older than the policy's announcement_grace_s. */
void finish_consider(struct engine *e, struct list *list, const struct head *head);
/* Wishes that for all of them, however young. */
void finish_wish(struct engine *e, struct list *list);
/* Is that wish still waiting, or being granted? */
static inline bool finish_is_pending(const struct list *list)
{
    return list->wants_finish || list->finisher != NULL;
}
/* For schedule.c alone: grants the wish, unless it is being granted. */
void finish_start(struct engine *e, struct list *list);

#endif
