/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Membership of a few named items: fed with the log first, then with sublists from the newest run
 * to the oldest; the first word on an item decides.
 */
#ifndef LIST_CONTENT_MEMBERS_H
#define LIST_CONTENT_MEMBERS_H

#include "list/format/cap.h"
#include "list/format/entry.h"
#include "list/format/sublist.h"

/* So many verdicts need no memory of their own. */
#define MEMBERS_FEW 8

#define MEMBERS_OVER ((char)'o')

struct members {
    const struct slice *items;
    size_t count;
    size_t unknown; /* not decided yet */
    int64_t now_s;  /* items that are over in that second are not in the list */
    char *verdict;  /* per item: 0 not decided, ENTRY_ADD in the list, ENTRY_TIMED the same for a
                       time, MEMBERS_OVER that time is over, ENTRY_DEL not in the list */
    char few[MEMBERS_FEW];
    uint32_t until_s; /* of the item that was decided last; 0: it has no time */
};

/* items must live as long as the struct, which stays where it is. now_s: struct head, read_s. */
void members_init(struct members *m, const struct slice *items, size_t count, int64_t now_s);
void members_fini(struct members *m);
/* Feeds the log: decides every item that it mentions, all of them after a '!'. cap: the list's. */
void members_feed_log(struct members *m, struct slice log, struct cap cap);
/* A scan_visit over runs, newest first; arg is the struct members. False once everything is
 * decided. */
enum visited members_feed_sublist(void *arg, struct sublist *sublist);

static inline bool members_has(const struct members *m, size_t i)
{
    return m->verdict[i] == ENTRY_ADD || m->verdict[i] == ENTRY_TIMED;
}

/* Has the item a time, which may be over? Then it is there for another proxy, or was lately. */
static inline bool members_is_timed(const struct members *m, size_t i)
{
    return m->verdict[i] == ENTRY_TIMED || m->verdict[i] == MEMBERS_OVER;
}

#endif
