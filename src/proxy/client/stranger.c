/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/stranger.h"

#include "proxy/core/worker.h"

/* What is logged of each. The settings' names are those of the clients' manuals. */
static const char *const advice[] = {
    [STRANGER_BINARY] =
        "speaks memcached's binary protocol; switch it off there (PHP: "
        "Memcached::OPT_BINARY_PROTOCOL = false, memcached.sess_binary_protocol = Off; pylibmc: "
        "binary=False; spymemcached: Protocol.TEXT; dalli: protocol: :meta; memjs has no other "
        "protocol)",
    [STRANGER_TLS] =
        "begins with a TLS handshake; switch TLS off there, or give this address tls_cert and "
        "tls_key",
    [STRANGER_HTTP] = "sends HTTP; this port is for clients of memcached",
    [STRANGER_REDIS] = "speaks the protocol of Redis; this port is for clients of memcached",
};

/* A response of the binary protocol: the request's opcode and opaque, status "unknown command". */
static void answer_binary(struct client *c, struct slice input)
{
    enum { HEADER_BYTES = STRANGER_BINARY_BYTES, OPCODE = 1, STATUS = 6, BODY = 8, OPAQUE = 12 };
    static const char text[] = "only memcached's text protocol is spoken here: switch the binary "
                               "protocol off in the client";
    char header[HEADER_BYTES] = {(char)0x81};
    CHECK(input.len >= HEADER_BYTES && sizeof text - 1 < 256);
    header[OPCODE] = input.p[OPCODE];
    header[STATUS + 1] = (char)0x81;
    header[BODY + 3] = (char)(sizeof text - 1);
    memcpy(header + OPAQUE, input.p + OPAQUE, 4);
    struct chain answer;
    chain_init(&answer);
    chain_copy(&answer, header, sizeof header);
    chain_copy(&answer, text, sizeof text - 1);
    pending_answer_text(c, &answer);
    chain_fini(&answer);
}

void stranger_met(struct client *c, enum stranger kind, struct slice input)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    if (kind == STRANGER_BINARY) {
        answer_binary(c, input);
    }
    if (c->is_stranger) {
        return;
    }
    c->is_stranger = true;
    metric_inc(&w->metrics, METRIC_other_protocols);
    if (log_limit_pass(&w->stranger_limit, w->now.wall_s, "clients", more)) {
        log_warn("client %s refused: it %s%s", client_peer(c, peer, sizeof peer), advice[kind],
                 more);
    }
}
