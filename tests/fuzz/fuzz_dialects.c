/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of each dialect, and native ones, before an honest memcached: the input draws batches of
 * calls of different verbs on one list, which travel together as far as the engine lets them. What
 * each call must answer follows from one slow model, a sequence of items.
 *
 *     byte 0      the dialect
 *     byte 1      sizes, how soon lists are folded
 *     then        steps: a call, the end of a batch, a client by hand that adds an item with the
 *                 delimiter in it to a signed list
 *
 * FUZZ_TRACE=1 in the environment prints what happens.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../world/store.h"
#include "answers.h"
#include "base/check.h"
#include "base/log.h"
#include "dialect/dialects.h"
#include "input.h"
#include "list/core/cache.h"

#define BATCH_MAX 8
#define CALL_ITEMS_MAX 12
#define ITEMS 32
#define LONG_ITEM_BYTES 500
#define BATCHES_MAX 200
#define REQUESTS_MAX 100000

struct fuzz_call {
    struct list_call call;
    struct slice items[CALL_ITEMS_MAX];
    bool done;
};

struct world {
    struct input in;
    struct config *config;
    struct list_policy *policy;
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    struct engine *engine;
    struct now now;
    uint64_t next_us;
    struct list_session session;
    struct fuzz_call calls[BATCH_MAX];
    size_t call_count, done_count;
    struct store store;
    struct ref_items model;            /* of a ring: the newest entry first */
    uint64_t changes;                  /* of the model */
    uint64_t version, version_changes; /* the last one that was answered, and when */
};

static const struct slice key = {"k", 1};
static bool trace_wanted;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    trace_wanted = getenv("FUZZ_TRACE") != NULL;
    setlinebuf(stdout);
    CHECK(log_open("/dev/null", LOG_ERROR_LEVEL) == 0);
    return 0;
}

/* ---- the world ---- */

static struct config *make_config(enum list_dialect dialect)
{
    char error[CONFIG_ERROR_MAX];
    struct config *config = config_create();
    struct list_policy *policy = &config->lists[0];
    CHECK(config_add_pool(config, "test", "127.0.0.1:11211", error) == 0);
    policy->dialect = dialect;
    policy->capacity = 5;
    policy->max_item_bytes = LONG_ITEM_BYTES;
    CHECK(config_finish(config, error) == 0);
    return config;
}

static void world_init(struct world *w, const uint8_t *data, size_t size)
{
    static struct config *configs[DIALECT_COUNT]; /* made once */
    *w = (struct world){.in = input_make(data, size), .now = {1000, 1700000000}};
    unsigned dialect = input_below(&w->in, DIALECT_COUNT), how = input_byte(&w->in);
    if (configs[dialect] == NULL) {
        configs[dialect] = make_config((enum list_dialect)dialect);
    }
    w->config = configs[dialect];
    w->policy = &w->config->lists[0];
    if (dialect != DIALECT_NATIVE) {
        w->policy->log_limit_bytes = how & 1 ? 64 : 4096;
        w->policy->sublist_limit_bytes = how & 2 ? 128 : 4096;
    }
    w->policy->compact_chance = how & 4 ? 1 : 0;
    rng_init_seed(&w->rng, how >> 4);
    bool small = (how & 8) != 0 && dialect != DIALECT_NATIVE;
    store_init(&w->store, small ? 4000 : 1 << 20, "s");
    w->cache = cache_create(1 << 16);
    w->engine = engine_create(w->config, &w->cache, &dialects, &w->rng, &w->metrics);
}

static void world_fini(struct world *w)
{
    engine_destroy(&w->engine);
    cache_destroy(&w->cache);
    store_fini(&w->store);
    ref_items_fini(&w->model);
}

/* ---- calls ---- */

static struct slice item_of(uint8_t which)
{
    static char names[ITEMS][LONG_ITEM_BYTES + 1];
    char *name = names[which % ITEMS];
    int width = which % 4 == 3 ? LONG_ITEM_BYTES - 1 : 1;
    (void)snprintf(name, sizeof names[0], "i%0*d", width, which % ITEMS);
    return slice_of(name);
}

