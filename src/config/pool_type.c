/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/pool_type.h"

#include <stdio.h>

#include "base/file.h"
#include "config/endpoint.h"
#include "config/text.h"
#include "config/users.h"

/* Couchbase's limit on names of buckets. */
#define BUCKET_BYTES_MAX 100
/* The same on those of scopes and collections. */
#define COLLECTION_BYTES_MAX 251
/* What a login has room for: SCRAM_USER_MAX of proto/server/scram.h. */
#define USER_BYTES_MAX 128

bool pool_type_uses(const struct pool_config *pool, const struct config_key *key)
{
    return (key->types >> pool->type & 1) != 0;
}

static uint32_t given_line(enum config_section section, const uint32_t *lines, const char *name)
{
    return lines[config_key_index(config_key_known(section, name))];
}

/* A login there may ask another server, and be tried with two mechanisms: as long as Couchbase's
 * own clients wait. */
#define COUCHBASE_CONNECT_TIMEOUT_MS 7000

/* The place for an error about one key: its line, where it has one. */
static struct place place_of(const struct pool_config *pool, const struct place *place,
                             const char *name)
{
    return place_of_keys(place, pool->given_line, config_key_known(SECTION_POOL, name), NULL);
}

static int check_unused(const struct pool_config *pool, const struct place *place)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        struct place exact = *place;
        exact.line = pool->given_line[i];
        if (exact.line != 0 && !pool_type_uses(pool, &keys[i])) {
            return refuse(&exact, "%s: type = %s does not use it; expected with type = %s",
                          keys[i].name, config_type_word(pool->type),
                          config_types_text(keys[i].types));
        }
    }
    return 0;
}

/* As Couchbase takes them. */
static bool is_bucket_name(struct slice name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.%";
    size_t good = 0;
    while (good < name.len && memchr(allowed, name.p[good], sizeof allowed - 1) != NULL) {
        good++;
    }
    return good == name.len && name.len > 0 && name.len <= BUCKET_BYTES_MAX;
}

static bool is_collection_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-%";
    size_t len = strlen(name);
    return strcmp(name, CONFIG_DEFAULT_COLLECTION) == 0 ||
           (len > 0 && len <= COLLECTION_BYTES_MAX && name[0] != '_' && name[0] != '%' &&
            strspn(name, allowed) == len);
}

static int check_collection(const struct pool_config *pool, const struct place *place)
{
    const char *keys[] = {"scope", "collection"};
    const char *names[] = {pool->scope, pool->collection};
    for (size_t i = 0; i < 2; i++) {
        if (!is_collection_name(names[i])) {
            struct place exact = place_of(pool, place, keys[i]);
            return refuse(&exact,
                          "%s: expected 1 to %d letters, digits, _, - or %%, not _ or %% at the "
                          "beginning",
                          keys[i], COLLECTION_BYTES_MAX);
        }
    }
    if (strcmp(pool->scope, CONFIG_DEFAULT_COLLECTION) != 0 &&
        strcmp(pool->collection, CONFIG_DEFAULT_COLLECTION) == 0) {
        struct place exact = place_of(pool, place, "scope");
        return refuse(&exact,
                      "scope = %s: it has no collection _default, which only scope _default has; "
                      "expected collection = NAME with it",
                      pool->scope);
    }
    return 0;
}

static int check_login(const struct pool_config *pool, const struct place *place)
{
    struct place exact;
    if (pool->bucket[0] == '\0') {
        return refuse(place, "no bucket; expected bucket = NAME with type = couchbase");
    }
    if (pool->username[0] == '\0' && pool->tls_cert[0] == '\0') {
        return refuse(place, "no username; expected username = NAME with type = couchbase");
    }
    if (!is_bucket_name(slice_of(pool->bucket))) {
        exact = place_of(pool, place, "bucket");
        return refuse(&exact, "bucket: expected 1 to %d letters, digits, _, -, . or %%",
                      BUCKET_BYTES_MAX);
    }
    if (strlen(pool->username) > USER_BYTES_MAX) {
        exact = place_of(pool, place, "username");
        return refuse(&exact, "username: %zu bytes; expected at most %d", strlen(pool->username),
                      USER_BYTES_MAX);
    }
    return 0;
}

/* couchbases:// is TLS, as Couchbase's own clients have it. One name without a port may stand for
 * several servers. */
