/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets of clients that have all their answers and may go on sending: after a quit, or after a
 * request that was refused before it was whole. The kernel of a side that closes with input unread,
 * or that gets input afterwards, throws away what the client has not read yet. So the proxy ends
 * its own sending, which the client sees behind the last answer, and throws away what comes until
 * the client closes: for linger_ms at most.
 */
#ifndef PROXY_CLIENT_LINGER_H
#define PROXY_CLIENT_LINGER_H

#include <stdbool.h>

struct worker;

void linger_init(struct worker *worker);
/* Closes all that are left. */
void linger_fini(struct worker *worker);

/* Takes over a client's socket, to close it. It counts as a connection until then. */
void linger_start(struct worker *worker, int fd);
/* Closes a client's socket, which lives on in another process. */
void linger_let_go(struct worker *worker, int fd);
/* Closes a client's socket at once, as far as this loses no answers. */
void linger_close(struct worker *worker, int fd);
/* Closes the socket of this worker that it has kept for longest, since a new client wants its place
 * among max_connections. False: it keeps none. */
bool linger_make_room(struct worker *worker);
/* From now on closes all at once. */
void linger_drain(struct worker *worker);

#endif
