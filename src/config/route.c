/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/route.h"

#include <stdio.h>

#include "config/place.h"
#include "config/table.h"

/* Digits behind the point of a share. */
#define SHARE_DIGITS 4

/* Where the section, or [route] for it, sets the key. */
static struct place place_of(const struct place *section, const struct route_config *route,
                             const char *name)
{
    const struct config_key *key = config_key_known(SECTION_ROUTE, name);
    const uint32_t *given_line = section->config->routes[0].given_line;
    struct place inherited = place_of_keys(section, given_line, key, NULL);
    return place_of_keys(&inherited, route->given_line, key, NULL);
}

/* "12.5" as so many of ROUTE_SHARE_WHOLE; false: it is no number from 0 to 100, or has too many
 * digits. */
static bool read_percent(struct slice text, uint32_t *share)
{
    const char *point = text.len == 0 ? NULL : memchr(text.p, '.', text.len);
    struct slice rest = text;
    struct slice whole = slice_take(&rest, point == NULL ? text.len : (size_t)(point - text.p));
    uint64_t value, part = 0;
    if (!slice_to_u64(whole, &value) || value > 100) {
        return false;
    }
    if (point != NULL) {
        (void)slice_take(&rest, 1);
        if (rest.len > SHARE_DIGITS || !slice_to_u64(rest, &part)) {
            return false;
        }
    }
    for (size_t i = rest.len; i < SHARE_DIGITS; i++) {
        part *= 10;
    }
    value = value * (ROUTE_SHARE_WHOLE / 100) + part;
    *share = (uint32_t)value;
    return value <= ROUTE_SHARE_WHOLE;
}

/* Takes POOL:SHARE% apart. */
static bool read_shadow(const char *text, char pool[CONFIG_NAME_MAX + 1], uint32_t *share)
{
    const char *colon = strrchr(text, ':');
    size_t len = strlen(text);
    if (colon == NULL || text[len - 1] != '%') {
        return false;
    }
    (void)snprintf(pool, CONFIG_NAME_MAX + 1, "%.*s", (int)(colon - text), text);
    return read_percent(slice_make(colon + 1, (size_t)(text + len - 1 - colon - 1)), share);
}

/* A pool that is named beside the first one. */
static int check_other_pool(const struct route_config *route, const struct place *place,
                            const char *key, const char *name, uint32_t *index)
{
    const struct config *config = place->config;
    if (!place_pool(config, name, index)) {
        return refuse_pool(place, key, name);
    }
    const struct pool_config *first = &config->pools[route->pool_index];
    const struct pool_config *other = &config->pools[*index];
    if (other == first) {
        return refuse(place, "%s: keys of this route go to pool %s already; expected another pool",
                      key, name);
    }
    if (other->type != first->type) {
        return refuse(place, "%s: pool %s is of type %s, and pool %s of type %s; expected one type",
                      key, name, config_type_word(other->type), first->name,
                      config_type_word(first->type));
    }
    return 0;
}

static int check_failover(struct route_config *route, const struct place *section)
{
    struct place place = place_of(section, route, "failover");
    return route->failover_name[0] == '\0'
               ? 0
               : check_other_pool(route, &place, "failover", route->failover_name,
                                  &route->failover_index);
}

static int check_shadow(struct route_config *route, const struct place *section)
{
    char pool[CONFIG_NAME_MAX + 1];
    struct place place = place_of(section, route, "shadow");
    if (route->shadow[0] == '\0') {
        return 0;
    }
    if (!read_shadow(route->shadow, pool, &route->shadow_share) || route->shadow_share == 0) {
        return refuse(&place,
                      "shadow: '%s' is no pool with a share of its keys; expected POOL:SHARE%%, "
                      "SHARE from 0.0001 to 100",
                      route->shadow);
    }
    return check_other_pool(route, &place, "shadow", pool, &route->shadow_index);
}

static int check_pool(const struct config *config, struct route_config *route,
                      const struct place *section)
{
    struct place place = place_of(section, route, "pool");
    route->pool_index = config->pool_index;
    if (route->pool_name[0] == '\0') {
        return 0;
    }
    if (route->prefix_len == 0) {
        return refuse(&place, "pool: expected it in [proxy], whose pool has all other keys");
    }
    return place_pool(config, route->pool_name, &route->pool_index)
               ? 0
               : refuse_pool(&place, "pool", route->pool_name);
}

