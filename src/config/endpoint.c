/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/endpoint.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#include "base/ip.h"
#include "config/text.h"

#define EXPECTED_ADDRESS "expected host:port, [IPv6]:port or unix:PATH"
#define WEIGHT_MAX 1000000
/* Of what a user wrote, this much is repeated in an error. */
#define SHOWN_MAX 80
/* sun_path with its NUL. */
#define PATH_MAX_BYTES (sizeof((struct sockaddr_un *)0)->sun_path - 1)

static int parse_unix(struct slice path, struct endpoint *endpoint, char error[CONFIG_ERROR_MAX])
{
    if (path.len == 0 || path.len > PATH_MAX_BYTES) {
        return config_fail(error,
                           "a socket path of %zu bytes; expected unix:PATH with 1 to %zu bytes",
                           path.len, PATH_MAX_BYTES);
    }
    memcpy(endpoint->host, path.p, path.len);
    endpoint->host[path.len] = '\0';
    endpoint->port = 0;
    return 0;
}

static bool is_ipv6(const char *host)
{
    /* A zone as in fe80::1%eth0 is for the resolver. */
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    size_t n = strcspn(host, "%");
    if (n >= sizeof address) {
        return false;
    }
    memcpy(address, host, n);
    address[n] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1;
}

static int parse_port(struct slice text, uint16_t *port)
{
    uint64_t value;
    if (!slice_to_u64(text, &value) || value == 0 || value > UINT16_MAX) {
        return -1;
    }
    *port = (uint16_t)value;
    return 0;
}

/* Splits "host:port" and "[v6]:port"; *port begins with the colon and stays as it was when there is
 * none. */
static int split(struct slice text, const char *shown, struct slice *host, struct slice *port,
                 char error[CONFIG_ERROR_MAX])
{
    if (text.p[0] == '[') {
        const char *end = memchr(text.p, ']', text.len);
        if (end == NULL) {
            return config_fail(error, "'%s' has no ]; " EXPECTED_ADDRESS, shown);
        }
        *host = slice_make(text.p + 1, (size_t)(end - text.p) - 1);
        *port = slice_make(end + 1, text.len - host->len - 2);
        if (port->len > 0 && port->p[0] != ':') {
            return config_fail(error, "'%s' goes on behind the ]; " EXPECTED_ADDRESS, shown);
        }
        return 0;
    }
    const char *colon = memchr(text.p, ':', text.len);
    *host = colon == NULL ? text : slice_make(text.p, (size_t)(colon - text.p));
    if (colon == NULL) {
        return 0;
    }
    *port = slice_make(colon, text.len - host->len);
    if (memchr(colon + 1, ':', port->len - 1) != NULL) {
        return config_fail(error,
                           "'%s' has several colons; an IPv6 address is written in brackets, "
                           "expected [IPv6]:port",
                           shown);
    }
    return 0;
}

int endpoint_parse(struct slice text, uint16_t default_port, struct endpoint *endpoint,
                   char error[CONFIG_ERROR_MAX])
{
    char shown[SHOWN_MAX];
    struct slice host = SLICE_NONE;
    struct slice port = SLICE_NONE;
    text_show(text, shown, sizeof shown);
    if (slice_starts_with(text, SLICE_LIT("unix:"))) {
        (void)slice_take(&text, 5);
        return parse_unix(text, endpoint, error);
    }
    if (text.len == 0) {
        return config_fail(error, "an address is missing; " EXPECTED_ADDRESS);
    }
    if (memmem(text.p, text.len, "://", 3) != NULL) {
        return config_fail(error, "'%s' is a URL; " EXPECTED_ADDRESS, shown);
    }
    if (split(text, shown, &host, &port, error) != 0) {
        return -1;
    }
    if (host.len > CONFIG_NAME_MAX) {
        return config_fail(error, "a host of %zu bytes; expected at most %d", host.len,
                           CONFIG_NAME_MAX);
    }
    memcpy(endpoint->host, host.p, host.len);
    endpoint->host[host.len] = '\0';
    if (text.p[0] == '[' ? !is_ipv6(endpoint->host) : !text_is_name(host)) {
        return config_fail(error, "'%s' is no host name or address; " EXPECTED_ADDRESS, shown);
    }
    if (port.len == 0) {
        /* As an address it would be one in 0.0.0.0/8, which no machine has. */
        if (parse_port(host, &endpoint->port) == 0) {
            return config_fail(error, "'%s' is a port without a host; expected host:%s", shown,
                               shown);
        }
        if (default_port == 0) {
            return config_fail(error, "'%s' has no port; " EXPECTED_ADDRESS, shown);
        }
        endpoint->port = default_port;
        return 0;
    }
    (void)slice_take(&port, 1);
    if (parse_port(port, &endpoint->port) != 0) {
        return config_fail(error, "'%s' has a bad port; expected 1 to 65535", shown);
    }
    return 0;
}

