/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an exact change does to a list with a cap (format/cap.h).
 */
#ifndef LIST_CHANGE_CAPPED_H
#define LIST_CHANGE_CAPPED_H

#include "list/core/list_call.h"
#include "list/format/layout.h"

/* Decides the call on top of the content, a fold with a cap: applies it, appends its entries to the
 * block and counts the items that were not in the list before, or were. False, and nothing is done:
 * the cap refuses, and the items do not all fit. */
bool capped_decide(struct fold *content, struct list_call *call, struct block **entries);

/* Appends the content of a list with that cap that is filled: the entries and, behind them, the log
 * of the absent head. That log may have been folded by proxies that know no cap, so it counts by
 * what it amounts to, and the cap cuts the result: the last items stay or, where it refuses, the
 * first. */
void capped_fill(struct block **log, struct cap cap, struct slice entries, struct slice pending);

/* Is it a change that the list's cap may refuse, so that it has to be decided by what is there? */
static inline bool capped_is_exact(const struct list_call *call)
{
    return call->verb == LIST_ADD && call->policy->max_items != 0 &&
           call->policy->cap == CAP_REFUSE;
}
/* Of the items of a whole content, each once, in front and in their order: at its first place or,
 * where an addition moves an item to the end (recent), at its last. Returns how many there are. One
 * after the other under a cap, one that comes again could be dropped in between, and stand at the
 * end. */
size_t capped_once(struct slice *items, size_t count, bool recent);

/* Is it a whole content that does not fit the cap, which refuses it? */
bool capped_refuses_whole(const struct list_call *call);

#endif
