/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memcached that the daemon brings along when no pool is configured: a child process behind a
 * unix socket in a private directory. It is started again when it ends, and ends with the daemon,
 * however that ends.
 */
#ifndef EMBEDDED_EMBEDDED_H
#define EMBEDDED_EMBEDDED_H

#include "config/config.h"

struct event_base;
struct embedded;

/* Starts memcached and waits until it accepts connections; then base, which must be the main
 * thread's, watches it. config is read during the call only. user: the one it runs as when the
 * daemon is root, NULL for a user of memcached's own. Returns it, owned by the caller until
 * embedded_stop, or NULL with a one-line text in error; then nothing is left behind. */
MUST_CHECK struct embedded *embedded_start(const struct config *config, struct event_base *base,
                                           const char *user, char error[CONFIG_ERROR_MAX]);

/* The server for config_add_pool: "unix:PATH". Valid as long as embedded. */
const char *embedded_server(const struct embedded *embedded);

/* Ends the child, removes its directory, sets *embedded to NULL; NULL is fine. At once: a cache has
 * nothing to save. */
void embedded_stop(struct embedded **embedded);

#endif
