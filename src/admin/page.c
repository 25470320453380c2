/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/page.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/history.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "list/core/metrics.h"
#include "pool/link/metrics.h"
#include "proxy/figures.h"
#include "proxy/core/gate.h"
#include "proxy/core/metrics.h"
#include "proxy/core/shared.h"

/* How often a browser loads the page again. */
#define REFRESH_S 5
/* Plots: a second is so wide, and the highest value so high. */
#define PLOT_STEP 2
#define PLOT_HEIGHT 80
/* Rates in words are means of so many seconds. */
#define MEAN_SECONDS 10
/* Rows of their tables. */
#define HOT_SHOWN 15
#define SLOW_SHOWN 15

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--text:#1c2024;--soft:#5b6570;--line:#d8dde3;--page:#f6f7f9;"
    "--card:#fff;--good:#16794c;--bad:#b42318;--a:#1f6feb;--b:#c2570c;--c:#16794c;--d:#8250df}\n"
    "@media(prefers-color-scheme:dark){:root{--text:#e6e9ec;--soft:#9aa5b1;--line:#333b44;"
    "--page:#14181c;--card:#1c2126;--good:#4cc38a;--bad:#ff7369;--a:#6cb0ff;--b:#ffa657;"
    "--c:#56d39b;--d:#c5a3ff}}\n"
    "*{box-sizing:border-box}body{margin:0;padding:1rem;max-width:76rem;margin-inline:auto;"
    "font:15px/1.45 system-ui,sans-serif;color:var(--text);background:var(--page)}\n"
    "h1{font-size:1.25rem;margin:0}h2{font-size:1rem;margin:0 0 .5rem}p{margin:.2rem 0}\n"
    ".soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}\n"
    ".bar{border:2px solid var(--bad);border-radius:8px;padding:.6rem 1rem;margin:1rem 0}\n"
    ".grid{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(19rem,1fr));"
    "margin:1rem 0}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem;"
    "min-width:0}\n"
    ".key{white-space:normal;overflow-wrap:anywhere}.wide{overflow-x:auto}table{border-collapse:"
    "collapse;width:100%;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25rem .6rem .25rem 0;text-align:right;white-space:nowrap}"
    "th{font-weight:500;color:var(--soft)}td:first-child,th:first-child{text-align:left}\n"
    "tr+tr td{border-top:1px solid var(--line)}\n"
    ".card+.card{margin-top:1rem}.grid .card+.card{margin-top:0}\n"
    "#figures div{columns:18rem;column-gap:2rem}#figures p{display:flex;gap:1rem;"
    "justify-content:space-between;border-bottom:1px solid var(--line);break-inside:avoid}"
    "#figures b{font-weight:500;font-variant-numeric:tabular-nums}\n"
    "svg{width:100%;height:5.5rem;display:block;border-bottom:1px solid "
    "var(--line)}polyline{fill:none;stroke-width:1.5;"
    "vector-effect:non-scaling-stroke}\n"
    ".a{stroke:var(--a);color:var(--a)}.b{stroke:var(--b);color:var(--b)}"
    ".c{stroke:var(--c);color:var(--c)}.d{stroke:var(--d);color:var(--d)}\n"
    "</style>\n";

static void put(struct evbuffer *out, const char *text)
{
    evbuffer_add(out, text, strlen(text));
}

/* Text that comes from outside: a name of a server or pool. */
static void put_text(struct evbuffer *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '<':
            put(out, "&lt;");
            break;
        case '>':
            put(out, "&gt;");
            break;
        case '&':
            put(out, "&amp;");
            break;
        case '"':
            put(out, "&quot;");
            break;
        case '\'':
            put(out, "&#39;");
            break;
        default:
            evbuffer_add(out, p, 1);
        }
    }
}

/* 950, 1.2k, 34.0M */
static const char *short_number(double value, char out[32])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    (void)snprintf(out, 32, value >= 100 || unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
    return out;
}

