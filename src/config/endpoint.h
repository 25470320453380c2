/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of addresses: where to listen, and the servers of a pool.
 */
#ifndef CONFIG_ENDPOINT_H
#define CONFIG_ENDPOINT_H

#include "config/config.h"

/* Where DNS servers, memcacheds and this proxy listen, if nothing else is said. */
#define DNS_PORT 53
#define MEMCACHED_PORT 11211
#define COUCHBASE_PORT 11210
#define COUCHBASE_TLS_PORT 11207
#define COUCHBASE_HTTP_PORT 8091
#define COUCHBASE_HTTPS_PORT 18091
#define PROXY_PORT 11220
#define ADMIN_PORT 11221

/* Adds the comma-separated addresses to the list. default_port 0 = each needs one of its own.
 * Returns 0, or -1 with what is wrong and what was expected in error. */
MUST_CHECK int listen_list_add(struct endpoint_list *list, struct slice text, uint16_t default_port,
                               char error[CONFIG_ERROR_MAX]);

/* Adds "host:port weight, ..." to the pool's servers. Returns 0, or -1 with what is wrong and what
 * was expected. */
MUST_CHECK int server_list_add(struct pool_config *pool, struct slice text,
                               char error[CONFIG_ERROR_MAX]);

/* Makes the server's name of its endpoint. */
void server_set_name(struct server_config *server);

#endif
