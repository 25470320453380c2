/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations in the words of memcacheds before 1.6.10, which have no meta commands, or early ones
 * that answer otherwise: each read is a `get`, `gets`, `gat` or `gats`. Changes are the same for
 * all memcacheds: ascii_format.h, ascii_parse.h.
 *
 * No answer tells a time to live. A miss is `END`, which names no key.
 */
#ifndef PROTO_SERVER_ASCII_CLASSIC_H
#define PROTO_SERVER_ASCII_CLASSIC_H

#include "proto/server/ascii_format.h"
#include "proto/server/ascii_parse.h"

/* Is the operation a read that has other words there? Not so BE_TIME, which has none. */
static inline bool ascii_classic_reads(enum be_verb verb)
{
    return verb < BE_TIME || verb == BE_FETCH || verb == BE_GAT;
}

/* As ascii_format, for an operation that ascii_classic_reads. */
size_t ascii_classic_format(const struct be_operation *op, char out[ASCII_LINE_MAX]);

enum ascii_classic_result {
    ASCII_CLASSIC_MORE,    /* the answer is not all there yet */
    ASCII_CLASSIC_READ,    /* a hit or a miss */
    ASCII_CLASSIC_ERROR,   /* an error, see reply->line */
    ASCII_CLASSIC_MISFIT,  /* an answer, but not one to this operation */
    ASCII_CLASSIC_GARBAGE, /* the stream cannot be followed any further */
};

/* Is there an answer to op, which ascii_classic_reads, at the front of the bytes? Data blocks above
 * max_value bytes are garbage. READ: fills status, flags, ttl_s, no_times, cas, size_bytes and,
 * where op asks for it, has_value and value. MORE: *size is what is needed at least, or 0; else it
 * is the whole answer's. */
MUST_CHECK enum ascii_classic_result ascii_classic_read(const struct be_operation *op,
                                                        struct slice bytes, size_t max_value,
                                                        struct be_reply *reply, size_t *size);

#endif
