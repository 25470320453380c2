/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../world/settings.h"
#include "config/reload.h"
#include "joint.h"
#include "txs.h"

/* Virtual time in which everything must come to rest once faults have ended. */
#define REST_US (120 * 1000000ULL)
/* One in so many calls finds that its proxy has just read its configuration anew. */
#define RELOAD_CHANCE 64

struct sim_totals *sim_totals;
static const struct sim_world *running;

void sim_violation(const char *format, ...)
{
    va_list args;
    trace_show();
    va_start(args, format);
    printf("VIOLATION: ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
    sim_report(format);
    _Exit(1);
}

void sim_report(const char *rule)
{
    if (sim_totals != NULL && running != NULL) {
        struct sim_totals *totals = &sim_totals[running->p.dialect];
        const struct outside *outside = running->oracle.outside;
        totals->rule = rule != NULL ? rule : totals->rule;
        __atomic_fetch_add(&totals->calls, running->calls_made, __ATOMIC_RELAXED);
        __atomic_fetch_add(&totals->faults, running->faults_made, __ATOMIC_RELAXED);
        __atomic_fetch_add(&totals->checked, running->oracle.checked, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < running->p.proxies; i++) {
            const struct metrics *metrics = &running->proxies[i].base.metrics;
            __atomic_fetch_add(&totals->indexed, metric_get(metrics, METRIC_list_indexed_reads),
                               __ATOMIC_RELAXED);
            __atomic_fetch_add(&totals->recent, metric_get(metrics, METRIC_list_recent_reads),
                               __ATOMIC_RELAXED);
        }
        uint64_t committed, aborted;
        txs_count(running->oracle.txs, &committed, &aborted);
        __atomic_fetch_add(&totals->committed, committed, __ATOMIC_RELAXED);
        __atomic_fetch_add(&totals->aborted, aborted, __ATOMIC_RELAXED);
        __atomic_fetch_add(&totals->refused, running->foreign_refused, __ATOMIC_RELAXED);
        __atomic_fetch_add(&totals->came_back, outside == NULL ? 0 : outside->came_back,
                           __ATOMIC_RELAXED);
    }
}

void sim_set_cap(const struct sim_world *w, struct list_policy *policy, unsigned proxy,
                 uint64_t life)
{
    const struct params *p = &w->p;
    uint64_t turn = p->cap_mix == 0 ? 0 : p->cap_mix == 1 ? proxy : proxy + life;
    policy->max_items = turn % 4 == 3 ? 0 : turn % 2 == 1 ? (p->max_items + 1) / 2 : p->max_items;
    policy->cap = p->cap_refuses != (turn % 4 == 1) ? CAP_REFUSE : CAP_DROP_OLDEST;
    if (policy->max_items == 0) {
        policy->cap = CAP_DROP_OLDEST;
    }
}

/* reloads: how often the proxy has read another one. */
static struct config *make_config(const struct sim_world *w, unsigned proxy, unsigned reloads)
{
    const struct params *p = &w->p;
    uint32_t factor = p->mixed_limits ? 1 + (proxy + reloads) % 2 : 1;
    struct config *config = settings_create(p->log_limit * factor, p->log_hard_limit * factor,
                                            p->sublist_limit * factor);
    struct list_policy *policy = &config->lists[0];
    policy->cache_bytes = p->cache_bytes;
    if (p->answer_limit != 0) {
        policy->max_answer_bytes = p->answer_limit;
    }
    if (p->fold_memory != 0 && factor == 1) {
        policy->fold_memory_bytes =
            (uint64_t)p->fold_memory *
            (64 * (uint64_t)policy->log_hard_limit_bytes + 4 * policy->sublist_limit_bytes);
    }
    policy->announcement_grace_s = p->grace_s;
    policy->touch_interval_s = p->touch_interval_s;
    policy->ttl_s = p->ttl_s;
    policy->ttl_renew = (enum ttl_renew)p->ttl_renew;
    policy->max_stale_ms = p->max_stale_ms;
    policy->order = p->recent && factor == 1 ? ORDER_RECENT : ORDER_ADDED;
    sim_set_cap(w, policy, proxy, 0);
    policy->on_missing = p->refuse ? ON_MISSING_REFUSE : ON_MISSING_CREATE;
    policy->on_damaged = p->miss_damaged ? ON_DAMAGED_MISS : ON_DAMAGED_ERROR;
    policy->placement = p->spread ? PLACEMENT_SPREAD : PLACEMENT_HEAD;
    if (p->dialect != DIALECT_NATIVE) {
        format_configure(&w->format, policy);
        policy->compact_chance = p->compact_chance;
    }
    if (!p->views) {
        config->view_bytes = 0;
    } else if (p->view_limit != 0) {
        config->view_bytes = p->view_limit;
    }
    config->index_bytes = p->index_bytes;
    if (p->long_ms != 0) {
        config->long_timeout_ms = p->long_ms;
    }
    config->tracked_lists = p->lists > 2 ? p->lists - 1 : 2;
    settings_finish(config);
    (void)snprintf(config->pools[0].next_name, sizeof config->pools[0].next_name, "%s",
                   p->moving ? "next" : "");
    if (p->couchbase != COUCHBASE_NOT) {
        policy->pool_type = POOL_COUCHBASE;
        policy->placement = PLACEMENT_SPREAD;
    }
    return config;
}

/* What a reload may change takes the values of another proxy, in the middle of all that is under
 * way. */
static void reload(struct sim_proxy *p)
{
    struct config *next = make_config(p->world, p->number, ++p->reloads);
    trace(&p->world->base, "p%u reads its configuration anew", p->number);
    config_adopt(p->config, next);
    config_destroy(&next);
}

/* ---- the loop ---- */

/* Puts an event of a paused proxy off. */
static bool postponed(struct sim_world *w, const struct event *event, const struct sim_proxy *p)
{
    if (p->paused_until_us <= w->base.now_us) {
        return false;
    }
    events_plan(&w->events, p->paused_until_us, event->kind, event->what, event->number);
    return true;
}

static void connection_event(struct sim_world *w, const struct event *event)
{
    struct sim_proxy *p = event->what;
    unsigned server = event->number & 0xff;
    if (p->base.engine == NULL || p->life != event->number >> 8) {
        return;
    }
    if (postponed(w, event, p)) {
        connection_late(p, server, p->paused_until_us);
        return;
    }
    if (event->kind == EVENT_LOST) {
        connection_lost(p, server);
    } else {
        connection_up(p, server);
    }
}

static void release_event(struct sim_world *w, const struct event *event)
{
    struct sim_proxy *p = event->what;
    if (p->base.engine != NULL && p->life == event->number >> 16 && !postponed(w, event, p)) {
        nodes_release(p, event->number & 0xffff);
    }
}

static void wake(struct sim_world *w, const struct event *event)
{
    struct sim_proxy *p = event->what;
    if (p->base.engine == NULL || p->life != event->number || !alarm_rings(&p->alarm, event)) {
        return;
    }
    if (p->paused_until_us > w->base.now_us) {
        proxy_wake_at(p, p->paused_until_us);
    } else {
        sim_proxy_turn(p);
    }
}

static void client_event(struct sim_world *w, const struct event *event)
{
    struct client *client = event->what;
    struct sim_proxy *p = client->proxy;
    if (p->life == event->number && !postponed(w, event, p)) {
        if (w->p.reloads && rng_below(&p->reload_rng, RELOAD_CHANCE) == 0) {
            reload(p);
        }
        client_think(client);
    }
}

static void asker_event(struct sim_world *w, const struct event *event)
{
    struct asker *asker = event->what;
    struct sim_proxy *p = asker->proxy;
    if (p->life == event->number && !postponed(w, event, p)) {
        foreign_ask(asker);
    }
}

static void crash(struct sim_world *w, const struct event *event)
{
    struct sim_proxy *p = event->what;
    if (p->base.engine != NULL && p->life == event->number && !w->quiet) {
        sim_proxy_crash(p);
    }
}

static void handle(struct sim_world *w, const struct event *event)
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
        fault_happen(w);
    } else if (event->kind == EVENT_CRASH) {
        crash(w, event);
    } else if (event->kind == EVENT_HAND) {
        hand_act(event->what);
    } else if (event->kind == EVENT_FOREIGN) {
        foreign_act(event->what);
    } else if (event->kind == EVENT_ASKER) {
        asker_event(w, event);
    } else if (event->kind == EVENT_BOOT) {
        sim_proxy_start(event->what);
    } else if (event->kind == EVENT_PLENTY) {
        w->base.stores[event->number].out_of_memory = false;
        w->base.stores[event->number].refusing = false;
        w->base.stores[event->number].small_max = 0;
    } else if (event->kind == EVENT_RELEASE) {
        release_event(w, event);
    } else if (event->kind == EVENT_SERVED) {
        nodes_served(w, event->what);
    } else {
        connection_event(w, event);
    }
}

