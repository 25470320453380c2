/* SPDX-License-Identifier: BSD-3-Clause */
#include "transactions.h"

#include <stdio.h>

#include "../world/seen.h"
#include "../world/settings.h"
#include "list/core/expiry.h"

#define START_US 1000000000ULL
#define DEADLINE_US 1000000000ULL
#define STEPS_MAX 600
#define GRACE_S 2

static struct slice key_of(unsigned list)
{
    static const char keys[] = "ABC";
    return slice_make(&keys[list], 1);
}

static bool read_state(struct atomic_world *w, struct state *state, struct stored stored[LISTS])
{
    static struct ids items;
    int64_t now_s = world_now(&w->base).wall_s;
    bool good = true;
    for (unsigned i = 0; i < LISTS; i++) {
        model_decode(&w->base.cluster, key_of(i), now_s, &items, &stored[i]);
        good = good && !stored[i].malformed && !stored[i].sublist_missing;
        state->items[i] = 0;
        for (uint32_t n = 0; n < items.count; n++) {
            good = good && items.ids[n] < ITEMS;
            state->items[i] |= (uint8_t)(1u << items.ids[n]);
        }
    }
    return good;
}

static void executed(struct world *base, struct proxy *proxy, const struct flight *f)
{
    static struct seen good;
    struct state state;
    struct stored stored[LISTS];
    (void)proxy;
    uint64_t hash = flight_has_changed(f) ? world_hash(base) : 0;
    if (hash == 0 || seen_has(&good, hash)) {
        return;
    }
    if (read_state((struct atomic_world *)base, &state, stored)) {
        seen_add(&good, hash);
    } else {
        world_violation(base, "malformed after %s", f->step);
    }
}

static void done(struct world *base, struct proxy *proxy, struct list_call *call)
{
    struct asked *a = call->owner;
    char text[512];
    a->answered_at = ++a->world->moment;
    asked_answered(a);
    asked_describe(a, text, sizeof text);
    trace(base, "%c: %s", proxy->name, text);
}

static const struct driver driver = {
    .list_key = {"A", 1},
    .steps_max = STEPS_MAX,
    .executed = executed,
    .done = done,
};

static void start(struct atomic_world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy].base;
    memset(&w->proxies[proxy], 0, sizeof w->proxies[proxy]);
    TAILQ_INIT(&p->flights);
    p->name = (char)('P' + proxy);
    proxy_start(&w->base, p, w->config, 0, LOCATOR_CHECK_BITS, 1000 + proxy);
}

static void put(struct atomic_world *w, unsigned list, const char *digits)
{
    struct be_reply reply = {0};
    char value[256], name[KEY_BYTES_MAX];
    size_t used = (size_t)snprintf(value, sizeof value, "^1\n");
    for (; *digits != '\0'; digits++) {
        uint16_t id = (uint16_t)(*digits - '0');
        struct slice item = item_text(id);
        used += (size_t)snprintf(value + used, sizeof value - used, "+%zu:%.*s", item.len,
                                 SLICE_ARGS(item));
        w->first.items[list] |= (uint8_t)(1u << id);
    }
    int len = snprintf(name, sizeof name, "%.*s#", SLICE_ARGS(key_of(list)));
    struct slice key = slice_make(name, (size_t)len);
    struct be_operation r = {.verb = BE_ADD, .key = key, .value = slice_make(value, used)};
    store_execute(cluster_store(&w->base.cluster, key), &r, world_now(&w->base).wall_s, &reply);
    CHECK(reply.status == BE_STORED);
}

void atomic_begin(struct atomic_world *w, unsigned servers, const char *contents, bool trace)
{
    char copy[TEXT_MAX], *rest = copy;
    trace_mode = TRACE_OFF;
    if (w->base.driver == NULL) {
        world_init(&w->base, servers, false, 1 << 20);
        w->base.driver = &driver;
        w->config = settings_create(512, 8192, 512);
        w->config->lists[0].announcement_grace_s = GRACE_S;
        settings_finish(w->config);
    }
    world_begin(&w->base, servers, false, START_US);
    w->count = w->moment = 0;
    w->first = (struct state){0};
    snprintf(copy, sizeof copy, "%s", contents);
    for (unsigned i = 0; i < LISTS; i++) {
        const char *word = strsep(&rest, " ");
        if (*word != '-') {
            put(w, i, word[0] == '.' ? "" : word);
        }
    }
    for (unsigned i = 0; i + 1 < PROXIES; i++) {
        start(w, i);
    }
    trace_mode = trace ? TRACE_PRINT : TRACE_OFF;
}

void atomic_end(struct atomic_world *w)
{
    static const unsigned none[SERVERS_MAX];
    trace_mode = TRACE_OFF;
    for (unsigned i = 0; i < PROXIES; i++) {
        if (w->proxies[i].base.engine != NULL) {
            proxy_crash(&w->base, &w->proxies[i].base, none, false);
        }
    }
    world_drop_late(&w->base);
    for (unsigned i = 0; i < w->count; i++) {
        asked_fini(&w->calls[i]);
    }
}

