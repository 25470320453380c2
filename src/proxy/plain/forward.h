/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pass-through: a request goes to the server that owns its key, the reply comes back byte for byte.
 * The exceptions:
 *
 *     get gets     the reply is put together from those of all keys' servers, see multiget.h
 *     gat gats
 *     noreply      left out, the reply is swallowed here: each exchange draws exactly one reply
 *     meta flag q  left out, the reply is filtered here, for the same reason
 */
#ifndef PROXY_PLAIN_FORWARD_H
#define PROXY_PLAIN_FORWARD_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"

/* Queues any request whose verb has a shape of memcached's own, SHAPE_PLAIN and SHAPE_REFUSED
 * aside. */
void forward_request(struct client *client, const struct request *request, struct block *block);

/* The same of a client that speaks the binary protocol. */
void forward_binary(struct client *client, const struct request *request, struct block *block);

/* Queues what memcached does when a value is too large for it: the item that was to be replaced
 * goes, since its value is out of date, and the answer behind that says that it is too large. */
void forward_remove(struct client *client, const struct request *request, struct block *block);

/* Queues a flush_all to all servers of config.flush_pools; one answer for all of them. */
void forward_flush_all(struct client *client, const struct request *request, struct block *block,
                       bool noreply);

/* The worker keeps spare exchanges, in so many bytes at most; gives them back. */
void forward_init(struct worker *worker, size_t spare_bytes);
void forward_fini(struct worker *worker);

#endif
