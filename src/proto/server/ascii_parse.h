/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcached's replies, as pure functions: where one ends, and what it means for each verb of the
 * backend vocabulary.
 */
#ifndef PROTO_SERVER_ASCII_PARSE_H
#define PROTO_SERVER_ASCII_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"
#include "proto/server/backend.h"

/* A reply line longer than this is no memcached's. */
#define ASCII_REPLY_LINE_MAX ((size_t)8192)
/* The largest item any memcached can be configured for (-I 1g). */
#define ASCII_VALUE_MAX ((size_t)1 << 30)

enum ascii_parse_result {
    ASCII_PARSE_MORE,    /* not all there yet */
    ASCII_PARSE_OK,      /* a whole reply */
    ASCII_PARSE_GARBAGE, /* the stream cannot be followed any further: close the connection */
};

/* Is a whole reply at the front of the bytes: a line, and a data block after "VA <size>"? For
 * BE_LINE_GET one piece of the answer instead, a data block after "VALUE <key> <flags> <size>[
 * <cas>]", or the line that ends the answer. A data block above max_value bytes is garbage. OK:
 * fills line, has_value and value of reply, which point into the bytes, leaves the rest alone, and
 * sets size to the bytes of the whole reply. Of a VALUE line, line is the key; flags and cas are
 * filled as well. MORE: sets size to that as well, or to 0 while it is not known. */
MUST_CHECK enum ascii_parse_result ascii_parse(const struct be_operation *op, struct slice bytes,
                                               size_t max_value, struct be_reply *reply,
                                               size_t *size);

/* Turns line, has_value and value of a reply to op, which is no line, into its status, flags,
 * ttl_s, cas, size_bytes and number, which were zero; leaves the rest alone. text is not set: for
 * BE_REFUSED the caller makes it of the line. Returns 0, or -1 when no server gives that answer to
 * that request, for one because it names another key: requests and replies are out of step. */
MUST_CHECK int ascii_reply_read(const struct be_operation *op, struct be_reply *reply);

/* True for the lines by which a server refuses a request; sets status then. memcached did nothing;
 * what a SERVER_ERROR of an unknown kind means for a change is decided in
 * pool/memcached/wire_memcached.c. */
MUST_CHECK bool ascii_error_read(struct slice line, enum be_status *status);
/* True for those of them by which a server says that it has no memory left. */
bool ascii_is_no_memory(struct slice line);

/* The short way of nearly all answers to the most frequent requests, in memcached's own words: a
 * whole hit for BE_FETCH or BE_LINE_GET, and STORED for what has a value to store, be it a line.
 * Fills reply as decoding does, and line of a hit with the key. False: it is something else, or not
 * all there; ask those above. */
MUST_CHECK bool ascii_take_usual(const struct be_operation *op, struct slice bytes,
                                 size_t max_value, struct be_reply *reply, size_t *size);

/* May the reply be the answer to op, a line (be_line_form), or the end of one to BE_LINE_GET?
 * Errors may always. status and number of the reply are void then. */
MUST_CHECK bool ascii_line_fits(const struct be_operation *op, struct be_reply *reply);

/* Copies a server's line into out (cap bytes, always NUL-terminated, cut where it does not fit)
 * with everything that is not printable ASCII as '?'. Returns out. For logs and error texts. */
const char *ascii_line_text(struct slice line, char *out, size_t cap);

#endif
