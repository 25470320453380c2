/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole list engine before a backend that lies (liar.h), watched by the auditor (audit.h). The
 * input is a script: calls are submitted, requests answered truly or not, strangers write, time
 * passes, the engine crashes. At the end the backend stays as it is, for good, and every call must
 * be answered within some seconds of virtual time.
 *
 *     byte 0, 1   settings and sizes; how the backend behaves at the end
 *     then        one byte per step, see step()
 *
 * FUZZ_TRACE=1 in the environment prints what happens.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/log.h"
#include "dialect/dialects.h"
#include "liar.h"
#include "list/core/cache.h"
#include "list/core/op.h"
#include "list/core/run_index.h"
#include "list/engine.h"
#include "tx.h"

#define CALLS_MAX 40
#define CALL_ITEMS_MAX 12
#define SESSIONS 3
/* A run goes on at once so often, at most, when it asks for that. */
#define TURNS_MAX 1000
/* What may happen after the input's end. */
#define END_REPLIES_MAX 60000
/* Deletions in a row: garbage of millions of sublists. */
#define HOUSEKEEPING_MAX 1000
#define END_US (100 * 1000000ULL)
/* Time passes with each: an operation that goes on while a server lies goes on until a time. */
#define END_REPLY_US 1000

struct fuzz_call {
    struct list_call call;
    struct slice items[CALL_ITEMS_MAX];
    struct tx_lists tx;
    bool open;
};

enum ending { END_HONEST, END_DOWN, END_LOST, END_REFUSING, END_PRETENDING, END_EMPTY, ENDINGS };

struct world {
    struct input in;
    struct config *config;
    struct list_policy *policy;
    struct cache *cache;
    struct run_indexes *indexes;
    struct rng rng;
    struct metrics metrics;
    struct engine *engine;
    struct now now;
    uint64_t next_us;
    struct list_session sessions[SESSIONS];
    struct fuzz_call calls[CALLS_MAX];
    size_t call_count;
    unsigned open_calls;
    struct request_queue pending;
    size_t pending_count;
    struct liar liar;
    struct audit audit;
    enum ending ending;
    unsigned housekeeping; /* replies in a row to what only tidies up */
};

static const struct slice keys[AUDIT_LISTS] = {{"k", 1}, {"kk", 2}};

/* ---- trace ---- */

static bool trace_wanted;

static void trace_reply(const struct world *w, const struct list_request *r,
                        const struct be_reply *reply)
{
    char sent[100], told[100];
    if (trace_wanted) {
        printf("%9llu %-10s %-24.*s %s  ->  %s  %s\n", (unsigned long long)w->now.mono_us,
               be_verb_name(r->be.verb), (int)r->be.key.len, r->key,
               slice_escape(r->be.value, sent, sizeof sent), be_status_name(reply->status),
               slice_escape(reply->value, told, sizeof told));
    }
}

static void trace_call(const struct world *w, const char *what, const struct list_call *call)
{
    if (trace_wanted) {
        printf("%9llu %s call %zu: verb %d key %.*s items %zu, status %d number %llu %s\n",
               (unsigned long long)w->now.mono_us, what,
               (size_t)((const struct fuzz_call *)call->owner - w->calls), (int)call->verb,
               SLICE_ARGS(call->key), call->item_count, (int)call->status,
               (unsigned long long)call->number, call->error);
    }
}

