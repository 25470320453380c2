/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lists of dialect "sublists": what its files share. An index names the sublists.
 */
#ifndef DIALECT_SUBLISTS_SUBLISTS_H
#define DIALECT_SUBLISTS_SUBLISTS_H

#include "base/number.h"
#include "dialect/shared/dialect.h"

extern const struct dialect dialect_sublists, dialect_sublists_delimited;

/* Have the list's texts delimiters in place of signs? */
static inline bool sublists_is_delimited(const struct list *list)
{
    return list_policy_delimits_sublists(list->policy);
}
/* texts.c. An index or a sublist, whichever of the two it is: takes the next item, applies all of
 * them, or appends one. There are no deletions between delimiters. */
bool sublists_next(const struct list *list, struct slice *rest, enum entry_op *op,
                   struct slice *item);
void sublists_fold(const struct list *list, struct fold *fold, struct slice text);
void sublists_append(const struct list *list, struct block **b, enum entry_op op,
                     struct slice item);

/* What a worker remembers of the list: the numbers of its first sublist and its last. */
struct sublists_list {
    bool newest_known;
    uint32_t oldest, newest;
};
static inline struct sublists_list *sublists_list(const struct list *list)
{
    return list_own(list);
}

/* The state of an operation. */
struct sublists_work {
    uint32_t newest; /* the sublist that was appended to */
    uint64_t newest_bytes;
    uint64_t room_from; /* the first sublist in which there should be room; 0: any */
    uint64_t missed;    /* the sublist that was missing, from 1; 0: none */
    unsigned checks;
    bool in_order;    /* the cells were asked for once, oldest first */
    bool had_older;   /* among them was a sublist older than all that the index lists */
    bool checked_all; /* at last all of them, and not the index alone */
    bool adds;        /* the calls add items: they make a list where there is none */
    bool drops;       /* it is an ldrop */
    bool index_there, rolled, wrote_last;
    bool strikes;          /* a round of a folding has found sublists gone: see fold_round */
    size_t forgets;        /* the last cell that loses a deletion for good in it; 0: none */
    uint64_t next;         /* the number of the sublist that is added */
    bool added, orphan;    /* this operation added it; no index names it, and it holds something */
    struct cell not_named; /* the sublist that was added and is to be removed again */
    struct cell index;     /* the index as it was read to name the next sublist */
    size_t owner_digits;   /* owner_check: how many digits are taken for the number, */
    uint64_t owner_number; /* and that number */
};
static inline struct sublists_work *sublists_own(const struct work *w)
{
    return w->own;
}

/* The largest number of a sublist; time stamps in seconds fit. The configuration reserves names of
 * up to ten digits. */
#define SUBLIST_NUMBER_MAX 4294967295u

/* Reads a number as an index has it. False: it is no number, too large, or not in the form that the
 * proxy writes ("007"). */
bool sublists_number(struct slice text, uint32_t *number);
/* Appends an entry to an index. */
void sublists_append_number(const struct list *list, struct block **b, enum entry_op op,
                            uint32_t number);

/* Finds the largest number that the index lists. False: it lists none. */
bool sublists_newest(const struct list *list, struct slice index, uint32_t *newest);

/* No two sublists become one that is longer: half of what sublist_limit_bytes was by default in
 * 0.2.0. It is no setting, so that each proxy knows what all others may merge. */
#define SUBLISTS_MERGED_BYTES_MAX (64 * 1024)

/* Would two sublists that long, neighbours and neither of them the newest, do as one? Not without
 * signs: delete.c. */
static inline bool sublists_may_merge(const struct list *list, uint64_t one, uint64_t other)
{
    uint64_t most = u64_least(list_sublist_limit(list) / 2, SUBLISTS_MERGED_BYTES_MAX);
    return !sublists_is_delimited(list) && one > 0 && other > 0 && one + other <= most;
}

/* May another proxy be about to put one in front of a sublist that long? */
static inline bool sublists_may_be_merged(const struct list *list, uint64_t bytes)
{
    return !sublists_is_delimited(list) && bytes > 0 && bytes < SUBLISTS_MERGED_BYTES_MAX;
}

/* After a look cells[0] is the index; the others are the sublists that it lists, oldest first. */
work_step sublists_change, sublists_delete, sublists_set, sublists_compact;

#endif
