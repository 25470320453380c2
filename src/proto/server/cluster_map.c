/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/cluster_map.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define HOST_MARK "$HOST"

/* What a function of this file needs beside the map that it fills. */
struct reader {
    const struct cluster_view *view;
    struct cluster_map *map;
    char *error;
};

static PRINTF_LIKE(2, 3) int fail(const struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, CLUSTER_ERROR_MAX, format, args);
    va_end(args);
    return -1;
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

/* A member of that type, or NULL. object may be NULL. */
static struct json_object *member(struct json_object *object, const char *name, enum json_type type)
{
    struct json_object *found;
    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, name, &found) &&
                   json_object_is_type(found, type)
               ? found
               : NULL;
}

static int64_t number_of(struct json_object *object, const char *name, int64_t otherwise)
{
    struct json_object *found = member(object, name, json_type_int);
    return found != NULL ? json_object_get_int64(found) : otherwise;
}

static struct slice text_of(struct json_object *string)
{
    return string == NULL ? SLICE_NONE
                          : slice_make(json_object_get_string(string),
                                       (size_t)json_object_get_string_len(string));
}

/* A port among those of a service, or 0. */
static uint16_t port_of(struct json_object *ports, const char *name)
{
    int64_t port = number_of(ports, name, 0);
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static struct json_object *parse_json(const struct reader *r, struct slice text)
{
    if (text.len == 0 || text.len > CLUSTER_MAP_BYTES_MAX) {
        fail(r, "has %zu bytes; expected 1 to %zu", text.len, CLUSTER_MAP_BYTES_MAX);
        return NULL;
    }
    struct json_tokener *tokener = json_tokener_new_ex(CLUSTER_MAP_DEPTH_MAX);
    CHECK(tokener != NULL);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *root = json_tokener_parse_ex(tokener, text.p, (int)text.len);
    enum json_tokener_error problem = json_tokener_get_error(tokener);
    json_tokener_free(tokener);
    if (problem != json_tokener_success || !json_object_is_type(root, json_type_object)) {
        json_object_put(root);
        fail(r, "is no JSON object: %s", json_tokener_error_desc(problem));
        return NULL;
    }
    return root;
}

/* --- nodes --------------------------------------------------------------------------------------
 */

/* So that it, or a network's name, can stand in a line of the log and of an error. */
static bool is_host(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (host.p[i] <= ' ' || host.p[i] > '~') {
            return false;
        }
    }
    return host.len > 0 && host.len <= CLUSTER_HOST_MAX;
}

/* Takes brackets off, and puts the host in that the map leaves out. */
static int set_host(const struct reader *r, struct cluster_node *node, struct slice host)
{
    if (host.len == 0 || slice_equal(host, SLICE_LIT(HOST_MARK))) {
        host = r->view->host;
    }
    if (host.len > 2 && host.p[0] == '[' && host.p[host.len - 1] == ']') {
        host = slice_make(host.p + 1, host.len - 2);
    }
    if (!is_host(host)) {
        return fail(r, "names a host that cannot be used");
    }
    memcpy(node->host, host.p, host.len);
    node->host[host.len] = '\0';
    return 0;
}

/* "host:port", "[v6]:port" or "$HOST:port" */
static int read_server(const struct reader *r, struct slice text, struct cluster_node *node)
{
    uint64_t port;
    const char *colon = text.len == 0 ? NULL : memrchr(text.p, ':', text.len);
    if (colon == NULL) {
        return fail(r, "names a server without a port");
    }
    struct slice digits = slice_make(colon + 1, (size_t)(text.p + text.len - colon - 1));
    if (!slice_to_u64(digits, &port) || port == 0 || port > UINT16_MAX) {
        return fail(r, "names a server with a port that cannot be used");
    }
    node->port = (uint16_t)port;
    return set_host(r, node, slice_make(text.p, (size_t)(colon - text.p)));
}

