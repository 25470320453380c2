/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source: one of the lists of a joint, as it was at the instant. What it holds is found in one of
 * three ways:
 *
 *     items     in a fold: what a head without runs holds, or a list in another layout
 *     view      in the list's view, which is brought to that head if need be
 *     stream    by a pass over its sublists, for each question: it is too large for a view
 */
#ifndef LIST_JOINT_SOURCE_H
#define LIST_JOINT_SOURCE_H

#include "list/content/view.h"
#include "list/core/inner.h"

enum source_kind { SOURCE_ITEMS, SOURCE_VIEW, SOURCE_STREAM };

struct source {
    struct list *list;   /* counted as one that has an operation */
    struct inner *look;  /* what the last one found */
    struct inner *probe; /* of a list in another layout: a second look */
    bool missing;
    bool made; /* its head was made for this joint */
    enum source_kind kind;
    bool has_items;
    struct fold items;  /* SOURCE_ITEMS */
    int64_t over_s;     /* items that are over in that second are not there any more */
    unsigned brought;   /* how often its view was asked for */
    struct inner *read; /* a pinned read in progress, or the last one */
};

void source_init(struct source *source, struct list *list);
void source_fini(struct engine *e, struct source *source);
/* Forgets what the last look brought. */
void source_forget(struct engine *e, struct source *source);
/* After a look: finds out of which kind it is. */
void source_settle(struct engine *e, struct source *source);
/* How many items it has, at most or about. */
uint64_t source_size(const struct source *source);

/* SOURCE_ITEMS: is the item there, and at which place? */
static inline bool source_has(const struct source *source, struct slice item, uint64_t *place)
{
    const struct fold_item *known = fold_find(&source->items, item);
    *place = known != NULL ? (uint64_t)(known - source->items.items) : 0;
    return known != NULL && entry_is_in(known->outcome, known->until_s, source->over_s);
}
/* The same kind: the next item, as fold_next_entry. */
static inline bool source_next(const struct source *source, uint32_t *at, struct slice *item)
{
    struct entry entry;
    bool found = fold_next_entry(&source->items, true, source->over_s, at, &entry);
    *item = found ? entry.bytes : SLICE_NONE;
    return found;
}

/* Begins a read of the head that was looked at; source->read is it, and may be done already. form
 * counts where items are answered to its chain; from, where positions are asked for: to the end. */
void source_read(struct engine *e, struct source *source, struct op *op, enum list_verb verb,
                 enum list_form form, uint64_t from, struct gather *gather);

/* The view, when it shows the source's head; else NULL. To be used before anything else runs. */
struct view *source_view(struct source *source);

#endif