/* 87 us, 1.2 ms, 3.0 s */
static const char *short_time(uint64_t us, char out[32])
{
    if (us < 1000) {
        (void)snprintf(out, 32, "%" PRIu64 " µs", us);
    } else if (us < 1000000) {
        (void)snprintf(out, 32, "%.1f ms", (double)us / 1000);
    } else {
        (void)snprintf(out, 32, "%.1f s", (double)us / 1000000);
    }
    return out;
}

/* A key may hold any byte. */
static void put_key(struct evbuffer *out, struct slice key)
{
    char shown[4 * HOT_NAME_BYTES + 1];
    put_text(out, slice_escape(key, shown, sizeof shown));
}

/* --- what goes wrong --- */

/* Counters that should not grow, and what to do when they do: operations.md has it at length. */
static const struct {
    unsigned which;
    const char *text;
} alarms[] = {
    {METRIC_list_damaged, "lists that lost a part were met: a memcached evicts or was restarted"},
    {METRIC_list_out_of_memory, "writes were refused by a memcached without memory"},
    {METRIC_list_log_full, "changes were refused since a list's log is full"},
    {METRIC_outcomes_unknown, "changes ended without an answer: they may have been done or not"},
    {METRIC_rejected_connections, "clients were refused: max_connections is reached"},
    {METRIC_accept_failures, "times clients could not be accepted: no file descriptors are left"},
    {METRIC_ended_descriptors, "requests were not sent: no file descriptor is left to connect"},
    {METRIC_ended_name, "requests were not sent: the name of their server has no address (DNS)"},
    {METRIC_clients_dropped_memory, "clients were closed: memory_limit_bytes was reached"},
    {METRIC_clients_dropped_slow, "clients were closed that left too much unread"},
    {METRIC_request_timeouts, "clients were closed whose requests did not arrive in time"},
    {METRIC_list_foreign, "items were met in places of lists that are none"},
};

static uint64_t sum_of(const struct history *h, enum history_row row, size_t seconds)
{
    uint64_t sum = 0;
    for (size_t ago = 0; ago < seconds && ago < history_seconds(h); ago++) {
        sum += history_of(h, row, ago);
    }
    return sum;
}

static void show_alarm(struct evbuffer *out, uint64_t count, const char *text)
{
    if (count > 0) {
        evbuffer_add_printf(out, "<p><b>%" PRIu64 "</b> %s</p>\n", count, text);
    }
}

/* Servers that are in trouble now. */
static void show_troubles(const struct server_figures *rows, size_t count, struct evbuffer *out)
{
    char trouble[TROUBLE_MAX];
    for (size_t i = 0; i < count; i++) {
        (void)server_trouble_text(&rows[i].stats, clock_now().wall_s, trouble);
        if (strcmp(trouble, "none") != 0) {
            put(out, "<p><b>");
            put_text(out, rows[i].stats.name);
            evbuffer_add_printf(out, "</b> %s</p>\n", trouble);
        }
    }
}

static void show_old_config(struct shared *shared, struct evbuffer *all)
{
    struct reload_figures r;
    figures_of_reloads(shared, &r);
    if (r.error[0] != '\0') {
        put(all, "<p class=\"bad\">The configuration is not that of its file; the reload was "
                 "refused: ");
        put_text(all, r.error);
        put(all, "</p>\n");
    }
}

/* What differs between proxies: now, not counted. */
static void show_unequal(struct shared *shared, struct evbuffer *out)
{
    char why[GATE_WHY_MAX];
    for (size_t i = 0; i < shared->config->pool_count; i++) {
        if (gate_why(shared, i, why)[0] != '\0') {
            put(out, "<p><b>pool ");
            put_text(out, shared->config->pools[i].name);
            put(out, ": unequal proxies</b>: ");
            put_text(out, why);
            put(out, "</p>\n");
        }
    }
}

static void show_hot_keys(struct shared *shared, struct evbuffer *out)
{
    struct hot_key keys[HOT_KEYS_MAX];
    size_t count = hot_keys_read(&shared->hot_keys, keys);
    for (size_t i = 0; i < count; i++) {
        put(out, "<p>key <b>");
        put_key(out, slice_make(keys[i].name.bytes, keys[i].name.len));
        evbuffer_add_printf(out, "</b> is hot: %u%% of all requests, %" PRIu64 " a second</p>\n",
                            keys[i].percent, keys[i].per_s);
    }
}

