/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a cluster: which there are, and who tells that. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "pool/couchbase/cluster_waits.h"
#include "pool/locate/srv.h"
#include "proto/server/binary.h"

/* How often a node is asked for its map, as Couchbase's own clients do. */
#define ASK_INTERVAL_US ((uint64_t)2500000)
/* The same when a request could not be done where the map says. */
#define ASK_PAUSE_US ((uint64_t)100000)
/* So long after a node was lost it may be that the others know where its keys are now. */
#define NEWS_US ((uint64_t)500000)
/* How often it is looked whether a node that has left owes no more answers. */
#define LEAVE_PAUSE_US ((uint64_t)100000)

static bool is_up(const struct node *node)
{
    return atomic_load_explicit(&node->server.in_state[UPSTREAM_UP], memory_order_relaxed) > 0;
}

bool cluster_has_contact(const struct cluster *c)
{
    const struct node *node;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        if (node->in_map && is_up(node)) {
            return true;
        }
    }
    return false;
}

/* --- nodes -------------------------------------------------------------------------------------
 */

static struct node *find_node(const struct cluster *c, const char *host, uint16_t port)
{
    struct node *node;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        if (!node->shut && node->config.endpoint.port == port &&
            strcasecmp(node->config.endpoint.host, host) == 0) {
            return node;
        }
    }
    return NULL;
}

static const char *name_of(struct cluster *c, const struct node *node)
{
    size_t size = strlen(node->config.name) + 1;
    struct node_name *name;
    SLIST_FOREACH(name, &c->names, link)
    {
        if (strcmp(name->text, node->config.name) == 0) {
            return name->text;
        }
    }
    name = malloc(sizeof *name + size);
    CHECK(name != NULL);
    memcpy(name->text, node->config.name, size);
    SLIST_INSERT_HEAD(&c->names, name, link);
    return name->text;
}

static struct node *add_node(struct cluster *c, const char *host, uint16_t port,
                             char error[CONFIG_ERROR_MAX])
{
    struct node *node = calloc(1, sizeof *node);
    CHECK(node != NULL);
    node->config.weight = 1;
    node->config.endpoint.port = port;
    snprintf(node->config.endpoint.host, sizeof node->config.endpoint.host, "%s", host);
    endpoint_format(&node->config.endpoint, node->config.name);
    if (connections_init(&node->server, c->context, &node->config, c->resolver, error) < 0) {
        free(node);
        return NULL;
    }
    node->server.caps.server_name = name_of(c, node);
    pthread_mutex_lock(&c->lock);
    TAILQ_INSERT_TAIL(&c->nodes, node, link);
    pthread_mutex_unlock(&c->lock);
    return node;
}

static void free_node(struct cluster *c, struct node *node)
{
    struct hold *hold;
    TAILQ_FOREACH(hold, &c->holds, link)
    {
        hold->server = hold->server == &node->server ? NULL : hold->server;
    }
    c->last_asked = c->last_asked == node ? NULL : c->last_asked;
    c->news_from = c->news_from == node ? NULL : c->news_from;
    c->collection.doubted = c->collection.doubted == node ? NULL : c->collection.doubted;
    pthread_mutex_lock(&c->lock);
    TAILQ_REMOVE(&c->nodes, node, link);
    pthread_mutex_unlock(&c->lock);
    connections_fini(&node->server);
    free(node);
}

static void connect_node(struct node *node)
{
    if (!node->shut) {
        connections_begin(&node->server);
    }
}

static int add_seed(struct cluster *c, const struct endpoint *at, char error[CONFIG_ERROR_MAX])
{
    struct node *node = find_node(c, at->host, at->port);
    if (node == NULL) {
        node = add_node(c, at->host, at->port, error);
    }
    if (node == NULL) {
        return -1;
    }
    node->leaving = false;
    return 0;
}

/* Those that its SRV records name; the server itself where it has none, or DNS does not tell. */
static int add_seeds_of(struct cluster *c, const struct server_config *server,
                        char error[CONFIG_ERROR_MAX])
{
    struct resolver_srv *srv = resolver_find_srv(c->resolver, server);
    struct srv_records records = {.count = 0};
    if (srv != NULL && resolver_ask_srv(srv, &records) == RESOLVER_WAIT) {
        return 0;
    }
    c->awaits_seeds = false;
    for (size_t i = 0; i < records.count; i++) {
        if (add_seed(c, &records.at[i], error) < 0) {
            return -1;
        }
    }
    return records.count > 0 ? 0 : add_seed(c, &server->endpoint, error);
}

