/* SPDX-License-Identifier: BSD-3-Clause */
/* bridge = yes: what goes with it, and what is refused where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

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

static void test_flags(void **state)
{
    (void)state;
    refused(SERVERS "[lists b-]\nbridge = yes\nbridge_flags_in = 0, x\n",
            ":5: bridge_flags_in: 'x' is no number of 32 bits; expected 1 to 16 numbers of at most "
            "32 bits, comma-separated");
    refused(SERVERS "[lists b-]\nbridge = yes\nbridge_flags_in =\n",
            ":5: bridge_flags_in: '' is no number of 32 bits; expected 1 to 16 numbers of at most "
            "32 bits, comma-separated");
    refused(SERVERS "[lists b-]\nbridge_flags_in = 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n",
            ":4: bridge_flags_in: '17' is one too many; expected 1 to 16 numbers of at most 32 "
            "bits, comma-separated");
    refused(
        SERVERS "[lists b-]\nbridge_last_delimiter = yes\n",
        ":4: [lists b-]: bridge_last_delimiter: bridge = no does not use it; expected with bridge "
        "= yes");
    refused(SERVERS "[lists b-]\nbridge_flags_out = 1\n",
            ":4: [lists b-]: bridge_flags_out: bridge = no does not use it; expected with bridge = "
            "yes");
}

static void test_places(void **state)
{
    (void)state;
    refused(SERVERS "[lists]\nbridge = yes\n",
            ":4: [lists]: bridge: every key without a prefix of its own would be a list, and no "
            "client could store a plain value; expected in [lists PREFIX]");
    refused(SERVERS "[lists]\ndelimiter = none\n[lists b-]\nbridge = yes\n",
            ":6: [lists b-]: a bridge reads and writes items that a delimiter keeps apart, and "
            "delimiter = none has none; expected a delimiter, or bridge = no");
    refused(SERVERS "[lists b-]\nbridge = yes\ndelimiter = none\n",
            ":5: [lists b-]: a bridge reads and writes items that a delimiter keeps apart, and "
            "delimiter = none has none; expected a delimiter, or bridge = no");
}

static void test_signed(void **state)
{
    (void)state;
    static const char *const fit[] = {"native", "signed", "flip", "marker", "sublists"};
    static const char *const unfit[] = {"simple", "tombstone", "paired", "ring"};
    char text[200];
    for (size_t i = 0; i < sizeof fit / sizeof fit[0]; i++) {
        (void)snprintf(text, sizeof text, SERVERS "[lists b-]\nbridge = signed\ndialect = %s\n",
                       fit[i]);
        struct config *c = good(text);
        assert_int_equal(config_list_policy(c, SLICE_LIT("b-"))->bridge, BRIDGE_SIGNED);
        config_destroy(&c);
    }
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        (void)snprintf(text, sizeof text, SERVERS "[lists b-]\nbridge = signed\ndialect = %s\n",
                       unfit[i]);
        refused(text, ":5: [lists b-]: bridge = signed: additions and deletions are no single step "
                      "in lists of this dialect; expected bridge = yes");
    }
    refused(SERVERS "[lists b-]\nbridge = signed\ndelimiter = -\n",
            ":5: [lists b-]: bridge = signed: the delimiter is one of the signs add_sign and "
            "delete_sign; expected another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