/* Is that entry of nodesExt the node? */
static bool describes(const struct reader *r, struct json_object *extended,
                      const struct cluster_node *node)
{
    struct cluster_node other;
    uint16_t port = port_of(member(extended, "services", json_type_object), "kv");
    struct slice host = text_of(member(extended, "hostname", json_type_string));
    return port == node->port && set_host(r, &other, host) == 0 &&
           strcmp(other.host, node->host) == 0;
}

/* The node's entry of nodesExt: the one that says the same of it, else the one at its place; or
 * NULL. */
static struct json_object *extended_of(const struct reader *r, struct json_object *all,
                                       size_t index)
{
    size_t count = all == NULL ? 0 : json_object_array_length(all);
    for (size_t i = 0; i < count; i++) {
        struct json_object *extended = json_object_array_get_idx(all, i);
        if (describes(r, extended, &r->map->nodes[index])) {
            return extended;
        }
    }
    return count == r->map->node_count ? json_object_array_get_idx(all, index) : NULL;
}

/* --- networks -----------------------------------------------------------------------------------
 */

/* Does an address of the map name what the proxy has connected to? exactly: by its port, too. One
 * that the map leaves out does not: it would be any. */
static bool is_reached(const struct reader *r, struct json_object *host, struct json_object *ports,
                       bool exactly)
{
    struct cluster_node node;
    const struct cluster_view *v = r->view;
    struct slice text = text_of(host);
    if (text.len == 0 || slice_equal(text, SLICE_LIT(HOST_MARK)) || set_host(r, &node, text) < 0) {
        return false;
    }
    text = slice_of(node.host);
    bool same_name = text.len == v->host.len && strncasecmp(text.p, v->host.p, text.len) == 0;
    return (same_name || slice_equal(text, v->address)) &&
           (!exactly || port_of(ports, v->tls ? "kvSSL" : "kv") == v->port);
}

/* Is it an alternate address of that node? Fills the map's network then. */
static bool guess_alternate(const struct reader *r, struct json_object *extended, bool exactly)
{
    struct json_object *addresses = member(extended, "alternateAddresses", json_type_object);
    struct json_object *services = member(extended, "services", json_type_object);
    if (addresses == NULL) {
        return false;
    }
    json_object_object_foreach(addresses, name, address)
    {
        struct json_object *ports = member(address, "ports", json_type_object);
        if (strlen(name) <= CLUSTER_NETWORK_MAX && is_host(slice_of(name)) &&
            is_reached(r, member(address, "hostname", json_type_string),
                       ports == NULL ? services : ports, exactly)) {
            snprintf(r->map->network, sizeof r->map->network, "%s", name);
            return true;
        }
    }
    return false;
}

/* Several nodes may share an address, and differ by their ports: so first those that fit exactly.
 * Where none fits, the nodes' own addresses it is, as with Couchbase's own clients. */
static void choose_network(const struct reader *r, struct json_object *all)
{
    size_t count = all == NULL ? 0 : json_object_array_length(all);
    if (!r->view->guess_network) {
        snprintf(r->map->network, sizeof r->map->network, "%.*s", SLICE_ARGS(r->view->network));
        return;
    }
    for (int exactly = r->view->port != 0; exactly >= 0; exactly--) {
        for (size_t i = 0; i < count; i++) {
            struct json_object *extended = json_object_array_get_idx(all, i);
            if (is_reached(r, member(extended, "hostname", json_type_string),
                           member(extended, "services", json_type_object), exactly)) {
                return;
            }
        }
        for (size_t i = 0; i < count; i++) {
            if (guess_alternate(r, json_object_array_get_idx(all, i), exactly)) {
                return;
            }
        }
    }
}

