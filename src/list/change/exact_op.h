/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exact change from within: what exact.c, which reads, decides and writes, and exact_cap.c,
 * which knows about lists with a cap, have in common.
 */
#ifndef LIST_CHANGE_EXACT_OP_H
#define LIST_CHANGE_EXACT_OP_H

#include "base/arena.h"
#include "list/change/cas.h"
#include "list/change/exact.h"
#include "list/change/presence.h"
#include "list/content/members.h"

/* A call's share of the items. */
struct share {
    struct list_call *call; /* NULL: its time was over */
    size_t items;
};

struct op_exact {
    struct op_cas cas;
    struct share *shares; /* of all that were added, in the order of the items */
    size_t share_count;
    struct slice *items; /* of all calls, one after the other */
    size_t item_count;
    struct arena kept; /* items of those whose time was over */
    bool fills;        /* an lcreate, and the head says that the list is missing */
    /* It says so, and a client has the lease. Changes are refused, since nothing is known of the
     * list; but what that client has read to fill it may be older than they are, and must not come
     * to stand for them. So its lease ends before they are refused. */
    bool ends_lease;
    struct members members;
    struct presence presence; /* its scan is that of members as well */
    bool head_tells;          /* that the list holds items */
    int64_t exptime;          /* of an ltouch, to be sent */
    bool is_primary;          /* of a transaction that is not done: it gets no time to live yet */
};

/* Does the call add items? */
static inline bool exact_adds(const struct list_call *call)
{
    return call->verb == LIST_ADDX || call->verb == LIST_ADD;
}

/* The cap of the list; of a missing one, what it begins with. */
struct cap exact_cap(const struct op_exact *x);
/* Decides call by call what is done to a list with a cap, which is all in its log. */
void exact_decide_capped(struct op_exact *x);
/* Does the list lack the cap that the file says, and a call adds to it? Then they wait for it.
 * Where the cap refuses and the list is too long for it, additions are refused, the others go on.
 * True when no call is left. */
bool exact_awaits_cap(struct engine *e, struct op_exact *x);
/* The call is over. The scan may go on with its items: they are kept. */
void exact_let_go(struct op_cas *cas, struct list_call *call);

#endif
