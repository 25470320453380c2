/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last step of reading a configuration: what single values cannot show. Combinations that could
 * only disappoint later are refused here, with the reason.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/bridge.h"
#include "config/config.h"
#include "config/dialect.h"
#include "config/endpoint.h"
#include "config/flush.h"
#include "config/need.h"
#include "config/pool_type.h"
#include "config/prefix.h"
#include "config/route.h"
#include "config/text.h"
#include "config/value.h"

/* What an entry of a log or sublist takes besides the item. */
#define ENTRY_BYTES 16
/* memcached's own default for -I. */
#define ITEM_BYTES_STANDARD (1U << 20)

static bool is_given(const struct listener_config *listener, const char *key)
{
    size_t index = config_key_index(config_key_known(SECTION_LISTENER, key));
    return listener->given_line[index] != CONFIG_GIVEN_NOT;
}

static void drop_inherited(const struct listener_config *listener, const char *key, char *text)
{
    if (!is_given(listener, key)) {
        text[0] = '\0';
    }
}

/* What the section does not set is as in the first of its kind, but for where clients connect. */
static void inherit_section(enum config_section kind, void *values, const uint32_t *given_line,
                            const void *first)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t k = 0; k < count; k++) {
        if (keys[k].section == kind && keys[k].type != TYPE_LISTEN &&
            given_line[k] == CONFIG_GIVEN_NOT) {
            value_copy(&keys[k], values, first);
        }
    }
}

static void inherit(struct config *config)
{
    for (size_t i = 1; i < config->list_count; i++) {
        struct list_policy *policy = &config->lists[i];
        inherit_section(SECTION_LISTS, policy, policy->given_line, &config->lists[0]);
    }
    for (size_t i = 1; i < config->route_count; i++) {
        struct route_config *route = &config->routes[i];
        inherit_section(SECTION_ROUTE, route, route->given_line, &config->routes[0]);
    }
    for (size_t i = 1; i < config->listener_count; i++) {
        struct listener_config *listener = &config->listeners[i];
        inherit_section(SECTION_LISTENER, listener, listener->given_line, &config->listeners[0]);
        if (listener->tls_cert[0] == '\0') {
            drop_inherited(listener, "tls_key", listener->tls_key);
            drop_inherited(listener, "tls_client_ca", listener->tls_client_ca);
        }
    }
}

static int longer_first(struct slice left, struct slice right)
{
    if (left.len != right.len) {
        return left.len > right.len ? -1 : 1;
    }
    return memcmp(left.p, right.p, left.len);
}

static int longer_prefix_first(const void *a, const void *b)
{
    const struct list_policy *left = a, *right = b;
    return left->anywhere != right->anywhere
               ? left->anywhere - right->anywhere
               : longer_first(slice_of(left->prefix), slice_of(right->prefix));
}

static int longer_route_first(const void *a, const void *b)
{
    const struct route_config *left = a, *right = b;
    return longer_first(slice_of(left->prefix), slice_of(right->prefix));
}

/* The pool that has a server of that name, or NULL. */
static const struct pool_config *pool_of_server(const struct config *config, const char *name)
{
    for (size_t p = 0; p < config->pool_count; p++) {
        for (size_t s = 0; s < config->pools[p].server_count; s++) {
            if (strcmp(config->pools[p].servers[s].name, name) == 0) {
                return &config->pools[p];
            }
        }
    }
    return NULL;
}

/* The listener that has this address, of so many of the first ones, or NULL. */
static const struct listener_config *listener_at(const struct config *config, size_t count,
                                                 const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const struct endpoint_list *listen = &config->listeners[i].listen;
        for (size_t k = 0; k < listen->count; k++) {
            char other[ENDPOINT_TEXT_MAX];
            if (strcmp(name, endpoint_format(&listen->at[k], other)) == 0) {
                return &config->listeners[i];
            }
        }
    }
    return NULL;
}

/* Can only clients of this machine connect? A name may be any machine's. */
static bool is_local(const struct endpoint *endpoint)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (endpoint->port == 0 || strcmp(endpoint->host, "localhost") == 0) {
        return true;
    }
    if (inet_pton(AF_INET, endpoint->host, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return inet_pton(AF_INET6, endpoint->host, &v6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&v6) ||
            (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET));
}

