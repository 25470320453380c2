/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All cases, one group after the other. A group is one scene with one operation of A.
 */
#ifndef CRASH_SWEEP_H
#define CRASH_SWEEP_H

#include "case.h"

/* What a sweep has come to; lives in memory that processes share. */
struct tally {
    uint64_t passed[FAMILIES], failed[FAMILIES];
    uint64_t shown, hidden; /* of those that failed */
    uint64_t current;       /* the number of the case under way */
    uint64_t metrics[METRIC_MAX];
};

struct group {
    unsigned policy, scene, a;
};

/* How many groups there are, and one of them. */
unsigned group_count(void);
struct group group_at(unsigned index);

/* Runs all cases of the group and prints a line for each that fails, as long as fewer than
 * shown_max were. A case that ended the process before (died; 0: none did) is passed over, and what
 * comes before it is not counted again. */
void group_run(struct group group, struct tally *tally, uint64_t died, uint64_t shown_max);
/* The same line for a case that ended its process. */
void report_failure(struct tally *tally, uint64_t number, const char *what, uint64_t shown_max);
/* Adds the counts of another one. */
void tally_add(struct tally *sum, const struct tally *other);
/* Says what is left out. */
void bounds_print(void);
/* Prints how often the engines did what. Returns how much of it no case did. */
unsigned metrics_print(const struct tally *tally);

#endif
