/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/placement.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/table.h"
#include "pool/locate/address.h"

/* For each name that is wanted, so many lines of a server are read at most. */
#define LINES_PER_NAME 100
/* A line of a metadump has a key of 250 bytes, each of which may be escaped, and some numbers. */
#define LINE_BYTES_MAX 4096
/* How often a look sees that it is to stop, and a busy crawler is asked again. */
#define TICK_MS 20
#define RULES_MAX 64

static const struct config_key *key_of(const char *name)
{
    return config_key_known(SECTION_POOL, name);
}

/* --- which names belong to lists ------------------------------------------------------------ */

static bool has_dialect(const struct list_policy *policy)
{
    return policy->dialect != DIALECT_NATIVE;
}

bool placement_matters(const struct config *config, size_t pool_index, bool only_dialects)
{
    const struct pool_config *pool = &config->pools[pool_index];
    if (pool->type != POOL_MEMCACHED || pool->server_count < 2) {
        return false;
    }
    for (size_t i = 0; i < config->list_count; i++) {
        const struct list_policy *policy = &config->lists[i];
        if (policy->pool_index == pool_index && (!only_dialects || has_dialect(policy))) {
            return true;
        }
    }
    return false;
}

/* The key's policy, if its lists are in the pool. */
static const struct list_policy *policy_of(const struct config *config, size_t pool_index,
                                           struct slice key)
{
    const struct list_policy *policy = config_list_policy(config, key);
    return policy->pool_index == pool_index ? policy : NULL;
}

static bool keeps_own_key(const struct list_policy *policy)
{
    return policy->dialect == DIALECT_SIMPLE || policy->dialect == DIALECT_TOMBSTONE ||
           policy->dialect == DIALECT_SIGNED || policy->dialect == DIALECT_SUBLISTS;
}

/* Does the name begin as one of the templates makes it for a list of that policy? */
static bool is_of_template(const struct config *config, const struct list_policy *policy,
                           struct slice name)
{
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].type != TYPE_TEMPLATE || (keys[i].dialects >> policy->dialect & 1) == 0) {
            continue;
        }
        const char *template = (const char *)policy + keys[i].offset;
        size_t before = strcspn(template, "%");
        if (name.len > before && memcmp(name.p, template, before) == 0) {
            struct slice key = slice_make(name.p + before, name.len - before);
            if (config_list_policy(config, key) == policy) {
                return true;
            }
        }
    }
    return false;
}

/* Of native lists only heads count: sublists may be kept with their head. */
static bool is_of_list(const struct config *config, size_t pool_index, struct slice name)
{
    const char *sign = memchr(name.p, '#', name.len);
    if (sign != NULL) {
        struct slice key = slice_make(name.p, name.len - 1);
        return name.len > 1 && sign == name.p + name.len - 1 &&
               policy_of(config, pool_index, key) != NULL;
    }
    for (size_t i = 0; i < config->list_count; i++) {
        const struct list_policy *policy = &config->lists[i];
        if (policy->pool_index == pool_index && has_dialect(policy) &&
            ((keeps_own_key(policy) && config_list_policy(config, name) == policy) ||
             is_of_template(config, policy, name))) {
            return true;
        }
    }
    return false;
}

/* --- rules ---------------------------------------------------------------------------------- */

struct rule {
    enum pool_distribution distribution;
    enum pool_hash hash;
    struct shard *shard;
    uint64_t fitting;
};

static struct shard *shard_of(const struct pool_config *pool, enum pool_distribution distribution,
                              enum pool_hash hash)
{
    char error[CONFIG_ERROR_MAX];
    struct pool_config other = *pool;
    other.distribution = distribution;
    other.hash = hash;
    other.hash_cache_bytes = 0;
    return shard_create(&other, error);
}

/* The one in force first, then all others that this libmemcached has. */
static size_t make_rules(const struct pool_config *pool, struct rule rules[RULES_MAX])
{
    size_t count = 0;
    rules[count++] = (struct rule){pool->distribution, pool->hash,
                                   shard_of(pool, pool->distribution, pool->hash), 0};
    for (unsigned d = 0; key_of("distribution")->words[d] != NULL; d++) {
        for (unsigned h = 0; key_of("hash")->words[h] != NULL && count < RULES_MAX; h++) {
            struct rule rule = {(enum pool_distribution)d, (enum pool_hash)h, NULL, 0};
            if (d == pool->distribution && h == pool->hash) {
                continue;
            }
            rule.shard = shard_of(pool, rule.distribution, rule.hash);
            if (rule.shard != NULL) {
                rules[count++] = rule;
            }
        }
    }
    return count;
}

