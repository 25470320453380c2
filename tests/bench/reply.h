/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads replies of memcached's classic protocol and of Redis (RESP2), each against what is expected
 * of it, and nothing else is let through. Data blocks are stepped over, not looked at. */
#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest line of a reply; also what a caller must be able to keep of an incomplete one. */
#define REPLY_LINE_BYTES_MAX 4096

enum reply_kind {
    REPLY_LINE,    /* exactly this line: STORED, +OK */
    REPLY_NUMBER,  /* digits */
    REPLY_VALUES,  /* VALUE or ITEM blocks, then END */
    REPLY_INTEGER, /* RESP ":" and digits */
    REPLY_BULK,    /* RESP "$" */
    REPLY_ARRAY,   /* RESP "*", of bulk strings */
    REPLY_LINES,   /* several lines, of which the beginnings are given */
};

struct expectation {
    enum reply_kind kind;
    char line[64]; /* REPLY_LINE: with its line end. REPLY_LINES: with a blank behind each word */
    size_t line_bytes;
    uint64_t count_min; /* blocks, elements, or the number itself */
    uint64_t count_max;
    uint64_t data_bytes_min; /* of each block */
    uint64_t data_bytes_max;
};

/* Where a reader stands within a reply; all zero between two replies. */
struct reply_reader {
    uint64_t skip_bytes; /* of a data block */
    uint64_t blocks;     /* met so far */
    uint64_t elements;   /* of an array: still to come */
    bool in_tail;        /* behind a data block, before its line end */
    bool in_array;
    size_t begun; /* REPLY_LINES: bytes of expectation.line that were met */
};

enum reply_step { REPLY_MORE, REPLY_DONE, REPLY_WRONG };

/* Understands one of
 *     line TEXT | number [MIN [MAX]] | integer [MIN [MAX]] | values MIN MAX [BYTES]
 *     bulk [BYTES] | array MIN MAX [BYTES] | lines WORD...
 * "lines" are as many as there are words, each begins with its own. Returns false when it is none.
 */
bool expectation_parse(const char *text, struct expectation *expectation);

/* Moves *at over what belongs to the reply, up to `end` at most. REPLY_DONE: the reply ends at *at,
 * and the reader is ready for the next one. REPLY_MORE: more bytes are needed, those from *at on
 * again. REPLY_WRONG: at *at stands something else than was expected. */
enum reply_step reply_read(struct reply_reader *reader, const struct expectation *expectation,
                           const char **at, const char *end);

#endif