static void show_slow_clients(const struct shared *shared, const struct laggards_sum *sum,
                              struct evbuffer *out)
{
    char bytes[32], ms[32];
    for (size_t i = 0; i < sum->count; i++) {
        if (figure_is_slow(shared, &sum->rows[i])) {
            put(out, "<p>client <b>");
            put_text(out, sum->rows[i].name);
            evbuffer_add_printf(out, "</b> is slow: %s bytes of answers unread, for %s</p>\n",
                                short_number((double)sum->rows[i].unread_bytes, bytes),
                                short_time(sum->rows[i].now_ms * 1000, ms));
        }
    }
}

/* Counted since the start, or the last `stats reset`; errors and time-outs in the last minutes. */
static void show_alarms(struct shared *shared, const struct history *h,
                        const struct server_figures *rows, size_t count,
                        const struct laggards_sum *laggards, struct evbuffer *out)
{
    struct evbuffer *all = evbuffer_new();
    CHECK(all != NULL);
    show_old_config(shared, all);
    show_unequal(shared, all);
    show_troubles(rows, count, all);
    show_hot_keys(shared, all);
    show_slow_clients(shared, laggards, all);
    show_alarm(all, sum_of(h, HISTORY_ERRORS, HISTORY_SECONDS),
               "requests were answered SERVER_ERROR in the last five minutes");
    show_alarm(all, sum_of(h, HISTORY_TIMEOUTS, HISTORY_SECONDS),
               "requests to servers timed out in the last five minutes");
    for (size_t i = 0; i < sizeof alarms / sizeof alarms[0]; i++) {
        show_alarm(all, figure_value(shared, alarms[i].which), alarms[i].text);
    }
    show_alarm(all, log_dropped(),
               "lines of the log were lost: a full disk, or what reads the log is too slow");
    if (evbuffer_get_length(all) > 0) {
        put(out, "<section class=\"bar\" id=\"alarms\">\n<h2>Look at this</h2>\n");
        evbuffer_add_buffer(out, all);
        put(out, "<p class=\"soft\">Counts begin at the start of the proxy, or at <code>stats "
                 "reset</code>.</p></section>\n");
    }
    evbuffer_free(all);
}

/* --- servers --- */

static void show_server(const char *pool, const struct server_stats *s, struct evbuffer *out)
{
    char half[32], most[32];
    const char *state = server_state(s);
    const char *class = server_is_up(s) ? "good" : strcmp(state, "idle") == 0 ? "soft" : "bad";
    put(out, "<tr><td>");
    put_text(out, pool);
    put(out, "</td><td>");
    put_text(out, s->name);
    evbuffer_add_printf(out, "</td><td class=\"%s\">%s</td><td>", class, state);
    put_text(out, s->version[0] != '\0' ? s->version : "?");
    evbuffer_add_printf(out,
                        "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%s</td><td>%s</td>"
                        "<td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n",
                        s->requests, s->pending,
                        short_time(histogram_sum_quantile(&s->times, 0.5), half),
                        short_time(histogram_sum_quantile(&s->times, 0.99), most), s->errors,
                        s->timeouts, s->evictions);
}

static void show_servers(const struct shared *shared, const struct server_figures *rows,
                         size_t count, struct evbuffer *out)
{
    put(out, "<section class=\"card wide\" id=\"servers\"><h2>Servers</h2><table>\n"
             "<tr><th>pool</th><th>server</th><th>state</th><th>version</th><th>requests</th>"
             "<th>waiting</th><th>half "
             "within</th><th>99%</th><th>errors</th><th>time-outs</th><th>evictions</th></tr>\n");
    for (size_t i = 0; i < count; i++) {
        show_server(shared->config->pools[rows[i].pool_index].name, &rows[i].stats, out);
    }
    put(out, "</table></section>\n");
}

