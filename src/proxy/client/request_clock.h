/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long clients take to send one request. A worker's clients that have sent a part of a request
 * stand in a queue in the order in which those began; a timer looks at its front now and then, as
 * long as there is a client in it. So a request that arrives whole costs nothing, and no request
 * has a timer of its own.
 */
#ifndef PROXY_CLIENT_REQUEST_CLOCK_H
#define PROXY_CLIENT_REQUEST_CLOCK_H

#include "proxy/client/client.h"

struct worker;

void request_clock_init(struct worker *worker);
/* The configuration has changed. */
void request_clock_take_config(struct worker *worker);
void request_clock_fini(struct worker *worker);

/* The client has sent a part of a request. Does nothing when that is known already. */
void request_clock_begin(struct client *client);
/* A request is whole, or it is not the client that keeps it waiting. */
void request_clock_end(struct client *client);

static inline void request_clock_start(struct client *client)
{
    if (!client->receiving) {
        request_clock_begin(client);
    }
}
static inline void request_clock_stop(struct client *client)
{
    if (UNLIKELY(client->receiving)) {
        request_clock_end(client);
    }
}

#endif
