/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listening sockets. TCP addresses get one socket per worker (SO_REUSEPORT: the kernel spreads the
 * connections), unix sockets one that all workers accept from.
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "config/config.h"

struct worker;
struct listen_set;

/* Binds all of config's addresses for that many workers. Returns the set, owned by the caller until
 * listen_set_close, or NULL with a text in error. */
MUST_CHECK struct listen_set *listen_set_open(const struct config *config, size_t workers,
                                              char error[CONFIG_ERROR_MAX]);
/* Closes what is still open and removes unix sockets that are still ours. */
void listen_set_close(struct listen_set **set);
size_t listen_set_count(const struct listen_set *set);
/* "127.0.0.1:11211", "[::1]:11211" or "unix:PATH"; valid as long as the set. */
const char *listen_set_name(const struct listen_set *set, size_t i);

/* One socket as its worker's loop sees it. */
struct acceptor {
    struct worker *worker;
    struct event event;
    int fd;
    bool is_tcp;
};

/* Fills worker.acceptors from the set and accepts from now on; new clients belong to the worker. */
void listener_start(struct worker *worker, struct listen_set *set);
/* Accepts no more. May be called twice. */
void listener_stop(struct worker *worker);

#endif
