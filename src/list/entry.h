/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries: what logs and sublists are made of.
 *
 *     op  length  :  bytes
 *     +   9       :  user-1234
 *
 * Safe for any bytes, readable by telnet. An op that is not known here stops every reader and every
 * compactor: they never guess.
 */
#ifndef LIST_ENTRY_H
#define LIST_ENTRY_H

#include <stdbool.h>

#include "base/block.h"
#include "base/check.h"
#include "base/slice.h"

enum entry_op {
    ENTRY_ADD = '+',   /* the item is in the list; if it was there already, it stays in its place */
    ENTRY_DEL = '-',   /* the item is not in the list */
    ENTRY_READD = '=', /* '-' and then '+': it was absent in between, its place is here (what a fold
                          writes over older runs) */
    ENTRY_CLEAR = '!', /* the list is empty as of here; no bytes */
    ENTRY_ANNOUNCE = '~', /* a run is about to be written: NAME.COUNT.CREATED; with COUNT 0 it is
                             withdrawn (logs only) */
};

struct entry {
    char op;
    struct slice bytes;
};

enum entry_status { ENTRY_OK, ENTRY_END, ENTRY_MALFORMED };

/* Takes the next entry from *rest. ENTRY_END: nothing is left. ENTRY_MALFORMED: cut short, or an op
 * not known here. The entry's bytes point into *rest. */
enum entry_status entry_next(struct slice *rest, struct entry *out);

/* Of an item, for tables. */
static inline uint32_t item_hash(struct slice item)
{
    return (uint32_t)hash_bytes(item.p, item.len, 0);
}

/* Bytes that an item of len bytes takes as an entry. */
size_t entry_bytes(size_t len);

/* Appends an entry to the block (see block_append). */
void entry_append(struct block **b, enum entry_op op, struct slice bytes);

#endif
