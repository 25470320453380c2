/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the configuration anew while the proxy runs. The new one is read and checked whole; only
 * then, while all workers rest, it takes the place of the one in force. What cannot change while
 * the proxy runs, and anything that is wrong, leaves all as it was.
 */
#ifndef PROXY_RELOAD_H
#define PROXY_RELOAD_H

#include "base/check.h"
#include "config/config.h"
#include "config/options.h"

struct proxy;

/* What a configuration is made of besides its file; valid as long as the daemon runs. */
struct reload_source {
    const struct options *options;
    const char *embedded_server; /* NULL: there is no embedded memcached */
};

/* config is the proxy's, in force; it takes the new values. Logs what has changed, or why nothing
 * has. Returns 0, or -1 with the reason in error. One thread at a time, and not beside proxy_drain
 * and proxy_stop. */
MUST_CHECK int reload(struct proxy *proxy, struct config *config,
                      const struct reload_source *source, char error[CONFIG_ERROR_MAX]);

#endif
