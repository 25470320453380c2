/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client waits for in its worker's turn, and where it stands in its life. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "proxy/client/client.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"

void client_touch(struct client *c)
{
    if (!c->touched && !client_is_closed(c)) {
        c->touched = true;
        TAILQ_INSERT_TAIL(&c->worker->touched, c, touched_link);
    }
}

void client_want_write(struct client *c)
{
    if (!c->unsent && !client_is_closed(c)) {
        c->unsent = true;
        TAILQ_INSERT_TAIL(&c->worker->unsent, c, write_link);
    }
}

void client_answered(struct client *c)
{
    bool only_output = c->parsed && TAILQ_EMPTY(&c->fifo);
    if (only_output && !window_backlogged(&c->window, c->out.bytes)) {
        client_want_write(c);
    } else {
        client_touch(c);
    }
}

bool client_is_idle(const struct client *c, uint64_t since_us)
{
    /* With parts in flight it is us who keep the client waiting; with a full socket it is the
     * client: its reads may be deferred for it. */
    bool waits_for_client = c->window.unanswered == 0 || c->writing;
    return !client_is_closed(c) && waits_for_client && c->active_us <= since_us;
}

void client_bury(struct client *c)
{
    if (c->life == CLIENT_CLOSED && TAILQ_EMPTY(&c->fifo)) {
        struct worker *w = c->worker;
        client_advance(c, CLIENT_BURIED);
        if (c->doomed_bytes > 0) {
            atomic_fetch_sub_explicit(&w->shared->doomed_bytes, c->doomed_bytes,
                                      memory_order_relaxed);
        }
        TAILQ_REMOVE(&w->clients, c, link);
        if (c->touched) {
            TAILQ_REMOVE(&w->touched, c, touched_link);
        }
        if (c->unsent) {
            TAILQ_REMOVE(&w->unsent, c, write_link);
        }
        TAILQ_INSERT_TAIL(&w->graveyard, c, link);
    }
}

void client_destroy(struct client **slot)
{
    struct client *c = *slot;
    *slot = NULL;
    CHECK(c->life == CLIENT_BURIED && TAILQ_EMPTY(&c->fifo));
    TAILQ_REMOVE(&c->worker->graveyard, c, link);
    free(c);
}

static bool is_on_unix_socket(const struct client *c)
{
    struct sockaddr_storage address = {.ss_family = AF_UNIX};
    socklen_t len = sizeof address;
    (void)getsockname(c->fd, (struct sockaddr *)&address, &len);
    return address.ss_family == AF_UNIX;
}

/* In that form, of host and port. */
static const char *name_peer(const struct client *c, bool with_port, char *out, size_t cap)
{
    struct sockaddr_storage address;
    struct ucred peer = {.pid = 0};
    socklen_t len = sizeof address, peer_len = sizeof peer;
    char host[INET6_ADDRSTRLEN + 1];
    char port[8];
    if (getpeername(c->fd, (struct sockaddr *)&address, &len) == 0 &&
        address.ss_family != AF_UNIX &&
        getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        snprintf(out, cap, "%s%s%s", host, with_port ? " port " : "", with_port ? port : "");
    } else if (!is_on_unix_socket(c)) { /* it has reset the connection */
        snprintf(out, cap, "%s",
                 c->lag.place != NULL ? c->lag.place->name : "that has reset its connection");
    } else if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0 && peer.pid > 0) {
        snprintf(out, cap, "on a unix socket, process %ld of user %lu", (long)peer.pid,
                 (unsigned long)peer.uid);
    } else {
        snprintf(out, cap, "on a unix socket");
    }
    return out;
}

const char *client_peer(const struct client *c, char *out, size_t cap)
{
    return name_peer(c, true, out, cap);
}

const char *client_host(const struct client *c, char *out, size_t cap)
{
    return name_peer(c, false, out, cap);
}
