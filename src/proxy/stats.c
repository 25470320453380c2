/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/stats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/placement.h"
#include "pool/pool.h"
#include "proto/client/request_parse.h"
#include "proxy/figures.h"
#include "proxy/reasons.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "tls/trust.h"

/* Longer lines are cut; the longest values are paths of the configuration. */
#define LINE_BYTES 1024
/* Keys that `stats hot` shows. */
#define HOT_SHOWN 20

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

/* --- counters --- */

static void show_figure(void *arg, const struct figure *f)
{
    struct chain *out = arg;
    if (f->kind == FIGURE_TEXT) {
        line(out, "%s %s", f->name, f->text);
    } else if (f->kind == FIGURE_CPU_US) {
        line(out, "%s %" PRIu64 ".%06" PRIu64, f->name, f->value / 1000000, f->value % 1000000);
    } else {
        line(out, "%s %" PRIu64, f->name, f->value);
    }
}

/* --- backends --- */

static void show_server(const char *prefix, const struct server_stats *s, struct chain *out)
{
    char trouble[TROUBLE_MAX];
    line(out, "%s:state %s", prefix, server_state(s));
    line(out, "%s:trouble %s", prefix, server_trouble_text(s, clock_now().wall_s, trouble));
    line(out, "%s:version %s", prefix, s->version[0] != '\0' ? s->version : "unknown");
    line(out, "%s:address %s", prefix, s->address[0] != '\0' ? s->address : "unknown");
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"requests", s->requests},
        {"errors", s->errors},
        {"timeouts", s->timeouts},
        {"ejections", s->ejections},
        {"connects", s->connects},
        {"connect_failures", s->connect_failures},
        {"pending", s->pending},
        {"evictions", s->evictions},
        {"refused_full", s->refused_full},
        {"restarts", s->restarts},
        {"items", s->items},
        {"recent_p50_us", s->recent_p50_us},
        {"recent_p99_us", s->recent_p99_us},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        line(out, "%s:%s %" PRIu64, prefix, numbers[i].name, numbers[i].value);
    }
    for (size_t i = 0; i < GARBLED_COUNT; i++) {
        line(out, "%s:garbled_%s %" PRIu64, prefix, garbled_name(i), s->garbled[i]);
    }
}

static void show_servers(const struct shared *shared,
                         void (*show)(const char *, const struct server_stats *, struct chain *),
                         struct chain *out)
{
    const struct config *config = shared->config;
    size_t count;
    struct server_figures *rows = figures_of_servers(shared, &count);
    for (size_t i = 0; i < count; i++) {
        char prefix[2 * CONFIG_NAME_MAX + 64];
        /* The same server may be in several pools. */
        bool many = config->pool_count > 1;
        snprintf(prefix, sizeof prefix, "backend:%s%s%s", rows[i].stats.name, many ? "@" : "",
                 many ? config->pools[rows[i].pool_index].name : "");
        show(prefix, &rows[i].stats, out);
    }
    free(rows);
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

/* --- times --- */

static void show_times(const char *name, const struct histogram_sum *sum, struct chain *out)
{
    static const struct {
        const char *name;
        double part;
    } parts[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    line(out, "%s:count %" PRIu64, name, sum->count);
    line(out, "%s:mean_us %" PRIu64, name, sum->count == 0 ? 0 : sum->sum_us / sum->count);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        line(out, "%s:%s_us %" PRIu64, name, parts[i].name,
             histogram_sum_quantile(sum, parts[i].part));
    }
}

static void show_server_times(const char *prefix, const struct server_stats *s, struct chain *out)
{
    show_times(prefix, &s->times, out);
}

static void show_buckets(const char *name, const struct histogram_sum *sum, struct chain *out)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (sum->counts[i] > 0) {
            line(out, "%s:%" PRIu64 "_us %" PRIu64, name, histogram_bucket_end(i) - 1,
                 sum->counts[i]);
        }
    }
}

typedef void times_fn(const char *name, const struct histogram_sum *sum, struct chain *out);

static void show_requests(struct shared *shared, times_fn *show, struct chain *out)
{
    struct histogram_sum *sums = calloc(TIMING_CLASSES, sizeof *sums);
    CHECK(sums != NULL);
    figures_of_requests(shared, sums);
    for (size_t c = 0; c < TIMING_CLASSES; c++) {
        if (sums[c].count > 0) {
            show(figure_class_name(c), &sums[c], out);
        }
    }
    free(sums);
}

static void show_latency(struct shared *shared, struct slice args, struct chain *out)
{
    if (slice_equal(args, SLICE_LIT("buckets"))) {
        show_requests(shared, show_buckets, out);
        return;
    }
    show_requests(shared, show_times, out);
    show_servers(shared, show_server_times, out);
}

