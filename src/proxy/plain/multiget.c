/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/plain/multiget.h"

#include <stdlib.h>

#include "proxy/client/deadline.h"
#include "proxy/plain/forward_part.h"
#include "proxy/plain/next.h"
#include "proxy/plain/operation.h"
#include "proxy/plain/route.h"

/* Values up to this size are copied with their line into one piece of the output. */
#define SMALL_REPLY_MAX ((size_t)4096)
/* Room for "VALUE ", flags, size and CAS around a key. */
#define VALUE_LINE_MAX (KEY_BYTES_MAX + 80)
/* Fewer keys are asked for one by one: memcached sends the answers to many mg in one piece, but
 * each answer to a get in one of its own. */
#define SHARED_KEYS_MIN 12
/* Longest line that asks for several keys: memcached has to find more room for one above 2048. */
#define SHARED_LINE_MAX ((size_t)2048)
/* Keys whose servers are found out together. */
#define KEYS_AT_ONCE 32
/* "gets" and the line end. */
#define SHARED_LINE_REST 6U

/* The exchange of several keys. */
struct shared_exchange {
    struct exchange exchange;
    struct worker *worker;
    struct forward_part *first; /* of those that are not answered yet, in the line's order */
};

/* Keys that are to be asked for on one connection. Empty but while a request's keys are given out.
 */
struct multiget_route {
    struct pool *pool;
    size_t index; /* of the connection in its pool */
    struct forward_part *first, *last;
    uint32_t count, line_bytes;
    struct multiget_route *next; /* of those that have keys */
};

struct multiget {
    struct spare_list spare_shared;
    size_t first_of_pool[CONFIG_POOLS_MAX]; /* of the routes below */
    size_t count;
    struct multiget_route routes[]; /* of all pools of memcacheds that plain keys go to */
};

/* The keys of a pool that takes no lines have none, nor those whose server changes. */
#define NO_ROUTE SIZE_MAX

/* --- a key by itself --- */

/* Fills the part's own exchange. */
static struct exchange *exchange_of_key(struct forward_part *f)
{
    const struct request *r = &f->part.pending->request;
    struct exchange *x = forward_part_operation(f);
    x->op.verb = BE_FETCH;
    x->op.key = f->part.key;
    x->op.asks_cas = request_wants_cas(r);
    if (r->verb->shape == SHAPE_GAT) {
        x->op.verb = BE_GAT;
        x->op.exptime = operation_exptime(r->exptime);
    }
    return x;
}

static void ask_for_key(struct forward_part *f)
{
    exchange_of_key(f);
    route_submit(f);
}

/* On which connection is the key, which is of that route, asked for? */
static size_t connection_of(const struct worker *w, const struct route_config *route,
                            struct slice key)
{
    size_t connection;
    if (!route_takes_lines(w, route) || next_has(w, route, key)) {
        return NO_ROUTE;
    }
    pool_routes(w->pools[route->pool_index], &key, 1, &connection);
    return w->multiget->first_of_pool[route->pool_index] + connection;
}

/* Has the connection failed a key of this request? Then the others would only have to wait for the
 * same, one after the other if there are many. */
static bool is_unreachable(const struct pending *p, size_t connection)
{
    return p->unreachable != NULL && connection != NO_ROUTE &&
           (p->unreachable[connection / 8] >> connection % 8 & 1) != 0;
}

static RARE void mark_unreachable(struct pending *p, struct slice key)
{
    const struct worker *w = worker_of(p);
    size_t connection = connection_of(w, config_route(w->config, key), key);
    if (connection == NO_ROUTE) {
        return; /* a key's node may be another one by now */
    }
    if (p->unreachable == NULL) {
        p->unreachable = calloc(w->multiget->count / 8 + 1, 1);
        CHECK(p->unreachable != NULL);
    }
    p->unreachable[connection / 8] |= (uint8_t)(1U << connection % 8);
}

void multiget_redirect(struct part *part)
{
    mark_unreachable(part->pending, part->key);
    exchange_of_key(forward_of(part));
}

/* The next key is not asked for on its connection, which is unreachable: the failover pool is asked
 * for it, if there is one and it has not failed a key of this request, too. */
