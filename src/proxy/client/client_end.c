/* SPDX-License-Identifier: BSD-3-Clause */
/* How a client ends, and what the list engine is told of it before that. */
#include <event2/event.h>
#include <inttypes.h>

#include "proxy/client/client.h"
#include "proxy/client/linger.h"
#include "proxy/client/request_clock.h"
#include "proxy/client/reserve.h"
#include "proxy/client/secure.h"
#include "proxy/core/worker.h"

void client_update_session(struct client *c)
{
    if (TAILQ_EMPTY(&c->fifo)) {
        return;
    }
    struct list_session *session = &c->session;
    const struct part *first = client_first_part(c);
    bool first_may_go =
        first != NULL && !client_is_closed(c) && window_drained(&c->window, c->out.bytes);
    session->unread_bytes = c->out.bytes + c->window.parked_bytes;
    session->first = first_may_go ? part_call(first) : NULL;
    session->gone = client_is_closed(c);
    if (session_has_deferred(session) || (session->gone && session->joint != NULL)) {
        engine_session_changed(c->worker->engine, session);
        c->worker->engine_dirty = true;
    }
}

void client_note_unread(struct client *c)
{
    struct worker *w = c->worker;
    uint64_t us = w->now.mono_us - c->lag.since_us;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    if (us >= w->slow_us &&
        log_limit_pass(&w->timing.slow_limit, w->now.wall_s, "requests or clients", more)) {
        log_warn("slow: client %s left %zu bytes of answers unread for %" PRIu64 " ms (slow_ms)%s",
                 client_peer(c, peer, sizeof peer), c->lag.bytes, us / 1000, more);
    }
    lag_end(&w->laggards, &c->lag, &w->now, false);
}

/* let_go: closes the socket. */
static void end(struct client *c, void (*let_go)(struct worker *w, int fd))
{
    struct worker *w = c->worker;
    if (client_is_closed(c)) {
        return;
    }
    client_advance(c, CLIENT_CLOSED);
    if (c->writing) {
        client_note_unread(c);
    }
    event_del(&c->read_event);
    event_del(&c->write_event);
    secure_end(c);
    let_go(w, c->fd);
    c->fd = -1;
    chain_fini(&c->out);
    block_unref(&c->in);
    request_clock_stop(c);
    reserve_leave(c);
    pending_drop_answered(c);
    client_update_session(c);
    client_bury(c);
}

void client_close(struct client *c)
{
    end(c, linger_close);
}

void client_leave(struct client *c)
{
    end(c, linger_let_go);
}

void client_dismiss(struct client *c)
{
    end(c, linger_start);
}
