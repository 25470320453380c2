/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/next.h"

#include <stdlib.h>

#include "base/memory.h"
#include "pool/pool.h"
#include "proto/client/request_shape.h"
#include "proxy/core/gate.h"
#include "proxy/core/shared.h"
#include "proxy/plain/carry.h"
#include "proxy/plain/protect.h"
#include "proxy/plain/route.h"

/* How often a change waits for another client that carries the key. */
#define TRIES 20
#define UNKNOWN_TEXT "the key moves, and one of its two servers could not be told: outcome unknown"
#define BUSY_TEXT "the key is being moved to another server, nothing done: try again"

enum kind { READ, SET, DELETE, ADD, CHANGE };

struct relay;
typedef void then_fn(struct relay *r, const struct be_reply *reply);

struct relay {
    struct forward_part *f;
    struct worker *worker;
    struct pool *old, *new;
    uint32_t pool_index;
    uint64_t since_us; /* when it began */
    enum kind kind;
    bool is_line;   /* the request is passed on as one */
    bool odd_key;   /* it has bytes that no line can hold */
    bool names_cas; /* the change is done only to the item with that CAS number */
    bool of_new;    /* which is the new server's */
    unsigned tries;
    struct be_operation op; /* of the client */
    then_fn *then;
    struct be_reply held;            /* the client's answer, while the rest is done */
    uint64_t lease_cas, lease_epoch; /* or of what was added in its place */
    size_t key_len;
    char key[KEY_BYTES_MAX];
};

/* --- which keys ----------------------------------------------------------------------------- */

bool next_changes_server(const struct worker *w, const struct route_config *route, struct slice key)
{
    struct pool_place here, there;
    const struct pool_config *pool = &w->config->pools[route->pool_index];
    return !protect_is_item(w->config, key) && !slice_starts_with(key, SLICE_LIT("mclistd#")) &&
           pool_find(w->pools[route->pool_index], key, &here) &&
           pool_find(w->pools[pool->next_index], key, &there) &&
           strcmp(here.server, there.server) != 0;
}

bool next_changes_server_of(const struct worker *w, const struct request *r)
{
    char decoded[KEY_BYTES_MAX];
    struct slice key = route_key(r, decoded);
    return next_has(w, config_route(w->config, key), key);
}

void next_take_turn(struct pending *p)
{
    const struct request *r = &p->request;
    struct slice keys = r->args, key;
    bool waits = false;
    if (!worker_of(p)->config->has_moves || !request_changes(r)) {
        return;
    }
    if (r->verb->shape == SHAPE_GAT && !client_is_binary(p->client)) {
        while (!waits && item_next(&keys, &key)) {
            waits = next_has(worker_of(p), config_route(worker_of(p)->config, key), key);
        }
    } else {
        waits = next_has_request(worker_of(p), r);
    }
    p->turn = waits ? TURN_ALONE : p->turn;
}

/* --- one request after the other ------------------------------------------------------------ */

static struct slice key_of(const struct relay *r)
{
    return slice_make(r->key, r->key_len);
}

static bool failed(const struct be_reply *reply)
{
    return reply->status >= BE_NO_MEMORY;
}

/* The part has its answer, which is none if the others may have taken two steps meanwhile. */
static void finish(struct relay *r, const struct be_reply *reply)
{
    struct forward_part *f = r->f;
    struct be_reply last = *reply;
    struct block *held = r->held.block;
    if (UNLIKELY(!gate_trusts(r->worker, r->pool_index, r->since_us)) && !failed(reply)) {
        metric_add(&r->worker->metrics, METRIC_outcomes_unknown, r->kind != READ);
        last = (struct be_reply){.status = BE_LOST, .text = GATE_DISTRUST_TEXT};
    }
    f->exchange.op = r->op;
    memory_give(sizeof *r);
    free(r);
    forward_part_reply(f, &f->exchange, &last);
    block_unref(&held);
}

/* With an answer of the new server. */
static void finish_of_new(struct relay *r, const struct be_reply *reply)
{
    r->f->failed_over = true;
    finish(r, reply);
}

static void finish_as(struct relay *r, enum be_status status)
{
    finish(r, &(struct be_reply){.status = status});
}

static void finish_unknown(struct relay *r, const struct be_reply *reply)
{
    metric_add(&r->worker->metrics, METRIC_outcomes_unknown, reply->status != BE_LOST);
    finish(r, &(struct be_reply){.status = BE_LOST, .text = UNKNOWN_TEXT});
}

