/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layout: a head about to be written, made from one that was read.
 */
#ifndef LIST_FORMAT_LAYOUT_H
#define LIST_FORMAT_LAYOUT_H

#include "list/format/fold.h"
#include "list/format/head.h"

struct layout {
    struct run *runs;
    size_t run_count, run_cap;
    struct name_range *garbage;
    size_t garbage_count, garbage_cap;
    struct head_marks marks;
    struct block *residue; /* stands in front of the log, or NULL */
    struct block *log;
    struct block *tail; /* stands behind the log, or NULL: what stood behind the cut */
};

/* Begins with the runs, garbage, marks, residue and tail of the head and an empty log. No intent of
 * the head is open, or it was cut in front of them by head_cut. */
void layout_init(struct layout *layout, const struct head *head);
void layout_fini(struct layout *layout);

/* The list is there from now on, if the head said that it was missing. Its expiry was that of the
 * lease: see emit_cas_new. */
void layout_fill(struct layout *layout);
/* The list is missing from now on, and there is no lease. There must be no run. */
void layout_make_absent(struct layout *layout);

void layout_insert_run(struct layout *layout, size_t at, const struct run *run);
/* The same of a run that was not in the head before: when its items are over. */
void layout_publish_run(struct layout *layout, size_t at, const struct run *run,
                        const struct run_times *times);
/* Moves count runs from position at on to the garbage: nothing refers to them any more. */
void layout_drop_runs(struct layout *layout, size_t at, size_t count);
/* Takes that garbage off; false when there is none. */
bool layout_remove_garbage(struct layout *layout, const struct name_range *garbage);

/* Which announcements of a log to carry over, and whether its ops come along. */
struct carry {
    const struct name *own; /* taken off (may be NULL) */
    int64_t now_s;
    int64_t grace_s; /* older ones belong to dead proxies: taken off, their names become garbage;
                        may be GRACE_NONE */
    bool keep_ops;
};

/* Appends the log's entries to the new log by those rules; own is taken off the tail as well. A
 * proxy that removes the announcement of another one sees to its names (storage rule 6): they
 * become garbage in the same step. Returns how many were swept. */
size_t layout_carry(struct layout *layout, struct slice log, const struct carry *carry);
/* Appends the log's entries as they are, but for announcements of own. */
void layout_append_log(struct layout *layout, struct slice log, const struct name *own);
/* Appends what the fold amounts to, without what is over in the second over_s; oldest: nothing lies
 * below it, nor ever will. */
void layout_append_fold(struct layout *layout, const struct fold *fold, bool oldest,
                        int64_t over_s);
/* Lays out the head that was given to layout_init with its log folded in place (log: the fold of
 * it): announcements as layout_carry takes them, then what the ops amount to, without what was over
 * CLOCK_SKEW_S before carry.now_s. A '!' among them drops the runs, and fills a list that was
 * missing. Returns how many announcements were swept. */
size_t layout_fold_log(struct layout *layout, const struct head *head, const struct fold *log,
                       const struct carry *carry);

/* The head's value, in a fresh block that the caller owns. */
struct block *layout_value(const struct layout *layout);

/* The value of that head of the list of that key, as it is stored, with these decisions behind it,
 * written anew: what is aborted has gone, and what else is decided in front of the first open
 * intent stands there as it counts; nothing says any more how that was decided, but for what a
 * primary keeps. Where they abort an intent, or decide the first open one, the value is shorter
 * than the head's: an item that is full takes it. A block that the caller owns. */
struct block *layout_decided(const struct head *head, struct slice key, struct slice decisions);

#endif
