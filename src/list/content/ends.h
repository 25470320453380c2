/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of a list: its oldest or its newest items, found without reading what is between them,
 * however long the list is and whatever was taken off before.
 *
 * An item counts at one place, in a run or in the log. A place is void when something newer says so
 * ('-', '=', '@'; a '+' behind an '@'), when its time is over or, for a '+', when the item is in
 * the list below. Void places stay void, as long as their run exists: what is newer only grows, and
 * a compaction changes no content. So a worker remembers how far the places at either end of a run
 * are void (struct ends), and a queue of which half a million items were taken begins where the
 * living ones do.
 *
 * A walk goes from place to place, from one end on. The log decides about a place at once; for
 * those that it leaves open the caller scans the runs that are newer and, from the newest end,
 * those that are older:
 *
 *     walk_begin
 *     while (walk_next)                     a sublist, or the log, has its turn
 *         walk_open(sublist)                not for the log
 *         while (walk_gather)               some places of it
 *             scan(walk_newer), walk_kill   newer runs first, in any order
 *             scan(walk_older), walk_seek   older ones, the newest first
 *             walk_decide
 *     walk.items are the first living ones; walk.exhausted: there are no others
 */
#ifndef LIST_CONTENT_ENDS_H
#define LIST_CONTENT_ENDS_H

#include "list/format/log_fold.h"
#include "list/format/sublist.h"

/* Of one run. */
struct ends_run {
    struct name name;
    /* All places before this one are void. */
    uint32_t sublist, position;
    /* All places behind the sublists are void, and those of the last of them from the position on;
     * UINT32_MAX: nothing is known. */
    uint32_t sublists_left, positions_left;
};

struct ends {
    struct log_fold log;
    struct ends_run *runs; /* those of the head */
    size_t run_count;
    uint64_t epoch, cas; /* of the head; another connection may have another history */
};

void ends_init(struct ends *ends);
void ends_fini(struct ends *ends);

struct walk_item {
    struct slice item;
    uint32_t position;
    char op;
    enum { WALK_OPEN, WALK_LIVES, WALK_VOID } verdict;
};

struct walk {
    struct ends *ends;
    const struct head *head;
    bool back;
    /* What is wanted: so many items, of which the deletions take no more bytes; one at least. */
    uint64_t wanted, wanted_bytes;

    struct slice *items; /* found, in the walk's order; live in arena */
    size_t count, cap;
    uint64_t bytes; /* of their deletions */
    struct arena arena;
    struct fold taken; /* the same items */
    bool full, exhausted;

    /* Where it is: in a run (or, run == run_count, in the log), in which sublist, before which
     * position. From the newest end sublist and position count what is left. */
    bool started, in_log;
    size_t run;
    uint32_t number;
    uint32_t position;
    bool clean; /* no living place of this run was met */
    struct sublist *sublist;
    /* What was deleted one after the other stands together in a newer run: the sublist that has
     * made a place void most lately is looked at first. Of this run's newer ones, or NULL. */
    struct sublist *hint;
    bool hint_helps; /* it has since the last walk_decide */

    struct walk_item *some; /* those that are being decided */
    size_t some_count, some_cap, open;
    uint32_t end; /* the position behind them */
    size_t most;
};

/* Frees what the walk before held. ends and head must stay until walk_fini. wanted, wanted_bytes:
 * 1 at least. */
void walk_begin(struct walk *w, struct ends *ends, const struct head *head, bool back,
                uint64_t wanted, uint64_t wanted_bytes);
/* Before the first walk_begin, all zeros will do. */
void walk_fini(struct walk *w);

/* Turns to the next sublist, or to the log (in_log). False: the walk is over. */
bool walk_next(struct walk *w);
/* The run and the number of the sublist that walk_next has turned to. */
static inline const struct run *walk_run(const struct walk *w)
{
    return &w->head->runs[w->run];
}
static inline uint32_t walk_number(const struct walk *w)
{
    return w->back ? w->number - 1 : w->number;
}
/* A scan_visit of that sublist alone; arg is the walk. Takes a reference. */
enum visited walk_open(void *arg, struct sublist *sublist);
/* Gathers the next places. False: there are no more here. */
bool walk_gather(struct walk *w);
/* The runs whose sublists are to be shown to walk_kill or walk_seek; count 0: none. */
const struct run *walk_newer(const struct walk *w, size_t *count);
const struct run *walk_older(const struct walk *w, size_t *count);
/* scan_visit functions, arg is the walk. False: nothing is open any more. */
enum visited walk_kill(void *arg, struct sublist *sublist);
enum visited walk_seek(void *arg, struct sublist *sublist);
/* What is still open lives. */
void walk_decide(struct walk *w);

#endif
