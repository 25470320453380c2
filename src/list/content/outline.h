/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An outline: a view (view.h) of a list that is too large for one: its runs have no sublists at
 * hand, but know how many items of each are in the list, and which of them are void. Where items
 * stand it learns from its runs' locators:
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
 *     view_begin_counts, then for each sublist outline_add_sublist, or outline_add_counts
 *     view_take_log(&outline->view, head)  from here on it shows that head
 *     outline_ask_log, outline_settle      where the log's items stand
 */
#ifndef LIST_CONTENT_OUTLINE_H
#define LIST_CONTENT_OUTLINE_H

#include "list/content/locator.h"
#include "list/content/view.h"

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
    struct view view; /* no item of it has a time */
    /* Of its runs, the caller's while it asks. */
    struct locator *const *locators;

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
/* Keeps the runs that are the head's first ones, drops what is behind them, and returns how many
 * are kept. */
size_t outline_keep(struct outline *outline, const struct head *head);

/* The next sublist of the run that view_begin_counts has begun. The locators of all older runs are
 * set. */
void outline_add_sublist(struct outline *outline, struct sublist *sublist);
/* All of its sublists at once: it is the oldest run, and all its entries are '+'. */
void outline_add_counts(struct outline *outline, const struct locator *locator);

/* Behind view_take_log: asks where the items of the log stand, as far as that is not known.
 * Answered, settle. */
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
    const struct view_run *of = &outline->view.runs[run];
    return part < of->part_count && of->parts[part].asked != 0;
}
/* Answers what is asked of that sublist. */
void outline_answer(struct outline *outline, size_t run, uint32_t part, struct sublist *sublist);
/* No question is left, answered or not. */
void outline_forget_questions(struct outline *outline);

/* ---- reading; settled ---- */

/* Passes on the live items of that sublist, up to where the output has enough; backwards: the last
 * one first. False: it is not the sublist that was added. */
bool outline_write_part(const struct outline *outline, size_t run, uint32_t part,
                        struct sublist *sublist, bool backwards, struct output *output);

#endif
