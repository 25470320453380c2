/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/request_clock.h"

#include <event2/event.h>
#include <stdlib.h>

#include "proxy/client/secure.h"
#include "proxy/core/worker.h"

/* The front of the queue is looked at so often within request_timeout_ms, but no more often than
 * each second: a client is closed that much too late at most. */
#define LOOKS 4
#define LOOK_MAX_MS 1000

struct request_clock {
    struct client_list receiving; /* clients that have sent a part of a request, oldest first */
    struct event timer;
    bool timer_set;
    struct log_limit limit;
};

static void set_timer(struct worker *w)
{
    uint32_t ms = (w->config->request_timeout_ms + LOOKS - 1) / LOOKS;
    ms = ms < LOOK_MAX_MS ? ms : LOOK_MAX_MS;
    struct timeval delay = timeval_of_ms(ms);
    w->request_clock->timer_set = event_add(&w->request_clock->timer, &delay) == 0;
}

/* The rest of its request will not be heard. */
static void close_slow(struct client *c)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    if (secure_is_pending(c)) {
        secure_fail(c, "its handshake did not end within request_timeout_ms");
        return;
    }
    metric_inc(&w->metrics, METRIC_request_timeouts);
    if (log_limit_pass(&w->request_clock->limit, w->now.wall_s, "clients", more)) {
        log_warn("client %s closed: its request did not arrive within request_timeout_ms (%u)%s",
                 client_peer(c, peer, sizeof peer), w->config->request_timeout_ms, more);
    }
    if (c->swallow == 0) { /* else it was refused already */
        metric_inc(&w->metrics, METRIC_client_errors);
        pending_answer_fixed(c, SLICE_LIT("CLIENT_ERROR the request did not arrive within "
                                          "request_timeout_ms\r\n"));
    }
    client_stop(c);
    client_touch(c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    struct client *c;
    (void)fd;
    (void)what;
    worker_woke(w);
    w->request_clock->timer_set = false;
    uint64_t limit_us = (uint64_t)w->config->request_timeout_ms * 1000;
    while ((c = TAILQ_FIRST(&w->request_clock->receiving)) != NULL &&
           w->now.mono_us >= c->receiving_us + limit_us) {
        request_clock_end(c);
        close_slow(c);
    }
    if (c != NULL) {
        set_timer(w);
    }
}

void request_clock_begin(struct client *c)
{
    struct worker *w = c->worker;
    if (w->config->request_timeout_ms == 0) {
        return;
    }
    c->receiving = true;
    c->receiving_us = w->now.mono_us;
    TAILQ_INSERT_TAIL(&w->request_clock->receiving, c, receiving_link);
    if (!w->request_clock->timer_set) {
        set_timer(w);
    }
}

void request_clock_end(struct client *c)
{
    TAILQ_REMOVE(&c->worker->request_clock->receiving, c, receiving_link);
    c->receiving = false;
}

void request_clock_take_config(struct worker *w)
{
    struct client *c;
    event_del(&w->request_clock->timer);
    w->request_clock->timer_set = false;
    while (w->config->request_timeout_ms == 0 &&
           (c = TAILQ_FIRST(&w->request_clock->receiving)) != NULL) {
        request_clock_end(c);
    }
    if (!TAILQ_EMPTY(&w->request_clock->receiving)) {
        set_timer(w);
    }
}

void request_clock_init(struct worker *w)
{
    w->request_clock = calloc(1, sizeof *w->request_clock);
    CHECK(w->request_clock != NULL);
    TAILQ_INIT(&w->request_clock->receiving);
    evtimer_assign(&w->request_clock->timer, w->base, on_timer, w);
}

void request_clock_fini(struct worker *w)
{
    if (w->request_clock != NULL) {
        event_del(&w->request_clock->timer);
        free(w->request_clock);
    }
}
