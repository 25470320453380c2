/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search's own: what its files share.
 *
 *   search.c          the walk over the events in the order of time, and back
 *   search_steps.c    steps: may they take effect, taking effect, taking it back
 *   search_ahead.c    which changes may still come
 *   search_owed.c     what is ruled out by answers that are still owed
 */
#ifndef HISTORY_SEARCH_IMPL_H
#define HISTORY_SEARCH_IMPL_H

#include "base/rng.h"
#include "memo.h"
#include "records.h"
#include "search.h"
#include "sequence.h"

#define NO_STEP UINT32_MAX
#define NO_EVENT UINT32_MAX

struct event {
    int64_t time;
    uint32_t step;
    bool completes;
};

/* What was done, to be taken back in the opposite order. */
enum trail_kind {
    TRAIL_PUSH,
    TRAIL_CUT,
    TRAIL_EXISTS,
    TRAIL_CALL,   /* a step is under way */
    TRAIL_EFFECT, /* it has taken effect */
    TRAIL_EXPIRE, /* it is over without */
};

struct trail_entry {
    enum trail_kind kind;
    uint32_t step; /* or item */
    uint32_t before;
};

/* Steps by item, those of each in the order of their invocation. */
struct step_index {
    uint32_t *start; /* item_limit + 1 */
    uint32_t *steps;
};

enum choice_kind { CHOOSE_EFFECT, CHOOSE_EXPIRE };

struct choice {
    enum choice_kind kind;
    uint32_t step;
};

/* A step completes and has not taken effect: what may happen now. */
struct frame {
    size_t trail_mark;
    uint32_t event, step;
    uint32_t first, count, next; /* of choices */
    bool order_mattered;         /* before it */
};

struct search {
    const struct problem *p;
    struct search_options options;
    struct event *events;
    uint32_t event_count, event; /* the next one */
    uint32_t *call_at, *complete_at;
    uint32_t last_order_event; /* whatever is asked behind it does not depend on the order */

    struct sequence content;
    bool exists;

    /* Under way and without effect so far: two rings, whose heads are nodes step_count and
     * step_count + 1. */
    uint32_t *ring_prev, *ring_next;
    bool *under_way;
    struct hash128 under_way_hash; /* of those that are not free */
    /* Optional steps that may take effect at any later time: their bit in used, or NO_STEP. */
    uint32_t *free_bit;
    uint32_t *twin; /* an earlier one that is alike, or NO_STEP */
    uint64_t *used;

    struct step_index adders, removers;
    uint32_t *adders_now, *removers_now;       /* by item: under way */
    uint32_t *wipers, wiper_count, wipers_now; /* steps that may remove any item */
    uint32_t *reads, read_count;               /* full ones, in the order of invocation */
    struct hash128 *answer_order, *answer_set; /* of full reads */
    uint32_t **places; /* of full reads: (item, position) pairs, in the order of items */
    uint32_t *seen_mark, seen_stamp;
    uint32_t horizon; /* what answers are owed, is owed before this event */

    struct trail_entry *trail;
    size_t trail_count, trail_cap;
    struct frame *frames;
    uint32_t frame_count, frame_cap;
    struct choice *choices;
    uint32_t choice_count, choice_cap;
    struct memo seen;
    /* Configurations without a way on, whatever the order of the list's items: that played no part
     * in finding it out. */
    struct memo dead;
    bool order_mattered;
    struct rng rng; /* with a seed */
    bool replays;   /* takes steps by their hints */
};

static inline bool changes(const struct step *step)
{
    return step->kind <= STEP_REMOVE;
}

/* May it remove any item, for the purposes of looking ahead? */
static inline bool wipes(const struct step *step)
{
    return step->kind == STEP_SET || step->kind == STEP_REMOVE;
}

static inline uint32_t ring_of(const struct search *s, const struct step *step)
{
    return s->p->step_count + (changes(step) ? 0 : 1);
}

/* For all steps i of a ring (CHANGES or others) that are under way. The body must not take i out.
 */
#define RING_CHANGES(s) ((s)->p->step_count)
#define RING_OTHERS(s) ((s)->p->step_count + 1)
#define FOR_RING(s, ring, i) \
    for (uint32_t i = (s)->ring_next[ring]; i != (ring); i = (s)->ring_next[i])

/* search_steps.c */

/* Would the step be answered like this now? Sets order_mattered when it is not because of the order
 * of the items; so do others that say no for that reason. */
bool step_possible(struct search *s, uint32_t step);
/* Would a change that is possible change anything? */
bool step_effective(struct search *s, uint32_t step);
void step_call(struct search *s, uint32_t step);
/* Takes effect. False when the content is then one that steps to come rule out; it has taken effect
 * all the same. */
bool step_take(struct search *s, uint32_t step);
void step_expire(struct search *s, uint32_t step);
/* What is right now and cannot do harm takes effect by itself: this step, or all. */
void step_settle(struct search *s, uint32_t step);
void steps_settle(struct search *s);
void steps_undo(struct search *s, size_t trail_mark);

/* search_ahead.c */

/* Builds and frees what is looked up here. */
void ahead_init(struct search *s);
void ahead_fini(struct search *s);
/* A step begins to be under way, or ends to be. */
void ahead_count(struct search *s, uint32_t step, bool begins);
/* Of the steps from place from to place to (exclusive), in the order of invocation, the place of
 * the first that is not under way yet. */
uint32_t ahead_first_to_come(const struct search *s, const uint32_t *steps, uint32_t from,
                             uint32_t to);
/* Does the index have a step for the item that is not under way yet, but may be before that event?
 */
bool ahead_index_to_come(const struct search *s, const struct step_index *index, uint32_t item,
                         uint32_t until);
/* Can a change still add the item before that event, remove it, remove everything? */
bool ahead_may_add(const struct search *s, uint32_t item, uint32_t until);
bool ahead_may_remove(const struct search *s, uint32_t item, uint32_t until);
bool ahead_may_wipe(const struct search *s, uint32_t until);

/* search_owed.c */

/* Can the step, under way or a full read that is still to come, still get its answer? */
bool owed_allows(struct search *s, uint32_t step);
/* Can all of them, after one item has changed, or everything? */
bool owed_allows_item(struct search *s, uint32_t item);
bool owed_allows_all(struct search *s);
/* The same for a step that must take effect now, by changes that are under way, and for those that
 * must do so before it. */
bool owed_allows_due(struct search *s, uint32_t due);

#endif
