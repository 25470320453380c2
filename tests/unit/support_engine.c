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

void rig_answer(struct rig *rig, struct be_request *request, enum be_status status,
                const char *value, int64_t ttl_s)
{
    struct be_reply reply = {.status = status, .cas = 7, .epoch = 1, .ttl_s = ttl_s};
    if (value != NULL) {
        reply.block = block_new(strlen(value));
        block_append(&reply.block, value, strlen(value));
        reply.value = slice_make(reply.block->data, reply.block->used);
        reply.size_bytes = reply.value.len;
    }
    engine_reply(rig->engine, request, &reply, rig->now);
    block_unref(&reply.block);
}
