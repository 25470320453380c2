/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inner calls: what an operation on several lists asks of each of them. They wait in that list's
 * queue as calls of clients do, or are answered from a head that is at hand, and wake the operation
 * when they are done. Their order among a client's calls is for the operation to see to.
 *
 *     a look         how the list is now: its head, or what it holds in another layout
 *     a pinned read  of one head, and of no newer one
 */
#ifndef LIST_CORE_INNER_H
#define LIST_CORE_INNER_H

#include "list/content/gather.h"
#include "list/content/members.h"
#include "list/core/op.h"

struct inner {
    struct list_call call; /* call.inner points back */
    struct list_session session;
    struct op *op; /* woken when it is done */
    bool done;
    TAILQ_ENTRY(inner) all; /* of the engine */

    /* A look. call.status is LIST_MISSING when there is no list. */
    bool looks;
    struct head *head;   /* holds a reference; NULL: missing, or in another layout */
    struct fold items;   /* what that holds */
    uint64_t cas, epoch; /* of what was read; 0 when it is missing */

    /* A pinned read. call.status is LIST_EXISTS when what the head names has gone. */
    bool pinned;
    struct gather *gather;   /* where its items go, or NULL: to call.answer */
    struct members *members; /* LIST_HAS: gets the verdict on each item */
    bool unreadable; /* LIST_SERVER_ERROR is for what the list is: damaged, or too large for the
                        memory that a read may take */
};
TAILQ_HEAD(inners, inner);

/* Makes one, the caller's until inner_drop: key and policy are the list's. */
struct inner *inner_new(struct engine *e, struct op *op, struct list *list, enum list_verb verb);
/* Frees it, done or not; *inner may be NULL. Not from within an operation that may carry it. */
void inner_drop(struct engine *e, struct inner **inner);
/* Puts a look into the list's queue. */
void inner_look(struct engine *e, struct inner *inner, struct list *list);
/* For call_finish. */
void inner_finish(struct engine *e, struct list *list, struct list_call *call,
                  enum list_status status);
/* Frees all; for engine_destroy. */
void inners_fini(struct engine *e);

/* Is the call a look? */
static inline bool inner_looks(const struct list_call *call)
{
    return call->inner != NULL && call->inner->looks;
}
static inline bool inner_is_pinned(const struct list_call *call)
{
    return call->inner != NULL && call->inner->pinned;
}

#endif
