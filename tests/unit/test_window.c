/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct window begin(void)
{
    struct config *config = config_create();
    struct window w;
    config->client_input_bytes = 10000;
    config->max_pipeline = 100;
    window_init(&w, config);
    config_destroy(&config);
    return w;
}

static void test_requests_are_admitted_until_they_weigh_too_much(void **state)
{
    (void)state;
    struct window w = begin();
    assert_true(window_admits(&w));
    w.request_bytes = 9999;
    assert_true(window_admits(&w));
    w.request_bytes = 10000;
    assert_false(window_admits(&w));
}

static void test_weight_holds_back_new_requests_but_not_the_keys_of_one(void **state)
{
    (void)state;
    struct window w = begin();
    w.request_bytes = 1000000;
    assert_false(window_admits(&w));
    assert_true(window_open(&w, 0));
}

static void test_a_client_is_held_back_by_count(void **state)
{
    (void)state;
    struct window w = begin();
    for (int i = 0; i < 100; i++) {
        assert_true(window_open(&w, 0));
        (void)window_started(&w, WINDOW_SHORT);
    }
    assert_false(window_open(&w, 0));
    window_answered(&w, WINDOW_SHORT, 128, 8);
    window_emitted(&w);
    assert_true(window_open(&w, 0));
}

static void test_a_backlog_must_come_down_to_half(void **state)
{
    (void)state;
    struct window w = begin();
    assert_true(window_open(&w, w.soft_bytes));
    assert_false(window_open(&w, w.soft_bytes + 1));
    assert_false(window_open(&w, w.soft_bytes / 2 + 1));
    assert_true(window_open(&w, w.soft_bytes / 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_admitted_until_they_weigh_too_much),
        cmocka_unit_test(test_weight_holds_back_new_requests_but_not_the_keys_of_one),
        cmocka_unit_test(test_a_client_is_held_back_by_count),
        cmocka_unit_test(test_a_backlog_must_come_down_to_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