/* --- routes --- */

static void show_routes(const struct shared *shared, struct evbuffer *out)
{
    const struct config *config = shared->config;
    char prefix[ROUTE_TEXT_MAX];
    if (!config->has_routes) {
        return;
    }
    put(out, "<section class=\"card wide\" id=\"routes\"><h2>Routes of plain keys</h2><table>\n"
             "<tr><th>prefix</th><th>pool</th><th>failover</th><th>shadow</th>");
    for (enum route_count c = 0; c < ROUTE_COUNTS; c++) {
        evbuffer_add_printf(out, "<th title=\"%s\">%s</th>", figure_route_help(c),
                            figure_route_name(c));
    }
    put(out, "</tr>\n");
    for (size_t i = 0; i < config->route_count; i++) {
        const struct route_config *route = &config->routes[i];
        put(out, "<tr><td class=\"key\">");
        put_text(out, figure_route_text(route, prefix));
        put(out, "</td><td>");
        put_text(out, config->pools[route->pool_index].name);
        put(out, "</td><td>");
        put_text(out, route->failover_name);
        put(out, "</td><td>");
        put_text(out, route->shadow);
        put(out, "</td>");
        for (enum route_count c = 0; c < ROUTE_COUNTS; c++) {
            evbuffer_add_printf(out, "<td>%" PRIu64 "</td>", figure_of_route(shared, i, c));
        }
        put(out, "</tr>\n");
    }
    put(out, "</table></section>\n");
}

/* --- times, keys --- */

static void show_latency(struct shared *shared, struct evbuffer *out)
{
    static const double parts[] = {0.5, 0.9, 0.99, 0.999, 1};
    char text[32];
    struct histogram_sum *sums = calloc(TIMING_CLASSES, sizeof *sums);
    CHECK(sums != NULL);
    figures_of_requests(shared, sums);
    put(out, "<section class=\"card wide\" id=\"latency\"><h2>Time to the answer</h2><table>\n"
             "<tr><th>requests</th><th>count</th><th>half within</th><th>90%</th><th>99%</th>"
             "<th>99.9%</th><th>all</th></tr>\n");
    for (size_t c = 0; c < TIMING_CLASSES; c++) {
        if (sums[c].count == 0) {
            continue;
        }
        evbuffer_add_printf(out, "<tr><td>%s</td><td>%" PRIu64 "</td>", figure_class_name(c),
                            sums[c].count);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            evbuffer_add_printf(out, "<td>%s</td>",
                                short_time(histogram_sum_quantile(&sums[c], parts[i]), text));
        }
        put(out, "</tr>\n");
    }
    put(out, "</table></section>\n");
    free(sums);
}

static void show_hot(const struct shared *shared, struct evbuffer *out)
{
    struct hot_sum keys = figures_of_keys(shared);
    put(out, "<section class=\"card\" id=\"hot\"><h2>Keys asked for most</h2>\n"
             "<table><tr><th>key</th><th>share of requests</th></tr>\n");
    for (size_t i = 0; i < keys.count && i < HOT_SHOWN; i++) {
        put(out, "<tr><td class=\"key\">");
        put_key(out, slice_make(keys.names[i].bytes, keys.names[i].len));
        evbuffer_add_printf(out, "</td><td>%.1f%%</td></tr>\n",
                            100.0 * (double)keys.names[i].count / (double)keys.total);
    }
    put(out, "</table><p class=\"soft\">one request in 31 is looked at; the last minutes</p>"
             "</section>\n");
    hot_sum_fini(&keys);
}

