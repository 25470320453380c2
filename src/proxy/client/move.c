/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/move.h"

#include <errno.h>
#include <poll.h>

#include "base/log.h"
#include "os/inherited.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"

/* So long a worker waits for the other process to take sockets, before it looks after clients that
 * have requests under way. */
#define PATIENCE_MS 10

void move_begin(struct client *c)
{
    client_pause(c);
    client_touch(c);
}

/* Nothing that this process alone knows is lost with it: no request, no answer. */
static bool is_at_rest(const struct client *c)
{
    return c->life == CLIENT_OPEN && TAILQ_EMPTY(&c->fifo) && c->out.bytes == 0 && !c->writing &&
           c->swallow == 0 && client_unparsed(c) <= INHERITED_INPUT_MAX;
}

bool move_try(struct client *c)
{
    struct worker *w = c->worker;
    int heir = atomic_load(&w->shared->heir);
    if (!is_at_rest(c)) {
        return true;
    }
    struct moved moved = {.fd = c->fd,
                          .needs_login = (c->rules & RULE_LOGIN) != 0,
                          .protocol = client_is_binary(c) ? MOVED_BINARY
                                      : c->spoke          ? MOVED_TEXT
                                                          : MOVED_NEW,
                          .listener = c->listener->name,
                          .input = c->in == NULL
                                       ? SLICE_NONE
                                       : slice_make(c->in->data + c->in_pos, client_unparsed(c))};
    int rc = inherited_send_client(heir, &moved);
    if (rc != 0 && errno == EAGAIN) {
        struct pollfd room = {.fd = heir, .events = POLLOUT};
        (void)poll(&room, 1, PATIENCE_MS);
        rc = inherited_send_client(heir, &moved);
    }
    if (rc == 0) {
        client_leave(c);
    } else if (errno == EAGAIN) {
        return false;
    } else {
        char peer[CONFIG_NAME_MAX + 16];
        log_warn("client %s cannot be handed over: %s", client_peer(c, peer, sizeof peer),
                 strerror(errno));
        client_finish(c);
    }
    return true;
}
