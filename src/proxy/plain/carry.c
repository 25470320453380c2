/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/carry.h"

#include <stdlib.h>

#include "base/memory.h"
#include "list/moving/places.h"
#include "pool/pool.h"
#include "proto/client/request_parse.h"

struct carry {
    struct exchange x;
    struct worker *worker;
    struct pool *old, *new;
    bool odd_key, empties;
    uint64_t lease_cas, lease_epoch, old_cas, old_epoch;
    carry_done_fn *done;
    void *arg;
    size_t key_len;
    char key[KEY_BYTES_MAX];
};

typedef void answer_fn(struct exchange *x, const struct be_reply *reply);

static void finish(struct carry *c, enum carry_end end, const struct be_reply *reply)
{
    carry_done_fn *done = c->done;
    void *arg = c->arg;
    if (done == NULL) {
        c->worker->carry_bytes -= sizeof *c;
    }
    memory_give(sizeof *c);
    free(c);
    if (done != NULL) {
        done(arg, end, reply);
    }
}

static void ask(struct carry *c, struct pool *pool, const struct be_operation *op, answer_fn *done)
{
    static const struct be_reply ended = {.status = BE_DOWN, .text = "shutting down, not sent"};
    struct slice key = slice_make(c->key, c->key_len);
    if (c->worker->ending) {
        finish(c, CARRY_FAILED, &ended); /* that pool may have gone */
        return;
    }
    c->x = (struct exchange){.op = *op, .done = done, .owner = c};
    c->x.op.key = key;
    pool_submit(pool, key, &c->x);
}

static void ask_for(struct carry *c, struct pool *pool, enum be_verb verb, answer_fn *done)
{
    ask(c, pool, &(struct be_operation){.verb = verb}, done);
}

/* --- from the last step to the first -------------------------------------------------------- */

static void on_emptied(struct exchange *x, const struct be_reply *reply)
{
    bool gone =
        reply->status == BE_STORED || reply->status == BE_DELETED || reply->status == BE_NOT_FOUND;
    finish(x->owner,
           gone                         ? CARRY_DONE
           : reply->status == BE_EXISTS ? CARRY_BUSY
                                        : CARRY_FAILED,
           reply);
}

/* Of what was read there. */
static void empty_old(struct carry *c)
{
    struct be_operation op = {.verb = BE_CAS_DELETE, .cas = c->old_cas, .epoch = c->old_epoch};
    ask(c, c->old, &op, on_emptied);
}

static void note_old(struct carry *c, const struct be_reply *reply)
{
    c->old_cas = reply->cas;
    c->old_epoch = reply->epoch;
}

static void on_filled(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (reply->status != BE_STORED) {
        bool lost = reply->status == BE_EXISTS || reply->status == BE_NOT_FOUND;
        finish(c, lost ? CARRY_BUSY : CARRY_FAILED, reply);
        return;
    }
    metric_inc(&c->worker->metrics, METRIC_plain_moves);
    if (c->empties) {
        empty_old(c);
    } else {
        finish(c, CARRY_DONE, reply);
    }
}

static void on_freed(struct exchange *x, const struct be_reply *reply)
{
    finish(x->owner, CARRY_DONE, reply);
}

static void on_freed_of_rest(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (c->empties) {
        empty_old(c);
    } else {
        finish(c, CARRY_BUSY, reply);
    }
}

static void free_lease(struct carry *c, answer_fn *done)
{
    struct be_operation op = {.verb = BE_CAS_DELETE, .cas = c->lease_cas, .epoch = c->lease_epoch};
    ask(c, c->new, &op, done);
}

/* Can it be stored anew as what it is? Not what memcached itself calls stale, or has made for a
 * client that is to fill it (W, X, Z behind the answer); nor what lives for less than a second, or
 * for a time that the server does not tell. */
static bool is_movable(const struct be_reply *reply)
{
    struct slice line = reply->line, word;
    while (token_next(&line, &word)) {
        if (word.len == 1 && strchr("WXZ", word.p[0]) != NULL) {
            return false;
        }
    }
    return !reply->no_times && reply->ttl_s != 0;
}

