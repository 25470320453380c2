/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/dialect.h"
#include "config/endpoint.h"
#include "config/need.h"
#include "config/pool_type.h"
#include "config/prefix.h"
#include "config/store.h"
#include "config/text.h"
#include "config/users.h"
#include "config/value.h"

/* Each kind of spare memory, of all workers, may take this part of memory_limit_bytes, ... */
#define SPARE_PART 64
/* ... and no more than this in one worker. */
#define SPARE_BYTES_MAX ((size_t)4 << 20)

/* Of a pool or a listener. */
#define NAME_MAX_BYTES 64

/* Sets all keys of that kind of section to their defaults. */
static void set_defaults(enum config_section kind, void *section)
{
    char error[CONFIG_ERROR_MAX];
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].section == kind && keys[i].standard != NULL) {
            CHECK(value_parse(&keys[i], section, slice_of(keys[i].standard), error) == 0);
        }
    }
}

struct config *config_create(void)
{
    struct config *config = calloc(1, sizeof *config);
    CHECK(config != NULL);
    /* Room for all there may ever be: addresses stay valid while the file is read, and pages that
     * no client writes to cost nothing. */
    config->pools = calloc(CONFIG_POOLS_MAX, sizeof *config->pools);
    config->lists = calloc(CONFIG_LISTS_MAX, sizeof *config->lists);
    config->routes = calloc(CONFIG_ROUTES_MAX, sizeof *config->routes);
    CHECK(config->pools != NULL && config->lists != NULL && config->routes != NULL);
    set_defaults(SECTION_PROXY, config);
    set_defaults(SECTION_ADMIN, &config->admin);
    set_defaults(SECTION_LISTS, &config->lists[0]);
    set_defaults(SECTION_ROUTE, &config->routes[0]);
    config->list_count = config->listener_count = config->route_count = 1;
    return config;
}

void config_destroy(struct config **config)
{
    if (*config == NULL) {
        return;
    }
    for (size_t i = 0; i < (*config)->pool_count; i++) {
        free((*config)->pools[i].servers);
    }
    for (size_t i = 0; i < (*config)->listener_count; i++) {
        users_destroy(&(*config)->listeners[i].users);
    }
    prefix_map_fini(&(*config)->list_map);
    prefix_map_fini(&(*config)->route_map);
    free((*config)->routes);
    free((*config)->pools);
    free((*config)->lists);
    free(*config);
    *config = NULL;
}

static bool is_name(struct slice name)
{
    return text_is_name(name) && name.len <= NAME_MAX_BYTES;
}

/* Says why there is no section of that name. Returns NULL. */
static void *refuse_name(struct slice name, const char *what, char error[CONFIG_ERROR_MAX])
{
    char shown[2 * NAME_MAX_BYTES];
    (void)config_fail(error, "'%s' is no name for a %s; expected 1 to %d letters, digits, . - or _",
                      text_show(name, shown, sizeof shown), what, NAME_MAX_BYTES);
    return NULL;
}

struct listener_config *config_new_listener(struct config *config, struct slice name,
                                            char error[CONFIG_ERROR_MAX])
{
    if (!is_name(name)) {
        return refuse_name(name, "listener", error);
    }
    for (size_t i = 1; i < config->listener_count; i++) {
        const struct listener_config *other = &config->listeners[i];
        if (slice_equal(slice_of(other->name), name)) {
            (void)config_fail(error, "a second listener '%s' (the first is in line %u)",
                              other->name, other->line);
            return NULL;
        }
    }
    if (config->listener_count == CONFIG_LISTENERS_MAX) {
        (void)config_fail(error, "too many listeners; expected at most %d",
                          CONFIG_LISTENERS_MAX - 1);
        return NULL;
    }
    struct listener_config *listener = &config->listeners[config->listener_count++];
    memcpy(listener->name, name.p, name.len);
    return listener;
}

