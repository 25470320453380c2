/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/name_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void test_a_set_has_what_was_added(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct name_set set = {0};
    struct name in[COUNT], out;
    struct rng rng;
    rng_init_seed(&rng, 1);
    name_fresh(&out, &rng);
    assert_false(name_set_has(&set, &out));
    for (size_t i = 0; i < COUNT; i++) {
        name_fresh(&in[i], &rng);
        name_set_add(&set, &in[i]);
        /* Also between two additions, and one that was added twice. */
        assert_true(i % 100 != 0 || name_set_has(&set, &in[i / 2]));
    }
    name_set_add(&set, &in[0]);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(name_set_has(&set, &in[i]));
    }
    assert_false(name_set_has(&set, &out));
    name_set_fini(&set);
    assert_false(name_set_has(&set, &in[0]));
    name_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_has_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
