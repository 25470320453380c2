/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/figures.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/version.h"
#include "list/core/cache.h"
#include "list/core/metrics.h"
#include "list/core/run_index.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/reasons.h"

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

uint64_t figure_value(struct shared *shared, unsigned which)
{
    if (which == METRIC_transaction_age) {
        return transaction_age_s(shared, clock_now().wall_s);
    }
    if (which == METRIC_cluster_vbuckets || which == METRIC_cluster_vbuckets_without_node) {
        return metric_max(shared, which);
    }
    return metric_sum(shared, which) - atomic_load(&shared->baseline[which]);
}

uint64_t figure_of_reason(struct shared *shared, const struct reason *reason)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            if (strcmp(tables[t]->rows[i].name, reason->counter) == 0) {
                return figure_value(shared, tables[t]->first + i);
            }
        }
    }
    CHECK(strcmp(reason->counter, "log_lines_dropped") == 0); /* the log's own */
    return log_dropped();
}

/* A level, not a count. */
static bool is_level(unsigned which)
{
    return which == METRIC_transaction_age || which == METRIC_cluster_vbuckets ||
           which == METRIC_cluster_vbuckets_without_node || which == METRIC_curr_connections ||
           which == METRIC_gate_unequal || which == METRIC_transactions_waiting ||
           which == METRIC_transactions_pending || which == METRIC_transactions_committed;
}

static void sum_requests(const struct shared *shared, struct histogram_sum out[TIMING_CLASSES])
{
    memset(out, 0, TIMING_CLASSES * sizeof *out);
    for (size_t i = 0; i < shared->worker_count; i++) {
        for (size_t c = 0; c < TIMING_CLASSES; c++) {
            histogram_sum_add(&out[c], &shared->workers[i]->timing.requests[c]);
        }
    }
}

void figures_of_requests(struct shared *shared, struct histogram_sum out[TIMING_CLASSES])
{
    struct timing_baseline *b = &shared->timing_baseline;
    pthread_mutex_lock(&b->lock);
    sum_requests(shared, out);
    for (size_t c = 0; c < TIMING_CLASSES; c++) {
        histogram_sum_take(&out[c], &b->requests[c]);
    }
    pthread_mutex_unlock(&b->lock);
}

const char *figure_class_name(size_t class)
{
    return metric_name(&proxy_metrics, METRIC_cmd_get + (unsigned)class);
}

struct hot_sum figures_of_keys(const struct shared *shared)
{
    struct hot_sum sum = {.count = 0};
    for (size_t i = 0; i < shared->worker_count; i++) {
        hot_sum_add(&sum, &shared->workers[i]->timing.keys);
    }
    hot_sum_sort(&sum);
    return sum;
}

struct laggards_sum figures_of_laggards(const struct shared *shared)
{
    struct laggards_sum sum = {.count = 0};
    struct now now = clock_now();
    for (size_t i = 0; i < shared->worker_count; i++) {
        laggards_sum_add(&sum, &shared->workers[i]->laggards, &now);
    }
    laggards_sum_sort(&sum);
    return sum;
}

bool figure_is_slow(const struct shared *shared, const struct laggard *l)
{
    return l->stuck > 0 && shared->config->slow_ms != 0 && l->now_ms >= shared->config->slow_ms;
}

void figures_reset(struct shared *shared)
{
    struct timing_baseline *b = &shared->timing_baseline;
    pthread_mutex_lock(&b->lock);
    sum_requests(shared, b->requests);
    pthread_mutex_unlock(&b->lock);
    for (unsigned m = 0; m < METRIC_MAX; m++) {
        if (!is_level(m)) {
            atomic_store(&shared->baseline[m], metric_sum(shared, m));
        }
    }
}

/* --- all of them --- */

struct printing {
    figure_printer *print;
    void *arg;
};

static void show(const struct printing *p, enum figure_kind kind, const char *name,
                 const char *help, uint64_t value)
{
    struct figure figure = {kind, name, help, value, ""};
    p->print(p->arg, &figure);
}

static void show_text(const struct printing *p, const char *name, const char *help,
                      const char *text)
{
    struct figure figure = {FIGURE_TEXT, name, help, 0, text};
    p->print(p->arg, &figure);
}

