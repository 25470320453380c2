/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small HTTP server for operators: GET and HEAD, one request per connection, all in one thread.
 * On unix sockets a line that is no HTTP request is a command, whose answer is plain text.
 *
 * libevent's own does not count its connections, and 2.1 ends the process when it cannot name a
 * peer. Here there are max_connections at most, for a new one the oldest gives way that has not
 * asked yet, and each ends timeout_ms after it was accepted, whatever it does.
 */
#ifndef ADMIN_HTTP_H
#define ADMIN_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
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

/* Who has sent a command. */
struct http_peer {
    int fd;           /* of the connection, for what is more than text */
    bool stays;       /* another command may follow on this connection: set by the handler */
    bool has_sockets; /* the handler's own */
    /* Not NULL: more of the answer follows, by http_output, until http_end, and whatever else the
     * peer sends is thrown away. It is called when the peer goes before that. */
    void (*gone)(void *arg);
    void *gone_arg;
};

struct http_handlers {
    /* Fills the answer. The request is valid during the call. */
    void (*request)(void *arg, const struct http_request *request, struct http_answer *answer);
    /* Appends the whole answer to out. The line comes without its end, and is valid during the
     * call, as peer is. */
    void (*command)(void *arg, struct slice line, struct http_peer *peer, struct evbuffer *out);
};

/* Accepts from all sockets of listen, whose only worker this is, in base's loop; http_set_limits is
 * to be called before that runs. All must live as long. Never NULL. */
struct http *http_start(struct event_base *base, const struct listen_set *listen,
                        const struct http_handlers *handlers, void *arg);
/* Where more of the answer goes, and its end. In the loop's thread, for a peer with gone. */
struct evbuffer *http_output(struct http_peer *peer);
void http_end(struct http_peer *peer);
/* How many connections there may be, and how long each may last. In the loop's thread. */
void http_set_limits(struct http *http, uint32_t max_connections, uint32_t timeout_ms);
/* Accepts connections. In the loop's thread. */
void http_serve(struct http *http);
/* Accepts no more connections. In the loop's thread. */
void http_leave(struct http *http);
/* Closes all connections and accepts no more. The loop must not run. */
void http_stop(struct http **http);

#endif