/* The answer goes out when the rest is done. */
static void hold(struct relay *r, const struct be_reply *reply)
{
    block_unref(&r->held.block);
    r->held = *reply;
    r->held.distrust = NULL;
    if (reply->block != NULL) {
        block_ref(reply->block);
    }
}

static void on_reply(struct exchange *x, const struct be_reply *reply)
{
    struct relay *r = x->owner;
    if (r->f->part.pending == NULL || r->worker->ending) {
        finish(r, reply); /* its request has ended, or the other pool has gone */
    } else {
        r->then(r, reply);
    }
}

static void submit(struct relay *r, struct pool *pool, then_fn *then)
{
    struct exchange *x = &r->f->exchange;
    r->then = then;
    x->done = on_reply;
    x->owner = r;
    pool_submit(pool, key_of(r), x);
}

/* Asks what the client asks. */
static void ask_client(struct relay *r, struct pool *pool, then_fn *then)
{
    struct exchange *x = &r->f->exchange;
    if (r->is_line) {
        r->f->part.pending->handler->redirect(&r->f->part);
        r->op = x->op;
    } else {
        *x = (struct exchange){.op = r->op};
    }
    submit(r, pool, then);
}

/* Asks something of the proxy's own. */
static void ask(struct relay *r, struct pool *pool, enum be_verb verb, then_fn *then)
{
    r->f->exchange = (struct exchange){
        .op = {.verb = verb, .key = key_of(r), .odd_key = r->odd_key, .asks_cas = r->odd_key}};
    submit(r, pool, then);
}

static bool is_gone(const struct be_reply *reply)
{
    return reply->status == BE_DELETED || reply->status == BE_NOT_FOUND;
}

/* Of a line, flag f says so, which is always asked for. */
static bool is_lease(const struct be_reply *reply)
{
    struct slice line = reply->line, word;
    uint64_t flags = reply->flags;
    if (reply->status == BE_ANSWERED) {
        while (token_next(&line, &word)) {
            if (word.p[0] == 'f') {
                (void)slice_to_u64(slice_make(word.p + 1, word.len - 1), &flags);
            }
        }
    }
    return flags == CARRY_LEASE_FLAGS;
}

static bool is_hit(const struct relay *r, const struct be_reply *reply)
{
    if (!r->is_line) {
        return reply->status == BE_HIT;
    }
    return reply->status == BE_ANSWERED &&
           (reply->has_value || slice_starts_with(reply->line, SLICE_LIT("HD")) ||
            slice_starts_with(reply->line, SLICE_LIT("ME")));
}

static bool is_missing(const struct relay *r, const struct be_reply *reply)
{
    return r->is_line
               ? reply->status == BE_ANSWERED && slice_starts_with(reply->line, SLICE_LIT("EN"))
               : reply->status == BE_MISS || reply->status == BE_NOT_FOUND ||
                     reply->status == BE_NOT_STORED;
}

/* Does it make a value where none is? */
static bool creates(const struct relay *r)
{
    bool makes = (r->f->part.pending->request.meta_flags & letter_bit('N')) != 0;
    return r->is_line ? makes : r->op.creates;
}

static bool has_changed(const struct relay *r, const struct be_reply *reply)
{
    return is_hit(r, reply) || reply->status == BE_STORED || reply->status == BE_DELETED;
}

/* --- a delete: the old one first, so that nothing is carried that is older ------------------- */

static void on_deleted_both(struct relay *r, const struct be_reply *reply)
{
    if (r->held.status != BE_DELETED) {
        finish(r, reply);
    } else if (failed(reply)) {
        finish_unknown(r, reply);
    } else {
        finish(r, &r->held);
    }
}

static void on_deleted_old(struct relay *r, const struct be_reply *reply)
{
    if (failed(reply)) {
        finish(r, reply);
        return;
    }
    hold(r, reply);
    ask_client(r, r->new, on_deleted_both);
}

/* --- an add: in LEARN on the old one, under a lease on the new one; in MOVE on the new one ---- */

/* Or takes back what was added there. */
static void free_lease(struct relay *r, then_fn *then)
{
    struct exchange *x = &r->f->exchange;
    *x = (struct exchange){.op = {.verb = BE_CAS_DELETE,
                                  .key = key_of(r),
                                  .odd_key = r->odd_key,
                                  .asks_cas = r->odd_key,
                                  .cas = r->lease_cas,
                                  .epoch = r->lease_epoch}};
    submit(r, r->new, then);
}

