/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain requests that do not go to their servers as lines: each key is an operation
 * (proto/server/backend.h), and what memcached would answer is written here. The counterpart of
 * forward.h and multiget.h for pools of type couchbase, and for all requests of clients that speak
 * the binary protocol. What is not the same with couchbase stands in docs/couchbase.md.
 *
 *     request --> operation        classic verbs: fill.c; meta commands: meta.h
 *     answer  --> line, or packet
 */
#ifndef PROXY_PLAIN_OPERATION_H
#define PROXY_PLAIN_OPERATION_H

#include "proto/client/request_parse.h"
#include "proxy/plain/forward_part.h"

/* Queues a request of one key of a client that speaks lines, which is no get or gat, and counts it
 * as METRIC_cmd_.... */
void operation_request(struct client *client, const struct request *request, struct block *block);
/* The same of any request of the binary protocol. */
void operation_binary(struct client *client, const struct request *request, struct block *block);

/* The operation that a classic verb of one key is, get and its like aside. */
enum be_verb operation_verb(enum verb verb);

/* Fills what the request says, but for its key and value, into an operation that was zero; it is a
 * classic one of one key, and no get or gat. */
void operation_fill(const struct request *request, struct be_operation *op);
/* The same for any request of the binary protocol that names an item: all answers have the item's
 * CAS number there, and more verbs than cas can name one. */
void operation_fill_binary(const struct request *request, struct be_operation *op);

/* The exptime of a request as operations take it. */
static inline int32_t operation_exptime(int64_t exptime)
{
    return exptime < 0 ? -1 : exptime > INT32_MAX ? INT32_MAX : (int32_t)exptime;
}

#endif
