/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last minutes, second by second: what the status page draws, and by which it finds what goes
 * wrong now.
 */
#ifndef ADMIN_HISTORY_H
#define ADMIN_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct shared;

#define HISTORY_SECONDS 300

enum history_row {
    HISTORY_READS,        /* of plain keys */
    HISTORY_WRITES,       /* the same */
    HISTORY_LIST_READS,   /* per list */
    HISTORY_LIST_CHANGES, /* of any kind */
    HISTORY_ERRORS,       /* answered SERVER_ERROR */
    HISTORY_TIMEOUTS,     /* of servers */
    HISTORY_CONFLICTS,    /* CAS refused */
    HISTORY_FLIPS,        /* and merges */
    HISTORY_CONNECTIONS,  /* of clients, a level */
    HISTORY_MEMORY,       /* bytes held for clients, a level */
    HISTORY_CPU_US,       /* of the process */
    HISTORY_ROWS
};

struct history {
    size_t count; /* samples taken so far */
    uint64_t at[HISTORY_SECONDS + 1][HISTORY_ROWS];
};

/* Takes a sample; to be called once a second. */
void history_sample(struct history *history, struct shared *shared);
/* How many seconds there are, HISTORY_SECONDS at most. */
size_t history_seconds(const struct history *history);
/* What the row counted in the second `ago`, 0: the last one; of a level what it was at its end.
 * Less than history_seconds. */
uint64_t history_of(const struct history *history, enum history_row row, size_t ago);

#endif
