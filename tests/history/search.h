/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for an order of the operations on one list (after Wing & Gong and Lowe): an operation
 * takes effect no sooner than it must, that is when some operation completes; configurations that
 * were seen before are not entered again. A configuration is the content of the list and which of
 * the operations under way have taken effect.
 *
 * What keeps it small (each is safe: if there is an order at all, one is found that looks like
 * this):
 *
 *   - An operation that changes nothing, whatever it answers, takes effect as soon as its answer is
 *     right. So does a change that can do nothing any more before it completes.
 *   - Operations of unknown outcome are optional: taken only when they change something, and of two
 *     that are alike the first one first.
 *   - A change is tried before the one that must take effect now only if a chain of operations that
 *     share items leads from the one to the other.
 *   - A full read, under way or to come, rules out contents from which its answer cannot be reached
 *     by the changes that there can be before it.
 */
#ifndef HISTORY_SEARCH_H
#define HISTORY_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

enum step_kind {
    /* Changes. */
    STEP_ADD,    /* count: how many are new */
    STEP_DEL,    /* count: how many were there */
    STEP_SET,    /* replaces all */
    STEP_CREATE, /* as STEP_SET, if there is no list */
    STEP_REMOVE, /* ldrop */
    /* These change nothing. */
    STEP_CHECK, /* exists only */
    STEP_READ,  /* all items */
    STEP_HAS,   /* the first seen_count items are there, the others are not */
    STEP_LEN,   /* count */
    STEP_RANGE, /* positions from .. to */
    STEP_SEES,  /* these items are there, in this order, whatever else is */
    STEP_NEVER, /* an answer that no list gives */
};

enum step_exists { EXISTS_EITHER, EXISTS_YES, EXISTS_NO };

/* An operation as the search sees it. */
struct step {
    enum step_kind kind;
    enum step_exists exists; /* with on_missing = refuse: the list is there, or not */
    bool optional;           /* done, or never */
    uint32_t count_min, count_max;
    const uint32_t *items; /* of changes and STEP_HAS: all different */
    uint32_t item_count, seen_count;
    int64_t from, to;
    int64_t invoked, completed; /* completed = INT64_MAX: at no certain time */
    uint64_t hint;              /* for search_replay; 0: none */
    uint32_t record;            /* the caller's */
};

struct problem {
    bool refuse;         /* on_missing */
    bool partial;        /* the list may hold other items, too */
    uint32_t item_limit; /* items are below it */
    struct step *steps;  /* in any order; those that are not optional complete */
    uint32_t step_count;
    const uint32_t *initial;
    uint32_t initial_count;
    bool initially_exists; /* with refuse */
};

enum search_verdict { SEARCH_FOUND, SEARCH_NONE, SEARCH_LIMIT };

struct search_options {
    uint64_t configurations_max;
    bool plainly;  /* without ruling out anything because of reads to come */
    uint64_t seed; /* not 0: tries things in an order of its own. A search that takes a wrong turn
                      early may take very long; another one rarely takes the same */
};

#define SEARCH_STATES_MAX 4

struct search_state {
    uint32_t *items;
    uint32_t count;
    bool exists;
};

/* How far it got. */
struct search_result {
    enum search_verdict verdict;
    uint64_t configurations;
    /* Unless found: the step that could not follow, of all that were tried the latest to complete;
     * the steps that had taken effect, in that order; contents then. */
    uint32_t stuck;
    int64_t stuck_at; /* its completion; INT64_MIN when nothing was tried */
    uint32_t *order;
    uint32_t order_count;
    struct search_state states[SEARCH_STATES_MAX];
    uint32_t state_count;
};

/* Fills result, which search_result_fini frees. */
void search_run(const struct problem *p, const struct search_options *options,
                struct search_result *result);
void search_result_fini(struct search_result *result);

/* Is there an order in which changes come by their hints? Each is taken as late as it may be, what
 * changes nothing as soon as its answer is right; so no other order by these hints does better. One
 * pass. False says nothing about orders that differ. */
bool search_replay(const struct problem *p);

#endif