void atomic_ask(struct atomic_world *w, unsigned proxy, const char *text)
{
    struct atomic_proxy *p = &w->proxies[proxy];
    CHECK(w->count < CALLS_MAX);
    struct asked *a = &w->calls[w->count++];
    asked_init(w, a, text);
    a->asked_at = ++w->moment;
    a->call.session = &p->session;
    a->call.deadline_us = w->base.now_us + DEADLINE_US;
    trace(&w->base, "%c is asked: %s", p->base.name, text);
    p->base.steps = 0;
    proxy_submit(&w->base, &p->base, &a->call);
    proxy_turn(&w->base, &p->base);
}

bool atomic_steps(struct atomic_world *w, unsigned proxy, unsigned steps)
{
    struct proxy *p = &w->proxies[proxy].base;
    return proxy_steps(&w->base, p, p->steps + steps) && proxy_wait_sent(&w->base, p);
}

void atomic_rest(struct atomic_world *w, unsigned proxy)
{
    proxy_rest(&w->base, &w->proxies[proxy].base);
}

static unsigned arriving(enum arrival arrival)
{
    return arrival == NOTHING_ARRIVES                         ? 0
           : arrival == ALL_ARRIVES || arrival == ALL_IS_LATE ? ARRIVE_ALL
                                                              : 1;
}

void atomic_crash(struct atomic_world *w, unsigned proxy, enum arrival arrival)
{
    unsigned arrive[SERVERS_MAX];
    for (unsigned s = 0; s < SERVERS_MAX; s++) {
        arrive[s] = arriving(arrival);
    }
    proxy_crash(&w->base, &w->proxies[proxy].base, arrive, arrival >= FIRST_IS_LATE);
}

void atomic_lose(struct atomic_world *w, unsigned proxy, enum arrival arrival)
{
    struct proxy *p = &w->proxies[proxy].base;
    const struct flight *next = TAILQ_FIRST(&p->flights);
    proxy_lose(&w->base, p, next->server, arriving(arrival), arrival >= FIRST_IS_LATE);
}

void atomic_arrive_late(struct atomic_world *w)
{
    world_arrive_late(&w->base);
}

static void print_calls(const struct atomic_world *w, const struct state *last)
{
    if (trace_mode == TRACE_OFF) {
        return;
    }
    for (unsigned i = 0; i < w->count; i++) {
        char text[512];
        asked_describe(&w->calls[i], text, sizeof text);
        trace(&w->base, "%u..%u %s", w->calls[i].asked_at, w->calls[i].answered_at, text);
    }
    trace(&w->base, "in the end: %x %x %x", last->items[0], last->items[1], last->items[2]);
}

static void check_end(struct atomic_world *w)
{
    struct state last;
    struct stored stored[LISTS];
    if (!read_state(w, &last, stored)) {
        world_violation(&w->base, "malformed in the end");
        return;
    }
    print_calls(w, &last);
    for (unsigned i = 0; i < LISTS; i++) {
        if (stored[i].intents + stored[i].decisions > 0) {
            world_violation(&w->base, "%u intents and %u decisions are left in %.*s",
                            stored[i].intents, stored[i].decisions, SLICE_ARGS(key_of(i)));
        }
        if (stored[i].exists && last.items[i] == 0) {
            world_violation(&w->base, "an empty head is left of %.*s", SLICE_ARGS(key_of(i)));
        }
    }
    for (unsigned i = 0; i < w->count; i++) {
        const struct asked *a = &w->calls[i];
        if (a->end == CALL_OPEN && w->proxies[PROXIES - 1].base.open > 0) {
            world_violation(&w->base, "%s is not answered", a->text);
        }
    }
    if (!w->base.failed && !explains(w, &last)) {
        world_violation(&w->base, "no order of the calls explains their answers and the end");
    }
}

void atomic_finish(struct atomic_world *w)
{
    static const char *const compact[] = {"lcompact A", "lcompact B", "lcompact C"};
    static const char *const reads[] = {"lget A", "lget B", "lget C"};
    const unsigned last = PROXIES - 1;
    w->base.now_us += (GRACE_S + 2) * 1000000ULL;
    start(w, last);
    for (unsigned i = 0; i < 2 * LISTS && !w->base.failed; i++) {
        atomic_ask(w, last, compact[i % LISTS]);
        atomic_rest(w, last);
    }
    for (unsigned i = 0; i < LISTS && !w->base.failed; i++) {
        atomic_ask(w, last, reads[i]);
        atomic_rest(w, last);
        if (!w->base.failed && w->calls[w->count - 1].end != CALL_DONE) {
            world_violation(&w->base, "%s in the end: %s", reads[i],
                            w->calls[w->count - 1].call.error);
        }
    }
    if (!w->base.failed) {
        check_end(w);
    }
}
