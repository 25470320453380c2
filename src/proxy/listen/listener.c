/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/listen/listener.h"

#include <errno.h>
#include <inttypes.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "proxy/client/client.h"
#include "proxy/client/linger.h"
#include "proxy/client/move.h"
#include "proxy/client/reserve.h"
#include "proxy/core/shared.h"
#include "os/inherited.h"
#include "proxy/core/worker.h"
#include "proxy/listen/listen_set.h"

/* Connections accepted per event, so that a flood of them leaves time for those that are there. */
#define ACCEPT_BURST 64
/* How long accepting pauses while there are no descriptors. */
#define ACCEPT_PAUSE_US 100000

/* One socket as its worker's loop sees it. */
struct acceptor {
    struct worker *worker;
    struct event event;
    const struct listen_part *part;
    int fd;
    bool is_tcp;
};

struct listener {
    struct event timer; /* accepting pauses while descriptors are used up */
    struct log_limit limit;
    size_t count;
    struct acceptor acceptors[];
};

/* Who wants TLS would not understand a plain text. */
static void refuse_client(struct worker *w, const struct tls_trust *tls, int fd)
{
    char sink[256];
    reserve_note_refused(w);
    if (tls != NULL) {
        close(fd);
        return;
    }
    (void)send(fd, RESERVE_TOO_MANY.p, RESERVE_TOO_MANY.len, MSG_NOSIGNAL);
    /* A close with unread input would take the text back. */
    (void)recv(fd, sink, sizeof sink, MSG_DONTWAIT);
    close(fd);
}

/* Returns the client, or NULL: there was no place for it. */
static struct client *add_client(struct worker *w, const struct listener_config *listener,
                                 struct tls_trust *tls, int fd)
{
    uint32_t open = atomic_fetch_add(&w->shared->connections, 1);
    /* A socket that lingers may stand above the limit itself, as one of the reserve did. */
    while (reserve_others(w, open) >= w->config->max_connections && linger_make_room(w)) {
        open--;
    }
    bool full = reserve_others(w, open) >= w->config->max_connections;
    struct client *instead = NULL;
    if (full && !reserve_has_place(w, fd, open, &instead)) {
        atomic_fetch_sub(&w->shared->connections, 1);
        refuse_client(w, tls, fd);
        return NULL;
    }
    if (instead != NULL) {
        reserve_note_refused(w);
        client_close(instead);
    }
    struct client *c = client_create(w, fd, listener, tls);
    if (full) {
        reserve_enter(c);
    }
    return c;
}

static void accept_client(struct acceptor *a, int fd)
{
    if (a->is_tcp) {
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    (void)add_client(a->worker, a->part->listener, a->part->tls, fd);
}

void listener_adopt(struct worker *w, const struct moved *moved)
{
    const struct config *config = w->config;
    size_t i = 0;
    while (i < config->listener_count && strcmp(config->listeners[i].name, moved->listener) != 0) {
        i++;
    }
    /* Of a listener that this file does not have it is not known what its clients may do. */
    if (i == config->listener_count || (w->draining && !w->moving)) {
        close(moved->fd);
        return;
    }
    own_changes_add_to_all(&w->shared->own_changes);
    struct client *c = add_client(w, &config->listeners[i], NULL, moved->fd);
    if (c != NULL) {
        client_resume(c, moved);
        client_touch(c);
    }
    if (c != NULL && w->moving) {
        move_begin(c); /* this process has an heir of its own already */
    }
}

static void pause_accepting(struct worker *w, int reason)
{
    char more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_accept_failures);
    if (log_limit_pass(&w->listener->limit, w->now.wall_s, "events", more)) {
        log_error("cannot accept clients: %s; trying again%s", strerror(reason), more);
    }
    for (size_t i = 0; i < w->listener->count; i++) {
        event_del(&w->listener->acceptors[i].event);
    }
    struct timeval pause = {0, ACCEPT_PAUSE_US};
    event_add(&w->listener->timer, &pause);
}

/* Accepts what waits, max connections at most. Returns 0, or an errno when accepting has to wait
 * for descriptors or memory. */
static int accept_waiting(struct acceptor *a, int max)
{
    for (int i = 0; i < max; i++) {
        int fd = accept4(a->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_client(a, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            return errno;
        } else if (errno == EAGAIN) {
            return 0;
        }
        /* Anything else concerns the one connection only. */
    }
    return 0;
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    struct acceptor *a = arg;
    (void)fd;
    (void)what;
    worker_woke(a->worker);
    int reason = accept_waiting(a, ACCEPT_BURST);
    if (reason != 0) {
        pause_accepting(a->worker, reason);
    }
}

static void on_accept_timer(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;
    (void)fd;
    (void)what;
    for (size_t i = 0; i < w->listener->count; i++) {
        event_add(&w->listener->acceptors[i].event, NULL);
    }
}

void listener_start(struct worker *w, struct listen_set *set)
{
    size_t count = listen_set_count(set);
    w->listener = calloc(1, sizeof *w->listener + count * sizeof w->listener->acceptors[0]);
    CHECK(w->listener != NULL);
    w->listener->count = count;
    evtimer_assign(&w->listener->timer, w->base, on_accept_timer, w);
    for (size_t i = 0; i < count; i++) {
        struct acceptor *a = &w->listener->acceptors[i];
        a->worker = w;
        a->part = listen_set_part(set, i);
        a->is_tcp = listen_set_is_tcp(set, i);
        a->fd = listen_set_socket(set, i, w->index);
        event_assign(&a->event, w->base, a->fd, EV_READ | EV_PERSIST, on_acceptable, a);
        event_add(&a->event, NULL);
    }
}

void listener_stop(struct worker *w)
{
    if (w->listener == NULL) {
        return;
    }
    event_del(&w->listener->timer);
    for (size_t i = 0; i < w->listener->count; i++) {
        struct acceptor *a = &w->listener->acceptors[i];
        event_del(&a->event);
        /* Closing would reset the connections that wait here, if another process did not have the
         * sockets as well. */
        if (!listen_set_is_shared(w->shared->listen)) {
            (void)accept_waiting(a, LISTEN_BACKLOG);
        }
        listen_set_leave(w->shared->listen, i, w->index);
    }
    free(w->listener);
    w->listener = NULL;
}
