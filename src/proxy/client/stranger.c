/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/stranger.h"

#include "proxy/core/worker.h"

/* What is logged of each. The settings' names are those of the clients' manuals. */
static const char *const advice[] = {
    [STRANGER_TLS] =
        "begins with a TLS handshake; switch TLS off there, or give this address tls_cert and "
        "tls_key",
    [STRANGER_HTTP] = "sends HTTP; this port is for clients of memcached",
    [STRANGER_REDIS] = "speaks the protocol of Redis; this port is for clients of memcached",
};

void stranger_met(struct client *c, enum stranger kind)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_other_protocols);
    if (log_limit_pass(&w->stranger_limit, w->now.wall_s, "clients", more)) {
        log_warn("client %s refused: it %s%s", client_peer(c, peer, sizeof peer), advice[kind],
                 more);
    }
}
