/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pool/link/server.h"

struct health {
    LIST_ENTRY(health) link;
    char pool[CONFIG_NAME_MAX + 1], name[SERVER_NAME_MAX];
    LIST_HEAD(, server) servers; /* of each worker */
    size_t workers;

    bool known;          /* it was there once */
    bool loss_told;      /* the log last said that it is lost */
    size_t workers_lost; /* to so many it is */
    char unfit[SERVER_TEXT_MAX];
    struct log_limit loss_limit;

    size_t mute;       /* so many connections */
    bool heard;        /* one of those that were has heard an answer since the last fell mute */
    uint64_t since_us; /* while it is silent, and until the log says that it is over; else 0 */
    int64_t since_s;
    uint64_t ended_us; /* when the last one that was mute was not any more */
    bool silence_told, ejection_told;
    struct log_limit silence_limit;

    int64_t full_told_s;
    uint64_t full_told; /* refusals up to then */

    int64_t restarted_s;
    uint64_t restarts, evicted, items;
    struct histogram_sum times; /* up to the last comparison */
    uint64_t recent_count, recent_p50_us, recent_p99_us, others_p50_us;
    int slow_looks; /* comparisons in a row */
    uint64_t slow_since_us;
};

static LIST_HEAD(, health) all = LIST_HEAD_INITIALIZER(all);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all of them */

/* --- who takes part ------------------------------------------------------------------------- */

static struct health *find(const char *pool, const char *name)
{
    struct health *h;
    LIST_FOREACH(h, &all, link)
    {
        if (strcmp(h->name, name) == 0 && strcmp(h->pool, pool) == 0) {
            return h;
        }
    }
    h = calloc(1, sizeof *h);
    CHECK(h != NULL);
    snprintf(h->pool, sizeof h->pool, "%s", pool);
    snprintf(h->name, sizeof h->name, "%s", name);
    LIST_INIT(&h->servers);
    LIST_INSERT_HEAD(&all, h, link);
    return h;
}

void health_join(struct server *server)
{
    pthread_mutex_lock(&lock);
    server->health = find(server->context->config->name, server->config->name);
    server->health->workers++;
    LIST_INSERT_HEAD(&server->health->servers, server, health_link);
    pthread_mutex_unlock(&lock);
}

void health_leave(struct server *server)
{
    pthread_mutex_lock(&lock);
    struct health *h = server->health;
    LIST_REMOVE(server, health_link);
    h->workers_lost -= server->is_lost;
    if (--h->workers == 0) {
        LIST_REMOVE(h, link);
        free(h);
    }
    pthread_mutex_unlock(&lock);
    server->health = NULL;
}

/* --- lost and back -------------------------------------------------------------------------- */

static void note_lost(struct server *server, bool is_lost)
{
    struct health *h = server->health;
    h->workers_lost += is_lost;
    h->workers_lost -= server->is_lost;
    server->is_lost = is_lost;
}

bool health_lost(struct server *server, char *more)
{
    struct health *h = server->health;
    pthread_mutex_lock(&lock);
    note_lost(server, true);
    bool news = !h->loss_told &&
                log_limit_pass(&h->loss_limit, server->context->now->wall_s, "events", more);
    h->loss_told = h->loss_told || news;
    pthread_mutex_unlock(&lock);
    return news;
}

bool health_back(struct server *server)
{
    struct health *h = server->health;
    pthread_mutex_lock(&lock);
    note_lost(server, false);
    bool news = !h->known || (h->loss_told && h->workers_lost == 0);
    h->loss_told = h->loss_told && h->workers_lost > 0;
    h->known = true;
    pthread_mutex_unlock(&lock);
    return news;
}

bool health_unfit(struct server *server, const char *text)
{
    struct health *h = server->health;
    pthread_mutex_lock(&lock);
    note_lost(server, true);
    bool news = !h->loss_told || strcmp(text, h->unfit) != 0;
    snprintf(h->unfit, sizeof h->unfit, "%s", text);
    h->loss_told = true;
    pthread_mutex_unlock(&lock);
    return news;
}

/* --- silence -------------------------------------------------------------------------------- */

static uint64_t waiting(const struct health *h)
{
    const struct server *server;
    uint64_t sum = 0;
    LIST_FOREACH(server, &h->servers, health_link)
    {
        sum += atomic_load_explicit(&server->pending, memory_order_relaxed);
    }
    return sum;
}

