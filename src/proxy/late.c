/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/late.h"

#include <stdio.h>

#include "proxy/worker.h"

static uint64_t allowed_us(const struct worker *w)
{
    return (uint64_t)w->config->deadline_ms * 1000;
}

static void set_timer(struct worker *w)
{
    const struct pending *first = TAILQ_FIRST(&w->watched);
    if (first == NULL || w->watch_timer_set) {
        return;
    }
    uint64_t now_us = w->now.mono_us;
    uint64_t us = first->due_us > now_us ? first->due_us - now_us : 0;
    struct timeval delay = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    CHECK(event_add(&w->watch_timer, &delay) == 0);
    w->watch_timer_set = true;
}

static void watch_since(struct pending *p, uint64_t since_us)
{
    struct worker *w = p->client->worker;
    p->due_us = since_us + allowed_us(w);
    TAILQ_INSERT_TAIL(&w->watched, p, watch);
    set_timer(w);
}

static void expire(struct worker *w, struct pending *p)
{
    char line[CONFIG_ERROR_MAX];
    bool client_took = pending_since_us(p) + allowed_us(w) > w->now.mono_us;
    late_forget(p);
    if (client_is_closed(p->client)) {
        return;
    }
    if (client_took) {
        /* Its client kept it waiting: its time begins anew. */
        watch_since(p, w->now.mono_us);
        return;
    }
    const char *text = p->handler->late(p);
    bool unknown = strstr(text, "unknown") != NULL;
    snprintf(line, sizeof line, "SERVER_ERROR %s", text);
    p->told_unknown = unknown;
    if (pending_expire(p, line)) {
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
    w->watch_timer_set = false;
    while ((p = TAILQ_FIRST(&w->watched)) != NULL && p->due_us <= w->now.mono_us) {
        expire(w, p);
    }
    set_timer(w);
}

void late_init(struct worker *w)
{
    TAILQ_INIT(&w->watched);
    w->watches_all = w->config->deadline_ms < w->config->pools[w->config->pool_index].timeout_ms;
    CHECK(evtimer_assign(&w->watch_timer, w->base, on_timer, w) == 0);
}

void late_fini(struct worker *w)
{
    if (event_initialized(&w->watch_timer)) {
        event_del(&w->watch_timer);
    }
}

void late_watch(struct pending *p)
{
    watch_since(p, p->read_us);
}

void late_forget(struct pending *p)
{
    if (p->due_us != 0) {
        TAILQ_REMOVE(&p->client->worker->watched, p, watch);
        p->due_us = 0;
    }
}
