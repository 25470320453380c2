/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dialect/dialects.h"
#include "list/core/engine_state.h"

#include "../world/step.h"

void world_trace(const struct world *w, const char *format, ...)
{
    if (!w->trace) {
        return;
    }
    va_list args;
    va_start(args, format);
    printf("[%12.6f] ", (double)(int64_t)(w->now_us - START_US) / 1e6);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

void world_violation(struct world *w, const char *format, ...)
{
    if (w->failed) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(w->violation, sizeof w->violation, format, args);
    va_end(args);
    w->failed = true;
    world_trace(w, "VIOLATION: %s", w->violation);
}

/* ---- what is stored ---- */

static bool is_evicted(const struct scene *scene, const char *key)
{
    if (scene->evicted < 0) {
        return false;
    }
    const struct stored_item *item = &scene->items[scene->evicted];
    return slice_equal(slice_make(item->key, item->key_len), slice_of(key));
}

/* It must be well-formed and whole after every change, whoever made it. */
static void check_stored(struct world *w, const struct proxy *p, const struct flight *f)
{
    static struct ids items;
    struct stored stored;
    model_decode(&w->cluster, slice_of(LIST_KEY), world_now(w).wall_s, &items, &stored);
    const char *verb = be_verb_name(f->request->verb);
    if (stored.malformed) {
        world_violation(w, "malformed after %s of %c (%s)", verb, p->name, f->step);
    } else if (stored.sublist_missing && !is_evicted(w->scene, stored.missing)) {
        world_violation(w, "after %s of %c (%s) the head names %s, which is not stored", verb,
                        p->name, f->step, stored.missing);
    }
}

static void trace_listing(const struct world *w, const char *what, const struct listing *listing)
{
    char text[256];
    if (w->trace) {
        listing_describe(listing, text, sizeof text);
        world_trace(w, "%s %s", what, text);
    }
}

void world_observe(struct world *w)
{
    static struct ids items;
    struct stored stored;
    struct listing listing;
    model_decode(&w->cluster, slice_of(LIST_KEY), world_now(w).wall_s, &items, &stored);
    if (stored.malformed || stored.sublist_missing ||
        !listing_of_items(&listing, &items, stored.exists)) {
        world_violation(w, "what is stored cannot be read");
        return;
    }
    history_observe(&w->history, &listing);
    trace_listing(w, "stored:", &listing);
}

/* ---- requests ---- */

static void take_requests(struct world *w, struct proxy *p)
{
    struct be_request *r;
    while ((r = engine_take_request(p->engine)) != NULL) {
        struct flight *f = calloc(1, sizeof *f);
        CHECK(f != NULL);
        f->request = r;
        f->server = (unsigned)(cluster_store(&w->cluster, be_placement(r)) - w->stores);
        f->epoch = p->epoch[f->server];
        f->step = step_name(r->op);
        TAILQ_INSERT_TAIL(&p->flights, f, link);
    }
}

static unsigned changes_of_others(const struct world *w, const struct proxy *p)
{
    unsigned changes = 0;
    for (unsigned i = 0; i < PROXIES; i++) {
        changes += &w->proxies[i] == p ? 0 : w->proxies[i].changes;
    }
    return changes;
}

static uint64_t deadline_us(const struct world *w, enum list_verb verb)
{
    const struct config *config = w->scene->config;
    return 1000 * (uint64_t)(verb == LIST_COMPACT ? config->long_timeout_ms : config->deadline_ms);
}

static void submit_next(struct world *w, struct proxy *p)
{
    while (p->op != NULL && p->asked < p->op->count && (p->open == 0 || p->op->pipelined)) {
        struct history_call *call = history_ask(&w->history, p->name, &p->op->calls[p->asked++],
                                                &w->scene->config->lists[0], &p->session);
        p->open++;
        p->met = changes_of_others(w, p);
        call->call.key = slice_of(LIST_KEY);
        call->call.deadline_us = w->now_us + deadline_us(w, call->call.verb);
        engine_submit(p->engine, &call->call, world_now(w));
    }
}

/* Is there no room in the log for much more? */
static bool log_is_full(const struct world *w)
{
    enum { MUCH_BYTES = 128 };
    struct slice key = SLICE_LIT(LIST_KEY "#");
    const struct item *head = store_find(cluster_store(&w->cluster, key), key, world_now(w).wall_s);
    return head != NULL &&
           head->value->used + MUCH_BYTES > w->scene->config->lists[0].log_hard_limit_bytes;
}

/* Is its time over? */
static bool is_late(const struct world *w, const struct list_call *call)
{
    return w->now_us >= call->deadline_us;
}

/* Errors need a fault, a part of the list that is missing, others who changed it meanwhile, a full
 * log, or a pause that took too long. */
static bool may_be_answered(const struct world *w, const struct proxy *p,
                            const struct list_call *call)
{
    if ((call->status != LIST_SERVER_ERROR && call->status != LIST_CLIENT_ERROR) || p->may_fail) {
        return true;
    }
    if (strstr(call->error, "damaged") != NULL) {
        return w->scene->evicted >= 0 && p != &w->proxies[PROXY_C];
    }
    bool full = slice_starts_with(slice_of(call->error), SLICE_LIT("list log full"));
    bool busy = slice_starts_with(slice_of(call->error), SLICE_LIT("busy"));
    bool timeout = slice_starts_with(slice_of(call->error), SLICE_LIT("deadline over"));
    return (timeout && is_late(w, call)) || (full && log_is_full(w)) ||
           ((full || busy) && changes_of_others(w, p) > p->met);
}

static void take_answers(struct world *w, struct proxy *p)
{
    struct list_call *done;
    while ((done = engine_take_done(p->engine)) != NULL) {
        struct history_call *call = done->owner;
        bool good = history_answer(&w->history, call);
        bool caused = may_be_answered(w, p, &call->call);
        p->open--;
        if (w->trace || !good || !caused) {
            char text[512];
            call_describe(call, text, sizeof text);
            world_trace(w, "%s", text);
            if (!good || !caused) {
                world_violation(w, "%s: %s", good ? "an error without a cause" : "malformed answer",
                                text);
            }
        }
    }
}

void world_turn(struct world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy];
    unsigned open;
    do {
        p->wake_us = engine_run(p->engine, world_now(w));
        take_requests(w, p);
        take_answers(w, p);
        open = p->open;
        submit_next(w, p);
    } while (p->open != open);
}

