/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/stats.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/version.h"
#include "list/core/cache.h"
#include "list/core/run_index.h"
#include "list/core/metrics.h"
#include "pool/placement.h"
#include "pool/pool.h"
#include "proto/client/request_parse.h"
#include "proxy/shared.h"
#include "proxy/worker.h"

/* Longer lines are cut; the longest values are paths of the configuration. */
#define LINE_BYTES 1024

static void line(struct chain *out, const char *format, ...) PRINTF_LIKE(2, 3);
static void line(struct chain *out, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len > (int)sizeof text - 1) {
        len = (int)sizeof text - 1;
    }
    chain_copy_slice(out, SLICE_LIT("STAT "));
    chain_copy(out, text, (size_t)len);
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

static void number(struct chain *out, const char *name, uint64_t value)
{
    line(out, "%s %" PRIu64, name, value);
}

/* --- counters --- */

/* In the order in which they are printed. */
static const struct metric_table *const tables[] = {&proxy_metrics, &pool_metrics, &backend_metrics,
                                                    &list_metrics};
_Static_assert((int)BACKEND_METRIC_END <= (int)LIST_METRIC_BEFORE + 1 &&
                   (int)LIST_METRIC_END <= (int)POOL_METRIC_BEFORE + 1 &&
                   (int)POOL_METRIC_END <= (int)PROXY_METRIC_BEFORE + 1 &&
                   (int)PROXY_METRIC_END <= METRIC_MAX,
               "two tables of counters have numbers in common");

static uint64_t metric_sum(const struct shared *shared, unsigned which)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < shared->worker_count; i++) {
        sum += metric_get(&shared->workers[i]->metrics, which);
    }
    return sum;
}

/* Of the oldest transaction under way; workers note the second in which theirs has begun. */
static uint64_t transaction_age_s(const struct shared *shared, int64_t now_s)
{
    uint64_t age_s = 0;
    for (size_t i = 0; i < shared->worker_count; i++) {
        int64_t begun_s = (int64_t)metric_get(&shared->workers[i]->metrics, METRIC_transaction_age);
        if (begun_s != 0 && begun_s < now_s && (uint64_t)(now_s - begun_s) > age_s) {
            age_s = (uint64_t)(now_s - begun_s);
        }
    }
    return age_s;
}

/* Each worker has read the cluster's map by itself; the one that sees most is right, or will be. */
static uint64_t metric_max(const struct shared *shared, unsigned which)
{
    uint64_t max = 0;
    for (size_t i = 0; i < shared->worker_count; i++) {
        uint64_t one = metric_get(&shared->workers[i]->metrics, which);
        max = one > max ? one : max;
    }
    return max;
}

static uint64_t metric_shown(struct shared *shared, unsigned which, int64_t now_s)
{
    if (which == METRIC_transaction_age) {
        return transaction_age_s(shared, now_s);
    }
    if (which == METRIC_cluster_vbuckets || which == METRIC_cluster_vbuckets_without_node) {
        return metric_max(shared, which);
    }
    return metric_sum(shared, which) - atomic_load(&shared->baseline[which]);
}

/* A level, not a count. */
static bool is_level(unsigned which)
{
    return which == METRIC_curr_connections || which == METRIC_transactions_waiting ||
           which == METRIC_transactions_pending || which == METRIC_transactions_committed;
}

static void reset(struct shared *shared)
{
    for (unsigned m = 0; m < METRIC_MAX; m++) {
        if (!is_level(m)) {
            atomic_store(&shared->baseline[m], metric_sum(shared, m));
        }
    }
}