static int check_access(const struct listener_config *listener, const struct place *place)
{
    bool is_open =
        !listener->insecure && listener->auth_file[0] == '\0' && listener->tls_cert[0] == '\0';
    for (size_t i = 0; is_open && i < listener->listen.count; i++) {
        if (!is_local(&listener->listen.at[i])) {
            char name[ENDPOINT_TEXT_MAX];
            return refuse(place,
                          "listen %s: clients of other machines could do anything; expected "
                          "auth_file, tls_cert and tls_key, or insecure = yes",
                          endpoint_format(&listener->listen.at[i], name));
        }
    }
    return 0;
}

static int check_listener(const struct config *config, size_t index, char *error)
{
    const struct listener_config *listener = &config->listeners[index];
    char section[CONFIG_LISTENER_TEXT_MAX], other[CONFIG_LISTENER_TEXT_MAX];
    struct place place = {config, listener->line, config_listener_text(listener, section), error};
    if (listener->listen.count == 0) {
        return refuse(&place, "no listen; expected listen = host:port, ...");
    }
    if ((listener->tls_cert[0] == '\0') != (listener->tls_key[0] == '\0')) {
        bool has_key = listener->tls_key[0] != '\0';
        return refuse(&place, "%s: without %s; expected both", has_key ? "tls_key" : "tls_cert",
                      has_key ? "tls_cert" : "tls_key");
    }
    if (listener->tls_client_ca[0] != '\0' && listener->tls_cert[0] == '\0') {
        return refuse(&place, "tls_client_ca: without tls_cert; expected both");
    }
    for (size_t i = 0; i < listener->listen.count; i++) {
        char name[ENDPOINT_TEXT_MAX];
        endpoint_format(&listener->listen.at[i], name);
        const struct pool_config *pool = pool_of_server(config, name);
        if (pool != NULL) {
            return refuse(&place,
                          "listen %s is a server of pool %s too; the proxy would be its own client",
                          name, pool->name);
        }
        const struct listener_config *twin = listener_at(config, index, name);
        if (twin != NULL) {
            return refuse(&place, "listen %s is in %s too; expected another one", name,
                          config_listener_text(twin, other));
        }
    }
    return check_access(listener, &place);
}

static int check_admin(struct config *config, char *error)
{
    struct place place = {config, 0, "[admin]", error};
    for (size_t i = 0; i < config->admin.listen.count; i++) {
        char name[ENDPOINT_TEXT_MAX];
        endpoint_format(&config->admin.listen.at[i], name);
        if (listener_at(config, config->listener_count, name) != NULL) {
            return refuse(&place, "listen %s is where clients connect; expected another one", name);
        }
        const struct pool_config *pool = pool_of_server(config, name);
        if (pool != NULL) {
            return refuse(&place, "listen %s is a server of pool %s; expected another one", name,
                          pool->name);
        }
    }
    return 0;
}

/* memcached takes no item size above half its memory. */
static int check_embedded(const struct config *config, const struct place *place)
{
    uint64_t half = (uint64_t)config->embedded_memory_mb << 19;
    if (config->max_value_bytes > ITEM_BYTES_STANDARD && config->max_value_bytes > half) {
        return refuse(place,
                      "max_value_bytes (%" PRIu32
                      ") is more than half of embedded_memory_mb (%" PRIu32
                      " MB), which memcached does not take",
                      config->max_value_bytes, config->embedded_memory_mb);
    }
    return 0;
}