static void begin_silence(struct health *h, const struct now *now, uint64_t since_us,
                          const char *reason)
{
    char more[LOG_MORE_MAX], time[CLOCK_TEXT_MAX];
    h->since_us = since_us;
    h->since_s = now->wall_s - (int64_t)((now->mono_us - since_us) / 1000000);
    h->ejection_told = false;
    h->silence_told = log_limit_pass(&h->silence_limit, now->wall_s, "events", more);
    if (h->silence_told) {
        uint64_t count = waiting(h);
        log_warn("backend %s: not answering since %s, %" PRIu64 " request%s waiting: %s; see \"A "
                 "server hangs\" in operations.md%s",
                 h->name, clock_text(h->since_s, time), count, count == 1 ? "" : "s", reason, more);
    }
}

/* Ends the silence where it is over. */
static void look_whether_over(struct health *h)
{
    if (h->since_us == 0 || h->mute > 0 || !h->heard) {
        return;
    }
    if (h->silence_told) {
        uint64_t tenths = (h->ended_us - h->since_us) / 100000;
        log_info("backend %s: answers requests again, after %" PRIu64 ".%" PRIu64 " s", h->name,
                 tenths / 10, tenths % 10);
    }
    h->since_us = 0;
}

static void set_silence(struct server *server, enum silence *silence, enum silence to)
{
    struct health *h = server->health;
    if (*silence == SILENCE_MUTE) {
        h->mute--;
        h->ended_us = server->context->now->mono_us;
    }
    h->mute += to == SILENCE_MUTE;
    *silence = to;
}

void health_mute(struct server *server, enum silence *silence, uint64_t since_us,
                 const char *reason)
{
    struct health *h = server->health;
    pthread_mutex_lock(&lock);
    set_silence(server, silence, SILENCE_MUTE);
    h->heard = false;
    if (h->since_us == 0) {
        begin_silence(h, server->context->now, since_us, reason);
    }
    pthread_mutex_unlock(&lock);
}

void health_shook_hands(struct server *server, enum silence *silence)
{
    pthread_mutex_lock(&lock);
    set_silence(server, silence, SILENCE_ON_PROBATION);
    look_whether_over(server->health);
    pthread_mutex_unlock(&lock);
}

void health_heard(struct server *server, enum silence *silence)
{
    pthread_mutex_lock(&lock);
    set_silence(server, silence, SILENCE_NONE);
    server->health->heard = true;
    look_whether_over(server->health);
    pthread_mutex_unlock(&lock);
}

void health_not_mute(struct server *server, enum silence *silence)
{
    struct health *h = server->health;
    pthread_mutex_lock(&lock);
    set_silence(server, silence, SILENCE_NONE);
    if (h->mute == 0 && !h->heard) {
        h->since_us = 0; /* the log says what it is instead */
    }
    pthread_mutex_unlock(&lock);
}

bool health_first_ejected(struct server *server)
{
    pthread_mutex_lock(&lock);
    bool first = !server->health->ejection_told;
    server->health->ejection_told = true;
    pthread_mutex_unlock(&lock);
    return first;
}

bool health_first_left(struct server *server)
{
    pthread_mutex_lock(&lock);
    bool first = server->health->known;
    server->health->known = false;
    pthread_mutex_unlock(&lock);
    return first;
}

/* --- full ----------------------------------------------------------------------------------- */

void health_full(struct server *server)
{
    struct health *h = server->health;
    int64_t now_s = server->context->now->wall_s;
    pthread_mutex_lock(&lock);
    if (now_s >= h->full_told_s + HEALTH_TELL_S || now_s < h->full_told_s) {
        const struct server *one;
        uint64_t sum = 0;
        LIST_FOREACH(one, &h->servers, health_link)
        {
            sum += atomic_load_explicit(&one->refused_full, memory_order_relaxed);
        }
        log_warn("backend %s: full: it has refused %" PRIu64 " request%s for want of memory since "
                 "%s; give it more (-m), or see \"A server is full\" in operations.md",
                 h->name, sum - h->full_told, sum - h->full_told == 1 ? "" : "s",
                 h->full_told_s == 0 ? "the start" : "the last such line");
        h->full_told_s = now_s;
        h->full_told = sum;
    }
    pthread_mutex_unlock(&lock);
}

/* --- looks ---------------------------------------------------------------------------------- */

/* In a container the number of the process is always the same. */
static bool is_another_process(const struct server_look *before, const struct server_look *now)
{
    uint64_t passed_s = (now->at_us - before->at_us) / 1000000;
    return now->pid != before->pid || now->uptime_s + 3 < before->uptime_s + passed_s;
}

