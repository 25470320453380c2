/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Membership of a few named items: fed with the log first, then with sublists from the newest run
 * to the oldest; the first word on an item decides.
 */
#ifndef LIST_CONTENT_MEMBERS_H
#define LIST_CONTENT_MEMBERS_H

#include "list/format/entry.h"
#include "list/format/sublist.h"

/* So many verdicts need no memory of their own. */
#define MEMBERS_FEW 8

struct members {
    const struct slice *items;
    size_t count;
    size_t unknown; /* not decided yet */
    char *verdict;  /* per item: 0 not decided, ENTRY_ADD in the list, ENTRY_DEL not */
    char few[MEMBERS_FEW];
};

/* items must live as long as the struct, which stays where it is. */
void members_init(struct members *m, const struct slice *items, size_t count);
void members_fini(struct members *m);
/* Feeds the log: decides every item that it mentions, all of them after a '!'. */
void members_feed_log(struct members *m, struct slice log);
/* A scan_visit over runs, newest first; arg is the struct members. False once everything is
 * decided. */
bool members_feed_sublist(void *arg, struct sublist *sublist);

static inline bool members_has(const struct members *m, size_t i)
{
    return m->verdict[i] == ENTRY_ADD;
}

#endif
