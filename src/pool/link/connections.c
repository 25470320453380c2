/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/connections.h"

#include <stdlib.h>

int connections_init(struct server *server, struct pool_context *context,
                     const struct server_config *config, struct resolver *resolver,
                     char error[CONFIG_ERROR_MAX])
{
    uint32_t count = context->config->connections;
    if (server_init(server, context, config, resolver, error) < 0) {
        return -1;
    }
    server->upstream_count = count > 0 ? count : 1;
    server->upstreams = calloc(server->upstream_count, sizeof *server->upstreams);
    CHECK(server->upstreams != NULL);
    for (uint32_t i = 0; i < server->upstream_count; i++) {
        upstream_init(&server->upstreams[i], server);
    }
    return 0;
}

void connections_fini(struct server *server)
{
    for (uint32_t i = 0; i < server->upstream_count; i++) {
        upstream_fini(&server->upstreams[i]);
    }
    free(server->upstreams);
    server_fini(server);
}

void connections_begin(struct server *server)
{
    for (uint32_t i = 0; i < server->upstream_count; i++) {
        if (server->upstreams[i].state == UPSTREAM_IDLE) {
            upstream_attempt(&server->upstreams[i]);
        }
    }
}

void connections_shutdown(struct server *server)
{
    for (uint32_t i = 0; i < server->upstream_count; i++) {
        upstream_shutdown(&server->upstreams[i]);
    }
}

void connections_relocate(struct server *server)
{
    struct location location;
    uint64_t version;
    if (server->name == NULL) {
        return;
    }
    bool known = resolver_peek(server->name, &location, &version) == RESOLVER_KNOWN;
    for (uint32_t i = 0; i < server->upstream_count; i++) {
        struct upstream *u = &server->upstreams[i];
        if (u->favour == UPSTREAM_DRAINED) {
            continue; /* undrained, it asks where the server is */
        }
        if (u->state == UPSTREAM_RESOLVING) {
            upstream_attempt(u);
        } else if (known && u->version != version && u->state != UPSTREAM_IDLE) {
            upstream_move(u);
        }
    }
}

void connections_drain(struct server *server, bool drained)
{
    bool was = atomic_load_explicit(&server->drained_since_s, memory_order_relaxed) != 0;
    if (drained != was) {
        atomic_store_explicit(&server->drained_since_s, drained ? server->context->now->wall_s : 0,
                              memory_order_relaxed);
    }
    for (uint32_t i = 0; i < server->upstream_count; i++) {
        (drained ? upstream_drain : upstream_undrain)(&server->upstreams[i]);
    }
}

static void on_stat(struct exchange *x, const struct be_reply *reply)
{
    struct server_look *looks = &x->server->looks;
    const struct {
        struct slice name;
        uint64_t *number;
    } all[] = {{SLICE_LIT("pid"), &looks->pid},
               {SLICE_LIT("uptime"), &looks->uptime_s},
               {SLICE_LIT("curr_items"), &looks->items},
               {SLICE_LIT("evictions"), &looks->evictions}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (slice_equal(reply->line, all[i].name) && !slice_to_u64(reply->value, all[i].number)) {
            looks->at_us = 0;
        }
    }
}

static void on_watched(struct exchange *x, const struct be_reply *reply)
{
    struct server *server = x->server;
    server->watching = false;
    if (reply->status != BE_ANSWERED || server->looks.at_us == 0 || server->looks.pid == 0) {
        return;
    }
    atomic_store_explicit(&server->evictions, server->looks.evictions, memory_order_relaxed);
    health_looked(server, &server->looked, &server->looks);
    server->looked = server->looks;
}

void connections_watch(struct server *server)
{
    struct upstream *u = &server->upstreams[0];
    if (server->watching || u->state != UPSTREAM_UP || u->favour != UPSTREAM_TRUSTED) {
        return;
    }
    server->watching = true;
    server->looks = (struct server_look){.at_us = server->context->now->mono_us};
    server->watch_exchange = (struct exchange){.op.verb = BE_STATS,
                                               .value = on_stat,
                                               .done = on_watched,
                                               .server = server,
                                               .is_internal = true};
    upstream_submit(u, &server->watch_exchange);
}
