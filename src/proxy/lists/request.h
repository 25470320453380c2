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

#endif
