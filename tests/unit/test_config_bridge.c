/* SPDX-License-Identifier: BSD-3-Clause */
/* What bridge and its flags mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "support_config.h"

#define SERVERS "[pool p]\nservers = a:1\n"

static void test_values(void **state)
{
    (void)state;
    struct config *c = good(SERVERS "[lists]\nbridge_flags_out = 16\n[lists b-]\nbridge = yes\n"
                                    "bridge_flags_in = 4294967295,0\n[lists c-]\n");
    const struct list_policy *all = &c->lists[0], *b = config_list_policy(c, SLICE_LIT("b-x"));
    const struct list_policy *other = config_list_policy(c, SLICE_LIT("c-x"));
    assert_true(c->has_bridge);
    assert_int_equal(all->bridge, BRIDGE_NO);
    assert_int_equal(other->bridge, BRIDGE_NO);
    assert_int_equal(b->bridge, BRIDGE_YES);
    assert_int_equal(b->bridge_flags_in.count, 2);
    assert_int_equal(b->bridge_flags_in.flags[0], UINT32_MAX);
    assert_int_equal(b->bridge_flags_in.flags[1], 0);
    assert_int_equal(b->bridge_flags_out, 16);
    assert_int_equal(other->bridge_flags_in.count, 2);
    assert_int_equal(other->bridge_flags_in.flags[1], 16);
    config_destroy(&c);
    c = good(SERVERS "[lists c-]\ndelimiter = |\n");
    assert_false(c->has_bridge);
    config_destroy(&c);
}

static void test_signed(void **state)
{
    (void)state;
    static const char *const fit[] = {"native", "signed", "flip", "marker", "sublists"};
    char text[200];
    for (size_t i = 0; i < sizeof fit / sizeof fit[0]; i++) {
        (void)snprintf(text, sizeof text, SERVERS "[lists b-]\nbridge = signed\ndialect = %s\n",
                       fit[i]);
        struct config *c = good(text);
        assert_int_equal(config_list_policy(c, SLICE_LIT("b-"))->bridge, BRIDGE_SIGNED);
        config_destroy(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
