/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lists/call_part.h"

#include <stdlib.h>

#include "base/block.h"
#include "base/memory.h"
#include "list/change/capped.h"
#include "proto/client/list_format.h"
#include "proxy/client/pressure.h"
#include "proxy/core/gate.h"
#include "proxy/lists/reply.h"

enum proxy_metric call_part_metric(enum list_verb verb)
{
    if (list_verb_reads(verb)) {
        return METRIC_cmd_list_read;
    }
    enum list_kind kind = list_verb_kind(verb);
    return kind == LIST_KIND_EXACT ? METRIC_cmd_list_exact
           : kind == LIST_KIND_TX  ? METRIC_cmd_list_tx
                                   : METRIC_cmd_list_write;
}

static void park_part(struct part *part)
{
    /* Everything a call holds is its own already. */
    (void)part;
}

static RARE void free_more(struct call_part *c)
{
    chain_fini(&c->more->second.answer);
    for (size_t i = 0; i < c->more->list_count; i++) {
        chain_fini(&c->more->lists[i].answer);
    }
    memory_give(c->more->lists_bytes);
    free(c->more->lists);
    memory_give(c->more->changes_bytes);
    free(c->more->changes);
    free(c->more->ops);
    free(c->more);
}

static void free_part(struct part *part)
{
    struct call_part *c = call_part_of(part);
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
    if (UNLIKELY(c->more != NULL)) {
        free_more(c);
    }
    spare_give(spare, c);
}

static const struct part_type type = {.park = park_part, .free = free_part};

struct call_part *call_part_new(struct pending *p, struct slice key)
{
    struct call_part *c = spare_take(&p->client->worker->spare_calls);
    c->items = c->few;
    c->more = NULL;
    c->left = 1;
    part_add(p, &c->part, &type, sizeof *c, key, WINDOW_LIST);
    return c;
}

struct call_more *call_part_more(struct call_part *c)
{
    if (c->more == NULL) {
        c->more = calloc(1, sizeof *c->more);
        CHECK(c->more != NULL);
        chain_init(&c->more->second.answer);
    }
    return c->more;
}

void call_part_fill(struct call_part *c, struct list_call *call, enum list_verb verb,
                    struct slice key)
{
    struct pending *p = c->part.pending;
    const struct config *config = p->client->worker->config;
    /* Field by field: the rest is large, and the engine's to fill. */
    call->verb = verb;
    call->form = LIST_FORM_JOINED;
    call->key = key;
    call->policy = config_list_policy(config, key);
    call->session = &p->client->session;
    call->items = NULL;
    call->item_count = 0;
    call->ops = NULL;
    call->from = 0;
    call->to = 0;
    call->count = 0;
    call->wants_version = false;
    call->lists = NULL;
    call->list_count = 0;
    call->source = SLICE_NONE;
    call->source_policy = NULL;
    call->condition = LIST_ALWAYS;
    call->expected = 0;
    call->has_exptime = false;
    call->exptime = 0;
    uint32_t ms = list_verb_has(verb, LIST_LONG) ? config->long_timeout_ms : config->deadline_ms;
    call->deadline_us = pending_since_us(p) + (uint64_t)ms * 1000;
    call->owner = c;
}

void call_part_reserve(struct call_part *c, size_t count)
{
    if (count > FEW_ITEMS) {
        c->items = malloc(count * sizeof *c->items);
        CHECK(c->items != NULL);
    }
}

void call_part_set_items(struct call_part *c, size_t count)
{
    if (c->items != c->few) {
        /* An array that grew is cut to what it holds, and counted: for short items it takes several
         * times as much as their line. */
        c->items_bytes = count * sizeof *c->items;
        c->items = realloc(c->items, c->items_bytes);
        CHECK(c->items != NULL);
        memory_take(c->items_bytes);
        pending_weigh(c->part.pending, c->items_bytes);
    }
    c->call.items = c->items;
    c->call.item_count = count;
}

/* Zeroed memory that is the call's alone, and is charged to its client. */
static void *add_memory(struct call_part *c, size_t bytes)
{
    void *memory = calloc(1, bytes);
    CHECK(memory != NULL);
    memory_take(bytes);
    pending_weigh(c->part.pending, bytes);
    return memory;
}

