/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/preview.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/table.h"
#include "config/value.h"
#include "pool/locate/resolver.h"
#include "pool/placement.h"

/* Have all names been looked up? */
static bool all_decided(const struct config *config, struct resolver *resolver)
{
    for (size_t p = 0; p < config->pool_count; p++) {
        const struct pool_config *pool = &config->pools[p];
        for (size_t i = 0; i < pool->server_count; i++) {
            struct resolver_name *name = resolver_find(resolver, &pool->servers[i].endpoint);
            struct location location;
            uint64_t version;
            if (name != NULL && resolver_peek(name, &location, &version) == RESOLVER_WAIT) {
                return false;
            }
        }
    }
    return true;
}

static void wait_for_names(const struct config *config, struct resolver *resolver)
{
    struct pollfd decided = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN};
    uint64_t end_us = clock_now().mono_us + (uint64_t)config->resolve_timeout_ms * 1000, now_us;
    if (decided.fd < 0) {
        return;
    }
    resolver_watch(resolver, decided.fd);
    while (!all_decided(config, resolver) && (now_us = clock_now().mono_us) < end_us) {
        uint64_t count;
        if (poll(&decided, 1, (int)((end_us - now_us) / 1000) + 1) > 0) {
            (void)!read(decided.fd, &count, sizeof count);
        }
    }
    resolver_unwatch(resolver, decided.fd);
    close(decided.fd);
}

static void print_listen(const struct config *config, FILE *out)
{
    fprintf(out, "listens on ");
    for (size_t i = 0; i < config->listener_count; i++) {
        const struct endpoint_list *listen = &config->listeners[i].listen;
        for (size_t k = 0; k < listen->count; k++) {
            char name[ENDPOINT_TEXT_MAX];
            fprintf(out, "%s%s", i + k == 0 ? "" : ", ", endpoint_format(&listen->at[k], name));
        }
    }
    fprintf(out, ", %u thread%s\n", config->threads, config->threads == 1 ? "" : "s");
    fprintf(out, "logs to %s\n", config->log_file[0] == '\0' ? "standard error" : config->log_file);
}

/* "cache1:11211 (10.0.0.1)". Returns whether it is known where that is. */
static bool print_server(struct resolver *resolver, const struct server_config *server, FILE *out)
{
    struct resolver_name *name = resolver_find(resolver, &server->endpoint);
    struct location location;
    uint64_t version;
    char text[ADDRESS_TEXT_MAX];
    fprintf(out, "%s", server->name);
    if (name == NULL) {
        return true;
    }
    if (resolver_peek(name, &location, &version) == RESOLVER_KNOWN) {
        address_set_port(&location.address, 0);
        fprintf(out, " (%s)", address_text(&location.address, text));
        return true;
    }
    fprintf(out, " (NO ADDRESS NOW: down until its name has one)");
    return false;
}

static size_t print_pools(const struct config *config, struct resolver *resolver, FILE *out)
{
    size_t unknown = 0;
    for (size_t p = 0; p < config->pool_count; p++) {
        const struct pool_config *pool = &config->pools[p];
        fprintf(out, "pool %s%s: ", pool->name,
                p == config->pool_index ? ", which has the plain keys" : "");
        for (size_t i = 0; i < pool->server_count; i++) {
            fprintf(out, "%s", i == 0 ? "" : ", ");
            unknown += !print_server(resolver, &pool->servers[i], out);
            if (pool->servers[i].weight != 1) {
                fprintf(out, " with weight %u", pool->servers[i].weight);
            }
        }
        fprintf(out, "\n");
    }
    return unknown;
}

static void print_routes(const struct config *config, FILE *out)
{
    for (size_t n = 1; config->has_routes && n <= config->route_count; n++) {
        const struct route_config *route = &config->routes[n % config->route_count];
        char prefix[4 * CONFIG_NAME_MAX + 1];
        slice_escape(slice_make(route->prefix, route->prefix_len), prefix, sizeof prefix);
        fprintf(out, "plain keys %s%s: pool %s", route->prefix_len == 0 ? "of no route" : prefix,
                route->prefix_len == 0 ? "" : "...", config->pools[route->pool_index].name);
        if (route->failover_index != ROUTE_NONE) {
            fprintf(out, ", failover to %s", route->failover_name);
        }
        if (route->shadow_index != ROUTE_NONE) {
            fprintf(out, ", shadow %s", route->shadow);
        }
        fprintf(out, "\n");
    }
}

/* In the order in which a key looks for its prefix. */
static void print_lists(const struct config *config, FILE *out)
{
    const struct config_key *dialect = config_key_find(SECTION_LISTS, SLICE_LIT("dialect"));
    for (size_t n = 1; n <= config->list_count; n++) {
        const struct list_policy *policy = &config->lists[n % config->list_count];
        char prefix[CONFIG_PREFIX_TEXT_MAX];
        char *name = value_format(dialect, policy);
        config_prefix_text(policy, prefix);
        fprintf(out, "lists %s%s: dialect %s", policy->prefix_len == 0 ? "of other keys" : prefix,
                policy->prefix_len == 0 ? "" : "...", name);
        if (config->pool_count > 0) {
            fprintf(out, ", in pool %s", config->pools[policy->pool_index].name);
        }
        fprintf(out, "%s%s\n",
                policy->migrate == MIGRATE_NATIVE ? ", being moved to the native layout" : "",
                policy->bridge != BRIDGE_NO ? ", also by memcached's own verbs" : "");
        free(name);
    }
}

static size_t look_up_pools(const struct config *config, FILE *out)
{
    char error[CONFIG_ERROR_MAX];
    struct resolver *resolver = resolver_create(config, error);
    if (resolver == NULL) {
        fprintf(out, "names cannot be looked up: %s\n", error);
    } else {
        wait_for_names(config, resolver);
    }
    size_t unknown = print_pools(config, resolver, out);
    resolver_destroy(&resolver);
    return unknown;
}

size_t preview_print(const struct config *config, FILE *out)
{
    size_t unknown = 0;
    print_listen(config, out);
    if (config->pool_count == 0) {
        fprintf(out,
                "starts %s with %u MB of its own: lists and values in it end with the daemon\n",
                config->embedded_memcached, config->embedded_memory_mb);
    } else {
        unknown = look_up_pools(config, out);
    }
    print_routes(config, out);
    print_lists(config, out);
    return unknown;
}

int preview_probe(const struct config *config, FILE *out)
{
    char error[CONFIG_ERROR_MAX];
    bool fits = true, asked = true;
    struct resolver *resolver = resolver_create(config, error);
    for (size_t p = 0; p < config->pool_count; p++) {
        struct placement_found found;
        char text[PLACEMENT_TEXT_MAX];
        if (placement_matters(config, p, false)) {
            placement_look(config, p, resolver, NULL, &found);
            fprintf(out, "%s\n", placement_text(&config->pools[p], &found, text));
            fits = fits && found.best == found.fitting;
            asked = asked && found.silent == 0;
        }
    }
    resolver_destroy(&resolver);
    return !fits ? EX_CONFIG : !asked ? EX_UNAVAILABLE : EX_OK;
}
