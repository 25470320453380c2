/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operation that answers reads by the indexes of runs (from_index.h), for the files that make
 * it up: index_runs.c brings what the worker knows of the list up to a head, index_items.c reads
 * the items of an answer, from_index.c does the rest.
 */
#ifndef LIST_READ_INDEX_OP_H
#define LIST_READ_INDEX_OP_H

#include "list/content/outline.h"
#include "list/core/lists.h"
#include "list/core/run_index.h"
#include "list/core/scan.h"
#include "list/read/pick.h"

/* An item that a call asks for. */
struct look {
    struct list_call *call; /* NULL: its time is over */
    size_t item;
    bool has;
};

struct op_index {
    struct op op;
    struct call_queue calls; /* each with its head */
    struct head *head;       /* of those that are being answered */
    struct list_call *call;  /* the one that is, NULL when its time is over */
    struct scan scan;
    struct lists *lists;
    bool failed;

    struct locator **locators; /* of the head's runs, as far as they are at hand */
    size_t locator_count;
    size_t at;          /* the run that is being read */
    size_t keeps;       /* runs that the outline had before */
    uint32_t next_part; /* of that run */
    struct run_index_build *build;

    struct look *looks;
    struct outline_found *found; /* for each of them */
    size_t look_count;

    struct output output;
    struct pick pick;          /* lrandom, lafter, lbefore */
    struct outline_found page; /* lafter, lbefore: where the item stands */
    bool backwards;
    struct view_place next; /* the sublist behind those that were visited, and the position there */
    uint64_t next_position;
};

static inline struct outline *outline_of(const struct op_index *o)
{
    return o->op.list->outline;
}
static inline struct view *view_of(const struct op_index *o)
{
    return &o->op.list->outline->view;
}

/* The outline gets the runs of o->head, and the operation their locators. o->failed when that
 * cannot be done. */
enum progress index_runs_step(struct engine *e, struct op_index *o, const struct op_event *event);
/* Has all questions answered, or o->failed. */
enum progress index_questions_step(struct engine *e, struct op_index *o,
                                   const struct op_event *event);
/* The scan is over: o->failed unless it came to its end. */
void index_note_scan(struct op_index *o);
void index_drop_locators(struct op_index *o);
/* Answers o->call, one that gives items, from the outline, which is settled. */
enum progress index_items_step(struct engine *e, struct op_index *o, const struct op_event *event);

#endif