struct call_list *call_part_add_lists(struct call_part *c, const struct slice *keys, size_t count)
{
    const struct config *config = c->part.pending->client->worker->config;
    struct call_more *more = call_part_more(c);
    more->lists_bytes = count * sizeof *more->lists;
    more->lists = add_memory(c, more->lists_bytes);
    for (size_t i = 0; i < count; i++) {
        more->lists[i].key = keys[i];
        more->lists[i].policy = config_list_policy(config, keys[i]);
        chain_init(&more->lists[i].answer);
    }
    more->list_count = c->call.list_count = count;
    c->call.lists = more->lists;
    return more->lists;
}

struct tx_change *call_part_add_changes(struct call_part *c, size_t count)
{
    struct call_more *more = call_part_more(c);
    more->changes_bytes = count * sizeof *more->changes;
    more->changes = add_memory(c, more->changes_bytes);
    return more->changes;
}

static RARE void submit_both(struct worker *w, struct call_part *c)
{
    bool swapped = c->more->second_is_first;
    engine_submit(w->engine, swapped ? &c->more->second : &c->call, w->now);
    engine_submit(w->engine, swapped ? &c->call : &c->more->second, w->now);
}

/* Whole contents of a list with a cap. */
static RARE void take_items_once(struct call_part *c)
{
    enum list_verb verb = c->call.verb;
    if (verb == LIST_SET || verb == LIST_CREATE || verb == LIST_PUT) {
        bool recent = c->call.policy->order == ORDER_RECENT;
        c->call.item_count = capped_once(c->items, c->call.item_count, recent);
    }
}

/* Other proxies keep one of its lists elsewhere, or in another way: the call ends there. */
static RARE bool is_refused(struct worker *w, struct call_part *c)
{
    char text[GATE_REFUSAL_MAX];
    struct list_call *call = &c->call;
    bool refused = gate_refuses(w, call->key, text) ||
                   (call->source_policy != NULL && gate_refuses(w, call->source, text));
    for (size_t i = 0; !refused && i < call->list_count; i++) {
        refused = gate_refuses(w, call->lists[i].key, text);
    }
    if (!refused) {
        return false;
    }
    metric_inc(&w->metrics, METRIC_gate_refused);
    engine_refuse(w->engine, call, text, w->now);
    if (c->left > 1) {
        engine_refuse(w->engine, &c->more->second, text, w->now);
    }
    return true;
}

void call_part_submit(struct call_part *c)
{
    struct worker *w = c->part.pending->client->worker;
    w->engine_dirty = true;
    if (UNLIKELY(gate_must_ask(w, c->call.policy->pool_index)) && is_refused(w, c)) {
        return;
    }
    if (UNLIKELY(c->call.policy->max_items != 0)) {
        take_items_once(c);
    }
    if (UNLIKELY(c->left > 1)) {
        submit_both(w, c);
    } else {
        engine_submit(w->engine, &c->call, w->now);
    }
}

RARE bool call_part_has_room(struct worker *w, size_t items, size_t changes)
{
    size_t bytes = items * sizeof(struct slice) + changes * sizeof(struct tx_change);
    return bytes <= BLOCK_BYTES || pressure_has_room(w, bytes);
}

void call_part_failure(struct worker *w, const struct list_call *call,
                       char line[CALL_PART_LINE_MAX])
{
    list_reply_failure(call, line, CALL_PART_LINE_MAX);
    metric_inc(&w->metrics, line[0] == 'C' ? METRIC_client_errors : METRIC_server_errors);
    if (line[0] == 'C') {
        metric_inc(&w->metrics, METRIC_refused_list_call);
    }
}

void call_part_done(struct list_call *call)
{
    struct call_part *c = call->owner;
    if (--c->left == 0) {
        size_t bytes = c->call.answer.bytes;
        for (size_t i = 0; i < c->call.list_count; i++) {
            bytes += c->call.lists[i].answer.bytes;
        }
        part_answered(&c->part, bytes);
    }
}

void call_part_init(struct worker *w, size_t spare_bytes)
{
    spare_init(&w->spare_calls, sizeof(struct call_part), spare_bytes);
}

void call_part_fini(struct worker *w)
{
    while (w->spare_calls.first != NULL) {
        struct call_part *c = spare_take(&w->spare_calls);
        chain_fini(&c->call.answer);
        spare_free(&w->spare_calls, c);
    }
}
