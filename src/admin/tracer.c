/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/tracer.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <stdlib.h>

#include "admin/where.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"
#include "proxy/proxy.h"

#define LOOK_MS 100
/* While so much is on its way to the operator, lines wait, and are lost when they are too many. */
#define OUTPUT_BYTES_MAX ((size_t)1 << 20)

struct tracer {
    struct proxy *proxy;
    struct trace *trace;
    struct event timer;
    struct http_peer *peer; /* NULL: there is no trace */
    char text[TRACE_BYTES];
};

static void end(struct tracer *t)
{
    event_del(&t->timer);
    trace_end(t->trace);
    t->peer = NULL;
}

static void on_gone(void *arg)
{
    end(arg);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct tracer *t = arg;
    struct http_peer *peer = t->peer;
    uint64_t lost;
    bool over;
    (void)fd;
    (void)what;
    struct evbuffer *out = http_output(peer);
    if (evbuffer_get_length(out) > OUTPUT_BYTES_MAX) {
        return;
    }
    size_t len = trace_take(t->trace, t->text, &lost, &over);
    if (len > 0) {
        evbuffer_add(out, t->text, len);
    }
    if (lost > 0) {
        evbuffer_add_printf(out, "lost=%" PRIu64 " lines\n", lost);
    }
    if (over) {
        end(t);
        http_end(peer);
    }
}

struct tracer *tracer_create(struct event_base *base, struct proxy *proxy)
{
    struct tracer *t = calloc(1, sizeof *t);
    CHECK(t != NULL);
    t->proxy = proxy;
    t->trace = &proxy_shared(proxy)->trace;
    event_assign(&t->timer, base, -1, EV_PERSIST, on_timer, t);
    return t;
}

void tracer_destroy(struct tracer **slot)
{
    struct tracer *t = *slot;
    *slot = NULL;
    if (t != NULL) {
        event_del(&t->timer);
        free(t);
    }
}

/* Its next request is looked at, whether it takes as long as the one before or not, and what plain
 * verbs ask of servers. */
static void heed(struct worker *w, void *arg)
{
    (void)arg;
    timing_forget_last(&w->timing);
    w->heeded = w;
}

const char *tracer_begin(struct tracer *t, struct http_peer *peer, struct slice key,
                         unsigned requests)
{
    static const struct timeval look = {0, LOOK_MS * 1000};
    struct trace_name names[TRACE_NAMES_MAX];
    size_t count = where_names(proxy_shared(t->proxy)->config, key, names);
    if (!trace_begin(t->trace, key, names, count, requests)) {
        return "another trace is under way";
    }
    if (proxy_ask(t->proxy, heed, NULL) != 0) {
        trace_end(t->trace);
        return "a worker has been busy for too long; try again";
    }
    t->peer = peer;
    peer->stays = true;
    peer->gone = on_gone;
    peer->gone_arg = t;
    event_add(&t->timer, &look);
    return NULL;
}
