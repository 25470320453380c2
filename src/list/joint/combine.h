/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The intersection, union or difference of the sources of a joint: walks one list after the other,
 * some items at a time, and asks the others for these.
 *
 *     intersection   the smallest list is walked. The order is that of the first list, which is
 *                    asked last, and tells the places
 *     union          each list is walked: what none before it has
 *     difference     the first list is walked: what no other has
 *
 * So nothing is kept of a list but what is being walked, and the result.
 */
#ifndef LIST_JOINT_COMBINE_H
#define LIST_JOINT_COMBINE_H

#include "list/joint/joint.h"

struct hit {
    struct slice item; /* in combine.kept */
    uint64_t place;    /* in the first list */
};

struct combine {
    struct joint *joint;
    enum joint_verb verb;
    uint64_t limit_bytes; /* of memory for what is kept */

    /* Where the result goes: to output, or to items, or it is only counted. */
    struct output output; /* output.out is NULL: not there */
    struct fold *items;
    const struct list_policy *to; /* what an item must fit, but for counts */
    uint64_t number;
    uint64_t item_bytes; /* of items, as entries */

    size_t walked, walk_first, walk_last; /* sources, as numbers of arguments */
    struct gather chunk;                  /* what is being walked */
    size_t chunk_max;
    uint64_t position; /* in the list that is walked */
    uint32_t at;       /* the same, of SOURCE_ITEMS */
    bool walk_over;
    struct slice *some; /* of chunk, what is left of it */
    size_t some_count, some_cap, some_at;
    size_t asked; /* the source that is asked now */

    bool by_place;   /* the result is put in the order of the first list at the end: */
    bool first_last; /* ... which passes over its items then, and finds these: */
    struct fold wanted;
    uint64_t *places;
    size_t place_cap;
    struct hit *hits;
    size_t hit_count, hit_cap, hit_at;
    struct arena kept;
    struct fold filter; /* what a stream is asked for */
    bool has_filter;
    struct gather found; /* what it has of that */
    size_t memory_bytes; /* all but chunk and found, counted with the memory of requests */
};

/* Fills in what does not depend on where the result goes. */
void combine_init(struct combine *combine, struct joint *joint, enum joint_verb verb,
                  uint64_t limit_bytes);
void combine_fini(struct combine *combine);
/* After joint_instant_step with JOINT_OK. Ends with joint.state; number is then how many items the
 * result has. */
enum progress combine_step(struct engine *e, struct combine *combine, const struct op_event *event);

#endif