static void show_laggards(const struct laggards_sum *sum, struct evbuffer *out)
{
    char text[32], bytes[32];
    put(out,
        "<section class=\"card\" id=\"clients\"><h2>Slow clients</h2>\n<table>"
        "<tr><th>client</th><th>left unread for</th><th>unread now</th><th>closed</th></tr>\n");
    for (size_t i = 0; i < sum->count && i < SLOW_SHOWN; i++) {
        const struct laggard *l = &sum->rows[i];
        put(out, "<tr><td class=\"key\">");
        put_text(out, l->name);
        evbuffer_add_printf(out, "</td><td>%s</td><td>%s</td><td>%" PRIu64 "</td></tr>\n",
                            short_time(l->unread_ms * 1000, text),
                            short_number((double)l->unread_bytes, bytes), l->closed);
    }
    put(out, "</table><p class=\"soft\">those that do not take their answers, in the last minutes; "
             "closed: at client_hard_bytes</p></section>\n");
}

static void show_slow(const struct shared *shared, struct evbuffer *out)
{
    char text[32];
    struct slow_request *last = calloc(SLOW_KEPT, sizeof *last);
    CHECK(last != NULL);
    size_t count = slow_log_read(shared->slow, last);
    int64_t now_s = clock_now().wall_s;
    put(out, "<section class=\"card\" id=\"slow\"><h2>Slow requests</h2>\n<table>"
             "<tr><th>request</th><th>took</th><th>waited</th><th>ago</th></tr>\n");
    for (size_t i = 0; i < count && i < SLOW_SHOWN; i++) {
        put(out, "<tr title=\"client ");
        put_text(out, last[i].peer);
        evbuffer_add_printf(out, "\"><td class=\"key\">%s ", last[i].verb);
        put_key(out, slice_make(last[i].key, last[i].key_len));
        evbuffer_add_printf(out, "</td><td>%s</td>", short_time(last[i].us, text));
        evbuffer_add_printf(out, "<td>%s</td><td>%" PRId64 " s</td></tr>\n",
                            short_time(last[i].waited_us, text), now_s - last[i].wall_s);
    }
    evbuffer_add_printf(out,
                        "</table><p class=\"soft\">those that took %" PRIu32
                        " ms or longer (slow_ms); waited: for earlier ones of the same "
                        "client</p></section>\n",
                        shared->config->slow_ms);
    free(last);
}

/* --- plots --- */

struct series {
    enum history_row row;
    const char *name;
};
#define SERIES_MAX 4

static void show_line(const struct history *h, const struct series *series, char class, double top,
                      struct evbuffer *out)
{
    size_t seconds = history_seconds(h);
    evbuffer_add_printf(out, "<polyline class=\"%c\" points=\"", class);
    for (size_t ago = seconds; ago-- > 0;) {
        double y = (double)history_of(h, series->row, ago) / top * (PLOT_HEIGHT - 2);
        evbuffer_add_printf(out, "%zu,%.1f ", (HISTORY_SECONDS - 1 - ago) * PLOT_STEP,
                            PLOT_HEIGHT - 1 - y);
    }
    put(out, "\"/>\n");
}

static double highest(const struct history *h, const struct series *series)
{
    uint64_t top = 1;
    for (size_t s = 0; s < SERIES_MAX && series[s].name != NULL; s++) {
        for (size_t ago = 0; ago < history_seconds(h); ago++) {
            uint64_t value = history_of(h, series[s].row, ago);
            top = value > top ? value : top;
        }
    }
    return (double)top;
}

static void show_plot(const struct history *h, const char *title,
                      const struct series series[SERIES_MAX], struct evbuffer *out)
{
    double top = highest(h, series);
    char number[32];
    evbuffer_add_printf(out, "<section class=\"card\"><h2>%s</h2><p>", title);
    size_t seconds = history_seconds(h) < MEAN_SECONDS ? history_seconds(h) : MEAN_SECONDS;
    for (size_t s = 0; s < SERIES_MAX && series[s].name != NULL; s++) {
        double mean =
            seconds == 0 ? 0 : (double)sum_of(h, series[s].row, seconds) / (double)seconds;
        evbuffer_add_printf(out, "<span class=\"%c\">%s <b>%s</b></span> ", (char)('a' + (char)s),
                            series[s].name, short_number(mean, number));
    }
    evbuffer_add_printf(out,
                        "</p><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
                        "aria-label=\"%s, the last five minutes\">\n",
                        HISTORY_SECONDS * PLOT_STEP, PLOT_HEIGHT, title);
    for (size_t s = 0; s < SERIES_MAX && series[s].name != NULL; s++) {
        show_line(h, &series[s], (char)('a' + (char)s), top, out);
    }
    evbuffer_add_printf(out,
                        "</svg><p class=\"soft\">highest %s; the last five minutes</p>"
                        "</section>\n",
                        short_number(top, number));
}

