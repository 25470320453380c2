/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/fold.h"

#include <stdlib.h>

#define TABLE_MIN 64u
#define TABLE_MAX (1u << 30)
#define NOT_FOUND UINT32_MAX

void fold_init(struct fold *fold)
{
    *fold = (struct fold){0};
    arena_init(&fold->arena);
}

void fold_fini(struct fold *fold)
{
    arena_fini(&fold->arena);
    free(fold->items);
    free(fold->table);
    *fold = (struct fold){0};
}

/* Returns the table's slot of the item: the one that holds it, or the empty one where it would go.
 */
static inline uint32_t find_slot(const struct fold *fold, struct slice item, uint32_t hash)
{
    uint32_t mask = fold->table_size - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        const struct fold_slot *slot = &fold->table[i];
        if (slot->index == 0 ||
            (slot->hash == hash && slice_equal(fold->items[slot->index - 1].item, item))) {
            return i;
        }
    }
}

static void resize_table(struct fold *fold, uint32_t size)
{
    uint32_t old_size = fold->table_size;
    struct fold_slot *old = fold->table;
    fold->table_size = size;
    fold->table = calloc(fold->table_size, sizeof *fold->table);
    CHECK(fold->table != NULL);
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i].index != 0) {
            uint32_t at = old[i].hash & (size - 1);
            while (fold->table[at].index != 0) {
                at = (at + 1) & (size - 1);
            }
            fold->table[at] = old[i];
        }
    }
    free(old);
}

void fold_reserve(struct fold *fold, uint32_t items)
{
    uint32_t size = fold->table_size == 0 ? TABLE_MIN : fold->table_size;
    while (size / 2 <= fold->table_used + items && size < TABLE_MAX) {
        size *= 2;
    }
    if (size > fold->table_size) {
        resize_table(fold, size);
    }
}

static RARE void grow_items(struct fold *fold)
{
    fold->room = fold->room == 0 ? TABLE_MIN / 2 : fold->room * 2;
    fold->items = realloc(fold->items, fold->room * sizeof *fold->items);
    CHECK(fold->items != NULL);
}

static inline uint32_t push_item(struct fold *fold, struct slice item, char outcome,
                                 uint32_t until_s)
{
    if (fold->count == fold->room) {
        grow_items(fold);
    }
    fold->items[fold->count] = (struct fold_item){item, until_s, outcome, false};
    return ++fold->count;
}

static void clear(struct fold *fold)
{
    arena_fini(&fold->arena);
    if (fold->table_size > 0) {
        memset(fold->table, 0, fold->table_size * sizeof *fold->table);
    }
    fold->table_used = fold->count = 0;
    fold->cleared = true;
}

/* What an entry of an item does, whatever the cap. */
static inline void put(struct fold *fold, char op, struct slice item, uint32_t until_s)
{
    if (fold->table_used * 2 >= fold->table_size) {
        resize_table(fold, fold->table_size == 0 ? TABLE_MIN : fold->table_size * 2);
    }
    uint32_t hash = item_hash(item);
    struct fold_slot *slot = &fold->table[find_slot(fold, item, hash)];
    if (slot->index == 0) {
        slot->hash = hash;
        struct slice kept = fold->holds ? item : arena_copy(&fold->arena, item);
        slot->index = push_item(fold, kept, op, until_s);
        fold->table_used++;
        return;
    }
    struct fold_item *known = &fold->items[slot->index - 1];
    if (op == ENTRY_DEL) {
        known->outcome = ENTRY_DEL;
    } else if (op != ENTRY_ADD || known->outcome == ENTRY_DEL || known->outcome == ENTRY_TIMED) {
        /* Absent in between, or there with another time: the old place is void, the new one is
         * here. */
        known->outcome = 0;
        slot->index =
            push_item(fold, known->item, op == ENTRY_TIMED ? ENTRY_TIMED : ENTRY_READD, until_s);
    }
}

void fold_put(struct fold *fold, const struct entry *entry)
{
    if (entry->op == ENTRY_CLEAR) {
        clear(fold);
    } else {
        put(fold, entry->op, entry->bytes, entry->until_s);
    }
}

void fold_put_short(struct fold *fold, struct slice *entries)
{
    struct entry_short s = ENTRY_SHORT_NONE;
    while (entry_is_short(entries->p, entries->len, &s)) {
        char op = *entries->p;
        struct slice item = slice_take(entries, s.bytes);
        (void)slice_take(&item, s.bytes - s.item_len);
        put(fold, op, item, 0);
    }
}

void fold_set_cap(struct fold *fold, struct cap cap)
{
    CHECK(fold->count == 0);
    fold->cap = cap;
}

static uint32_t find_index(const struct fold *fold, struct slice item)
{
    if (fold->table_used == 0) {
        return NOT_FOUND;
    }
    uint32_t index = fold->table[find_slot(fold, item, item_hash(item))].index;
    return index == 0 ? NOT_FOUND : index - 1;
}

const struct fold_item *fold_find(const struct fold *fold, struct slice item)
{
    uint32_t index = find_index(fold, item);
    return index == NOT_FOUND ? NULL : &fold->items[index];
}

char fold_outcome(const struct fold *fold, struct slice item)
{
    const struct fold_item *known = fold_find(fold, item);
    return known == NULL ? 0 : known->outcome;
}

char fold_over(struct fold *fold, char base_op, struct slice item)
{
    if (fold->cleared) {
        return 0;
    }
    uint32_t index = find_index(fold, item);
    if (index == NOT_FOUND) {
        return base_op;
    }
    struct fold_item *known = &fold->items[index];
    if (known->outcome != ENTRY_ADD) {
        return 0;
    }
    if (base_op == ENTRY_DEL || base_op == ENTRY_TIMED) {
        /* Absent at the end of the base, or there for a time: its place is in the fold. */
        known->outcome = ENTRY_READD;
        return 0;
    }
    known->placed = true;
    return base_op;
}

bool fold_next_entry(const struct fold *fold, bool oldest, int64_t over_s, uint32_t *at,
                     struct entry *entry)
{
    while (*at < fold->count) {
        const struct fold_item *known = &fold->items[(*at)++];
        bool over = entry_is_over(known->outcome, known->until_s, over_s);
        char op = over ? (char)ENTRY_DEL : known->outcome;
        if (op == 0 || known->placed || (oldest && op == ENTRY_DEL)) {
            continue;
        }
        entry->op = oldest && op == ENTRY_READD ? (char)ENTRY_ADD : op;
        entry->until_s = op == ENTRY_TIMED ? known->until_s : 0;
        entry->bytes = known->item;
        return true;
    }
    return false;
}

bool fold_previous(const struct fold *fold, int64_t over_s, uint32_t *at, struct slice *item)
{
    while (*at > 0) {
        const struct fold_item *known = &fold->items[--*at];
        if (entry_is_in(known->outcome, known->until_s, over_s) && !known->placed) {
            *item = known->item;
            return true;
        }
    }
    return false;
}

uint64_t fold_items(const struct fold *fold, int64_t over_s)
{
    uint64_t items = 0;
    struct slice item;
    for (uint32_t at = 0; fold_next_item(fold, over_s, &at, &item);) {
        items++;
    }
    return items;
}

void fold_append_items(const struct fold *fold, struct block **entries)
{
    struct slice item;
    for (uint32_t at = 0; fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item);) {
        entry_append(entries, ENTRY_ADD, item);
    }
}

size_t fold_bytes(const struct fold *fold)
{
    return fold->arena.bytes + fold->room * sizeof *fold->items +
           fold->table_size * sizeof *fold->table;
}