/* The servers' clocks go on; what expires with a second that ends is gone before any request. */
static void tick(struct sim_world *w)
{
    int64_t now_us = START_WALL_S * 1000000LL + (int64_t)w->base.now_us;
    bool ticked = false;
    for (unsigned s = 0; s < w->p.servers; s++) {
        struct store *store = &w->base.stores[s];
        int64_t clock_s = (now_us + w->clock_offsets_us[s]) / 1000000;
        ticked = ticked || clock_s != w->clocks_s[s];
        w->clocks_s[s] = clock_s;
        store->lead_s = clock_s - world_now(&w->base).wall_s;
    }
    if (ticked && (lives_end(&w->p) || w->p.leases)) { /* the head of a lease goes by itself, too */
        oracle_look(&w->oracle, world_now(&w->base).wall_s);
    }
}

bool sim_step(struct sim_world *w)
{
    struct event event;
    if (!events_take(&w->events, &event)) {
        return false;
    }
    CHECK(event.at_us >= w->base.now_us);
    w->base.now_us = event.at_us;
    tick(w);
    if (w->oracle.outside != NULL) {
        outside_time(w->oracle.outside, w->base.now_us);
    }
    handle(w, &event);
    return true;
}

static bool at_rest(const struct sim_world *w)
{
    for (unsigned i = 0; i < w->p.proxies; i++) {
        if (w->proxies[i].base.engine == NULL || engine_busy(w->proxies[i].base.engine)) {
            return false;
        }
    }
    for (unsigned i = 0; i < w->p.hands; i++) {
        if (w->hands[i].call != NULL) {
            return false;
        }
    }
    return w->calls_pending == 0;
}