void flight_trace(const struct world *w, const struct proxy *p, const struct flight *f)
{
    char value[120];
    const struct be_request *r = f->request;
    if (!w->trace) {
        return;
    }
    struct slice shown = r->value.len > 0 ? r->value : f->reply.value;
    world_trace(w, "%c s%u %-10s %-18.*s %s -> %s  %s", p->name, f->server, be_verb_name(r->verb),
                (int)r->key_len, r->key, f->step, be_status_name(f->reply.status),
                slice_escape(shown, value, sizeof value));
}

static void keep_key(struct world *w, unsigned server, struct slice key)
{
    CHECK(w->kept_count < KEPT_MAX);
    struct kept_key *kept = &w->kept[w->kept_count++];
    kept->server = (uint8_t)server;
    kept->len = (uint8_t)key.len;
    memcpy(kept->key, key.p, key.len);
}

uint64_t flight_key(const struct flight *f)
{
    return hash_bytes(f->request->key, f->request->key_len, 11);
}

static bool changed(const struct flight *f)
{
    return f->request->verb >= BE_ADD &&
           (f->reply.status == BE_STORED || f->reply.status == BE_DELETED);
}

/* In which second the item expires; 0: never, or there is none. */
static int64_t end_of(struct world *w, const struct flight *f)
{
    struct slice key = slice_make(f->request->key, f->request->key_len);
    const struct item *item = store_find(&w->stores[f->server], key, world_now(w).wall_s);
    return item == NULL ? 0 : item->expires_s;
}

