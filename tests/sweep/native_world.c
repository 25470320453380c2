/* SPDX-License-Identifier: BSD-3-Clause */
#include "native_world.h"

static inline struct proxy *base_of(struct native_world *w, unsigned proxy)
{
    return &w->proxies[proxy].base;
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

/* It must be well-formed and whole after every change, by whichever proxy. */
static void check_stored(struct native_world *w, char name, const struct flight *f)
{
    static struct ids items;
    struct stored stored;
    struct world *base = &w->base;
    uint64_t hash = world_hash(base);
    if (seen_has(&w->seen.whole, hash)) {
        return;
    }
    model_decode(&base->cluster, slice_of(LIST_KEY), world_now(base).wall_s, &items, &stored);
    const char *verb = be_verb_name(f->request.be.verb);
    if (stored.malformed) {
        world_violation(base, "malformed after %s of %c (%s)", verb, name, f->step);
    } else if (stored.sublist_missing && !is_evicted(w->scene, stored.missing)) {
        world_violation(base, "after %s of %c (%s) the head names %s, which is not stored", verb,
                        name, f->step, stored.missing);
    } else {
        seen_add(&w->seen.whole, hash);
    }
}

static void trace_listing(const struct native_world *w, const char *what,
                          const struct listing *listing)
{
    char text[256];
    if (trace_mode != TRACE_OFF) {
        listing_describe(listing, text, sizeof text);
        trace(&w->base, "%s %s", what, text);
    }
}

void case_observe(struct native_world *w, struct listing *listing)
{
    static struct ids items;
    struct stored stored;
    struct world *base = &w->base;
    model_decode(&base->cluster, slice_of(LIST_KEY), world_now(base).wall_s, &items, &stored);
    if (stored.malformed || stored.sublist_missing ||
        !listing_of_items(listing, &items, stored.exists)) {
        world_violation(base, "what is stored cannot be read");
        return;
    }
    history_observe(&w->history, listing);
    trace_listing(w, "stored:", listing);
}

/* ---- calls ---- */

static unsigned changes_of_others(const struct native_world *w, const struct native_proxy *p)
{
    unsigned changes = 0;
    for (unsigned i = 0; i < PROXIES; i++) {
        changes += &w->proxies[i] == p ? 0 : w->proxies[i].changes;
    }
    return changes;
}

static uint64_t deadline_us(const struct native_world *w, enum list_verb verb)
{
    const struct config *config = w->scene->config;
    return 1000 * (uint64_t)(verb == LIST_COMPACT ? config->long_timeout_ms : config->deadline_ms);
}

/* True when there was something to submit. */
static bool ask_next(struct world *base, struct proxy *proxy)
{
    struct native_world *w = (struct native_world *)base;
    struct native_proxy *p = (struct native_proxy *)proxy;
    bool any = false;
    while (p->op != NULL && p->asked < p->op->count && (proxy->open == 0 || p->op->pipelined)) {
        struct history_call *call = history_ask(&w->history, proxy->name, &p->op->calls[p->asked++],
                                                &w->scene->config->lists[0], &p->session);
        p->met = changes_of_others(w, p);
        call->call.key = slice_of(LIST_KEY);
        call->call.deadline_us = base->now_us + deadline_us(w, call->call.verb);
        proxy_submit(base, proxy, &call->call);
        any = true;
    }
    return any;
}

/* Is there no room in the log for much more? */
static bool log_is_full(const struct native_world *w)
{
    enum { MUCH_BYTES = 128 };
    struct slice key = SLICE_LIT(LIST_KEY "#");
    const struct item *head =
        store_find(cluster_store(&w->base.cluster, key), key, world_now(&w->base).wall_s);
    return head != NULL &&
           head->value->used + MUCH_BYTES > w->scene->config->lists[0].log_hard_limit_bytes;
}

/* Is its time over? */
static bool is_late(const struct native_world *w, const struct list_call *call)
{
    return w->base.now_us >= call->deadline_us;
}

/* Errors need a fault, a part of the list that is missing, others who changed it meanwhile, a full
 * log, or a pause that took too long. */
static bool may_be_answered(const struct native_world *w, const struct native_proxy *p,
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

static void done(struct world *base, struct proxy *proxy, struct list_call *done)
{
    struct native_world *w = (struct native_world *)base;
    struct native_proxy *p = (struct native_proxy *)proxy;
    struct history_call *call = done->owner;
    bool good = history_answer(&w->history, call);
    bool caused = may_be_answered(w, p, &call->call);
    if (trace_mode != TRACE_OFF || !good || !caused) {
        char text[512];
        call_describe(call, text, sizeof text);
        trace(base, "%s", text);
        if (!good || !caused) {
            world_violation(base, "%s: %s", good ? "an error without a cause" : "malformed answer",
                            text);
        }
    }
}

/* ---- steps ---- */

static uint64_t hash_of(const struct flight *f)
{
    return hash_bytes(f->request.key, f->request.be.key.len, 11);
}

static void executed(struct world *base, struct proxy *proxy, const struct flight *f)
{
    struct native_world *w = (struct native_world *)base;
    if (!flight_has_changed(f)) {
        return;
    }
    if (proxy != NULL) {
        ((struct native_proxy *)proxy)->changes++;
    }
    if (!w->known) {
        check_stored(w, proxy == NULL ? '-' : proxy->name, f);
    }
}

static void answering(struct world *base, struct proxy *proxy, const struct flight *f)
{
    struct native_proxy *p = (struct native_proxy *)proxy;
    (void)base;
    p->taken[proxy->steps] = (struct step){.key = hash_of(f), .changed = flight_has_changed(f)};
}

static const struct driver driver = {
    .list_key = {LIST_KEY, sizeof LIST_KEY - 1},
    .steps_max = STEPS_MAX,
    .executed = executed,
    .answering = answering,
    .done = done,
    .ask_next = ask_next,
};

bool case_wait_sent(struct native_world *w, unsigned proxy)
{
    return proxy_wait_sent(&w->base, base_of(w, proxy));
}

bool case_steps(struct native_world *w, unsigned proxy, unsigned steps)
{
    return proxy_steps(&w->base, base_of(w, proxy), steps);
}

void case_rest(struct native_world *w, unsigned proxy)
{
    proxy_rest(&w->base, base_of(w, proxy));
}

void case_pass(struct native_world *w, uint64_t us)
{
    trace(&w->base, "%.6f s pass", (double)us / 1e6);
    w->base.now_us += us;
}

void case_ask(struct native_world *w, unsigned proxy, const struct op_spec *op)
{
    struct native_proxy *p = &w->proxies[proxy];
    trace(&w->base, "%c is asked: %s", p->base.name, op->name);
    p->op = op;
    p->asked = 0;
    (void)ask_next(&w->base, &p->base);
    proxy_turn(&w->base, &p->base);
}

bool case_step_depends(const struct native_world *w, const struct step *step, unsigned other,
                       unsigned from, unsigned to)
{
    const struct native_proxy *p = &w->proxies[other];
    for (unsigned i = from; i < to; i++) {
        if (p->taken[i].key == step->key && (p->taken[i].changed || step->changed)) {
            return true;
        }
    }
    return false;
}

bool case_depends(const struct native_world *w, const struct flight *f, unsigned other,
                  unsigned from, unsigned to)
{
    const struct step step = {.key = hash_of(f), .changed = flight_is_change(f)};
    return case_step_depends(w, &step, other, from, to);
}

/* ---- beginning and end ---- */

void case_start(struct native_world *w, unsigned proxy)
{
    const struct config *config = w->scene->config;
    struct proxy *p = base_of(w, proxy);
    p->name = (char)('A' + proxy);
    proxy_start(&w->base, p, config, config->lists[0].cache_bytes, LOCATOR_CHECK_BITS,
                1000 + proxy);
}

/* Two reads: the second one is answered from the cache. What they compact on the way is put back
 * afterwards. */
static void warm(struct native_world *w, unsigned proxy)
{
    static const struct op_spec reads = {
        .name = "warming", .count = 2, .calls = {{.verb = LIST_GET}, {.verb = LIST_GET}}};
    case_ask(w, proxy, &reads);
    case_rest(w, proxy);
    w->proxies[proxy].base.steps = 0;
}

/* CAS numbers go on: those that a proxy has from before fit nothing here. */
static void fill(struct native_world *w, bool whole)
{
    for (unsigned s = 0; s < w->base.cluster.count; s++) {
        store_clear(&w->base.stores[s]);
    }
    scene_load(w->scene, &w->base.cluster, whole);
}

static void begin_empty(struct native_world *w, const struct scene *scene)
{
    const struct policy_spec *policy = scene->policy;
    if (w->base.driver == NULL) {
        world_init(&w->base, policy->servers, policy->spread, 1 << 20);
        w->base.driver = &driver;
    }
    world_begin(&w->base, policy->servers, policy->spread, START_US - 5000000);
    w->scene = scene;
    w->known = false;
    for (unsigned i = 0; i < PROXIES; i++) {
        struct native_proxy *p = &w->proxies[i];
        memset(p, 0, offsetof(struct native_proxy, taken));
        TAILQ_INIT(&p->base.flights);
    }
    history_init(&w->history, &scene->first, policy->refuse);
}

void case_init(struct native_world *w, const struct scene *scene, bool warm_a, bool warm_b,
               bool trace)
{
    trace_mode = TRACE_OFF;
    begin_empty(w, scene);
    case_start(w, PROXY_A);
    case_start(w, PROXY_B);
    if (warm_a) {
        fill(w, true);
        warm(w, PROXY_A);
    }
    if (warm_b) {
        fill(w, true);
        warm(w, PROXY_B);
    }
    CHECK(!w->base.failed);
    history_fini(&w->history);
    history_init(&w->history, &scene->first, scene->policy->refuse);
    fill(w, false);
    w->base.now_us = START_US;
    trace_mode = trace ? TRACE_PRINT : TRACE_OFF;
    trace_listing(w, "begins with", &scene->first);
}

void case_fini(struct native_world *w)
{
    static const unsigned none[SERVERS_MAX];
    trace_mode = TRACE_OFF;
    for (unsigned i = 0; i < PROXIES; i++) {
        if (w->proxies[i].base.engine != NULL) {
            case_crash(w, i, none);
        }
    }
    world_drop_late(&w->base);
    history_fini(&w->history);
}
