/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of dialect sublists whose index names a sublist that is missing: it was evicted, or a
 * client wrote the index and has not written the sublist yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_engine.h"

/* The random numbers of the rig make it the new sublist. */
#define NEW "k.568"

static void expect_replacing(struct script *s)
{
    static const struct slice item = {"a", 1};
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    script_submit(s, LIST_SET, &item, 1);
    script_expect(s, BE_GET, "k", BE_HIT, "+0");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_SIZE, "k", BE_HIT, "+0");
    script_expect(s, BE_SIZE, "k.0", BE_MISS, NULL);
    script_expect(s, BE_ADD, NEW, BE_STORED, NULL);
    script_expect(s, BE_CAS, "k", BE_STORED, NULL);
}

static void test_lset_looks_whether_a_missing_sublist_has_come(void **state)
{
    struct script *s = *state;
    expect_replacing(s);
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
    assert_false(engine_busy(s->rig.engine));
}

static void test_lset_removes_a_sublist_that_has_come(void **state)
{
    struct script *s = *state;
    expect_replacing(s);
    script_expect(s, BE_GET, "k.0", BE_HIT, "+late");
    script_expect(s, BE_CAS_DELETE, "k.0", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    assert_false(engine_busy(s->rig.engine));
}

/* Two neighbours become one where they take half of sublist_limit_bytes at most, and the newest is
 * none of them. The later one is written first. */
static void test_lcompact_merges_short_neighbours(void **state)
{
    static const char *const wholes[] = {"k", "k.0", "k.1", "k.2"};
    struct script *s = *state;
    s->rig.config->lists[0].dialect = DIALECT_SUBLISTS;
    for (unsigned limit = 16; limit <= 20; limit += 4) {
        const char *const values[] = {"+0+1+2", "+a+b", "+c+d+e", "+f"};
        s->rig.config->lists[0].sublist_limit_bytes = limit;
        script_submit(s, LIST_COMPACT, NULL, 0);
        for (unsigned i = 0; i < 8; i++) {
            /* Sublists that the worker knows are asked for before the index. */
            unsigned at = limit == 16 ? i % 4 : (i + 1) % 4;
            script_expect(s, i < 4 ? BE_GET : BE_SIZE, wholes[at], BE_HIT, values[at]);
        }
        if (limit == 16) {
            script_expect_done(s, LIST_OK);
            continue;
        }
        struct be_request *r = rig_take(&s->rig, BE_CAS, "k.1");
        assert_true(slice_equal(r->value, SLICE_LIT("+a+b+c+d+e")));
        rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_lset_looks_whether_a_missing_sublist_has_come),
        script_test(test_lset_removes_a_sublist_that_has_come),
        script_test(test_lcompact_merges_short_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
