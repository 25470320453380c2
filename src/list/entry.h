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

/* Digits of the longest length that is accepted: no item comes near 10 MB. */
#define ENTRY_DIGITS_MAX 7

static inline bool entry_op_known(char op)
{
    return op == ENTRY_ADD || op == ENTRY_DEL || op == ENTRY_READD || op == ENTRY_CLEAR ||
           op == ENTRY_ANNOUNCE;
}

/* Takes the next entry from *rest. ENTRY_END: nothing is left. ENTRY_MALFORMED: cut short, or an op
 * not known here. The entry's bytes point into *rest. */
static inline enum entry_status entry_next(struct slice *rest, struct entry *out)
{
    if (rest->len == 0) {
        return ENTRY_END;
    }
    const char *p = rest->p;
    const char *end = p + rest->len;
    if (!entry_op_known(*p)) {
        return ENTRY_MALFORMED;
    }
    const char *digits = ++p;
    size_t n = 0;
    for (unsigned digit; p < end && (digit = (unsigned char)*p - (unsigned)'0') <= 9; p++) {
        n = n * 10 + digit;
        if (p - digits == ENTRY_DIGITS_MAX) {
            return ENTRY_MALFORMED;
        }
    }
    if (p == digits || p == end || *p != ':' || (size_t)(end - p) <= n) {
        return ENTRY_MALFORMED;
    }
    out->op = rest->p[0];
    out->bytes = slice_make(p + 1, n);
    rest->p = p + 1 + n;
    rest->len = (size_t)(end - rest->p);
    return ENTRY_OK;
}

/* Of an item, for tables. */
static inline uint32_t item_hash(struct slice item)
{
    return (uint32_t)hash_bytes(item.p, item.len, 0);
}

/* Bytes that an item of len bytes takes as an entry. */
static inline size_t entry_bytes(size_t len)
{
    size_t bytes = 3 + len;
    for (size_t limit = 10; len >= limit; limit *= 10) {
        bytes++;
    }
    return bytes;
}

/* For guesses of how many entries some bytes are. */
#define ENTRY_BYTES_TYPICAL 24u

/* Appends an entry to the block (see block_append). */
void entry_append(struct block **b, enum entry_op op, struct slice bytes);

#endif