static void free_rules(struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        shard_destroy(&rules[i].shard);
    }
}

/* --- one look ------------------------------------------------------------------------------- */

struct look;

/* A server on the way to its END. */
struct asked {
    struct look *look;
    size_t index; /* in the pool */
    struct resolver_name *name;
    struct bufferevent *connection; /* NULL: not yet, or not any more */
    uint64_t lines, names;
    bool over, by_lru, busy;
};

struct look {
    const struct config *config;
    const struct pool_config *pool;
    size_t pool_index;
    const atomic_bool *stop;
    uint64_t end_us, names_max;
    struct event_base *base;
    struct placement_found *found;
    struct rule rules[RULES_MAX];
    size_t rule_count;
    struct asked asked[CONFIG_SERVERS_MAX];
};

static void end_asked(struct asked *a, bool whole)
{
    if (a->over) {
        return;
    }
    a->over = true;
    a->look->found->silent += !whole;
    if (a->connection != NULL) {
        bufferevent_free(a->connection);
        a->connection = NULL;
    }
}

static void ask_for_names(struct asked *a)
{
    const char *way = a->by_lru ? "lru_crawler metadump all\r\n" : "lru_crawler metadump hash\r\n";
    (void)bufferevent_write(a->connection, way, strlen(way));
}

static void count_name(struct asked *a, const char *text, size_t len)
{
    struct look *look = a->look;
    char quoted[LINE_BYTES_MAX];
    size_t size;
    if (len >= sizeof quoted) {
        return;
    }
    memcpy(quoted, text, len);
    quoted[len] = '\0';
    char *name = evhttp_uridecode(quoted, 0, &size);
    CHECK(name != NULL);
    struct slice key = slice_make(name, size);
    if (size > 0 && is_of_list(look->config, look->pool_index, key)) {
        a->names++;
        look->found->names++;
        for (size_t i = 0; i < look->rule_count; i++) {
            look->rules[i].fitting += shard_index(look->rules[i].shard, key) == a->index;
        }
    }
    free(name);
}

/* What the memcached says in a line. */
static void take_line(struct asked *a, const char *line, size_t len)
{
    if (strncmp(line, "key=", 4) == 0) {
        count_name(a, line + 4, strcspn(line + 4, " "));
        if (a->names >= a->look->names_max || ++a->lines >= a->look->names_max * LINES_PER_NAME) {
            end_asked(a, true);
        }
    } else if (len == 3 && memcmp(line, "END", 3) == 0) {
        end_asked(a, true);
    } else if (strncmp(line, "BUSY", 4) == 0 || strncmp(line, "LOCKED", 6) == 0) {
        a->busy = true; /* the crawler does one thing at a time */
    } else if (!a->by_lru) {
        a->by_lru = true; /* it does not know the way through the hash table */
        ask_for_names(a);
    } else {
        end_asked(a, false);
    }
}

static void on_readable(struct bufferevent *connection, void *arg)
{
    struct asked *a = arg;
    struct evbuffer *input = bufferevent_get_input(connection);
    char *line;
    size_t len;
    while (!a->over && (line = evbuffer_readln(input, &len, EVBUFFER_EOL_CRLF)) != NULL) {
        take_line(a, line, len);
        free(line);
    }
    if (!a->over && evbuffer_get_length(input) > LINE_BYTES_MAX) {
        end_asked(a, false); /* nothing that a memcached would say */
    }
}

static void on_event(struct bufferevent *connection, short what, void *arg)
{
    struct asked *a = arg;
    (void)connection;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        ask_for_names(a);
    } else {
        end_asked(a, false);
    }
}

static void connect_to(struct asked *a, const struct address *address)
{
    a->connection = bufferevent_socket_new(a->look->base, -1, BEV_OPT_CLOSE_ON_FREE);
    CHECK(a->connection != NULL);
    bufferevent_setcb(a->connection, on_readable, NULL, on_event, a);
    bufferevent_setwatermark(a->connection, EV_READ, 0, 64 * 1024);
    (void)bufferevent_enable(a->connection, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect(a->connection, (const struct sockaddr *)&address->sa,
                                   (int)address->len) != 0) {
        end_asked(a, false);
    }
}

