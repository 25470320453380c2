/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations as requests of memcached's ASCII protocol. Changes are classic commands, never `ms`: a
 * refused `ms` takes the old value away.
 */
#ifndef PROTO_SERVER_ASCII_FORMAT_H
#define PROTO_SERVER_ASCII_FORMAT_H

#include <stddef.h>

#include "proto/server/backend.h"

/* Room for the longest request line. */
#define ASCII_LINE_MAX ((size_t)384)

/* Writes the operation's request line with its line end to out; BE_CAS_DELETE comes with its empty
 * data block. Returns the number of bytes. Where be_has_value, the value and a line end must
 * follow. Not for BE_LINE and what comes after it. */
size_t ascii_format(const struct be_operation *op, char out[ASCII_LINE_MAX]);

/* Writes the time as memcached takes it; returns where it ends. */
char *ascii_put_exptime(char *to, int32_t exptime);

#endif