int cluster_add_seeds(struct cluster *c, char error[CONFIG_ERROR_MAX])
{
    const struct pool_config *config = c->context->config;
    c->awaits_seeds = true;
    for (size_t i = 0; i < config->server_count; i++) {
        const struct server_config *server = &config->servers[i];
        if (add_seeds_of(c, server, error) < 0) {
            return -1;
        }
    }
    return 0;
}

void cluster_connect(struct cluster *c)
{
    struct node *node;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        connect_node(node);
    }
    cluster_set_timer(c, c->ask_us);
}

void cluster_end_nodes(struct cluster *c)
{
    while (!TAILQ_EMPTY(&c->nodes)) {
        free_node(c, TAILQ_FIRST(&c->nodes));
    }
    while (!SLIST_EMPTY(&c->names)) {
        struct node_name *name = SLIST_FIRST(&c->names);
        SLIST_REMOVE_HEAD(&c->names, link);
        free(name);
    }
    free(c->of_map);
    c->of_map = NULL;
}

void cluster_relocate(struct cluster *c)
{
    struct node *node;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        connections_relocate(&node->server);
    }
    if (c->awaits_seeds) {
        c->ask_us = cluster_now_us(c);
        cluster_set_timer(c, c->ask_us);
    }
}

size_t cluster_stats(struct cluster *c, struct server_stats *out, size_t max)
{
    struct node *node;
    size_t n = 0;
    pthread_mutex_lock(&c->lock);
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        if (n < max) {
            server_snapshot(&node->server, &out[n++]);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return n;
}

bool cluster_may_leave(struct cluster *c, struct server *server)
{
    struct node *gone = (struct node *)server;
    const struct node *node;
    if (gone->lost_us == 0) {
        gone->lost_us = cluster_now_us(c);
    }
    bool others = false;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        others = others || (node != gone && node->in_map && is_up(node));
    }
    return others && c->told_us < gone->lost_us && cluster_now_us(c) < gone->lost_us + NEWS_US;
}

struct node *cluster_owner(const struct cluster *c, uint16_t vbucket, bool forward)
{
    int index = cluster_map_owner(c->map, vbucket, forward);
    return index < 0 ? NULL : c->of_map[index];
}

/* --- those that leave ----------------------------------------------------------------------------
 */

static size_t owed_by(const struct cluster *c, const struct node *node)
{
    size_t n = node->is_asked + (c->collection.asked == node);
    for (uint32_t i = 0; i < node->server.upstream_count; i++) {
        n += node->server.upstreams[i].queued;
    }
    return n;
}

/* In three steps, each in a turn of its own: it gets no more requests; once it owes nothing, or
 * cannot be reached, its connections end; what ended with them is handed back, and it is gone. */
static void let_go(struct cluster *c, struct node *node)
{
    if (!node->shut && (owed_by(c, node) == 0 || !is_up(node))) {
        connections_shutdown(&node->server);
        if (health_first_left(&node->server)) {
            log_info("pool %s: node %s has left", c->context->config->name, node->config.name);
        }
        node->shut = true;
    } else if (node->shut && owed_by(c, node) == 0 && TAILQ_EMPTY(&c->context->finished)) {
        free_node(c, node);
    }
}

/* Nodes of the file that the map does not name are kept as long as no other can be asked. */
static void mark_leaving(struct cluster *c)
{
    bool contact = cluster_has_contact(c);
    struct node *node;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        node->leaving = node->shut || (!node->in_map && contact);
    }
}

void cluster_learn(struct cluster *c, struct server *from, const struct handshake *hs)
{
    struct node *at = (struct node *)from, *node;
    size_t lack = 0, have = 0;
    at->lost_us = 0;
    if (hs->durability == DURABILITY_NOT_TOLD) {
        return;
    }
    at->durability = hs->durability;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        lack += !node->leaving && node->durability == DURABILITY_LACKS;
        have += node->durability == DURABILITY_HAS;
    }
    c->durable = have > 0 && lack == 0;
    c->login.durable = c->durable || c->context->config->durability != POOL_DURABILITY_NONE;
}

