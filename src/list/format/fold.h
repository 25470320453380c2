/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Folding: what a sequence of entries amounts to, per item, with the order of insertion kept.
 *
 * An item has one of four outcomes: '+' it is in, and an older place (in something folded over, a
 * "base") holds; '-' it is not in; '=' it is in, but was absent in between, so an older place does
 * not hold; '@' the same, until a second. Keeping only the last op of an item would lose the
 * difference between '+' and '=', and with it the order.
 *
 * What a sequence amounts to does not depend on the time: '+' on top of '@' is '=', whether the
 * item was over by then or not.
 */
#ifndef LIST_FORMAT_FOLD_H
#define LIST_FORMAT_FOLD_H

#include "base/arena.h"
#include "list/format/cap.h"
#include "list/format/entry.h"

struct fold_item {
    struct slice item; /* in the fold's own memory, or where fold_apply_held found it */
    uint32_t until_s;  /* ENTRY_TIMED: it is over then */
    char outcome; /* ENTRY_ADD, ENTRY_DEL, ENTRY_READD, ENTRY_TIMED, or 0: this place is void, the
                     item has a later one */
    bool placed;  /* found in the base, where its place is */
};

/* index: of the item's place that counts, plus 1; 0: empty. */
struct fold_slot {
    uint32_t hash, index;
};

struct fold {
    struct fold_item *items; /* in order of place */
    uint32_t count, room;
    struct fold_slot *table; /* open addressing */
    uint32_t table_size;     /* a power of two */
    uint32_t table_used;
    bool cleared;   /* a '!' was met: nothing older counts */
    struct cap cap; /* of the list: then all of it is folded here, there is no base */
    uint32_t live;  /* with a cap: items that are in, and a place before which there is none */
    uint32_t first;
    bool holds;         /* fold_apply_held is under way */
    struct arena arena; /* the items' bytes */
};

void fold_init(struct fold *fold);
void fold_fini(struct fold *fold);

/* Makes room for so many more items at once. */
void fold_reserve(struct fold *fold, uint32_t items);

/* From here on the fold of a list with that cap. The fold holds nothing yet. */
void fold_set_cap(struct fold *fold, struct cap cap);
/* For fold_apply.c: applies one entry, whatever the cap. */
void fold_put(struct fold *fold, const struct entry *entry);
/* The same of all short entries that stand in front. */
void fold_put_short(struct fold *fold, struct slice *entries);
/* Applies one entry, of any op but '~', on top of what was folded so far. */
void fold_apply_entry(struct fold *fold, const struct entry *entry);
/* The same of '+', '-', '=' or '!'. */
void fold_apply(struct fold *fold, enum entry_op op, struct slice item);
/* This item follows soon: has the memory fetched that it will touch. Worth it for large tables. */
static inline void fold_expect(const struct fold *fold, struct slice item)
{
    enum { TABLE_LARGE = 1 << 15 };
    if (fold->table_size >= TABLE_LARGE) {
        __builtin_prefetch(&fold->table[item_hash(item) & (fold->table_size - 1)]);
    }
}

/* Applies all entries; announcements are passed over. False on a malformed entry (what precedes it
 * was applied). */
MUST_CHECK bool fold_apply_entries(struct fold *fold, struct slice entries);
/* The same of entries that stay where they are until fold_fini: their items are not copied. */
MUST_CHECK bool fold_apply_held(struct fold *fold, struct slice entries);
/* With a cap: forgets the places of items that are not in, once there are many. For a fold that
 * only gathers. */
void fold_trim_often(struct fold *fold);

/* What the fold says of an item, or NULL when it does not mention it. */
const struct fold_item *fold_find(const struct fold *fold, struct slice item);
/* The outcome of an item, or 0 when the fold does not mention it. */
char fold_outcome(const struct fold *fold, struct slice item);

/*
 * Lays the fold over one entry of its base (base entries come in their order, each item once).
 * Returns the op that stays at the base's place, or 0 when nothing does. After the whole base,
 * fold_next_entry yields what follows behind it.
 */
char fold_over(struct fold *fold, char base_op, struct slice item);

/* Walks what stands behind the base, in order: fills *entry and returns true, or false at the end.
 * Start with *at = 0. Items that are over in the second over_s count as deleted. With oldest
 * (nothing lies below the base) deletions are left out and '=' becomes '+'. */
bool fold_next_entry(const struct fold *fold, bool oldest, int64_t over_s, uint32_t *at,
                     struct entry *entry);
/* The items that this gives with oldest. Start with *at = 0. */
static inline bool fold_next_item(const struct fold *fold, int64_t over_s, uint32_t *at,
                                  struct slice *item)
{
    while (*at < fold->count) {
        const struct fold_item *known = &fold->items[(*at)++];
        if (entry_is_in(known->outcome, known->until_s, over_s) && !known->placed) {
            *item = known->item;
            return true;
        }
    }
    return false;
}
/* The same, the last one first. Start with *at = fold->count. */
bool fold_previous(const struct fold *fold, int64_t over_s, uint32_t *at, struct slice *item);

/* How many fold_next_item gives. */
uint64_t fold_items(const struct fold *fold, int64_t over_s);
/* Appends an addition of each item that it gives to *entries; of a fold without times. */
void fold_append_items(const struct fold *fold, struct block **entries);

/* Memory held, in bytes. */
size_t fold_bytes(const struct fold *fold);

#endif
