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
 * head by what is new in it: runs at the end (a merge replaces some of them), entries of the log.
 *
 *     view_keep(view, head)      drops the runs that are not the head's any more
 *     view_add_sublist ...       the sublists of the runs that are missing
 *     view_take_log(view, head)  from here on the view shows that head
 */
#ifndef LIST_CONTENT_VIEW_H
#define LIST_CONTENT_VIEW_H

#include "list/content/output.h"
#include "list/content/view_run.h"
#include "list/format/log_fold.h"

/* Where an item of the log stands in the runs. */
struct log_place {
    struct view_place place;
    bool found, hidden; /* hidden: the log says that this place is void */
};

struct view {
    struct view_run *runs; /* those whose sublists are in */
    uint32_t run_count;
    size_t run_cap;

    struct log_fold log;
    struct log_place *places; /* of the fold's items */
    uint32_t place_count, place_cap;
    bool settled;        /* the log's places are found, what it makes void is, and */
    uint64_t rest;       /* items that the log adds behind the runs */
    uint64_t cas, epoch; /* of the head that it shows; epoch 0: of none */
};

void view_init(struct view *view);
void view_fini(struct view *view);
/* Memory it holds, with the sublists, in bytes. */
size_t view_memory_bytes(const struct view *view);

/* Does the view have the head's runs, and no others? */
bool view_has_runs(const struct view *view, const struct head *head);
/* Keeps the runs that are the head's first ones, and drops what is behind them. Returns how many
 * are kept. */
size_t view_keep(struct view *view, const struct head *head);
/* Forgets everything. */
void view_clear(struct view *view);
/* The next sublist of the run that stands at that place of the head; it is the view's last run, or
 * the one behind it. Takes a reference. About a microsecond for ten entries. The log has to be
 * taken again after it. */
void view_add_sublist(struct view *view, const struct run *run, size_t at, struct sublist *sublist);
/* The runs of the head are in: shows that head from here on. */
void view_take_log(struct view *view, const struct head *head);

/* Lookups of these items follow: has the memory fetched that they will touch, for all of them at
 * once. In a long list each lookup waits for it several times otherwise. */
void view_expect(const struct view *view, const struct slice *items, size_t count);

/* Is the item in the list? */
bool view_has(const struct view *view, struct slice item);
/* Number of items. */
uint64_t view_count(struct view *view);
/* Passes on all items, in order, up to where the output has enough. */
void view_write(struct view *view, struct output *output);

/* The same from the last item to the first. */
void view_write_back(struct view *view, struct output *output);

/* Would an entry ('+', '-' or '=') of a newer run change anything in these runs, the log aside? */
bool view_changes(struct view *view, char op, struct slice item);

#endif
