/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain items, as lpurge deletes them: those that a client of the proxy reaches by `delete NAME`,
 * in the pool of the plain keys, whatever pool the list is in.
 */
#ifndef LIST_CORE_PLAIN_H
#define LIST_CORE_PLAIN_H

#include "base/arena.h"
#include "list/core/scan.h"

/* Does the key name an item in which a list of the engine's own layout is kept, KEY# or
 * KEY#NAME.N? */
bool plain_is_list_item(const struct config *config, struct slice key);
/* Does protect_lists keep plain verbs from writing to it? The same, or an item that shows a
 * server's clock. */
bool plain_is_protected(const struct config *config, struct slice key);

/* How many requests one batch has on their way at most. Many enough to keep some servers busy, and
 * far below max_pending. */
#define PLAIN_WINDOW 256u

/* Of these, what has become of an item. */
enum plain_state {
    PLAIN_OPEN,    /* to be deleted */
    PLAIN_SENT,    /* a request is on its way */
    PLAIN_DELETED, /* it is gone, or was not there */
    PLAIN_KEPT,    /* it is not deleted, or not known to be */
    PLAIN_DONE,    /* the caller's: nothing is to be done about it any more */
};

struct plain_item {
    struct slice name; /* in the batch's memory */
    enum plain_state state;
};

/* Items that are deleted together. Zeroed at first. */
struct plain_batch {
    struct plain_item *items;
    size_t count, cap;
    struct arena names;
    bool over;                /* set by the operation: nothing more is sent */
    uint64_t kept;            /* how many were not deleted, over all that the batch has held */
    char why[LIST_ERROR_MAX]; /* the reason of the first of them, with its name */
    size_t next, to;          /* during a step: not looked at yet */
};

/* Adds a copy of the name. */
void plain_add(const struct config *config, struct plain_batch *batch, struct slice name);
/* Empties the batch; kept and why stay. */
void plain_clear(struct plain_batch *batch);
void plain_fini(struct plain_batch *batch);
/* What lpurge says at its end, behind its name, when some were kept; done: names that it has taken
 * off the list. */
void plain_tell(const struct plain_batch *batch, uint64_t done, char text[LIST_ERROR_MAX]);
/* Bytes of memory held. */
size_t plain_bytes(const struct plain_batch *batch);

/* Those that were deleted, from .. to, are to be deleted again. */
void plain_reopen(struct plain_batch *batch, size_t from, size_t to);
/* Deletes the open ones of the items from .. to. Ends when each has an outcome, or with over and
 * no request on its way. The operation has no other requests under way; scan: one that it has, or
 * NULL. */
enum progress plain_delete_step(struct engine *e, struct op *op, struct plain_batch *batch,
                                size_t from, size_t to, struct scan *scan,
                                const struct op_event *event);

#endif
