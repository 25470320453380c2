/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/bridge/part.h"

#include <stdarg.h>
#include <stdio.h>

#include "list/core/expiry.h"
#include "proxy/lists/reply.h"
#include "proxy/plain/protect.h"

const struct list_policy *bridge_policy(const struct config *config, struct slice key)
{
    const struct list_policy *policy = config_prefix_policy(config, key);
    return policy->bridge == BRIDGE_NO || protect_is_item(config, key) ? NULL : policy;
}

void bridge_refuse(struct client *client, const struct request *r, const char *format, ...)
{
    char line[CONFIG_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    metric_inc(&client->worker->metrics, METRIC_refused_bridge);
    pending_refuse(client, r->noreply, line);
}

/* A touch changes the version, so the one that is answered is that behind it; but a list that it
 * lets expire is shown once more, as memcached does it. */
void bridge_add_touch(struct call_part *c, int64_t exptime)
{
    int64_t now_s = c->part.pending->client->worker->now.wall_s;
    bool ends = exptime < 0 || (exptime > EXPTIME_RELATIVE_MAX_S && exptime <= now_s);
    struct call_more *more = call_part_more(c);
    call_part_fill(c, &more->second, LIST_TOUCH, c->call.key);
    more->second.has_exptime = true;
    more->second.exptime = exptime;
    more->second_is_first = !ends;
    c->left = 2;
}

bool bridge_failed(struct call_part *c, char line[CALL_PART_LINE_MAX])
{
    char own[48], text[CALL_PART_LINE_MAX];
    const struct pending *p = c->part.pending;
    const struct list_call *call = &c->call;
    if (!list_reply_failed(call)) {
        if (c->more == NULL || c->more->second.owner == NULL ||
            !list_reply_failed(&c->more->second)) {
            return false;
        }
        call = &c->more->second;
    }
    call_part_failure(p->client->worker, call, line);
    /* The engine calls it by the list's verb; the client knows its own. */
    const char *who = call->status == LIST_CLIENT_ERROR ? "CLIENT" : "SERVER";
    int len = snprintf(own, sizeof own, "%s_ERROR %s: ", who, list_verb_word(call->verb));
    if (strncmp(line, own, (size_t)len) == 0) {
        snprintf(text, sizeof text, "%s_ERROR %.*s: %s", who, SLICE_ARGS(p->request.verb->text),
                 line + len);
        memcpy(line, text, sizeof text);
    }
    return true;
}
