/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All cases of all tables. A table is a kind of worlds: lists of the native layout, lists of
 * dialects, changes of several lists. A case is a scene, what proxies are asked for, and in which
 * order they take their steps and come to grief; it is numbers, from which all of it follows. A
 * group of cases runs in a process of its own, so one that dies ends no other.
 */
#ifndef SWEEP_SWEEP_H
#define SWEEP_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof(array)[0]))

#define CASE_NUMBERS 9
#define ROWS_MAX 20
#define EVENTS_MAX 16
#define WRONG_MAX 1024

/* What they mean is the table's business. */
struct case_id {
    unsigned n[CASE_NUMBERS];
};

enum result {
    DONE,
    SAME,     /* not checked: another one must end as this one would */
    SAME_ROW, /* nor are those that differ only in what comes behind: other operations, faults */
    NONE,     /* there is no such case: a proxy comes to rest before */
};

/* What a table's cases have come to; lives in memory that processes share. */
struct tally {
    uint64_t passed[ROWS_MAX], failed[ROWS_MAX];
    uint64_t events[EVENTS_MAX];
    uint64_t shown, hidden; /* of those that failed */
    struct case_id current; /* the one under way */
    unsigned row;           /* its row */
};

struct sweep;

struct row {
    const char *name, *text;
};

struct table {
    const char *name;
    const struct row *rows; /* in which its cases are counted */
    unsigned row_count;
    const char *(*event_name)(unsigned event); /* what its cases are to make happen */
    unsigned event_count;
    unsigned (*group_count)(void);
    void (*run_group)(struct sweep *s, unsigned group);
    /* NULL, or what comes before the first case of a group, and after its last one. */
    void (*begin)(const struct case_id *c);
    void (*end)(void);
    /* Plays a case. Writes what is wrong, or "". */
    enum result (*play)(const struct case_id *c, bool trace, char wrong[WRONG_MAX]);
    /* Adds the events of the case that was played last; NULL: there are none. */
    void (*count_events)(uint64_t events[EVENTS_MAX]);
    /* False when there is no such case. */
    bool (*describe)(const struct case_id *c, char *out, size_t cap);
    void (*print_bounds)(void); /* says what is left out */
};

extern const struct table native_table, dialects_table, transactions_table;

/* Plays the case and counts it in that row. One that fails ends its row of steps: NONE, since it
 * has come to no rest, so that none tells where the row ends. */
enum result sweep_try(struct sweep *s, const struct case_id *c, unsigned row);
/* Did the case that was tried last fail? */
bool sweep_has_failed(const struct sweep *s);

#endif
