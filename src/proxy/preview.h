/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a start with a configuration would do, in words: for `mclistd -t`. Names of servers are
 * looked up as the daemon would; nothing is listened on, and no server is connected to, unless they
 * are to be probed.
 */
#ifndef PROXY_PREVIEW_H
#define PROXY_PREVIEW_H

#include <stdio.h>

#include "config/config.h"

/* Writes a line for each thing that a start would do. Waits at most resolve_timeout_ms for names.
 * Returns how many servers' names have no address now: such a server is down until its name has
 * one, but the daemon starts. */
size_t preview_print(const struct config *config, FILE *out);

/* Asks the memcacheds of pools with several of them which items of lists they have, and writes a
 * line for each such pool: do they lie where this configuration looks for them? Returns an exit
 * code: EX_CONFIG where another distribution or hash fits more of them, else EX_UNAVAILABLE where a
 * server could not be asked, else EX_OK. */
int preview_probe(const struct config *config, FILE *out);

#endif
