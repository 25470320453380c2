/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection comes about: where to, sockets and their options, the handshake's question. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "pool/link/login_turn.h"
#include "pool/link/server.h"
#include "pool/link/upstream.h"

static void set_option(int fd, int level, int name, int value)
{
    /* Each of them is an improvement only: without it the timeouts still hold. */
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

/* How long a login waits before it looks again whether it is its turn: so much, and up to as much
 * again at random, so that workers do not look in step. */
#define TURN_PAUSE_MS 3

static void set_tcp_options(int fd, const struct pool_config *config)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
               (int)(config->timeout_ms + config->connect_timeout_ms));
}

static void on_writable(evutil_socket_t fd, short what, void *arg);

/* Opens a socket and begins to connect it. Returns 1 when connected, 0 when that is under way, -1
 * with errno. */
static int begin(struct upstream *u, const struct address *a)
{
    struct pool_context *context = u->server->context;
    int family = a->sa.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (family != AF_UNIX) {
        set_tcp_options(fd, context->config);
    }
    int rc = connect(fd, (const struct sockaddr *)&a->sa, a->len);
    if (rc < 0 && errno != EINPROGRESS) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    u->fd = fd;
    /* read_event is set up, too, so that it can always be deleted. */
    CHECK(event_assign(&u->write_event, context->base, fd, EV_WRITE, on_writable, u) == 0);
    CHECK(event_assign(&u->read_event, context->base, fd, EV_READ | EV_PERSIST, NULL, u) == 0);
    return rc == 0 ? 1 : 0;
}

/* Does that say that nothing listens there, or that this machine has no such address? Anything else
 * may come from a server that is only slow. */
static bool nothing_listens(int error)
{
    return error == ECONNREFUSED || error == EADDRNOTAVAIL || error == EAFNOSUPPORT ||
           error == ENETUNREACH;
}

static void set_attempt_timer(struct upstream *u)
{
    upstream_set_timer(u, u->server->context->config->connect_timeout_ms);
}

static void failed_with(struct upstream *u, int error);
static void begin_handshake(struct upstream *u);
static void start_handshake(struct upstream *u);
static void shake_tls(struct upstream *u);

static void connect_to(struct upstream *u, const struct address *address)
{
    u->address = *address;
    int rc = begin(u, address);
    if (rc < 0) {
        failed_with(u, errno);
        return;
    }
    upstream_set_state(u, UPSTREAM_CONNECTING);
    set_attempt_timer(u); /* for the handshake, too; of a login, for each step */
    if (rc == 1) {
        begin_handshake(u);
    } else {
        CHECK(event_add(&u->write_event, NULL) == 0);
    }
}

/* The other loopback address, if that one was not tried yet. Never another address else: that may
 * be another server. */
static void failed_with(struct upstream *u, int error)
{
    const struct address *twin = &u->server->location.twin;
    bool was_first = u->address.sa.ss_family == AF_INET;
    if (twin->len > 0 && was_first && nothing_listens(error)) {
        connect_to(u, twin);
        return;
    }
    if (error == EMFILE || error == ENFILE) {
        upstream_attempt_failed(u, "this proxy has no file descriptor left", true,
                                FAILURE_NO_DESCRIPTOR);
        return;
    }
    upstream_attempt_failed(u, strerror(error), error == ECONNREFUSED || error == ENOENT,
                            FAILURE_DOWN);
}

void upstream_attempt(struct upstream *u)
{
    switch (server_locate(u->server)) {
    case RESOLVER_WAIT:
        upstream_set_state(u, UPSTREAM_RESOLVING);
        break;
    case RESOLVER_UNKNOWN:
        upstream_attempt_failed(u, "its name is not resolved", false, FAILURE_UNRESOLVED);
        break;
    case RESOLVER_KNOWN:
        u->version = u->server->version;
        connect_to(u, &u->server->location.address);
        break;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct upstream *u = arg;
    (void)fd, (void)what;
    context_woke(u->server->context);
    if (u->tls != NULL && !tls_is_up(u->tls)) {
        shake_tls(u);
        return;
    }
    upstream_readable(u);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct upstream *u = arg;
    (void)what;
    context_woke(u->server->context);
    if (u->state == UPSTREAM_UP) {
        u->socket_full = false;
        upstream_flush(u);
        return;
    }
    if (u->state == UPSTREAM_HANDSHAKE) {
        if (tls_is_up(u->tls)) {
            (void)upstream_send(u, NULL, 0);
        } else {
            shake_tls(u);
        }
        return;
    }
    CHECK(u->state == UPSTREAM_CONNECTING);
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0) {
        error = errno;
    }
    if (error == 0) {
        begin_handshake(u);
        return;
    }
    close(u->fd);
    u->fd = -1;
    failed_with(u, error);
}

