/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accepting clients: what a worker does with its sockets of the listen set.
 */
#ifndef PROXY_LISTEN_LISTENER_H
#define PROXY_LISTEN_LISTENER_H

struct listen_set;
struct moved;
struct worker;

/* Accepts at the worker's sockets of the set from now on; new clients belong to the worker. */
void listener_start(struct worker *worker, struct listen_set *set);
/* Accepts the clients that are already waiting, then no more: later ones are refused by the kernel,
 * as nothing listens. May be called twice. */
void listener_stop(struct worker *worker);

/* Serves a client of another process from now on, and takes over its socket. */
void listener_adopt(struct worker *worker, const struct moved *moved);

#endif
