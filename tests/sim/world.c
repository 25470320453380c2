/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Virtual time in which everything must come to rest once faults have ended. */
#define REST_US (120 * 1000000ULL)

bool sim_trace;

void trace(const struct world *w, const char *format, ...)
{
    if (!sim_trace) {
        return;
    }
    va_list args;
    va_start(args, format);
    printf("[%10.6f] ", (double)w->now_us / 1e6);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

void sim_violation(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("VIOLATION: ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
    _Exit(1);
}

static struct config *make_config(const struct params *p)
{
    char error[CONFIG_ERROR_MAX];
    struct config *config = config_create();
    if (config_add_pool(config, "sim", "s0:11211", error) != 0) {
        sim_violation("config: %s", error);
    }
    struct list_policy *policy = &config->lists[0];
    policy->delimiter = ',';
    policy->max_item_bytes = 32;
    policy->log_limit_bytes = p->log_limit;
    policy->log_hard_limit_bytes = p->log_hard_limit;
    policy->sublist_limit_bytes = p->sublist_limit;
    policy->cache_bytes = p->cache_bytes;
    policy->announcement_grace_s = p->grace_s;
    policy->touch_interval_s = p->touch_interval_s;
    policy->on_missing = p->refuse ? ON_MISSING_REFUSE : ON_MISSING_CREATE;
    policy->on_damaged = p->miss_damaged ? ON_DAMAGED_MISS : ON_DAMAGED_ERROR;
    policy->placement = p->spread ? PLACEMENT_SPREAD : PLACEMENT_HEAD;
    config->tracked_lists = p->lists > 2 ? p->lists - 1 : 2;
    if (config_finish(config, error) != 0) {
        sim_violation("config: %s", error);
    }
    return config;
}

/* ---- faults ---- */

struct victims {
    const struct store *store;
    struct slice keys[STORE_BUCKETS];
    size_t count;
};

static void collect(void *arg, const struct item *item)
{
    struct victims *v = arg;
    if (v->count < STORE_BUCKETS) {
        v->keys[v->count++] = item_key(item);
    }
}

static void evict_one(struct world *w)
{
    static struct victims victims;
    struct store *store = &w->stores[rng_below(&w->rng, w->p.servers)];
    victims.count = 0;
    store_each(store, collect, &victims);
    if (victims.count == 0) {
        return;
    }
    struct slice key = victims.keys[rng_below(&w->rng, victims.count)];
    /* Sublists far rather than heads. */
    if (key.p[key.len - 1] == '#' && rng_below(&w->rng, 8) != 0) {
        return;
    }
    trace(w, "s%u evicts %.*s", (unsigned)(store - w->stores), SLICE_ARGS(key));
    store_evict(store, key);
    oracle_lost(&w->oracle, world_now(w).wall_s);
}

static void restart_server(struct world *w, unsigned server)
{
    trace(w, "s%u restarts", server);
    store_restart(&w->stores[server]);
    for (unsigned i = 0; i < w->p.proxies; i++) {
        if (w->proxies[i].engine != NULL) {
            connection_break(&w->proxies[i], server, false);
        }
    }
    oracle_lost(&w->oracle, world_now(w).wall_s);
}

static void pause_proxy(struct world *w, struct proxy *p)
{
    /* Now and then longer than announcements live. */
    uint64_t most_us = rng_below(&w->rng, 3) == 0 ? w->p.grace_s * 2500000ULL : 30000;
    p->paused_until_us = w->now_us + 1 + rng_below(&w->rng, most_us);
    trace(w, "p%u pauses until %.6f", p->number, (double)p->paused_until_us / 1e6);
}

static void one_fault(struct world *w)
{
    const struct params *q = &w->p;
    struct proxy *p = &w->proxies[rng_below(&w->rng, q->proxies)];
    unsigned server = (unsigned)rng_below(&w->rng, q->servers);
    unsigned sum = q->losses + q->crashes + q->pauses + q->restarts + q->evictions + q->shortages;
    uint64_t n = rng_below(&w->rng, sum);
    if (n < q->evictions) {
        evict_one(w);
    } else if ((n -= q->evictions) < q->restarts) {
        restart_server(w, server);
    } else if ((n -= q->restarts) < q->shortages) {
        trace(w, "s%u out of memory", server);
        w->stores[server].out_of_memory = true;
        events_plan(&w->events, w->now_us + 1 + rng_below(&w->rng, 20000), EVENT_PLENTY, w, server);
    } else if (p->engine == NULL) {
        return;
    } else if ((n -= q->shortages) < q->losses) {
        connection_break(p, server, true);
    } else if ((n -= q->losses) < q->crashes) {
        proxy_crash(p);
    } else if (p->paused_until_us <= w->now_us) {
        pause_proxy(w, p);
    }
}

static void fault(struct world *w)
{
    if (!w->quiet) {
        one_fault(w);
        events_plan(&w->events, w->now_us + 1 + rng_below(&w->rng, 2 * w->p.fault_us), EVENT_FAULT,
                    w, 0);
    }
}

/* ---- the loop ---- */

/* Puts an event of a paused proxy off. */
static bool postponed(struct world *w, const struct event *event, const struct proxy *p)
{
    if (p->paused_until_us <= w->now_us) {
        return false;
    }
    events_plan(&w->events, p->paused_until_us, event->kind, event->what, event->number);
    return true;
}

static void connection_event(struct world *w, const struct event *event)
{
    struct proxy *p = event->what;
    if (p->engine == NULL || p->life != event->number >> 8 || postponed(w, event, p)) {
        return;
    }
    unsigned server = event->number & 0xff;
    if (event->kind == EVENT_LOST) {
        connection_lost(p, server);
    } else {
        connection_up(p, server);
    }
}

static void wake(struct world *w, const struct event *event)
{
    struct proxy *p = event->what;
    if (p->engine == NULL || p->life != event->number || postponed(w, event, p)) {
        return;
    }
    p->wake_us = UINT64_MAX;
    proxy_turn(p);
}

static void client_event(struct world *w, const struct event *event)
{
    struct client *client = event->what;
    struct proxy *p = client->proxy;
    if (p->life == event->number && !postponed(w, event, p)) {
        client_think(client);
    }
}

static void handle(struct world *w, const struct event *event)
{
    if (event->kind == EVENT_ARRIVE) {
        message_arrive(w, event->what);
    } else if (event->kind == EVENT_DELIVER) {
        message_deliver(w, event->what);
    } else if (event->kind == EVENT_WAKE) {
        wake(w, event);
    } else if (event->kind == EVENT_CLIENT) {
        client_event(w, event);
    } else if (event->kind == EVENT_FAULT) {
        fault(w);
    } else if (event->kind == EVENT_BOOT) {
        proxy_start(event->what);
    } else if (event->kind == EVENT_PLENTY) {
        w->stores[event->number].out_of_memory = false;
    } else {
        connection_event(w, event);
    }
}

static bool step(struct world *w)
{
    struct event event;
    if (!events_take(&w->events, &event)) {
        return false;
    }
    CHECK(event.at_us >= w->now_us);
    w->now_us = event.at_us;
    handle(w, &event);
    return true;
}

static bool at_rest(const struct world *w)
{
    for (unsigned i = 0; i < w->p.proxies; i++) {
        if (w->proxies[i].engine == NULL || engine_busy(w->proxies[i].engine)) {
            return false;
        }
    }
    return w->calls_pending == 0;
}

static void __attribute__((noreturn)) stuck(const struct world *w, const char *when)
{
    for (struct sim_call *call = w->all_calls; call != NULL; call = call->next) {
        const struct engine *engine = w->proxies[call->proxy].engine;
        char text[320];
        call_describe(call, text, sizeof text);
        if (!call->done && engine != NULL) {
            printf("  %s: %s\n", text, engine_waiting(engine, slice_of(call->key)));
        }
    }
    sim_violation("no progress %s: %llu calls are not answered", when,
                  (unsigned long long)w->calls_pending);
}

static void rest(struct world *w, const char *when)
{
    uint64_t deadline_us = w->now_us + REST_US;
    while (!at_rest(w)) {
        if (w->now_us > deadline_us || !step(w)) {
            stuck(w, when);
        }
    }
}

/* ---- the quiet end ---- */

struct leftovers {
    struct world *w;
    struct slice found;
};

static void check_named(void *arg, const struct item *item)
{
    struct leftovers *l = arg;
    struct slice key = item_key(item);
    const char *end = memchr(key.p, '#', key.len);
    if (item->value->used == 0 || end == key.p + key.len - 1) {
        return;
    }
    struct slice list = slice_make(key.p, (size_t)(end - key.p));
    if (!model_head_names(&l->w->oracle.cluster, list, world_now(l->w).wall_s, key)) {
        sim_violation("%.*s is left over: no head names it", SLICE_ARGS(key));
    }
}

static struct sim_call *ask(struct world *w, struct proxy *p, enum list_verb verb, unsigned list)
{
    struct sim_call *call = call_create(w, &p->clients[0], verb, list);
    call->call.form = LIST_FORM_JOINED;
    proxy_submit(p, call);
    rest(w, "at the end");
    return call;
}

static void let_pass(struct world *w, uint64_t us)
{
    uint64_t until_us = w->now_us + us;
    events_plan(&w->events, until_us, EVENT_PLENTY, w, 0);
    while (w->now_us < until_us && step(w)) {
    }
}

/* A connection that broke before may be noticed only now: a few tries are granted, and time to
 * connect anew. */
static struct sim_call *ask_again(struct world *w, struct proxy *p, enum list_verb verb,
                                  unsigned list)
{
    struct sim_call *call = NULL;
    for (int tries = 0; tries < 3; tries++) {
        call = ask(w, p, verb, list);
        if (call->call.status == LIST_OK || call->call.status == LIST_MISSING) {
            break;
        }
        let_pass(w, 1000000);
    }
    return call;
}

static void finish_list(struct world *w, unsigned list)
{
    struct proxy *p = &w->proxies[rng_below(&w->rng, w->p.proxies)];
    struct sim_call *call = ask_again(w, p, LIST_COMPACT, list);
    bool damaged = w->oracle.list[list].damaged;
    if (call->call.status == LIST_SERVER_ERROR && !damaged) {
        sim_violation("lcompact of a quiet list: %s", call->call.error);
    }
    if (!damaged) {
        oracle_final(&w->oracle, list, world_now(w).wall_s, !(w->p.evictions || w->p.restarts));
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        call = ask_again(w, &w->proxies[i], LIST_GET, list);
        if (call->call.status == LIST_SERVER_ERROR && !damaged) {
            sim_violation("lget of a quiet list: %s", call->call.error);
        }
    }
}

static void finish(struct world *w)
{
    /* Beyond this, announcements belong to dead proxies. */
    let_pass(w, (w->p.grace_s + 2) * 1000000ULL);
    rest(w, "after the grace period");
    for (unsigned list = 0; list < w->p.lists; list++) {
        finish_list(w, list);
    }
    if (!w->p.evictions && !w->p.restarts) {
        struct leftovers leftovers = {.w = w};
        for (unsigned s = 0; s < w->p.servers; s++) {
            store_each(&w->stores[s], check_named, &leftovers);
        }
    }
}

static void world_init(struct world *w, const struct params *params)
{
    *w = (struct world){.p = *params};
    rng_init_seed(&w->rng, params->seed);
    w->now_us = 1000000;
    w->config = make_config(params);
    for (unsigned s = 0; s < params->servers; s++) {
        store_init(&w->stores[s], params->item_size_max, "s");
    }
    oracle_init(&w->oracle, (struct cluster){w->stores, params->servers, params->spread},
                params->lists);
    w->oracle.refuse = params->refuse;
    w->oracle.miss_damaged = params->miss_damaged;
    w->oracle.may_lose = params->evictions || params->restarts;
    for (unsigned i = 0; i < params->proxies; i++) {
        struct proxy *p = &w->proxies[i];
        p->world = w;
        p->number = i;
        for (unsigned s = 0; s < SERVERS_MAX; s++) {
            TAILQ_INIT(&p->connections[s].outstanding);
        }
        for (unsigned c = 0; c < CLIENTS_MAX; c++) {
            p->clients[c].proxy = p;
            p->clients[c].number = i * CLIENTS_MAX + c;
        }
        proxy_start(p);
    }
    if (params->fault_us != 0) {
        events_plan(&w->events, w->now_us + params->fault_us, EVENT_FAULT, w, 0);
    }
}

static void world_fini(struct world *w)
{
    struct event event;
    w->quiet = true;
    while (events_take(&w->events, &event)) {
        if (event.kind == EVENT_ARRIVE || event.kind == EVENT_DELIVER) {
            handle(w, &event);
        }
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        engine_destroy(&w->proxies[i].engine);
        cache_destroy(&w->proxies[i].cache);
    }
    while (w->all_calls != NULL) {
        struct sim_call *call = w->all_calls;
        w->all_calls = call->next;
        chain_fini(&call->call.answer);
        free(call);
    }
    for (unsigned s = 0; s < w->p.servers; s++) {
        store_fini(&w->stores[s]);
    }
    oracle_fini(&w->oracle);
    events_fini(&w->events);
    config_destroy(&w->config);
}

static void print_summary(struct world *w)
{
    static const enum metric shown[] = {
        METRIC_list_appends,      METRIC_list_folds,    METRIC_list_flips,     METRIC_list_merges,
        METRIC_list_heals,        METRIC_list_removes,  METRIC_list_conflicts, METRIC_list_giveups,
        METRIC_list_sweeps,       METRIC_list_log_full, METRIC_list_busy,      METRIC_list_damaged,
        METRIC_list_out_of_memory};
    printf("seed %llu: %.3f s, calls: %llu ok, %llu missing, %llu not stored, %llu client errors, "
           "%llu errors, "
           "%llu abandoned\n ",
           (unsigned long long)w->p.seed, (double)w->now_us / 1e6,
           (unsigned long long)w->statuses[0], (unsigned long long)w->statuses[1],
           (unsigned long long)w->statuses[2], (unsigned long long)w->statuses[3],
           (unsigned long long)w->statuses[4], (unsigned long long)w->abandoned);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        uint64_t sum = 0;
        for (unsigned p = 0; p < w->p.proxies; p++) {
            sum += metric_get(&w->proxies[p].metrics, shown[i]);
        }
        printf(" %s %llu", metric_name(shown[i]) + 5, (unsigned long long)sum);
    }
    printf("\n");
}

void world_run(const struct params *params)
{
    static struct world world;
    struct world *w = &world;
    world_init(w, params);
    while (w->calls_made < w->p.ops || w->calls_pending > 0) {
        if (!step(w) || w->now_us - w->last_answer_us > REST_US) {
            stuck(w, "for long");
        }
        if (w->calls_made >= w->p.ops && !w->quiet) {
            w->quiet = true;
            rest(w, "once clients and faults have ended");
        }
    }
    finish(w);
    print_summary(w);
    world_fini(w);
}
