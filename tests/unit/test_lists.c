/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/lists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct list_policy policy = {
    .log_hard_limit_bytes = 100000,
    .sublist_limit_bytes = 65536,
};

static struct list *get(struct lists *lists, unsigned number)
{
    char key[24];
    int n = snprintf(key, sizeof key, "list-%u", number);
    return lists_get(lists, slice_make(key, (size_t)n), &policy);
}

static bool known(const struct lists *lists, unsigned number)
{
    char key[24];
    int n = snprintf(key, sizeof key, "list-%u", number);
    return lists_find(lists, slice_make(key, (size_t)n)) != NULL;
}

static void test_a_list_is_made_once_and_found_again(void **state)
{
    (void)state;
    struct lists lists;
    lists_init(&lists, NULL, 10, 0);
    assert_null(lists_find(&lists, SLICE_LIT("topic")));
    struct list *list = lists_get(&lists, SLICE_LIT("topic"), &policy);
    assert_ptr_equal(lists_get(&lists, SLICE_LIT("topic"), &policy), list);
    assert_ptr_equal(lists_find(&lists, SLICE_LIT("topic")), list);
    assert_true(slice_equal(list_key(list), SLICE_LIT("topic")));
    assert_ptr_equal(list->policy, &policy);
    assert_false(list_writing(list));
    assert_int_equal(lists.count, 1);
    lists_fini(&lists);
}

static void test_the_longest_key_is_kept_whole(void **state)
{
    (void)state;
    char key[LIST_KEY_BYTES_MAX];
    memset(key, 'k', sizeof key);
    struct lists lists;
    lists_init(&lists, NULL, 10, 0);
    struct list *list = lists_get(&lists, slice_make(key, sizeof key), &policy);
    assert_true(slice_equal(list_key(list), slice_make(key, sizeof key)));
    assert_null(lists_find(&lists, slice_make(key, sizeof key - 1)));
    lists_fini(&lists);
}

static void test_idle_lists_beyond_the_limit_are_forgotten_oldest_first(void **state)
{
    (void)state;
    struct lists lists;
    lists_init(&lists, NULL, 3, 0);
    get(&lists, 1);
    get(&lists, 2);
    get(&lists, 3);
    get(&lists, 1);
    get(&lists, 4);
    assert_int_equal(lists.count, 3);
    assert_false(known(&lists, 2));
    assert_true(known(&lists, 1));
    get(&lists, 5);
    assert_false(known(&lists, 3));
    assert_true(known(&lists, 1));
    lists_fini(&lists);
}

static void test_lists_in_use_are_never_forgotten(void **state)
{
    (void)state;
    struct lists lists;
    struct timers timers = {0};
    struct list_call call = {.key = SLICE_NONE};
    lists_init(&lists, NULL, 5, 0);
    struct list *queued = get(&lists, 1), *active = get(&lists, 2), *working = get(&lists, 3);
    struct list *ready = get(&lists, 4), *held = get(&lists, 5);
    TAILQ_INSERT_TAIL(&queued->queue, &call, link);
    TAILQ_INSERT_TAIL(&active->active, &call, active);
    working->ops = 1;
    lists_mark_ready(&lists, ready);
    timer_set(&timers, &held->append_backoff, 100);
    for (unsigned i = 6; i < 200; i++) {
        get(&lists, i);
        assert_true(lists.count <= 6);
    }
    for (unsigned i = 1; i <= 5; i++) {
        assert_true(known(&lists, i));
    }
    TAILQ_REMOVE(&queued->queue, &call, link);
    TAILQ_REMOVE(&active->active, &call, active);
    working->ops = 0;
    assert_ptr_equal(lists_take_ready(&lists), ready);
    timer_stop(&timers, &held->append_backoff);
    for (unsigned i = 200; i < 210; i++) {
        get(&lists, i);
    }
    assert_int_equal(lists.count, 5);
    for (unsigned i = 1; i <= 5; i++) {
        assert_false(known(&lists, i));
    }
    timers_fini(&timers);
    lists_fini(&lists);
}

/* When many were in use at once, the number comes down again with the next new ones. */
static void test_the_number_comes_down_again_after_a_crowd(void **state)
{
    (void)state;
    struct lists lists;
    lists_init(&lists, NULL, 10, 0);
    for (unsigned i = 0; i < 1000; i++) {
        get(&lists, i)->ops = 1;
    }
    assert_int_equal(lists.count, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(known(&lists, i));
        get(&lists, i)->ops = 0;
    }
    for (unsigned i = 1000; i < 1200; i++) {
        get(&lists, i);
    }
    assert_true(lists.count <= 10);
    lists_fini(&lists);
}

static void test_ready_lists_are_taken_once_in_their_order(void **state)
{
    (void)state;
    struct lists lists;
    lists_init(&lists, NULL, 10, 0);
    struct list *a = get(&lists, 1), *b = get(&lists, 2);
    assert_null(lists_take_ready(&lists));
    lists_mark_ready(&lists, b);
    lists_mark_ready(&lists, a);
    lists_mark_ready(&lists, b);
    assert_ptr_equal(lists_take_ready(&lists), b);
    lists_mark_ready(&lists, b);
    assert_ptr_equal(lists_take_ready(&lists), a);
    assert_ptr_equal(lists_take_ready(&lists), b);
    assert_null(lists_take_ready(&lists));
    assert_false(a->is_ready || b->is_ready);
    lists_fini(&lists);
}

static void test_the_size_of_the_log_is_the_heads_less_its_header(void **state)
{
    (void)state;
    struct list list = {.policy = &policy};
    assert_int_equal(list_log_bytes(&list), 0);
    list.appended_bytes = 100;
    assert_int_equal(list_log_bytes(&list), 100);
    list.size_known = true;
    list.size_bytes = 5000;
    list.header_bytes = 3;
    assert_int_equal(list_log_bytes(&list), 5097);
    list.size_bytes = 2;
    list.appended_bytes = 0;
    assert_int_equal(list_log_bytes(&list), 0);
}

static void test_limits_stay_within_what_the_server_can_store(void **state)
{
    (void)state;
    struct list list = {.policy = &policy};
    assert_int_equal(list_log_hard_limit(&list), 100000);
    assert_int_equal(list_sublist_limit(&list), 65536);
    list.item_size_max = 1048576;
    assert_int_equal(list_log_hard_limit(&list), 100000);
    list.item_size_max = 32768;
    assert_in_range(list_sublist_limit(&list), 30000, 32700);
    /* Half of the item is for the header, for announcements and for what others append at the same
     * moment. */
    assert_in_range(list_log_hard_limit(&list), 15000, 16384);
    assert_true(list_log_limit(&list) <= list_log_hard_limit(&list) / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_is_made_once_and_found_again),
        cmocka_unit_test(test_the_longest_key_is_kept_whole),
        cmocka_unit_test(test_idle_lists_beyond_the_limit_are_forgotten_oldest_first),
        cmocka_unit_test(test_lists_in_use_are_never_forgotten),
        cmocka_unit_test(test_the_number_comes_down_again_after_a_crowd),
        cmocka_unit_test(test_ready_lists_are_taken_once_in_their_order),
        cmocka_unit_test(test_the_size_of_the_log_is_the_heads_less_its_header),
        cmocka_unit_test(test_limits_stay_within_what_the_server_can_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