const char *endpoint_format(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_MAX])
{
    if (endpoint->port == 0) {
        (void)snprintf(out, ENDPOINT_TEXT_MAX, "unix:%s", endpoint->host);
    } else if (strchr(endpoint->host, ':') != NULL) {
        (void)snprintf(out, ENDPOINT_TEXT_MAX, "[%s]:%u", endpoint->host, endpoint->port);
    } else {
        (void)snprintf(out, ENDPOINT_TEXT_MAX, "%s:%u", endpoint->host, endpoint->port);
    }
    return out;
}

static bool same_endpoint(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

int listen_list_add(struct endpoint_list *list, struct slice text, uint16_t default_port,
                    char error[CONFIG_ERROR_MAX])
{
    struct slice item;
    bool more = true;
    while (text_next_item(&text, &more, &item)) {
        struct endpoint endpoint;
        char name[ENDPOINT_TEXT_MAX];
        if (endpoint_parse(item, default_port, &endpoint, error) != 0) {
            return -1;
        }
        for (size_t i = 0; i < list->count; i++) {
            if (same_endpoint(&list->at[i], &endpoint)) {
                return config_fail(error, "'%s' is named twice; expected each address once",
                                   endpoint_format(&endpoint, name));
            }
        }
        if (list->count == CONFIG_LISTEN_MAX) {
            return config_fail(error, "too many addresses; expected at most %d", CONFIG_LISTEN_MAX);
        }
        list->at[list->count++] = endpoint;
    }
    return 0;
}

/* Is it an address, and one that no server has? */
static bool is_no_machine(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_aton(host, &v4) != 0) {
        return !ipv4_is_host(v4);
    }
    return inet_pton(AF_INET6, host, &v6) == 1 && !ipv6_is_host(&v6);
}

/* Is it a port where memcacheds often are, the usual one or one of those next to it? */
static bool is_usual_port(uint64_t number)
{
    return number / 100 == MEMCACHED_PORT / 100;
}

/* "host 11211", with a blank in place of the colon, would be the usual port and a weight. Says what
 * to write for either. Returns -1. */
static int refuse_port_as_weight(struct slice address, uint64_t weight,
                                 const struct endpoint *endpoint, char error[CONFIG_ERROR_MAX])
{
    char shown[SHOWN_MAX], name[ENDPOINT_TEXT_MAX];
    text_show(address, shown, sizeof shown);
    return config_fail(error,
                       "'%s %" PRIu64 "' has a weight that looks like a port; expected %s:%" PRIu64
                       " for the port, or %s %" PRIu64 " for the weight",
                       shown, weight, shown, weight, endpoint_format(endpoint, name), weight);
}

static const struct slice schemes[] = {[SCHEME_COUCHBASE] = SLICE_LIT("couchbase://"),
                                       [SCHEME_COUCHBASES] = SLICE_LIT("couchbases://")};

void server_set_name(struct server_config *server)
{
    const struct endpoint *endpoint = &server->endpoint;
    struct slice scheme = schemes[server->scheme];
    (void)snprintf(server->name, sizeof server->name, "%.*s", SLICE_ARGS(scheme));
    if (server->by_srv) {
        (void)snprintf(server->name + scheme.len, sizeof server->name - scheme.len, "%s",
                       endpoint->host);
    } else {
        endpoint_format(endpoint, server->name + scheme.len);
    }
}

