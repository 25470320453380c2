/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists by memcached's own verbs, for clients that can send no others: under a prefix with
 * bridge = yes, get and append and the rest become calls to the list engine, and their answers are
 * those of memcached. docs/verbs.md has the table.
 *
 *     get gets gat gats   a call for each key that is a list; other keys of the same request are
 *                         parts of pass-through (multiget.h). keys.c
 *     one key             a call, or two where a time to live is set or asked for
 *     meta commands       the same, with flags in question and answer. flags.c, meta.c
 *
 * The names of a native list's items (KEY#, KEY#NAME.N) are not taken for lists: protect.h.
 */
#ifndef PROXY_BRIDGE_BRIDGE_H
#define PROXY_BRIDGE_BRIDGE_H

#include "proto/client/request_parse.h"
#include "proxy/client/client.h"
#include "proxy/core/worker.h"

/* Takes a request of memcached's own verbs that names a list: queues or answers it. False: it names
 * none. */
bool bridge_take(struct client *client, const struct request *request, struct block *block);
static inline bool bridge_takes(struct client *client, const struct request *request,
                                struct block *block)
{
    return UNLIKELY(client->worker->config->has_bridge) && bridge_take(client, request, block);
}

/* The same for a request whose value is too large, and which memcached would answer by taking the
 * old value away: the list stays. */
bool bridge_take_large(struct client *client, const struct request *request);

#endif
