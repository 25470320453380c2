/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configurations that a search has been in. Two that are alike but for the optional operations
 * that they have used differ only in what may still happen: the one that has used fewer can do all
 * that the other can. So a set of used ones is kept with each, and a superset is nothing new.
 */
#ifndef HISTORY_MEMO_H
#define HISTORY_MEMO_H

#include <stdbool.h>
#include <stddef.h>

#include "sequence.h"

struct memo_slot {
    struct hash128 key;
    uint32_t head; /* of its sets: 1 + index, 0 the slot is free */
};

struct memo {
    struct memo_slot *slots;
    uint32_t slot_count, used_slots;
    uint32_t words; /* per set of used optional operations */
    uint64_t *sets; /* each: index of the next one of that key + 1, then the words */
    size_t set_count, set_cap;
};

void memo_init(struct memo *m, uint32_t words);
void memo_fini(struct memo *m);
/* Is it there, with this set or a subset of it? Different configurations are told apart by 128 bits
 * of hash. */
bool memo_has(const struct memo *m, struct hash128 key, const uint64_t *used);
void memo_add(struct memo *m, struct hash128 key, const uint64_t *used);

#endif
