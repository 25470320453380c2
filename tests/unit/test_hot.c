/* SPDX-License-Identifier: BSD-3-Clause */
/* base/hot: the names that are asked for most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/hot.h"

static void count(struct hot *hot, unsigned number, int64_t now_s)
{
    char name[32];
    int len = snprintf(name, sizeof name, "name-%u", number);
    hot_count(hot, slice_make(name, (size_t)len), now_s);
}

static bool is_name(const struct hot_name *found, const char *name)
{
    return found->len == strlen(name) && memcmp(found->bytes, name, found->len) == 0;
}

/* One name in four is the same, among a hundred times more names than are kept. */
static void test_frequent_names_stay(void **state)
{
    (void)state;
    static struct hot one, two;
    struct hot_sum sum = {.count = 0};
    hot_init(&one);
    hot_init(&two);
    for (unsigned i = 0; i < 40000; i++) {
        count(i % 2 == 0 ? &one : &two, i % 8 < 2 ? 7 : i, 100);
    }
    hot_sum_add(&sum, &one);
    hot_sum_add(&sum, &two);
    hot_sum_sort(&sum);
    assert_int_equal(sum.total, 40000);
    assert_true(sum.count <= 2 * HOT_NAMES);
    assert_true(is_name(&sum.names[0], "name-7"));
    /* Too high by the rarest one's count at most. */
    assert_in_range(sum.names[0].count, 10000, 10000 + 2 * (40000 / HOT_NAMES));
    assert_true(sum.names[1].count <= 2 * (40000 / HOT_NAMES));
    hot_sum_fini(&sum);
    hot_fini(&one);
    hot_fini(&two);
}

static void test_old_names_fade(void **state)
{
    (void)state;
    static struct hot hot;
    struct hot_sum sum = {.count = 0};
    hot_init(&hot);
    for (unsigned i = 0; i < 100; i++) {
        count(&hot, 1, 1000);
    }
    for (int64_t minute = 1; minute <= 10; minute++) {
        count(&hot, 2, 1000 + minute * HOT_HALF_S);
    }
    hot_sum_add(&sum, &hot);
    hot_sum_sort(&sum);
    assert_int_equal(sum.count, 1);
    assert_true(is_name(&sum.names[0], "name-2"));
    hot_sum_fini(&sum);
    hot_fini(&hot);
}

static void test_only_some_are_looked_at(void **state)
{
    (void)state;
    static struct hot hot;
    struct hot_sum sum = {.count = 0};
    hot_init(&hot);
    for (unsigned i = 0; i < 1000 * HOT_SAMPLE; i++) {
        if (hot_is_next(&hot)) {
            hot_count(&hot, SLICE_LIT("a"), 5);
        }
    }
    hot_sum_add(&sum, &hot);
    assert_int_equal(sum.total, 1000);
    hot_sum_fini(&sum);
    hot_fini(&hot);
}

static void test_long_names_are_cut(void **state)
{
    (void)state;
    static struct hot hot;
    char name[400];
    struct hot_sum sum = {.count = 0};
    hot_init(&hot);
    memset(name, 'x', sizeof name);
    hot_count(&hot, slice_make(name, sizeof name), 5);
    hot_count(&hot, SLICE_NONE, 5);
    hot_sum_add(&sum, &hot);
    assert_int_equal(sum.count, 2);
    assert_int_equal(sum.names[0].len, HOT_NAME_BYTES);
    assert_int_equal(sum.names[1].len, 0);
    hot_sum_fini(&sum);
    hot_fini(&hot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequent_names_stay),
        cmocka_unit_test(test_old_names_fade),
        cmocka_unit_test(test_only_some_are_looked_at),
        cmocka_unit_test(test_long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
