/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/exposition.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "proxy/figures.h"
#include "proxy/reasons.h"
#include "proxy/core/shared.h"
#include "tls/trust.h"

struct exposition {
    const struct config *config;
    struct evbuffer *out;
    bool is_open;
};

/* Prometheus wants units in names, and _total behind those of counters, where `stats` has
 * memcached's names. NULL: it has them by itself, or they mean nothing there. */
static const char *metric_name_of(const char *name)
{
    static const struct {
        const char *name, *shown;
    } others[] = {
        {"pid", NULL},
        {"time", NULL},
        {"pointer_size", NULL},
        {"uptime", "uptime_seconds"},
        {"config_time", "config_time_seconds"},
        {"rusage_user", "cpu_user_seconds"},
        {"rusage_system", "cpu_system_seconds"},
        {"total_connections", "connections"},
        {"transaction_age", "transaction_age_seconds"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i].name, name) == 0) {
            return others[i].shown;
        }
    }
    return name;
}

static void begin_family(const struct exposition *x, const char *name, const char *help,
                         bool counts)
{
    const char *suffix = counts && !x->is_open ? "_total" : "";
    evbuffer_add_printf(x->out, "# HELP mclistd_%s%s %s\n# TYPE mclistd_%s%s %s\n", name, suffix,
                        help, name, suffix, counts ? "counter" : "gauge");
}

static void show_figure(void *arg, const struct figure *f)
{
    const struct exposition *x = arg;
    const char *name = metric_name_of(f->name);
    if (f->kind == FIGURE_TEXT || name == NULL) {
        return;
    }
    begin_family(x, name, f->help, f->kind != FIGURE_LEVEL);
    if (f->kind == FIGURE_CPU_US) {
        evbuffer_add_printf(x->out, "mclistd_%s_total %" PRIu64 ".%06" PRIu64 "\n", name,
                            f->value / 1000000, f->value % 1000000);
    } else {
        evbuffer_add_printf(x->out, "mclistd_%s%s %" PRIu64 "\n", name,
                            f->kind == FIGURE_COUNT ? "_total" : "", f->value);
    }
}

/* --- times --- */

/* The bounds of Prometheus' buckets are every other power of two: from 64 us to 67 s. */
#define BOUND_FIRST 6
#define BOUND_STEP 2

/* labels: of all its samples, with a comma behind the last. */
static void show_histogram(struct evbuffer *out, const char *name, const char *labels,
                           const struct histogram_sum *sum)
{
    int bare = (int)strlen(labels) - 1;
    for (unsigned bit = BOUND_FIRST; bit <= HISTOGRAM_TOP_BIT; bit += BOUND_STEP) {
        evbuffer_add_printf(out, "mclistd_%s_bucket{%sle=\"%.6f\"} %" PRIu64 "\n", name, labels,
                            (double)(UINT64_C(1) << bit) / 1e6, histogram_sum_below(sum, bit));
    }
    evbuffer_add_printf(out,
                        "mclistd_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n"
                        "mclistd_%s_sum{%.*s} %.6f\n"
                        "mclistd_%s_count{%.*s} %" PRIu64 "\n",
                        name, labels, sum->count, name, bare, labels, (double)sum->sum_us / 1e6,
                        name, bare, labels, sum->count);
}

static void begin_histogram(const struct exposition *x, const char *name, const char *help)
{
    evbuffer_add_printf(x->out, "# HELP mclistd_%s %s\n# TYPE mclistd_%s histogram\n", name, help,
                        name);
}

static void show_times(struct shared *shared, const struct exposition *x)
{
    static const char name[] = "request_seconds";
    char labels[64];
    struct histogram_sum *sums = calloc(TIMING_CLASSES, sizeof *sums);
    CHECK(sums != NULL);
    figures_of_requests(shared, sums);
    begin_histogram(x, name, "time from a request to its answer, by the counter of its class");
    for (size_t c = 0; c < TIMING_CLASSES; c++) {
        (void)snprintf(labels, sizeof labels, "class=\"%s\",", figure_class_name(c));
        show_histogram(x->out, name, labels, &sums[c]);
    }
    free(sums);
}