static int take_schemes(struct pool_config *pool, const struct place *place)
{
    struct place exact = place_of(pool, place, "servers");
    bool tls_given = given_line(SECTION_POOL, pool->given_line, "tls") != CONFIG_GIVEN_NOT;
    for (size_t i = 0; i < pool->server_count; i++) {
        struct server_config *server = &pool->servers[i];
        if (server->scheme == SCHEME_COUCHBASES && !pool->tls && (tls_given || i > 0)) {
            return refuse(&exact, "couchbases://%s is with TLS; expected %s", server->endpoint.host,
                          tls_given ? "tls = yes" : "couchbases:// in front of all servers");
        }
        pool->tls = pool->tls || server->scheme == SCHEME_COUCHBASES;
        if (server->scheme == SCHEME_COUCHBASE && pool->tls) {
            return refuse(&exact, "couchbase://%s is without TLS; expected couchbases://%s",
                          server->endpoint.host, server->endpoint.host);
        }
        server->by_srv =
            server->scheme != SCHEME_NONE && !server->port_given && pool->server_count == 1;
    }
    return 0;
}

static int check_schemes(const struct pool_config *pool, const struct place *place)
{
    struct place exact = place_of(pool, place, "servers");
    for (size_t i = 0; i < pool->server_count; i++) {
        const struct server_config *server = &pool->servers[i];
        if (server->scheme != SCHEME_NONE && pool->type != POOL_COUCHBASE) {
            return refuse(&exact, "%s is no address of a memcached; expected with type = couchbase",
                          server->name);
        }
    }
    return 0;
}

static uint16_t default_port(const struct pool_config *pool)
{
    return pool->tls ? COUCHBASE_TLS_PORT : COUCHBASE_PORT;
}

/* Nodes to begin with: the cluster itself says where keys are. */
static int complete_servers(struct pool_config *pool, const struct place *place)
{
    struct place exact = place_of(pool, place, "servers");
    for (size_t i = 0; i < pool->server_count; i++) {
        struct server_config *server = &pool->servers[i];
        if (server->endpoint.port == 0) {
            return refuse(&exact, "%s is a unix socket; expected host:port with type = couchbase",
                          server->name);
        }
        if (server->weight != 1) {
            return refuse(&exact, "%s has a weight; expected none with type = couchbase",
                          server->name);
        }
        if (!server->port_given) {
            server->endpoint.port = default_port(pool);
            server_set_name(server);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(pool->servers[j].name, server->name) == 0) {
                return refuse(&exact, "'%s' is named twice; expected each server once",
                              server->name);
            }
        }
    }
    return 0;
}

static int check_tls(const struct pool_config *pool, const struct place *place)
{
    static const char *const keys[] = {"tls_ca", "tls_name", "tls_cert", "tls_key"};
    const char *values[] = {pool->tls_ca, pool->tls_name, pool->tls_cert, pool->tls_key};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (values[i][0] != '\0' && !pool->tls) {
            struct place exact = place_of(pool, place, keys[i]);
            return refuse(&exact, "%s: tls = no does not use it; expected with tls = yes", keys[i]);
        }
    }
    if ((pool->tls_cert[0] == '\0') != (pool->tls_key[0] == '\0')) {
        bool has_key = pool->tls_key[0] != '\0';
        struct place exact = place_of(pool, place, has_key ? "tls_key" : "tls_cert");
        return refuse(&exact, "%s: without %s; expected both", has_key ? "tls_key" : "tls_cert",
                      has_key ? "tls_cert" : "tls_key");
    }
    for (size_t i = 0; pool->tls && i < pool->server_count; i++) {
        if (pool->servers[i].endpoint.port == 0) {
            struct place exact = place_of(pool, place, "servers");
            return refuse(&exact, "%s is a unix socket; expected host:port with tls = yes",
                          pool->servers[i].name);
        }
    }
    return 0;
}

/* The certificate, or a name. */
static int check_user(const struct pool_config *pool, const struct place *place)
{
    const char *other = pool->username[0] != '\0'        ? "username"
                        : pool->password_file[0] != '\0' ? "password_file"
                                                         : NULL;
    if (pool->tls_cert[0] != '\0' && other != NULL) {
        struct place exact = place_of(pool, place, other);
        return refuse(&exact, "%s: tls_cert tells the user; expected one of the two", other);
    }
    return 0;
}

int pool_type_check(struct pool_config *pool, const struct place *place)
{
    if (check_unused(pool, place) != 0) {
        return -1;
    }
    if (pool->type != POOL_COUCHBASE) {
        return check_schemes(pool, place) != 0 ? -1 : check_tls(pool, place);
    }
    if (take_schemes(pool, place) != 0) {
        return -1;
    }
    if (given_line(SECTION_POOL, pool->given_line, "connect_timeout_ms") == CONFIG_GIVEN_NOT) {
        pool->connect_timeout_ms = COUCHBASE_CONNECT_TIMEOUT_MS;
    }
    if (check_tls(pool, place) != 0 || check_user(pool, place) != 0 ||
        check_login(pool, place) != 0 || check_collection(pool, place) != 0 ||
        complete_servers(pool, place) != 0) {
        return -1;
    }
    return check_schemes(pool, place);
}

