/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sublist: a part of a run, written once and never changed. Stored as
 *
 *     ^1 0000001234\n+9:user-1234+8:user-987...      (the number: how many entries follow)
 *
 * each item at most once per run.
 *
 * Decoded, it is made for reading: the items joined by the list's delimiter, ready to be sent, with
 * their starts beside them, and a membership index that is built when first asked for.
 *
 *     text    user-1234,user-987
 *     starts  0         10       19
 *     ops     +         @
 *     until_s 0         1795229331
 */
#ifndef LIST_FORMAT_SUBLIST_H
#define LIST_FORMAT_SUBLIST_H

#include <stdatomic.h>

#include "list/format/entry.h"

struct sublist {
    _Atomic uint32_t refs; /* shared by all workers through the cache */
    uint32_t count;
    _Atomic uint32_t keepers; /* caches and views that count it in a limit of their own */
    bool all_add;             /* every op is '+': text may be sent as it is */
    bool all_in;              /* every op adds: '+', '=' or '@' */
    uint32_t earliest_s;      /* the earliest second of its '@'; ENTRY_UNTIL_MAX_S without any */
    uint32_t *until_s;        /* of each item, 0 without a time; NULL when none has one */
    struct block *text;
    char *ops;                 /* count of them */
    _Atomic(uint32_t *) index; /* open addressing, position + 1; NULL until first used */
    uint32_t starts[];         /* count + 1 of them; item i ends one byte before starts[i + 1] */
};

/* What a visitor of sublists (list/core/scan.h) says: those that take a sublist whole return
 * whether they want more. */
enum visited {
    VISITED_ENOUGH = false,
    VISITED_WHOLE = true,
    VISITED_PART, /* VISIT_PART_ITEMS of it: it is called again for the rest */
};
/* So many items are folded, or passed on, in a tenth of a millisecond or two. Under the simulator,
 * whose sublists are short, these have several parts, too. */
#ifdef MCLISTD_SLOW_CHECKS
#define VISIT_PART_ITEMS 16u
#else
#define VISIT_PART_ITEMS 2048u
#endif

/* The part of a sublist that a visitor takes now: items from..to-1. *at is where the next part
 * begins, and 0 again behind the last one, for the next sublist. */
struct sublist_part {
    uint32_t from, to;
    enum visited visited; /* what the visitor returns, if it does not have enough */
};
static inline struct sublist_part sublist_next_part(const struct sublist *s, uint32_t *at)
{
    struct sublist_part part = {*at, s->count, VISITED_WHOLE};
    if (s->count - part.from > VISIT_PART_ITEMS) {
        part.to = part.from + VISIT_PART_ITEMS;
        part.visited = VISITED_PART;
    }
    *at = part.visited == VISITED_PART ? part.to : 0;
    return part;
}

/* Decodes a stored sublist. delimiter: 0..255, or -1 (then the text is not meant to be sent).
 * Returns it with one reference, the caller's, or NULL when the value is not a whole, well-formed
 * sublist. */
struct sublist *sublist_decode(struct slice value, int delimiter);
struct sublist *sublist_ref(struct sublist *sublist);
void sublist_unref(struct sublist **sublist);

/* For a cache or view, which counts the sublist's memory in its own limit, besides holding a
 * reference: the text then does not count in base/memory.h. A text that only answers hold does. */
void sublist_keep(struct sublist *sublist);
void sublist_unkeep(struct sublist *sublist);

static inline struct slice sublist_item(const struct sublist *s, uint32_t i)
{
    return slice_make(s->text->data + s->starts[i], s->starts[i + 1] - s->starts[i] - 1);
}

/* Until when the item is in the list, if its op is '@'; else 0. */
static inline uint32_t sublist_until(const struct sublist *s, uint32_t i)
{
    return s->until_s == NULL ? 0 : s->until_s[i];
}
/* The whole entry. */
static inline struct entry sublist_entry(const struct sublist *s, uint32_t i)
{
    return (struct entry){s->ops[i], sublist_until(s, i), sublist_item(s, i)};
}
/* Is each of its items in the list in that second, as far as this sublist says? */
static inline bool sublist_all_in(const struct sublist *s, int64_t now_s)
{
    return s->all_add || (s->all_in && (int64_t)s->earliest_s > now_s);
}

/* The place of the item in this sublist, from 1 on, or 0. Builds the index at the first call; any
 * thread. */
uint32_t sublist_place(struct sublist *sublist, struct slice item);
/* The op of the item in this sublist ('+', '-', '=', '@'), or 0. */
char sublist_find(struct sublist *sublist, struct slice item);

/* Memory it holds with its index, in bytes. */
size_t sublist_memory_bytes(const struct sublist *sublist);

/* Room that the header of a stored sublist takes. */
#define SUBLIST_HEADER_BYTES ((size_t)14)

/* No sublist is longer: sublist_limit_bytes and max_item_bytes are below 900,000 whatever the
 * settings (config/table.c). */
#define SUBLIST_BYTES_MAX ((uint64_t)1 << 20)

/* Begins a stored sublist in a fresh block that the caller owns. Fill it with entry_append, then
 * finish with the number of entries. */
struct block *sublist_begin(size_t limit_bytes);
void sublist_finish(struct block *b, uint32_t count);

#endif