static void __attribute__((noreturn)) stuck(const struct sim_world *w, const char *when)
{
    for (struct sim_call *call = w->all_calls; call != NULL; call = call->next) {
        const struct engine *engine =
            call->proxy < PROXIES_MAX ? w->proxies[call->proxy].base.engine : NULL;
        char text[320];
        call_describe(call, text, sizeof text);
        if (!call->done && engine != NULL) {
            printf("  %s: %s\n", text, engine_waiting(engine, slice_of(call->key)));
        }
    }
    sim_violation("no progress %s: %llu calls are not answered", when,
                  (unsigned long long)w->calls_pending);
}

void sim_rest(struct sim_world *w, const char *when)
{
    uint64_t deadline_us = w->base.now_us + REST_US;
    while (!at_rest(w)) {
        if (w->base.now_us > deadline_us || !sim_step(w)) {
            stuck(w, when);
        }
    }
}

/* How wrong a clock is. */
static int64_t skew_s(struct sim_world *w)
{
    int64_t most_s = (int64_t)w->p.clock_skew_s;
    int64_t skew_s = (int64_t)rng_below(&w->rng, 2 * (uint64_t)most_s + 1) - most_s;
    if (w->p.wrong_clocks && rng_below(&w->rng, 2) == 0) {
        skew_s += rng_below(&w->rng, 3) == 0 ? -DAY_S : DAY_S;
    }
    return skew_s;
}

