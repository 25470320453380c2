/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain requests whose servers take no lines: each key is an operation (proto/server/backend.h),
 * and what memcached would answer is written here. The counterpart of forward.h and multiget.h for
 * pools of type couchbase; what is not the same there stands in docs/couchbase.md.
 *
 *     request --> operation   classic verbs: operation.c; meta commands: meta.h
 *     answer  --> line
 */
#ifndef PROXY_PLAIN_OPERATION_H
#define PROXY_PLAIN_OPERATION_H

#include "proto/client/request_parse.h"
#include "proxy/plain/forward_part.h"

/* Queues a request of one key that is no get or gat, and counts it as METRIC_cmd_.... */
void operation_request(struct client *client, const struct request *request, struct block *block,
                       enum proxy_metric counted);

/* The operation that a classic verb of one key is, get and its like aside. */
enum be_verb operation_verb(enum verb verb);

/* The exptime of a request as operations take it. */
static inline int32_t operation_exptime(int64_t exptime)
{
    return exptime < 0 ? -1 : exptime > INT32_MAX ? INT32_MAX : (int32_t)exptime;
}

#endif