/* Takes it off the address. Couchbase's own clients take more behind the address, which has
 * settings of its own here. */
static int take_scheme(struct slice *address, struct server_config *server,
                       char error[CONFIG_ERROR_MAX])
{
    char shown[SHOWN_MAX];
    server->scheme = SCHEME_NONE;
    if (slice_starts_with(*address, SLICE_LIT("http://")) ||
        slice_starts_with(*address, SLICE_LIT("https://"))) {
        return config_fail(error, "'%s' is an address for HTTP; expected that of the data port",
                           text_show(*address, shown, sizeof shown));
    }
    for (enum server_scheme i = SCHEME_COUCHBASE; i <= SCHEME_COUCHBASES; i++) {
        if (slice_starts_with(*address, schemes[i])) {
            server->scheme = i;
            (void)slice_take(address, schemes[i].len);
        }
    }
    bool more = memchr(address->p, '/', address->len) != NULL ||
                memchr(address->p, '?', address->len) != NULL;
    if (server->scheme != SCHEME_NONE && more) {
        return config_fail(error,
                           "'%s' is more than host or host:port; expected bucket and others "
                           "as keys of their own",
                           text_show(*address, shown, sizeof shown));
    }
    return 0;
}

/* "host:port weight": the weight may be missing. */
static int parse_server(struct slice text, struct server_config *server,
                        char error[CONFIG_ERROR_MAX])
{
    size_t n = 0;
    while (n < text.len && text.p[n] != ' ' && text.p[n] != '\t') {
        n++;
    }
    struct slice address = slice_take(&text, n);
    struct slice weight = text_trim(text);
    uint64_t value = 1;
    if (take_scheme(&address, server, error) != 0) {
        return -1;
    }
    server->by_srv = false;
    if (endpoint_parse(address, MEMCACHED_PORT, &server->endpoint, error) != 0) {
        return -1;
    }
    if (server->endpoint.port != 0 && is_no_machine(server->endpoint.host)) {
        char name[ENDPOINT_TEXT_MAX];
        return config_fail(error, "'%s' is the address of no machine; expected that of a server",
                           endpoint_format(&server->endpoint, name));
    }
    if (weight.len > 0 && (!slice_to_u64(weight, &value) || value == 0 || value > WEIGHT_MAX)) {
        char shown[SHOWN_MAX];
        return config_fail(error,
                           "'%s' is no weight; expected host:port WEIGHT with a weight of 1 to %d, "
                           "and commas between servers",
                           text_show(weight, shown, sizeof shown), WEIGHT_MAX);
    }
    struct endpoint with_port;
    char why[CONFIG_ERROR_MAX];
    server->port_given = endpoint_parse(address, 0, &with_port, why) == 0;
    if (is_usual_port(value) && !server->port_given) {
        return refuse_port_as_weight(address, value, &server->endpoint, error);
    }
    server->weight = (uint32_t)value;
    server_set_name(server);
    return 0;
}

int server_list_add(struct pool_config *pool, struct slice text, char error[CONFIG_ERROR_MAX])
{
    struct slice item;
    bool more = true;
    if (pool->servers == NULL) {
        /* Room for all there may ever be: a pool is made once and addresses into it stay valid. */
        pool->servers = calloc(CONFIG_SERVERS_MAX, sizeof *pool->servers);
        CHECK(pool->servers != NULL);
    }
    while (text_next_item(&text, &more, &item)) {
        struct server_config server;
        if (parse_server(item, &server, error) != 0) {
            return -1;
        }
        for (size_t i = 0; i < pool->server_count; i++) {
            if (strcmp(pool->servers[i].name, server.name) == 0) {
                return config_fail(error, "'%s' is named twice; expected each server once",
                                   server.name);
            }
        }
        if (pool->server_count == CONFIG_SERVERS_MAX) {
            return config_fail(error, "too many servers; expected at most %d in a pool",
                               CONFIG_SERVERS_MAX);
        }
        pool->servers[pool->server_count++] = server;
    }
    return 0;
}
