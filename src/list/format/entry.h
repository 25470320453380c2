/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries: what logs and sublists are made of.
 *
 *     op  length  :  bytes
 *     +   9       :  user-1234
 *     @   20      :  1795229331:user-1234     in the list until that second
 *
 * Safe for any bytes, readable by telnet. An op that is not known here stops every reader and every
 * compactor: they never guess.
 */
#ifndef LIST_FORMAT_ENTRY_H
#define LIST_FORMAT_ENTRY_H

#include <stdbool.h>

#include "base/block.h"
#include "base/check.h"
#include "base/slice.h"

enum entry_op {
    ENTRY_ADD = '+',   /* the item is in the list; if it was there already, it stays in its place */
    ENTRY_DEL = '-',   /* the item is not in the list */
    ENTRY_READD = '=', /* '-' and then '+': it was absent in between, its place is here (what a fold
                          writes over older runs) */
    ENTRY_TIMED = '@', /* SECOND:item: as '=', but only until that second */
    ENTRY_CLEAR = '!', /* the list is empty as of here; no bytes */
    ENTRY_ANNOUNCE = '~',  /* a run is about to be written: NAME.COUNT.CREATED; with COUNT 0 it is
                              withdrawn (logs only) */
    ENTRY_INTENT = '?',    /* a change of several lists, as far as it is about this one: intent.h
                              (logs only) */
    ENTRY_DECISION = '&',  /* what becomes of such a change (logs only) */
    ENTRY_CONDITION = '.', /* an item that a condition of such a change is about (intents only) */
};

struct entry {
    char op;
    uint32_t until_s;   /* ENTRY_TIMED: the item is over in that second since 1970; else 0 */
    struct slice bytes; /* ENTRY_TIMED: the item alone */
};

/* The seconds that an entry can name. */
#define ENTRY_UNTIL_MIN_S 1u
#define ENTRY_UNTIL_MAX_S UINT32_MAX
/* What the clocks of two proxies may differ by (docs/guarantees.md). An item that is over is taken
 * out of what is stored only after that: for all proxies it is over then. */
#define CLOCK_SKEW_S 60
/* For now_s: no item is over yet. */
#define ENTRY_NEVER_OVER INT64_C(0)

enum entry_status { ENTRY_OK, ENTRY_END, ENTRY_MALFORMED };

/* Digits of the longest length that is accepted: no item comes near 10 MB. */
#define ENTRY_DIGITS_MAX 7

static inline bool entry_op_known(char op)
{
    return op == ENTRY_ADD || op == ENTRY_DEL || op == ENTRY_READD || op == ENTRY_CLEAR ||
           op == ENTRY_TIMED || op == ENTRY_ANNOUNCE || op == ENTRY_INTENT ||
           op == ENTRY_DECISION || op == ENTRY_CONDITION;
}

/* Was this item in the list for a time that is over? */
static inline bool entry_is_over(char op, uint32_t until_s, int64_t now_s)
{
    return op == ENTRY_TIMED && (int64_t)until_s <= now_s;
}

/* Does an entry with this op, the last one of its item, say that it is in the list? */
static inline bool entry_is_in(char op, uint32_t until_s, int64_t now_s)
{
    return op == ENTRY_ADD || op == ENTRY_READD || (op == ENTRY_TIMED && (int64_t)until_s > now_s);
}

/* entry_next for what it does not do itself. */
enum entry_status entry_next_any(struct slice *rest, struct entry *out);

/* Of an entry of an item ('+', '-' or '=') whose length has one or two digits: most are. */
struct entry_short {
    uint32_t front;    /* its first four bytes */
    uint32_t item_len; /* the item is at its end */
    size_t bytes;
};
#define ENTRY_SHORT_NONE ((struct entry_short){.bytes = SIZE_MAX})

static inline char entry_short_op(const char *p)
{
    return *p == ENTRY_ADD || *p == ENTRY_DEL || *p == ENTRY_READD ? *p : 0;
}

/* Does such an entry stand at p, where len bytes are? *s: of the one before, ENTRY_SHORT_NONE at
 * first; entries of one list often begin alike. False: look with entry_next. */
static inline bool entry_is_short(const char *p, size_t len, struct entry_short *s)
{
    uint32_t front;
    if (len <= sizeof front) {
        return false;
    }
    memcpy(&front, p, sizeof front);
    if (front != s->front) {
        uint32_t n = (unsigned char)p[1] - (uint32_t)'0',
                 digit = (unsigned char)p[2] - (uint32_t)'0';
        bool two = p[2] != ':';
        if (entry_short_op(p) == 0 || n > 9 || (two && (digit > 9 || p[3] != ':'))) {
            return false;
        }
        s->front = front;
        s->item_len = two ? n * 10 + digit : n;
        s->bytes = s->item_len + (two ? 4u : 3u);
    }
    return len >= s->bytes;
}

/* Takes the next entry from *rest. ENTRY_END: nothing is left. ENTRY_MALFORMED: cut short, or an op
 * not known here, or a second that none can name. The entry's bytes point into *rest. */
static inline enum entry_status entry_next(struct slice *rest, struct entry *out)
{
    struct entry_short s = ENTRY_SHORT_NONE;
    if (!entry_is_short(rest->p, rest->len, &s)) {
        return entry_next_any(rest, out);
    }
    out->op = *rest->p;
    out->until_s = 0;
    out->bytes = slice_make(rest->p + s.bytes - s.item_len, s.item_len);
    rest->p += s.bytes;
    rest->len -= s.bytes;
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

/* The shortest entry that is well-formed: op, digit, colon. */
#define ENTRY_BYTES_LEAST 3u
/* For guesses of how many entries some bytes are. */
#define ENTRY_BYTES_TYPICAL 24u

/* Bytes that the entry takes. */
static inline size_t entry_size(const struct entry *entry)
{
    size_t len = entry->bytes.len;
    if (entry->op == ENTRY_TIMED) {
        len += 2; /* a digit and the colon */
        for (uint32_t second = entry->until_s; second >= 10; second /= 10) {
            len++;
        }
    }
    return entry_bytes(len);
}
/* Bytes that an item of len bytes takes at most, as an entry with a time. */
static inline size_t entry_timed_bytes_max(size_t len)
{
    return entry_bytes(10 + 1 + len);
}

/* Appends an entry to the block (see block_append); of any op but ENTRY_TIMED. */
void entry_append(struct block **b, enum entry_op op, struct slice bytes);
/* The same of any op. */
void entry_put(struct block **b, const struct entry *entry);

#endif
