/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that a bridge takes for a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/bridge/text.h"

static void joined(const char *value, size_t count, bool whole)
{
    bool found;
    assert_int_equal(bridge_joined_count(slice_of(value), ',', &found), count);
    assert_int_equal(found, whole);
}

static void test_joined(void **state)
{
    (void)state;
    joined("", 0, true);
    joined("a", 1, true);
    joined("a,b", 2, true);
    joined(",a,b,", 2, true);
    joined(",", 0, true);
    joined(",,", 0, true);
    joined(",,,", 2, false);
    joined("a,,b", 3, false);
    joined("a,,", 2, false);
    joined(",,a", 2, false);
}

static void signed_text(const char *value, size_t count, bool whole)
{
    static const struct signs signs = {'+', '-'};
    bool found;
    assert_int_equal(bridge_signed_count(slice_of(value), signs, &found), count);
    assert_int_equal(found, whole);
}

static void test_signed(void **state)
{
    (void)state;
    signed_text("", 0, true);
    signed_text("+a", 1, true);
    signed_text("+a-b+c", 3, true);
    signed_text("-a,b", 1, true);
    signed_text("a", 0, false);
    signed_text("a+b", 1, false);
    signed_text("+", 0, false);
    signed_text("+a-", 1, false);
    signed_text("+a--b", 2, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