/* A resolver with a name would need a resolver. */
static int check_resolver(const struct config *config, const struct place *place)
{
    struct slice rest = slice_of(config->resolver), item;
    bool more = rest.len > 0;
    while (text_next_item(&rest, &more, &item)) {
        struct endpoint endpoint;
        struct in6_addr address;
        char why[CONFIG_ERROR_MAX], name[ENDPOINT_TEXT_MAX];
        if (endpoint_parse(item, DNS_PORT, &endpoint, why) != 0) {
            return refuse(place, "resolver: %s", why);
        }
        if (endpoint.port == 0 || (inet_pton(AF_INET, endpoint.host, &address) != 1 &&
                                   inet_pton(AF_INET6, endpoint.host, &address) != 1)) {
            return refuse(place,
                          "resolver: '%s' is no address; expected IP, IP:port or [IPv6]:port",
                          endpoint_format(&endpoint, name));
        }
    }
    return 0;
}

static int check_proxy(struct config *config, char *error)
{
    struct place place = {config, 0, "[proxy]", error};
    if (config->max_connections < config->threads) {
        return refuse(&place,
                      "max_connections (%" PRIu32 ") must be at least threads (%" PRIu32 ")",
                      config->max_connections, config->threads);
    }
    if (config->client_hard_bytes <= config->client_output_bytes) {
        return refuse(&place,
                      "client_hard_bytes (%" PRIu64 ") must be above client_output_bytes (%" PRIu32
                      "), or clients are closed before they are slowed down",
                      config->client_hard_bytes, config->client_output_bytes);
    }
    if (config->client_hard_bytes <= config->max_value_bytes) {
        return refuse(&place,
                      "client_hard_bytes (%" PRIu64 ") must be above max_value_bytes (%" PRIu32
                      "), or no client could read its own value",
                      config->client_hard_bytes, config->max_value_bytes);
    }
    if (config->memory_limit_bytes < config->client_hard_bytes) {
        return refuse(&place,
                      "memory_limit_bytes (%" PRIu64
                      ") must not be below client_hard_bytes (%" PRIu64
                      "), or clients are closed for what they may leave unread",
                      config->memory_limit_bytes, config->client_hard_bytes);
    }
    if (config->memory_limit_bytes / 4 < config->max_value_bytes) {
        return refuse(&place,
                      "memory_limit_bytes (%" PRIu64
                      ") must be at least four times max_value_bytes (%" PRIu32
                      "), or clients are closed for one value each",
                      config->memory_limit_bytes, config->max_value_bytes);
    }
    if (config->pool_name[0] == '\0') {
        config->pool_index = 0;
    } else if (!place_pool(config, config->pool_name, &config->pool_index)) {
        return refuse_pool(&place, "pool", config->pool_name);
    }
    if (check_resolver(config, &place) != 0) {
        return -1;
    }
    if (config->pool_count == 0 && check_embedded(config, &place) != 0) {
        return -1;
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        if (check_listener(config, i, error) != 0) {
            return -1;
        }
    }
    return check_admin(config, error);
}

static int check_pool(const struct config *config, struct pool_config *pool, char *error)
{
    char section[CONFIG_NAME_MAX + 16];
    struct place place = {config, pool->line, section, error};
    (void)snprintf(section, sizeof section, "[pool %s]", pool->name);
    if (pool->server_count == 0) {
        return refuse(&place, "no servers; expected servers = host:port, ...");
    }
    if (pool_type_check(pool, &place) != 0) {
        return -1;
    }
    if (pool->retry_min_ms > pool->retry_max_ms) {
        return refuse(&place,
                      "retry_min_ms (%" PRIu32 ") must not be above retry_max_ms (%" PRIu32 ")",
                      pool->retry_min_ms, pool->retry_max_ms);
    }
    for (size_t i = 0; i < pool->server_count; i++) {
        if (pool->servers[i].weight != 1 && pool->distribution != DISTRIBUTION_KETAMA_WEIGHTED) {
            return refuse(&place,
                          "%s has a weight, which only distribution = ketama_weighted heeds",
                          pool->servers[i].name);
        }
    }
    return 0;
}

