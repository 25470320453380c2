/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of dialects: a call that ended at its deadline is not touched any more, at whichever of its
 * requests that was. The call and its items are freed at once, so that a build with sanitizers sees
 * more than what is written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_engine.h"

#define STORED_MAX 128
#define VALUE_MAX 512
#define TIME_US 1000000u
/* No call of this test takes nearly as many requests. */
#define REQUESTS_MAX 500
#define TURNS_MAX 100000

struct stored {
    char key[64], value[VALUE_MAX];
    bool there;
};

struct test {
    struct rig rig;
    struct list_session sessions[3];
    struct stored stored[STORED_MAX];
    unsigned requests, stall_at; /* 0: never */
    struct list_call *first;
    bool nothing_done; /* the answer to the first */
    struct list_call *read;
};

static struct stored *find(struct test *t, const struct list_request *r)
{
    size_t i = 0;
    while (t->stored[i].key[0] != '\0' && !slice_equal(slice_of(t->stored[i].key), r->be.key)) {
        assert_true(++i < STORED_MAX);
    }
    snprintf(t->stored[i].key, sizeof t->stored[i].key, "%.*s", (int)r->be.key.len, r->key);
    return &t->stored[i];
}

static void put(struct stored *s, const char *before, struct slice value, const char *behind)
{
    char whole[VALUE_MAX];
    int len = snprintf(whole, sizeof whole, "%s%.*s%s", before, SLICE_ARGS(value), behind);
    assert_true(len < VALUE_MAX);
    memcpy(s->value, whole, sizeof whole);
    s->there = true;
}

/* What memcached would do; nothing else writes, so each CAS succeeds. */
static enum be_status carry_out(struct stored *s, const struct list_request *r)
{
    bool there = s->there;
    switch (r->be.verb) {
    case BE_GET:
    case BE_SIZE:
    case BE_PROBE:
    case BE_TIME:
        return there ? BE_HIT : BE_MISS;
    case BE_ADD:
        if (!there) {
            put(s, "", r->be.value, "");
        }
        return there ? BE_NOT_STORED : BE_STORED;
    case BE_APPEND:
    case BE_PREPEND:
        if (there) {
            bool before = r->be.verb == BE_PREPEND;
            char old[VALUE_MAX];
            memcpy(old, s->value, sizeof old);
            put(s, before ? "" : old, r->be.value, before ? old : "");
        }
        return there ? BE_STORED : BE_NOT_STORED;
    case BE_DELETE:
    case BE_CAS_DELETE:
        s->there = false;
        return !there ? BE_NOT_FOUND : r->be.verb == BE_DELETE ? BE_DELETED : BE_STORED;
    case BE_INCR:
        if (there) {
            snprintf(s->value, sizeof s->value, "%llu",
                     strtoull(s->value, NULL, 10) + (unsigned long long)r->be.delta);
        }
        return there ? BE_STORED : BE_NOT_FOUND;
    default:
        if (there || r->be.verb == BE_SET) {
            put(s, "", r->be.value, "");
        }
        return there || r->be.verb == BE_SET ? BE_STORED : BE_NOT_STORED;
    }
}

static void serve(struct test *t, struct list_request *r)
{
    struct stored *s = find(t, r);
    enum be_status status = carry_out(s, r);
    struct be_reply reply = {.status = status, .cas = 7, .epoch = 1, .ttl_s = -1};
    if (status == BE_HIT) {
        reply.block = block_new(VALUE_MAX);
        block_append(&reply.block, s->value, strlen(s->value));
        reply.value = slice_make(reply.block->data, reply.block->used);
        reply.size_bytes = reply.value.len;
    } else if (r->be.verb == BE_INCR && status == BE_STORED) {
        reply.number = strtoull(s->value, NULL, 10);
    }
    engine_reply(t->rig.engine, r, &reply, t->rig.now);
    block_unref(&reply.block);
}

static struct list_call *submit(struct test *t, unsigned session, enum list_verb verb,
                                const char *item)
{
    struct list_call *call = calloc(1, sizeof *call);
    struct slice *items = malloc(sizeof *items);
    bool takes = verb == LIST_ADD || verb == LIST_DEL || verb == LIST_SET;
    assert_non_null(call);
    assert_non_null(items);
    *items = slice_of(strdup(item));
    *call = (struct list_call){.verb = verb,
                               .key = SLICE_LIT("k"),
                               .policy = &t->rig.config->lists[0],
                               .session = &t->sessions[session],
                               .items = items,
                               .item_count = takes,
                               .deadline_us = t->rig.now.mono_us + TIME_US * (1 + 60 * session)};
    chain_init(&call->answer);
    engine_submit(t->rig.engine, call, t->rig.now);
    return call;
}

