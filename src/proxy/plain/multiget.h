/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * get, gets, gat, gats: each key is a part of its own, and the answer is put together in the order
 * in which they were named.
 *
 *     gat, few keys   each key is an operation: BE_GAT, BE_FETCH
 *     many keys       those of one connection share a "get KEY KEY ..." (BE_LINE_GET) as far as the
 *                     client's window allows. A key whose value was dropped for a slow client (see
 *                     pending.h) is asked for again by itself
 *
 * Either way the answer names the key, and its numbers are read: a value that is not the key's ends
 * the connection to its server.
 */
#ifndef PROXY_PLAIN_MULTIGET_H
#define PROXY_PLAIN_MULTIGET_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

/* Queues a request of SHAPE_KEYS; of SHAPE_GAT. */
void multiget_request(struct client *client, const struct request *request, struct block *block);
void multiget_touch_request(struct client *client, const struct request *request,
                            struct block *block);

/* For handlers of requests whose keys are of several kinds. Asks for the next key of pending.rest
 * by itself, which may free the request. */
void multiget_start_next(struct pending *pending);
/* Of the parts that this makes. */
void multiget_restart(struct part *part);
void multiget_redirect(struct part *part);
void multiget_emit(struct part *part, struct chain *out);

/* What the worker, whose pools must be there, keeps for this: spare exchanges in so many bytes at
 * most. */
void multiget_init(struct worker *worker, size_t spare_bytes);
void multiget_fini(struct worker *worker);

#endif
