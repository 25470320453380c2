/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dialect/dialects.h"

void rig_init(struct rig *rig)
{
    char error[CONFIG_ERROR_MAX];
    *rig = (struct rig){.config = config_create(), .now = {1000000, 1700000000}};
    assert_int_equal(config_add_pool(rig->config, "test", "127.0.0.1:11211", error), 0);
    assert_int_equal(config_finish(rig->config, error), 0);
    rig->cache = cache_create(0);
    rng_init_seed(&rig->rng, 1);
    rig->engine = engine_create(rig->config, &rig->cache, &dialects, &rig->rng, &rig->metrics);
}

void rig_fini(struct rig *rig)
{
    engine_destroy(&rig->engine);
    cache_destroy(&rig->cache);
    config_destroy(&rig->config);
}

struct list_request *rig_next(struct rig *rig)
{
    struct list_request *request = engine_take_request(rig->engine);
    while (request == NULL) {
        uint64_t next_us = engine_run(rig->engine, rig->now);
        request = engine_take_request(rig->engine);
        if (request == NULL) {
            assert_true(next_us != UINT64_MAX);
            rig->now.mono_us = next_us > rig->now.mono_us ? next_us : rig->now.mono_us;
        }
    }
    return request;
}

struct list_request *rig_take(struct rig *rig, enum be_verb verb, const char *key)
{
    struct list_request *request = rig_next(rig);
    assert_int_equal(request->be.verb, verb);
    assert_true(slice_equal(request->be.key, slice_of(key)));
    return request;
}

void rig_answer(struct rig *rig, struct list_request *request, enum be_status status,
                const char *value, int64_t ttl_s)
{
    rig_answer_cas(rig, request, status, value, ttl_s, 7);
}

void rig_answer_cas(struct rig *rig, struct list_request *request, enum be_status status,
                    const char *value, int64_t ttl_s, uint64_t cas)
{
    struct be_reply reply = {.status = status, .cas = cas, .epoch = 1, .ttl_s = ttl_s};
    if (value != NULL) {
        reply.block = block_new(strlen(value));
        block_append(&reply.block, value, strlen(value));
        reply.value = slice_make(reply.block->data, reply.block->used);
        reply.size_bytes = reply.value.len;
    }
    engine_reply(rig->engine, request, &reply, rig->now);
    block_unref(&reply.block);
}

void rig_answer_clock(struct rig *rig, enum be_status head, int64_t left_s, int64_t now_s)
{
    struct list_request *first = rig_take(rig, BE_GET, "mclistd#clock.0");
    struct list_request *item = rig_take(rig, BE_TIME, "k#");
    struct list_request *second = rig_take(rig, BE_GET, "mclistd#clock.1");
    rig_answer(rig, first, BE_HIT, "mclistd-clock 2000000000", 2000000000 - now_s);
    rig_answer(rig, item, head, NULL, left_s);
    rig_answer(rig, second, BE_HIT, "mclistd-clock 2000050000", 2000050000 - now_s);
}

/* ---- scripts ---- */

int script_setup(void **state)
{
    static struct script s;
    s = (struct script){0};
    rig_init(&s.rig);
    chain_init(&s.call.answer);
    *state = &s;
    return 0;
}

int script_teardown(void **state)
{
    struct script *s = *state;
    rig_fini(&s->rig);
    chain_fini(&s->call.answer);
    return 0;
}

void script_submit(struct script *s, enum list_verb verb, const struct slice *items, size_t count)
{
    s->call.verb = verb;
    s->call.key = SLICE_LIT("k");
    s->call.policy = &s->rig.config->lists[0];
    s->call.session = &s->session;
    s->call.items = items;
    s->call.item_count = count;
    engine_submit(s->rig.engine, &s->call, s->rig.now);
}

void script_expect(struct script *s, enum be_verb verb, const char *key, enum be_status status,
                   const char *value)
{
    rig_answer(&s->rig, rig_take(&s->rig, verb, key), status, value, -1);
}

struct list_request *script_next_write(struct script *s, const char *a, const char *b,
                                       const char *pointer)
{
    struct list_request *r = rig_next(&s->rig);
    while (r->be.verb == BE_GET || r->be.verb == BE_SIZE) {
        const char *value = slice_equal(r->be.key, SLICE_LIT("k.a"))   ? a
                            : slice_equal(r->be.key, SLICE_LIT("k.b")) ? b
                                                                       : pointer;
        rig_answer_cas(&s->rig, r, value != NULL ? BE_HIT : BE_MISS, value, -1, 1);
        r = rig_next(&s->rig);
    }
    return r;
}

void script_expect_answer(struct script *s, enum list_status status)
{
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_int_equal(s->call.status, status);
}

void script_expect_done(struct script *s, enum list_status status)
{
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_null(engine_take_request(s->rig.engine));
    script_expect_answer(s, status);
}
