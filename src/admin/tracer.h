/* SPDX-License-Identifier: BSD-3-Clause */
/* The command `trace`: what the proxy's trace has goes to the connection that has asked for it, a
 * few times a second. In the admin listener's thread only. */
#ifndef ADMIN_TRACER_H
#define ADMIN_TRACER_H

#include "admin/http.h"
#include "base/slice.h"

struct event_base;
struct proxy;
struct tracer;

/* All must outlive it. Never NULL. */
struct tracer *tracer_create(struct event_base *base, struct proxy *proxy);
void tracer_destroy(struct tracer **tracer);

/* Begins to send to peer, which stays until the last of so many requests of clients, or until it
 * goes; then the trace ends. Returns NULL, or why not; the text lives for ever. */
const char *tracer_begin(struct tracer *tracer, struct http_peer *peer, struct slice key,
                         unsigned requests);

#endif
