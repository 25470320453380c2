/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a history is kept in memory: names are numbers, operations are grouped by list.
 */
#ifndef HISTORY_RECORDS_H
#define HISTORY_RECORDS_H

#include "base/arena.h"
#include "history.h"

/* One operation. Its numbers of items are indices of names. */
struct record {
    uint64_t number;
    uint32_t process;
    enum history_verb verb;
    enum history_outcome outcome;
    uint32_t list;
    uint32_t item_count, answer_count;
    const uint32_t *items, *answer;
    int64_t from, to, invoked, completed;
    uint64_t count, hint;
};

/* Texts and their numbers, counted from 0. */
struct names {
    struct slice *texts;
    uint32_t count, cap;
    uint32_t *table; /* number + 1, 0 is free */
    uint32_t table_size;
};

struct list_records {
    uint32_t *records;
    uint32_t count, cap;
};

struct history {
    bool refuse;
    uint64_t configurations_max;
    struct arena arena;
    struct record *records;
    uint32_t count, cap;
    struct names keys, items;
    struct list_records *lists; /* as keys.count */
    uint32_t list_cap;
};

/* Memory for count things of that size, zeroed; grows an array to hold one more than count. Both
 * end the process when there is none. */
void *history_alloc(size_t count, size_t size);
void *history_grow(void *array, uint32_t count, uint32_t *cap, size_t size);

/* The record as an operation; its slices live in buffers that grow as needed and that the caller
 * frees in the end. */
struct op_buffers {
    struct slice *items, *answer;
    uint32_t item_cap, answer_cap;
};
struct history_op record_op(const struct history *h, const struct record *r, struct op_buffers *b);
void op_buffers_fini(struct op_buffers *b);

#endif