static void show_process(struct worker *w, struct chain *out)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    number(out, "pid", (uint64_t)getpid());
    number(out, "uptime", (w->now.mono_us - w->shared->started_us) / 1000000);
    line(out, "time %" PRId64, w->now.wall_s);
    line(out, "version %s", PROXY_VERSION);
    line(out, "libevent %s", event_get_version());
    number(out, "pointer_size", 8 * sizeof(void *));
    line(out, "rusage_user %ld.%06ld", (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
    line(out, "rusage_system %ld.%06ld", (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec);
    number(out, "max_connections", w->config->max_connections);
    number(out, "threads", w->shared->worker_count);
    number(out, "log_lines_dropped", log_dropped());
}

/* Policies may share a cache; each counts once. */
static void show_caches(const struct shared *shared, struct chain *out)
{
    struct cache_stats sum = {0};
    for (size_t i = 0; i < shared->config->list_count; i++) {
        if (i > 0 && shared->caches[i] == shared->caches[0]) {
            continue;
        }
        struct cache_stats one;
        cache_get_stats(shared->caches[i], &one);
        sum.bytes += one.bytes;
        sum.limit_bytes += one.limit_bytes;
        sum.sublists += one.sublists;
    }
    number(out, "cache_bytes", sum.bytes);
    number(out, "cache_limit_bytes", sum.limit_bytes);
    number(out, "cache_sublists", sum.sublists);
}

static void show_indexes(const struct shared *shared, struct chain *out)
{
    struct run_indexes_stats stats;
    run_indexes_get_stats(shared->indexes, &stats);
    number(out, "index_bytes", stats.bytes);
    number(out, "index_limit_bytes", stats.limit_bytes);
    number(out, "index_runs", stats.runs);
}

static void show_memory(const struct shared *shared, struct chain *out)
{
    number(out, "memory_bytes", memory_held());
    number(out, "memory_limit_bytes", shared->config->memory_limit_bytes);
}

static void show_counters(struct worker *w, struct chain *out)
{
    show_process(w, out);
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            unsigned which = tables[t]->first + i;
            number(out, tables[t]->rows[i].name, metric_shown(w->shared, which, w->now.wall_s));
        }
    }
    show_memory(w->shared, out);
    show_caches(w->shared, out);
    show_indexes(w->shared, out);
}

/* --- backends --- */

/* The best that any worker sees: one that works shows that the server does. A worker that has
 * ejected the server shows that it hangs, whatever connections the others still have. */
static int state_rank(const char *state)
{
    static const char *const ranks[] = {"idle", "down", "ejected", "connecting", "up"};
    int rank = -1;
    for (int i = 0; i < (int)(sizeof ranks / sizeof ranks[0]); i++) {
        if (strcmp(state, ranks[i]) == 0) {
            rank = i;
        }
    }
    return rank;
}

static void add_server(struct server_stats *sum, const struct server_stats *one)
{
    if (state_rank(one->state) > state_rank(sum->state)) {
        memcpy(sum->state, one->state, sizeof sum->state);
    }
    sum->is_ejected = sum->is_ejected || one->is_ejected;
    if (sum->version[0] == '\0') {
        memcpy(sum->version, one->version, sizeof sum->version);
    }
    if (sum->address[0] == '\0') {
        memcpy(sum->address, one->address, sizeof sum->address);
    }
    sum->requests += one->requests;
    sum->errors += one->errors;
    sum->timeouts += one->timeouts;
    sum->ejections += one->ejections;
    sum->connects += one->connects;
    sum->connect_failures += one->connect_failures;
    sum->pending += one->pending;
    /* The server's own count, which each worker has asked for. */
    if (one->evictions > sum->evictions) {
        sum->evictions = one->evictions;
    }
}

static void show_server(const char *prefix, const struct server_stats *s, struct chain *out)
{
    line(out, "%s:state %s", prefix, s->is_ejected ? "ejected" : s->state);
    line(out, "%s:version %s", prefix, s->version[0] != '\0' ? s->version : "unknown");
    line(out, "%s:address %s", prefix, s->address[0] != '\0' ? s->address : "unknown");
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"requests", s->requests}, {"errors", s->errors},
        {"timeouts", s->timeouts}, {"ejections", s->ejections},
        {"connects", s->connects}, {"connect_failures", s->connect_failures},
        {"pending", s->pending},   {"evictions", s->evictions},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        line(out, "%s:%s %" PRIu64, prefix, numbers[i].name, numbers[i].value);
    }
}

/* Those of all workers, by their names: a worker may not have heard yet of a node that another one
 * has in its map. */
static size_t collect_servers(const struct shared *shared, size_t pool_index,
                              struct server_stats sum[POOL_SERVERS_MAX],
                              struct server_stats one[POOL_SERVERS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < shared->worker_count; i++) {
        size_t n = pool_stats(shared->workers[i]->pools[pool_index], one, POOL_SERVERS_MAX);
        for (size_t s = 0; s < n; s++) {
            size_t at = s < count && strcmp(sum[s].name, one[s].name) == 0 ? s : 0;
            while (at < count && strcmp(sum[at].name, one[s].name) != 0) {
                at++;
            }
            if (at < count) {
                add_server(&sum[at], &one[s]);
            } else if (count < POOL_SERVERS_MAX) {
                sum[count++] = one[s];
            }
        }
    }
    return count;
}

static void show_pool(const struct shared *shared, size_t pool_index, struct chain *out)
{
    struct server_stats *sum = calloc(2 * (size_t)POOL_SERVERS_MAX, sizeof *sum);
    CHECK(sum != NULL);
    size_t count = collect_servers(shared, pool_index, sum, sum + POOL_SERVERS_MAX);
    const struct config *config = shared->config;
    for (size_t s = 0; s < count; s++) {
        char prefix[2 * CONFIG_NAME_MAX + 64];
        /* The same server may be in several pools. */
        bool many = config->pool_count > 1;
        snprintf(prefix, sizeof prefix, "backend:%s%s%s", sum[s].name, many ? "@" : "",
                 many ? config->pools[pool_index].name : "");
        show_server(prefix, &sum[s], out);
    }
    free(sum);
}