static uint64_t time_us(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

struct cpu_figures figures_of_cpu(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (struct cpu_figures){time_us(&usage.ru_utime), time_us(&usage.ru_stime)};
}

void figures_of_reloads(struct shared *shared, struct reload_figures *out)
{
    pthread_mutex_lock(&shared->reloads.lock);
    *out = shared->reloads.last;
    pthread_mutex_unlock(&shared->reloads.lock);
}

static void show_process(struct shared *shared, const struct printing *p)
{
    struct now now = clock_now();
    struct cpu_figures cpu = figures_of_cpu();
    show(p, FIGURE_LEVEL, "pid", "the process", (uint64_t)getpid());
    show(p, FIGURE_LEVEL, "uptime", "seconds since the start",
         (now.mono_us - shared->started_us) / 1000000);
    show(p, FIGURE_LEVEL, "time", "seconds since 1970", (uint64_t)now.wall_s);
    show_text(p, "version", "of the proxy", PROXY_VERSION);
    show_text(p, "libevent", "its version", event_get_version());
    show(p, FIGURE_LEVEL, "pointer_size", "bits of a pointer", 8 * sizeof(void *));
    show(p, FIGURE_CPU_US, "rusage_user", "processor time of the process", cpu.user_us);
    show(p, FIGURE_CPU_US, "rusage_system", "processor time of the system for the process",
         cpu.system_us);
    show(p, FIGURE_LEVEL, "max_connections", "clients that may be connected at the same time",
         shared->config->max_connections);
    show(p, FIGURE_LEVEL, "threads", "workers", shared->worker_count);
    show(p, FIGURE_COUNT, "log_lines_dropped", "lines of the log that were lost", log_dropped());
}

static void show_reloads(struct shared *shared, const struct printing *p)
{
    struct reload_figures r;
    figures_of_reloads(shared, &r);
    show(p, FIGURE_COUNT, "config_reloads", "times that the configuration was read anew", r.good);
    show(p, FIGURE_COUNT, "config_reload_failures", "times that this was refused", r.failed);
    show(p, FIGURE_LEVEL, "config_is_old", "1: the last time it was refused", r.error[0] != '\0');
    show(p, FIGURE_LEVEL, "config_time", "when the configuration in force was read, since 1970",
         (uint64_t)r.last_good_s);
}

static void show_counters(struct shared *shared, const struct printing *p)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            unsigned which = tables[t]->first + i;
            const struct metric_row *row = &tables[t]->rows[i];
            show(p, is_level(which) ? FIGURE_LEVEL : FIGURE_COUNT, row->name, row->help,
                 figure_value(shared, which));
        }
    }
}

/* Policies may share a cache; each counts once. */
static void show_caches(const struct shared *shared, const struct printing *p)
{
    struct lru_stats sum = {0};
    for (size_t i = 0; i < shared->config->list_count; i++) {
        if (i > 0 && shared->caches[i] == shared->caches[0]) {
            continue;
        }
        struct lru_stats one;
        lru_get_stats(&shared->caches[i]->lru, &one);
        sum.bytes += one.bytes;
        sum.limit_bytes += one.limit_bytes;
        sum.entries += one.entries;
    }
    show(p, FIGURE_LEVEL, "cache_bytes", "memory of cached sublists", sum.bytes);
    show(p, FIGURE_LEVEL, "cache_limit_bytes", "what it may be", sum.limit_bytes);
    show(p, FIGURE_LEVEL, "cache_sublists", "sublists in the cache", sum.entries);
}

static void show_indexes(const struct shared *shared, const struct printing *p)
{
    struct lru_stats stats;
    run_indexes_get_stats(shared->indexes, &stats);
    show(p, FIGURE_LEVEL, "index_bytes", "memory of indexes of large lists", stats.bytes);
    show(p, FIGURE_LEVEL, "index_limit_bytes", "what it may be", stats.limit_bytes);
    show(p, FIGURE_LEVEL, "index_runs", "runs that have an index", stats.entries);
}

static void show_hot(struct shared *shared, const struct printing *p)
{
    struct hot_key keys[HOT_KEYS_MAX];
    struct laggards_sum sum = figures_of_laggards(shared);
    uint64_t slow = 0;
    for (size_t i = 0; i < sum.count; i++) {
        slow += figure_is_slow(shared, &sum.rows[i]);
    }
    laggards_sum_fini(&sum);
    show(p, FIGURE_LEVEL, "hot_keys", "keys that get a large part of all requests",
         hot_keys_read(&shared->hot_keys, keys));
    show(p, FIGURE_LEVEL, "slow_clients", "clients that leave answers unread for slow_ms or longer",
         slow);
}

