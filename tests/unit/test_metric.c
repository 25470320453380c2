/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "list/core/metrics.h"
#include "pool/link/metrics.h"

static const struct metric_table *const tables[] = {&backend_metrics, &list_metrics, &pool_metrics,
                                                    &proxy_metrics};
enum { TABLES = sizeof tables / sizeof tables[0] };

static unsigned uses_of(const char *name)
{
    unsigned uses = 0;
    for (unsigned t = 0; t < TABLES; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            uses += strcmp(tables[t]->rows[i].name, name) == 0;
        }
    }
    return uses;
}

static void test_every_metric_has_a_name_of_its_own_and_a_help_text(void **state)
{
    (void)state;
    for (unsigned t = 0; t < TABLES; t++) {
        assert_true(tables[t]->count > 0);
        for (unsigned i = 0; i < tables[t]->count; i++) {
            const char *name = tables[t]->rows[i].name;
            assert_true(strlen(name) > 0);
            assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
            assert_true(strlen(tables[t]->rows[i].help) > 0);
            assert_int_equal(uses_of(name), 1);
        }
    }
    assert_string_equal(metric_name(&list_metrics, METRIC_list_flips), "list_flips");
    assert_string_equal(metric_name(&proxy_metrics, METRIC_idle_kicks), "idle_kicks");
    assert_string_equal(metric_name(&backend_metrics, METRIC_outcomes_unknown), "outcomes_unknown");
}

static void test_no_number_is_in_two_tables(void **state)
{
    (void)state;
    static unsigned used[METRIC_MAX];
    for (unsigned t = 0; t < TABLES; t++) {
        for (unsigned i = 0; i < tables[t]->count; i++) {
            assert_true(tables[t]->first + i < METRIC_MAX);
            assert_int_equal(used[tables[t]->first + i]++, 0);
        }
    }
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
    for (unsigned i = 0; i < METRIC_MAX; i++) {
        uint64_t want = i == METRIC_list_flips ? 1 : i == METRIC_bytes_read ? (1ULL << 40) + 2 : 0;
        assert_true(metric_get(&m, i) == want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_metric_has_a_name_of_its_own_and_a_help_text),
        cmocka_unit_test(test_no_number_is_in_two_tables),
        cmocka_unit_test(test_counters_count_apart_from_one_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
