/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An outline: what a view (view.h) knows of a list, without its sublists: how many items of each
 * sublist are in the list, which of them are void, and what the log adds. For lists that are too
 * large for a view. Where items stand it learns from its runs' locators:
 *
 *     entry of a newer run, or of the log
 *        -> locators of older runs -> no sublist: it is new
 *                                  -> a sublist:  a question, which that sublist answers
 *
 * Questions wait until outline_asks leads to the sublists that are to be fetched for them, and
 * outline_answer has been given each of these. Like a view, it is brought up to a newer head by
 * what is new in it:
 *
 *     outline_keep(outline, head)          drops the runs that are not the head's any more
 *     outline_begin_run, then for each sublist outline_add_sublist, or outline_add_counts
 *     outline_take_log(outline, head)      from here on it shows that head
 *     outline_ask_log, outline_settle      where the log's items stand
 */
#ifndef LIST_CONTENT_OUTLINE_H
#define LIST_CONTENT_OUTLINE_H

#include "list/content/locator.h"
#include "list/content/view.h"

struct outline_part {
    uint32_t count; /* entries */
    uint32_t live;  /* of these, the ones that are not void */
    uint64_t *dead; /* a bit per entry, NULL while none is void */
    uint32_t asked; /* its last question, plus 1; 0: none */
    bool wanted;    /* the reader's mark */
};

struct outline_run {
    struct name name;
    struct outline_part *parts;
    uint32_t part_count;
    size_t part_cap;
    uint64_t live;
    struct view_place *hides; /* places of older runs that are void because of this one */
    size_t hide_count, hide_cap;
    uint64_t dead_bytes;
};

/* Is this item in that sublist, and not void there? */
struct outline_question {
    struct slice item; /* in the questions' own memory */
    enum { ASKED_BY_RUN, ASKED_BY_LOG, ASKED_BY_READ } asker;
    char op;              /* ASKED_BY_RUN */
    uint32_t asker_part;  /* ASKED_BY_RUN: the newest run's */
    uint32_t asker_place; /* its place there, or in the log's fold; ASKED_BY_READ: the read's */
    uint32_t next;        /* of the same sublist, plus 1 */
};

struct outline_found {
    bool found;
    struct view_place place;
};

struct outline {
    struct outline_run *runs;
    uint32_t run_count;
    size_t run_cap;
    /* Of these runs, the caller's while it asks. */
    struct locator *const *locators;

    struct log_fold log;
    struct log_place *places; /* of the fold's items */
    uint32_t place_count, place_cap;
    bool settled;
    uint64_t rest; /* items that the log adds behind the runs */

    struct outline_question *questions;
    size_t question_count, question_cap;
    uint32_t asked_parts; /* sublists that are asked */
    struct arena texts;
    struct outline_found *answers; /* to reads: the caller's */
};

void outline_init(struct outline *outline);
void outline_fini(struct outline *outline);
/* Forgets everything. */
void outline_clear(struct outline *outline);
/* Memory it holds from one read to the next, in bytes. */
size_t outline_memory_bytes(const struct outline *outline);

bool outline_has_runs(const struct outline *outline, const struct head *head);
/* Keeps the runs that are the head's first ones, drops what is behind them, and returns how many
 * are kept. */
uint32_t outline_keep(struct outline *outline, const struct head *head);

/* A run behind those that it has. */
void outline_begin_run(struct outline *outline, const struct name *name);
/* Its next sublist. The locators of all older runs are set. */
void outline_add_sublist(struct outline *outline, struct sublist *sublist);
/* All of its sublists at once: it is the oldest run, and all its entries are '+'. */
void outline_add_counts(struct outline *outline, const struct locator *locator);

/* The runs of the head are in: shows that head from here on. */
void outline_take_log(struct outline *outline, const struct head *head);
/* Asks where the items of the log stand, as far as that is not known. Answered, settle. */
void outline_ask_log(struct outline *outline);
void outline_settle(struct outline *outline);

/* Is the item in the list? True when the answer is known at once, in *has; otherwise it is asked:
 * when all is answered, answers[place], zeroed before, says so. */
bool outline_ask_item(struct outline *outline, struct slice item, uint32_t place, bool *has);

/* Are there questions that are not answered? The memory that all of them take, in bytes. */
static inline bool outline_has_questions(const struct outline *outline)
{
    return outline->asked_parts > 0;
}
size_t outline_question_bytes(const struct outline *outline);
static inline bool outline_asks(const struct outline *outline, size_t run, uint32_t part)
{
    return part < outline->runs[run].part_count && outline->runs[run].parts[part].asked != 0;
}
/* Answers what is asked of that sublist. */
void outline_answer(struct outline *outline, size_t run, uint32_t part, struct sublist *sublist);
/* No question is left, answered or not. */
void outline_forget_questions(struct outline *outline);

/* ---- reading; settled ---- */

uint64_t outline_count(const struct outline *outline);
/* Items of the list that stand in the runs. */
uint64_t outline_run_items(const struct outline *outline);
/* Where it stands in the list, from 0 on, of an item in the runs; and of one that the log mentions:
 * false when it is not in the list. */
uint64_t outline_position(const struct outline *outline, struct view_place place);
bool outline_log_position(const struct outline *outline, struct slice item, uint64_t *position);
/* Passes on the live items of that sublist, up to where the output has enough; backwards: the last
 * one first. */
void outline_write_part(const struct outline *outline, size_t run, uint32_t part,
                        struct sublist *sublist, bool backwards, struct output *output);
/* The same of what stands behind the runs. */
void outline_write_rest(const struct outline *outline, bool backwards, struct output *output);

#endif
