/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flush.h"

#include <string.h>

#include "config/place.h"
#include "config/table.h"

_Static_assert(CONFIG_POOLS_MAX <= 64, "flush_pools has a bit for each pool");

static uint64_t bit(uint32_t pool_index)
{
    return pool_index == ROUTE_NONE ? 0 : (uint64_t)1 << pool_index;
}

/* The pool, and the one that its keys and lists move to. */
static uint64_t with_next(const struct config *config, uint32_t pool_index)
{
    const struct pool_config *pool = &config->pools[pool_index];
    return bit(pool_index) | (pool->next_name[0] == '\0' ? 0 : bit(pool->next_index));
}

static uint64_t pools_of_plain_keys(const struct config *config)
{
    uint64_t pools = 0;
    for (size_t i = 0; config->pool_count > 0 && i < config->route_count; i++) {
        const struct route_config *route = &config->routes[i];
        pools |= with_next(config, route->pool_index) | bit(route->failover_index) |
                 bit(route->shadow_index);
    }
    return pools;
}

static uint64_t pools_of_lists(const struct config *config)
{
    uint64_t pools = 0;
    for (size_t i = 0; i < config->list_count; i++) {
        pools |= with_next(config, config->lists[i].pool_index);
    }
    return pools;
}

void flush_find_pools(struct config *config)
{
    bool keeps = config->allow_flush_all == FLUSH_ALL_KEEP_LISTS;
    config->flush_pools = keeps ? pools_of_plain_keys(config) : UINT64_MAX;
}

/* A server of one pool that is one of the other as well, or NULL. */
static const char *common_server(const struct pool_config *a, const struct pool_config *b)
{
    for (size_t i = 0; i < a->server_count; i++) {
        for (size_t k = 0; k < b->server_count; k++) {
            if (strcmp(a->servers[i].name, b->servers[k].name) == 0) {
                return a->servers[i].name;
            }
        }
    }
    return NULL;
}

static int check_lists_stay(const struct config *config, const struct place *place)
{
    uint64_t pools = pools_of_lists(config);
    for (uint32_t p = 0; p < config->pool_count; p++) {
        for (uint32_t l = 0; l < config->pool_count; l++) {
            bool meet = (config->flush_pools & bit(p)) != 0 && (pools & bit(l)) != 0;
            const struct pool_config *plain = &config->pools[p], *lists = &config->pools[l];
            const char *server = meet ? common_server(plain, lists) : NULL;
            if (server != NULL) {
                return refuse(place,
                              "allow_flush_all = keep_lists: server %s has plain keys (pool %s) "
                              "and lists (pool %s), and would lose both; expected servers of "
                              "their own for lists",
                              server, plain->name, lists->name);
            }
        }
    }
    return 0;
}

int flush_check(struct config *config, char error[CONFIG_ERROR_MAX])
{
    const struct config_key *key = config_key_known(SECTION_PROXY, "allow_flush_all");
    const struct place proxy = {config, 0, "[proxy]", error};
    struct place place = place_of_keys(&proxy, config->given_line, key, NULL);
    enum flush_all allowed = config->allow_flush_all;
    bool flushes = allowed == FLUSH_ALL_YES || allowed == FLUSH_ALL_KEEP_LISTS;
    flush_find_pools(config);
    for (uint32_t i = 0; flushes && i < config->pool_count; i++) {
        const struct pool_config *pool = &config->pools[i];
        if ((config->flush_pools & bit(i)) != 0 && pool->type != POOL_MEMCACHED) {
            return refuse(&place,
                          "allow_flush_all = %s: pool %s is of type %s, which has no flush_all; "
                          "expected no",
                          key->words[allowed], pool->name, config_type_word(pool->type));
        }
    }
    bool keeps = allowed == FLUSH_ALL_KEEP_LISTS && config->pool_count > 0;
    return keeps ? check_lists_stay(config, &place) : 0;
}
