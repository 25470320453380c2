/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/where.h"

#include <event2/buffer.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/table.h"
#include "pool/pool.h"
#include "proto/key.h"
#include "proxy/core/shared.h"
#include "proxy/core/trace.h"
#include "proxy/core/worker.h"
#include "proxy/figures.h"
#include "proxy/plain/shadow.h"
#include "proxy/proxy.h"

#define NAME_TEXT_MAX (2 * (size_t)CONFIG_NAME_MAX + KEY_BYTES_MAX)

struct printing {
    struct slice key;
    struct evbuffer *out;
    struct worker *worker;          /* the first: only a worker may ask its pools */
    struct server_figures *servers; /* of all workers */
    size_t server_count;
};

static const char *state_of(const struct printing *p, size_t pool_index, const char *name)
{
    for (size_t i = 0; i < p->server_count; i++) {
        if (p->servers[i].pool_index == pool_index && strcmp(p->servers[i].stats.name, name) == 0) {
            return server_state(&p->servers[i].stats);
        }
    }
    return "unknown";
}

/* what: of the list. placement: the key that chooses the server; NULL: as many as there are items,
 * whose names end in a number that is not known here. */
static void print_item(const struct printing *p, size_t pool_index, const char *what,
                       const struct slice *placement, struct slice item)
{
    char shown[4 * NAME_TEXT_MAX + 1];
    struct pool_place place = {.vbucket = -1};
    evbuffer_add_printf(p->out, "what=%s ", what);
    if (placement == NULL) {
        evbuffer_add_printf(p->out, "server=each ");
    } else if (!pool_find(p->worker->pools[pool_index], *placement, &place)) {
        evbuffer_add_printf(p->out, "server=unknown ");
    } else {
        evbuffer_add_printf(p->out, "server=%s state=%s ", place.server,
                            state_of(p, pool_index, place.server));
    }
    if (place.vbucket >= 0) {
        evbuffer_add_printf(p->out, "vbucket=%d ", place.vbucket);
    }
    evbuffer_add_printf(p->out, "pool=%s item=%s\n", p->worker->config->pools[pool_index].name,
                        slice_escape(item, shown, sizeof shown));
}

/* Is the setting the name of a part that the list has? Then it is written to out. */
static bool is_part(const struct config_key *setting, const struct list_policy *policy,
                    struct slice key, struct trace_name *out)
{
    if (setting->type != TYPE_TEMPLATE || (setting->dialects >> policy->dialect & 1) == 0) {
        return false;
    }
    const char *template = (const char *)policy + setting->offset;
    const char *hole = strstr(template, "%s");
    out->numbered = setting->offset == offsetof(struct list_policy, sublist_name) ||
                    setting->offset == offsetof(struct list_policy, slot_name);
    out->len = (size_t)snprintf(out->text, sizeof out->text, "%.*s%.*s%s", (int)(hole - template),
                                template, SLICE_ARGS(key), hole + 2);
    return true;
}

/* The parts of a list of a dialect that have names of their own, as the configuration's table has
 * them. */
static void print_parts(const struct printing *p, const struct list_policy *policy,
                        struct slice key)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        struct trace_name part;
        if (is_part(&keys[i], policy, key, &part)) {
            char name[NAME_TEXT_MAX], what[32]; /* add_name is that of `add` */
            (void)snprintf(what, sizeof what, "%.*s", (int)strcspn(keys[i].name, "_"),
                           keys[i].name);
            int len = snprintf(name, sizeof name, "%s%s", part.text, part.numbered ? "NUMBER" : "");
            struct slice item = slice_make(name, (size_t)len);
            print_item(p, policy->pool_index, what, part.numbered ? NULL : &item, item);
        }
    }
}

size_t where_names(const struct config *config, struct slice key, struct trace_name *out)
{
    size_t count, found = 0;
    const struct list_policy *policy = config_list_policy(config, key);
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count && found < TRACE_NAMES_MAX; i++) {
        found += is_part(&keys[i], policy, key, &out[found]);
    }
    return found;
}

static void print_native(const struct printing *p, const struct list_policy *policy,
                         struct slice key)
{
    bool is_cluster = policy->pool_type == POOL_COUCHBASE;
    char name[LIST_KEY_BYTES_MAX + sizeof "#NAME.NUMBER"];
    int len = snprintf(name, sizeof name, "%.*s#NAME.NUMBER", (int)key.len, key.p);
    struct slice head = slice_make(name, key.len + 1);
    print_item(p, policy->pool_index, "head", &head, head);
    print_item(p, policy->pool_index, "sublist",
               is_cluster || policy->placement == PLACEMENT_SPREAD ? NULL : &head,
               slice_make(name, (size_t)len));
}

static void print_list(const struct printing *p, struct slice key)
{
    const struct list_policy *policy = config_list_policy(p->worker->config, key);
    const char *dialect = config_key_known(SECTION_LISTS, "dialect")->words[policy->dialect];
    char prefix[CONFIG_PREFIX_TEXT_MAX];
    evbuffer_add_printf(p->out, "section=[lists%s%s] dialect=%s%s\n",
                        policy->prefix_len > 0 ? " " : "", config_prefix_text(policy, prefix),
                        dialect, policy->migrate == MIGRATE_NATIVE ? " migrate=native" : "");
    if (key.len > LIST_KEY_BYTES_MAX ||
        (policy->dialect != DIALECT_NATIVE && key.len > policy->key_bytes_max)) {
        evbuffer_add_printf(p->out, "what=none: the key is too long for a list\n");
        return;
    }
    switch (policy->dialect) {
    case DIALECT_SIMPLE:
    case DIALECT_TOMBSTONE:
    case DIALECT_SIGNED:
        print_item(p, policy->pool_index, "list", &key, key);
        break;
    case DIALECT_SUBLISTS:
        print_item(p, policy->pool_index, "index", &key, key);
        break;
    default:
        break;
    }
    print_parts(p, policy, key);
    if (policy->dialect == DIALECT_NATIVE || policy->migrate == MIGRATE_NATIVE) {
        print_native(p, policy, key);
    }
}

/* The pools that a plain key may be in. */
static void print_plain(const struct printing *p)
{
    char prefix[ROUTE_TEXT_MAX];
    const struct config *config = p->worker->config;
    const struct route_config *route = config_route(config, p->key);
    if (config->has_routes) {
        evbuffer_add_printf(p->out, "route=%s failover=%s shadow=%s shadowed=%s\n",
                            figure_route_text(route, prefix), figure_or_none(route->failover_name),
                            figure_or_none(route->shadow),
                            shadow_takes(route, p->key) ? "yes" : "no");
    }
    print_item(p, route->pool_index, "plain", &p->key, p->key);
    if (route->failover_index != ROUTE_NONE) {
        print_item(p, route->failover_index, "failover", &p->key, p->key);
    }
    if (shadow_takes(route, p->key)) {
        print_item(p, route->shadow_index, "shadow", &p->key, p->key);
    }
}

static void print(struct worker *w, void *arg)
{
    struct printing *p = arg;
    if (w->index == 0) {
        p->worker = w;
        print_plain(p);
        print_list(p, p->key);
    }
}

int where_print(struct proxy *proxy, struct slice key, struct evbuffer *out)
{
    struct printing p = {.key = key, .out = out};
    p.servers = figures_of_servers(proxy_shared(proxy), &p.server_count);
    int rc = proxy_ask(proxy, print, &p);
    free(p.servers);
    return rc;
}
