/* SPDX-License-Identifier: BSD-3-Clause */
/* How a fold replays changes: as they come, or under the cap of its list. */
#include "list/format/fold.h"

static bool is_in(const struct fold_item *item)
{
    return item != NULL && (item->outcome == ENTRY_ADD || item->outcome == ENTRY_READD);
}

static void drop_oldest(struct fold *fold)
{
    while (!is_in(&fold->items[fold->first])) {
        fold->first++;
    }
    fold->items[fold->first].outcome = ENTRY_DEL;
    fold->live--;
}

/* An item with a time of its own is not added: whether it counted at a later addition would depend
 * on when that is asked. */
static void apply_capped(struct fold *fold, const struct entry *entry)
{
    const struct fold_item *known = fold_find(fold, entry->bytes);
    bool in = is_in(known);
    switch (entry->op) {
    case ENTRY_CLEAR:
        fold->live = fold->first = 0;
        break;
    case ENTRY_DEL:
        fold->live -= in;
        break;
    case ENTRY_ADD:
    case ENTRY_READD:
        if (!in && fold->live >= fold->cap.max) {
            if (fold->cap.refuses) {
                return;
            }
            drop_oldest(fold);
        }
        fold->live += !in;
        break;
    default:
        return;
    }
    fold_put(fold, entry);
}

void fold_apply_entry(struct fold *fold, const struct entry *entry)
{
    if (fold->cap.max != 0) {
        apply_capped(fold, entry);
    } else {
        fold_put(fold, entry);
    }
}

void fold_apply(struct fold *fold, enum entry_op op, struct slice item)
{
    struct entry entry = {.op = (char)op, .bytes = item};
    fold_apply_entry(fold, &entry);
}

bool fold_apply_entries(struct fold *fold, struct slice entries)
{
    enum { ENTRY_BYTES_SHORT = 16 }; /* of short names with a number, as most items are */
    struct entry entry;
    enum entry_status status;
    fold_reserve(fold, (uint32_t)(entries.len / ENTRY_BYTES_SHORT));
    do {
        if (fold->cap.max == 0) {
            fold_put_short(fold, &entries);
        }
        status = entry_next(&entries, &entry);
        if (status == ENTRY_OK && entry.op != ENTRY_ANNOUNCE) {
            fold_apply_entry(fold, &entry);
        }
    } while (status == ENTRY_OK);
    return status == ENTRY_END;
}

bool fold_apply_held(struct fold *fold, struct slice entries)
{
    fold->holds = true;
    bool whole = fold_apply_entries(fold, entries);
    fold->holds = false;
    return whole;
}

static void trim(struct fold *fold)
{
    struct fold fresh;
    fold_init(&fresh);
    fold_set_cap(&fresh, fold->cap);
    for (uint32_t i = fold->first; i < fold->count; i++) {
        if (is_in(&fold->items[i])) {
            fold_apply(&fresh, ENTRY_ADD, fold->items[i].item);
        }
    }
    fold_fini(fold);
    *fold = fresh;
}

void fold_trim_often(struct fold *fold)
{
    enum { VOID_PLACES_MAX = 8192 };
    if (fold->cap.max != 0 && fold->count - fold->live > VOID_PLACES_MAX) {
        trim(fold);
    }
}