static void clocks_init(struct sim_world *w, const struct params *params)
{
    /* Sublists on other servers than their head are given a day more, for clocks that differ by
     * less than that. */
    int64_t part = params->spread && params->wrong_clocks ? 3 : 1;
    for (unsigned s = 0; s < params->servers; s++) {
        w->base.stores[s].no_times = params->no_times == 1 || (params->no_times == 2 && s % 2 == 0);
        w->clock_offsets_us[s] = (int64_t)rng_below(&w->rng, 1000000) + skew_s(w) / part * 1000000;
        if (params->moving) { /* the judge asks where a list is now */
            w->clock_offsets_us[s] = w->clock_offsets_us[0];
        }
        if (params->couchbase != COUCHBASE_NOT) {
            w->clock_offsets_us[s] = 0; /* proxies count times to live by clocks of their own */
        }
    }
}

static void sim_init(struct sim_world *w, const struct params *params)
{
    *w = (struct sim_world){.p = *params};
    rng_init_seed(&w->rng, params->seed);
    world_init(&w->base, params->servers, params->spread, params->item_size_max);
    w->base.now_us = 1000000;
    w->base.cluster.moving = params->moving;
    w->base.cluster.leaving = params->dead ? &w->base.stores[params->servers - 1] : NULL;
    if (params->couchbase != COUCHBASE_NOT) {
        nodes_start(w);
    }
    clocks_init(w, params);
    oracle_init(&w->oracle, w->base.cluster, params->lists, &w->base.now_us);
    w->oracle.max_stale_us = params->max_stale_ms * UINT64_C(1000);
    w->oracle.refuse = params->refuse;
    w->oracle.miss_damaged = params->miss_damaged;
    w->oracle.may_lose = sim_loses(w);
    w->oracle.may_expire = lives_end(params);
    w->oracle.wrong_clocks = params->wrong_clocks;
    w->oracle.clock_skew_s = (int64_t)params->clock_skew_s;
    if (params->purges) {
        w->oracle.tags = calloc(1, sizeof *w->oracle.tags);
        CHECK(w->oracle.tags != NULL);
    }
    if (params->txs > 0) {
        w->oracle.txs = txs_create(params->lists);
    }
    w->oracle.log_hard_limit = params->log_hard_limit;
    w->oracle.item_size_max = params->item_size_max;
    w->oracle.answer_limit = params->answer_limit;
    if (params->dialect != DIALECT_NATIVE) {
        item_names_for_dialects();
        format_init(&w->format, params, &w->base.cluster);
        oracle_set_format(&w->oracle, &w->format);
    }
    if (!params_linearizable(params)) {
        w->oracle.outside = outside_create(&w->oracle, &w->format, params->items);
        w->oracle.outside->strict = params->strict;
    }
    for (unsigned i = 0; i < params->proxies; i++) {
        struct sim_proxy *p = &w->proxies[i];
        p->world = w;
        p->number = i;
        p->config = make_config(w, i, 0);
        rng_init_seed(&p->reload_rng, params->seed * 573259391 + i);
        p->base.clock_skew_s = skew_s(w);
        for (unsigned s = 0; s < SERVERS_MAX; s++) {
            p->connections[s].far = s + 1 == params->far_server;
            rng_init_seed(&p->connections[s].rng, rng_next(&w->rng));
        }
        for (unsigned c = 0; c < CLIENTS_MAX; c++) {
            p->clients[c].proxy = p;
            p->clients[c].number = i * CLIENTS_MAX + c;
            rng_init_seed(&p->clients[c].rng, rng_next(&w->rng));
            rng_init_seed(&p->clients[c].joint_rng, params->seed * 104395301 + i * 100 + c);
            rng_init_seed(&p->clients[c].tx_rng, params->seed * 275604541 + i * 100 + c);
        }
        sim_proxy_start(p);
    }
    hands_start(w);
    foreign_start(w);
    if (params->fault_us != 0) {
        events_plan(&w->events, w->base.now_us + params->fault_us, EVENT_FAULT, w, 0);
    }
}

