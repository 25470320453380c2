/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_engine.h"

#include "base/block.h"
#include "base/memory.h"
#include "list/core/op.h"

static uint64_t held(void)
{
    block_drop_spare();
    memory_settle();
    return memory_held();
}

static void test_what_an_engine_keeps_of_operations_and_requests_counts_until_it_ends(void **state)
{
    struct script *s = *state;
    uint64_t before = held();
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
    assert_true(held() >= before + sizeof(struct op) + sizeof(struct list_request));
    engine_destroy(&s->rig.engine);
    assert_int_equal(held(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_what_an_engine_keeps_of_operations_and_requests_counts_until_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
