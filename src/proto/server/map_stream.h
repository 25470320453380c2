/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps of a cluster that come over HTTP: one after the other, each with four line feeds behind it.
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
