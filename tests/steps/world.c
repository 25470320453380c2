/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "dialect/dialects.h"
#include "list/core/expiry.h"

/* A request and its answer take so long. */
#define STEP_US 10

static struct now world_now(const struct world *w)
{
    return (struct now){w->now_us, 1700000000 + (int64_t)(w->now_us / 1000000)};
}

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

static void take_answers(struct world *w, struct proxy *p)
{
    struct list_call *call;
    while ((call = engine_take_done(p->engine)) != NULL) {
        struct asked *asked = call->owner;
        bool unknown = strstr(call->error, "outcome unknown") != NULL;
        asked->end = CALL_DONE;
        if (call->status == LIST_SERVER_ERROR || call->status == LIST_CLIENT_ERROR) {
            asked->end = unknown ? CALL_UNKNOWN : CALL_REFUSED;
            asked->busy = strstr(call->error, "busy") != NULL;
        } else if (call->verb == LIST_GET) {
            take_items(asked);
        }
        if (w->trace) {
            printf("  %c answers %s: %s%s%s\n", (int)('A' + (p - w->proxies)), asked->spec->name,
                   call->error[0] != '\0' ? call->error : "well", call->verb == LIST_GET ? " " : "",
                   asked->order);
        }
    }
}

/* ---- steps ---- */

static void take_requests(struct world *w, struct proxy *p)
{
    struct be_request *r;
    p->wake_us = engine_run(p->engine, world_now(w));
    while ((r = engine_take_request(p->engine)) != NULL) {
        struct flight *f = calloc(1, sizeof *f);
        CHECK(f != NULL);
        f->request = r;
        TAILQ_INSERT_TAIL(&p->flights, f, link);
    }
    take_answers(w, p);
}

/* In which second the item expires; 0: never, or there is none. */
static int64_t end_of(struct world *w, const struct be_request *r)
{
    const struct item *item =
        store_find(&w->store, slice_make(r->key, r->key_len), world_now(w).wall_s);
    return item == NULL ? 0 : item->expires_s;
}

static void check_time(struct world *w, const struct be_request *r, int64_t before_s)
{
    int64_t end_s = end_of(w, r);
    bool keeps = r->verb == BE_CAS && end_s == before_s;
    bool takes = r->verb == BE_ADD && (end_s == 0 || end_s == w->end_s);
    bool clock = clock_key_is(slice_make(r->key, r->key_len));
    w->mistimed = w->mistimed || !(clock || keeps || takes);
}

static void execute(struct world *w, const struct proxy *p, struct be_request *r,
                    struct be_reply *reply)
{
    bool guarded = r->verb == BE_CAS || r->verb == BE_CAS_DELETE;
    int64_t before_s = end_of(w, r);
    w->now_us += STEP_US;
    *reply = (struct be_reply){0};
    if (p->down) {
        *reply = (struct be_reply){.status = BE_DOWN, .text = "backend s: down"};
    } else if (guarded && r->epoch != p->epoch) {
        *reply = (struct be_reply){.status = BE_EXISTS, .epoch = p->epoch};
    } else {
        store_execute(&w->store, r, world_now(w).wall_s, reply);
        reply->epoch = p->epoch;
    }
    if (reply->status == BE_STORED && (r->verb == BE_CAS || r->verb == BE_ADD)) {
        check_time(w, r, before_s);
    }
    if (w->trace) {
        char shown[200];
        struct slice value = r->value.len > 0 ? r->value : reply->value;
        printf("  %c %-10s %-18.*s -> %s  %s\n", (int)('A' + (p - w->proxies)),
               be_verb_name(r->verb), (int)r->key_len, r->key, be_status_name(reply->status),
               slice_escape(value, shown, sizeof shown));
    }
}

/* False when the proxy has come to rest. */
static bool step(struct world *w, struct proxy *p)
{
    struct be_reply reply = {0};
    take_requests(w, p);
    while (TAILQ_EMPTY(&p->flights)) {
        if (!engine_busy(p->engine) || p->wake_us == UINT64_MAX) {
            return false;
        }
        w->now_us = p->wake_us > w->now_us ? p->wake_us : w->now_us + 1;
        take_requests(w, p);
    }
    if (++p->steps > STEPS_MAX) {
        w->stuck = true;
        return false;
    }
    struct flight *f = TAILQ_FIRST(&p->flights);
    execute(w, p, f->request, &reply);
    TAILQ_REMOVE(&p->flights, f, link);
    engine_reply(p->engine, f->request, &reply, world_now(w));
    block_unref(&reply.block);
    free(f);
    take_requests(w, p);
    return true;
}

bool world_steps(struct world *w, unsigned proxy, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        if (!step(w, &w->proxies[proxy])) {
            return false;
        }
    }
    return true;
}

void world_rest(struct world *w, unsigned proxy)
{
    while (step(w, &w->proxies[proxy])) {
    }
}

/* ---- proxies ---- */

void world_start(struct world *w, unsigned proxy)
{
    struct proxy *p = &w->proxies[proxy];
    const struct config *config = proxy == PROXY_D ? w->native : w->config;
    memset(p, 0, sizeof *p);
    rng_init_seed(&p->rng, 1000 + w->last_epoch);
    TAILQ_INIT(&p->flights);
    p->cache = cache_create(0);
    p->engine = engine_create(config, &p->cache, &dialects, &p->rng, &p->metrics);
    p->epoch = ++w->last_epoch;
    chain_init(&p->asked.call.answer);
    TAILQ_INIT(&p->session.held);
}