static void show_backends(struct worker *w, struct chain *out)
{
    for (size_t i = 0; i < w->config->pool_count; i++) {
        show_pool(w->shared, i, out);
    }
}

/* --- settings --- */

static void show_setting(void *arg, const char *section, const char *key, const char *value,
                         const char *origin)
{
    (void)origin;
    struct chain *out = arg;
    /* A prefix may hold bytes that are printed as four characters. */
    char name[5 * CONFIG_NAME_MAX];
    snprintf(name, sizeof name, "%s%s%s", section, section[0] != '\0' ? ":" : "", key);
    /* A name must be one word. */
    for (char *p = name; *p != '\0'; p++) {
        if (*p == ' ') {
            *p = ':';
        }
    }
    /* Not by line(): a pool of a hundred servers is longer than that. */
    chain_copy_slice(out, SLICE_LIT("STAT "));
    chain_copy(out, name, strlen(name));
    chain_copy_slice(out, SLICE_LIT(" "));
    chain_copy_slice(out, value[0] != '\0' ? slice_of(value) : SLICE_LIT("NULL"));
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

/* What memcached shows of its own memory and connections: there is none here. Exporters ask all
 * the same, and read up to an END. */
static bool is_empty_group(struct slice group)
{
    static const char *const groups[] = {"items",    "slabs", "conns",      "cachedump",
                                         "extstore", "proxy", "proxyfuncs", "proxybe"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (slice_equal(group, slice_of(groups[i]))) {
            return true;
        }
    }
    return false;
}

/* --- where keys are --- */

static const struct pool_config *pool_named(const struct config *config, struct slice name)
{
    for (size_t i = 0; i < config->pool_count; i++) {
        if (slice_equal(name, slice_of(config->pools[i].name))) {
            return &config->pools[i];
        }
    }
    return NULL;
}

/* POOL RULE KEY...: for scripts, which cannot compute what libmemcached does. */
static struct slice show_places(struct worker *w, struct slice args, struct chain *out)
{
    struct slice name, rule, key;
    if (!token_next(&args, &name) || !token_next(&args, &rule)) {
        return SLICE_LIT("CLIENT_ERROR usage: stats where POOL -|DISTRIBUTION/HASH KEY...\r\n");
    }
    const struct pool_config *pool = pool_named(w->config, name);
    if (pool == NULL || pool->type != POOL_MEMCACHED) {
        return SLICE_LIT("CLIENT_ERROR stats where: no pool of memcacheds has that name\r\n");
    }
    struct shard *shard = placement_rule(pool, rule);
    if (shard == NULL) {
        return SLICE_LIT("CLIENT_ERROR stats where: expected -, or DISTRIBUTION/HASH as the "
                         "configuration has them\r\n");
    }
    while (token_next(&args, &key)) {
        struct slice server = slice_of(pool->servers[shard_index(shard, key)].name);
        const struct slice parts[] = {SLICE_LIT("STAT "), key, SLICE_LIT(" "), server,
                                      SLICE_LIT("\r\n")};
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            chain_copy_slice(out, parts[i]);
        }
    }
    shard_destroy(&shard);
    return SLICE_NONE;
}

struct slice stats_answer(struct worker *w, struct slice args, struct chain *out)
{
    struct slice group = SLICE_NONE;
    struct slice error = SLICE_NONE;
    (void)token_next(&args, &group);
    if (slice_equal(group, SLICE_LIT("reset"))) {
        reset(w->shared);
        chain_copy_slice(out, SLICE_LIT("RESET\r\n"));
        return SLICE_NONE;
    }
    if (group.len == 0) {
        show_counters(w, out);
    } else if (slice_equal(group, SLICE_LIT("backends"))) {
        show_backends(w, out);
    } else if (slice_equal(group, SLICE_LIT("settings"))) {
        config_print(w->config, show_setting, out);
    } else if (slice_equal(group, SLICE_LIT("where"))) {
        error = show_places(w, args, out);
    } else if (slice_equal(group, SLICE_LIT("sizes"))) {
        line(out, "sizes_status disabled"); /* as a memcached that does not count them */
    } else if (!is_empty_group(group)) {
        error = SLICE_LIT("ERROR\r\n"); /* as memcached answers it; tests of clients insist */
    }
    chain_copy_slice(out, SLICE_LIT("END\r\n"));
    return error;
}
