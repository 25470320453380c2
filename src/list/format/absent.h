/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Absent heads: "?TOKEN.UNTIL" in the header says that the list is missing, though its head is
 * stored. Such a head carries what must be found again (announcements, garbage), who may fill the
 * list (the lease), and what was appended by proxies that did not know: it stands behind the fill,
 * and goes with the head when none comes.
 */
#ifndef LIST_FORMAT_ABSENT_H
#define LIST_FORMAT_ABSENT_H

#include "list/format/head.h"

/* The longest lease, in seconds. */
#define LEASE_MAX_S (60 * 60 * 24)

/* Is the list missing, though it has this head? A '!' in the log fills it: the lset of a proxy that
 * took the list for one that is there. */
static inline bool head_is_absent(const struct head *head)
{
    return head->marks.absent && !head->clears;
}

/* May another client have the lease? One that ends further in the future than any can last counts
 * as over as well: a clock was wrong. */
bool lease_is_over(const struct head_marks *marks, int64_t now_s);
/* Nothing is announced, nothing garbage, and it is no primary of a transaction that is not done:
 * may this absent head be removed? One whose lease is over may be filled by its late owner until it
 * expires. */
bool absent_may_go(const struct head *head, int64_t now_s);
/* Is there something to be collected in an absent head by now, or may it go? grace_s: of
 * announcements.
 */
bool absent_is_idle(const struct head *head, int64_t now_s, int64_t grace_s);

#endif