void flight_execute(struct world *w, struct proxy *p, struct flight *f)
{
    const struct be_request *r = f->request;
    int64_t end_s = end_of(w, f);
    bool guarded = r->verb == BE_CAS || r->verb == BE_CAS_DELETE;
    w->now_us += STEP_US;
    f->executed = true;
    if (p->down && p->engine != NULL) {
        f->reply = (struct be_reply){.status = BE_DOWN, .text = "backend s down"};
    } else if (guarded && r->epoch != f->epoch) {
        f->reply = (struct be_reply){.status = BE_EXISTS};
    } else {
        struct store *store = &w->stores[f->server];
        size_t count = store->count;
        store_execute(store, r, world_now(w).wall_s, &f->reply);
        f->reply.epoch = f->epoch;
        if (store->count > count) {
            keep_key(w, f->server, slice_make(r->key, r->key_len));
        }
        if (r->verb == BE_CAS && end_of(w, f) != end_s) {
            world_violation(w, "a rewriting by %c (%s) has changed when %.*s expires", p->name,
                            f->step, (int)r->key_len, r->key);
        }
    }
    flight_trace(w, p, f);
    if (changed(f)) {
        p->changes++;
        if (!w->known) {
            check_stored(w, p, f);
        }
    }
}

void flight_drop(struct flights *flights, struct flight *f, bool own_request)
{
    TAILQ_REMOVE(flights, f, link);
    block_unref(&f->reply.block);
    if (own_request) {
        block_unref(&f->request->block);
        free(f->request);
    }
    free(f);
}

void flight_answer(struct world *w, struct proxy *p, struct flight *f)
{
    p->taken[p->steps++] = (struct step){.key = flight_key(f), .changed = changed(f)};
    engine_reply(p->engine, f->request, &f->reply, world_now(w));
    flight_drop(&p->flights, f, false);
    if (p->steps == STEPS_MAX) {
        world_violation(w, "%c never ends: %s", p->name,
                        engine_waiting(p->engine, slice_of(LIST_KEY)));
    }
}

bool world_wait_sent(struct world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy];
    unsigned turns = 0;
    while (TAILQ_EMPTY(&p->flights)) {
        if (!engine_busy(p->engine) && p->open == 0) {
            return false;
        }
        if (p->wake_us == UINT64_MAX || ++turns > STEPS_MAX) {
            world_violation(w, "%c waits for ever: %s", p->name,
                            engine_waiting(p->engine, slice_of(LIST_KEY)));
        }
        if (w->failed) {
            return false;
        }
        w->now_us = p->wake_us > w->now_us ? p->wake_us : w->now_us + 1;
        world_turn(w, proxy);
    }
    return true;
}

bool world_step(struct world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy];
    if (p->engine == NULL || w->failed || !world_wait_sent(w, proxy)) {
        return false;
    }
    struct flight *f = TAILQ_FIRST(&p->flights);
    uint32_t clock = w->history.clock;
    if (!f->executed) {
        flight_execute(w, p, f);
    }
    flight_answer(w, p, f);
    world_turn(w, proxy);
    p->taken[p->steps - 1].news = w->history.clock != clock;
    return true;
}

bool world_steps(struct world *w, unsigned proxy, unsigned steps)
{
    while (w->proxies[proxy].steps < steps) {
        if (!world_step(w, proxy)) {
            return false;
        }
    }
    return true;
}

void world_rest(struct world *w, unsigned proxy)
{
    while (world_step(w, proxy)) {
    }
}

void world_pass(struct world *w, uint64_t us)
{
    world_trace(w, "%.6f s pass", (double)us / 1e6);
    w->now_us += us;
}

void world_ask(struct world *w, unsigned proxy, const struct op_spec *op)
{
    struct proxy *p = &w->proxies[proxy];
    world_trace(w, "%c is asked: %s", p->name, op->name);
    p->op = op;
    p->asked = 0;
    submit_next(w, p);
    world_turn(w, proxy);
}

void world_execute(struct world *w, unsigned proxy)
{
    struct flight *f = TAILQ_FIRST(&w->proxies[proxy].flights);
    CHECK(f != NULL && !f->executed);
    flight_execute(w, &w->proxies[proxy], f);
}

bool world_step_depends(const struct world *w, const struct step *step, unsigned other,
                        unsigned from, unsigned to)
{
    const struct proxy *p = &w->proxies[other];
    for (unsigned i = from; i < to; i++) {
        if (p->taken[i].key == step->key && (p->taken[i].changed || step->changed)) {
            return true;
        }
    }
    return false;
}

bool world_depends(const struct world *w, const struct flight *f, unsigned other, unsigned from,
                   unsigned to)
{
    const struct step step = {.key = flight_key(f), .changed = f->request->verb >= BE_ADD};
    return world_step_depends(w, &step, other, from, to);
}

