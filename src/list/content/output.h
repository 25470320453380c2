/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the items of a read go: those at wanted positions, joined or as ITEM lines; stretches of a
 * sublist by reference, single items as copies.
 */
#ifndef LIST_CONTENT_OUTPUT_H
#define LIST_CONTENT_OUTPUT_H

#include "base/chain.h"
#include "list/content/gather.h"
#include "list/format/fold.h"
#include "list/format/sublist.h"

struct output {
    uint64_t position;     /* of the next item, from 0 at the end where the reader begins */
    uint64_t from, to;     /* positions wanted, inclusive; to = UINT64_MAX: up to the end */
    struct chain *out;     /* NULL: only count, or gather */
    struct gather *gather; /* where items go instead, or NULL */
    /* Or, instead of out: is given each wanted item, and may set from to a later position. False:
     * it has enough. */
    bool (*take)(struct output *o, struct slice item);
    void *taker; /* its own */
    bool enough;
    int delimiter;
    bool items_form;  /* "ITEM KEY BYTES" lines instead of joined */
    struct slice key; /* for them */
    uint64_t written; /* items written */
    uint64_t limit_bytes;
    bool too_large; /* the answer outgrew the limit */
};

/* Passes on items first..last-1 of the sublist, all of which are in the list. */
void output_span(struct output *o, struct sublist *s, uint32_t first, uint32_t last);
/* The same of all items, for readers that go from the newest to the oldest: the last one first. */
void output_back(struct output *o, struct sublist *s);
void output_item(struct output *o, struct slice item);
/* The same of the items that the fold has behind its base in the second over_s; back: the last one
 * first. Until the output is satisfied. */
void output_fold(struct output *o, const struct fold *fold, int64_t over_s, bool back);

/* Does nothing more need to come? */
static inline bool output_satisfied(const struct output *o)
{
    return o->too_large || o->enough || o->position > o->to;
}

/* Begins another pass: positions, what was written and what was gathered start again. */
static inline void output_rewind(struct output *o)
{
    if (o->gather != NULL) {
        gather_clear(o->gather); /* a read that begins anew has gathered some of it */
    }
    o->position = 0;
    o->written = 0;
    o->too_large = false;
    o->enough = false;
}

#endif
