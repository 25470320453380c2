/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is stored, as one number, and a set of such numbers: programs that go through all orders of
 * steps come to the same contents again and again, and need to look at each only once.
 */
#ifndef WORLD_SEEN_H
#define WORLD_SEEN_H

#include "world.h"

#define SEEN_SLOTS ((size_t)1 << 16)

/* All zero: empty. Once it is full it takes no more. */
struct seen {
    uint64_t slots[SEEN_SLOTS];
    size_t count;
};

/* A hash of all items of all servers, when they expire, and the second: what a reader can see. */
uint64_t world_hash(const struct world *w);

bool seen_has(const struct seen *seen, uint64_t hash);
void seen_add(struct seen *seen, uint64_t hash);

#endif
