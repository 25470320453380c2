/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List verbs: a request becomes one list_call per key, a finished call becomes its answer
 * (reply.h).
 */
#ifndef PROXY_LISTS_REQUEST_H
#define PROXY_LISTS_REQUEST_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

/* Queues a request whose verb has one of the list shapes. */
void list_request_start(struct client *client, const struct request *request, struct block *block);

/* What the part asks of the engine, or NULL when it asks something else. */
const struct list_call *list_request_call(const struct part *part);
/* The engine has finished the call, which list_request_start made. */
void list_request_done(struct list_call *call);

/* The worker keeps spare calls, in so many bytes at most; gives them back. */
void list_request_init(struct worker *worker, size_t spare_bytes);
void list_request_fini(struct worker *worker);

#endif