static RARE void pass_over(struct pending *p, const struct route_config *route, struct slice key)
{
    struct worker *w = worker_of(p);
    if (route->failover_index != ROUTE_NONE && p->handler->redirect != NULL) {
        struct forward_part *f = forward_part_new(p, key, WINDOW_ITEM);
        exchange_of_key(f);
        route_note(f, route, key);
        route_submit_elsewhere(f, route, ROUTE_failover_reads);
        return;
    }
    p->next++;
    if (route_reads_miss(w, route)) {
        metric_inc(&w->metrics, METRIC_down_reads);
    }
}

/* Of a request with one key. */
static void start_only_key(struct pending *p)
{
    p->all_started = true;
    ask_for_key(forward_part_new(p, p->request.key, WINDOW_ITEM));
}

void multiget_start_next(struct pending *p)
{
    struct slice key;
    const struct worker *w = worker_of(p);
    const struct route_config *route = NULL;
    CHECK(item_next(&p->rest, &key));
    p->all_started = p->next + 1 == p->request.arg_count;
    if (p->unreachable != NULL) {
        route = config_route(w->config, key);
    }
    if (route == NULL || !is_unreachable(p, connection_of(w, route, key))) {
        ask_for_key(forward_part_new(p, key, WINDOW_ITEM));
        return;
    }
    pass_over(p, route, key);
    if (TAILQ_EMPTY(&p->parts)) {
        pending_settle(p->client);
    }
}

void multiget_restart(struct part *part)
{
    struct forward_part *f = forward_of(part);
    f->as_told = false; /* from now on it is asked for by itself */
    exchange_of_key(f);
    route_submit_again(f);
}

/* --- keys that share an exchange --- */

static struct forward_part *take_first(struct shared_exchange *shared)
{
    struct forward_part *f = shared->first;
    shared->first = f->next;
    f->next = NULL;
    return f;
}

static void answer_miss(struct shared_exchange *shared)
{
    static const struct be_reply miss = {.status = BE_MISS};
    forward_part_reply(take_first(shared), &shared->exchange, &miss);
}

/* Values come in the order of the keys; a key that is passed over was not there. */
static void on_value(struct exchange *x, const struct be_reply *reply)
{
    struct shared_exchange *shared = x->owner;
    const struct forward_part *f = shared->first;
    while (f != NULL && !slice_equal(reply->line, f->part.key)) {
        f = f->next;
    }
    if (f == NULL) {
        *reply->distrust = true;
        return;
    }
    while (shared->first != f) {
        answer_miss(shared);
    }
    shared->first->as_told = true;
    forward_part_reply(take_first(shared), x, reply);
}

static void on_end(struct exchange *x, const struct be_reply *reply)
{
    struct shared_exchange *shared = x->owner;
    bool whole = reply->status == BE_ANSWERED && slice_equal(reply->line, SLICE_LIT("END"));
    while (shared->first != NULL) {
        if (whole) {
            answer_miss(shared);
        } else {
            forward_part_reply(take_first(shared), x, reply);
        }
    }
    spare_give(&shared->worker->multiget->spare_shared, shared);
}

/* The parts' keys as one line; the memory is the worker's scratch. */
static struct slice shared_line(struct worker *w, const struct forward_part *first, size_t bytes)
{
    char *start = worker_scratch(w, bytes);
    bool cas = request_wants_cas(&first->part.pending->request);
    char *out = put(start, cas ? SLICE_LIT("gets") : SLICE_LIT("get"));
    for (const struct forward_part *f = first; f != NULL; f = f->next) {
        out = put_word(out, f->part.key);
    }
    out = put(out, SLICE_LIT("\r\n"));
    return slice_make(start, (size_t)(out - start));
}

/* Asks for the keys of a route, which is empty afterwards. */
static void ask_for_route(struct worker *w, struct multiget_route *route)
{
    struct forward_part *f = route->first;
    route->first = NULL;
    if (route->count < SHARED_KEYS_MIN) {
        while (f != NULL) {
            struct forward_part *next = f->next;
            f->next = NULL;
            pool_submit_on(route->pool, route->index, exchange_of_key(f));
            f = next;
        }
        return;
    }
    struct shared_exchange *shared = spare_take(&w->multiget->spare_shared);
    shared->exchange = (struct exchange){
        .op.verb = BE_LINE_GET, .value = on_value, .done = on_end, .owner = shared};
    shared->exchange.op.asks_cas = request_wants_cas(&f->part.pending->request);
    shared->worker = w;
    shared->first = f;
    shared->exchange.op.line = shared_line(w, f, route->line_bytes);
    pool_submit_on(route->pool, route->index, &shared->exchange);
}