/* If what was added is gone again. */
static void on_not_added(struct relay *r, const struct be_reply *reply)
{
    if (failed(reply)) {
        finish_unknown(r, reply);
    } else {
        finish_as(r, BE_NOT_STORED);
    }
}

/* Without its lease the addition does not count: another one may. */
static void on_freed_after(struct relay *r, const struct be_reply *reply)
{
    if (reply->status == BE_STORED || r->held.status != BE_STORED) {
        finish(r, &r->held);
    } else {
        ask(r, r->old, BE_DELETE, on_not_added);
    }
}

static void on_added_old(struct relay *r, const struct be_reply *reply)
{
    if (failed(reply)) {
        finish(r, reply);
        return;
    }
    hold(r, reply);
    free_lease(r, on_freed_after);
}

static void on_leased(struct relay *r, const struct be_reply *reply)
{
    if (reply->status != BE_STORED) {
        finish(r, reply);
        return;
    }
    r->lease_cas = reply->cas;
    r->lease_epoch = reply->epoch;
    ask_client(r, r->old, on_added_old);
}

static void learn_add(struct relay *r)
{
    r->f->exchange = (struct exchange){.needs_cas = false};
    carry_fill_lease(&r->f->exchange, key_of(r), r->odd_key);
    submit(r, r->new, on_leased);
}

/* A proxy in LEARN has added it on the old one meanwhile. */
static void on_looked_behind_add(struct relay *r, const struct be_reply *reply)
{
    if (reply->status == BE_MISS) {
        finish_of_new(r, &r->held);
    } else if (reply->status == BE_HIT) {
        free_lease(r, on_not_added);
    } else {
        finish_unknown(r, reply);
    }
}

static void on_added_new(struct relay *r, const struct be_reply *reply)
{
    if (reply->status != BE_STORED) {
        finish(r, reply);
        return;
    }
    r->lease_cas = reply->cas;
    r->lease_epoch = reply->epoch;
    hold(r, reply);
    ask(r, r->old, BE_FETCH, on_looked_behind_add);
}

static void on_looked_before_add(struct relay *r, const struct be_reply *reply)
{
    if (reply->status == BE_HIT) {
        finish_as(r, BE_NOT_STORED);
    } else if (reply->status != BE_MISS) {
        finish(r, reply);
    } else {
        r->op.asks_cas = true;
        r->op.cas_optional = false;
        ask_client(r, r->new, on_added_new);
    }
}

/* --- in step LEARN --------------------------------------------------------------------------- */

static void on_other_cleared(struct relay *r, const struct be_reply *reply)
{
    if (is_gone(reply)) {
        finish(r, &r->held);
    } else {
        finish_unknown(r, reply);
    }
}

/* What is refused for its size or for want of memory is gone as well, of a set. */
static void on_changed_old(struct relay *r, const struct be_reply *reply)
{
    bool removed =
        r->kind == SET && (reply->status == BE_TOO_LARGE || reply->status == BE_NO_MEMORY);
    if (has_changed(r, reply) || removed) {
        hold(r, reply);
        r->held.text = NULL;
        ask(r, r->new, BE_DELETE, on_other_cleared);
    } else {
        finish(r, reply);
    }
}

static void on_looked_at_new(struct relay *r, const struct be_reply *reply)
{
    if (reply->status == BE_HIT && !is_lease(reply)) {
        if (r->names_cas) {
            finish_as(r, BE_EXISTS);
        } else {
            ask_client(r, r->new, finish_of_new);
        }
    } else if (creates(r)) {
        ask_client(r, r->old, on_changed_old);
    } else {
        finish(r, &r->held);
    }
}

static void on_asked_old_to_change(struct relay *r, const struct be_reply *reply)
{
    if (is_missing(r, reply)) {
        hold(r, reply);
        ask(r, r->new, BE_FETCH, on_looked_at_new);
    } else {
        on_changed_old(r, reply);
    }
}

static void on_old_for_number_of_new(struct relay *r, const struct be_reply *reply)
{
    if (reply->status == BE_MISS) {
        ask_client(r, r->new, finish_of_new);
    } else if (reply->status == BE_HIT) {
        finish_as(r, BE_EXISTS);
    } else {
        finish(r, reply);
    }
}

/* Nothing is made there before it is known that the new one has none. */
static void on_looked_at_old(struct relay *r, const struct be_reply *reply)
{
    if (reply->status == BE_MISS) {
        ask(r, r->new, BE_FETCH, on_looked_at_new);
    } else if (reply->status == BE_HIT) {
        ask_client(r, r->old, on_changed_old);
    } else {
        finish(r, reply);
    }
}

