/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the records of one list to a problem for the search: all of it, or a weaker one. Whatever is
 * left out here, an order for the whole is an order for what remains; so a weaker problem that has
 * none proves that the whole has none, and is easier to solve, and to read.
 */
#ifndef HISTORY_PROBLEM_H
#define HISTORY_PROBLEM_H

#include "records.h"
#include "search.h"

enum fate {
    FATE_KEEP,
    FATE_DROP, /* not there; only for what changes nothing */
    FATE_FREE, /* done at any time before its completion, or never; its answer does not count */
};

struct view {
    uint32_t list;
    /* Only what concerns these items (numbers of the history); NULL: all. */
    const uint32_t *items;
    uint32_t item_count;
    /* Only up to here: what completes later is unknown, what is invoked later is not there. */
    int64_t until;
    /* Begins at a moment not before cut_from and not after cut_to (INT64_MIN: at the beginning,
     * with nothing), with this content: places in items, or, if not NULL, numbers of the history,
     * all different. */
    int64_t cut_from, cut_to;
    uint32_t initial[2];
    const uint32_t *initial_long;
    uint32_t initial_count;
    bool initially_exists;
    const uint8_t *fates; /* by place among the list's records, or NULL */
};

struct projector {
    const struct history *history;
    uint32_t *number_of; /* an item's number in the problem */
    uint32_t *number_stamp, *mark, stamp, marks;
    uint32_t *items; /* of the history, by the problem's numbers; valid until the next problem */
    uint32_t item_count;
    struct step *steps;
    uint32_t step_count, step_cap;
    struct arena arena;
};

void projector_init(struct projector *pr, const struct history *h);
void projector_fini(struct projector *pr);
/* The problem and what it points to are valid until the next one. */
void projector_build(struct projector *pr, const struct view *view, struct problem *p);

static inline struct view view_of_list(uint32_t list)
{
    return (struct view){
        .list = list, .until = INT64_MAX, .cut_from = INT64_MIN, .cut_to = INT64_MIN};
}

#endif