void health_looked(struct server *server, const struct server_look *before,
                   const struct server_look *now)
{
    struct health *h = server->health;
    int64_t wall_s = server->context->now->wall_s;
    pthread_mutex_lock(&lock);
    h->items = now->items;
    bool restarted = before->at_us != 0 && is_another_process(before, now);
    bool anew = restarted || now->evictions < before->evictions;
    h->evicted = before->at_us == 0 ? 0 : now->evictions - (anew ? 0 : before->evictions);
    if (restarted) {
        h->restarts++;
        h->restarted_s = wall_s - (int64_t)now->uptime_s;
        log_warn("backend %s: was restarted %" PRIu64 " s ago: the %" PRIu64 " items that it had "
                 "are gone, %" PRIu64 " are there now; see \"A server restarts\" in operations.md",
                 h->name, now->uptime_s, before->items, now->items);
    }
    if (h->evicted > 0) {
        log_warn("backend %s: evicts: %" PRIu64 " items since the last look; lists that lose a "
                 "part are damaged, give it more memory; see \"A server evicts\" in operations.md",
                 h->name, h->evicted);
    }
    pthread_mutex_unlock(&lock);
}

/* Fewer answers than that say little. */
#define SLOW_ANSWERS 100
/* Slow is who takes so many times as long as the others, and so much longer, in so many
 * comparisons in a row. No settings: it says what the word means in the metrics, so that an alert
 * means the same on all proxies; watch_interval_s says how often it is looked for. */
#define SLOW_TIMES 4
#define SLOW_MORE_US 2000
#define SLOW_LOOKS 2

/* What has come since the last comparison. */
static void take_times(struct health *h)
{
    struct histogram_sum sum = {.count = 0}, recent;
    const struct server *server;
    LIST_FOREACH(server, &h->servers, health_link)
    {
        histogram_sum_add(&sum, &server->times);
    }
    recent = sum;
    histogram_sum_take(&recent, &h->times);
    h->times = sum;
    h->recent_count = recent.count;
    h->recent_p50_us = histogram_sum_quantile(&recent, 0.5);
    h->recent_p99_us = histogram_sum_quantile(&recent, 0.99);
}

/* The median of the other servers' medians, the lower one of two; 0: they were asked too little. */
static uint64_t median_of_others(const struct server *servers, size_t count, size_t besides)
{
    for (size_t i = 0; i < count; i++) {
        const struct health *h = servers[i].health;
        size_t below = 0, same = 0, all_of = 0;
        if (i == besides || h->recent_count < SLOW_ANSWERS) {
            continue;
        }
        for (size_t j = 0; j < count; j++) {
            const struct health *other = servers[j].health;
            bool counts = j != besides && other->recent_count >= SLOW_ANSWERS;
            all_of += counts;
            below += counts && other->recent_p50_us < h->recent_p50_us;
            same += counts && other->recent_p50_us == h->recent_p50_us;
        }
        if (below <= (all_of - 1) / 2 && below + same > (all_of - 1) / 2) {
            return h->recent_p50_us;
        }
    }
    return 0;
}

static void judge(struct health *h, uint64_t now_us)
{
    bool is_slow = h->recent_count >= SLOW_ANSWERS && h->others_p50_us > 0 &&
                   h->recent_p50_us >= h->others_p50_us * SLOW_TIMES &&
                   h->recent_p50_us >= h->others_p50_us + SLOW_MORE_US;
    if (is_slow && ++h->slow_looks == SLOW_LOOKS) {
        h->slow_since_us = now_us;
        log_warn("backend %s: slow: half of its answers take %" PRIu64 " us or longer, of the "
                 "pool's other servers %" PRIu64 " us; see \"A server is slow\" in operations.md",
                 h->name, h->recent_p50_us, h->others_p50_us);
    } else if (!is_slow) {
        if (h->slow_looks >= SLOW_LOOKS) {
            log_info("backend %s: not slow any more, after %" PRIu64 " s", h->name,
                     (now_us - h->slow_since_us) / 1000000);
        }
        h->slow_looks = 0;
    }
}

void health_compare(struct server *servers, size_t count)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        take_times(servers[i].health);
    }
    for (size_t i = 0; i < count; i++) {
        servers[i].health->others_p50_us = median_of_others(servers, count, i);
        judge(servers[i].health, servers[i].context->now->mono_us);
    }
    pthread_mutex_unlock(&lock);
}

/* --- snapshot ------------------------------------------------------------------------------- */

void health_snapshot(const struct server *server, struct server_stats *out)
{
    const struct health *h = server->health;
    pthread_mutex_lock(&lock);
    out->silent_since_s = h->mute > 0 ? h->since_s : 0;
    out->restarted_s = h->restarted_s;
    out->restarts = h->restarts;
    out->evicted = h->evicted;
    out->items = h->items;
    out->recent_count = h->recent_count;
    out->recent_p50_us = h->recent_p50_us;
    out->recent_p99_us = h->recent_p99_us;
    out->others_p50_us = h->others_p50_us;
    out->is_slow = h->slow_looks >= SLOW_LOOKS;
    pthread_mutex_unlock(&lock);
}
