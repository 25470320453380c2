/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/deadline.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>

struct deadlines {
    struct event timer; /* the first deadline of those watched, or earlier */
    bool timer_set;
};

static uint64_t allowed_us(const struct worker *w)
{
    return (uint64_t)w->config->deadline_ms * 1000;
}

static void set_timer(struct worker *w)
{
    struct deadlines *d = w->deadlines;
    const struct pending *first = TAILQ_FIRST(&w->watched);
    if (first == NULL || d->timer_set) {
        return;
    }
    struct timeval delay = timeval_until(first->due_us, w->now.mono_us);
    CHECK(event_add(&d->timer, &delay) == 0);
    d->timer_set = true;
}

static void watch_since(struct pending *p, uint64_t since_us)
{
    struct worker *w = p->client->worker;
    p->due_us = since_us + allowed_us(w);
    /* Where a reload has just shortened the time, it waits until those before it are due. */
    const struct pending *before = TAILQ_LAST(&w->watched, pending_list);
    if (before != NULL && before->due_us > p->due_us) {
        p->due_us = before->due_us;
    }
    TAILQ_INSERT_TAIL(&w->watched, p, watch);
    set_timer(w);
}

static void expire(struct worker *w, struct pending *p)
{
    char line[CONFIG_ERROR_MAX];
    bool client_took = pending_since_us(p) + allowed_us(w) > w->now.mono_us;
    pending_unwatch(p);
    if (client_is_closed(p->client)) {
        return;
    }
    if (client_took) {
        /* Its client kept it waiting: its time begins anew. */
        watch_since(p, w->now.mono_us);
        return;
    }
    const char *text = p->handler->timeout_text(p);
    bool unknown = strstr(text, "unknown") != NULL;
    snprintf(line, sizeof line, "SERVER_ERROR %s", text);
    if (pending_expire(p, line, unknown)) {
        metric_inc(&w->metrics, METRIC_deadlines_over);
        metric_inc(&w->metrics, METRIC_server_errors);
        metric_add(&w->metrics, METRIC_outcomes_unknown, unknown);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    struct pending *p;
    (void)fd;
    (void)what;
    worker_woke(w);
    w->deadlines->timer_set = false;
    while ((p = TAILQ_FIRST(&w->watched)) != NULL && p->due_us <= w->now.mono_us) {
        expire(w, p);
    }
    set_timer(w);
}

/* How long a pool may take to answer one of its exchanges. */
static uint64_t answer_ms(const struct worker *w, uint32_t pool_index)
{
    const struct pool_config *pool = &w->config->pools[pool_index];
    uint64_t ms = pool->timeout_ms;
    /* What a node of a cluster refuses for now may be sent again until its time is over, and then
     * wait for its answer as long. */
    if (pool->type == POOL_COUCHBASE) {
        ms = 2 * (uint64_t)(pool->durable_timeout_ms > ms ? pool->durable_timeout_ms : ms);
    }
    return ms;
}

void deadline_take_config(struct worker *w)
{
    uint64_t most_ms = 0;
    for (size_t i = 0; i < w->config->route_count; i++) {
        const struct route_config *route = &w->config->routes[i];
        uint64_t ms = answer_ms(w, route->pool_index);
        /* A failover pool is asked when the first has taken its time. */
        ms += route->failover_index == ROUTE_NONE ? 0 : answer_ms(w, route->failover_index);
        /* Keys that move ask several times. */
        ms = route->moves ? UINT64_MAX : ms;
        most_ms = ms > most_ms ? ms : most_ms;
    }
    w->watches_all = w->config->deadline_ms < most_ms;
}

void deadline_init(struct worker *w)
{
    w->deadlines = calloc(1, sizeof *w->deadlines);
    CHECK(w->deadlines != NULL);
    TAILQ_INIT(&w->watched);
    deadline_take_config(w);
    CHECK(evtimer_assign(&w->deadlines->timer, w->base, on_timer, w) == 0);
}

void deadline_fini(struct worker *w)
{
    if (w->deadlines != NULL) {
        event_del(&w->deadlines->timer);
        free(w->deadlines);
    }
}

void deadline_watch_this(struct pending *p)
{
    watch_since(p, p->read_us);
}