/* Connects as soon as it is known where the server is. */
static void find_server(struct asked *a)
{
    const struct endpoint *endpoint = &a->look->pool->servers[a->index].endpoint;
    struct location location;
    uint64_t version;
    if (!address_of_endpoint(endpoint, &location)) {
        enum resolver_answer answer =
            a->name == NULL ? RESOLVER_UNKNOWN : resolver_ask(a->name, &location, &version);
        if (answer == RESOLVER_UNKNOWN) {
            end_asked(a, false);
        }
        if (answer != RESOLVER_KNOWN) {
            return;
        }
        address_set_port(&location.address, endpoint->port);
    }
    connect_to(a, &location.address);
}

static bool all_over(const struct look *look)
{
    for (size_t i = 0; i < look->pool->server_count; i++) {
        if (!look->asked[i].over) {
            return false;
        }
    }
    return true;
}

static bool must_end(const struct look *look)
{
    return (look->stop != NULL && atomic_load(look->stop)) || clock_now().mono_us >= look->end_us;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct look *look = arg;
    (void)fd;
    (void)what;
    for (size_t i = 0; i < look->pool->server_count; i++) {
        struct asked *a = &look->asked[i];
        if (!a->over && a->connection == NULL) {
            find_server(a);
        } else if (!a->over && a->busy) {
            a->busy = false;
            ask_for_names(a);
        }
    }
    if (must_end(look) || all_over(look)) {
        (void)event_base_loopbreak(look->base);
    }
}

static void run_look(struct look *look, struct resolver *resolver)
{
    const struct timeval tick = {0, TICK_MS * 1000};
    look->base = event_base_new();
    CHECK(look->base != NULL);
    struct event *ticks = event_new(look->base, -1, EV_PERSIST, on_tick, look);
    CHECK(ticks != NULL && event_add(ticks, &tick) == 0);
    for (size_t i = 0; i < look->pool->server_count; i++) {
        struct asked *a = &look->asked[i];
        *a = (struct asked){.look = look, .index = i};
        a->name = resolver_find(resolver, &look->pool->servers[i].endpoint);
        find_server(a);
    }
    if (!all_over(look)) {
        (void)event_base_dispatch(look->base);
    }
    for (size_t i = 0; i < look->pool->server_count; i++) {
        end_asked(&look->asked[i], false);
        if (look->asked[i].name != NULL) {
            resolver_release(look->asked[i].name);
        }
    }
    event_free(ticks);
    event_base_free(look->base);
}

void placement_look(const struct config *config, size_t pool_index, struct resolver *resolver,
                    const atomic_bool *stop, struct placement_found *found)
{
    const struct pool_config *pool = &config->pools[pool_index];
    struct look *look = calloc(1, sizeof *look);
    CHECK(look != NULL);
    *found = (struct placement_found){0};
    look->config = config;
    look->pool = pool;
    look->pool_index = pool_index;
    look->stop = stop;
    look->found = found;
    look->names_max = pool->placement_names;
    look->end_us = clock_now().mono_us + (uint64_t)config->long_timeout_ms * 1000;
    look->rule_count = make_rules(pool, look->rules);
    run_look(look, resolver);
    const struct rule *best = &look->rules[0];
    for (size_t i = 1; i < look->rule_count; i++) {
        const struct rule *rule = &look->rules[i];
        if (rule->fitting > best->fitting) {
            best = rule;
            found->equal = 0;
        } else {
            found->equal += rule->fitting == best->fitting;
        }
    }
    found->fitting = look->rules[0].fitting;
    found->distribution = best->distribution;
    found->hash = best->hash;
    found->best = best->fitting;
    free_rules(look->rules, look->rule_count);
    free(look);
}

