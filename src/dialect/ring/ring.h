/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIALECT_RING_RING_H
#define DIALECT_RING_RING_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_ring;

/* For the files of this folder: the state of an operation. */
struct ring_work {
    uint64_t last; /* the newest entry's number: what the counter says */
    /* Of a look (look.c). */
    uint64_t wanted; /* so many of the newest entries are needed */
    uint32_t named;  /* so many slots were named, from the newest on */
    bool counted;    /* the counter was there */
    bool recounted;  /* and was asked for again behind the slots */
    /* Of an addition. */
    uint64_t number, expected;
    struct list_call *writing; /* the call whose items are being written */
    bool is_new;               /* this worker does not know the ring: it looks first */
};

static inline struct ring_work *ring_own(const struct work *w)
{
    return w->own;
}

/* Reads a counter. False: it is missing, or none. */
bool ring_counter(const struct part *part, uint64_t *number);
/* Do the slots hold their numbers? Else an entry has the number that its place says. */
bool ring_is_numbered(const struct list_policy *policy);

/* Names the counter, then the slots that the calls need; fills in the items, and last. */
void ring_parts(struct work *w);
enum look ring_look(struct engine *e, struct work *w);

#endif
