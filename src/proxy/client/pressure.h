/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens when the memory of all clients' requests and answers (base/memory.h) comes near
 * memory_limit_bytes:
 *
 *     3/4 of it  spare memory is freed; a client that has anything under way or unread is not read
 *                from until that is over, so each has one request at a time
 *     all of it  the clients that hold most are relieved of it, until the rest fits: a call of the
 *                engine is ended, where that holds most of it, else the client is closed
 *
 * Each worker closes its own, as long as it holds as much as the mean of all; one that holds less
 * wakes the others. Until they have acted, the limit may be exceeded by an eighth; a client that
 * wants more then is closed itself.
 *
 * The requests that a closed client has on their way to servers stay until they are answered. As
 * they will go, no others are closed in their place; but no more than a quarter of the limit is
 * waited for in this way.
 */
#ifndef PROXY_CLIENT_PRESSURE_H
#define PROXY_CLIENT_PRESSURE_H

#include "base/memory.h"
#include "proxy/core/worker.h"

/* Does all that when it is due. */
void pressure_act(struct worker *worker);

/* Call it often: looks at one number. */
static inline void pressure_check(struct worker *worker)
{
    if (UNLIKELY(memory_held() > worker->pressure_bytes || worker->pressed)) {
        pressure_act(worker);
    }
}

/* Before so many bytes are taken at once for the client's input. Closes the clients that it must;
 * this one may be among them. */
void pressure_make_room(struct client *client, size_t bytes);

/* May so many bytes be taken for a request that can still be refused? Closes no client. */
bool pressure_has_room(struct worker *worker, size_t bytes);

/* After a turn: has memory that was freed handed back to the system, a second later, if it was a
 * lot and is not used again by then. */
void pressure_trim_later(struct worker *worker);
static inline void pressure_check_trim(struct worker *worker)
{
    if (UNLIKELY(memory_wants_trim())) {
        pressure_trim_later(worker);
    }
}

void pressure_init(struct worker *worker);
/* The configuration has changed. */
void pressure_take_config(struct worker *worker);
void pressure_fini(struct worker *worker);

#endif