/* Random letters and digits of some 285 bits. */
static void make_nonce(char out[SCRAM_NONCE_BYTES + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct rng rng;
    uint64_t bits = 0;
    rng_init_system(&rng);
    for (size_t i = 0; i < SCRAM_NONCE_BYTES; i++) {
        bits = i % 10 == 0 ? rng_unique(&rng) : bits >> 6;
        out[i] = digits[bits & 63];
    }
    out[SCRAM_NONCE_BYTES] = '\0';
}

/* The socket is connected. */
static void begin_handshake(struct upstream *u)
{
    upstream_set_state(u, UPSTREAM_HANDSHAKE);
    u->handshake = (struct handshake){.probe = u->favour != UPSTREAM_TRUSTED,
                                      .login = u->server->context->login};
    if (u->handshake.login == NULL) {
        start_handshake(u);
        return;
    }
    make_nonce(u->handshake.nonce);
    u->handshake.waits_for = "other logins";
    u->turn_until_us = u->server->context->now->mono_us +
                       (uint64_t)u->server->context->config->connect_timeout_ms * 1000;
    upstream_take_turn(u);
}

void upstream_take_turn(struct upstream *u)
{
    struct pool_context *context = u->server->context;
    u->has_turn = login_turn_take(u->server->config->name, u, context->now->mono_us);
    u->awaits_turn = !u->has_turn && context->now->mono_us < u->turn_until_us;
    if (u->awaits_turn) {
        upstream_set_timer(u, TURN_PAUSE_MS + rng_below(&context->rng, TURN_PAUSE_MS));
        return;
    }
    set_attempt_timer(u);
    start_handshake(u);
}

void upstream_end_turn(struct upstream *u)
{
    u->awaits_turn = false;
    if (u->has_turn && u->handshake.logs_in) {
        struct pool_context *context = u->server->context;
        login_turn_fail(u->server->config->name, u, context->now->mono_us, &context->rng);
    } else if (u->has_turn) {
        login_turn_end(u->server->config->name, u);
    }
    u->has_turn = false;
}

/* With TLS or, without it, with the server itself. */
static void start_handshake(struct upstream *u)
{
    CHECK(event_assign(&u->read_event, u->server->context->base, u->fd, EV_READ | EV_PERSIST,
                       on_readable, u) == 0);
    CHECK(event_add(&u->read_event, NULL) == 0);
    const struct pool_context *context = u->server->context;
    if (context->tls != NULL) {
        const char *name = context->config->tls_name;
        u->tls = tls_open(context->tls, u->fd,
                          name[0] != '\0' ? name : u->server->config->endpoint.host);
        u->handshake.waits_for = "TLS";
        shake_tls(u);
        return;
    }
    (void)upstream_handshake(u);
}

/* Goes on with the handshake of TLS; behind it, with the server's own. */
static void shake_tls(struct upstream *u)
{
    char text[HANDSHAKE_ERROR_MAX];
    const char *reason;
    switch (tls_shake_hands(u->tls, &reason)) {
    case TLS_UP:
        set_attempt_timer(u);
        if (upstream_handshake(u) && tls_has_input(u->tls)) {
            event_active(&u->read_event, EV_READ, 0);
        }
        return;
    case TLS_WANTS_INPUT:
        return;
    case TLS_WANTS_ROOM:
        CHECK(event_add(&u->write_event, NULL) == 0);
        return;
    case TLS_FAILED:
        snprintf(text, sizeof text, "TLS: %s", reason);
        upstream_attempt_failed(u, text, false, FAILURE_UNFIT);
        return;
    }
}

bool upstream_handshake(struct upstream *u)
{
    struct handshake_step step;
    step.in = step.map = SLICE_NONE;
    step.need = 0;
    if (u->in != NULL) {
        step.in = slice_make(u->in->data + u->in_parsed, u->in->used - u->in_parsed);
    }
    size_t arrived = step.in.len;
    unsigned before = u->handshake.step;
    enum handshake_result result = u->wire->handshake(&u->handshake, &step);
    u->in_parsed += arrived - step.in.len;
    u->in_need = step.need;
    const struct pool_context *context = u->server->context;
    if (result != HANDSHAKE_MORE && context->cluster != NULL) {
        context->hooks->learn(context->cluster, u->server, &u->handshake);
    }
    if (result == HANDSHAKE_REFUSED) {
        upstream_attempt_failed(u, step.error, false, FAILURE_UNFIT);
        return false;
    }
    /* The socket has room for these few bytes: the server has read what was sent before. */
    ssize_t len = (ssize_t)step.send_len;
    if (len > 0 && !upstream_send(u, step.send, (size_t)len)) {
        upstream_attempt_failed(u, strerror(errno), false, FAILURE_DOWN);
        return false;
    }
    /* A login takes several round trips, and work of the server's: each has the whole time. */
    if (result == HANDSHAKE_MORE && u->handshake.login != NULL && u->handshake.step != before) {
        set_attempt_timer(u);
    }
    if (result == HANDSHAKE_DONE) {
        if (step.map.len > 0) {
            context->hooks->take_map(context->cluster, u->server, step.map);
        }
        upstream_established(u);
    }
    return true;
}
