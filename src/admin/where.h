/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the items of a key lie: the plain one, and those of a list, by the rules in force. No
 * server is asked.
 */
#ifndef ADMIN_WHERE_H
#define ADMIN_WHERE_H

#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"

struct config;
struct evbuffer;
struct proxy;
struct trace_name;

/* Appends a line for the section of the key, and one for each item, as docs/operations.md has them.
 * Returns 0, or -1 when no worker had time to say it. */
MUST_CHECK int where_print(struct proxy *proxy, struct slice key, struct evbuffer *out);
/* The names that items of the list have by the configuration, besides those of native lists;
 * returns how many, TRACE_NAMES_MAX at most. */
size_t where_names(const struct config *config, struct slice key, struct trace_name *out);

#endif
