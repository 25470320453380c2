/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A view: the decoded content of a list whose sublists are all at hand, kept from one read to the
 * next. It knows which items of its sublists are void, because a newer run or the log says so, and
 * what the log adds behind them:
 *
 *     run 1    apple  pear  plum  cherry  ...       ~ void
 *              ~                  ~
 *     run 2    cherry  fig
 *     log      grape                                the rest
 *
 * So a membership is a few lookups, a count is at hand, and the content is long stretches of the
 * sublists' text. Sublists never change and names never return, so a view is brought up to a newer
 * head by what is new in it: runs at the end, entries of the log.
 *
 *     view_keeps(view, head)     nothing, or only runs behind those that are there, has to be added
 *     view_add_sublist ...       the sublists of the runs that are missing
 *     view_take_log(view, head)  from here on the view shows that head
 */
#ifndef LIST_VIEW_H
#define LIST_VIEW_H

#include "list/fold.h"
#include "list/head.h"
#include "list/output.h"

struct view_part {
    struct sublist *sublist;
    uint32_t run;   /* which of the view's runs */
    uint32_t live;  /* items that are not void */
    uint64_t *dead; /* a bit per item, NULL while none is */
};

/* Where an item of the log stands in the runs. */
struct view_place {
    uint32_t part, position;
    bool found, hidden; /* hidden: the log says that this place is void */
};

struct view {
    struct name *runs; /* those whose sublists are in */
    size_t run_count, run_cap;
    struct view_part *parts;
    uint32_t part_count, part_cap;
    uint64_t live;         /* of all parts */
    uint64_t pinned_bytes; /* memory of the sublists */

    struct fold fold; /* of the log */
    struct block *log_block;
    struct slice log;          /* as far as it is folded; lives in log_block */
    struct view_place *places; /* of the fold's items */
    uint32_t place_count, place_cap;
    uint64_t rest;       /* items that the log adds behind the runs */
    uint64_t cas, epoch; /* of the head that it shows; epoch 0: of none */
};

void view_init(struct view *view);
void view_fini(struct view *view);
/* Memory it holds, with the sublists, in bytes. */
size_t view_memory_bytes(const struct view *view);

/* How many of the head's runs are in the view, when those are the first of the head's; -1 when the
 * view has others: it has to begin anew. */
int view_keeps(const struct view *view, const struct head *head);
/* Forgets everything. */
void view_clear(struct view *view);
/* The next sublist of the run that stands at that place of the head; it is the view's last run, or
 * the one behind it. Takes a reference. About a microsecond for ten entries. The log has to be
 * taken again after it. */
void view_add_sublist(struct view *view, const struct run *run, size_t at, struct sublist *sublist);
/* The runs of the head are in: shows that head from here on. */
void view_take_log(struct view *view, const struct head *head);

/* Is the item in the list? */
bool view_has(const struct view *view, struct slice item);
/* Number of items. */
uint64_t view_count(const struct view *view);
/* Passes on all items, in order, up to where the output has enough. */
void view_write(const struct view *view, struct output *output);

#endif