/* The node's address in that network. */
static int use_network(const struct reader *r, struct json_object *extended,
                       struct cluster_node *node, uint16_t own_port)
{
    const char *network = r->map->network;
    struct json_object *addresses = member(extended, "alternateAddresses", json_type_object);
    struct json_object *address = member(addresses, network, json_type_object);
    struct json_object *host = member(address, "hostname", json_type_string);
    struct json_object *ports = member(address, "ports", json_type_object);
    if (host == NULL) {
        return fail(r, "has no address of the network %s for %s", network, node->host);
    }
    /* Without ports of its own, the address has those of the node. */
    node->port = ports == NULL ? own_port : port_of(ports, r->view->tls ? "kvSSL" : "kv");
    if (node->port == 0) {
        return fail(r, "has no port of the network %s for %s", network, node->host);
    }
    return set_host(r, node, text_of(host));
}

/* Where the node is for this proxy: the list of servers tells its own address, and the port for
 * connections that are not encrypted. */
static int locate(const struct reader *r, struct json_object *all, size_t index)
{
    struct cluster_node *node = &r->map->nodes[index];
    struct json_object *extended = extended_of(r, all, index);
    uint16_t port = node->port;
    if (r->view->tls) {
        port = port_of(member(extended, "services", json_type_object), "kvSSL");
    }
    if (r->map->network[0] != '\0') {
        return use_network(r, extended, node, port);
    }
    if (port == 0) {
        return fail(r, "has no port for TLS of %s", node->host);
    }
    node->port = port;
    return 0;
}

static int read_node(const struct reader *r, struct json_object *server, struct cluster_node *node)
{
    return json_object_is_type(server, json_type_string) ? read_server(r, text_of(server), node)
                                                         : fail(r, "has a server that is no text");
}

static int read_nodes(const struct reader *r, struct json_object *root, struct json_object *servers)
{
    struct json_object *extended = member(root, "nodesExt", json_type_array);
    struct cluster_map *map = r->map;
    size_t bad = 0;
    map->node_count = servers == NULL ? 0 : json_object_array_length(servers);
    if (map->node_count == 0 || map->node_count > CLUSTER_NODES_MAX) {
        return fail(r, "has %zu servers; expected 1 to %d", map->node_count, CLUSTER_NODES_MAX);
    }
    map->nodes = calloc(map->node_count, sizeof *map->nodes);
    CHECK(map->nodes != NULL);
    choose_network(r, extended);
    bool as_listed = map->network[0] == '\0' && !r->view->tls;
    for (size_t i = 0; i < map->node_count; i++) {
        struct cluster_node *node = &map->nodes[i];
        if (read_node(r, json_object_array_get_idx(servers, i), node) < 0 ||
            (!as_listed && locate(r, extended, i) < 0)) {
            memcpy(node->problem, r->error, sizeof node->problem);
            node->port = 0;
            bad++;
        }
    }
    if (bad == map->node_count) {
        memcpy(r->error, map->nodes[0].problem, sizeof map->nodes[0].problem);
        return -1;
    }
    return 0;
}

/* --- vBuckets -----------------------------------------------------------------------------------
 */

/* One row: the active node's number, then those of the replicas. Returns how many copies there are
 * of those that there are to be, or -1. */
static int read_row(const struct reader *r, struct json_object *row, size_t vbucket, int16_t *owner,
                    size_t *wanted)
{
    int present = 0;
    *wanted = json_object_is_type(row, json_type_array) ? json_object_array_length(row) : 0;
    if (*wanted == 0) {
        return fail(r, "has a vBucket %zu without a server", vbucket);
    }
    for (size_t i = 0; i < *wanted; i++) {
        struct json_object *index = json_object_array_get_idx(row, i);
        int64_t node =
            json_object_is_type(index, json_type_int) ? json_object_get_int64(index) : INT64_MAX;
        if (node < -1 || node >= (int64_t)r->map->node_count) {
            return fail(r, "gives vBucket %zu to a server that is not in its list", vbucket);
        }
        *owner = i == 0 ? (int16_t)node : *owner;
        present += node >= 0;
    }
    return present;
}