static void sim_fini(struct sim_world *w)
{
    struct event event;
    w->quiet = true;
    while (events_take(&w->events, &event)) {
        if (event.kind == EVENT_ARRIVE || event.kind == EVENT_DELIVER ||
            event.kind == EVENT_SERVED) {
            handle(w, &event);
        }
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        proxy_stop(&w->proxies[i].base);
        sim_proxy_forget(&w->proxies[i]);
        config_destroy(&w->proxies[i].config);
    }
    while (w->all_calls != NULL) {
        struct sim_call *call = w->all_calls;
        w->all_calls = call->next;
        chain_fini(&call->call.answer);
        joint_call_fini(call);
        free(call->plan);
        ids_fini(&call->answer);
        ids_fini(&call->took);
        free(call);
    }
    free(w->log_ends);
    world_fini(&w->base);
    hands_fini(w);
    foreign_fini(w);
    outside_destroy(&w->oracle.outside);
    oracle_fini(&w->oracle);
    events_fini(&w->events);
}

static void print_summary(struct sim_world *w)
{
    static const enum list_metric shown[] = {
        METRIC_list_appends,  METRIC_list_turns,         METRIC_list_folds,
        METRIC_list_flips,    METRIC_list_merges,        METRIC_list_heals,
        METRIC_list_removes,  METRIC_list_conflicts,     METRIC_list_giveups,
        METRIC_list_sweeps,   METRIC_list_log_full,      METRIC_list_busy,
        METRIC_list_damaged,  METRIC_list_out_of_memory, METRIC_deadlines_over,
        METRIC_list_timeouts, METRIC_list_holdbacks,     METRIC_list_indexed_reads};
    printf("seed %llu: %.3f s (%.3f s of calls), calls: %llu ok, %llu missing, %llu not stored, "
           "%llu exist, %llu client errors, "
           "%llu errors, "
           "%llu abandoned\n ",
           (unsigned long long)w->p.seed, (double)w->base.now_us / 1e6, (double)w->quiet_us / 1e6,
           (unsigned long long)w->statuses[0], (unsigned long long)w->statuses[1],
           (unsigned long long)w->statuses[2], (unsigned long long)w->statuses[3],
           (unsigned long long)w->statuses[4], (unsigned long long)w->statuses[5],
           (unsigned long long)w->abandoned);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        uint64_t sum = 0;
        for (unsigned p = 0; p < w->p.proxies; p++) {
            sum += metric_get(&w->proxies[p].base.metrics, shown[i]);
        }
        printf(" %s %llu",
               metric_name(&list_metrics, shown[i]) + (shown[i] == METRIC_deadlines_over ? 0 : 5),
               (unsigned long long)sum);
    }
    printf("\n");
}

void sim_run(const struct params *params)
{
    static struct sim_world world;
    struct sim_world *w = &world;
    running = w;
    sim_init(w, params);
    while (w->calls_made < w->p.ops || w->calls_pending > 0) {
        if (!sim_step(w) || w->base.now_us - w->last_answer_us > REST_US) {
            stuck(w, "for long");
        }
        if (w->calls_made >= w->p.ops && !w->quiet) {
            w->quiet = true;
            w->quiet_us = w->base.now_us;
            sim_rest(w, "once clients and faults have ended");
        }
    }
    sim_finish(w);
    if (sim_history_matters(w)) {
        sim_check_history(w);
    }
    print_summary(w);
    sim_report(NULL);
    sim_fini(w);
}
