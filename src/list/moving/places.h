/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two servers of a list hold while it moves from the old one to the new one.
 *
 *     ^1 ...              a head, as ever
 *     ^1 >TOKEN.CAS ...   on the new server: a copy of the head that had this CAS number, which
 *                         does not count yet
 *     ^> TOKEN\n          on the old server: a mark: the list is on the new one, and if that holds
 *                         the copy of this TOKEN, the copy is the list
 *
 * TOKEN is a name that is drawn once. Proxies that move no lists take marks and copies for items
 * that they cannot read. docs/model/README.md, Servers, has the rules and what shows them.
 */
#ifndef LIST_MOVING_PLACES_H
#define LIST_MOVING_PLACES_H

#include <stdbool.h>

#include "base/block.h"
#include "list/format/head.h"
#include "list/format/name.h"
#include "proto/server/backend.h"

enum place_kind {
    PLACE_NOTHING,
    PLACE_HEAD, /* or what another client has put there: not a mark, not a copy */
    PLACE_COPY,
    PLACE_MARK,
};

/* What a server held when it was asked. */
struct place {
    enum place_kind kind;
    struct name token;     /* PLACE_COPY, PLACE_MARK */
    uint64_t copied_cas;   /* PLACE_COPY: of the head */
    size_t copied_at;      /* the same: behind that stands what stands behind the head's version */
    struct be_reply reply; /* of a BE_GET that has found it; its block is a reference */
};

/* Keeps that answer. What place held is let go of. */
void place_read(struct place *place, const struct be_reply *reply);
/* Lets go of the value. */
void place_forget(struct place *place);
/* Is it the very item that was read before, or nothing as before? */
bool place_same(const struct place *a, const struct place *b);

/* Reads the head of the list of that key; NULL: it is none that this release can read. The caller's
 * reference. */
struct head *place_open(const struct place *place, struct slice key);
/* Why a head cannot be moved. */
struct stay {
    const char *why; /* NULL: it can */
    bool for_now;    /* it can go by and by, without a client's doing */
};
/* Can the head be moved as it is? Not while it announces sublists, or names some that are to be
 * deleted. NULL: what is there is none. */
struct stay place_stay(const struct place *place, const struct head *head);
/* Does the list lie in the copy, since the mark names it? */
bool place_counts(const struct place *copy, const struct place *mark);
/* The exptime for a write that gives an item what that one has left: a second more at most, and as
 * long as the write is under way. Above a month memcached takes moments only: then wall_s counts,
 * the second since 1970. */
int32_t place_exptime(const struct be_reply *reply, int64_t wall_s);
/* The same for what has to outlive a list, whatever the clocks of servers differ by. */
int32_t place_exptime_beyond(const struct be_reply *reply, int64_t wall_s);
/* The same for a head or a copy: no moment behind the one that it names for its sublists. A move
 * adds twice what wall_s and the server's clock differ by, for the copy and for the head made of
 * it; sublists are given that once. */
int32_t place_exptime_of_head(const struct place *place, struct slice key, int64_t wall_s);
/* Is it a copy of that head, as it is now? The bytes alone do not say so: a list's time to live is
 * not among them. Nor does the number alone, once the old server has restarted. */
bool place_is_copy_of(const struct place *copy, const struct place *head);
/* Each returns a block, the caller's: the copy of a head, the head that a copy stands for, a mark.
 */
struct block *place_copy(const struct place *head, const struct name *token);
struct block *place_head(const struct place *copy);
struct block *place_mark(const struct name *token);

#endif
