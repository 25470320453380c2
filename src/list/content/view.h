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
 *     view_advance(view, now)    items that are over by now are void
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
    bool settled;            /* the log's places are found, what it makes void is, and */
    uint64_t rest;           /* items that the log adds behind the runs */
    uint64_t cas, epoch;     /* of the head that it shows; epoch 0: of none */
    int64_t now_s;           /* the second that it shows */
    int64_t over_s;          /* the latest second in which one of its items was over; 0: none was */
    int64_t settled_until_s; /* what is settled holds before that second */
};

void view_init(struct view *view);
void view_fini(struct view *view);
/* Memory it holds, with the sublists, in bytes. */
size_t view_memory_bytes(const struct view *view);

/* From here on it shows the list as of that second (struct head, read_s). When the clock was set
 * back, to before the end of an item that is over for the view, it forgets everything. So this
 * comes before it is asked which runs it has. */
void view_advance(struct view *view, int64_t now_s);
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

/* How an item stands in the list. */
struct view_item {
    bool in;
    bool timed; /* with a time: it is in until until_s, or was until then and has not been
                   deleted since */
    uint32_t until_s;
};
struct view_item view_find(const struct view *view, struct slice item);
/* Is the item in the list? */
bool view_has(const struct view *view, struct slice item);
/* The same; *place tells where: it grows with the order of the items. */
bool view_place(struct view *view, struct slice item, uint64_t *place);
/* The same, with its position among them, 0 the first of the list. Takes time in proportion to the
 * sublists, and to the log. */
bool view_position(struct view *view, struct slice item, uint64_t *position);
/* Number of items. */
uint64_t view_count(struct view *view);
/* Passes on all items, in order, up to where the output has enough. */
void view_write(struct view *view, struct output *output);

/* The same from the last item to the first. */
void view_write_back(struct view *view, struct output *output);

/* Passes on the live items of one sublist. */
void view_part_write(const struct view_part *part, struct output *output);
void view_part_write_back(const struct view_part *part, struct output *output);
/* The items that stand behind the runs; settled. back: the last one first. */
void view_write_rest(const struct view *view, bool back, struct output *output);

/* Would an entry ('+', '-', '=' or '@') of a newer run change anything in these runs, the log
 * aside? Whether an item is over does not count: for another proxy it is not, yet. */
bool view_changes(struct view *view, char op, struct slice item);

/* ---- for an outline (outline.h), whose runs have no sublists ---- */

/* A run behind those that it has; the log has to be taken again. */
void view_begin_counts(struct view *view, const struct name *name);
void view_set_dead(struct view *view, struct view_place place);
/* The place of the log's next item that has none yet, not found so far; NULL: all have one. */
struct log_place *view_next_place(struct view *view);
/* The log's places are found: what they make void is, and what it adds is counted. */
void view_settle(struct view *view);
/* Settled: items of the list that stand in the runs; where one of them stands in the list, from 0
 * on; the same of an item that the log names, false when it is not in the list. */
uint64_t view_run_items(const struct view *view);
uint64_t view_place_position(const struct view *view, struct view_place place);
bool view_log_position(const struct view *view, struct slice item, uint64_t *position);

#endif
