/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections in reserve (reserved_connections): where max_connections is reached, clients on this
 * machine are taken all the same, to ask for `stats`. They count as connections. One that asks for
 * anything else becomes a client as others are if there is a place by now; else it is told that
 * there are too many, and is closed.
 */
#ifndef PROXY_CLIENT_RESERVE_H
#define PROXY_CLIENT_RESERVE_H

#include "proxy/client/client.h"

#define RESERVE_TOO_MANY SLICE_LIT("ERROR Too many open connections\r\n")

void reserve_init(struct worker *worker);

/* Counts a client that finds no place, and logs it. */
void reserve_note_refused(struct worker *worker);

/* Of so many connections, those that are not in reserve. */
uint32_t reserve_others(const struct worker *worker, uint32_t open);
/* May the socket that was just accepted have a place of the reserve? open: how many connections
 * there were before it. If all are taken, *instead is the worker's own oldest one, to be closed for
 * it, else NULL; a worker that has none may have one more. */
bool reserve_has_place(const struct worker *worker, int fd, uint32_t open, struct client **instead);
/* The client, which is new, has such a place. */
void reserve_enter(struct client *client);
/* It is no client any more, or one as others are. */
void reserve_leave(struct client *client);

/* May the client, which has such a place, send this request? If not, it was refused. */
bool reserve_admits(struct client *client, const struct request *request);

#endif