/* used: routes that have keys. */
static ALWAYS_INLINE void add_to_route(struct worker *w, struct multiget_route *route,
                                       struct forward_part *f, struct multiget_route **used)
{
    if (route->first == NULL) {
        route->next = *used;
        *used = route;
    } else if (route->line_bytes + 1 + f->part.key.len > SHARED_LINE_MAX) {
        ask_for_route(w, route);
    }
    if (route->first == NULL) {
        route->first = f;
        route->count = 0;
        route->line_bytes = SHARED_LINE_REST;
    } else {
        route->last->next = f;
    }
    route->last = f;
    route->count++;
    route->line_bytes += 1 + (uint32_t)f->part.key.len;
}

static bool may_start(struct pending *p)
{
    return !p->all_started && window_open(&p->client->window, p->client->out.bytes);
}

/* The next key was taken. */
static ALWAYS_INLINE void advance(struct pending *p, struct slice key)
{
    (void)slice_take(&p->rest, (size_t)(key.p + key.len - p->rest.p));
}

/* Of a request whose keys do not just go on the connections that they have. */
static RARE struct multiget_route *start_specials(struct pending *p, const struct slice *keys,
                                                  size_t count, struct multiget_route *used)
{
    struct worker *w = worker_of(p);
    for (size_t i = 0; i < count && (i == 0 || may_start(p)); i++) {
        const struct route_config *route = config_route(w->config, keys[i]);
        size_t connection = connection_of(w, route, keys[i]);
        p->all_started = p->next + 1 == p->request.arg_count;
        advance(p, keys[i]);
        if (is_unreachable(p, connection)) {
            pass_over(p, route, keys[i]);
            continue;
        }
        struct forward_part *f = forward_part_new(p, keys[i], WINDOW_ITEM);
        if (connection == NO_ROUTE) {
            ask_for_key(f);
            continue;
        }
        if (w->plain_pool == NULL) {
            exchange_of_key(f); /* for a shadow; where it shares one, it is of no other use */
            route_note(f, route, keys[i]);
        }
        add_to_route(w, &w->multiget->routes[connection], f, &used);
    }
    return used;
}

/* As many keys at once as the window takes. All are submitted before this returns, so that they are
 * in order with what the client asks for before and after them. */
static void start_keys(struct pending *p)
{
    struct worker *w = worker_of(p);
    struct multiget_route *used = NULL;
    bool special = w->plain_pool == NULL || p->unreachable != NULL;
    do {
        struct slice keys[KEYS_AT_ONCE], rest = p->rest;
        size_t routes[KEYS_AT_ONCE], count = 0;
        while (count < KEYS_AT_ONCE && item_next(&rest, &keys[count])) {
            count++;
        }
        p->all_started = count == 0;
        if (UNLIKELY(special)) {
            used = start_specials(p, keys, count, used);
            continue;
        }
        pool_routes(w->plain_pool, keys, count, routes);
        for (size_t i = 0; i < count && (i == 0 || may_start(p)); i++) {
            p->all_started = p->next + 1 == p->request.arg_count;
            struct forward_part *f = forward_part_new(p, keys[i], WINDOW_ITEM);
            add_to_route(w, &w->multiget->routes[routes[i]], f, &used);
            advance(p, keys[i]);
        }
    } while (may_start(p));
    for (; used != NULL; used = used->next) {
        ask_for_route(w, used);
    }
    if (TAILQ_EMPTY(&p->parts)) {
        pending_settle(p->client);
    }
}

/* --- answers --- */

/* Passes on a hit as it stands in the server's answer. Small ones are copied: they go out in one
 * piece with those before them. */
static ALWAYS_INLINE void emit_as_told(const struct forward_part *f, struct chain *out)
{
    const char *start = f->line.p - SLICE_LIT("VALUE ").len;
    size_t bytes = (size_t)(f->value.p + f->value.len + 2 - start);
    if (bytes <= SMALL_REPLY_MAX) {
        chain_copy(out, start, bytes);
    } else {
        chain_add(out, f->block, start, bytes);
    }
}

