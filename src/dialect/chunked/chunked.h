/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the two files of the dialect of sublists.
 */
#ifndef DIALECT_CHUNKED_CHUNKED_H
#define DIALECT_CHUNKED_CHUNKED_H

#include "dialect/shared/dialect.h"

/* Sublists have numbers up to this one: time stamps in seconds are. Of more digits than ten no name
 * was reserved by the configuration. */
#define SUBLIST_NUMBER_MAX 4294967295u
/* Reads the number as an index has it. False: it is none, or too large, or has another name than
 * the one that is written for it ("007"). */
bool sublists_number(struct slice text, uint32_t *number);

/* Appends an entry to an index. */
void sublists_append_number(struct block **b, enum entry_op op, uint32_t number,
                            struct signs signs);

/* After a look: parts[0] is the index, the others are the sublists that it lists, oldest first. */
work_step sublists_set, sublists_compact;

#endif
