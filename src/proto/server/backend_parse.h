/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcached's replies, as pure functions: where one ends, and what it means for each verb of the
 * backend vocabulary.
 */
#ifndef PROTO_SERVER_BACKEND_PARSE_H
#define PROTO_SERVER_BACKEND_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"
#include "proto/server/backend.h"

/* A reply line longer than this is no memcached's. */
#define BACKEND_REPLY_LINE_MAX ((size_t)8192)
/* The largest item any memcached can be configured for (-I 1g). */
#define BACKEND_VALUE_MAX ((size_t)1 << 30)

enum backend_parse_result {
    BACKEND_PARSE_MORE,    /* not all there yet */
    BACKEND_PARSE_OK,      /* a whole reply */
    BACKEND_PARSE_GARBAGE, /* the stream cannot be followed any further: close the connection */
};

struct backend_parsed {
    struct slice line;  /* without its line end */
    bool has_value;     /* a "VA" or "VALUE" line */
    struct slice value; /* its data block without the line end */
    size_t consumed;    /* bytes of the whole reply */
    size_t need;        /* BACKEND_PARSE_MORE: bytes of the whole reply, 0 = not known yet */
};

/* Is a whole reply (a line, and a data block after "VA <size>") at the front of the bytes? Fills
 * out, whose slices point into them; need only for MORE, all others only for OK. A data block above
 * max_value bytes is garbage. */
MUST_CHECK enum backend_parse_result backend_parse(struct slice bytes, size_t max_value,
                                                   struct backend_parsed *out);

/* The same for one piece of the answer to `get` or `gets`: a data block after
 * "VALUE <key> <flags> <size>[ <cas>]", or the line that ends the answer. */
MUST_CHECK enum backend_parse_result backend_parse_values(struct slice bytes, size_t max_value,
                                                          struct backend_parsed *out);

/* Turns the reply to verb into status, flags, ttl_s, cas, size_bytes, number and value of reply;
 * leaves the rest alone. text is not set: for BE_REFUSED the caller makes it of the line. Returns
 * 0, or -1 when no server gives that answer to that verb: requests and replies are out of step. */
MUST_CHECK int backend_reply_read(enum be_verb verb, const struct backend_parsed *parsed,
                                  struct be_reply *reply);

/* Copies a server's line into out (cap bytes, always NUL-terminated, cut where it does not fit)
 * with everything that is not printable ASCII as '?'. Returns out. For logs and error texts. */
const char *backend_line_text(struct slice line, char *out, size_t cap);

#endif