enum be_durability cluster_durability(struct cluster *c, const struct be_operation *op)
{
    enum be_durability durability = (enum be_durability)c->context->config->durability;
    if (!op->durable || durability != BE_DURABILITY_NONE) {
        return durability;
    }
    if (c->durable) {
        return BE_DURABILITY_MAJORITY;
    }
    if (!c->told_unsafe) {
        c->told_unsafe = true;
        log_warn("pool %s: its nodes have no durable changes, as Couchbase 6.5 and newer do: a "
                 "failover may damage its lists",
                 c->context->config->name);
    }
    return BE_DURABILITY_NONE;
}

/* --- maps --------------------------------------------------------------------------------------
 */

static int find_nodes(struct cluster *c, const struct cluster_map *map,
                      char error[CONFIG_ERROR_MAX])
{
    struct node **of_map = calloc(map->node_count, sizeof *of_map);
    CHECK(of_map != NULL);
    for (size_t i = 0; i < map->node_count; i++) {
        const struct cluster_node *at = &map->nodes[i];
        if (at->port == 0) {
            continue;
        }
        of_map[i] = find_node(c, at->host, at->port);
        if (of_map[i] == NULL) {
            of_map[i] = add_node(c, at->host, at->port, error);
        }
        if (of_map[i] == NULL) {
            free(of_map);
            return -1;
        }
    }
    free(c->of_map);
    c->of_map = of_map;
    return 0;
}

static bool has_problem(const struct cluster_map *map, const char *problem)
{
    for (size_t i = 0; map != NULL && i < map->node_count; i++) {
        if (strcmp(map->nodes[i].problem, problem) == 0) {
            return true;
        }
    }
    return false;
}

/* Most changes of lists need a majority of the copies: who begins with one node meets that first.
 */
static void tell_short(const struct cluster *c, const struct cluster_map *map)
{
    if (map->short_count > 0 && (c->map == NULL || c->map->short_count == 0)) {
        log_warn("pool %s: %zu of %zu vBuckets have too few copies for durable changes, without "
                 "which there are no new lists: %s",
                 c->context->config->name, map->short_count, map->vbucket_count,
                 map->node_count == 1
                     ? "the bucket is to have replicas, and the cluster has one node: set the "
                       "replicas to 0 and rebalance, or add a node"
                     : "rebalance the cluster, or add a node");
    }
}

/* What is new with a map: of its way to name nodes, and of nodes that it does not show the way to.
 */
static void tell_news(const struct cluster *c, const struct cluster_map *map,
                      const struct server_config *from)
{
    const char *pool = c->context->config->name, *old = c->map == NULL ? "" : c->map->network;
    if (!c->context->watch) {
        return;
    }
    if (c->context->config->network == NETWORK_AUTO && strcmp(map->network, old) != 0) {
        log_info("pool %s: the nodes' addresses are those of the network %s, as %s is one", pool,
                 map->network[0] == '\0' ? "default" : map->network, from->name);
    }
    tell_short(c, map);
    for (size_t i = 0; i < map->node_count; i++) {
        const char *problem = map->nodes[i].problem;
        if (problem[0] != '\0' && !has_problem(c->map, problem)) {
            log_error("pool %s: its cluster map %s: requests for that node's keys fail", pool,
                      problem);
        }
    }
}

/* A rebalance takes them back one by one: the log tells the first and the worst, and the end. */
static void tell_without_node(struct cluster *c)
{
    const char *pool = c->context->config->name;
    if (c->without_node > c->told_without_node && c->context->watch) {
        log_error(
            "pool %s: %zu of %zu vBuckets have no node: requests for their keys fail until the "
            "cluster gives them one",
            pool, c->without_node, c->map->vbucket_count);
    } else if (c->without_node == 0 && c->told_without_node > 0 && c->context->watch) {
        log_info("pool %s: each vBucket has a node again", pool);
    }
    if (c->without_node == 0 || c->without_node > c->told_without_node) {
        c->told_without_node = c->without_node;
    }
}