void figures_print(struct shared *shared, figure_printer *print, void *arg)
{
    const struct printing p = {print, arg};
    show_process(shared, &p);
    show_reloads(shared, &p);
    show_counters(shared, &p);
    show(&p, FIGURE_LEVEL, "memory_bytes", "memory of requests and answers of all clients",
         memory_held());
    show(&p, FIGURE_LEVEL, "memory_limit_bytes", "what it may be",
         shared->config->memory_limit_bytes);
    show_hot(shared, &p);
    show_caches(shared, &p);
    show_indexes(shared, &p);
}

/* --- routes --- */

static const struct metric_row route_rows[ROUTE_COUNTS] = {ROUTE_COUNT_TABLE(METRIC_ROW)};

uint64_t figure_of_route(const struct shared *shared, size_t index, enum route_count which)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < shared->worker_count; i++) {
        sum += atomic_load_explicit(&shared->workers[i]->routes[index].counts.value[which],
                                    memory_order_relaxed);
    }
    return sum;
}

const char *figure_route_name(enum route_count which)
{
    return route_rows[which].name;
}

const char *figure_route_help(enum route_count which)
{
    return route_rows[which].help;
}

const char *figure_route_text(const struct route_config *route, char out[ROUTE_TEXT_MAX])
{
    struct slice prefix = slice_make(route->prefix, route->prefix_len);
    (void)snprintf(out, ROUTE_TEXT_MAX, "*");
    return prefix.len == 0 ? out : slice_escape_also(prefix, " \"\\*", out, ROUTE_TEXT_MAX);
}

const char *figure_or_none(const char *name)
{
    return name[0] == '\0' ? "none" : name;
}

/* --- servers --- */

/* The best that any worker sees: one that works shows that the server does. A worker that has
 * ejected the server shows that it hangs, whatever connections the others still have. */
static int state_rank(const char *state)
{
    static const char *const ranks[] = {"idle", "down",    "ejected", "connecting",
                                        "up",   "drained", "draining"};
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
    sum->drained_since_s = sum->drained_since_s != 0 ? sum->drained_since_s : one->drained_since_s;
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
    histogram_sum_join(&sum->times, &one->times);
    sum->items = one->items;
    sum->refused_full += one->refused_full;
    for (size_t i = 0; i < GARBLED_COUNT; i++) {
        sum->garbled[i] += one->garbled[i];
    }
    sum->full_s = one->full_s > sum->full_s ? one->full_s : sum->full_s;
    sum->garbled_s = one->garbled_s > sum->garbled_s ? one->garbled_s : sum->garbled_s;
    /* The server's own count, which one worker has asked for. */
    if (one->evictions > sum->evictions) {
        sum->evictions = one->evictions;
    }
}

const char *server_state(const struct server_stats *stats)
{
    return stats->silent_since_s != 0 ? "hanging" : stats->is_ejected ? "ejected" : stats->state;
}

const char *trouble_name(enum trouble trouble)
{
    static const char *const names[] = {
#define TROUBLE_NAME(name, help) #name,
        TROUBLE_TABLE(TROUBLE_NAME)
#undef TROUBLE_NAME
    };
    return names[trouble];
}

/* For so long what has happened once counts as trouble: what the metrics mean by it. */
#define TROUBLE_S 60
#define TROUBLE_RESTARTED_S 300

static bool is_recent(int64_t at_s, int64_t now_s, int64_t span_s)
{
    return at_s != 0 && at_s >= now_s - span_s;
}

bool server_has_trouble(const struct server_stats *s, enum trouble trouble, int64_t now_s)
{
    switch (trouble) {
    case TROUBLE_drained:
        return s->drained_since_s != 0;
    case TROUBLE_silent:
        return s->silent_since_s != 0;
    case TROUBLE_full:
        return is_recent(s->full_s, now_s, TROUBLE_S);
    case TROUBLE_garbage:
        return is_recent(s->garbled_s, now_s, TROUBLE_S);
    case TROUBLE_restarted:
        return is_recent(s->restarted_s, now_s, TROUBLE_RESTARTED_S);
    case TROUBLE_evicts:
        return s->evicted > 0;
    case TROUBLE_slow:
        return s->is_slow;
    default:
        return false;
    }
}