static void learn_change(struct relay *r)
{
    if (r->of_new) {
        ask(r, r->old, BE_FETCH, on_old_for_number_of_new);
    } else if (creates(r)) {
        ask(r, r->old, BE_FETCH, on_looked_at_old);
    } else {
        ask_client(r, r->old, on_asked_old_to_change);
    }
}

static void on_read_new_last(struct relay *r, const struct be_reply *reply)
{
    if (is_hit(r, reply) && !is_lease(reply)) {
        finish_of_new(r, reply);
    } else {
        finish(r, &r->held);
    }
}

static void on_read_old_first(struct relay *r, const struct be_reply *reply)
{
    if (is_missing(r, reply)) {
        hold(r, reply);
        ask_client(r, r->new, on_read_new_last);
    } else {
        finish(r, reply);
    }
}

static void learn(struct relay *r)
{
    switch (r->kind) {
    case READ:
        ask_client(r, r->old, on_read_old_first);
        return;
    case SET:
        ask_client(r, r->old, on_changed_old);
        return;
    case DELETE:
        ask_client(r, r->old, on_deleted_old);
        return;
    case ADD:
        learn_add(r);
        return;
    default:
        learn_change(r);
    }
}

/* --- in step MOVE ---------------------------------------------------------------------------- */

static void on_read_old_last(struct relay *r, const struct be_reply *reply)
{
    if (is_hit(r, reply)) {
        metric_inc(&r->worker->metrics, METRIC_plain_old_hits);
        carry_start(r->worker, r->pool_index, key_of(r), r->odd_key, false, NULL, NULL);
    }
    finish(r, reply);
}

static void on_read_new_first(struct relay *r, const struct be_reply *reply)
{
    if (is_hit(r, reply) && !is_lease(reply)) {
        finish_of_new(r, reply);
    } else if (is_missing(r, reply) || is_hit(r, reply)) {
        ask_client(r, r->old, on_read_old_last);
    } else {
        finish(r, reply);
    }
}

static void on_old_cleared_last(struct relay *r, const struct be_reply *reply)
{
    if (is_gone(reply)) {
        finish_of_new(r, &r->held);
    } else {
        finish_unknown(r, reply);
    }
}

static void on_changed_new(struct relay *r, const struct be_reply *reply)
{
    if (has_changed(r, reply)) {
        hold(r, reply);
        ask(r, r->old, BE_DELETE, on_old_cleared_last);
    } else if (reply->status == BE_DOWN && r->held.status == BE_DELETED) {
        finish_unknown(r, reply); /* the old value has gone */
    } else {
        finish_of_new(r, reply);
    }
}

static void on_old_cleared_first(struct relay *r, const struct be_reply *reply)
{
    if (is_gone(reply)) {
        hold(r, reply);
        ask_client(r, r->new, on_changed_new);
    } else {
        finish(r, reply);
    }
}

static void carry_first(struct relay *r);

static void try_again(struct relay *r)
{
    if (r->tries++ < TRIES) {
        carry_first(r);
        return;
    }
    metric_inc(&r->worker->metrics, METRIC_plain_moves_busy);
    finish(r, &(struct be_reply){.status = BE_DOWN, .text = BUSY_TEXT});
}

static void on_looked_before_change(struct relay *r, const struct be_reply *reply)
{
    if (failed(reply) || reply->status == BE_ANSWERED) {
        finish(r, reply);
    } else if (is_lease(reply) && reply->status == BE_HIT) {
        try_again(r);
    } else if (r->names_cas && !r->of_new) {
        finish_as(r, reply->status == BE_HIT ? BE_EXISTS : BE_NOT_FOUND);
    } else {
        ask_client(r, r->new, creates(r) ? on_changed_new : finish_of_new);
    }
}

static void on_carried(void *arg, enum carry_end end, const struct be_reply *reply)
{
    struct relay *r = arg;
    if (r->f->part.pending == NULL || end == CARRY_FAILED) {
        finish(r, reply);
    } else if (end == CARRY_BUSY) {
        try_again(r);
    } else {
        ask(r, r->new, BE_FETCH, on_looked_before_change);
    }
}

static void carry_first(struct relay *r)
{
    carry_start(r->worker, r->pool_index, key_of(r), r->odd_key, true, on_carried, r);
}

