/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/request.h"

#include <stdlib.h>

#include "base/memory.h"
#include "proxy/client/pressure.h"
#include "proxy/lists/reply.h"
#include "proxy/worker.h"

/* Items of a call that need no memory of their own. */
#define FEW_ITEMS 16
/* Of longer lines the items, an array of several times their length, are counted beforehand. */
#define LONG_LINE_BYTES ((size_t)65536)

/* One call to the engine, and what it points to. */
struct call_part {
    struct part part;
    struct list_call call;
    struct slice *items; /* few, or from malloc */
    size_t items_bytes;  /* of those from malloc */
    struct slice few[FEW_ITEMS];
};

/* The engine's verb for a client's word. */
static const enum list_verb verbs[VERB_COUNT] = {
#define LIST_VERB(id, kind, traits)
#define LIST_WORD(id, word, takes, answer) [VERB_##word] = LIST_##id,
    LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
};

static enum proxy_metric metric_of(enum list_verb verb)
{
    switch (list_verb_kind(verb)) {
    case LIST_KIND_READ:
        return METRIC_cmd_list_read;
    case LIST_KIND_EXACT:
        return METRIC_cmd_list_exact;
    default:
        return METRIC_cmd_list_write;
    }
}

static struct call_part *call_of(struct part *part)
{
    return (struct call_part *)((char *)part - offsetof(struct call_part, part));
}

static RARE size_t count_items(const struct request *r)
{
    size_t count = 0;
    struct slice args = r->args, item;
    while (item_next(&args, &item)) {
        count++;
    }
    return count;
}

/* Makes room for as many items again as there are. */
static RARE void grow_items(struct call_part *c, size_t count)
{
    struct slice *grown = realloc(c->items == c->few ? NULL : c->items, 2 * count * sizeof *grown);
    CHECK(grown != NULL);
    if (c->items == c->few) {
        memcpy(grown, c->few, sizeof c->few);
    }
    c->items = grown;
}

/* At once as large as is needed: growing by and by would leave large gaps in memory. Returns the
 * room. */
static RARE size_t make_array(struct call_part *c, size_t count)
{
    if (count <= FEW_ITEMS) {
        return FEW_ITEMS;
    }
    c->items = malloc(count * sizeof *c->items);
    CHECK(c->items != NULL);
    return count;
}

/* An array that grew is cut to what it holds, and counted: for short items it takes several times
 * as much as their line. */
static RARE void own_items(struct call_part *c, size_t count)
{
    c->items_bytes = count * sizeof *c->items;
    c->items = realloc(c->items, c->items_bytes);
    CHECK(c->items != NULL);
    memory_take(c->items_bytes);
    pending_weigh(c->part.pending, c->items_bytes);
}

/* Gathers the request's items; they stay where they lie in its block. */
static void set_items(struct call_part *c, const struct request *r)
{
    size_t count = 0, room = FEW_ITEMS;
    c->items = c->few;
    if (r->verb->shape == SHAPE_LIST_DATA) {
        c->few[count++] = r->data;
    } else if (shape_has_items(r->verb->shape)) {
        struct slice args = r->args, item;
        if (UNLIKELY(r->line.len > LONG_LINE_BYTES)) {
            room = make_array(c, count_items(r));
        }
        while (item_next(&args, &item)) {
            if (count == room) {
                grow_items(c, count);
                room *= 2;
            }
            c->items[count++] = item;
        }
    }
    if (c->items != c->few) {
        own_items(c, count);
    }
    c->call.items = c->items;
    c->call.item_count = count;
}

