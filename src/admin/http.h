/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small HTTP server for operators: GET and HEAD, one request per connection, all in one thread.
 *
 * libevent's own does not count its connections, and 2.1 ends the process when it cannot name a
 * peer. Here there are max_connections at most, for a new one the oldest gives way that has not
 * asked yet, and each ends timeout_ms after it was accepted, whatever it does.
 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include <stdbool.h>

#include "base/slice.h"
#include "config/config.h"
#include "proxy/listen/listen_set.h"

struct evbuffer;
struct event_base;
struct http;

struct http_request {
    struct slice path;   /* without what follows a ? */
    struct slice accept; /* the header of that name, or empty */
};

struct http_answer {
    unsigned status;       /* 200, 404 or 503; 200 when it is handed over */
    const char *type;      /* Content-Type; text/plain when it is handed over; lives for ever */
    struct evbuffer *body; /* empty when it is handed over */
};

/* Fills the answer. The request is valid during the call. */
typedef void http_handler(void *arg, const struct http_request *request,
                          struct http_answer *answer);

/* Accepts from all sockets of listen, whose only worker this is, in base's loop. listen and config
 * must live as long. Never NULL. */
struct http *http_start(struct event_base *base, const struct listen_set *listen,
                        const struct admin_config *config, http_handler *handler, void *arg);
/* Closes all connections and accepts no more. The loop must not run. */
void http_stop(struct http **http);

#endif
