/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The proxy as the daemon sees it: all listeners, all worker threads, started and stopped
 * together.
 *
 *     proxy_start -> ... -> proxy_drain (finish what was asked) -> proxy_stop
 *
 * Signals are the main thread's: block them before proxy_start, so that no worker thread receives
 * them. SIGPIPE is ignored by proxy_start for the whole process.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <stddef.h>

#include "base/check.h"
#include "config/config.h"

struct inherited;
struct moved;
struct proxy;
struct shared;
struct worker;

/* Binds every listen address, or takes what is inherited for it, and starts config's worker
 * threads. config must outlive the proxy. Returns the proxy, owned by the caller until proxy_stop,
 * or NULL with a one-line text in error; then nothing is left running. */
MUST_CHECK struct proxy *proxy_start(const struct config *config, struct inherited *inherited,
                                     char error[CONFIG_ERROR_MAX]);

/* Calls run(worker, arg) in each worker's thread, one after the other, between two of its turns.
 * Returns 0, or -1 when one did not come to that within some seconds; those behind it were not
 * asked. Not beside proxy_drain and proxy_stop. */
MUST_CHECK int proxy_ask(struct proxy *proxy, void (*run)(struct worker *worker, void *arg),
                         void *arg);

/* Calls change(arg) while all workers rest between two turns; then each of them takes what has
 * changed in config. Returns 0, or -1 when a worker did not come to rest within some seconds; then
 * change was not called. Not beside proxy_drain and proxy_stop. */
MUST_CHECK int proxy_change(struct proxy *proxy, void (*change)(void *arg), void *arg);

/* Stops accepting and reading, answers what was asked, closes clients as they are done. Blocks
 * until all are closed, at the latest until config's drain_timeout_ms is over. proxy_stop is still
 * to be called. */
void proxy_drain(struct proxy *proxy);

/* Closes every connection, ends the threads, removes unix sockets, frees everything, sets *proxy to
 * NULL. */
void proxy_stop(struct proxy **proxy);

/* Serves a client that another process has served before, and takes over its socket. Returns 0, or
 * -1: no worker had time for it; then the socket is still the caller's. */
MUST_CHECK int proxy_adopt(struct proxy *proxy, const struct moved *moved);
/* Accepts clients: until then they wait in the listening sockets, which are no other process's any
 * more. */
void proxy_serve(struct proxy *proxy);
/* Whether clients of another process may still come; proxy_drain waits for them. */
void proxy_set_receives(struct proxy *proxy, bool receives);

/* What its workers share, for proxy/figures.h, and where it listens; valid as long as the proxy. */
struct shared *proxy_shared(struct proxy *proxy);

#endif