static int check_memory(const struct list_policy *policy, const struct place *place, bool sublists)
{
    /* A log of the shortest items takes 17 times its length in memory, and half of what is allowed
     * goes to the runs that wait to be merged: see plan.c. */
    uint64_t fold_min = 64 * (uint64_t)policy->log_hard_limit_bytes +
                        (sublists ? 4 * (uint64_t)policy->sublist_limit_bytes : 0);
    if (policy->fold_memory_bytes < fold_min) {
        return refuse(place,
                      "fold_memory_bytes (%" PRIu64
                      ") must be at least 64 times log_hard_limit_bytes%s (%" PRIu64
                      "), or short items cannot be merged",
                      policy->fold_memory_bytes,
                      sublists ? " and four times sublist_limit_bytes" : "", fold_min);
    }
    if (policy->max_answer_bytes < policy->max_item_bytes) {
        return refuse(place,
                      "max_answer_bytes (%" PRIu64 ") must hold an item of max_item_bytes (%" PRIu32
                      ")",
                      policy->max_answer_bytes, policy->max_item_bytes);
    }
    return 0;
}

static int check_list_sizes(const struct list_policy *policy, const struct place *place)
{
    uint32_t entry_bytes = policy->max_item_bytes + ENTRY_BYTES;
    if (policy->log_hard_limit_bytes / 2 < policy->log_limit_bytes) {
        return refuse(place,
                      "log_hard_limit_bytes (%" PRIu32
                      ") must be at least twice log_limit_bytes (%" PRIu32
                      "), or changes are refused while a log is folded",
                      policy->log_hard_limit_bytes, policy->log_limit_bytes);
    }
    if (entry_bytes > policy->log_limit_bytes) {
        return refuse(place,
                      "an item of max_item_bytes (%" PRIu32
                      ") and %d more must fit log_limit_bytes (%" PRIu32 ")",
                      policy->max_item_bytes, ENTRY_BYTES, policy->log_limit_bytes);
    }
    bool sublists = dialect_uses_named(policy, "sublist_limit_bytes");
    if (sublists && entry_bytes > policy->sublist_limit_bytes) {
        return refuse(place,
                      "an item of max_item_bytes (%" PRIu32
                      ") and %d more must fit sublist_limit_bytes (%" PRIu32 ")",
                      policy->max_item_bytes, ENTRY_BYTES, policy->sublist_limit_bytes);
    }
    if (dialect_uses_named(policy, "cache_bytes") && policy->cache_bytes != 0 &&
        policy->cache_bytes < policy->sublist_limit_bytes) {
        return refuse(place,
                      "cache_bytes (%" PRIu64
                      ") must hold one sublist of sublist_limit_bytes (%" PRIu32 "), or be 0",
                      policy->cache_bytes, policy->sublist_limit_bytes);
    }
    return check_memory(policy, place, sublists);
}

/* Says what to write instead; what no value helps is left out. */
static int refuse_cap(const struct list_policy *policy, const struct place *place)
{
    enum { HARD_LIMIT_MAX = 900000 }; /* as config/table.c has it */
    char items[80], item[48] = "", limit[64] = "";
    uint64_t entry_bytes = policy->max_item_bytes + ENTRY_BYTES;
    uint64_t room = policy->log_hard_limit_bytes / 4;
    uint64_t each = room / policy->max_items, all = 4 * policy->max_items * entry_bytes;
    (void)snprintf(items, sizeof items, "max_items = %" PRIu64, room / entry_bytes);
    if (room < entry_bytes) { /* 0 would be any number */
        (void)snprintf(items, sizeof items, "max_items = 1 and max_item_bytes = %" PRIu64,
                       room - ENTRY_BYTES);
    }
    if (each > ENTRY_BYTES) {
        (void)snprintf(item, sizeof item, ", or max_item_bytes = %" PRIu64, each - ENTRY_BYTES);
    }
    if (all <= HARD_LIMIT_MAX) {
        (void)snprintf(limit, sizeof limit, ", or log_hard_limit_bytes = %" PRIu64, all);
    }
    return refuse(place,
                  "max_items (%" PRIu32 ") items of max_item_bytes (%" PRIu32
                  ") and %d more must fit a quarter of log_hard_limit_bytes (%" PRIu32
                  "); expected %s%s%s",
                  policy->max_items, policy->max_item_bytes, ENTRY_BYTES,
                  policy->log_hard_limit_bytes, items, item, limit);
}