void pool_type_finish_proxy(struct config *config)
{
    if (given_line(SECTION_PROXY, config->given_line, "deadline_ms") != CONFIG_GIVEN_NOT) {
        return;
    }
    for (size_t i = 0; i < config->pool_count; i++) {
        const struct pool_config *pool = &config->pools[i];
        uint64_t ms = 2 * (uint64_t)pool->durable_timeout_ms;
        if (pool->type == POOL_COUCHBASE && ms > config->deadline_ms) {
            config->deadline_ms = (uint32_t)ms;
        }
    }
}

/* Where the file asks for what such a pool cannot do: that line. */
static int refuse_lists(const struct list_policy *policy, const struct place *place,
                        const char *name, const char *why)
{
    const struct config_key *key = config_key_known(SECTION_LISTS, name);
    struct place exact = place_of_keys(place, policy->given_line, key, NULL);
    return refuse(&exact, "%s", why);
}

static bool is_given(const struct list_policy *policy, const char *name)
{
    return given_line(SECTION_LISTS, policy->given_line, name) != CONFIG_GIVEN_NOT;
}

int pool_type_finish_lists(const struct config *config, struct list_policy *policy,
                           const struct place *place)
{
    const struct pool_config *pool =
        config->pool_count == 0 ? NULL : &config->pools[policy->pool_index];
    policy->pool_type = pool == NULL ? POOL_MEMCACHED : pool->type;
    policy->name_bytes_max = CONFIG_ITEM_NAME_MAX;
    if (policy->pool_type == POOL_MEMCACHED) {
        return 0;
    }
    policy->name_bytes_max =
        config_has_collection(pool) ? CONFIG_COLLECTION_NAME_MAX : CONFIG_ITEM_NAME_MAX;
    if (is_given(policy, "placement") && policy->placement == PLACEMENT_HEAD) {
        return refuse_lists(
            policy, place, "placement",
            "placement = head: its pool is of type couchbase, where each item lives "
            "on the node of its own key; expected spread");
    }
    if (is_given(policy, "touch_interval_s") && policy->touch_interval_s != 0) {
        return refuse_lists(
            policy, place, "touch_interval_s",
            "touch_interval_s: its pool is of type couchbase, which forgets no items "
            "that are not in use; expected 0");
    }
    policy->placement = PLACEMENT_SPREAD;
    policy->touch_interval_s = 0;
    return 0;
}

/* --- passwords ---------------------------------------------------------------------------------
 */

/* Without a file, the password is empty. */
static int read_password(struct pool_config *pool, const struct place *place)
{
    struct place exact = place_of(pool, place, "password_file");
    char text[CONFIG_PASSWORD_MAX + 3] = "";
    const char *why;
    FILE *file = file_open(pool->password_file, &why);
    if (file == NULL) {
        return refuse(&exact, "password_file: %s cannot be opened: %s", pool->password_file, why);
    }
    size_t len = fread(text, 1, sizeof text - 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        return refuse(&exact, "password_file: %s cannot be read", pool->password_file);
    }
    const char *end = memchr(text, '\n', len);
    len = end == NULL ? len : (size_t)(end - text);
    len -= len > 0 && text[len - 1] == '\r';
    if (len == 0 || len > CONFIG_PASSWORD_MAX || memchr(text, '\0', len) != NULL) {
        return refuse(&exact,
                      "password_file: %s has no password in its first line; expected 1 to %d bytes",
                      pool->password_file, CONFIG_PASSWORD_MAX);
    }
    memcpy(pool->password, text, len);
    pool->password[len] = '\0';
    return 0;
}

int config_read_passwords(struct config *config, char error[CONFIG_ERROR_MAX])
{
    for (size_t i = 0; i < config->pool_count; i++) {
        struct pool_config *pool = &config->pools[i];
        char section[CONFIG_NAME_MAX + 16];
        struct place place = {config, pool->line, section, error};
        (void)snprintf(section, sizeof section, "[pool %s]", pool->name);
        if (pool->password_file[0] != '\0' && read_password(pool, &place) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        struct listener_config *listener = &config->listeners[i];
        char section[CONFIG_LISTENER_TEXT_MAX], why[CONFIG_ERROR_MAX];
        struct place place = {config, listener->line, config_listener_text(listener, section),
                              error};
        users_destroy(&listener->users);
        if (listener->auth_file[0] == '\0') {
            continue;
        }
        listener->users = users_read(listener->auth_file, config->max_users, why);
        if (listener->users == NULL) {
            return refuse(&place, "auth_file: %s", why);
        }
    }
    return 0;
}