static void on_old(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (reply->status == BE_MISS) {
        free_lease(c, on_freed);
    } else if (reply->status != BE_HIT) {
        finish(c, CARRY_FAILED, reply);
    } else if (!is_movable(reply)) {
        note_old(c, reply);
        free_lease(c, on_freed_of_rest);
    } else {
        note_old(c, reply);
        struct be_operation op = {.verb = BE_CAS,
                                  .flags = reply->flags,
                                  .exptime = place_exptime(reply, c->worker->now.wall_s),
                                  .value = reply->value,
                                  .block = reply->block,
                                  .cas = c->lease_cas,
                                  .epoch = c->lease_epoch};
        ask(c, c->new, &op, on_filled);
    }
}

static void on_size_of_both(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (reply->status == BE_HIT) {
        note_old(c, reply);
        empty_old(c);
    } else {
        finish(c, reply->status == BE_MISS ? CARRY_DONE : CARRY_FAILED, reply);
    }
}

/* Something is there in place of a lease of this proxy. */
static void on_new(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (reply->status == BE_HIT && reply->flags != CARRY_LEASE_FLAGS) {
        ask_for(c, c->old, BE_SIZE, on_size_of_both);
    } else {
        bool busy = reply->status == BE_HIT || reply->status == BE_MISS;
        finish(c, busy ? CARRY_BUSY : CARRY_FAILED, reply);
    }
}

static void on_leased(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (reply->status == BE_STORED) {
        c->lease_cas = reply->cas;
        c->lease_epoch = reply->epoch;
        ask_for(c, c->old, BE_GET, on_old);
    } else if (reply->status == BE_NOT_STORED && c->empties) {
        ask_for(c, c->new, BE_FETCH, on_new);
    } else {
        finish(c, reply->status == BE_NOT_STORED ? CARRY_BUSY : CARRY_FAILED, reply);
    }
}

void carry_fill_lease(struct exchange *x, struct slice key, bool odd_key)
{
    x->op = (struct be_operation){.verb = BE_ADD,
                                  .key = key,
                                  .odd_key = odd_key,
                                  .flags = CARRY_LEASE_FLAGS,
                                  .exptime = CARRY_LEASE_S,
                                  .asks_cas = true};
    x->needs_cas = true;
}

static void lease(struct carry *c)
{
    struct slice key = slice_make(c->key, c->key_len);
    c->x = (struct exchange){.done = on_leased, .owner = c};
    carry_fill_lease(&c->x, key, false);
    pool_submit(c->new, key, &c->x);
}

static void on_size(struct exchange *x, const struct be_reply *reply)
{
    struct carry *c = x->owner;
    if (reply->status == BE_HIT) {
        lease(c);
    } else {
        finish(c, reply->status == BE_MISS ? CARRY_DONE : CARRY_FAILED, reply);
    }
}

void carry_start(struct worker *w, uint32_t pool_index, struct slice key, bool odd_key,
                 bool empties, carry_done_fn *done, void *arg)
{
    const struct pool_config *pool = &w->config->pools[pool_index];
    if (done == NULL && (odd_key || w->carry_bytes + sizeof(struct carry) > pool->next_bytes)) {
        return;
    }
    struct carry *c = calloc(1, sizeof *c);
    CHECK(c != NULL && key.len <= sizeof c->key);
    memory_take(sizeof *c);
    w->carry_bytes += done == NULL ? sizeof *c : 0;
    c->worker = w;
    c->old = w->pools[pool_index];
    c->new = w->pools[pool->next_index];
    c->empties = empties;
    c->done = done;
    c->arg = arg;
    c->key_len = key.len;
    memcpy(c->key, key.p, key.len);
    if (odd_key) {
        struct be_operation op = {.verb = BE_DELETE, .odd_key = true, .asks_cas = true};
        ask(c, c->old, &op, on_emptied);
    } else if (empties) {
        ask_for(c, c->old, BE_SIZE, on_size);
    } else {
        lease(c);
    }
}