static void show_hot(const struct shared *shared, struct chain *out)
{
    char shown[4 * HOT_NAME_BYTES + 1];
    struct hot_sum keys = figures_of_keys(shared);
    for (size_t i = 0; i < keys.count && i < HOT_SHOWN; i++) {
        struct slice name = slice_make(keys.names[i].bytes, keys.names[i].len);
        line(out, "%s %.1f%%", slice_escape(name, shown, sizeof shown),
             100.0 * (double)keys.names[i].count / (double)keys.total);
    }
    hot_sum_fini(&keys);
}

static void show_reasons(struct shared *shared, struct chain *out)
{
    for (size_t i = 0; i < reason_count; i++) {
        line(out, "%s:%s %" PRIu64, reasons[i].what, reasons[i].name,
             figure_of_reason(shared, &reasons[i]));
    }
}

static void show_laggards(const struct shared *shared, struct chain *out)
{
    struct laggards_sum sum = figures_of_laggards(shared);
    for (size_t i = 0; i < sum.count && i < HOT_SHOWN; i++) {
        const struct laggard *l = &sum.rows[i];
        line(out,
             "%zu unread_ms %" PRIu64 " share %.1f%% unread_bytes %" PRIu64 " connections %" PRIu64
             " closed %" PRIu64 " client %s",
             i, l->unread_ms,
             sum.unread_ms == 0 ? 0 : 100.0 * (double)l->unread_ms / (double)sum.unread_ms,
             l->unread_bytes, l->stuck, l->closed, l->name);
    }
    laggards_sum_fini(&sum);
}

static void show_slow(const struct shared *shared, struct chain *out)
{
    char shown[4 * SLOW_KEY_BYTES + 1];
    struct slow_request *last = calloc(SLOW_KEPT, sizeof *last);
    CHECK(last != NULL);
    size_t count = slow_log_read(shared->slow, last);
    for (size_t i = 0; i < count; i++) {
        const struct slow_request *r = &last[i];
        line(out, "%zu time %" PRId64 " us %" PRIu64 " waited_us %" PRIu64 " %s %s client %s", i,
             r->wall_s, r->us, r->waited_us, r->verb,
             slice_escape(slice_make(r->key, r->key_len), shown, sizeof shown), r->peer);
    }
    free(last);
}

/* --- routes --- */

static void show_routes(const struct shared *shared, struct chain *out)
{
    const struct config *config = shared->config;
    for (size_t i = 0; config->has_routes && i < config->route_count; i++) {
        char name[ROUTE_TEXT_MAX];
        const struct route_config *route = &config->routes[i];
        figure_route_text(route, name);
        line(out, "route:%s:pool %s", name, config->pools[route->pool_index].name);
        line(out, "route:%s:failover %s", name, figure_or_none(route->failover_name));
        line(out, "route:%s:shadow %s", name, figure_or_none(route->shadow));
        for (enum route_count c = 0; c < ROUTE_COUNTS; c++) {
            line(out, "route:%s:%s %" PRIu64, name, figure_route_name(c),
                 figure_of_route(shared, i, c));
        }
    }
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

/* "tls:proxy:days_left", "tls:pool:main:days_left" */
static void show_certificate(void *arg, const char *owner, const char *path, int64_t days_left)
{
    char name[LINE_BYTES / 2];
    size_t n = 0;
    (void)path;
    for (const char *p = owner; *p != '\0' && n < sizeof name - 1; p++) {
        if (*p != '[' && *p != ']') {
            name[n++] = *p == ' ' ? ':' : *p;
        }
    }
    name[n] = '\0';
    line(arg, "tls:%s:days_left %" PRId64, name, days_left);
}

struct slice stats_answer(struct worker *w, struct slice args, struct chain *out)
{
    struct slice group = SLICE_NONE;
    struct slice error = SLICE_NONE;
    (void)token_next(&args, &group);
    if (slice_equal(group, SLICE_LIT("reset"))) {
        figures_reset(w->shared);
        chain_copy_slice(out, SLICE_LIT("RESET\r\n"));
        return SLICE_NONE;
    }
    if (group.len == 0) {
        figures_print(w->shared, show_figure, out);
        tls_trust_visit(show_certificate, out);
    } else if (slice_equal(group, SLICE_LIT("backends"))) {
        show_servers(w->shared, show_server, out);
    } else if (slice_equal(group, SLICE_LIT("latency"))) {
        struct slice what = SLICE_NONE;
        (void)token_next(&args, &what);
        show_latency(w->shared, what, out);
    } else if (slice_equal(group, SLICE_LIT("hot"))) {
        show_hot(w->shared, out);
    } else if (slice_equal(group, SLICE_LIT("reasons"))) {
        show_reasons(w->shared, out);
    } else if (slice_equal(group, SLICE_LIT("clients"))) {
        show_laggards(w->shared, out);
    } else if (slice_equal(group, SLICE_LIT("slow"))) {
        show_slow(w->shared, out);
    } else if (slice_equal(group, SLICE_LIT("routes"))) {
        show_routes(w->shared, out);
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