/* old_count: of vBuckets, in the map before. */
static void count_vbuckets(struct cluster *c, size_t old_count)
{
    size_t old_without = c->without_node, count = c->map->vbucket_count;
    c->without_node = 0;
    for (size_t i = 0; i < count; i++) {
        c->without_node += cluster_owner(c, (uint16_t)i, false) == NULL;
    }
    /* Of all pools of the worker: the differences add up. */
    metric_add(c->context->metrics, METRIC_cluster_vbuckets, count - old_count);
    metric_add(c->context->metrics, METRIC_cluster_vbuckets_without_node,
               c->without_node - old_without);
    tell_without_node(c);
}

static void use_map(struct cluster *c, struct cluster_map *map, const struct server_config *from)
{
    struct node *node;
    tell_news(c, map, from);
    size_t old_count = c->map == NULL ? 0 : c->map->vbucket_count;
    cluster_map_destroy(&c->map);
    c->map = map;
    c->map_error[0] = '\0';
    metric_inc(c->context->metrics, METRIC_cluster_maps);
    log_debug("pool %s: map %lld.%lld of the cluster: %zu nodes, %zu vBuckets",
              c->context->config->name, (long long)map->epoch, (long long)map->revision,
              map->node_count, map->vbucket_count);
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        node->in_map = false;
    }
    for (size_t i = 0; i < map->node_count; i++) {
        if (c->of_map[i] != NULL) {
            c->of_map[i]->in_map = true;
            c->of_map[i]->leaving = false;
            c->of_map[i]->server.caps.is_alone = map->node_count == 1;
        }
    }
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        if (node->in_map) {
            connect_node(node);
        }
    }
    count_vbuckets(c, old_count);
    c->map_is_new = true;
    c->is_other_bucket |= old_count != 0 && old_count != map->vbucket_count;
    cluster_set_timer(c, 0);
}

static void note_bad_map(struct cluster *c, const struct server_config *from, const char *error)
{
    if (strcmp(error, c->map_error) != 0) {
        log_error("pool %s: node %s: its cluster map %s", c->context->config->name, from->name,
                  error);
        snprintf(c->map_error, sizeof c->map_error, "%s", error);
    }
}

/* Whose addresses are used is decided once, as long as that proves right: of nodes that have
 * addresses in several networks, the proxy reaches each in the same one. */
static struct cluster_view view_from(const struct cluster *c, const struct server_config *from,
                                     const char *address)
{
    enum pool_network network = c->context->config->network;
    bool guess = network == NETWORK_AUTO && (c->map == NULL || !cluster_has_contact(c));
    return (struct cluster_view){.tls = c->context->tls != NULL,
                                 .host = slice_of(from->endpoint.host),
                                 .port = from->endpoint.port,
                                 .address = slice_of(address),
                                 .guess_network = guess,
                                 .network = network == NETWORK_EXTERNAL ? SLICE_LIT("external")
                                            : network == NETWORK_AUTO && !guess
                                                ? slice_of(c->map->network)
                                                : SLICE_NONE};
}

void cluster_take_map(struct cluster *c, struct server *server, struct slice json)
{
    struct node *node = (struct node *)server;
    const struct server_config *from = &node->config;
    char text[ADDRESS_TEXT_MAX] = "";
    struct address plain = server->location.address;
    char error[CLUSTER_ERROR_MAX], why[CONFIG_ERROR_MAX];
    uint64_t hash = hash_bytes(json.p, json.len, 0);
    bool contact = cluster_has_contact(c);
    /* Each refusal brings the whole map: it is read once. */
    if (json.len == 0 || c->context->closing || (hash == node->map_hash && contact)) {
        return;
    }
    node->map_hash = hash;
    if (plain.len > 0) {
        address_set_port(&plain, 0);
        (void)address_text(&plain, text);
    }
    struct cluster_view view = view_from(c, from, text);
    struct cluster_map *map = cluster_map_parse(json, &view, error);
    if (map == NULL) {
        note_bad_map(c, from, error);
        return;
    }
    /* Where no node of the map answers any more, any other map is better: the cluster may have been
     * made anew, and count from one again. */
    if (!cluster_map_is_newer(map, c->map) && contact) {
        cluster_map_destroy(&map);
        return;
    }
    if (find_nodes(c, map, why) < 0) {
        note_bad_map(c, from, why);
        cluster_map_destroy(&map);
        return;
    }
    use_map(c, map, from);
}

