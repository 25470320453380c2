/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scanning: visits the sublists of some runs one after the other, fetching a few ahead, in slices,
 * so that a list of any size is read with bounded memory and without stalling the worker.
 *
 *     scan_start(...);
 *     SCAN_RUN(&op->co, e, op, &scan, "reading sublists");
 *     scan.state is now SCAN_END, SCAN_MISSING or SCAN_ERROR
 *     scan_stop(...);
 */
#ifndef LIST_CORE_SCAN_H
#define LIST_CORE_SCAN_H

#include "list/core/op.h"

/* Sublists fetched ahead of the one that is visited. */
#define SCAN_WINDOW 8

enum scan_state { SCAN_WAIT, SCAN_YIELD, SCAN_END, SCAN_MISSING, SCAN_ERROR };

/* Visits one sublist, or the next part of one (enum visited). */
typedef enum visited scan_visit(void *arg, struct sublist *sublist);
/* Is that sublist of runs[run] to be visited? The same answer whenever it is asked. */
typedef bool scan_wants(const void *arg, size_t run, uint32_t number);

struct scan_slot {
    enum { SLOT_EMPTY, SLOT_WAITING, SLOT_READY, SLOT_MISSING, SLOT_ERROR } state;
    struct sublist *sublist;
};

struct scan_cursor {
    size_t run;      /* how many runs in */
    uint32_t number; /* of the sublist in it */
    uint64_t index;  /* how many sublists in */
};

struct scan {
    enum scan_state state;
    const struct run *runs; /* oldest first */
    size_t run_count;
    bool newest_first; /* order of runs; within a run from 0 on */
    bool backwards;    /* within a run from the last sublist on; set behind scan_start */
    bool keep;         /* fetched sublists go into the cache */
    bool all_cached;   /* nothing had to be fetched so far */
    uint64_t total;
    struct scan_cursor fetch, visit;
    struct scan_slot slots[SCAN_WINDOW];
    uint64_t slice_pass;  /* the engine's pass in which slice_items were visited */
    uint32_t slice_items; /* answers that come in a pass do not bring more slices */
    uint32_t visit_items; /* for slices a visit counts as so many; 0: as the sublist has. Set behind
                             scan_start */
    scan_visit *visitor;
    scan_wants *wants; /* NULL: all of them */
    void *arg;
    struct name_range missing;  /* SCAN_MISSING: the run, and the number of the sublist that is not
                                   there */
    char error[LIST_ERROR_MAX]; /* SCAN_ERROR */
};

/* runs must live as long as the scan. */
void scan_start(struct op *op, struct scan *scan, const struct run *runs, size_t run_count,
                bool newest_first, bool keep, scan_visit *visitor, void *arg);
/* The same for one sublist of a run. */
void scan_start_one(struct op *op, struct scan *scan, const struct run *run, uint32_t number,
                    bool keep, scan_visit *visitor, void *arg);
/* Behind scan_start: visits no sublists but those that are wanted. */
void scan_only(struct scan *scan, scan_wants *wants);
/* Within a visit: which sublist it is. Returns its run's place among the runs. */
size_t scan_place(const struct scan *scan, uint32_t *number);
/* Goes on as far as it can. */
enum scan_state scan_step(struct engine *e, struct op *op, struct scan *scan);
/* Takes an event whose tag has TAG_SCAN. */
void scan_take(struct scan *scan, const struct op_event *event);
/* Gives back what it holds; answers still to come are dropped. Fine when it was never started. */
void scan_stop(struct op *op, struct scan *scan);

#define SCAN_RUN(co, e, op, scan, name) \
    while (((scan)->state = scan_step(e, op, scan)) == SCAN_WAIT || (scan)->state == SCAN_YIELD) { \
        CO_PAUSE(co, name, (scan)->state == SCAN_YIELD ? PROGRESS_YIELD : PROGRESS_WAITING); \
        if (event != NULL && (event->tag & TAG_SCAN) != 0) { \
            scan_take(scan, event); \
        } \
    }

#endif
