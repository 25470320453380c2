/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often the workers of this proxy have had a change of a list answered, for all workers: a read
 * that may be answered from what was known a while ago (max_stale_ms) must know of all of them.
 * Lists share counts: one that stands still tells that none of its lists was changed, one that has
 * moved costs a look at the server.
 *
 *     worker A:   read sent, count 7 ---> head of then               count 7 still: may answer
 *     worker B:                           append answered, count 8   count 8: A asks again
 *
 * A change counts before its client is answered. One whose answer came before the read was sent is
 * in what the read brings. What may have changed any list counts for all: a flush_all, and a client
 * that comes from the daemon whose place this one takes, with answers of its own.
 */
#ifndef LIST_CORE_OWN_CHANGES_H
#define LIST_CORE_OWN_CHANGES_H

#include <stdatomic.h>
#include <stdint.h>

#define OWN_CHANGES_COUNTS 16384u /* a power of two */

/* Zero-initialise; outlives the engines that it is given to. */
struct own_changes {
    atomic_uint counts[OWN_CHANGES_COUNTS];
    atomic_uint of_all;
};

/* hash: that of the list's key (struct list). */
static inline unsigned own_changes_of(struct own_changes *changes, uint64_t hash)
{
    return atomic_load(&changes->counts[hash & (OWN_CHANGES_COUNTS - 1)]) +
           atomic_load(&changes->of_all);
}

static inline void own_changes_add(struct own_changes *changes, uint64_t hash)
{
    (void)atomic_fetch_add(&changes->counts[hash & (OWN_CHANGES_COUNTS - 1)], 1);
}

static inline void own_changes_add_to_all(struct own_changes *changes)
{
    (void)atomic_fetch_add(&changes->of_all, 1);
}

#endif
