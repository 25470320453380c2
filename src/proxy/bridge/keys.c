/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * get, gets, gat, gats with a list among the keys: each key is a part, a call or an exchange.
 */
#include "proxy/bridge/part.h"
#include "proxy/client/binary.h"
#include "proxy/client/deadline.h"
#include "proxy/lists/reply.h"
#include "proxy/plain/forward_part.h"
#include "proxy/plain/multiget.h"

static bool is_list(const struct part *part)
{
    return part->kind == WINDOW_LIST;
}

static void start_key(struct pending *p)
{
    struct slice rest = p->rest, key;
    CHECK(item_next(&rest, &key));
    if (bridge_policy(worker_of(p)->config, key) == NULL) {
        multiget_start_next(p);
        return;
    }
    p->rest = rest;
    p->all_started = p->next + 1 == p->request.arg_count;
    struct call_part *c = call_part_new(p, key);
    call_part_fill(c, &c->call, LIST_GET, key);
    c->call.wants_version = request_wants_cas(&p->request);
    if (p->request.verb->shape == SHAPE_GAT) {
        bridge_add_touch(c, p->request.exptime);
    }
    metric_inc(&worker_of(p)->metrics, METRIC_cmd_list_read);
    call_part_submit(c);
}

static void emit_list(struct call_part *c, struct chain *out)
{
    struct pending *p = c->part.pending;
    struct metrics *m = &worker_of(p)->metrics;
    char line[CALL_PART_LINE_MAX];
    if (bridge_failed(c, line)) {
        pending_note_failure(p, line);
    } else if (c->call.status == LIST_OK) {
        metric_inc(m, METRIC_get_hits);
        bridge_complete(c);
        if (client_is_binary(p->client)) {
            binary_emit_hit(&p->request, bridge_flags(c), c->call.version, c->call.answer.bytes,
                            out);
            chain_move(out, &c->call.answer);
            return;
        }
        list_reply_value(&c->call, bridge_flags(c), request_wants_cas(&p->request), out);
    } else {
        metric_inc(m, METRIC_get_misses);
        if (client_is_binary(p->client)) {
            binary_emit_status(&p->request, BINARY_STATUS_NOT_FOUND, 0, out);
        }
    }
}

static void emit(struct part *part, struct chain *out)
{
    if (is_list(part)) {
        emit_list(call_part_of(part), out);
    } else {
        multiget_emit(part, out);
    }
}

/* Lists are not asked for again: their answers are bounded otherwise (list/core/session.h). */
static const struct handler get_handler = {.kinds = ABOUT_BOTH,
                                           .start = start_key,
                                           .restart = multiget_restart,
                                           .redirect = multiget_redirect,
                                           .emit = emit,
                                           .timeout_text = forward_read_timeout_text};

/* The answer of one may be lost, and the others have new times all the same. */
static const char *gat_timeout_text(const struct pending *p)
{
    (void)p;
    return "deadline over, outcome unknown";
}

static const struct handler gat_handler = {
    .kinds = ABOUT_BOTH, .start = start_key, .emit = emit, .timeout_text = gat_timeout_text};

void bridge_keys(struct client *client, const struct request *r, struct block *block)
{
    bool is_gat = r->verb->shape == SHAPE_GAT;
    struct pending *p = pending_add(client, is_gat ? &gat_handler : &get_handler, r, block);
    pending_count(p, METRIC_cmd_get, r->arg_count);
    p->rest = r->args;
    p->trailer = client_is_binary(client) ? SLICE_NONE : SLICE_LIT("END\r\n");
    deadline_watch(p, true);
}
