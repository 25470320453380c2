/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialects.h"

#include "base/check.h"

/* When a case begins. */
#define START_US 1000000000ULL

/* ---- answers ---- */

static void take_items(struct asked *asked)
{
    enum { IOV_MAX_ASKED = 64 };
    char text[4 * LETTERS];
    struct iovec iov[IOV_MAX_ASKED];
    size_t len = 0, count = 0, pieces = chain_iov(&asked->call.answer, iov, IOV_MAX_ASKED);
    for (size_t i = 0; i < pieces; i++) {
        CHECK(len + iov[i].iov_len <= sizeof text);
        memcpy(text + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    CHECK(len / 2 < LETTERS);
    for (size_t i = 0; i < len; i += 2) {
        letters bit = (letters)1 << (text[i] - 'a');
        asked->twice = asked->twice || (asked->held & bit) != 0;
        asked->held |= bit;
        asked->order[count++] = text[i];
    }
    asked->order[count] = '\0';
}

static void done(struct world *w, struct proxy *p, struct list_call *call)
{
    struct asked *asked = call->owner;
    asked->end = call_end_of(call);
    asked->busy = strstr(call->error, "busy") != NULL;
    if (asked->end == CALL_DONE && call->verb == LIST_GET) {
        take_items(asked);
    }
    trace(w, "%c answers %s: %s %s", p->name, asked->spec->name,
          call->error[0] != '\0' ? call->error : "well", asked->order);
}

static const struct driver driver = {
    .list_key = {LIST_KEY, sizeof LIST_KEY - 1}, .steps_max = STEPS_MAX, .done = done};

/* ---- proxies ---- */

static const struct config *config_of(const struct dialect_world *w, unsigned proxy)
{
    return proxy == PROXY_D ? w->native : w->config;
}

void steps_start(struct dialect_world *w, unsigned proxy)
{
    struct dialect_proxy *p = &w->proxies[proxy];
    memset(p, 0, sizeof *p);
    p->base.name = (char)('A' + proxy);
    proxy_start(&w->base, &p->base, config_of(w, proxy), 0, LOCATOR_CHECK_BITS,
                1000 + w->base.last_epoch);
    chain_init(&p->asked.call.answer);
    TAILQ_INIT(&p->session.deferred);
}

void steps_ask(struct dialect_world *w, unsigned proxy, const struct op_spec *spec)
{
    struct dialect_proxy *p = &w->proxies[proxy];
    struct asked *asked = &p->asked;
    struct list_call *call = &asked->call;
    chain_fini(&call->answer);
    *asked = (struct asked){.spec = spec};
    chain_init(&call->answer);
    call->verb = spec->verb;
    call->key = SLICE_LIT(LIST_KEY);
    call->policy = &config_of(w, proxy)->lists[0];
    call->session = &p->session;
    call->owner = asked;
    call->items = asked->items;
    for (const char *at = spec->items; at != NULL && *at != '\0'; at++) {
        asked->items[call->item_count++] = slice_make(at, 1);
    }
    p->base.steps = 0;
    trace(&w->base, "%c is asked: %s", p->base.name, spec->name);
    proxy_submit(&w->base, &p->base, call);
    proxy_turn(&w->base, &p->base);
}

bool steps_take(struct dialect_world *w, unsigned proxy, unsigned steps)
{
    return proxy_steps(&w->base, &w->proxies[proxy].base, steps);
}

void steps_rest(struct dialect_world *w, unsigned proxy)
{
    proxy_rest(&w->base, &w->proxies[proxy].base);
}

const struct asked *steps_do(struct dialect_world *w, unsigned proxy, const struct op_spec *spec)
{
    if (w->proxies[proxy].base.engine == NULL) {
        steps_start(w, proxy);
    }
    steps_ask(w, proxy, spec);
    steps_rest(w, proxy);
    return &w->proxies[proxy].asked;
}

/* ---- faults ---- */

static const unsigned arrivals[LOST_KINDS] = {0, 1, ARRIVE_ALL, ARRIVE_ALL};

void steps_lose(struct dialect_world *w, unsigned proxy, enum lost lost)
{
    proxy_lose(&w->base, &w->proxies[proxy].base, 0, arrivals[lost], lost == LOST_LATE);
}

void steps_crash(struct dialect_world *w, unsigned proxy, enum lost lost)
{
    struct dialect_proxy *p = &w->proxies[proxy];
    const unsigned arrive[SERVERS_MAX] = {arrivals[lost]};
    proxy_crash(&w->base, &p->base, arrive, lost == LOST_LATE);
    chain_fini(&p->asked.call.answer);
}

void steps_touch(struct dialect_world *w)
{
    struct item *item;
    w->base.end_s = world_now(&w->base).wall_s + 1000000;
    TAILQ_FOREACH(item, &w->base.stores[0].items, link)
    {
        item->expires_s = w->base.end_s;
    }
}

/* ---- beginning and end ---- */

void steps_init(struct dialect_world *w, const struct config *config, const struct config *native)
{
    if (w->base.driver == NULL) {
        world_init(&w->base, 1, false, 1 << 20);
        w->base.driver = &driver;
    }
    world_begin(&w->base, 1, false, START_US);
    memset(w->proxies, 0, sizeof w->proxies);
    w->config = config;
    w->native = native;
}

void steps_fini(struct dialect_world *w)
{
    for (unsigned i = 0; i < PROXIES; i++) {
        if (w->proxies[i].base.engine != NULL) {
            steps_crash(w, i, LOST_NONE);
        }
    }
    world_drop_late(&w->base);
}
