/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/pick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "list/core/lists.h"

#define TOTAL 20
#define WANTED 5
#define DRAWS 40000

/* Each item is to come up as often as any other. The sum of squares below is what a chi-square test
 * with 19 degrees of freedom exceeds once in 1,000 times (43.8); the seeds are fixed. */
static void assert_even(const unsigned *seen)
{
    double expected = (double)DRAWS * WANTED / TOTAL, sum = 0;
    for (unsigned i = 0; i < TOTAL; i++) {
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    assert_true(sum < 43.8);
}

static void test_positions_are_drawn_evenly(void **state)
{
    (void)state;
    struct rng rng;
    unsigned seen[TOTAL] = {0};
    rng_init_seed(&rng, 1);
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        uint64_t *positions = pick_positions(&rng, TOTAL, WANTED);
        for (unsigned i = 0; i < WANTED; i++) {
            assert_true(positions[i] < TOTAL);
            assert_true(i == 0 || positions[i] > positions[i - 1]);
            seen[positions[i]]++;
        }
        free(positions);
    }
    assert_even(seen);
}

static void test_all_positions_are_all(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 2);
    for (size_t count = 0; count < 100; count++) {
        uint64_t *positions = pick_positions(&rng, count, count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(positions[i], i);
        }
        free(positions);
    }
}

static void test_a_stream_is_sampled_evenly(void **state)
{
    (void)state;
    struct rng rng;
    unsigned seen[TOTAL] = {0};
    struct list_policy policy = {.max_answer_bytes = 1 << 20};
    struct list list = {.policy = &policy};
    struct list_call call = {.verb = LIST_RANDOM, .count = WANTED};
    rng_init_seed(&rng, 3);
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        struct pick pick = {0};
        struct output output = {.to = UINT64_MAX};
        pick_begin(&pick, &list, &call, &rng, &output);
        for (unsigned i = 0; i < TOTAL; i++) {
            char name[8];
            int len = snprintf(name, sizeof name, "%u", i);
            output_item(&output, slice_make(name, (size_t)len));
        }
        assert_int_equal(pick.count, WANTED);
        for (unsigned i = 0; i < WANTED; i++) {
            char name[8] = "";
            memcpy(name, pick.items[i].p, pick.items[i].len);
            seen[atol(name)]++;
        }
        pick_fini(&pick);
    }
    assert_even(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions_are_drawn_evenly),
        cmocka_unit_test(test_all_positions_are_all),
        cmocka_unit_test(test_a_stream_is_sampled_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