static const enum list_verb verbs[] = {
    LIST_ADD,   LIST_ADD,      LIST_DEL,    LIST_DEL,    LIST_SET, LIST_ADDX,
    LIST_DELX,  LIST_CREATE,   LIST_POP,    LIST_POP,    LIST_GET, LIST_HAS,
    LIST_LEN,   LIST_RANGE,    LIST_AFTER,  LIST_DROP,   LIST_SET, LIST_GET,
    LIST_RANGE, LIST_REVRANGE, LIST_BEFORE, LIST_COMPACT};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static void fill_items(struct world *w, struct fuzz_call *c)
{
    bool may_be_none = c->call.verb == LIST_SET || c->call.verb == LIST_CREATE;
    unsigned choice = input_byte(&w->in), count = choice % (CALL_ITEMS_MAX + 1);
    uint8_t first = input_byte(&w->in);
    count += count == 0 && !may_be_none;
    for (unsigned i = 0; i < count; i++) {
        uint8_t which = choice < 128 ? (uint8_t)(first + i) : i == 0 ? first : input_byte(&w->in);
        c->items[c->call.item_count++] = item_of(which);
    }
}

static void choose_condition(struct world *w, struct list_call *call)
{
    static const enum list_condition conditions[] = {LIST_ALWAYS, LIST_IF_MISSING, LIST_IF_PRESENT,
                                                     LIST_IF_VERSION};
    call->condition = conditions[input_below(&w->in, 4)];
    call->expected = w->version;
}

static void submit(struct world *w, unsigned choice)
{
    struct fuzz_call *c = &w->calls[w->call_count++];
    enum list_verb verb = verbs[choice % VERBS];
    *c = (struct fuzz_call){0};
    c->call = (struct list_call){.verb = verb,
                                 .form = choice / VERBS & 1 ? LIST_FORM_ITEMS : LIST_FORM_JOINED,
                                 .key = key,
                                 .wants_version = true,
                                 .session = &w->session,
                                 .policy = w->policy,
                                 .items = c->items,
                                 .owner = c};
    /* Bridges ask for conditions where a list is one item. */
    bool native = w->policy->dialect == DIALECT_NATIVE;
    if (verb == LIST_SET && choice / VERBS >= 6 && !native && dialects_one_item(w->policy)) {
        choose_condition(w, &c->call);
    }
    if (list_verb_has(verb, LIST_RANGES)) {
        c->call.from = (int8_t)input_byte(&w->in) / 4;
        c->call.to = (int8_t)input_byte(&w->in) / 4;
    } else if (list_verb_has(verb, LIST_PICKS | LIST_TAKES)) {
        c->call.count = (int8_t)input_byte(&w->in) / 8;
        c->call.count += c->call.count == 0 || (verb != LIST_POP && c->call.count < 0) ? 20 : 0;
    }
    if (list_verb_has(verb, LIST_PAGES)) {
        c->items[c->call.item_count++] = item_of(input_byte(&w->in));
    } else if (verb == LIST_HAS || (list_verb_changes(verb) && verb != LIST_POP)) {
        fill_items(w, c);
    }
    chain_init(&c->call.answer);
    engine_submit(w->engine, &c->call, w->now);
}

/* ---- what must be answered ---- */

static bool is_ring(const struct world *w)
{
    return w->policy->dialect == DIALECT_RING;
}

static void take_out(struct ref_items *items, size_t at)
{
    memmove(&items->items[at], &items->items[at + 1],
            (items->count - at - 1) * sizeof *items->items);
    memmove(&items->until[at], &items->until[at + 1],
            (items->count - at - 1) * sizeof *items->until);
    items->count--;
}

/* The newest entry first; an item may stand in several places. */
static void ring_add(struct world *w, struct slice item)
{
    struct ref_items *m = &w->model, old = *m;
    *m = (struct ref_items){0};
    for (size_t i = 0; i <= old.count && i < w->policy->capacity; i++) {
        /* An item of its own for each place: the model's set does not know two alike. */
        m->items = realloc(m->items, (i + 1) * sizeof *m->items);
        m->until = realloc(m->until, (i + 1) * sizeof *m->until);
        CHECK(m->items != NULL && m->until != NULL);
        m->items[i] = i == 0 ? item : old.items[i - 1];
        m->until[i] = 0;
        m->count = m->cap = i + 1;
    }
    ref_items_fini(&old);
}

/* Adds or deletes; returns how many that changed. */
static uint64_t apply(struct world *w, const struct list_call *call, bool deletes)
{
    uint64_t changed = 0;
    for (size_t i = 0; i < call->item_count; i++) {
        if (is_ring(w)) {
            ring_add(w, call->items[i]);
        } else if (ref_items_has(&w->model, call->items[i]) == deletes) {
            ref_apply(&w->model, deletes ? '-' : '+', call->items[i]);
            changed++;
        }
    }
    w->changes += changed > 0;
    return changed;
}