static void show_plots(const struct history *h, struct evbuffer *out)
{
    static const struct {
        const char *title;
        struct series series[SERIES_MAX];
    } plots[] = {
        {"Requests per second",
         {{HISTORY_READS, "reads"},
          {HISTORY_WRITES, "other plain"},
          {HISTORY_LIST_READS, "list reads"},
          {HISTORY_LIST_CHANGES, "list changes"}}},
        {"Errors per second",
         {{HISTORY_ERRORS, "SERVER_ERROR"}, {HISTORY_TIMEOUTS, "time-outs of servers"}}},
        {"Lists per second", {{HISTORY_CONFLICTS, "conflicts"}, {HISTORY_FLIPS, "flips, merges"}}},
        {"Clients", {{HISTORY_CONNECTIONS, "connected"}}},
        {"Memory for clients, bytes", {{HISTORY_MEMORY, "held"}}},
        {"Processor, µs per second", {{HISTORY_CPU_US, "used"}}},
    };
    put(out, "<div class=\"grid\">\n");
    for (size_t i = 0; i < sizeof plots / sizeof plots[0]; i++) {
        show_plot(h, plots[i].title, plots[i].series, out);
    }
    put(out, "</div>\n");
}

/* --- figures --- */

static void show_figure(void *arg, const struct figure *f)
{
    struct evbuffer *out = arg;
    if (f->kind == FIGURE_TEXT || f->kind == FIGURE_CPU_US || f->value == 0) {
        return;
    }
    put(out, "<p title=\"");
    put_text(out, f->help);
    evbuffer_add_printf(out, "\">%s <b>%" PRIu64 "</b></p>\n", f->name, f->value);
}

void page_print(struct shared *shared, const struct history *history, struct evbuffer *out)
{
    char host[256] = "";
    size_t server_count;
    struct server_figures *servers = figures_of_servers(shared, &server_count);
    struct laggards_sum laggards = figures_of_laggards(shared);
    uint64_t uptime_s = (clock_now().mono_us - shared->started_us) / 1000000;
    (void)gethostname(host, sizeof host - 1);
    put(out, head);
    evbuffer_add_printf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n<title>mclistd on ",
                        REFRESH_S);
    put_text(out, host);
    put(out, "</title>\n");
    put(out, style);
    put(out, "</head><body>\n<header><h1>mclistd on ");
    put_text(out, host);
    evbuffer_add_printf(out,
                        "</h1>\n<p class=\"soft\">version " MCLISTD_VERSION ", process %d, up for "
                        "%" PRIu64 "d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "</p></header>\n",
                        (int)getpid(), uptime_s / 86400, uptime_s / 3600 % 24, uptime_s / 60 % 60,
                        uptime_s % 60);
    show_alarms(shared, history, servers, server_count, &laggards, out);
    show_plots(history, out);
    show_servers(shared, servers, server_count, out);
    free(servers);
    show_routes(shared, out);
    show_latency(shared, out);
    put(out, "<div class=\"grid\">\n");
    show_hot(shared, out);
    show_slow(shared, out);
    show_laggards(&laggards, out);
    laggards_sum_fini(&laggards);
    put(out, "</div>\n");
    put(out, "<section class=\"card\" id=\"figures\"><h2>All figures that are not 0</h2><div>\n");
    figures_print(shared, show_figure, out);
    put(out, "</div></section>\n<footer class=\"soft\"><p>Also here: "
             "<a href=\"metrics\">metrics</a>, <a href=\"config\">config</a>, "
             "<a href=\"live\">live</a>, <a href=\"ready\">ready</a></p></footer>\n"
             "</body></html>\n");
}
