/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/pool.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "config/tls_files.h"
#include "pool/couchbase/cluster.h"
#include "pool/couchbase/wire_couchbase.h"
#include "pool/link/connections.h"
#include "pool/locate/shard.h"
#include "pool/memcached/wire_memcached.h"

struct pool {
    struct pool_context context; /* of a pool of type couchbase, with the cluster */
    struct shard *shard;         /* these three: of type memcached */
    struct server *servers;
    size_t server_count;
    struct event *watch_timer;
    struct resolver *resolver; /* NULL: no server has a name that is looked up */
    struct event *resolved_event;
    int resolved_fd; /* eventfd, which the resolver writes to; -1 = none */
};

static void on_finish_timer(evutil_socket_t fd, short what, void *arg)
{
    struct pool_context *context = arg;
    (void)fd, (void)what;
    context_woke(context);
    server_deliver_finished(context);
}

static void on_watch_timer(evutil_socket_t fd, short what, void *arg)
{
    struct pool *pool = arg;
    (void)fd, (void)what;
    context_woke(&pool->context);
    if (!pool->context.watch) {
        return;
    }
    health_compare(pool->servers, pool->server_count);
    for (size_t i = 0; i < pool->server_count; i++) {
        connections_watch(&pool->servers[i]);
    }
    pool_flush(pool);
}

static void init_context(struct pool_context *context, const struct pool_config *config,
                         struct event_base *base, struct now *now, struct metrics *metrics)
{
    bool is_cluster = config->type == POOL_COUCHBASE;
    *context = (struct pool_context){.config = config,
                                     .wire = is_cluster ? &wire_couchbase : &wire_memcached,
                                     .base = base,
                                     .now = now,
                                     .metrics = metrics,
                                     .watch = true};
    rng_init_system(&context->rng);
    TAILQ_INIT(&context->finished);
    TAILQ_INIT(&context->dirty);
    context->finish_timer = evtimer_new(base, on_finish_timer, context);
    CHECK(context->finish_timer != NULL);
}

static void on_resolved(evutil_socket_t fd, short what, void *arg)
{
    struct pool *pool = arg;
    uint64_t count;
    (void)what;
    context_woke(&pool->context);
    if (read(fd, &count, sizeof count) < 0) {
        return;
    }
    for (size_t i = 0; i < pool->server_count; i++) {
        connections_relocate(&pool->servers[i]);
    }
    if (pool->context.cluster != NULL) {
        cluster_relocate(pool->context.cluster);
    }
}

/* Hears of what the resolver decides, if that matters to one of the servers. */
static int watch_resolver(struct pool *pool, struct resolver *resolver,
                          char error[CONFIG_ERROR_MAX])
{
    bool matters = pool->context.cluster != NULL && resolver != NULL;
    for (size_t i = 0; i < pool->server_count; i++) {
        matters = matters || pool->servers[i].name != NULL;
    }
    if (!matters) {
        return 0;
    }
    pool->resolved_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (pool->resolved_fd < 0) {
        snprintf(error, CONFIG_ERROR_MAX, "pool %s: eventfd: %s", pool->context.config->name,
                 strerror(errno));
        return -1;
    }
    pool->resolved_event =
        event_new(pool->context.base, pool->resolved_fd, EV_READ | EV_PERSIST, on_resolved, pool);
    CHECK(pool->resolved_event != NULL && event_add(pool->resolved_event, NULL) == 0);
    pool->resolver = resolver;
    resolver_watch(resolver, pool->resolved_fd);
    return 0;
}

static void unwatch_resolver(struct pool *pool)
{
    if (pool->resolver != NULL) {
        resolver_unwatch(pool->resolver, pool->resolved_fd);
        event_free(pool->resolved_event);
    }
    if (pool->resolved_fd >= 0) {
        close(pool->resolved_fd);
    }
}

