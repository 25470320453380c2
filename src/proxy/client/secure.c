/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/secure.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>

#include "proxy/client/request_clock.h"
#include "proxy/core/worker.h"
#include "tls/tls.h"

/* The first byte of all that a client of TLS begins with. */
#define HANDSHAKE_BYTE 0x16

void secure_begin(struct client *c, struct tls_trust *trust)
{
    c->tls = tls_accept(trust, c->fd);
    request_clock_start(c);
}

static void log_failure(struct client *c, const char *what, const char *why)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    if (log_limit_pass(&w->secure_limit, w->now.wall_s, "clients", more)) {
        log_warn("client %s closed: %s%s%s", client_peer(c, peer, sizeof peer), what, why, more);
    }
}

void secure_fail(struct client *c, const char *why)
{
    metric_inc(&c->worker->metrics, METRIC_tls_failures);
    log_failure(c, "TLS: ", why);
    client_close(c);
}

/* Tells it in plain text, since it would not understand anything else. */
static void refuse_plain(struct client *c)
{
    static const char text[] = "CLIENT_ERROR this address wants TLS\r\n";
    metric_inc(&c->worker->metrics, METRIC_other_protocols);
    log_failure(c, "it speaks without TLS, which this address wants (tls_cert)", "");
    (void)send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    client_dismiss(c);
}

/* Looks at what has come, as long as OpenSSL was not given anything. Returns whether it is for
 * OpenSSL. */
static bool is_handshake(struct client *c)
{
    char byte;
    if (tls_has_begun(c->tls)) {
        return true;
    }
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 1 && byte != HANDSHAKE_BYTE) {
        refuse_plain(c);
    } else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        client_close(c); /* it only looked whether anything listens */
    }
    return n == 1 && byte == HANDSHAKE_BYTE;
}

static void is_up(struct client *c)
{
    metric_inc(&c->worker->metrics, METRIC_tls_connections);
    if (tls_is_in_kernel(c->tls)) {
        metric_inc(&c->worker->metrics, METRIC_tls_in_kernel);
    }
    c->is_secure = true;
    request_clock_stop(c);
    client_touch(c);
}

void secure_go_on(struct client *c)
{
    const char *reason;
    if (!is_handshake(c)) {
        return;
    }
    switch (tls_shake_hands(c->tls, &reason)) {
    case TLS_UP:
        is_up(c);
        return;
    case TLS_WANTS_INPUT:
        return;
    case TLS_WANTS_ROOM:
        c->writing = true;
        event_add(&c->write_event, NULL);
        return;
    case TLS_FAILED:
        secure_fail(c, reason);
        return;
    }
}

void secure_read_on(struct client *c)
{
    if (c->reading && tls_has_input(c->tls)) {
        event_active(&c->read_event, EV_READ, 0);
    }
}

void secure_end(struct client *c)
{
    tls_close(&c->tls);
}
