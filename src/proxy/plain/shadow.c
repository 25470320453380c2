/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/shadow.h"

#include <stdlib.h>

#include "proxy/plain/route.h"

/* Longest opaque of a meta command. */
#define OPAQUE_BYTES_MAX 32

struct shadow {
    struct exchange exchange;
    struct worker *worker;
    size_t route;        /* its index */
    size_t bytes;        /* as they count in shadow_bytes */
    struct block *block; /* holds the value, or NULL */
    char key[KEY_BYTES_MAX], opaque[OPAQUE_BYTES_MAX];
};

/* A salt, so that the share is no other one than that of programs that hash keys in the same way.
 */
#define SHARE_SEED UINT64_C(0x736861646f77)

bool shadow_takes(const struct route_config *route, struct slice key)
{
    return route->shadow_index != ROUTE_NONE &&
           hash_stable(key, SHARE_SEED) % ROUTE_SHARE_WHOLE < route->shadow_share;
}

static void on_answer(struct exchange *exchange, const struct be_reply *reply)
{
    struct shadow *s = exchange->owner;
    struct worker *w = s->worker;
    if (reply->status >= BE_NO_MEMORY) {
        route_count(w, s->route, ROUTE_shadow_failed);
    }
    w->routes[s->route].shadow_bytes -= s->bytes;
    block_unref(&s->block);
    spare_give(&w->spare_shadows, s);
}

static struct slice keep(struct slice from, char *to, size_t cap)
{
    CHECK(from.len <= cap);
    if (from.len > 0) {
        memcpy(to, from.p, from.len);
    }
    return slice_make(to, from.len);
}

/* Requests with the number of a CAS mean an item of the first pool. me is for people. */
static bool has_meaning(const struct request *r, const struct be_operation *op)
{
    if (op->verb < BE_LINE) {
        return !be_is_conditional(op->verb) && !op->with_cas;
    }
    return r->verb->verb != VERB_CAS && r->verb->verb != VERB_ME &&
           (op->form.meta == 0 || (r->meta_flags & letter_bit('C')) == 0);
}

/* Of a line what the answer is compared with; of an operation what is sent, perhaps again. */
static void copy_operation(struct shadow *s, const struct exchange *original)
{
    struct be_operation *op = &s->exchange.op;
    *op = original->op;
    if (op->verb < BE_LINE) {
        op->key = keep(op->key, s->key, sizeof s->key);
        s->block = op->block != NULL ? block_ref(op->block) : NULL;
    } else if (op->form.meta != 0) {
        op->form.key = keep(op->form.key, s->key, sizeof s->key);
        op->form.opaque = keep(op->form.opaque, s->opaque, sizeof s->opaque);
    }
}

void shadow_send(struct worker *w, const struct route_config *route, struct slice key,
                 const struct request *r, const struct exchange *original)
{
    struct route_state *state = &w->routes[route->index];
    size_t bytes = sizeof(struct shadow) + original->op.line.len + original->op.value.len;
    if (original->op.verb < BE_LINE && original->op.block != NULL) {
        bytes += original->op.block->cap;
    }
    bool meant = has_meaning(r, &original->op);
    if (!meant || state->shadow_bytes + bytes > route->shadow_bytes) {
        route_count(w, route->index, meant ? ROUTE_shadow_dropped : ROUTE_shadow_skipped);
        return;
    }
    struct shadow *s = spare_take(&w->spare_shadows);
    exchange_init_line(&s->exchange, BE_LINE, SLICE_NONE, BE_LINE, on_answer, s);
    s->block = NULL;
    copy_operation(s, original);
    s->exchange.told = true; /* no client waits for its outcome */
    s->worker = w;
    s->route = route->index;
    s->bytes = bytes;
    state->shadow_bytes += bytes;
    route_count(w, route->index, ROUTE_shadow_requests);
    pool_submit(w->pools[route->shadow_index], key, &s->exchange);
}

void shadow_init(struct worker *w, size_t spare_bytes)
{
    spare_init(&w->spare_shadows, sizeof(struct shadow), spare_bytes);
}

void shadow_fini(struct worker *w)
{
    spare_fini(&w->spare_shadows);
}