/* --- reasons --- */

/* A family for each of what happened. */
static void show_reasons(struct shared *shared, const struct exposition *x)
{
    const char *what = "";
    for (size_t i = 0; i < reason_count; i++) {
        if (strcmp(reasons[i].what, what) != 0) {
            what = reasons[i].what;
            begin_family(x, what, "how often that has happened, by its reason", true);
        }
        evbuffer_add_printf(x->out, "mclistd_%s_total{reason=\"%s\"} %" PRIu64 "\n", what,
                            reasons[i].name, figure_of_reason(shared, &reasons[i]));
    }
}

/* --- servers --- */

/* Names of servers come from the file, or from a cluster's nodes. */
static void add_label(struct evbuffer *out, const char *name, const char *value)
{
    evbuffer_add_printf(out, "%s=\"", name);
    for (const char *p = value; *p != '\0'; p++) {
        if (*p == '\\' || *p == '"' || *p == '\n') {
            evbuffer_add_printf(out, "\\%c", *p == '\n' ? 'n' : *p);
        } else {
            evbuffer_add(out, p, 1);
        }
    }
    evbuffer_add(out, "\"", 1);
}

static void add_labels(const struct exposition *x, struct evbuffer *out,
                       const struct server_figures *row)
{
    add_label(out, "pool", x->config->pools[row->pool_index].name);
    evbuffer_add(out, ",", 1);
    add_label(out, "server", row->stats.name);
}

static void add_row(const struct exposition *x, const char *name, const char *suffix,
                    const struct server_figures *row, uint64_t value)
{
    evbuffer_add_printf(x->out, "mclistd_%s%s{", name, suffix);
    add_labels(x, x->out, row);
    evbuffer_add_printf(x->out, "} %" PRIu64 "\n", value);
}

/* With one label more. */
static void add_row_of(const struct exposition *x, const char *name, const char *label,
                       const char *of, const struct server_figures *row, uint64_t value)
{
    evbuffer_add_printf(x->out, "mclistd_%s{", name);
    add_labels(x, x->out, row);
    evbuffer_add_printf(x->out, ",%s=\"%s\"} %" PRIu64 "\n", label, of, value);
}

static void show_troubles(const struct exposition *x, const struct server_figures *rows,
                          size_t count)
{
    int64_t now_s = clock_now().wall_s;
    begin_family(x, "pool_server_silent_seconds",
                 "how long the server has not answered; 0: it does", false);
    for (size_t i = 0; i < count; i++) {
        int64_t since_s = rows[i].stats.silent_since_s;
        add_row(x, "pool_server_silent_seconds", "", &rows[i],
                since_s == 0 || since_s > now_s ? 0 : (uint64_t)(now_s - since_s));
    }
    begin_family(x, "pool_server_trouble", "1: the server is in that trouble now", false);
    for (size_t i = 0; i < count; i++) {
        for (enum trouble t = 0; t < TROUBLE_COUNT; t++) {
            add_row_of(x, "pool_server_trouble", "trouble", trouble_name(t), &rows[i],
                       server_has_trouble(&rows[i].stats, t, now_s));
        }
    }
    begin_family(x, "pool_server_garbled", "connections given up over what the server answered",
                 true);
    for (size_t i = 0; i < count; i++) {
        for (enum garbled reason = 0; reason < GARBLED_COUNT; reason++) {
            add_row_of(x, "pool_server_garbled_total", "reason", garbled_name(reason), &rows[i],
                       rows[i].stats.garbled[reason]);
        }
    }
}

static void add_times(const struct exposition *x, const char *name,
                      const struct server_figures *row)
{
    struct evbuffer *labels = evbuffer_new();
    CHECK(labels != NULL);
    add_labels(x, labels, row);
    evbuffer_add(labels, ",", 2); /* and a NUL */
    show_histogram(x->out, name, (const char *)evbuffer_pullup(labels, -1), &row->stats.times);
    evbuffer_free(labels);
}