static void move(struct relay *r)
{
    switch (r->kind) {
    case READ:
        ask_client(r, r->new, on_read_new_first);
        return;
    case SET:
        ask(r, r->old, BE_DELETE, on_old_cleared_first);
        return;
    case DELETE:
        ask_client(r, r->old, on_deleted_old);
        return;
    case ADD: /* without a lease, which those that know the new servers alone would show */
        ask(r, r->old, BE_FETCH, on_looked_before_add);
        return;
    default:
        carry_first(r);
    }
}

/* --- in step MOVED: as those that know the new servers alone ---------------------------------- */

static void on_read_alone(struct relay *r, const struct be_reply *reply)
{
    static const struct be_reply line = {.status = BE_ANSWERED, .line = {"EN\r\n", 2}};
    static const struct be_reply miss = {.status = BE_MISS};
    if (is_hit(r, reply) && is_lease(reply)) {
        reply = r->is_line ? &line : &miss;
    }
    finish_of_new(r, reply);
}

static void moved(struct relay *r)
{
    if (r->names_cas && !r->of_new) {
        ask(r, r->new, BE_FETCH, on_looked_before_change);
    } else {
        ask_client(r, r->new, on_read_alone);
    }
}

/* --- begin ----------------------------------------------------------------------------------- */

static enum kind kind_of(const struct relay *r, const struct request *request, bool carries)
{
    if (r->is_line) {
        bool recaches = (request->meta_flags & letter_bit('R')) != 0;
        /* `me` changes nothing; it is how a value is carried by itself. */
        carries = carries && request->verb->verb == VERB_ME;
        return request_changes(request) || recaches || carries ? CHANGE : READ;
    }
    switch (r->op.verb) {
    case BE_FETCH:
    case BE_GET:
        return READ;
    case BE_SET:
        return SET;
    case BE_DELETE:
        return DELETE;
    case BE_ADD:
        return ADD;
    default:
        return CHANGE;
    }
}

/* What a value that is too large is to replace is deleted by a line. */
static void take_operation(struct relay *r, const struct request *request)
{
    r->op = r->f->exchange.op;
    r->is_line = r->op.verb >= BE_LINE && r->op.form.like != BE_DELETE;
    if (r->op.verb >= BE_LINE && !r->is_line) {
        r->op = (struct be_operation){.verb = BE_DELETE};
    }
    if (r->is_line) {
        return;
    }
    r->op.key = key_of(r);
    r->op.odd_key = r->odd_key;
    r->op.asks_cas = r->op.asks_cas || request_is_meta(request) || r->odd_key;
    r->names_cas = be_is_conditional(r->op.verb) || r->op.with_cas;
    r->of_new = r->names_cas && (r->op.cas & FAILOVER_CAS) != 0;
    r->op.cas &= ~FAILOVER_CAS;
}

/* At once, unlike lists: a proxy that starts again beside those that know the new servers alone
 * must not be a step behind, not even for a while. A key whose old server is gone for good is where
 * they look for it. */
static enum pool_step step_of(const struct worker *w, uint32_t pool_index, struct slice key)
{
    const char *dead = w->config->pools[pool_index].dead;
    struct pool_place here;
    if (dead[0] != '\0' && pool_find(w->pools[pool_index], key, &here) &&
        strcmp(here.server, dead) == 0) {
        return STEP_MOVED;
    }
    return (enum pool_step)atomic_load_explicit(&w->shared->steps[pool_index],
                                                memory_order_relaxed);
}

void next_submit(struct forward_part *f, const struct route_config *route, struct slice key)
{
    struct worker *w = worker_of(f->part.pending);
    const struct request *request = &f->part.pending->request;
    const struct pool_config *pool = &w->config->pools[route->pool_index];
    enum pool_step step = step_of(w, route->pool_index, key);
    struct relay *r = calloc(1, sizeof *r);
    CHECK(r != NULL && key.len <= sizeof r->key);
    memory_take(sizeof *r);
    metric_inc(&w->metrics, METRIC_plain_moving);
    r->f = f;
    r->worker = w;
    r->since_us = w->now.mono_us;
    r->pool_index = route->pool_index;
    r->old = w->pools[route->pool_index];
    r->new = w->pools[pool->next_index];
    r->odd_key =
        request->base64 || (client_is_binary(f->part.pending->client) && request->binary.odd_key);
    r->key_len = key.len;
    memcpy(r->key, key.p, key.len);
    take_operation(r, request);
    r->kind = kind_of(r, request, step == STEP_MOVE);
    f->exchange.done = on_reply;
    f->exchange.owner = r;
    (step == STEP_MOVED ? moved : step == STEP_MOVE ? move : learn)(r);
}

bool next_is_busy(const struct exchange *x)
{
    return x->done == on_reply;
}
