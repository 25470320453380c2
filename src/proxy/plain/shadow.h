/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A share of the keys of a route is asked of another pool as well (shadow = POOL:SHARE%). Which
 * keys, their hash says: a key is shadowed always or never, by all proxies. Nothing waits for an
 * answer, which is thrown away. What is under way takes shadow_bytes of memory at most per worker
 * and route; further requests are dropped, and never wait.
 */
#ifndef PROXY_PLAIN_SHADOW_H
#define PROXY_PLAIN_SHADOW_H

#include "proxy/plain/forward_part.h"

/* Is the key one of the share? */
bool shadow_takes(const struct route_config *route, struct slice key);

/* Sends a copy of what the exchange asks for, which lives during the call. */
void shadow_send(struct worker *worker, const struct route_config *route, struct slice key,
                 const struct request *request, const struct exchange *original);

/* The worker keeps spare copies, in so many bytes at most; gives them back. */
void shadow_init(struct worker *worker, size_t spare_bytes);
void shadow_fini(struct worker *worker);

#endif