static void trace_step(const struct world *w, const char *what)
{
    if (trace_wanted) {
        printf("%9llu %s\n", (unsigned long long)w->now.mono_us, what);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    trace_wanted = getenv("FUZZ_TRACE") != NULL;
    if (trace_wanted) {
        (void)setvbuf(stdout, NULL, _IOLBF, 0); /* the last line before a crash matters most */
    }
    setlinebuf(stdout);
    /* Damaged lists are logged as errors. */
    CHECK(log_open("/dev/null", LOG_ERROR_LEVEL) == 0);
    return 0;
}

/* ---- the world ---- */

static struct config *make_config(void)
{
    char error[CONFIG_ERROR_MAX];
    struct config *config = config_create();
    CHECK(config_add_pool(config, "test", "127.0.0.1:11211", error) == 0);
    CHECK(config_finish(config, error) == 0);
    config->tracked_lists = 16;
    config->deadline_ms = 100; /* a full log is looked at once per millisecond so long */
    return config;
}

static void start_engine(struct world *w)
{
    static const uint64_t cache_sizes[] = {1 << 20, 0, 4096, 512};
    w->cache = cache_create(cache_sizes[w->policy->cache_bytes & 3]);
    /* Where there are no views. So few bits that sublists are looked into in vain. */
    w->indexes = run_indexes_create(1 << 16, w->policy->sublist_limit_bytes > 64 ? 2 : 6);
    w->engine = engine_create(w->config, &w->cache, &dialects, &w->rng, &w->metrics);
    engine_set_run_indexes(w->engine, w->indexes);
    memset(w->sessions, 0, sizeof w->sessions);
    STAILQ_INIT(&w->pending);
    w->pending_count = 0;
}

static void world_init(struct world *w, const uint8_t *data, size_t size)
{
    static const uint64_t item_sizes[] = {1 << 20, 4096, 2048, 1024};
    static const uint64_t view_sizes[] = {1 << 20, 0, 20000, 8000};
    static struct config *config; /* made once */
    if (config == NULL) {
        config = make_config();
    }
    *w = (struct world){.in = input_make(data, size), .config = config, .now = {1000, 1700000000}};
    uint8_t a = input_byte(&w->in), b = input_byte(&w->in);
    w->policy = &config->lists[0];
    w->policy->on_missing = a & 1 ? ON_MISSING_REFUSE : ON_MISSING_CREATE;
    w->policy->on_damaged = a & 2 ? ON_DAMAGED_MISS : ON_DAMAGED_ERROR;
    w->policy->placement = a & 4 ? PLACEMENT_SPREAD : PLACEMENT_HEAD;
    w->policy->delimiter = a & 8 ? -1 : ',';
    w->policy->touch_interval_s = a & 16 ? 1 : 0;
    w->policy->cache_bytes = a >> 5 & 3;
    w->policy->log_limit_bytes = b & 1 ? 256 : 64;
    w->policy->log_hard_limit_bytes = b & 1 ? 1024 : 320;
    w->policy->sublist_limit_bytes = b & 2 ? 512 : 64;
    w->policy->max_item_bytes = 70;
    w->policy->fold_memory_bytes = b & 4 ? 8192 : 1 << 20;
    w->policy->max_answer_bytes = b & 8 ? 64 : 1 << 20;
    w->policy->announcement_grace_s = 300;
    config->view_bytes = view_sizes[b >> 6];
    w->ending = (enum ending)((b >> 4) % ENDINGS);
    rng_init_seed(&w->rng, 1);
    liar_init(&w->liar, &w->in, &w->audit, item_sizes[a >> 7 ? b >> 6 : 0]);
    start_engine(w);
}

static void free_pending(struct world *w)
{
    while (!STAILQ_EMPTY(&w->pending)) {
        struct list_request *r = STAILQ_FIRST(&w->pending);
        STAILQ_REMOVE_HEAD(&w->pending, link);
        block_unref(&r->be.block);
        free(r);
    }
}

/* The calls that are open are never answered, as after a crash. */
static void stop_engine(struct world *w)
{
    engine_destroy(&w->engine);
    free_pending(w);
    cache_destroy(&w->cache);
    run_indexes_destroy(&w->indexes);
    audit_crash(&w->audit);
    for (size_t i = 0; i < w->call_count; i++) {
        if (w->calls[i].open) {
            w->calls[i].open = false;
            chain_fini(&w->calls[i].call.answer);
        }
    }
    w->open_calls = 0;
}

/* ---- calls ---- */

static bool is_change(enum list_verb verb)
{
    return list_verb_changes(verb) || verb == LIST_DROP;
}

static bool is_about(const struct list_call *call, struct slice key)
{
    return slice_equal(call->key, key) || list_verb_kind(call->verb) == LIST_KIND_TX;
}

static bool takes_items(enum list_verb verb)
{
    bool others = verb == LIST_COPY || verb == LIST_POP || verb == LIST_POPTO;
    return (list_verb_changes(verb) && !others) || verb == LIST_HAS;
}

static void fill_items(struct world *w, struct fuzz_call *c)
{
    enum list_verb verb = c->call.verb;
    bool may_be_none = verb == LIST_SET || verb == LIST_CREATE || verb == LIST_PUT;
    unsigned count = input_below(&w->in, 8);
    if (count == 7) { /* many, from few bytes; none of the long ones */
        uint8_t first = input_byte(&w->in);
        for (size_t i = 0; i < CALL_ITEMS_MAX; i++) {
            uint8_t which = (uint8_t)(first + i);
            c->items[c->call.item_count++] = fuzz_item((uint8_t)(which - (which % 16 == 15)));
        }
        return;
    }
    count += count == 0 && !may_be_none;
    for (c->call.item_count = 0; c->call.item_count < count; c->call.item_count++) {
        c->items[c->call.item_count] = fuzz_item(input_byte(&w->in));
    }
}

/* The version is that of the head that was seen last. */
static void choose_condition(struct world *w, struct fuzz_call *c)
{
    static const enum list_condition conditions[] = {LIST_ALWAYS, LIST_IF_MISSING, LIST_IF_PRESENT,
                                                     LIST_IF_VERSION};
    c->call.condition = conditions[input_below(&w->in, 4)];
    c->call.expected =
        w->audit.head_count > 0 ? w->audit.heads[w->audit.head_count - 1].version : 1;
}

/* As inputs number them. */
static const enum list_verb verbs[] = {LIST_ADD,    LIST_DEL,     LIST_SET, LIST_ADDX, LIST_DELX,
                                       LIST_CREATE, LIST_GET,     LIST_HAS, LIST_LEN,  LIST_RANGE,
                                       LIST_DROP,   LIST_COMPACT, LIST_STAT};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static void submit(struct world *w)
{
    if (w->call_count == CALLS_MAX) {
        return;
    }
    struct fuzz_call *c = &w->calls[w->call_count++];
    uint8_t choice = input_byte(&w->in);
    enum list_verb verb = verbs[choice % VERBS];
    unsigned rest = choice / VERBS;
    if (verb == LIST_RANGE && rest >= 16) { /* numbered later than the others */
        verb = LIST_REVRANGE;
    } else if (verb == LIST_CREATE && rest >= 14) {
        verb = LIST_PUT;
    } else if (verb == LIST_SET && rest >= 14) {
        verb = LIST_COPY;
    } else if (verb == LIST_DELX && rest >= 12) {
        verb = LIST_POP;
    } else if (verb == LIST_ADDX && rest >= 12) {
        verb = rest < 16 ? LIST_TX : rest < 18 ? LIST_MOVE : LIST_POPTO;
    } else if (verb == LIST_LEN && rest >= 10) {
        verb = rest < 13 ? LIST_RANDOM : rest < 16 ? LIST_AFTER : LIST_BEFORE;
    }
    *c = (struct fuzz_call){.open = true};
    c->call.verb = verb;
    c->call.form = rest & 1 ? LIST_FORM_ITEMS : LIST_FORM_JOINED;
    c->call.key = keys[rest >> 1 & 1];
    c->call.wants_version = true;
    c->call.session = &w->sessions[(rest >> 2) % SESSIONS];
    c->call.policy = w->policy;
    c->call.items = c->items;
    c->call.owner = c;
    if (verb == LIST_PUT) {
        choose_condition(w, c);
    } else if (verb == LIST_COPY) {
        c->call.source = keys[!(rest >> 1 & 1)];
        c->call.source_policy = w->policy;
    }
    if (takes_items(verb)) {
        fill_items(w, c);
    } else if (list_verb_has(verb, LIST_RANGES)) {
        c->call.from = (int8_t)input_byte(&w->in);
        c->call.to = (int8_t)input_byte(&w->in);
    } else if (list_verb_has(verb, LIST_PICKS | LIST_TAKES)) {
        c->call.count = (int8_t)input_byte(&w->in);
    }
    if (list_verb_kind(verb) == LIST_KIND_TX) {
        tx_lists_fill(&c->tx, &c->call, keys, &w->in);
    }
    if (list_verb_has(verb, LIST_PAGES)) {
        c->items[c->call.item_count++] = fuzz_item(input_byte(&w->in));
    }
    chain_init(&c->call.answer);
    w->open_calls++;
    trace_call(w, "submit", &c->call);
    c->call.deadline_us = w->now.mono_us + (uint64_t)w->config->deadline_ms * 1000;
    engine_submit(w->engine, &c->call, w->now);
}

static void take_done(struct world *w)
{
    struct list_call *call;
    while ((call = engine_take_done(w->engine)) != NULL) {
        struct fuzz_call *c = call->owner;
        CHECK(c->open && &c->call == call);
        trace_call(w, "done", call);
        CHECK((call->status == LIST_CLIENT_ERROR || call->status == LIST_SERVER_ERROR) ==
              (call->error[0] != '\0'));
        CHECK(memchr(call->error, '\0', sizeof call->error) != NULL);
        audit_done(&w->audit, call);
        chain_fini(&call->answer);
        c->open = false;
        w->open_calls--;
    }
}

/* ---- requests ---- */

/* Is nothing under way that changes this list's content? */
static bool content_stays(const struct world *w, const struct list_request *r)
{
    struct slice key =
        slice_make(r->key, (size_t)((char *)memchr(r->key, '#', r->be.key.len) - r->key));
    for (size_t i = 0; i < w->call_count; i++) {
        const struct fuzz_call *c = &w->calls[i];
        if (c->open && is_change(c->call.verb) && is_about(&c->call, key)) {
            return false;
        }
    }
    return w->policy->on_damaged == ON_DAMAGED_ERROR;
}

static void take_requests(struct world *w)
{
    struct list_request *r;
    while ((r = engine_take_request(w->engine)) != NULL) {
        audit_sent(&w->audit, r, content_stays(w, r));
        CHECK(r->be.value.len == 0 || r->be.block != NULL);
        STAILQ_INSERT_TAIL(&w->pending, r, link);
        w->pending_count++;
    }
}

/* Lets the engine go as far as it can. */
static void turn(struct world *w)
{
    unsigned turns = 0;
    do {
        CHECK(++turns < TURNS_MAX);
        w->next_us = engine_run(w->engine, w->now);
        take_requests(w);
        take_done(w);
    } while (w->next_us <= w->now.mono_us);
}

/* Requests of one key are answered in their order. */
static struct list_request *pick(struct world *w, size_t which)
{
    struct list_request *wanted = STAILQ_FIRST(&w->pending), *r;
    for (which %= w->pending_count; which > 0; which--) {
        wanted = STAILQ_NEXT(wanted, link);
    }
    STAILQ_FOREACH(r, &w->pending, link)
    {
        if (slice_equal(r->be.key, wanted->be.key)) {
            return r;
        }
    }
    return wanted;
}

static void give_back(struct world *w, struct list_request *r, struct be_reply *reply)
{
    bool tidies = r->be.verb == BE_DELETE || r->be.verb == BE_PROBE;
    w->housekeeping = tidies ? w->housekeeping + 1 : 0;
    STAILQ_REMOVE(&w->pending, r, list_request, link);
    w->pending_count--;
    trace_reply(w, r, reply);
    audit_told(&w->audit, r, reply);
    struct block *block = reply->block;
    engine_reply(w->engine, r, reply, w->now);
    block_unref(&block);
}

static void answer(struct world *w, size_t which)
{
    if (w->pending_count > 0) {
        struct list_request *r = pick(w, which);
        struct be_reply reply;
        liar_answer(&w->liar, r, w->now, &reply);
        give_back(w, r, &reply);
    }
}

static void lie(struct world *w, size_t which, enum lie how)
{
    if (w->pending_count > 0) {
        struct list_request *r = pick(w, which);
        struct be_reply reply;
        liar_lie(&w->liar, how, r, w->now, &reply);
        give_back(w, r, &reply);
    }
}

/* Answers truly until nothing is left to answer, or so many times. */
static void answer_all(struct world *w, unsigned most)
{
    while (w->pending_count > 0 && most-- > 0) {
        answer(w, 0);
        turn(w);
    }
}

/* The same, up to the next request of that kind. */
static void answer_up_to(struct world *w, enum be_verb verb)
{
    unsigned most = 200;
    while (w->pending_count > 0 && STAILQ_FIRST(&w->pending)->be.verb != verb && most-- > 0) {
        answer(w, 0);
        turn(w);
    }
}

/* The connection is gone, with all that was on its way. */
static void reconnect(struct world *w, bool done)
{
    trace_step(w, "connection lost");
    while (w->pending_count > 0) {
        lie(w, 0, done ? LIE_LOST_DONE : LIE_LOST);
    }
    w->liar.epoch++;
}

/* ---- the script ---- */

static void pass_time(struct world *w, unsigned how)
{
    static const uint64_t steps_us[] = {100, 3000, 1000000, 400 * 1000000ULL};
    uint64_t step_us = steps_us[how & 3];
    if (w->next_us != UINT64_MAX && (how & 4) != 0) {
        step_us = w->next_us - w->now.mono_us;
    }
    w->now.mono_us += step_us;
    w->now.wall_s = 1700000000 + (int64_t)(w->now.mono_us / 1000000);
}

static void step(struct world *w)
{
    uint8_t byte = input_byte(&w->in);
    unsigned how = byte >> 3;
    switch (byte & 7) {
    case 0:
    case 1:
        submit(w);
        break;
    case 2:
        answer(w, how);
        break;
    case 3:
        answer_all(w, how == 0 ? 1000 : how);
        break;
    case 4:
        lie(w, how / LIES, (enum lie)(how % LIES));
        break;
    case 5:
        trace_step(w, "a stranger writes");
        liar_stranger(&w->liar, keys[how & 1], w->now);
        break;
    case 6:
        pass_time(w, how);
        break;
    case 7:
        if (how < 8) {
            reconnect(w, (how & 1) != 0);
        } else if (how < 10) {
            trace_step(w, "crash");
            stop_engine(w);
            start_engine(w);
        } else if (how < 14) {
            w->liar.store.out_of_memory = (how & 1) != 0;
        } else if (how < 30) {
            static const enum be_verb verbs[] = {BE_CAS,    BE_CAS,     BE_ADD,        BE_APPEND,
                                                 BE_DELETE, BE_REPLACE, BE_CAS_DELETE, BE_SIZE};
            answer_up_to(w, verbs[how & 7]);
        } else {
            answer_all(w, 1000);
        }
        break;
    }
    turn(w);
}

/* ---- the end ---- */

static enum lie end_lie(const struct world *w, const struct list_request *r)
{
    bool reads = r->be.verb < BE_ADD;
    switch (w->ending) {
    case END_DOWN:
        return LIE_DOWN;
    case END_LOST:
        return LIE_LOST;
    case END_REFUSING:
    case END_PRETENDING:
        return reads ? LIES : LIE_STATUS;
    case END_EMPTY:
        return LIE_STATUS;
    default:
        return LIES;
    }
}

/* With the input at its end, LIE_STATUS is the verb's first: missing, stored, deleted. */
static void answer_at_end(struct world *w)
{
    struct list_request *r = pick(w, 0);
    enum lie how = end_lie(w, r);
    w->now.mono_us += END_REPLY_US;
    struct be_reply reply;
    if (how == LIES) {
        liar_answer(&w->liar, r, w->now, &reply);
    } else {
        liar_lie(&w->liar, how, r, w->now, &reply);
    }
    if (w->ending == END_REFUSING && how == LIE_STATUS) {
        bool compares = r->be.verb == BE_CAS || r->be.verb == BE_CAS_DELETE;
        bool finds = r->be.verb == BE_DELETE || r->be.verb == BE_INCR;
        reply.status = compares ? BE_EXISTS : finds ? BE_NOT_FOUND : BE_NOT_STORED;
    }
    give_back(w, r, &reply);
}

/* True when all calls are answered and nothing is left to do. False: garbage of millions of
 * sublists is being deleted, which has an end, but not soon. */
static bool settle(struct world *w)
{
    uint64_t end_us = w->now.mono_us + END_US;
    trace_step(w, "the input ends");
    for (unsigned replies = 0; w->pending_count > 0 || w->open_calls > 0 || engine_busy(w->engine);
         replies++) {
        CHECK(replies < END_REPLIES_MAX);
        if (w->housekeeping > HOUSEKEEPING_MAX) {
            return false;
        }
        if (w->pending_count > 0) {
            answer_at_end(w);
        } else {
            CHECK(w->next_us != UINT64_MAX); /* else it would wait for ever */
            w->now.mono_us = w->next_us;
            CHECK(w->now.mono_us < end_us);
        }
        turn(w);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w; /* large */
    world_init(&w, data, size);
    while (input_more(&w.in)) {
        step(&w);
    }
    (void)settle(&w);
    stop_engine(&w);
    liar_fini(&w.liar);
    audit_fini(&w.audit);
    return 0;
}
