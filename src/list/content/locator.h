/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A locator: of one run, which sublist an item most likely stands in, and how many entries each
 * sublist has. Runs never change, so neither does it.
 *
 *     counts   entries of sublist 0, 1, 2, ...
 *     starts   where each bucket begins; an item's bucket follows from the upper half of its hash
 *     slots    check | sublist   the check: lower bits of the hash, as many as the numbers of the
 *                                sublists leave of 32
 *
 * About 4.3 bytes for each entry. An item that is in the run is always found in its sublist, or in
 * others besides; of those that are not, one in some ten thousand is found all the same. So an
 * answer is certain when the sublist itself has been looked at, or when there is none to look at.
 */
#ifndef LIST_CONTENT_LOCATOR_H
#define LIST_CONTENT_LOCATOR_H

#include <stdatomic.h>

#include "base/check.h"
#include "base/slice.h"

struct locator {
    _Atomic uint32_t refs; /* shared by all workers */
    bool all_add;          /* every entry of the run is a '+' */
    uint32_t sublists;
    uint32_t *counts;
    uint32_t entries;
    uint32_t buckets;
    uint32_t *starts; /* buckets + 1 of them */
    uint32_t *slots;
    unsigned part_bits;  /* of a slot, for the sublist's number */
    uint32_t check_mask; /* of a hash */
};

struct locator *locator_ref(struct locator *locator);
void locator_unref(struct locator **locator);
size_t locator_bytes(const struct locator *locator);

/* The hash that it knows items by. */
static inline uint64_t locator_hash(struct slice item)
{
    return hash_bytes(item.p, item.len, 0);
}

static inline uint32_t locator_bucket(const struct locator *l, uint64_t hash)
{
    return (uint32_t)((hash >> 32) * l->buckets >> 32);
}

/* Lookups of this hash follow: has the memory fetched that the first one will touch. */
static inline void locator_expect(const struct locator *l, uint64_t hash)
{
    __builtin_prefetch(&l->starts[locator_bucket(l, hash)]);
}

/* A walk through the sublists that may hold an item. */
struct locator_walk {
    uint32_t at, end, check;
};

static inline struct locator_walk locator_seek(const struct locator *l, uint64_t hash)
{
    uint32_t bucket = locator_bucket(l, hash);
    return (struct locator_walk){l->starts[bucket], l->starts[bucket + 1],
                                 (uint32_t)hash & l->check_mask};
}

/* The next sublist; one may come several times. False: there are no more. */
static inline bool locator_next(const struct locator *l, struct locator_walk *walk, uint32_t *part)
{
    while (walk->at < walk->end) {
        uint32_t slot = l->slots[walk->at++];
        if ((uint32_t)((uint64_t)slot >> l->part_bits) == walk->check) {
            *part = slot & (uint32_t)((UINT64_C(1) << l->part_bits) - 1);
            return true;
        }
    }
    return false;
}

/* ---- making one ---- */

struct locator_chunk;

/* Collects hashes, 8 bytes for each entry, divided by their upper bits, so that they can be sorted
 * in small steps. Behind locator_builder_sort, in as many steps as that needs, it is ready. */
struct locator_builder {
    struct locator *locator;
    size_t count_cap;
    struct locator_chunk **partitions;
    unsigned partition_bits;
    uint64_t chunk_bytes;
    enum { LOCATOR_COLLECTS, LOCATOR_COUNTS, LOCATOR_SORTS, LOCATOR_READY } state;
    uint32_t at; /* the partition that is next */
};

/* The hash's lower bits of which the check is made, at most. Fewer only make wrong finds likelier.
 */
#define LOCATOR_CHECK_BITS 32u

/* sublists_max: the run has no more. entries: how many are expected. check_bits: see above. */
void locator_builder_init(struct locator_builder *b, uint32_t sublists_max, uint64_t entries,
                          unsigned check_bits);
/* An entry of the sublist that is the next to end. At most 2^31 in all. */
void locator_builder_add(struct locator_builder *b, char op, struct slice item);
void locator_builder_end_sublist(struct locator_builder *b);
/* One step, a tenth of a millisecond in the middle; true when it was the last. */
bool locator_builder_sort(struct locator_builder *b);
/* What it needs at its largest for what was added so far. */
uint64_t locator_builder_bytes(const struct locator_builder *b);
/* The locator, the caller's, when it is ready. */
struct locator *locator_builder_take(struct locator_builder *b);
void locator_builder_fini(struct locator_builder *b);

#endif