static void start_call(struct pending *p)
{
    struct worker *w = p->client->worker;
    const struct request *r = &p->request;
    struct slice key = r->key;
    p->all_started = true;
    if (r->verb->shape == SHAPE_LIST_KEYS) {
        if (!item_next(&p->rest, &key)) {
            return;
        }
        p->all_started = p->next + 1 == r->arg_count;
    }
    struct call_part *c = spare_take(&w->spare_calls);
    /* Field by field: the rest is large, and the engine's to fill. */
    struct list_call *call = &c->call;
    call->verb = verbs[r->verb->verb];
    call->form = list_reply_form(r->verb->verb);
    call->key = key;
    call->policy = config_list_policy(w->config, key);
    call->session = &p->client->session;
    call->from = r->from;
    call->to = r->to;
    call->condition = LIST_ALWAYS;
    call->expected = 0;
    call->has_exptime = false;
    call->exptime = 0;
    bool is_long = list_verb_has(call->verb, LIST_LONG);
    uint32_t ms = is_long ? w->config->long_timeout_ms : w->config->deadline_ms;
    call->deadline_us = pending_since_us(p) + (uint64_t)ms * 1000;
    call->owner = c;
    part_add(p, &c->part, key, WINDOW_SHORT);
    set_items(c, r);
    w->engine_dirty = true;
    engine_submit(w->engine, &c->call, w->now);
}

static void park_call(struct part *part)
{
    /* Everything a call holds is its own already. */
    (void)part;
}

static RARE void fail_call(struct pending *p, const struct list_call *call)
{
    struct metrics *m = &p->client->worker->metrics;
    char line[LIST_ERROR_MAX + 16];
    list_reply_failure(call, line, sizeof line);
    metric_inc(m, line[0] == 'C' ? METRIC_client_errors : METRIC_server_errors);
    pending_fail(p, line);
}

static void emit_call(struct part *part, struct chain *out)
{
    struct call_part *c = call_of(part);
    struct pending *p = part->pending;
    if (list_reply_failed(&c->call)) {
        fail_call(p, &c->call);
    } else if (!p->request.noreply) {
        list_reply(p->request.verb->verb, &c->call, out);
    }
}

static void free_call(struct part *part)
{
    struct call_part *c = call_of(part);
    struct spare_list *spare = &part->pending->client->worker->spare_calls;
    if (spare_has_room(spare)) {
        chain_clear(&c->call.answer); /* an empty chain for the next call */
    } else {
        chain_fini(&c->call.answer);
    }
    if (c->items != c->few) {
        memory_give(c->items_bytes);
        free(c->items);
    }
    spare_give(spare, c);
}

static const struct handler list_handler = {
    .start = start_call, .park = park_call, .emit = emit_call, .free = free_call};

/* Is there memory for the array of the line's items? */
static RARE bool items_have_room(struct worker *w, const struct request *r)
{
    return pressure_has_room(w, count_items(r) * sizeof(struct slice));
}

void list_request_start(struct client *client, const struct request *r, struct block *block)
{
    if (UNLIKELY(r->line.len > LONG_LINE_BYTES) && shape_has_items(r->verb->shape) &&
        !items_have_room(client->worker, r)) {
        metric_inc(&client->worker->metrics, METRIC_server_errors);
        pending_answer_fixed(client, SLICE_LIT("SERVER_ERROR out of memory: memory_limit_bytes "
                                               "is reached, nothing done\r\n"));
        return;
    }
    struct pending *p = pending_add(client, &list_handler, r, block);
    uint64_t lists = 1;
    if (r->verb->shape == SHAPE_LIST_KEYS) {
        p->rest = r->args;
        lists = r->arg_count;
    }
    p->trailer = list_reply_trailer(r->verb->verb);
    metric_add(&client->worker->metrics, metric_of(verbs[r->verb->verb]), lists);
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

void list_request_init(struct worker *w, size_t spare_bytes)
{
    spare_init(&w->spare_calls, sizeof(struct call_part), spare_bytes);
}

void list_request_fini(struct worker *w)
{
    while (w->spare_calls.first != NULL) {
        struct call_part *c = spare_take(&w->spare_calls);
        chain_fini(&c->call.answer);
        spare_free(&w->spare_calls, c);
    }
}