static const struct {
    const char *name, *help;
    size_t offset;
    bool counts;
} columns[] = {
#define COLUMN(field, counts, help) \
    { \
        "pool_server_" #field, help, offsetof(struct server_stats, field), counts \
    }
    COLUMN(requests, true, "requests sent to the server"),
    COLUMN(errors, true, "of these, those that ended without an answer"),
    COLUMN(timeouts, true, "of these, ended because timeout_ms was over"),
    COLUMN(ejections, true, "connections given up because of eject_failures"),
    COLUMN(connects, true, "connections established"),
    COLUMN(connect_failures, true, "attempts to connect that failed"),
    COLUMN(pending, false, "requests that wait for an answer now"),
    COLUMN(evictions, true, "items that the server has evicted, by its own count"),
    COLUMN(refused_full, true, "requests that the server has refused for want of memory"),
    COLUMN(restarts, true, "restarts of the server that a look at its stats has shown"),
    COLUMN(items, false, "items that the server holds, by its own count at the last look"),
#undef COLUMN
};

static void show_servers(struct shared *shared, const struct exposition *x)
{
    size_t count;
    struct server_figures *rows = figures_of_servers(shared, &count);
    begin_family(x, "pool_server_up", "1: a connection works; 0: none does", false);
    for (size_t i = 0; i < count; i++) {
        add_row(x, "pool_server_up", "", &rows[i], server_is_up(&rows[i].stats));
    }
    show_troubles(x, rows, count);
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        begin_family(x, columns[c].name, columns[c].help, columns[c].counts);
        for (size_t i = 0; i < count; i++) {
            uint64_t value;
            memcpy(&value, (const char *)&rows[i].stats + columns[c].offset, sizeof value);
            add_row(x, columns[c].name, columns[c].counts ? "_total" : "", &rows[i], value);
        }
    }
    begin_histogram(x, "pool_server_seconds", "time from a request to the server's answer");
    for (size_t i = 0; i < count; i++) {
        add_times(x, "pool_server_seconds", &rows[i]);
    }
    free(rows);
}

static void show_routes(const struct shared *shared, const struct exposition *x)
{
    const struct config *config = x->config;
    for (enum route_count c = 0; config->has_routes && c < ROUTE_COUNTS; c++) {
        char name[64], prefix[ROUTE_TEXT_MAX];
        (void)snprintf(name, sizeof name, "route_%s", figure_route_name(c));
        begin_family(x, name, figure_route_help(c), true);
        for (size_t i = 0; i < config->route_count; i++) {
            evbuffer_add_printf(x->out, "mclistd_%s_total{", name);
            add_label(x->out, "route", figure_route_text(&config->routes[i], prefix));
            evbuffer_add(x->out, ",", 1);
            add_label(x->out, "pool", config->pools[config->routes[i].pool_index].name);
            evbuffer_add_printf(x->out, "} %" PRIu64 "\n", figure_of_route(shared, i, c));
        }
    }
}

static void show_certificate(void *arg, const char *owner, const char *path, int64_t days_left)
{
    const struct exposition *x = arg;
    evbuffer_add_printf(x->out, "mclistd_tls_certificate_days{");
    add_label(x->out, "owner", owner);
    evbuffer_add_printf(x->out, ",");
    add_label(x->out, "file", path);
    evbuffer_add_printf(x->out, "} %" PRId64 "\n", days_left);
}

void exposition_print(struct shared *shared, bool is_open, struct evbuffer *out)
{
    struct exposition x = {shared->config, out, is_open};
    begin_family(&x, "build_info", "always 1; the label is the version", false);
    evbuffer_add_printf(out, "mclistd_build_info{");
    add_label(out, "version", MCLISTD_VERSION);
    evbuffer_add_printf(out, "} 1\n");
    figures_print(shared, show_figure, &x);
    show_times(shared, &x);
    show_reasons(shared, &x);
    show_servers(shared, &x);
    show_routes(shared, &x);
    begin_family(&x, "tls_certificate_days",
                 "days until the first certificate in the file is over; below 0: since", false);
    tls_trust_visit(show_certificate, &x);
    if (is_open) {
        evbuffer_add_printf(out, "# EOF\n");
    }
}
