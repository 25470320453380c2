/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/reserve.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "proxy/core/shared.h"
#include "proxy/core/worker.h"

void reserve_init(struct worker *w)
{
    TAILQ_INIT(&w->reserved);
}

/* Over the loopback interface or a unix socket. */
static bool is_local(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage room;
    } peer = {.any.sa_family = AF_UNSPEC};
    socklen_t len = sizeof peer;
    if (getpeername(fd, &peer.any, &len) != 0) {
        return false;
    }
    switch (peer.any.sa_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(peer.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&peer.in6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&peer.in6.sin6_addr) &&
                peer.in6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
    default:
        return false;
    }
}

void reserve_note_refused(struct worker *w)
{
    char more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_rejected_connections);
    if (log_limit_pass(&w->full_limit, w->now.wall_s, "clients", more)) {
        log_warn("a client is refused: max_connections (%" PRIu32 ") is reached%s",
                 w->config->max_connections, more);
    }
}

uint32_t reserve_others(const struct worker *w, uint32_t open)
{
    uint32_t reserved = atomic_load(&w->shared->reserved);
    return open > reserved ? open - reserved : 0;
}

bool reserve_has_place(const struct worker *w, int fd, uint32_t open, struct client **instead)
{
    *instead = NULL;
    const struct config *config = w->config;
    if (config->reserved_connections == 0 || !is_local(fd)) {
        return false;
    }
    uint32_t places = config->max_connections + config->reserved_connections;
    if (open < places) {
        return true;
    }
    *instead = TAILQ_FIRST(&w->reserved);
    return *instead != NULL || open < places + config->threads; /* one for each worker at least */
}

void reserve_enter(struct client *c)
{
    c->rules |= RULE_RESERVE;
    atomic_fetch_add(&c->worker->shared->reserved, 1);
    TAILQ_INSERT_TAIL(&c->worker->reserved, c, reserved_link);
}

void reserve_leave(struct client *c)
{
    if ((c->rules & RULE_RESERVE) != 0) {
        c->rules &= (uint8_t)~RULE_RESERVE;
        atomic_fetch_sub(&c->worker->shared->reserved, 1);
        TAILQ_REMOVE(&c->worker->reserved, c, reserved_link);
    }
}

bool reserve_admits(struct client *c, const struct request *r)
{
    struct worker *w = c->worker;
    switch (r->verb->verb) {
    case VERB_STATS:
    case VERB_VERSION:
    case VERB_MN:
    case VERB_QUIT:
        return true;
    default:
        break;
    }
    if (reserve_others(w, atomic_load(&w->shared->connections)) < w->config->max_connections) {
        reserve_leave(c);
        return true;
    }
    reserve_note_refused(w);
    pending_answer_fixed(c, RESERVE_TOO_MANY);
    client_stop(c);
    return false;
}
