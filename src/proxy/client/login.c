/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/login.h"

#include "config/users.h"
#include "proto/client/binary_request.h"
#include "proto/client/login_parse.h"
#include "proxy/client/binary.h"
#include "proxy/client/request_clock.h"
#include "proxy/client/stranger.h"
#include "proxy/core/worker.h"

/* Does auth_file know them? Then the client is no longer to log in. */
static bool try(struct client *c, struct slice user, struct slice password)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_auth_cmds);
    if (users_know(c->listener->users, user, password)) {
        c->rules &= (uint8_t)~RULE_LOGIN;
        return true;
    }
    metric_inc(&w->metrics, METRIC_auth_errors);
    metric_inc(&w->metrics, METRIC_client_errors);
    if (log_limit_pass(&w->login_limit, w->now.wall_s, "logins", more)) {
        log_warn("client %s: its user and password are not in auth_file%s",
                 client_peer(c, peer, sizeof peer), more);
    }
    return false;
}

bool login_take(struct client *c, struct slice input)
{
    struct login login;
    struct parse_result result = login_parse(input, !c->spoke, &login);
    if (result.status == PARSE_MORE) {
        c->need = result.need;
        request_clock_start(c);
        return false;
    }
    request_clock_stop(c);
    if (result.status == PARSE_BINARY) {
        c->rules |= RULE_BINARY;
        return true;
    }
    c->spoke = true;
    c->need = c->scanned = 0;
    c->in_pos += result.consumed;
    c->swallow = result.swallow;
    if (result.status == PARSE_CLOSE) {
        client_stop(c);
    }
    if (result.stranger != STRANGER_NONE) {
        stranger_met(c, result.stranger);
    }
    if (result.status == PARSE_OK) {
        bool is_known = try(c, login.user, login.password);
        pending_answer_fixed(c, is_known ? SLICE_LIT("STORED\r\n")
                                         : SLICE_LIT("CLIENT_ERROR authentication failure\r\n"));
        return true;
    }
    metric_inc(&c->worker->metrics, METRIC_client_errors);
    if (result.reply.len > 0) {
        pending_answer_fixed(c, result.reply);
    }
    return true;
}

/* --- by SASL, in the binary protocol --- */

static void answer(struct client *c, enum binary_status status, struct slice text)
{
    struct chain packet;
    chain_init(&packet);
    binary_emit_text(&c->binary, status, text, &packet);
    pending_answer_packets(c, &packet);
    chain_fini(&packet);
}

static void take_sasl(struct client *c, const struct request *r)
{
    struct slice user, password;
    if (c->listener->users == NULL) {
        metric_inc(&c->worker->metrics, METRIC_client_errors);
        answer(c, BINARY_STATUS_UNKNOWN_COMMAND, binary_answer_text(BINARY_STATUS_UNKNOWN_COMMAND));
    } else if (r->binary.opcode == BINARY_SASL_LIST) {
        answer(c, BINARY_STATUS_SUCCESS, SLICE_LIT("PLAIN"));
    } else if (r->binary.opcode == BINARY_SASL_AUTH && slice_equal(r->key, SLICE_LIT("PLAIN")) &&
               binary_read_plain(r->data, &user, &password) && try(c, user, password)) {
        answer(c, BINARY_STATUS_SUCCESS, SLICE_LIT("Authenticated"));
    } else {
        answer(c, BINARY_STATUS_AUTH_ERROR, binary_answer_text(BINARY_STATUS_AUTH_ERROR));
    }
}

bool login_take_binary(struct client *c, const struct request *r)
{
    if (!binary_is_sasl(r->binary.opcode)) {
        return false;
    }
    take_sasl(c, r);
    return true;
}
