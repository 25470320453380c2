/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the files of the dialect of sublists.
 */
#ifndef DIALECT_CHUNKED_CHUNKED_H
#define DIALECT_CHUNKED_CHUNKED_H

#include "dialect/shared/dialect.h"

extern const struct dialect dialect_chunked;

/* What a worker remembers of the list: the numbers of its first sublist and its last. */
struct chunked_list {
    bool newest_known;
    uint32_t oldest, newest;
};
static inline struct chunked_list *chunked_list(const struct list *list)
{
    return list_own(list);
}

/* Of an operation. */
struct chunked_work {
    uint32_t newest; /* the number that was appended to */
    uint64_t newest_bytes;
    uint64_t room_from; /* the first number of a sublist in which there should be room; 0: any */
    uint64_t missed;    /* the one that was not there, from 1; 0: none */
    unsigned checks;
    bool in_order;    /* the parts were asked for once, oldest first */
    bool checked_all; /* at last all of them, and not the index alone */
    bool adds;        /* the calls do: where no list is, they make one */
    bool drops;       /* it is an ldrop */
    bool index_there, rolled, wrote_last;
    uint64_t next;         /* the number of the one that is added */
    bool added, orphan;    /* it was; or nobody has named it, and it holds something */
    struct part not_named; /* that was added and is to be removed again */
    struct part index;     /* as it was read to name the next sublist */
    size_t owner_digits;   /* owner.c: of the number in the key that is tried */
    uint64_t owner_number;
};
static inline struct chunked_work *chunked_own(const struct work *w)
{
    return w->own;
}

/* Sublists have numbers up to this one: time stamps in seconds are. Of more digits than ten no name
 * was reserved by the configuration. */
#define CHUNK_NUMBER_MAX 4294967295u
/* Reads the number as an index has it. False: it is none, or too large, or has another name than
 * the one that is written for it ("007"). */
bool chunked_number(struct slice text, uint32_t *number);

/* Appends an entry to an index. */
void chunked_append_number(struct block **b, enum entry_op op, uint32_t number, struct signs signs);

/* The largest number that the index lists. False: none. */
bool chunked_newest(const struct list *list, struct slice index, uint32_t *newest);

/* After a look: parts[0] is the index, the others are the sublists that it lists, oldest first. */
work_step chunked_change, chunked_set, chunked_compact;

/* owner.c. The item under the list's key may be a sublist of another list: by its name; and, inner:
 * does the index of such a list name it? Ends with failed then, or when it cannot be told. */
bool owner_is_possible(const struct list *list);
work_step owner_check;

#endif
