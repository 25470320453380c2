/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deciding lists one after the other, and making a violation small enough to be read.
 */
#ifndef HISTORY_CHECK_H
#define HISTORY_CHECK_H

#include "problem.h"

struct checker {
    struct history *history;
    struct projector projector;
    FILE *report;
    uint64_t configurations; /* looked at so far */
};

/* A weaker problem without a solution: what is left of a violation. */
struct evidence {
    struct view view;
    uint32_t items[2];
    uint8_t *fates;
    bool any_beginning; /* view begins somewhere, with whatever content */
    uint32_t beginning; /* else the record of the full read whose answer it begins with, or
                           NO_RECORD for nothing */
    uint32_t stuck;     /* a record around which the whole search was stuck, or NO_RECORD */
    uint32_t lost; /* the first record at whose completion the whole has no solution any more, or
                      NO_RECORD when that took too long to find */
};

#define NO_RECORD UINT32_MAX

/* Builds the view's problem and searches. result may be NULL. */
enum search_verdict check_view(struct checker *c, const struct view *view, uint64_t limit,
                               struct search_result *result);
/* The same for evidence: SEARCH_NONE when there is no solution for any content that it may begin
 * with. */
enum search_verdict check_evidence(struct checker *c, const struct evidence *e, uint64_t limit);
/* The contents that any_beginning stands for, in the view: true for each n from 0 on that there
 * is. */
bool evidence_begin(const struct checker *c, struct evidence *e, unsigned n);

/* Begins with the answer of this full read; false when that cannot be any list's content. */
bool evidence_begin_read(const struct checker *c, struct evidence *e, uint32_t read);

/* Finds a part of the list that suffices to see that it is not linearizable; fills the view. False
 * when none was found. */
bool narrow(struct checker *c, struct evidence *e);
/* The record at whose completion a list that has no solution first has none. */
uint32_t find_lost(struct checker *c, uint32_t list);
/* Leaves out what is not needed. */
void shrink(struct checker *c, struct evidence *e);
void report_violation(struct checker *c, struct evidence *e);
/* stuck: a record beyond which no order was found, or NO_RECORD. */
void report_undecided(struct checker *c, uint32_t list, uint32_t stuck);

#endif
