/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of a view (view.h): its sublists, in order, which of their items are void, and where each
 * item stands. A run of an outline (outline.h) has no sublists at hand: it knows how many entries
 * each has, and which are void.
 *
 *     parts    sublist 0: apple pear plum    sublist 1: cherry fig
 *     items    0     1    2                  3      4
 *     slots    hash -> item, open addressing
 *     guide    which part has item 0, 1024, 2048, ...
 *     hides    the places of older runs that are void because of this one
 *     ends     a heap: which of its items are over next
 */
#ifndef LIST_CONTENT_VIEW_RUN_H
#define LIST_CONTENT_VIEW_RUN_H

#include "list/format/name.h"
#include "list/format/sublist.h"

struct view_part {
    struct sublist *sublist; /* NULL: of an outline */
    uint64_t *dead;          /* a bit per item, NULL while none is void */
    uint32_t first;          /* number of its first item within the run */
    uint32_t count;          /* items */
    uint32_t live;           /* of these, the ones that are not void */
    uint32_t asked;          /* of an outline: its last question, plus 1; 0: none */
    bool wanted;             /* the same: its reader's mark */
};

/* Where an item stands. */
struct view_place {
    uint32_t run, part, position;
};

struct view_slot {
    uint32_t hash;
    uint32_t item; /* number within the run, plus 1; 0: empty */
};

struct view_end {
    uint32_t until_s;
    uint32_t item; /* number within the run */
};

struct view_run {
    struct name name;
    struct view_part *parts;
    uint32_t part_count;
    size_t part_cap;
    uint32_t item_count;
    uint64_t live;
    struct view_slot *slots;
    uint32_t slot_count; /* a power of two */
    uint32_t *guide;
    size_t guide_cap;
    struct view_place *hides;
    uint32_t hide_count;
    size_t hide_cap;
    struct view_end *ends; /* of each item with a time that is not over, void or not */
    uint32_t end_count;
    size_t end_cap;
    uint64_t pinned_bytes; /* memory of the sublists, and of the bits */
};

/* items: how many are to be expected. */
void view_run_init(struct view_run *run, const struct name *name, uint64_t items);
/* One without sublists: nothing is looked for in it. */
void view_run_init_counts(struct view_run *run, const struct name *name);
void view_run_fini(struct view_run *run);
uint64_t view_run_memory_bytes(const struct view_run *run);

/* The next sublist, all of it live; takes a reference. At most 2^31 items in all. */
struct view_part *view_run_push(struct view_run *run, struct sublist *sublist);
/* The same of a run without sublists: how many items the next one has. */
void view_run_push_count(struct view_run *run, uint32_t count);
/* Notes a place in an older run. */
void view_run_hide(struct view_run *run, struct view_place place);

/* Notes that the item is over in that second. */
void view_run_end_at(struct view_run *run, uint32_t item, uint32_t until_s);
/* Makes the items void that are over in that second. Returns the latest second that this took
 * notice of, 0 when none was new. A microsecond for some items that are over. */
uint32_t view_run_advance(struct view_run *run, int64_t now_s);

/* Looks for an item, void or not; hash: of item_hash. Fills part and position. */
bool view_run_find_any(const struct view_run *run, struct slice item, uint32_t hash,
                       struct view_place *place);
/* Looks for a live item; hash: of item_hash. Fills part and position. */
bool view_run_find(const struct view_run *run, struct slice item, uint32_t hash,
                   struct view_place *place);

/* Where an item with this hash stands, most likely; only to look at memory ahead of time. */
bool view_run_guess(const struct view_run *run, uint32_t hash, struct view_place *place);
static inline void view_run_expect(const struct view_run *run, uint32_t hash)
{
    __builtin_prefetch(&run->slots[hash & (run->slot_count - 1)]);
}

static inline bool view_part_is_dead(const struct view_part *part, uint32_t position)
{
    return part->dead != NULL && (part->dead[position / 64] >> position % 64 & 1) != 0;
}
/* Does nothing if it is void already. */
void view_run_set_dead(struct view_run *run, struct view_part *part, uint32_t position);
void view_run_set_live(struct view_run *run, struct view_part *part, uint32_t position);

#endif
