/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_every_metric_has_a_name_of_its_own_and_a_help_text(void **state)
{
    (void)state;
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        const char *name = metric_name((enum metric)i);
        assert_true(strlen(name) > 0);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        assert_true(strlen(metric_help((enum metric)i)) > 0);
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(name, metric_name((enum metric)k));
        }
    }
    assert_string_equal(metric_name(METRIC_list_flips), "list_flips");
}

static void test_counters_count_apart_from_one_another(void **state)
{
    (void)state;
    static struct metrics m;
    metric_inc(&m, METRIC_list_flips);
    metric_add(&m, METRIC_bytes_read, 1ULL << 40);
    metric_add(&m, METRIC_bytes_read, 2);
    metric_inc(&m, METRIC_curr_connections);
    metric_add(&m, METRIC_curr_connections, (uint64_t)-1); /* how a gauge goes down */
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        uint64_t want = i == METRIC_list_flips ? 1 : i == METRIC_bytes_read ? (1ULL << 40) + 2 : 0;
        assert_true(metric_get(&m, (enum metric)i) == want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_metric_has_a_name_of_its_own_and_a_help_text),
        cmocka_unit_test(test_counters_count_apart_from_one_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