/* A capped list is all in its head. A fold waits until the log is at least twice as long as what is
 * in it, and others append meanwhile: a quarter of the hard limit is for items. */
static int check_cap(const struct list_policy *policy, const struct place *place)
{
    struct place exact = place_of_keys(place, policy->given_line,
                                       config_key_known(SECTION_LISTS, "max_items"), NULL);
    uint64_t entry_bytes = policy->max_item_bytes + ENTRY_BYTES;
    uint64_t room = policy->log_hard_limit_bytes / 4;
    if (policy->dialect != DIALECT_NATIVE || policy->max_items == 0) {
        return 0;
    }
    if (policy->max_items * entry_bytes > room) {
        return refuse_cap(policy, &exact);
    }
    return 0;
}

static struct prefix_name name_of(const struct list_policy *policy)
{
    return (struct prefix_name){slice_make(policy->prefix, policy->prefix_len), policy->anywhere};
}

/* Is it plain of each key whether it has this prefix, or another one that fits it as well? */
static int check_crossing(const struct config *config, const struct list_policy *policy,
                          const struct place *place)
{
    struct prefix_name name = name_of(policy);
    for (size_t i = 1; policy->anywhere && i < config->list_count; i++) {
        struct prefix_name other = name_of(&config->lists[i]);
        char text[CONFIG_PREFIX_TEXT_MAX];
        if (&config->lists[i] != policy && prefix_crosses(&name, &other)) {
            return refuse(place,
                          "a key may hold this and the prefix of [lists %s] so that they share "
                          "bytes, and which of the two holds is not plain; expected others",
                          config_prefix_text(&config->lists[i], text));
        }
    }
    return 0;
}

static int check_lists(const struct config *config, struct list_policy *policy, char *error)
{
    char section[CONFIG_PREFIX_TEXT_MAX + 16] = "[lists]";
    char prefix[CONFIG_PREFIX_TEXT_MAX];
    struct place place = {config, policy->line, section, error};
    if (policy->prefix_len > 0) {
        (void)snprintf(section, sizeof section, "[lists %s]", config_prefix_text(policy, prefix));
    }
    if (check_crossing(config, policy, &place) != 0) {
        return -1;
    }
    if (policy->pool_name[0] == '\0') {
        policy->pool_index = config->pool_index;
    } else if (!place_pool(config, policy->pool_name, &policy->pool_index)) {
        return refuse_pool(&place, "pool", policy->pool_name);
    }
    if (pool_type_finish_lists(config, policy, &place) != 0 || dialect_check(policy, &place) != 0 ||
        bridge_check(policy, &place) != 0 || need_check(config, policy, &place) != 0 ||
        check_list_sizes(policy, &place) != 0 || check_cap(policy, &place) != 0) {
        return -1;
    }
    if (policy->max_answer_bytes > config->client_hard_bytes) {
        return refuse(&place,
                      "max_answer_bytes (%" PRIu64
                      ") must not be above client_hard_bytes of [proxy] (%" PRIu64
                      "), or clients are closed while they read",
                      policy->max_answer_bytes, config->client_hard_bytes);
    }
    if (policy->max_item_bytes > config->max_value_bytes) {
        return refuse(&place,
                      "max_item_bytes (%" PRIu32
                      ") must not be above max_value_bytes of [proxy] (%" PRIu32
                      "), or laddb cannot send such an item",
                      policy->max_item_bytes, config->max_value_bytes);
    }
    return 0;
}

/* Of heads the log may take half: see lists.c. */
static void want_item_bytes(struct config *config, const struct list_policy *policy)
{
    if (config->pool_count == 0 ||
        (policy->dialect != DIALECT_NATIVE && policy->migrate != MIGRATE_NATIVE)) {
        return;
    }
    uint64_t *wanted = &config->pools[policy->pool_index].item_bytes_wanted;
    uint64_t head = 2 * (uint64_t)policy->log_hard_limit_bytes;
    uint64_t value = head > policy->sublist_limit_bytes ? head : policy->sublist_limit_bytes;
    if (*wanted < value + CONFIG_ITEM_REST_BYTES) {
        *wanted = value + CONFIG_ITEM_REST_BYTES;
    }
}

