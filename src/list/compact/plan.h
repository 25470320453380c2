/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a compaction does next: a pure function of the head and the list's limits.
 */
#ifndef LIST_COMPACT_PLAN_H
#define LIST_COMPACT_PLAN_H

#include "config/config.h"
#include "list/format/fold.h"
#include "list/format/head.h"

enum compact_goal {
    COMPACT_AUTO,  /* what its sizes ask for */
    COMPACT_FULL,  /* lcompact: log folded, one run, nothing left over */
    COMPACT_DROP,  /* ldrop: nothing left at all. With on_missing = create the log has been emptied
                      by a '!' before; what was added behind that stays */
    COMPACT_CLEAR, /* a damaged list is given up (on_damaged = miss), or an ldrop's '!' was not
                      stored */
    COMPACT_TIDY,  /* what a list that was given up leaves behind is removed */
    COMPACT_HEAL,  /* a run is written anew because a sublist of it is gone but still cached */
};

enum plan_kind {
    PLAN_NOTHING,
    PLAN_FOLD,          /* fold the log in place; the runs go if all their items are over */
    PLAN_CLEAR,         /* drop all content in place */
    PLAN_FLIP,          /* the log becomes a run */
    PLAN_MERGE,         /* runs first .. first+count-1 become one */
    PLAN_COLLECT,       /* delete what the header names as garbage, sweep dead announcements */
    PLAN_COLLECT_FIRST, /* the same before anything else, since these names are about to fill the
                         head */
    PLAN_CAP,           /* the head gets the cap that the file says (cap.c) */
    PLAN_REMOVE, /* the head holds nothing that is to stay: remove it, and what it names. Of a
                    list that is missing, it says no more than that */
};

struct plan {
    enum plan_kind kind;
    size_t first, count;
};

/* log: the fold of the head's log. log_limit_bytes: the policy's, within what the server can store.
 * run: the one to be written anew (COMPACT_HEAL), or the damaged one (COMPACT_CLEAR: nothing is
 * cleared when the head does not name it, or not any more); NULL for other goals and for a list
 * that is cleared unconditionally. now_s: wall clock. over_s: items that were over in that second
 * are to go, the same one for a whole compaction. collect_failed: a PLAN_COLLECT_FIRST of this
 * compaction has failed, so there is none any more. */
struct plan plan_choose(const struct head *head, const struct fold *log,
                        const struct list_policy *policy, size_t log_limit_bytes,
                        enum compact_goal goal, const struct name *run, int64_t now_s,
                        int64_t over_s, bool collect_failed);

/* Memory that the fold of so many bytes of a log takes, as expected. */
uint64_t plan_fold_bytes(uint64_t bytes);

/* Merges the run at first and all newer ones, or as many of these as the memory allows. */
struct plan plan_merge_from(const struct head *head, const struct list_policy *policy,
                            size_t first);

/* Which neighbouring runs to merge so that runs grow geometrically: an item is rewritten O(log n)
 * times in its life. False when none. */
bool plan_merge_window(const struct run *runs, size_t count, size_t *first, size_t *merge_count);

#endif
