/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The content of a list while an order of operations is searched for: changed in place, and changed
 * back. Items are numbers below a limit.
 */
#ifndef HISTORY_SEQUENCE_H
#define HISTORY_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

struct hash128 {
    uint64_t a, b;
};

/* A doubly linked list; item i is node i + 1, node 0 stands for both ends. */
struct sequence {
    uint32_t *prev, *next; /* next of an item that is not there: SEQUENCE_ABSENT */
    uint32_t count;
    struct hash128 order; /* a sum over neighbours: depends on content and order */
    struct hash128 set;   /* a sum over items: depends on the content only */
};

#define SEQUENCE_ABSENT UINT32_MAX

void sequence_init(struct sequence *s, uint32_t item_max);
void sequence_fini(struct sequence *s);

static inline bool sequence_has(const struct sequence *s, uint32_t item)
{
    return s->next[item + 1] != SEQUENCE_ABSENT;
}

/* Puts an absent item at the end; sequence_pop takes the last one off again. */
void sequence_push(struct sequence *s, uint32_t item);
void sequence_pop(struct sequence *s);
/* Takes out an item that is there. *before is the node before it, for sequence_restore, which
 * undoes it when everything later has been undone. */
void sequence_cut(struct sequence *s, uint32_t item, uint32_t *before);
void sequence_restore(struct sequence *s, uint32_t item, uint32_t before);

/* Is it exactly these items, in this order? */
bool sequence_equals(const struct sequence *s, const uint32_t *items, uint32_t count);
/* Are the items from position from to position to (negative: from the end; cut to what is there)
 * exactly these? */
bool sequence_range_equals(const struct sequence *s, int64_t from, int64_t to,
                           const uint32_t *items, uint32_t count);

struct hash128 hash128_of(uint64_t value);
/* What sequence.order and sequence.set are for these items. */
struct hash128 hash128_of_items(const uint32_t *items, uint32_t count);
struct hash128 hash128_of_set(const uint32_t *items, uint32_t count);

static inline void hash128_add(struct hash128 *sum, struct hash128 h)
{
    sum->a += h.a;
    sum->b += h.b;
}

static inline void hash128_sub(struct hash128 *sum, struct hash128 h)
{
    sum->a -= h.a;
    sum->b -= h.b;
}

static inline bool hash128_equal(struct hash128 x, struct hash128 y)
{
    return x.a == y.a && x.b == y.b;
}

#endif