unsigned world_in_flight(const struct world *w, unsigned proxy, unsigned server)
{
    const struct flight *f;
    unsigned count = 0;
    TAILQ_FOREACH(f, &w->proxies[proxy].flights, link)
    {
        count += f->server == server;
    }
    return count;
}

/* ---- beginning and end ---- */

void world_start(struct world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy];
    rng_init_seed(&p->rng, 1000 + proxy);
    p->name = (char)('A' + proxy);
    p->cache = cache_create(w->scene->config->lists[0].cache_bytes);
    p->engine = engine_create(w->scene->config, &p->cache, &dialects, &p->rng, &p->metrics);
    p->wake_us = UINT64_MAX;
    for (unsigned s = 0; s < SERVERS; s++) {
        p->epoch[s] = ++w->last_epoch;
    }
}

/* Two reads: the second one is answered from the cache. What they compact on the way is put back
 * afterwards. */
static void warm(struct world *w, unsigned proxy)
{
    static const struct op_spec reads = {
        .name = "warming", .count = 2, .calls = {{.verb = LIST_GET}, {.verb = LIST_GET}}};
    world_ask(w, proxy, &reads);
    world_rest(w, proxy);
    w->proxies[proxy].steps = 0;
}

/* Going through the buckets of a store would take longer than most cases. */
static void empty_stores(struct world *w)
{
    for (unsigned i = 0; i < w->kept_count; i++) {
        const struct kept_key *kept = &w->kept[i];
        store_evict(&w->stores[kept->server], slice_make(kept->key, kept->len));
    }
    w->kept_count = 0;
    for (unsigned s = 0; s < SERVERS; s++) {
        CHECK(w->stores[s].count == 0);
    }
}

/* CAS numbers go on: those that somebody holds from before fit nothing here. */
static void fill(struct world *w, bool whole)
{
    empty_stores(w);
    scene_load(w->scene, &w->cluster, whole);
    for (unsigned i = 0; i < w->scene->item_count; i++) {
        const struct stored_item *item = &w->scene->items[i];
        struct slice placement = slice_make(item->key, item->placement_len);
        keep_key(w, (unsigned)(cluster_store(&w->cluster, placement) - w->stores),
                 slice_make(item->key, item->key_len));
    }
}

static void begin_empty(struct world *w, const struct scene *scene)
{
    w->scene = scene;
    w->known = false;
    w->failed = false;
    w->violation[0] = '\0';
    w->now_us = START_US - 5000000;
    w->last_epoch = 0;
    TAILQ_INIT(&w->late);
    w->cluster = (struct cluster){w->stores, scene->policy->servers, scene->policy->spread};
    for (unsigned s = 0; s < SERVERS; s++) {
        if (w->stores[s].caps.server_name == NULL) {
            store_init(&w->stores[s], 1 << 20, "s");
        }
        w->stores[s].last_cas = 0;
    }
    for (unsigned i = 0; i < PROXIES; i++) {
        struct proxy *p = &w->proxies[i];
        memset(p, 0, offsetof(struct proxy, taken));
        TAILQ_INIT(&p->flights);
    }
    history_init(&w->history, &scene->first, scene->policy->refuse);
}

void world_init(struct world *w, const struct scene *scene, bool warm_a, bool warm_b, bool trace)
{
    w->trace = false;
    begin_empty(w, scene);
    world_start(w, PROXY_A);
    world_start(w, PROXY_B);
    if (warm_a) {
        fill(w, true);
        warm(w, PROXY_A);
    }
    if (warm_b) {
        fill(w, true);
        warm(w, PROXY_B);
    }
    CHECK(!w->failed);
    history_fini(&w->history);
    history_init(&w->history, &scene->first, scene->policy->refuse);
    fill(w, false);
    w->now_us = START_US;
    w->trace = trace;
    trace_listing(w, "begins with", &scene->first);
}

void world_fini(struct world *w)
{
    static const unsigned none[SERVERS];
    w->trace = false;
    for (unsigned i = 0; i < PROXIES; i++) {
        if (w->proxies[i].engine != NULL) {
            world_crash(w, i, none);
        }
    }
    while (!TAILQ_EMPTY(&w->late)) {
        flight_drop(&w->late, TAILQ_FIRST(&w->late), true);
    }
    history_fini(&w->history);
    world_all_out_of_memory(w, false);
    empty_stores(w);
}