static void give_back(struct list_call *call)
{
    chain_fini(&call->answer);
    free((char *)(uintptr_t)call->items[0].p);
    free((struct slice *)(uintptr_t)call->items);
    free(call);
}

static void take_done(struct test *t)
{
    struct list_call *call;
    while ((call = engine_take_done(t->rig.engine)) != NULL) {
        if (call == t->read) {
            continue;
        }
        if (call == t->first) {
            t->nothing_done = strstr(call->error, "nothing done") != NULL;
            t->first = NULL;
        } else {
            assert_true(call->status == LIST_OK || call->status == LIST_CLIENT_ERROR);
        }
        give_back(call);
    }
}

/* The time of the first call passes during its request number stall_at. */
static void serve_in_time(struct test *t, struct list_request *r)
{
    assert_true(++t->requests < REQUESTS_MAX);
    if (t->requests == t->stall_at && t->first != NULL) {
        t->rig.now.mono_us = t->first->deadline_us;
        (void)engine_run(t->rig.engine, t->rig.now);
        take_done(t);
        assert_null(t->first);
    }
    serve(t, r);
}

/* Until nothing is under way. */
static void run(struct test *t)
{
    unsigned turns = 0;
    do {
        assert_true(++turns < TURNS_MAX);
        uint64_t next_us = engine_run(t->rig.engine, t->rig.now);
        take_done(t);
        struct list_request *r = engine_take_request(t->rig.engine);
        if (r != NULL) {
            serve_in_time(t, r);
        } else if (next_us != UINT64_MAX && next_us > t->rig.now.mono_us) {
            t->rig.now.mono_us = next_us;
        }
    } while (engine_busy(t->rig.engine));
}

static void check_item(const struct test *t, struct slice item)
{
    bool known = slice_equal(item, SLICE_LIT("old")) || slice_equal(item, SLICE_LIT("second")) ||
                 (slice_equal(item, SLICE_LIT("first")) && !t->nothing_done);
    if (!known) {
        fail_msg("item %.*s, stalled at request %u", SLICE_ARGS(item), t->stall_at);
    }
}

/* The list holds nothing but what was asked for. */
static void check_content(struct test *t)
{
    char text[256];
    size_t len = 0, start = 0;
    struct list_call *get = t->read = submit(t, 2, LIST_GET, "");
    run(t);
    assert_true(get->status == LIST_OK || get->status == LIST_MISSING);
    assert_true(get->answer.bytes < sizeof text);
    for (size_t i = 0; i < get->answer.count; i++) {
        const struct chain_seg *seg = &get->answer.segs[get->answer.first + i];
        memcpy(text + len, seg->p, seg->len);
        len += seg->len;
    }
    give_back(get);
    for (size_t i = 0; i <= len; i++) {
        if (len > 0 && (i == len || text[i] == ',')) {
            check_item(t, slice_make(text + start, i - start));
            start = i + 1;
        }
    }
}

/* Returns how many requests that took. */
static unsigned try(enum list_dialect dialect, const enum list_verb verbs[2], unsigned stall_at)
{
    static struct test t;
    t = (struct test){0};
    rig_init(&t.rig);
    t.rig.config->lists[0].dialect = dialect;
    t.rig.config->lists[0].key_bytes_max = LIST_KEY_BYTES_MAX;
    t.rig.config->lists[0].capacity = 4;
    (void)submit(&t, 2, LIST_ADD, "old");
    run(&t);
    t.requests = 0;
    t.stall_at = stall_at;
    t.first = submit(&t, 0, verbs[0], "first");
    (void)submit(&t, 1, verbs[1], "second");
    run(&t);
    unsigned requests = t.requests;
    check_content(&t);
    rig_fini(&t.rig);
    return requests;
}

static void test_calls_that_ended_are_left_alone(void **state)
{
    static const enum list_verb verbs[][2] = {
        {LIST_ADD, LIST_ADD}, {LIST_ADD, LIST_DEL}, {LIST_DEL, LIST_ADD},     {LIST_SET, LIST_ADD},
        {LIST_ADD, LIST_SET}, {LIST_GET, LIST_ADD}, {LIST_ADD, LIST_COMPACT}, {LIST_DROP, LIST_ADD},
    };
    (void)state;
    for (int dialect = DIALECT_SIMPLE; dialect < DIALECT_COUNT; dialect++) {
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
            unsigned requests = try((enum list_dialect)dialect, verbs[i], 0);
            for (unsigned at = 1; at <= requests; at++) {
                (void)try((enum list_dialect)dialect, verbs[i], at);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_that_ended_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
