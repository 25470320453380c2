/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection comes about: where to, sockets and their options, the handshake's question. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "pool/server.h"
#include "pool/upstream.h"

static void set_option(int fd, int level, int name, int value)
{
    /* Each of them is an improvement only: without it the timeouts still hold. */
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

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

static void failed_with(struct upstream *u, int error);
static void begin_handshake(struct upstream *u);

static void connect_to(struct upstream *u, const struct address *address)
{
    uint32_t ms = u->server->context->config->connect_timeout_ms;
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000 * 1000)};
    u->address = *address;
    int rc = begin(u, address);
    if (rc < 0) {
        failed_with(u, errno);
        return;
    }
    upstream_set_state(u, UPSTREAM_CONNECTING);
    CHECK(event_add(&u->state_timer, &tv) == 0); /* for the handshake, too */
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

/* The socket is connected. */
static void begin_handshake(struct upstream *u)
{
    upstream_set_state(u, UPSTREAM_HANDSHAKE);
    u->handshake = (struct handshake){.probe = u->favour != UPSTREAM_TRUSTED};
    CHECK(event_assign(&u->read_event, u->server->context->base, u->fd, EV_READ | EV_PERSIST,
                       on_readable, u) == 0);
    CHECK(event_add(&u->read_event, NULL) == 0);
    (void)upstream_handshake(u);
}

bool upstream_handshake(struct upstream *u)
{
    struct handshake_step step;
    step.in = SLICE_NONE;
    if (u->in != NULL) {
        step.in = slice_make(u->in->data + u->in_parsed, u->in->used - u->in_parsed);
    }
    size_t arrived = step.in.len;
    enum handshake_result result = u->wire->handshake(&u->handshake, &step);
    u->in_parsed += arrived - step.in.len;
    if (result == HANDSHAKE_REFUSED) {
        upstream_attempt_failed(u, step.error, false, FAILURE_UNFIT);
        return false;
    }
    /* The socket has room for these few bytes: the server has read what was sent before. */
    ssize_t len = (ssize_t)step.send_len;
    if (len > 0 && send(u->fd, step.send, (size_t)len, MSG_NOSIGNAL) != len) {
        upstream_attempt_failed(u, strerror(errno), false, FAILURE_DOWN);
        return false;
    }
    if (result == HANDSHAKE_DONE) {
        upstream_established(u);
    }
    return true;
}