const char *placement_text(const struct pool_config *pool, const struct placement_found *found,
                           char out[PLACEMENT_TEXT_MAX])
{
    const char *const *distributions = key_of("distribution")->words;
    const char *const *hashes = key_of("hash")->words;
    int n = snprintf(out, PLACEMENT_TEXT_MAX,
                     "pool %s: of %" PRIu64 " items of lists, %" PRIu64
                     " lie where distribution = %s, hash = %s looks for them",
                     pool->name, found->names, found->fitting, distributions[pool->distribution],
                     hashes[pool->hash]);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (found->best > found->fitting) {
        char others[64] = "";
        if (found->equal > 0) {
            (void)snprintf(others, sizeof others, ", as many where %zu other rules do",
                           found->equal);
        }
        snprintf(out + used, PLACEMENT_TEXT_MAX - used,
                 ", %" PRIu64 " where distribution = %s, hash = %s does%s: lists are not found, "
                 "and are begun a second time; %s",
                 found->best, distributions[found->distribution], hashes[found->hash], others,
                 found->best == found->names
                     ? "set both as the clients have them"
                     : "no rule fits all, so set both as the clients have them, and name the "
                       "servers in the same order and in the same way");
    } else if (found->silent > 0) {
        snprintf(out + used, PLACEMENT_TEXT_MAX - used,
                 "; %zu of %zu servers could not be asked for the names of their items",
                 found->silent, pool->server_count);
    }
    return out;
}

/* --- a thread for that ---------------------------------------------------------------------- */

struct placement_watch {
    const struct config *config;
    struct resolver *resolver;
    pthread_t thread;
    atomic_bool stop, done;
};

static void *look_once(void *arg)
{
    struct placement_watch *p = arg;
    for (size_t i = 0; i < p->config->pool_count && !atomic_load(&p->stop); i++) {
        const struct pool_config *pool = &p->config->pools[i];
        struct placement_found found;
        char text[PLACEMENT_TEXT_MAX];
        if (pool->placement_names == 0 || !placement_matters(p->config, i, true)) {
            continue;
        }
        placement_look(p->config, i, p->resolver, &p->stop, &found);
        if (atomic_load(&p->stop)) {
            break;
        }
        if (found.best > found.fitting) {
            log_warn("%s", placement_text(pool, &found, text));
        } else if (found.fitting < found.names || found.silent > 0) {
            log_info("%s", placement_text(pool, &found, text));
        }
    }
    atomic_store(&p->done, !atomic_load(&p->stop));
    return NULL;
}

struct placement_watch *placement_start(const struct config *config, struct resolver *resolver)
{
    bool matters = false;
    for (size_t i = 0; i < config->pool_count; i++) {
        matters =
            matters || (config->pools[i].placement_names > 0 && placement_matters(config, i, true));
    }
    if (!matters) {
        return NULL;
    }
    struct placement_watch *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->config = config;
    p->resolver = resolver;
    atomic_init(&p->stop, false);
    atomic_init(&p->done, false);
    int rc = pthread_create(&p->thread, NULL, look_once, p);
    if (rc != 0) {
        log_warn("no thread to see where lists lie: %s", strerror(rc));
        free(p);
        return NULL;
    }
    return p;
}

bool placement_stop(struct placement_watch **slot)
{
    struct placement_watch *p = *slot;
    *slot = NULL;
    if (p == NULL) {
        return true;
    }
    atomic_store(&p->stop, true);
    (void)pthread_join(p->thread, NULL);
    bool done = atomic_load(&p->done);
    free(p);
    return done;
}

/* --- a rule by its name --------------------------------------------------------------------- */

static bool rule_named(const struct pool_config *pool, struct slice word,
                       enum pool_distribution *distribution, enum pool_hash *hash)
{
    unsigned d, h;
    const char *slash = memchr(word.p, '/', word.len);
    *distribution = pool->distribution;
    *hash = pool->hash;
    if (slash == NULL) {
        return slice_equal(word, SLICE_LIT("-"));
    }
    size_t before = (size_t)(slash - word.p);
    struct slice behind = slice_make(slash + 1, word.len - before - 1);
    if (!config_word_find(key_of("distribution"), slice_make(word.p, before), &d) ||
        !config_word_find(key_of("hash"), behind, &h)) {
        return false;
    }
    *distribution = (enum pool_distribution)d;
    *hash = (enum pool_hash)h;
    return true;
}

struct shard *placement_rule(const struct pool_config *pool, struct slice rule)
{
    enum pool_distribution distribution;
    enum pool_hash hash;
    return rule_named(pool, rule, &distribution, &hash) ? shard_of(pool, distribution, hash) : NULL;
}
