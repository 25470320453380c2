/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections to one server, all together. */
#ifndef POOL_LINK_CONNECTIONS_H
#define POOL_LINK_CONNECTIONS_H

#include "pool/link/server.h"

/* As server_init, with connections that are still to begin. Before connections_fini, which is
 * server_fini, too, they must have been shut down. */
MUST_CHECK int connections_init(struct server *server, struct pool_context *context,
                                const struct server_config *config, struct resolver *resolver,
                                char error[CONFIG_ERROR_MAX]);
void connections_fini(struct server *server);

/* Connects those that have not begun. */
void connections_begin(struct server *server);
/* Closes all and finishes their exchanges. */
void connections_shutdown(struct server *server);
/* The resolver has decided something: connections to an address that is no longer the server's
 * end, and attempts that waited for it go on. */
void connections_relocate(struct server *server);
/* An operator takes the server out of use, or back into it. */
void connections_drain(struct server *server, bool drained);
/* Asks the server for its `stats` when it is up. */
void connections_watch(struct server *server);

/* The connection for a key; always the same one. */
static inline struct upstream *connections_of_key(struct server *server, struct slice placement_key)
{
    uint64_t index = 0;
    if (server->upstream_count > 1) {
        index = hash_bytes(placement_key.p, placement_key.len, 0) % server->upstream_count;
    }
    return &server->upstreams[index];
}

#endif
