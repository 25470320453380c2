/* SPDX-License-Identifier: BSD-3-Clause */
/* [route] and [route PREFIX]: what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "config/reload.h"
#include "support_config.h"

#define POOLS "[pool a]\nservers = s:1\n[pool b]\nservers = t:1\n[pool c]\nservers = u:1\n"

static const struct route_config *route_of(const struct config *config, const char *key)
{
    return config_route(config, slice_of(key));
}

static void test_without_a_section_all_go_to_one_pool(void **state)
{
    (void)state;
    struct config *c = good("[proxy]\npool = b\n" POOLS);
    assert_false(c->has_routes);
    assert_int_equal(route_of(c, "x")->pool_index, 1);
    assert_int_equal(route_of(c, "x")->failover_index, ROUTE_NONE);
    assert_false(route_reaches(route_of(c, "x"), 0));
    config_destroy(&c);
}

static void test_the_longest_prefix_counts_and_inherits(void **state)
{
    (void)state;
    struct config *c = good(POOLS "[route u:]\npool = b\n[route u:x*]\nshadow = \nfailover = b\n"
                                  "[route]\nshadow = c:12.5%\nfailover_ttl_s = 7\n");
    assert_int_equal(route_of(c, "k")->pool_index, 0);
    assert_int_equal(route_of(c, "k")->shadow_index, 2);
    assert_int_equal(route_of(c, "k")->shadow_share, 125000);
    assert_int_equal(route_of(c, "u:1")->pool_index, 1);
    assert_int_equal(route_of(c, "u:1")->shadow_index, 2);
    assert_int_equal(route_of(c, "u:1")->failover_index, ROUTE_NONE);
    assert_int_equal(route_of(c, "u:x1")->pool_index, 0);
    assert_int_equal(route_of(c, "u:x1")->shadow_index, ROUTE_NONE);
    assert_int_equal(route_of(c, "u:x1")->failover_index, 1);
    assert_int_equal(route_of(c, "u:x1")->failover_ttl_s, 7);
    assert_true(route_reaches(route_of(c, "u:x1"), 1) && !route_reaches(route_of(c, "u:x1"), 2));
    config_destroy(&c);
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t share;
    } shares[] = {
        {"100%", 1000000}, {"1%", 10000}, {"0.0001%", 1}, {"50.5%", 505000}, {"99.9999%", 999999}};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, POOLS "[route x]\nshadow = b:%s\n", shares[i].text);
        struct config *c = good(text);
        assert_int_equal(route_of(c, "x")->shadow_share, shares[i].share);
        config_destroy(&c);
    }
}

static struct config *reloaded(const char *before, const char *after)
{
    struct config *now = good(before), *next = good(after);
    config_adopt(now, next);
    config_destroy(&next);
    return now;
}

static void test_a_reload_finds_pools_by_their_names(void **state)
{
    (void)state;
    struct config *c = reloaded(POOLS "[proxy]\npool = a\n[route x]\n",
                                "[pool c]\nservers = u:1\n[pool b]\nservers = t:1\n[pool a]\n"
                                "servers = s:1\n[proxy]\npool = a\n[route x]\nfailover = b\n"
                                "shadow = c:7%\n");
    assert_int_equal(route_of(c, "x")->pool_index, 0);
    assert_int_equal(route_of(c, "x")->failover_index, 1);
    assert_int_equal(route_of(c, "x")->shadow_index, 2);
    assert_int_equal(route_of(c, "x")->shadow_share, 70000);
    config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_section_all_go_to_one_pool),
        cmocka_unit_test(test_the_longest_prefix_counts_and_inherits),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_a_reload_finds_pools_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