void world_ask(struct world *w, unsigned proxy, const struct op_spec *spec)
{
    struct proxy *p = &w->proxies[proxy];
    struct asked *asked = &p->asked;
    struct list_call *call = &asked->call;
    chain_fini(&call->answer);
    *asked = (struct asked){.spec = spec};
    chain_init(&call->answer);
    call->verb = spec->verb;
    call->key = SLICE_LIT(LIST_KEY);
    call->policy = &(proxy == PROXY_D ? w->native : w->config)->lists[0];
    call->session = &p->session;
    call->owner = asked;
    call->items = asked->items;
    for (const char *at = spec->items; at != NULL && *at != '\0'; at++) {
        asked->items[call->item_count++] = slice_make(at, 1);
    }
    p->steps = 0;
    if (w->trace) {
        printf("  %c is asked: %s\n", 'A' + (int)proxy, spec->name);
    }
    engine_submit(p->engine, call, world_now(w));
    take_requests(w, p);
}

const struct asked *world_do(struct world *w, unsigned proxy, const struct op_spec *spec)
{
    if (w->proxies[proxy].engine == NULL) {
        world_start(w, proxy);
    }
    world_ask(w, proxy, spec);
    world_rest(w, proxy);
    return &w->proxies[proxy].asked;
}

/* ---- lost connections ---- */

/* The engine may have its request back, or is about to go: what arrives late is a copy. */
static void keep_late(struct world *w, const struct be_request *r)
{
    struct flight *f = calloc(1, sizeof *f);
    CHECK(f != NULL);
    f->request = malloc(sizeof *f->request);
    CHECK(f->request != NULL);
    *f->request = *r;
    f->request->block = r->block != NULL ? block_ref(r->block) : NULL;
    TAILQ_INSERT_TAIL(&w->late, f, link);
}

static void settle_lost(struct world *w, struct proxy *p, enum lost lost)
{
    struct flight *f;
    bool first = true;
    TAILQ_FOREACH(f, &p->flights, link)
    {
        struct be_reply reply = {0};
        if (lost == LOST_ALL || (lost == LOST_FIRST && first)) {
            execute(w, p, f->request, &reply);
            block_unref(&reply.block);
        } else if (lost == LOST_LATE) {
            keep_late(w, f->request);
        }
        first = false;
    }
}

void world_lose(struct world *w, unsigned proxy, enum lost lost)
{
    struct proxy *p = &w->proxies[proxy];
    struct flights gone = TAILQ_HEAD_INITIALIZER(gone);
    struct flight *f;
    settle_lost(w, p, lost);
    p->epoch = ++w->last_epoch;
    TAILQ_CONCAT(&gone, &p->flights, link);
    if (w->trace) {
        printf("  %c loses its connection\n", 'A' + (int)proxy);
    }
    while ((f = TAILQ_FIRST(&gone)) != NULL) {
        struct be_reply reply = {.status = BE_LOST,
                                 .text = "backend s: connection lost, outcome unknown"};
        TAILQ_REMOVE(&gone, f, link);
        engine_reply(p->engine, f->request, &reply, world_now(w));
        free(f);
    }
    take_requests(w, p);
}

static void drop_flights(struct flights *flights)
{
    struct flight *f;
    while ((f = TAILQ_FIRST(flights)) != NULL) {
        TAILQ_REMOVE(flights, f, link);
        block_unref(&f->request->block);
        free(f->request);
        free(f);
    }
}

void world_crash(struct world *w, unsigned proxy, enum lost lost)
{
    struct proxy *p = &w->proxies[proxy];
    if (w->trace) {
        printf("  %c crashes\n", 'A' + (int)proxy);
    }
    settle_lost(w, p, lost);
    engine_destroy(&p->engine);
    drop_flights(&p->flights);
    chain_fini(&p->asked.call.answer);
    cache_destroy(&p->cache);
}

void world_arrive(struct world *w)
{
    struct flight *f;
    TAILQ_FOREACH(f, &w->late, link)
    {
        struct be_reply reply = {0};
        store_execute(&w->store, f->request, world_now(w).wall_s, &reply);
        block_unref(&reply.block);
        if (w->trace) {
            printf("  late: %s %.*s -> %s\n", be_verb_name(f->request->verb),
                   (int)f->request->key_len, f->request->key, be_status_name(reply.status));
        }
    }
    drop_flights(&w->late);
}

static void touch(void *arg, const struct item *item)
{
    struct world *w = arg;
    store_find(&w->store, item_key(item), world_now(w).wall_s)->expires_s = w->end_s;
}

void world_touch(struct world *w)
{
    w->end_s = world_now(w).wall_s + 1000000;
    store_each(&w->store, touch, w);
}

void world_init(struct world *w, const struct config *config, const struct config *native)
{
    memset(w->proxies, 0, sizeof w->proxies);
    w->config = config;
    w->native = native;
    w->now_us = 1000000000;
    w->last_epoch = 0;
    w->stuck = w->mistimed = false;
    w->end_s = 0;
    TAILQ_INIT(&w->late);
}

void world_fini(struct world *w)
{
    for (unsigned i = 0; i < PROXIES; i++) {
        if (w->proxies[i].engine != NULL) {
            world_crash(w, i, LOST_NONE);
        }
    }
    drop_flights(&w->late);
    store_restart(&w->store);
}
