/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads that pick some items of a list: lrandom, items at random; lafter and lbefore, those beside
 * an item. They are given the list's items in their order, for lbefore from the newest on, by an
 * output (content/output.h), wherever it gets them from:
 *
 *     pick_begin(&pick, list, call, rng, &output)
 *     all items are passed on to the output, as far as it wants them
 *     pick_finish(e, &pick, head)      answers the call
 *     pick_fini(&pick)
 *
 * A list whose positions are known answers without a pass: pick_from_view.
 *
 * lrandom keeps count items. The i-th item passed on, i from 1, takes the place of one of them with
 * the chance count / i: in the end each set of count items is as likely as any other (sampling by
 * reservoir, J. S. Vitter, "Random sampling with a reservoir", 1985, algorithm R).
 */
#ifndef LIST_READ_PICK_H
#define LIST_READ_PICK_H

#include "base/arena.h"
#include "base/rng.h"
#include "list/content/output.h"
#include "list/core/op.h"

struct view;

struct pick {
    const struct list *list;
    struct list_call *call;
    struct rng *rng;
    bool found;          /* lafter, lbefore: the item was passed on */
    bool too_large;      /* what was picked is larger than an answer may be */
    uint64_t seen;       /* lrandom: items passed on */
    struct slice *items; /* lrandom: the reservoir, in arena */
    size_t count, cap;
    uint64_t bytes; /* of its items */
    struct arena arena;
    uint64_t *positions; /* lrandom, where positions are known: those that are picked, in order */
};

/* Also to begin anew. */
void pick_begin(struct pick *pick, const struct list *list, struct list_call *call, struct rng *rng,
                struct output *output);
void pick_finish(struct engine *e, struct pick *pick, const struct head *head);
void pick_fini(struct pick *pick);

/* Where positions are known, of a list of total items, behind pick_begin: has the output want the
 * items beside the one at that position (lafter, lbefore); some at random (lrandom; false: there
 * are none). */
void pick_beside(struct pick *pick, uint64_t position, uint64_t total, struct output *output);
bool pick_sample(struct pick *pick, uint64_t total, struct output *output);

/* Does all of it, from a view that shows the head. */
void pick_from_view(struct engine *e, struct list *list, struct list_call *call, struct view *view,
                    const struct head *head);

/* So many different positions below total (count <= total) at random, each set of them as likely as
 * any other, in ascending order. From malloc, the caller's. */
uint64_t *pick_positions(struct rng *rng, uint64_t total, size_t count);

#endif