/* In the order in which a key looks for its prefix; the maps find the places. */
static void sort_prefixes(struct config *config)
{
    struct prefix_name
        names[CONFIG_LISTS_MAX > CONFIG_ROUTES_MAX ? CONFIG_LISTS_MAX : CONFIG_ROUTES_MAX];
    qsort(config->lists + 1, config->list_count - 1, sizeof *config->lists, longer_prefix_first);
    for (size_t i = 0; i < config->list_count; i++) {
        names[i] = name_of(&config->lists[i]);
    }
    prefix_map_make(&config->list_map, names, config->list_count);
    qsort(config->routes + 1, config->route_count - 1, sizeof *config->routes, longer_route_first);
    for (size_t i = 0; i < config->route_count; i++) {
        const struct route_config *route = &config->routes[i];
        names[i] = (struct prefix_name){slice_make(route->prefix, route->prefix_len), false};
    }
    prefix_map_make(&config->route_map, names, config->route_count);
}

/* Lists move from pools of memcacheds to others, which have no lists of their own. */
static int check_next(const struct config *config, struct pool_config *pool,
                      char error[CONFIG_ERROR_MAX])
{
    char section[CONFIG_NAME_MAX + 16];
    (void)snprintf(section, sizeof section, "[pool %s]", pool->name);
    struct place place = {config, pool->line, section, error};
    if (pool->next_name[0] == '\0') {
        return pool->step != STEP_STAY ? refuse(&place, "step says nothing without next")
               : pool->dead[0] != '\0' ? refuse(&place, "dead says nothing without next")
                                       : 0;
    }
    if (!place_pool(config, pool->next_name, &pool->next_index)) {
        return refuse_pool(&place, "next", pool->next_name);
    }
    pool->step = pool->step == STEP_STAY ? STEP_LEARN : pool->step;
    if (pool->gate_s == 0) {
        return refuse(&place, "next needs a gate: gate_s must not be 0");
    }
    const struct pool_config *next = &config->pools[pool->next_index];
    if (next == pool || next->type != POOL_MEMCACHED || next->next_name[0] != '\0') {
        return refuse(&place, "next names another pool of memcacheds, which has no next itself");
    }
    if (pool->dead[0] != '\0' &&
        (!config_has_server(pool, pool->dead) || config_has_server(next, pool->dead))) {
        return refuse(
            &place,
            "dead: %s; expected one of the servers, with its port, which next does not have",
            pool->dead);
    }
    for (size_t i = 0; i < config->list_count; i++) {
        const struct list_policy *policy = &config->lists[i];
        bool here = &config->pools[policy->pool_index] == pool;
        if (&config->pools[policy->pool_index] == next) {
            return refuse(&place, "next must have no lists of its own yet");
        }
        if (here && policy->dialect != DIALECT_NATIVE) {
            return refuse(&place, "lists of dialects do not move to next yet");
        }
        if (here && policy->placement != PLACEMENT_HEAD) {
            return refuse(&place, "lists with placement = spread do not move to next");
        }
    }
    return 0;
}

int config_finish(struct config *config, char error[CONFIG_ERROR_MAX])
{
    inherit(config);
    sort_prefixes(config);
    for (size_t i = 0; i < config->pool_count; i++) {
        config->pools[i].item_bytes_wanted = 0;
        if (check_pool(config, &config->pools[i], error) != 0) {
            return -1;
        }
    }
    pool_type_finish_proxy(config);
    if (check_proxy(config, error) != 0) {
        return -1;
    }
    config->has_bridge = false;
    for (size_t i = 0; i < config->list_count; i++) {
        config->lists[i].index = (uint32_t)i;
        config->has_bridge = config->has_bridge || config->lists[i].bridge != BRIDGE_NO;
        if (check_lists(config, &config->lists[i], error) != 0) {
            return -1;
        }
        want_item_bytes(config, &config->lists[i]);
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        if (check_next(config, &config->pools[i], error) != 0) {
            return -1;
        }
    }
    return route_check(config, error) != 0 ? -1 : flush_check(config, error);
}
