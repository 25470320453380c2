/* SPDX-License-Identifier: BSD-3-Clause */
/* base/histogram: times in buckets of an eighth of their value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/histogram.h"

#define TOP_US (UINT64_C(1) << (HISTOGRAM_TOP_BIT + 1))

/* Buckets follow each other without a gap, and each is an eighth of its values wide at most. */
static void test_buckets(void **state)
{
    (void)state;
    size_t before = 0;
    uint64_t begun = 0;
    for (uint64_t us = 0; us < TOP_US; us += us < 100000 ? 1 : us / 1000) {
        size_t bucket = histogram_bucket(us);
        assert_true(bucket == before || bucket == before + 1);
        begun = bucket == before ? begun : us;
        assert_true((us - begun) * 8 <= begun || us < 16);
        before = bucket;
    }
    assert_int_equal(before, HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_bucket(TOP_US), HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void test_quantiles(void **state)
{
    (void)state;
    static struct histogram one, two;
    struct histogram_sum sum = {.count = 0}, first = {.count = 0};
    assert_int_equal(histogram_sum_quantile(&sum, 0.5), 0);
    for (uint64_t us = 1; us <= 1000; us++) {
        histogram_add(us % 2 == 0 ? &one : &two, us);
    }
    histogram_sum_add(&sum, &one);
    first = sum;
    histogram_sum_add(&sum, &two);
    assert_int_equal(sum.count, 1000);
    assert_in_range(sum.sum_us, 500500 - 500500 / 16, 500500 + 500500 / 16);
    static const double parts[] = {0.001, 0.5, 0.9, 0.99, 1};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t exact = (uint64_t)(parts[i] * 1000);
        uint64_t found = histogram_sum_quantile(&sum, parts[i]);
        assert_in_range(found, exact, exact + exact / 8);
    }
    assert_int_equal(histogram_sum_below(&sum, 3), 7);
    assert_int_equal(histogram_sum_below(&sum, 7), 127);
    assert_int_equal(histogram_sum_below(&sum, HISTOGRAM_TOP_BIT), 1000);
    histogram_sum_take(&sum, &first);
    assert_int_equal(sum.count, 500);
    assert_in_range(sum.sum_us, 250000 - 250000 / 16, 250000 + 250000 / 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
