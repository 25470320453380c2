/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The admin listener: metrics, health, configuration and a status page over HTTP, for operators and
 * their tools (`[admin] listen`). It runs in a thread of its own, so that it answers however busy
 * the workers are. HTTP only looks, and changes nothing; on unix sockets there are commands as
 * well: admin/command.h.
 *
 *     /          the status page (also /status)     /live     200 while the process runs
 *     /metrics   Prometheus, OpenMetrics            /ready    200 while requests can be served
 *     /config    each setting in force
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdbool.h>

#include "base/check.h"
#include "config/config.h"

struct admin;
struct inherited;
struct listen_set;
struct proxy;

/* What the daemon does for a command. */
struct admin_hooks {
    /* Reads the configuration anew. Returns 0, or -1 with the reason in error. Called in the admin
     * listener's thread. */
    int (*reload)(void *arg, char error[CONFIG_ERROR_MAX]);
    /* Process pid serves what clients ask for from now on: finishes requests and ends. The same. */
    void (*leave)(void *arg, int pid);
    void *arg;
    bool has_embedded; /* its memcached would end with it */
};

/* Listens where config says, and starts the thread. *admin stays NULL where it says nothing. All
 * that it is given must outlive it. Returns 0, or -1 with a text in error. */
MUST_CHECK int admin_start(const struct config *config, struct proxy *proxy,
                           struct inherited *inherited, const struct admin_hooks *hooks,
                           struct admin **admin, char error[CONFIG_ERROR_MAX]);
/* Accepts connections; its sockets are no other process's any more. NULL is fine. */
void admin_serve(struct admin *admin);
/* From now on the proxy is not ready: it ends. Thread-safe. NULL is fine. */
void admin_drain(struct admin *admin);
/* NULL is fine. */
void admin_stop(struct admin **admin);

/* Where it listens, valid as long as it does; NULL: nowhere. NULL is fine. */
const struct listen_set *admin_listens(const struct admin *admin);

#endif
