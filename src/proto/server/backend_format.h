/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backend vocabulary as memcached's ASCII protocol. Changes are classic commands, never `ms`: a
 * refused `ms` takes the old value away.
 */
#ifndef PROTO_SERVER_BACKEND_FORMAT_H
#define PROTO_SERVER_BACKEND_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/server/backend.h"

/* Room for the longest request line. */
#define BACKEND_LINE_MAX ((size_t)384)

/* Writes the request's line with its line end to out; BE_CAS_DELETE comes with its empty data
 * block. Returns the number of bytes. When backend_has_body, value and a line end must follow. */
size_t backend_format(const struct be_request *req, char out[BACKEND_LINE_MAX]);

/* True when the request's value follows its line. */
static inline bool backend_has_body(enum be_verb verb)
{
    return verb == BE_ADD || verb == BE_REPLACE || verb == BE_SET || verb == BE_APPEND ||
           verb == BE_PREPEND || verb == BE_CAS;
}

#endif
