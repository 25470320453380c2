/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the proxy knows of itself in numbers: of all workers together, and of each server. `stats`
 * and the admin listener show the same ones. Any thread may ask while workers run.
 */
#ifndef PROXY_FIGURES_H
#define PROXY_FIGURES_H

#include "pool/pool.h"
#include "proxy/core/shared.h"
#include "proxy/core/laggards.h"
#include "proxy/core/route_counts.h"
#include "proxy/core/timing.h"

enum figure_kind {
    FIGURE_TEXT,
    FIGURE_LEVEL,  /* as it is now, or a setting */
    FIGURE_COUNT,  /* grows until `stats reset` */
    FIGURE_CPU_US, /* the same, never reset, in microseconds */
};

struct figure {
    enum figure_kind kind;
    const char *name; /* as `stats` has it; lives for ever */
    const char *help; /* what it is; lives for ever */
    uint64_t value;
    const char *text; /* of FIGURE_TEXT; valid during the call */
};

typedef void figure_printer(void *arg, const struct figure *figure);

/* Calls print for each, in the order of `stats`. */
void figures_print(struct shared *shared, figure_printer *print, void *arg);
/* The value of a counter or level, of all workers, as figures_print has it. which: METRIC_... */
uint64_t figure_value(struct shared *shared, unsigned which);
struct reason;
/* How often that has happened, as the counter has it. */
uint64_t figure_of_reason(struct shared *shared, const struct reason *reason);
/* Has that client left something unread for slow_ms, and still does? */
bool figure_is_slow(const struct shared *shared, const struct laggard *client);
/* Counts begin again with 0. */
void figures_reset(struct shared *shared);

/* How long requests took since the start or the last `stats reset`, by the counter of their class:
 * METRIC_cmd_get and those behind it. */
void figures_of_requests(struct shared *shared, struct histogram_sum out[TIMING_CLASSES]);
/* The counter's name; it lives for ever. */
const char *figure_class_name(size_t class);
/* The keys that are asked for most, sorted; the caller's until hot_sum_fini. */
struct hot_sum figures_of_keys(const struct shared *shared);

/* The clients that leave answers unread, the worst first; the caller's until laggards_sum_fini. */
struct laggards_sum figures_of_laggards(const struct shared *shared);

/* A server of a pool. */
struct server_figures {
    size_t pool_index; /* position in config.pools */
    struct server_stats stats;
};

/* What may be wrong with a server: TROUBLE(name, what that means, as statistics.md has it) */
#define TROUBLE_TABLE(TROUBLE) \
    TROUBLE(drained, "an operator has taken it out of use") \
    TROUBLE(silent, "it does not answer") \
    TROUBLE(full, "it refused requests for want of memory in the last minute") \
    TROUBLE(garbage, "what it answered in the last minute could not be followed") \
    TROUBLE(restarted, "it was restarted in the last five minutes, and has lost what it held") \
    TROUBLE(evicts, "it has evicted items between the last two looks") \
    TROUBLE(slow, "it answers far slower than the other servers of its pool")

enum trouble {
#define TROUBLE_ENUM(name, help) TROUBLE_##name,
    TROUBLE_TABLE(TROUBLE_ENUM)
#undef TROUBLE_ENUM
        TROUBLE_COUNT
};

/* The trouble's name; it lives for ever. */
const char *trouble_name(enum trouble trouble);
/* Is the server in that trouble now? */
bool server_has_trouble(const struct server_stats *stats, enum trouble trouble, int64_t now_s);
/* Room for what server_trouble_text writes. */
#define TROUBLE_MAX 512
/* All troubles of the server in words: "not answering since 14:02:11, 312 requests waiting" (UTC);
 * "none" where there is none that the proxy knows of. Returns out. */
const char *server_trouble_text(const struct server_stats *stats, int64_t now_s,
                                char out[TROUBLE_MAX]);

/* The servers of all pools as all workers together see them, pool by pool. A Couchbase cluster's
 * are those of its map. Returns *count of them, which the caller frees. */
struct server_figures *figures_of_servers(const struct shared *shared, size_t *count);
/* "up", "connecting", "hanging", "ejected", "down" or "idle"; lives as long as stats. */
const char *server_state(const struct server_stats *stats);
/* Does a connection to it work? */
bool server_is_up(const struct server_stats *stats);

/* How often that has happened to keys of the route with that index, by all workers, since the
 * start. */
uint64_t figure_of_route(const struct shared *shared, size_t index, enum route_count which);
/* The count's name, and what it counts; they live for ever. */
const char *figure_route_name(enum route_count which);
const char *figure_route_help(enum route_count which);
/* The route's prefix as one word, "*" for the empty one. Returns out. */
#define ROUTE_TEXT_MAX (4 * CONFIG_NAME_MAX + 1)
const char *figure_route_text(const struct route_config *route, char out[ROUTE_TEXT_MAX]);
/* The name, or "none" for the empty one. */
const char *figure_or_none(const char *name);

/* How attempts to read the configuration anew have ended. */
void figures_of_reloads(struct shared *shared, struct reload_figures *out);

/* Processor time of the process, in microseconds. */
struct cpu_figures {
    uint64_t user_us, system_us;
};
struct cpu_figures figures_of_cpu(void);

#endif