/* Writes a hit of another kind. Its numbers were read from the answer, and are written anew. */
static void emit_anew(const struct forward_part *f, struct chain *out)
{
    bool small = f->value.len <= SMALL_REPLY_MAX;
    char *start = chain_reserve(out, VALUE_LINE_MAX + (small ? f->value.len + 2 : 0));
    char *end = put(put(start, SLICE_LIT("VALUE ")), f->part.key);
    end = put_number(put_number(end, f->item.flags), f->value.len);
    if (request_wants_cas(&f->part.pending->request)) {
        end = put_number(end, forward_part_cas(f, f->item.cas));
    }
    end = put(end, SLICE_LIT("\r\n"));
    if (small) {
        end = put(put(end, f->value), SLICE_LIT("\r\n"));
        chain_commit(out, (size_t)(end - start));
        return;
    }
    chain_commit(out, (size_t)(end - start));
    chain_add(out, f->block, f->value.p, f->value.len);
    chain_copy_slice(out, SLICE_LIT("\r\n"));
}

void multiget_emit(struct part *part, struct chain *out)
{
    struct forward_part *f = forward_of(part);
    struct metrics *m = &worker_of(part->pending)->metrics;
    if (!f->failed && f->has_value) {
        metric_inc(m, METRIC_get_hits);
        f->as_told ? emit_as_told(f, out) : emit_anew(f, out);
    } else if (!f->failed && f->item.status == BE_MISS) {
        metric_inc(m, METRIC_get_misses);
    } else {
        if (f->failed && !f->failed_over) {
            mark_unreachable(part->pending, part->key);
        }
        /* Unless the configuration wants it, a key must never look like a miss when it could not be
         * asked for. */
        if (!forward_part_is_miss(f)) {
            forward_part_fail(part->pending, f);
        }
    }
}

static const struct handler key_handler = {.kinds = ABOUT_ITEMS,
                                           .start = start_only_key,
                                           .restart = multiget_restart,
                                           .redirect = multiget_redirect,
                                           .emit = multiget_emit,
                                           .timeout_text = forward_read_timeout_text};

static const struct handler keys_handler = {.kinds = ABOUT_ITEMS,
                                            .start = start_keys,
                                            .restart = multiget_restart,
                                            .redirect = multiget_redirect,
                                            .emit = multiget_emit,
                                            .timeout_text = forward_read_timeout_text};

/* gat changes the time to live: asked again, it would miss what its first asking let expire, and so
 * would a get before it. */
static const struct handler touch_keys_handler = {.kinds = ABOUT_ITEMS,
                                                  .start = multiget_start_next,
                                                  .emit = multiget_emit,
                                                  .timeout_text = forward_timeout_text};

static ALWAYS_INLINE struct pending *add(struct client *client, const struct handler *handler,
                                         const struct request *r, struct block *block)
{
    struct pending *p = pending_add(client, handler, r, block);
    pending_count(p, METRIC_cmd_get, r->arg_count);
    p->rest = r->args;
    p->trailer = SLICE_LIT("END\r\n");
    deadline_watch(p, r->arg_count > 1);
    return p;
}

void multiget_request(struct client *client, const struct request *r, struct block *block)
{
    (void)add(client, r->arg_count == 1 ? &key_handler : &keys_handler, r, block);
}

void multiget_touch_request(struct client *client, const struct request *r, struct block *block)
{
    next_take_turn(add(client, &touch_keys_handler, r, block));
}

/* With no others: then the first connection of the only pool is the first of all. */
static bool has_plain_keys(const struct worker *w, size_t pool_index)
{
    return w->plain_pool == NULL || w->pools[pool_index] == w->plain_pool;
}

void multiget_init(struct worker *w, size_t spare_bytes)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        count += has_plain_keys(w, i) ? pool_route_count(w->pools[i]) : 0;
    }
    w->multiget = calloc(1, sizeof *w->multiget + count * sizeof w->multiget->routes[0]);
    CHECK(w->multiget != NULL);
    w->multiget->count = count;
    for (size_t i = 0; i < w->config->pool_count; i++) {
        w->multiget->first_of_pool[i] = at;
        for (size_t k = 0; has_plain_keys(w, i) && k < pool_route_count(w->pools[i]); k++) {
            w->multiget->routes[at++] = (struct multiget_route){.pool = w->pools[i], .index = k};
        }
    }
    spare_init(&w->multiget->spare_shared, sizeof(struct shared_exchange), spare_bytes);
}

void multiget_fini(struct worker *w)
{
    if (w->multiget != NULL) {
        spare_fini(&w->multiget->spare_shared);
        free(w->multiget);
    }
}
