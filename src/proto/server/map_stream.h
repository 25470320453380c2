/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps of a cluster that come over HTTP: one after the other, each with four line feeds behind it.
 * A map is taken at the brace that ends its JSON: some servers send the line feeds later, or never.
 */
#ifndef PROTO_SERVER_MAP_STREAM_H
#define PROTO_SERVER_MAP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"

/* What has arrived, and was not taken. Zero-initialise; map_stream_clear at the end. */
struct map_stream {
    char *bytes; /* or NULL */
    size_t len, cap;
    size_t taken; /* bytes of maps that were taken */

    /* How far the next one was looked at, and what was seen by then. */
    size_t seen;
    size_t braces;   /* that are open */
    size_t feeds;    /* line feeds at the end of what was seen */
    bool in_string;  /* of the JSON */
    bool is_escaped; /* the next character of it */
};

/* Adds what has arrived. False when a map is longer than CLUSTER_MAP_BYTES_MAX. */
MUST_CHECK bool map_stream_add(struct map_stream *stream, struct slice bytes);
/* Takes the next map that is all there; it lives until the next call with that stream. */
bool map_stream_next(struct map_stream *stream, struct slice *map);
/* What stands behind the last map that was taken, without line feeds around it: the map of a server
 * that tells one only, and ends. Lives as long. */
struct slice map_stream_rest(const struct map_stream *stream);
void map_stream_clear(struct map_stream *stream);

#endif