const char *config_listener_text(const struct listener_config *listener,
                                 char out[CONFIG_LISTENER_TEXT_MAX])
{
    bool is_first = listener->name[0] == '\0';
    (void)snprintf(out, CONFIG_LISTENER_TEXT_MAX, "[%s%s]", is_first ? "proxy" : "listener ",
                   listener->name);
    return out;
}

struct pool_config *config_new_pool(struct config *config, struct slice name,
                                    char error[CONFIG_ERROR_MAX])
{
    if (!is_name(name)) {
        return refuse_name(name, "pool", error);
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        if (slice_equal(slice_of(config->pools[i].name), name)) {
            uint32_t line = config->pools[i].line;
            (void)config_fail(error,
                              line == 0 ? "a second pool '%s'"
                                        : "a second pool '%s' (the first is in line %u)",
                              config->pools[i].name, line);
            return NULL;
        }
    }
    if (config->pool_count == CONFIG_POOLS_MAX) {
        (void)config_fail(error, "too many pools; expected at most %d", CONFIG_POOLS_MAX);
        return NULL;
    }
    struct pool_config *pool = &config->pools[config->pool_count++];
    memcpy(pool->name, name.p, name.len);
    set_defaults(SECTION_POOL, pool);
    return pool;
}

struct list_policy *config_new_lists(struct config *config, struct slice prefix,
                                     char error[CONFIG_ERROR_MAX])
{
    char bytes[CONFIG_PREFIX_MAX + 1], text[CONFIG_PREFIX_TEXT_MAX];
    bool anywhere;
    int len = prefix_read(prefix, "lists", &anywhere, bytes, error);
    if (len < 0) {
        return NULL;
    }
    for (size_t i = 1; i < config->list_count; i++) {
        const struct list_policy *other = &config->lists[i];
        if (other->anywhere == anywhere &&
            slice_equal(slice_of(other->prefix), slice_make(bytes, (size_t)len))) {
            (void)config_fail(error, "a second [lists %s] (the first is in line %u)",
                              config_prefix_text(other, text), other->line);
            return NULL;
        }
    }
    if (config->list_count == CONFIG_LISTS_MAX) {
        (void)config_fail(error, "too many prefixes of lists; expected at most %d",
                          CONFIG_LISTS_MAX - 1);
        return NULL;
    }
    struct list_policy *policy = &config->lists[config->list_count++];
    memcpy(policy->prefix, bytes, (size_t)len + 1);
    policy->prefix_len = (size_t)len;
    policy->anywhere = anywhere;
    return policy;
}

struct route_config *config_new_route(struct config *config, struct slice prefix,
                                      char error[CONFIG_ERROR_MAX])
{
    char bytes[CONFIG_PREFIX_MAX + 1];
    int len = prefix_read(prefix, "route", NULL, bytes, error);
    if (len < 0) {
        return NULL;
    }
    for (size_t i = 1; i < config->route_count; i++) {
        if (slice_equal(slice_of(config->routes[i].prefix), slice_make(bytes, (size_t)len))) {
            (void)config_fail(error, "a second [route %s] (the first is in line %u)",
                              config->routes[i].prefix, config->routes[i].line);
            return NULL;
        }
    }
    if (config->route_count == CONFIG_ROUTES_MAX) {
        (void)config_fail(error, "too many routes; expected at most %d", CONFIG_ROUTES_MAX - 1);
        return NULL;
    }
    struct route_config *route = &config->routes[config->route_count++];
    memcpy(route->prefix, bytes, (size_t)len + 1);
    route->prefix_len = (size_t)len;
    return route;
}

static size_t key_place(enum config_section section, const char *name)
{
    return config_key_index(config_key_known(section, name));
}