static int create_servers(struct pool *pool, struct resolver *resolver,
                          char error[CONFIG_ERROR_MAX])
{
    const struct pool_config *config = pool->context.config;
    char owner[TLS_OWNER_MAX];
    struct tls_files files = tls_files_of_pool(config, owner);
    pool->context.tls = config->tls ? tls_trust_take(&files, error) : NULL;
    if (config->tls && pool->context.tls == NULL) {
        return -1;
    }
    if (config->type == POOL_COUCHBASE) {
        return cluster_create(&pool->context, resolver, error) == NULL ? -1 : 0;
    }
    pool->shard = shard_create(config, error);
    if (pool->shard == NULL) {
        return -1;
    }
    pool->servers = calloc(config->server_count, sizeof *pool->servers);
    CHECK(pool->servers != NULL);
    for (size_t i = 0; i < config->server_count; i++) {
        if (connections_init(&pool->servers[i], &pool->context, &config->servers[i], resolver,
                             error) < 0) {
            return -1;
        }
        pool->server_count++;
    }
    return 0;
}

struct pool *pool_create(const struct pool_config *config, struct event_base *base, struct now *now,
                         struct metrics *metrics, struct resolver *resolver,
                         char error[CONFIG_ERROR_MAX])
{
    const struct timeval interval = {(time_t)config->watch_interval_s, 0};
    struct pool *pool = calloc(1, sizeof *pool);
    CHECK(pool != NULL);
    pool->resolved_fd = -1;
    init_context(&pool->context, config, base, now, metrics);
    pool->watch_timer = event_new(base, -1, EV_PERSIST, on_watch_timer, pool);
    CHECK(pool->watch_timer != NULL);
    CHECK(config->watch_interval_s == 0 || event_add(pool->watch_timer, &interval) == 0);
    if (create_servers(pool, resolver, error) < 0 || watch_resolver(pool, resolver, error) < 0) {
        pool_destroy(&pool);
    }
    return pool;
}

void pool_connect(struct pool *pool)
{
    if (pool->context.cluster != NULL) {
        cluster_connect(pool->context.cluster);
    }
    for (size_t i = 0; i < pool->server_count; i++) {
        connections_begin(&pool->servers[i]);
    }
}

void pool_destroy(struct pool **slot)
{
    struct pool *pool = *slot;
    *slot = NULL;
    if (pool == NULL) {
        return;
    }
    struct pool_context *context = &pool->context;
    context->closing = true;
    unwatch_resolver(pool);
    for (size_t i = 0; i < pool->server_count; i++) {
        connections_shutdown(&pool->servers[i]);
    }
    do {
        if (context->cluster != NULL) {
            cluster_shutdown(context->cluster);
        }
        server_deliver_finished(context);
    } while (!TAILQ_EMPTY(&context->finished) ||
             (context->cluster != NULL && cluster_deliver(context->cluster)));
    for (size_t i = 0; i < pool->server_count; i++) {
        connections_fini(&pool->servers[i]);
    }
    cluster_destroy(&context->cluster);
    CHECK(context->busy == 0);
    free(pool->servers);
    shard_destroy(&pool->shard);
    tls_trust_give(&context->tls);
    event_free(context->finish_timer);
    event_free(pool->watch_timer);
    free(pool);
}

/* server: that gets it, or NULL. */
static inline void begin(struct pool *pool, struct exchange *x, struct server *server)
{
    x->server = server;
    x->is_internal = false;
    x->failure = FAILURE_NONE;
    x->changes = be_changes(x->op.verb);
    pool->context.busy++;
}

static inline void submit(struct pool *pool, struct upstream *u, struct exchange *x)
{
    begin(pool, x, u->server);
    upstream_submit(u, x);
}

bool pool_withdraw(struct exchange *x)
{
    return x->server == NULL ? cluster_withdraw(x) : server_withdraw(x->server, x);
}

const struct be_caps *pool_caps_of(const struct exchange *x)
{
    return x->server != NULL && x->server->caps_known ? &x->server->caps : NULL;
}

void pool_submit(struct pool *pool, struct slice placement_key, struct exchange *x)
{
    if (pool->context.cluster != NULL) {
        /* A key's vBucket is its own: where lists are kept elsewhere, that is the key itself. */
        begin(pool, x, NULL);
        cluster_submit(pool->context.cluster, x);
        return;
    }
    struct server *server = &pool->servers[shard_index(pool->shard, placement_key)];
    submit(pool, connections_of_key(server, placement_key), x);
}