static void expect_pop(struct world *w, const struct list_call *call)
{
    struct ref_items taken = {0};
    for (int64_t left = llabs(call->count); left > 0 && w->model.count > 0; left--) {
        size_t at = call->count < 0 ? w->model.count - 1 : 0;
        ref_apply(&taken, '+', w->model.items[at]);
        take_out(&w->model, at);
        w->changes++;
    }
    check_answer_bytes(call, &taken);
    ref_items_fini(&taken);
}

static enum list_status condition_of(const struct world *w, const struct list_call *call)
{
    bool empty = w->model.count == 0;
    switch (call->verb == LIST_CREATE ? LIST_IF_MISSING : call->condition) {
    case LIST_IF_MISSING:
        return empty ? LIST_OK : LIST_NOT_STORED;
    case LIST_IF_PRESENT:
        return empty ? LIST_NOT_STORED : LIST_OK;
    case LIST_IF_VERSION:
        if (call->status == LIST_EXISTS && !empty) {
            return LIST_EXISTS; /* a folding makes another version, too */
        }
        return empty ? LIST_MISSING : w->version_changes == w->changes ? LIST_OK : LIST_EXISTS;
    default:
        return LIST_OK;
    }
}

/* sublists: folding moves an item to the end that was added again, so of these the order is not
 * known. */
static bool has_no_order(const struct world *w, const struct list_call *call)
{
    return w->policy->dialect == DIALECT_SUBLISTS && call->verb != LIST_HAS;
}

/* Which items a whole list was answered with, whatever their order. */
static void expect_items(const struct world *w, const struct list_call *call)
{
    struct block *text = block_new(call->answer.bytes + 1);
    struct ref_items told = {0};
    struct slice rest;
    for (size_t i = 0; i < call->answer.count; i++) {
        const struct chain_seg *seg = &call->answer.segs[call->answer.first + i];
        block_append(&text, seg->p, seg->len);
    }
    for (rest = slice_make(text->data, text->used); rest.len > 0;) {
        const char *end = memchr(rest.p, w->policy->delimiter, rest.len);
        struct slice item = slice_take(&rest, end != NULL ? (size_t)(end - rest.p) : rest.len);
        (void)slice_take(&rest, end != NULL);
        CHECK(ref_items_has(&w->model, item) && !ref_items_has(&told, item));
        ref_apply(&told, '+', item);
    }
    CHECK(told.count == w->model.count);
    ref_items_fini(&told);
    block_unref(&text);
}

static void expect_read(struct world *w, const struct list_call *call)
{
    if (call->verb == LIST_LEN) {
        CHECK(call->number == w->model.count);
    } else if (list_verb_has(call->verb, LIST_FROM_NEWEST) && is_ring(w)) {
        struct list_call same = *call; /* begins with the newest entry, too */
        same.verb = LIST_RANGE;
        check_answer_bytes(&same, &w->model);
    } else if (!has_no_order(w, call)) {
        check_answer_bytes(call, &w->model);
    } else if (call->verb == LIST_GET && call->form == LIST_FORM_JOINED) {
        expect_items(w, call);
    }
    if (call->verb == LIST_GET) {
        w->version = call->version;
        w->version_changes = w->changes;
    }
}

static bool delimiter_within(const struct world *w)
{
    for (size_t i = 0; i < w->model.count; i++) {
        if (memchr(w->model.items[i].p, w->policy->delimiter, w->model.items[i].len) != NULL) {
            return true;
        }
    }
    return false;
}

/* Could its answer not be told from that of other items? */
static bool is_ambiguous(const struct world *w, const struct list_call *call)
{
    bool one = call->verb == LIST_HAS && call->item_count == 1;
    bool answers = call->verb == LIST_HAS || call->verb == LIST_POP ||
                   list_verb_has(call->verb, LIST_GIVES_ITEMS);
    return answers && !one && call->form == LIST_FORM_JOINED && delimiter_within(w);
}