/* --- asking ------------------------------------------------------------------------------------
 */

static void on_answer(struct exchange *x, const struct be_reply *reply)
{
    struct cluster *c = x->owner;
    struct node *node = (struct node *)x->server;
    node->is_asked = false;
    if (reply->status == BE_ANSWERED) {
        c->told_us = x->since_us;
        cluster_take_map(c, x->server, reply->value);
    }
}

static bool may_be_asked(const struct node *node)
{
    return is_up(node) && !node->leaving;
}

static struct upstream *connection_of(struct node *node)
{
    for (uint32_t i = 0; i < node->server.upstream_count; i++) {
        if (node->server.upstreams[i].state == UPSTREAM_UP) {
            return &node->server.upstreams[i];
        }
    }
    return NULL;
}

struct upstream *cluster_contact(const struct cluster *c, struct node **preferred)
{
    struct node *node = *preferred;
    for (size_t turns = 0; turns < 2; turns++) {
        node = node == NULL ? TAILQ_FIRST(&c->nodes) : node;
        while (node != NULL && !may_be_asked(node)) {
            node = TAILQ_NEXT(node, link);
        }
        if (node != NULL) {
            *preferred = node;
            return connection_of(node);
        }
    }
    return NULL;
}

static void ask(struct cluster *c)
{
    struct node *node = c->last_asked == NULL ? NULL : TAILQ_NEXT(c->last_asked, link);
    node = c->news_from == NULL ? node : c->news_from;
    c->news_from = NULL;
    struct upstream *u = cluster_contact(c, &node);
    u = u != NULL && node->is_asked ? NULL : u;
    c->asked_us = cluster_now_us(c);
    c->ask_us = c->asked_us + ASK_INTERVAL_US;
    if (u == NULL) {
        char error[CONFIG_ERROR_MAX];
        if (!cluster_has_contact(c) && cluster_add_seeds(c, error) < 0) {
            log_error("pool %s: %s", c->context->config->name, error);
        }
        cluster_connect(c);
        return;
    }
    char version[BINARY_VERSION_BYTES];
    struct slice known = SLICE_NONE;
    if (u->handshake.tells_newer && c->map != NULL && c->map->revision >= 0) {
        binary_put_version(version, c->map->epoch, c->map->revision);
        known = slice_make(version, sizeof version);
    }
    c->last_asked = node;
    node->is_asked = true;
    node->asking = (struct exchange){.op = {.verb = BE_MAP, .opaque = ++c->opaque},
                                     .done = on_answer,
                                     .owner = c,
                                     .server = &node->server,
                                     .is_internal = true};
    node->asking.op.value = known;
    upstream_submit(u, &node->asking);
}

void cluster_want_map(struct cluster *c)
{
    uint64_t at_us = c->asked_us + ASK_PAUSE_US;
    if (at_us < c->ask_us) {
        c->ask_us = at_us;
        cluster_set_timer(c, at_us);
    }
}

/* One that comes without the map itself has the node asked for it. */
void cluster_hear(struct cluster *c, struct server *from, const struct wire_news *news)
{
    const struct cluster_map told = {.epoch = news->epoch, .revision = news->revision};
    metric_inc(c->context->metrics, METRIC_cluster_news);
    if (news->map.len > 0) {
        cluster_take_map(c, from, news->map);
    } else if (cluster_map_is_newer(&told, c->map)) {
        c->news_from = (struct node *)from;
        cluster_want_map(c);
    }
}

uint64_t cluster_tend_nodes(struct cluster *c)
{
    uint64_t next_us;
    struct node *node, *next;
    if (cluster_now_us(c) >= c->ask_us) {
        ask(c);
    }
    next_us = c->ask_us;
    mark_leaving(c);
    for (node = TAILQ_FIRST(&c->nodes); node != NULL; node = next) {
        next = TAILQ_NEXT(node, link);
        if (node->leaving) {
            next_us = cluster_now_us(c) + LEAVE_PAUSE_US < next_us
                          ? cluster_now_us(c) + LEAVE_PAUSE_US
                          : next_us;
            let_go(c, node);
        }
    }
    return next_us;
}
