/* SPDX-License-Identifier: BSD-3-Clause */
/* Two configurations: what differs, and what of it goes into the one in force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "config/reload.h"
#include "config/table.h"
#include "support_config.h"

#define NOW \
    "[proxy]\nslow_ms = 100\n[pool a]\nservers = s:1, t:2\n[pool b]\nservers = u:1\n" \
    "[lists]\nmax_item_bytes = 99\n[lists x:]\nttl_s = 5\n[lists longer:]\ndialect = simple\n"

struct told {
    char text[4096];
    size_t n;
};

static void tell(void *arg, const struct config_change *change)
{
    struct told *told = arg;
    told->n +=
        (size_t)snprintf(told->text + told->n, sizeof told->text - told->n,
                         "%s [%s] %s: %s -> %s\n", change->live ? "live" : "fixed", change->section,
                         change->key == NULL ? "-" : change->key, change->now, change->next);
    assert_true(told->n < sizeof told->text);
}

static void differs(const char *before, const char *after, const char *expected)
{
    struct config *now = good(before), *next = good(after);
    struct told told = {.n = 0};
    config_compare(now, next, tell, &told);
    assert_string_equal(told.text, expected);
    config_destroy(&now);
    config_destroy(&next);
}

static void test_equal_ones_do_not_differ(void **state)
{
    (void)state;
    differs(NOW, NOW, "");
    /* Another order, other words for the same value, a default that is named. */
    differs(NOW,
            "[lists longer:*]\ndialect = simple\n[lists x:]\nttl_s = 5\n[lists]\n"
            "max_item_bytes = 99\n[pool b]\nservers = u:1\n[pool a]\nservers = s:1\n"
            "servers = t:2\n[proxy]\npool = a\nslow_ms = 100\nthreads = 2\n",
            "fixed [proxy] pool:  -> a\n");
}

static void test_differences_are_told_one_by_one(void **state)
{
    (void)state;
    differs(NOW,
            "[proxy]\nslow_ms = 7\nthreads = 3\n[admin]\ntimeout_ms = 500\n[pool a]\n"
            "servers = t:2, s:1\n[pool b]\nservers = u:1\ntimeout_ms = 9\n[lists]\n"
            "max_item_bytes = 99\n[lists x:]\nttl_s = 6\n[lists longer:]\ndialect = signed\n",
            "fixed [proxy] threads: 2 -> 3\n"
            "live [proxy] slow_ms: 100 -> 7\n"
            "live [admin] timeout_ms: 10000 -> 500\n"
            "fixed [pool a] servers: s:1, t:2 -> t:2, s:1\n"
            "live [pool b] timeout_ms: 1000 -> 9\n"
            "fixed [lists longer:] dialect: simple -> signed\n"
            "live [lists x:] ttl_s: 5 -> 6\n");
}

/* What [lists] says holds for all prefixes that say nothing of it. */
static void test_what_is_inherited_changes_with_its_source(void **state)
{
    (void)state;
    differs("[pool a]\nservers = s\n[lists x]\n",
            "[pool a]\nservers = s\n[lists]\nmax_item_bytes = 9\n[lists x]\n",
            "live [lists] max_item_bytes: 1024 -> 9\n"
            "live [lists x] max_item_bytes: 1024 -> 9\n");
}

static void test_sections_that_come_and_go(void **state)
{
    (void)state;
    differs("[pool a]\nservers = s\n[lists x]\n", "[pool a]\nservers = s\n[pool b]\nservers = t\n",
            "fixed [lists x] -: there -> missing\n"
            "fixed [pool b] -: missing -> there\n");
}

static void test_what_is_live_is_adopted_and_nothing_else(void **state)
{
    (void)state;
    struct config *now = good(NOW);
    struct config *next =
        good("# a line more\n[lists x:]\nttl_s = 6\n[lists longer:]\ndialect = signed\n"
             "log_limit_bytes = 300\n[pool b]\nservers = u:1\nmax_pending = 5\n[pool a]\n"
             "servers = s:1, t:2, v:3\n[proxy]\nslow_ms = 7\nthreads = 3\n[lists]\n"
             "max_item_bytes = 98\n");
    const struct pool_config *b = &now->pools[1];
    const struct list_policy *longer = config_list_policy(now, SLICE_LIT("longer:k"));
    memcpy(next->pools[0].password, "new", sizeof "new");
    config_adopt(now, next);
    assert_int_equal(now->slow_ms, 7);
    assert_int_equal(now->threads, 2);
    assert_int_equal(now->pools[0].server_count, 2);
    assert_int_equal(b->max_pending, 5);
    assert_string_equal(now->pools[1].password, "new"); /* of b, the first one of next */
    assert_ptr_equal(config_list_policy(now, SLICE_LIT("longer:k")), longer);
    assert_int_equal(longer->dialect, DIALECT_SIMPLE);
    assert_int_equal(longer->log_limit_bytes, 300);
    assert_int_equal(longer->max_item_bytes, 98);
    assert_int_equal(config_list_policy(now, SLICE_LIT("x:k"))->ttl_s, 6);
    /* Where things were set is that of the new file. */
    size_t count;
    const struct config_key *keys = config_keys(&count);
    assert_int_equal(now->given_line[config_key_find(SECTION_PROXY, SLICE_LIT("slow_ms")) - keys],
                     13);
    config_destroy(&now);
    config_destroy(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_ones_do_not_differ),
        cmocka_unit_test(test_differences_are_told_one_by_one),
        cmocka_unit_test(test_what_is_inherited_changes_with_its_source),
        cmocka_unit_test(test_sections_that_come_and_go),
        cmocka_unit_test(test_what_is_live_is_adopted_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