/* What the calls in front of it have left is the model; brings it behind the call. */
static void judge(struct world *w, const struct list_call *call)
{
    if (call->status == LIST_CLIENT_ERROR) {
        return; /* not for this dialect */
    }
    bool ambiguous = is_ambiguous(w, call);
    CHECK(ambiguous == (strstr(call->error, "holds the delimiter") != NULL));
    if (ambiguous) {
        return;
    }
    if (call->status == LIST_SERVER_ERROR) {
        bool full = strstr(call->error, "no room") != NULL;
        CHECK(full && strstr(call->error, "nothing done") != NULL &&
              w->store.caps.item_size_max < 1 << 20);
        return;
    }
    switch (call->verb) {
    case LIST_ADD:
        (void)apply(w, call, false);
        break;
    case LIST_DEL:
        (void)apply(w, call, true);
        break;
    case LIST_ADDX:
    case LIST_DELX:
        CHECK(call->number == apply(w, call, call->verb == LIST_DELX));
        break;
    case LIST_SET:
    case LIST_CREATE:
        CHECK(call->status == condition_of(w, call));
        if (call->status == LIST_OK) {
            ref_apply(&w->model, '!', SLICE_NONE);
            (void)apply(w, call, false);
            w->changes++;
        }
        break;
    case LIST_POP:
        expect_pop(w, call);
        break;
    case LIST_DROP:
        ref_apply(&w->model, '!', SLICE_NONE);
        w->changes++;
        break;
    case LIST_COMPACT:
        break;
    default:
        expect_read(w, call);
    }
}

/* ---- a batch ---- */

static void trace_request(const struct list_request *r, const struct be_reply *reply)
{
    char sent[100], told[100];
    if (trace_wanted) {
        printf("    %-10s %-16.*s %s  ->  %s  %s\n", be_verb_name(r->be.verb), (int)r->be.key.len,
               r->key, slice_escape(r->be.value, sent, sizeof sent), be_status_name(reply->status),
               slice_escape(reply->value, told, sizeof told));
    }
}

static bool answer_one(struct world *w)
{
    struct list_request *r = engine_take_request(w->engine);
    if (r == NULL) {
        return false;
    }
    struct be_reply reply = {.epoch = 1, .caps = &w->store.caps};
    store_execute(&w->store, &r->be, w->now.wall_s, &reply);
    trace_request(r, &reply);
    struct block *block = reply.block;
    engine_reply(w->engine, r, &reply, w->now);
    block_unref(&block);
    return true;
}

/* Carries out what was submitted, and what the engine has to do besides. */
static void finish_batch(struct world *w)
{
    size_t done = 0;
    for (unsigned turns = 0; done < w->call_count || engine_busy(w->engine); turns++) {
        struct list_call *call;
        CHECK(turns < REQUESTS_MAX);
        w->next_us = engine_run(w->engine, w->now);
        while (answer_one(w)) {
        }
        while ((call = engine_take_done(w->engine)) != NULL) {
            ((struct fuzz_call *)call->owner)->done = true;
            done++;
        }
        w->now.mono_us = w->next_us != UINT64_MAX && w->next_us > w->now.mono_us
                             ? w->next_us
                             : w->now.mono_us + 1;
    }
    for (size_t i = 0; i < w->call_count; i++) {
        struct list_call *call = &w->calls[i].call;
        CHECK(w->calls[i].done);
        if (trace_wanted) {
            printf("call %zu: verb %d items %zu count %lld -> status %d number %llu %s\n", i,
                   (int)call->verb, call->item_count, (long long)call->count, (int)call->status,
                   (unsigned long long)call->number, call->error);
        }
        judge(w, call);
        chain_fini(&call->answer);
    }
    w->call_count = 0;
}

static void add_by_hand(struct world *w)
{
    static const struct slice entry = {"+with,delimiter", 15};
    struct be_operation r = {.verb = BE_APPEND, .key = key};
    struct be_reply reply = {0};
    if (w->policy->dialect != DIALECT_SIGNED) {
        return;
    }
    r.block = block_new(entry.len);
    block_append(&r.block, entry.p, entry.len);
    r.value = slice_make(r.block->data, r.block->used);
    store_execute(&w->store, &r, w->now.wall_s, &reply);
    block_unref(&r.block);
    struct slice item = {entry.p + 1, entry.len - 1};
    if (reply.status == BE_STORED && !ref_items_has(&w->model, item)) {
        ref_apply(&w->model, '+', item);
        w->changes++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w; /* large */
    world_init(&w, data, size);
    for (unsigned batches = 0; input_more(&w.in) && batches < BATCHES_MAX;) {
        uint8_t choice = input_byte(&w.in);
        if (choice >= 220 || w.call_count == BATCH_MAX) {
            finish_batch(&w);
            batches++;
            if (choice >= 250) {
                add_by_hand(&w);
            }
        } else {
            submit(&w, choice);
        }
    }
    finish_batch(&w);
    world_fini(&w);
    return 0;
}
