/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists with max_stale_ms: a read is answered from the list's view without a request, as long as
 * the head that the view shows was asked for at most so long ago, and this proxy has had no change
 * of the list answered since (own_changes.h). It saves the round trip, and the server all work.
 * What it answers was so when that head was read. Versions and times to live are always asked for.
 */
#ifndef LIST_READ_RECENT_H
#define LIST_READ_RECENT_H

#include "list/core/engine_state.h"

/* This proxy's changes of the list so far, to be taken when a head is asked for. */
static inline unsigned recent_changes(const struct engine *e, const struct list *list)
{
    return e->own_changes == NULL ? 0 : own_changes_of(e->own_changes, list->hash);
}
/* A change was answered, or its answer is lost. */
void recent_note_change(struct engine *e, const struct list_request *request);

/* May the list be read like that, if it has a view? */
static inline bool recent_is_wanted(const struct engine *e, const struct list *list)
{
    return UNLIKELY(e->own_changes != NULL) && list->policy->max_stale_ms > 0;
}
/* It is wanted. The head was asked for at that time, after so many changes; reads that have waited
 * for it have been answered. */
void recent_note(struct list *list, const struct head *head, uint64_t asked_us, unsigned changes);
/* The same: may this read be answered so now? */
bool recent_may_answer(const struct engine *e, const struct list *list,
                       const struct list_call *call);
/* Answers these reads, all of which may be. */
void recent_answer(struct engine *e, struct list *list, struct call_queue *calls);

#endif