bool pool_lowest_version(const struct pool *pool, struct version *out)
{
    bool any = false;
    for (size_t i = 0; i < pool->server_count; i++) {
        struct version version;
        if (version_read(slice_of(pool->servers[i].version_text), &version) &&
            (!any || version_is_before(&version, out))) {
            *out = version;
            any = true;
        }
    }
    return any;
}

bool pool_find(const struct pool *pool, struct slice placement_key, struct pool_place *out)
{
    const struct server_config *server;
    out->vbucket = -1;
    if (pool->context.cluster != NULL) {
        const struct node *node = cluster_find(pool->context.cluster, placement_key, &out->vbucket);
        server = node == NULL ? NULL : node->server.config;
    } else {
        server = pool->servers[shard_index(pool->shard, placement_key)].config;
    }
    if (server != NULL) {
        (void)snprintf(out->server, sizeof out->server, "%s", server->name);
    }
    return server != NULL;
}

/* All servers have equally many connections. */
static size_t connections_each(const struct pool *pool)
{
    return pool->servers[0].upstream_count;
}

void pool_routes(const struct pool *pool, const struct slice *placement_keys, size_t count,
                 size_t *routes)
{
    shard_indexes(pool->shard, placement_keys, count, routes);
    for (size_t i = 0; connections_each(pool) > 1 && i < count; i++) {
        struct server *server = &pool->servers[routes[i]];
        const struct upstream *u = connections_of_key(server, placement_keys[i]);
        routes[i] = routes[i] * connections_each(pool) + (size_t)(u - server->upstreams);
    }
}

size_t pool_route_count(const struct pool *pool)
{
    return pool->server_count == 0 ? 0 : pool->server_count * connections_each(pool);
}

void pool_submit_on(struct pool *pool, size_t route, struct exchange *x)
{
    CHECK(route < pool_route_count(pool));
    struct server *server = &pool->servers[route / connections_each(pool)];
    submit(pool, &server->upstreams[route % connections_each(pool)], x);
}

void pool_submit_to(struct pool *pool, size_t server_index, struct exchange *x)
{
    CHECK(server_index < pool->server_count);
    submit(pool, &pool->servers[server_index].upstreams[0], x);
}

void pool_take_config(struct pool *pool)
{
    if (pool->context.cluster != NULL) {
        cluster_take_config(pool->context.cluster);
    }
}

void pool_submit_own(struct pool *pool, size_t server_index, struct exchange *x)
{
    if (pool->context.cluster != NULL) {
        pool_submit(pool, x->op.key, x);
        return;
    }
    CHECK(server_index < pool->server_count);
    struct upstream *u = &pool->servers[server_index].upstreams[0];
    begin(pool, x, u->server);
    pool->context.busy--; /* counts those of others */
    x->is_internal = true;
    upstream_submit(u, x);
}

size_t pool_server_count(const struct pool *pool)
{
    return pool->server_count;
}

void pool_flush(struct pool *pool)
{
    struct upstream_list *dirty = &pool->context.dirty;
    struct upstream *u;
    while ((u = TAILQ_FIRST(dirty)) != NULL) {
        TAILQ_REMOVE(dirty, u, dirty_link);
        u->is_dirty = false;
        upstream_flush(u);
    }
}

void pool_set_watch(struct pool *pool, bool watch)
{
    pool->context.watch = watch;
}

void pool_drain(struct pool *pool, const char *server_name, bool drained)
{
    for (size_t i = 0; i < pool->server_count; i++) {
        if (strcmp(pool->servers[i].config->name, server_name) == 0) {
            connections_drain(&pool->servers[i], drained);
        }
    }
}

size_t pool_stats(struct pool *pool, struct server_stats *out, size_t max)
{
    if (pool->context.cluster != NULL) {
        return cluster_stats(pool->context.cluster, out, max);
    }
    size_t n = pool->server_count < max ? pool->server_count : max;
    for (size_t i = 0; i < n; i++) {
        server_snapshot(&pool->servers[i], &out[i]);
    }
    return n;
}
