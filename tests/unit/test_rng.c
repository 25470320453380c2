/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    struct rng a, b, c;
    rng_init_seed(&a, 42);
    rng_init_seed(&b, 42);
    rng_init_seed(&c, 43);
    unsigned same = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_next(&a);
        assert_true(x == rng_next(&b));
        same += x == rng_next(&c);
        assert_true(rng_unique(&a) == rng_unique(&b));
        (void)rng_unique(&c);
    }
    assert_int_equal(same, 0);
}

/* The published first numbers of splitmix64. */
static void test_it_is_splitmix64(void **state)
{
    (void)state;
    struct rng r;
    rng_init_seed(&r, 1234567);
    assert_true(rng_next(&r) == 6457827717110365317ULL);
    assert_true(rng_next(&r) == 3203168211198807973ULL);
    assert_true(rng_next(&r) == 9817491932198370423ULL);
}

static void test_below_stays_below_and_meets_every_value(void **state)
{
    (void)state;
    struct rng r;
    rng_init_seed(&r, 7);
    for (uint64_t bound = 1; bound <= 20; bound++) {
        unsigned seen[20] = {0};
        for (int i = 0; i < 2000; i++) {
            uint64_t x = rng_below(&r, bound);
            assert_true(x < bound);
            seen[x]++;
        }
        for (uint64_t x = 0; x < bound; x++) {
            assert_in_range(seen[x], 2000 / bound / 2, 2000 / bound * 2);
        }
    }
    for (int i = 0; i < 1000; i++) {
        assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
    }
}

static void test_names_of_a_process_come_from_the_kernel(void **state)
{
    (void)state;
    struct rng a, b;
    rng_init_system(&a);
    rng_init_system(&b);
    assert_true(rng_next(&a) != rng_next(&b));
    /* Were they taken from the state, a copy would draw the same name once more. */
    struct rng copy = a;
    assert_true(rng_unique(&a) != rng_unique(&copy));
    assert_true(rng_unique(&a) != rng_unique(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(test_it_is_splitmix64),
        cmocka_unit_test(test_below_stays_below_and_meets_every_value),
        cmocka_unit_test(test_names_of_a_process_come_from_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