/* A setting of the section that would change nothing; in [route] it may stand for the others. */
static int check_use(const struct route_config *route, const struct place *section,
                     const char *name, const char *needs, bool is_used)
{
    size_t key = config_key_index(config_key_known(SECTION_ROUTE, name));
    struct place place = place_of(section, route, name);
    if (route->given_line[key] == CONFIG_GIVEN_NOT || is_used || route->prefix_len == 0) {
        return 0;
    }
    return refuse(&place, "%s: without %s; expected both", name, needs);
}

/* Plain keys of a pool that moves go to two pools already, and its next has none of its own. */
static int check_moves(const struct config *config, struct route_config *route,
                       const struct place *section)
{
    const struct pool_config *pool = &config->pools[route->pool_index];
    struct place place = place_of(section, route, "failover");
    if (pool->next_name[0] != '\0' && route->failover_index != ROUTE_NONE) {
        return refuse(&place, "failover: pool %s has next, where its keys go; expected one of both",
                      pool->name);
    }
    place = place_of(section, route, "shadow");
    if (pool->next_name[0] != '\0' && route->shadow_index != ROUTE_NONE) {
        return refuse(&place, "shadow: pool %s has next, where its keys go; expected one of both",
                      pool->name);
    }
    for (uint32_t i = 0; i < config->pool_count; i++) {
        const struct pool_config *from = &config->pools[i];
        if (from->next_name[0] != '\0' && route_reaches(route, from->next_index)) {
            return refuse(section,
                          "pool %s is the next of pool %s, and must have no plain keys of its own "
                          "yet",
                          config->pools[from->next_index].name, from->name);
        }
    }
    route->moves = pool->step != STEP_STAY;
    return 0;
}

static int check_one(const struct config *config, struct route_config *route, char *error)
{
    char section[CONFIG_NAME_MAX * 4 + 16] = "[route]", prefix[CONFIG_PREFIX_TEXT_MAX];
    struct slice bytes = slice_make(route->prefix, route->prefix_len);
    struct place place = {config, route->line, section, error};
    if (bytes.len > 0) {
        (void)snprintf(section, sizeof section, "[route %s]",
                       slice_escape(bytes, prefix, sizeof prefix));
    }
    const struct list_policy *lists = config_list_policy(config, bytes);
    if (route->line != 0 && lists->bridge != BRIDGE_NO) {
        return refuse(&place,
                      "[lists%s%s] has a bridge: plain verbs on these keys work on lists, in the "
                      "pool that it names; expected a prefix without one",
                      lists->prefix_len == 0 ? "" : " ", config_prefix_text(lists, prefix));
    }
    if (check_pool(config, route, &place) != 0 || check_failover(route, &place) != 0 ||
        check_shadow(route, &place) != 0 ||
        check_use(route, &place, "failover_ttl_s", "failover", route->failover_name[0] != '\0') !=
            0) {
        return -1;
    }
    return check_use(route, &place, "shadow_bytes", "shadow", route->shadow[0] != '\0') != 0
               ? -1
               : check_moves(config, route, &place);
}

int route_check(struct config *config, char error[CONFIG_ERROR_MAX])
{
    config->has_routes = config->route_count > 1 || config->routes[0].line != 0;
    config->has_moves = false;
    for (size_t i = 0; i < config->route_count; i++) {
        struct route_config *route = &config->routes[i];
        route->index = (uint32_t)i;
        route->failover_index = route->shadow_index = ROUTE_NONE;
        route->shadow_share = 0;
        if (check_one(config, route, error) != 0) {
            return -1;
        }
        config->has_moves = config->has_moves || route->moves;
    }
    return 0;
}

void route_find_pools(struct config *config)
{
    char pool[CONFIG_NAME_MAX + 1];
    for (size_t i = 0; i < config->route_count; i++) {
        struct route_config *route = &config->routes[i];
        route->failover_index = route->shadow_index = ROUTE_NONE;
        route->shadow_share = 0;
        if (route->failover_name[0] != '\0') {
            CHECK(place_pool(config, route->failover_name, &route->failover_index));
        }
        if (route->shadow[0] != '\0') {
            CHECK(read_shadow(route->shadow, pool, &route->shadow_share));
            CHECK(place_pool(config, pool, &route->shadow_index));
        }
    }
}
