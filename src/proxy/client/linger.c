/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/linger.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/block.h"
#include "base/memory.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"

/* What is thrown away of a client's input when its socket is closed at once, ... */
#define DISCARD_MAX ((size_t)1 << 20)
/* ... and between two looks at other sockets, so that it takes no more than other clients' input.
 */
#define DISCARD_TURN BLOCK_BYTES

struct lingering {
    TAILQ_ENTRY(lingering) link;
    struct worker *worker;
    struct event event;
    uint64_t until_us;
};

TAILQ_HEAD(lingerers, lingering);

enum input { INPUT_MORE, INPUT_NONE_NOW, INPUT_ENDED };

static enum input discard(int fd, size_t max)
{
    char sink[BLOCK_BYTES];
    for (size_t total = 0; total < max;) {
        ssize_t n = recv(fd, sink, sizeof sink, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return INPUT_NONE_NOW;
        }
        if (n <= 0) {
            return INPUT_ENDED;
        }
        total += (size_t)n;
    }
    return INPUT_MORE;
}

void linger_let_go(struct worker *w, int fd)
{
    close(fd);
    atomic_fetch_sub(&w->shared->connections, 1);
    metric_add(&w->metrics, METRIC_curr_connections, (uint64_t)-1);
}

static void stop(struct lingering *l)
{
    TAILQ_REMOVE(l->worker->lingerers, l, link);
    event_del(&l->event);
    linger_let_go(l->worker, event_get_fd(&l->event));
    memory_give(sizeof *l);
    free(l);
}

static void wait_more(struct lingering *l, uint64_t now_us)
{
    struct timeval delay = timeval_until(l->until_us, now_us);
    event_add(&l->event, &delay);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct lingering *l = arg;
    worker_woke(l->worker);
    uint64_t now_us = l->worker->now.mono_us;
    if ((what & EV_TIMEOUT) != 0 || now_us >= l->until_us ||
        discard(fd, DISCARD_TURN) == INPUT_ENDED) {
        stop(l);
    } else {
        wait_more(l, now_us);
    }
}

void linger_start(struct worker *w, int fd)
{
    if (w->draining || w->config->linger_ms == 0) {
        linger_close(w, fd);
        return;
    }
    if (shutdown(fd, SHUT_WR) != 0 || discard(fd, DISCARD_TURN) == INPUT_ENDED) {
        linger_let_go(w, fd);
        return;
    }
    struct lingering *l = calloc(1, sizeof *l);
    CHECK(l != NULL);
    memory_take(sizeof *l);
    l->worker = w;
    l->until_us = w->now.mono_us + (uint64_t)w->config->linger_ms * 1000;
    TAILQ_INSERT_TAIL(w->lingerers, l, link);
    event_assign(&l->event, w->base, fd, EV_READ, on_input, l);
    wait_more(l, w->now.mono_us);
}

void linger_close(struct worker *w, int fd)
{
    (void)discard(fd, DISCARD_MAX);
    linger_let_go(w, fd);
}

bool linger_make_room(struct worker *w)
{
    struct lingering *oldest = TAILQ_FIRST(w->lingerers);
    if (oldest == NULL) {
        return false;
    }
    (void)discard(event_get_fd(&oldest->event), DISCARD_TURN);
    stop(oldest);
    return true;
}

void linger_drain(struct worker *w)
{
    while (!TAILQ_EMPTY(w->lingerers)) {
        struct lingering *l = TAILQ_FIRST(w->lingerers);
        (void)discard(event_get_fd(&l->event), DISCARD_MAX);
        stop(l);
    }
}

void linger_init(struct worker *w)
{
    w->lingerers = calloc(1, sizeof *w->lingerers);
    CHECK(w->lingerers != NULL);
    TAILQ_INIT(w->lingerers);
}

void linger_fini(struct worker *w)
{
    if (w->lingerers != NULL) {
        linger_drain(w);
        free(w->lingerers);
    }
}
