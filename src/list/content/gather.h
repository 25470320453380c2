/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Items of a list side by side, as a read passes them on (output.h): those of sublists where they
 * stand, others as copies.
 */
#ifndef LIST_CONTENT_GATHER_H
#define LIST_CONTENT_GATHER_H

#include "base/arena.h"
#include "list/format/fold.h"
#include "list/format/sublist.h"

struct gather {
    const struct fold *filter; /* only items that it holds; NULL: all */
    uint64_t limit_bytes;      /* of memory */
    bool full;                 /* there were more items than that takes */
    struct slice *items;
    size_t count, cap;
    struct sublist **held; /* where items stand; references */
    size_t held_count, held_cap;
    uint64_t held_bytes;
    struct arena copies;
    size_t memory_bytes; /* what all this takes, counted with the memory of requests */
};

void gather_init(struct gather *gather, uint64_t limit_bytes);
void gather_fini(struct gather *gather);
/* Forgets the items, and keeps the room for them. */
void gather_clear(struct gather *gather);
/* Takes items first..last-1 of the sublist; one item, which is copied. */
void gather_span(struct gather *gather, struct sublist *sublist, uint32_t first, uint32_t last);
void gather_item(struct gather *gather, struct slice item);

#endif