static void one_text(const struct server_stats *s, enum trouble trouble, char *out, size_t cap)
{
    char clock[CLOCK_TEXT_MAX];
    uint64_t garbled = 0;
    switch (trouble) {
    case TROUBLE_drained:
        snprintf(out, cap, "drained by an operator since %s",
                 clock_text(s->drained_since_s, clock));
        break;
    case TROUBLE_silent:
        snprintf(out, cap, "not answering since %s, %" PRIu64 " request%s waiting",
                 clock_text(s->silent_since_s, clock), s->pending, s->pending == 1 ? "" : "s");
        break;
    case TROUBLE_full:
        snprintf(out, cap, "full: it has refused %" PRIu64 " requests, the last at %s",
                 s->refused_full, clock_text(s->full_s, clock));
        break;
    case TROUBLE_garbage:
        for (size_t i = 0; i < GARBLED_COUNT; i++) {
            garbled += s->garbled[i];
        }
        snprintf(out, cap, "answers garbage: %" PRIu64 " connections given up, the last at %s",
                 garbled, clock_text(s->garbled_s, clock));
        break;
    case TROUBLE_restarted:
        snprintf(out, cap, "restarted at %s, what it held is gone",
                 clock_text(s->restarted_s, clock));
        break;
    case TROUBLE_evicts:
        snprintf(out, cap, "evicts: %" PRIu64 " items between the last two looks", s->evicted);
        break;
    default:
        snprintf(out, cap,
                 "slow: half of its answers take %" PRIu64 " us or longer, others' %" PRIu64 " us",
                 s->recent_p50_us, s->others_p50_us);
        break;
    }
}

const char *server_trouble_text(const struct server_stats *s, int64_t now_s, char out[TROUBLE_MAX])
{
    size_t n = 0;
    for (enum trouble t = 0; t < TROUBLE_COUNT; t++) {
        if (server_has_trouble(s, t, now_s) && n + 4 < TROUBLE_MAX) {
            n += (size_t)snprintf(out + n, TROUBLE_MAX - n, "%s", n > 0 ? "; " : "");
            one_text(s, t, out + n, TROUBLE_MAX - n);
            n += strlen(out + n);
        }
    }
    if (n == 0) {
        snprintf(out, TROUBLE_MAX, "none");
    }
    return out;
}

bool server_is_up(const struct server_stats *stats)
{
    return strcmp(server_state(stats), "up") == 0;
}

/* Adds what one worker sees of a pool's servers to those of the pool, by their names: a worker may
 * not have heard yet of a node that another one has in its map. Returns how many there are then. */
static size_t add_servers(struct server_figures sum[POOL_SERVERS_MAX], size_t count,
                          size_t pool_index, const struct server_stats *one, size_t n)
{
    for (size_t s = 0; s < n; s++) {
        size_t at = s < count && strcmp(sum[s].stats.name, one[s].name) == 0 ? s : 0;
        while (at < count && strcmp(sum[at].stats.name, one[s].name) != 0) {
            at++;
        }
        if (at < count) {
            add_server(&sum[at].stats, &one[s]);
        } else if (count < POOL_SERVERS_MAX) {
            sum[count++] = (struct server_figures){pool_index, one[s]};
        }
    }
    return count;
}

struct server_figures *figures_of_servers(const struct shared *shared, size_t *count)
{
    struct server_figures *all = NULL;
    struct server_stats *one = calloc(POOL_SERVERS_MAX, sizeof *one);
    CHECK(one != NULL);
    *count = 0;
    for (size_t p = 0; p < shared->config->pool_count; p++) {
        size_t of_pool = 0;
        all = realloc(all, (*count + POOL_SERVERS_MAX) * sizeof *all);
        CHECK(all != NULL);
        for (size_t i = 0; i < shared->worker_count; i++) {
            size_t n = pool_stats(shared->workers[i]->pools[p], one, POOL_SERVERS_MAX);
            of_pool = add_servers(all + *count, of_pool, p, one, n);
        }
        *count += of_pool;
    }
    free(one);
    return all;
}
