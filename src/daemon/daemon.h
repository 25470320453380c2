/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon: which parts there are, and the order in which they start and stop. The main thread
 * starts them, then hears signals, watches the embedded memcached, and takes the clients of a
 * daemon whose place this one takes.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "admin/admin.h"
#include "base/check.h"
#include "config/config.h"
#include "config/options.h"
#include "os/user.h"

/* How long the end of the daemon waits for a log that is not read. */
#define LOG_FLUSH_MS 1000

#define SIGNAL_COUNT 5

struct daemon {
    struct options options;
    struct config *config;
    struct event_base *base;
    struct inherited *inherited; /* sockets and clients of the daemon before, while they come */
    struct event *watchdog;      /* of the service manager; or NULL */
    struct event *moved;         /* clients that come */
    size_t moved_count;
    struct embedded *embedded;
    struct proxy *proxy;
    struct admin *admin;
    struct os_user user;
    struct event *signals[SIGNAL_COUNT];
    pthread_t drainer;
    struct event *drained; /* the drainer closes drained_pipe when it is done */
    int drained_pipe[2];
    bool draining;
    atomic_bool replaced; /* by another process, which has the sockets */
    struct admin_hooks hooks;
    pthread_mutex_t changing; /* one at a time reloads the configuration, or begins to drain */
};

/* Starts what options and config, which are set, ask for. Returns EX_OK, with signals blocked, or
 * an exit code, after it has said why; daemon_stop is to be called either way. */
MUST_CHECK int daemon_start(struct daemon *daemon);
/* Serves until a signal ends it. */
void daemon_run(struct daemon *daemon);
/* Stops what has started, and frees all, the configuration too. */
void daemon_stop(struct daemon *daemon);

#endif
