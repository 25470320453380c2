/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/login.h"

#include "config/users.h"
#include "proto/client/login_parse.h"
#include "proxy/client/request_clock.h"
#include "proxy/client/stranger.h"
#include "proxy/core/worker.h"

/* Returns the answer. */
static struct slice try(struct client *c, const struct login *login)
{
    struct worker *w = c->worker;
    char peer[CONFIG_NAME_MAX + 16], more[LOG_MORE_MAX];
    metric_inc(&w->metrics, METRIC_auth_cmds);
    if (users_know(c->listener->users, login->user, login->password)) {
        c->rules &= (uint8_t)~RULE_LOGIN;
        return SLICE_LIT("STORED\r\n");
    }
    metric_inc(&w->metrics, METRIC_auth_errors);
    metric_inc(&w->metrics, METRIC_client_errors);
    if (log_limit_pass(&w->login_limit, w->now.wall_s, "logins", more)) {
        log_warn("client %s: its user and password are not in auth_file%s",
                 client_peer(c, peer, sizeof peer), more);
    }
    return SLICE_LIT("CLIENT_ERROR authentication failure\r\n");
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
    c->spoke = result.stranger != STRANGER_BINARY;
    c->need = c->scanned = 0;
    c->in_pos += result.consumed;
    c->swallow = result.swallow;
    if (result.status == PARSE_CLOSE) {
        client_stop(c);
    }
    if (result.stranger != STRANGER_NONE) {
        stranger_met(c, result.stranger, input);
    }
    if (result.status == PARSE_OK) {
        pending_answer_fixed(c, try(c, &login));
        return true;
    }
    metric_inc(&c->worker->metrics, METRIC_client_errors);
    if (result.reply.len > 0) {
        pending_answer_fixed(c, result.reply);
    }
    return true;
}