bool config_has_server(const struct pool_config *pool, const char *name)
{
    for (size_t i = 0; i < pool->server_count; i++) {
        if (strcmp(pool->servers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

int config_add_pool(struct config *config, const char *name, const char *servers,
                    char error[CONFIG_ERROR_MAX])
{
    struct pool_config *pool = config_new_pool(config, slice_of(name), error);
    if (pool == NULL) {
        return -1;
    }
    pool->given_line[key_place(SECTION_POOL, "servers")] = CONFIG_GIVEN_BY_OPTION;
    return server_list_add(pool, slice_of(servers), error);
}

int config_add_embedded(struct config *config, const char *server, char error[CONFIG_ERROR_MAX])
{
    if (config->allow_flush_all == FLUSH_ALL_EMBEDDED) {
        config->allow_flush_all = FLUSH_ALL_YES;
    }
    if (config_add_pool(config, "embedded", server, error) != 0) {
        return -1;
    }
    config->pools[0].gate_s = 0; /* no other proxy has it */
    return config_finish(config, error);
}

int config_set(struct config *config, const char *key, const char *value,
               char error[CONFIG_ERROR_MAX])
{
    size_t count, place = key_place(SECTION_PROXY, key);
    const struct config_key *known = &config_keys(&count)[place];
    char why[CONFIG_ERROR_MAX];
    config->given_line[place] = CONFIG_GIVEN_BY_OPTION;
    if (known->type == TYPE_LISTEN) {
        value_clear_listen(known, config);
    }
    if (value_parse(known, config, text_trim(slice_of(value)), why) != 0) {
        return config_fail(error, "%s: %s", key, why);
    }
    return 0;
}

int config_set_listen(struct config *config, const char *addresses, uint16_t port,
                      char error[CONFIG_ERROR_MAX])
{
    config->given_line[key_place(SECTION_PROXY, "listen")] = CONFIG_GIVEN_BY_OPTION;
    struct endpoint_list *listen = &config->listeners[0].listen;
    struct endpoint_list old = *listen;
    listen->count = 0;
    if (addresses != NULL) {
        return listen_list_add(listen, slice_of(addresses), port == 0 ? PROXY_PORT : port, error);
    }
    /* Added one by one, so that addresses which become equal are found. */
    for (size_t i = 0; i < old.count; i++) {
        char name[ENDPOINT_TEXT_MAX];
        if (port != 0 && old.at[i].port != 0) {
            old.at[i].port = port;
        }
        endpoint_format(&old.at[i], name);
        if (listen_list_add(listen, slice_of(name), 0, error) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Where a value comes from, for config_print. */
static const char *origin(uint32_t line, const char *inherited, char out[64])
{
    if (line == CONFIG_GIVEN_NOT) {
        return "";
    }
    if (line == CONFIG_GIVEN_BY_OPTION) {
        return "an option";
    }
    (void)snprintf(out, 64, "line %u%s", line, inherited);
    return out;
}

/* Of a pool or a list policy those that it uses: a file may hold no others. */
static bool is_used(const struct config_part *part, const struct config_key *key)
{
    if (part->kind == SECTION_POOL) {
        return pool_type_uses(part->values, key);
    }
    return part->kind != SECTION_LISTS ||
           (dialect_uses(part->values, key) && need_is_met(part->values, key));
}

/* Of a listener, the same key of [proxy] says it. Returns 0 where none does. */
static uint32_t inherited_line(const struct config *config, const struct config_part *part,
                               size_t key_index)
{
    size_t count;
    const struct config_key *key = &config_keys(&count)[key_index];
    return part->kind == SECTION_LISTS   ? config->lists[0].given_line[key_index]
           : part->kind == SECTION_ROUTE ? config->routes[0].given_line[key_index]
           : part->kind == SECTION_LISTENER
               ? config->given_line[key_place(SECTION_PROXY, key->name)]
               : CONFIG_GIVEN_NOT;
}

static void make_part(struct config_part *part, enum config_section kind, void *values,
                      uint32_t *given_line, const char *name)
{
    part->kind = kind;
    part->values = values;
    part->given_line = given_line;
    (void)snprintf(part->name, sizeof part->name, "%s", name);
}

/* As a file has it: a * would not be one of its bytes there, and ] would be the section's. */
static const char *prefix_text(struct slice bytes, char *out, size_t cap)
{
    return slice_escape_also(bytes, " \"\\*]", out, cap);
}

const char *config_prefix_text(const struct list_policy *policy, char out[CONFIG_PREFIX_TEXT_MAX])
{
    struct slice bytes = slice_make(policy->prefix, policy->prefix_len);
    out[0] = '*';
    (void)prefix_text(bytes, out + policy->anywhere, CONFIG_PREFIX_TEXT_MAX - policy->anywhere);
    return out;
}

/* Of a kind that names prefixes: "lists", "lists PREFIX". */
static void make_prefix_part(struct config_part *part, enum config_section kind, void *values,
                             uint32_t *given_line, const char *prefix)
{
    const char *name = kind == SECTION_LISTS ? "lists" : "route";
    make_part(part, kind, values, given_line, name);
    if (prefix[0] != '\0') {
        (void)snprintf(part->name, sizeof part->name, "%s %s", name, prefix);
    }
}

bool config_part_at(struct config *config, size_t i, struct config_part *part)
{
    char text[CONFIG_PREFIX_TEXT_MAX];
    size_t listeners = config->listener_count - 1, pools = config->pool_count;
    size_t routes = config->has_routes ? config->route_count : 0;
    if (i == 0) {
        make_part(part, SECTION_PROXY, config, config->given_line, "proxy");
    } else if (i <= listeners) {
        struct listener_config *listener = &config->listeners[i];
        make_part(part, SECTION_LISTENER, listener, listener->given_line, "");
        (void)snprintf(part->name, sizeof part->name, "listener %s", listener->name);
    } else if ((i -= listeners + 1) == 0) {
        make_part(part, SECTION_ADMIN, &config->admin, config->admin.given_line, "admin");
    } else if ((i -= 1) < pools) {
        struct pool_config *pool = &config->pools[i];
        make_part(part, SECTION_POOL, pool, pool->given_line, "");
        (void)snprintf(part->name, sizeof part->name, "pool %s", pool->name);
    } else if ((i -= pools) < routes) {
        struct route_config *route = &config->routes[i];
        struct slice prefix = slice_make(route->prefix, route->prefix_len);
        make_prefix_part(part, SECTION_ROUTE, route, route->given_line,
                         prefix_text(prefix, text, sizeof text));
    } else if ((i -= routes) < config->list_count) {
        struct list_policy *policy = &config->lists[i];
        make_prefix_part(part, SECTION_LISTS, policy, policy->given_line,
                         config_prefix_text(policy, text));
    } else {
        return false;
    }
    return true;
}

static void print_part(const struct config *config, const struct config_part *part,
                       config_printer *print, void *arg)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].section == part->kind && is_used(part, &keys[i])) {
            char text[64];
            char *value = value_format(&keys[i], part->values);
            bool own = part->given_line[i] != CONFIG_GIVEN_NOT;
            uint32_t line = own ? part->given_line[i] : inherited_line(config, part, i);
            const char *from = part->kind == SECTION_LISTENER ? ", in [proxy]"
                               : part->kind == SECTION_ROUTE  ? ", in [route]"
                                                              : ", in [lists]";
            print(arg, part->name, keys[i].name, value, origin(line, own ? "" : from, text));
            free(value);
        }
    }
}

void config_print(const struct config *config, config_printer *print, void *arg)
{
    struct config_part part;
    /* What is only looked at may be constant. */
    for (size_t i = 0; config_part_at((struct config *)config, i, &part); i++) {
        print_part(config, &part, print, arg);
    }
}

size_t config_spare_bytes(const struct config *config)
{
    uint64_t bytes = config->memory_limit_bytes / SPARE_PART / config->threads;
    return bytes < SPARE_BYTES_MAX ? (size_t)bytes : SPARE_BYTES_MAX;
}
