/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/list_request.h"

#include <stdlib.h>

#include "proxy/list_reply.h"
#include "proxy/worker.h"

/* Items of a call that need no memory of their own. */
#define FEW_ITEMS 16

/* One call to the engine, and what it points to. */
struct call_part {
    struct part part;
    struct list_call call;
    struct slice *items; /* few, or from malloc */
    struct slice few[FEW_ITEMS];
};

/* How a verb is asked of the engine, and counted. */
struct list_way {
    enum list_verb verb;
    enum metric metric;
    bool is_read; /* answered by END behind what was found */
};

static struct list_way way_of(enum verb verb)
{
    switch (verb) {
    case VERB_LADD:
    case VERB_LADDQ:
    case VERB_LADDB:
        return (struct list_way){LIST_ADD, METRIC_cmd_list_write, false};
    case VERB_LDEL:
    case VERB_LDELQ:
    case VERB_LDELB:
        return (struct list_way){LIST_DEL, METRIC_cmd_list_write, false};
    case VERB_LSET:
    case VERB_LSETQ:
        return (struct list_way){LIST_SET, METRIC_cmd_list_write, false};
    case VERB_LDROP:
        return (struct list_way){LIST_DROP, METRIC_cmd_list_write, false};
    case VERB_LCOMPACT:
        return (struct list_way){LIST_COMPACT, METRIC_cmd_list_write, false};
    case VERB_LADDX:
        return (struct list_way){LIST_ADDX, METRIC_cmd_list_exact, false};
    case VERB_LDELX:
        return (struct list_way){LIST_DELX, METRIC_cmd_list_exact, false};
    case VERB_LCREATE:
        return (struct list_way){LIST_CREATE, METRIC_cmd_list_exact, false};
    case VERB_LLEN:
        return (struct list_way){LIST_LEN, METRIC_cmd_list_read, false};
    case VERB_LHAS:
    case VERB_LHASB:
        return (struct list_way){LIST_HAS, METRIC_cmd_list_read, true};
    case VERB_LRANGE:
        return (struct list_way){LIST_RANGE, METRIC_cmd_list_read, true};
    case VERB_LSTAT:
        return (struct list_way){LIST_STAT, METRIC_cmd_list_read, true};
    default:
        return (struct list_way){LIST_GET, METRIC_cmd_list_read, true};
    }
}

static struct call_part *call_of(struct part *part)
{
    return (struct call_part *)((char *)part - offsetof(struct call_part, part));
}

/* Gathers the request's items; they stay where they lie in its block. */
static void set_items(struct call_part *c, const struct request *r)
{
    c->items = c->few;
    if (r->verb->shape == SHAPE_LIST_DATA) {
        c->few[0] = r->data;
        c->call.item_count = 1;
    } else if (r->verb->shape == SHAPE_LIST) {
        if (r->arg_count > FEW_ITEMS) {
            c->items = malloc(r->arg_count * sizeof *c->items);
            CHECK(c->items != NULL);
        }
        struct slice args = r->args;
        size_t n = 0;
        while (n < r->arg_count && token_next(&args, &c->items[n])) {
            n++;
        }
        c->call.item_count = n;
    }
    c->call.items = c->items;
}

static void start_call(struct pending *p)
{
    struct worker *w = p->client->worker;
    const struct request *r = &p->request;
    struct slice key = r->key;
    p->all_started = true;
    if (r->verb->shape == SHAPE_LIST_KEYS) {
        if (!token_next(&p->rest, &key)) {
            return;
        }
        p->all_started = p->next + 1 == r->arg_count;
    }
    struct list_way way = way_of(r->verb->verb);
    struct call_part *c = spare_take(&w->spare_calls, sizeof *c);
    /* Field by field: the rest is large, and the engine's to fill. */
    struct list_call *call = &c->call;
    call->verb = way.verb;
    call->form = r->verb->verb == VERB_LGETB ? LIST_FORM_ITEMS : LIST_FORM_JOINED;
    call->key = key;
    call->policy = config_list_policy(w->config, key);
    call->session = &p->client->session;
    call->item_count = 0;
    call->from = r->from;
    call->to = r->to;
    call->owner = c;
    chain_init(&c->call.answer);
    set_items(c, r);
    part_add(p, &c->part, key, WINDOW_SHORT);
    w->engine_dirty = true;
    engine_submit(w->engine, &c->call, w->now);
}

static void park_call(struct part *part)
{
    /* Everything a call holds is its own already. */
    (void)part;
}

static void emit_call(struct part *part, struct chain *out)
{
    struct call_part *c = call_of(part);
    struct pending *p = part->pending;
    struct metrics *m = &p->client->worker->metrics;
    enum verb verb = p->request.verb->verb;
    char line[LIST_ERROR_MAX + 16];
    if (list_reply_failure(&c->call, line, sizeof line)) {
        metric_inc(m, line[0] == 'C' ? METRIC_client_errors : METRIC_server_errors);
        pending_fail(p, line);
        return;
    }
    bool quiet = verb == VERB_LADDQ || verb == VERB_LDELQ || verb == VERB_LSETQ;
    if (!p->request.noreply) {
        list_reply(verb, quiet, &c->call, out);
    }
}

static void free_call(struct part *part)
{
    struct call_part *c = call_of(part);
    chain_fini(&c->call.answer);
    if (c->items != c->few) {
        free(c->items);
    }
    spare_give(&part->pending->client->worker->spare_calls, c);
}

static const struct handler list_handler = {
    .start = start_call, .park = park_call, .emit = emit_call, .free = free_call};

void list_request_start(struct client *client, const struct request *r, struct block *block)
{
    struct list_way way = way_of(r->verb->verb);
    struct pending *p = pending_add(client, &list_handler, r, block);
    uint64_t lists = 1;
    if (r->verb->shape == SHAPE_LIST_KEYS) {
        p->rest = r->args;
        lists = r->arg_count;
    }
    if (way.is_read) {
        p->trailer = SLICE_LIT("END\r\n");
    }
    metric_add(&client->worker->metrics, way.metric, lists);
}

const struct list_call *list_request_call(const struct part *part)
{
    if (part->pending->handler != &list_handler) {
        return NULL;
    }
    const char *start = (const char *)part - offsetof(struct call_part, part);
    return &((const struct call_part *)start)->call;
}

void list_request_done(struct list_call *call)
{
    struct call_part *c = call->owner;
    part_answered(&c->part, call->answer.bytes);
}

void list_request_fini(struct worker *w)
{
    spare_fini(&w->spare_calls);
}
