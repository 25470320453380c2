/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of a list that moves to the native layout, which stands under the list's key, as pure
 * functions: "\1mclistd moved 1 HEAD_BYTES VERSION\n", the head, what stood there before. VERSION
 * is a mixture of the items' CAS numbers when they were read; 0: there are no others. migrate/ has
 * the order of writes around it.
 */
#ifndef DIALECT_SHARED_RECORD_H
#define DIALECT_SHARED_RECORD_H

#include "base/block.h"
#include "base/slice.h"

struct record {
    struct slice head;
    struct slice before;
    uint64_t version;
};
/* Reads a record. False: it is something else. */
bool record_parse(struct slice value, struct record *record);
/* Appends one. */
void record_append(struct block **b, struct slice head, struct slice before, uint64_t version);

#endif
