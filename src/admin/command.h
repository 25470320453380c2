/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands for operators, on unix sockets of the admin listener: a line, and its answer as text,
 * of which the first line is OK or ERROR REASON.
 */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include "admin/admin.h"
#include "admin/http.h"
#include "base/slice.h"

struct evbuffer;
struct tracer;

struct command_context {
    struct proxy *proxy;
    const struct admin_hooks *hooks;
    struct listen_set *listen; /* of the admin listener */
    struct http *http;
    struct http_peer *peer;
    struct tracer *tracer;
    bool draining;
};

/* Does what the line says, which comes without its end, and appends the answer to out. */
void command_run(const struct command_context *context, struct slice line, struct evbuffer *out);

#endif