/* short_count: as in struct cluster_map. */
static int read_rows(const struct reader *r, struct json_object *rows, int16_t **owners,
                     size_t *short_count)
{
    size_t count = r->map->vbucket_count;
    *owners = calloc(count, sizeof **owners);
    CHECK(*owners != NULL);
    for (size_t i = 0; i < count; i++) {
        size_t wanted;
        int present = read_row(r, json_object_array_get_idx(rows, i), i, &(*owners)[i], &wanted);
        if (present < 0) {
            return -1;
        }
        *short_count += (*owners)[i] >= 0 && (size_t)present < wanted / 2 + 1;
    }
    return 0;
}

static int read_vbuckets(const struct reader *r, struct json_object *buckets)
{
    struct cluster_map *map = r->map;
    struct json_object *rows = member(buckets, "vBucketMap", json_type_array);
    struct json_object *forward = member(buckets, "vBucketMapForward", json_type_array);
    struct slice hash = text_of(member(buckets, "hashAlgorithm", json_type_string));
    map->vbucket_count = rows == NULL ? 0 : json_object_array_length(rows);
    if (!slice_equal(hash, SLICE_LIT("CRC"))) {
        return fail(r, "asks for another hash than CRC");
    }
    if (map->vbucket_count == 0 || map->vbucket_count > CLUSTER_VBUCKETS_MAX ||
        (map->vbucket_count & (map->vbucket_count - 1)) != 0) {
        return fail(r, "has %zu vBuckets; expected a power of two up to %d", map->vbucket_count,
                    CLUSTER_VBUCKETS_MAX);
    }
    if (read_rows(r, rows, &map->owners, &map->short_count) < 0) {
        return -1;
    }
    size_t ignored = 0;
    /* A hint for the time of a rebalance: one of another size says nothing. */
    return forward != NULL && json_object_array_length(forward) == map->vbucket_count
               ? read_rows(r, forward, &map->forward, &ignored)
               : 0;
}

static int read_map(const struct reader *r, struct json_object *root)
{
    struct json_object *buckets = member(root, "vBucketServerMap", json_type_object);
    struct slice locator = text_of(member(root, "nodeLocator", json_type_string));
    if (locator.len > 0 && !slice_equal(locator, SLICE_LIT("vbucket"))) {
        return fail(r, "is of a memcached bucket; expected one of type Couchbase or Ephemeral");
    }
    if (buckets == NULL) {
        return fail(r, "has no vBuckets");
    }
    r->map->epoch = number_of(root, "revEpoch", -1);
    r->map->revision = number_of(root, "rev", -1);
    return read_nodes(r, root, member(buckets, "serverList", json_type_array)) < 0
               ? -1
               : read_vbuckets(r, buckets);
}

struct cluster_map *cluster_map_parse(struct slice json, const struct cluster_view *view,
                                      char error[CLUSTER_ERROR_MAX])
{
    struct reader r = {.view = view, .error = error};
    error[0] = '\0';
    struct json_object *root = parse_json(&r, json);
    if (root == NULL) {
        return NULL;
    }
    r.map = calloc(1, sizeof *r.map);
    CHECK(r.map != NULL);
    if (read_map(&r, root) < 0) {
        cluster_map_destroy(&r.map);
    }
    json_object_put(root);
    return r.map;
}

void cluster_map_destroy(struct cluster_map **slot)
{
    struct cluster_map *map = *slot;
    *slot = NULL;
    if (map != NULL) {
        free(map->nodes);
        free(map->owners);
        free(map->forward);
        free(map);
    }
}

bool cluster_map_is_newer(const struct cluster_map *a, const struct cluster_map *b)
{
    return b == NULL || a->epoch > b->epoch ||
           (a->epoch == b->epoch && (a->revision > b->revision || a->revision < 0));
}

int cluster_map_owner(const struct cluster_map *map, uint16_t vbucket, bool forward)
{
    CHECK(vbucket < map->vbucket_count);
    return forward && map->forward != NULL && map->forward[vbucket] >= 0 ? map->forward[vbucket]
                                                                         : map->owners[vbucket];
}
