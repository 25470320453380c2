/* SPDX-License-Identifier: BSD-3-Clause */
/* What config_finish refuses, and what goes over a file: options and pools added later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_config.h"

#define POOL "[pool a]\nservers = s:1\n"

static void test_proxy(void **state)
{
    (void)state;
    refused("[proxy]\nthreads = 4\nmax_connections = 3\n",
            ": [proxy]: max_connections (3) must be at least threads (4)");
    refused("[proxy]\nclient_output_bytes = 1m\nclient_hard_bytes = 1m\n",
            ": [proxy]: client_hard_bytes (1048576) must be above client_output_bytes (1048576), "
            "or clients are closed before they are slowed down");
    refused("[proxy]\nclient_hard_bytes = 100m\nmax_value_bytes = 100m\n",
            ": [proxy]: client_hard_bytes (104857600) must be above max_value_bytes (104857600), "
            "or no client could read its own value");
    refused("[proxy]\nmemory_limit_bytes = 255m\n",
            ": [proxy]: memory_limit_bytes (267386880) must not be below client_hard_bytes "
            "(268435456), or clients are closed for what they may leave unread");
    refused("[proxy]\nmax_value_bytes = 64m\nmemory_limit_bytes = 255m\n"
            "client_hard_bytes = 100m\n",
            ": [proxy]: memory_limit_bytes (267386880) must be at least four times "
            "max_value_bytes (67108864), or clients are closed for one value each");
    refused("[proxy]\npool = b\n" POOL,
            ": [proxy]: pool: there is no [pool b]; expected the NAME of a [pool NAME]");
    refused("[proxy]\npool = caches\n[pool cache]\nservers = s:1\n",
            ": [proxy]: pool: there is no [pool caches]; did you mean cache?");
    refused("[proxy]\nlisten = s:1\n" POOL,
            ": [proxy]: listen s:1 is a server of pool a too; the proxy would be its own client");
    refused("[proxy]\nresolver = 10.0.0.1, dns.example.org\n" POOL,
            ": [proxy]: resolver: 'dns.example.org:53' is no address; expected IP, IP:port or "
            "[IPv6]:port");
    refused("[proxy]\nresolver = 10.0.0.1,\n" POOL,
            ": [proxy]: resolver: an address is missing; expected host:port, [IPv6]:port or "
            "unix:PATH");
}

static void test_a_flush_that_keeps_lists(void **state)
{
    (void)state;
#define KEEPS "[proxy]\npool = a\nallow_flush_all = keep_lists\n"
#define LISTS "[pool lists]\nservers = t:1\n[lists]\npool = lists\n"
#define REFUSED \
    ":3: [proxy]: allow_flush_all = keep_lists: server s:1 has plain keys (pool a) and lists "
#define EXPECTED ", and would lose both; expected servers of their own for lists"
    struct config *c =
        good(KEEPS LISTS POOL "[pool b]\nservers = u:1\n[pool other]\nservers = v:1\n"
                              "[route x]\nfailover = b\n");
    for (size_t i = 0; i < c->pool_count; i++) {
        bool plain = strlen(c->pools[i].name) == 1;
        assert_int_equal(c->flush_pools >> i & 1, plain);
    }
    config_destroy(&c);
    c = good(KEEPS LISTS POOL "next = b\n[pool b]\nservers = u:1\n");
    for (size_t i = 0; i < c->pool_count; i++) {
        bool plain = strlen(c->pools[i].name) == 1;
        assert_int_equal(c->flush_pools >> i & 1, plain);
    }
    config_destroy(&c);
    c = good("[proxy]\npool = a\nallow_flush_all = yes\n" LISTS POOL);
    assert_int_equal(c->flush_pools & 3, 3);
    config_destroy(&c);
    refused(KEEPS POOL, REFUSED "(pool a)" EXPECTED);
    refused(KEEPS LISTS POOL "[lists x]\npool = a\n", REFUSED "(pool a)" EXPECTED);
    refused(KEEPS POOL "[pool lists]\nservers = t:1, s:1\n[lists]\npool = lists\n",
            REFUSED "(pool lists)" EXPECTED);
    refused(KEEPS LISTS POOL "[pool b]\nservers = u:1\n[pool to]\nservers = s:1\n[pool from]\n"
                             "servers = w:1\nnext = to\n[lists x]\npool = from\n",
            REFUSED "(pool to)" EXPECTED);
    struct config *embedded = good("[proxy]\nallow_flush_all = keep_lists\n");
    assert_int_equal(config_add_embedded(embedded, "unix:/tmp/x", config_error), -1);
    config_destroy(&embedded);
}

static void test_embedded(void **state)
{
    (void)state;
    refused("[proxy]\nmax_value_bytes = 100m\nembedded_memory_mb = 199\n",
            ": [proxy]: max_value_bytes (104857600) is more than half of embedded_memory_mb (199 "
            "MB), which memcached does not take");
    accepted("[proxy]\nmax_value_bytes = 100m\nembedded_memory_mb = 200\n");
    accepted("[proxy]\nmax_value_bytes = 100m\nembedded_memory_mb = 100\n" POOL);
    refused("[proxy]\npool = b\n",
            ": [proxy]: pool: there is no [pool b]; expected the NAME of a [pool NAME]");
}

static void test_pools(void **state)
{
    (void)state;
    refused("\n[pool a]\ntimeout_ms = 5\n",
            ":2: [pool a]: no servers; expected servers = host:port, ...");
    refused(POOL "retry_min_ms = 2001\n",
            ":1: [pool a]: retry_min_ms (2001) must not be above retry_max_ms (2000)");
    refused("[pool a]\nservers = s:1 2\ndistribution = modula\n",
            ":1: [pool a]: s:1 has a weight, which only distribution = ketama_weighted heeds");
    refused("[pool a]\nservers = s:1 2\ndistribution = ketama\n",
            ":1: [pool a]: s:1 has a weight, which only distribution = ketama_weighted heeds");
    accepted("[pool a]\nservers = s:1 1\ndistribution = modula\n");
}

static void test_lists(void **state)
{
    (void)state;
    refused(POOL "[lists x]\npool = b\n",
            ":3: [lists x]: pool: there is no [pool b]; expected the NAME of a [pool NAME]");
    refused("[lists]\nlog_hard_limit_bytes = 32767\n",
            ":1: [lists]: log_hard_limit_bytes (32767) must be at least twice log_limit_bytes "
            "(16384), or changes are refused while a log is folded");
    accepted("[lists]\nlog_hard_limit_bytes = 32768\n");
    refused("[lists]\nmax_item_bytes = 16369\n",
            ":1: [lists]: an item of max_item_bytes (16369) and 16 more must fit log_limit_bytes "
            "(16384)");
    accepted("[lists]\nmax_item_bytes = 16368\n");
    refused("[lists]\nsublist_limit_bytes = 1039\n",
            ":1: [lists]: an item of max_item_bytes (1024) and 16 more must fit "
            "sublist_limit_bytes (1039)");
    accepted("[lists]\nsublist_limit_bytes = 1040\n");
    refused("[lists]\ncache_bytes = 100k\n",
            ":1: [lists]: cache_bytes (102400) must hold one sublist of sublist_limit_bytes "
            "(131072), or be 0");
    accepted("[lists]\ncache_bytes = 0\n");
    refused("[lists]\nfold_memory_bytes = 8912895\n",
            ":1: [lists]: fold_memory_bytes (8912895) must be at least 64 times "
            "log_hard_limit_bytes and four times sublist_limit_bytes (8912896), or short items "
            "cannot be merged");
    accepted("[lists]\nfold_memory_bytes = 8704k\n");
    refused("[lists]\nmax_item_bytes = 8k\nmax_answer_bytes = 4k\n",
            ":1: [lists]: max_answer_bytes (4096) must hold an item of max_item_bytes (8192)");
    refused("[lists]\nmax_answer_bytes = 257m\n",
            ":1: [lists]: max_answer_bytes (269484032) must not be above client_hard_bytes of "
            "[proxy] (268435456), or clients are closed while they read");
    refused("[proxy]\nmax_value_bytes = 4k\n[lists]\nmax_item_bytes = 8k\n",
            ":3: [lists]: max_item_bytes (8192) must not be above max_value_bytes of [proxy] "
            "(4096), or laddb cannot send such an item");
}

static void test_keys_that_need_another(void **state)
{
    (void)state;
    refused("[lists]\ncap = refuse\n",
            ":2: [lists]: cap: max_items = 0 does not use it; expected with max_items above 0");
    refused("[lists x]\ncap = drop_oldest\n[lists y]\nmax_items = 3\n",
            ":2: [lists x]: cap: max_items = 0 does not use it; expected with max_items above 0");
    refused("[lists]\nttl_renew = read\n[lists y]\nmax_items = 3\n",
            ":2: [lists]: ttl_renew: ttl_s = 0 does not use it; expected with ttl_s above 0");
    refused("[lists]\nttl_s = 5\n[lists x]\nttl_s = 0\nttl_renew = change\n",
            ":5: [lists x]: ttl_renew: ttl_s = 0 does not use it; expected with ttl_s above 0");
    refused("[lists]\nbridge_flags_out = 1\n",
            ":2: [lists]: bridge_flags_out: bridge = no does not use it; expected with bridge = "
            "yes");
    accepted("[lists]\ncap = refuse\n[lists x]\nmax_items = 3\n");
    accepted("[lists x]\ncap = refuse\n[lists]\nmax_items = 3\n");
    accepted("[lists]\nttl_renew = read\n[lists x]\nttl_s = 3\n");
    /* As all settings are printed. */
    accepted("[lists]\ncap = drop_oldest\nttl_renew = never\nbridge_flags_in = 0, 16\n"
             "bridge_last_delimiter = no\n");
}

static void keep_setting(void *arg, const char *section, const char *key, const char *value,
                         const char *from)
{
    bool *seen = arg;
    (void)value, (void)from;
    seen[0] = seen[0] || (strcmp(section, "lists x") == 0 && strcmp(key, "ttl_renew") == 0);
    seen[1] = seen[1] || (strcmp(section, "lists x") == 0 && strcmp(key, "cap") == 0);
}

/* Else the settings as they are printed would be no configuration. */
static void test_needs_of_what_is_printed(void **state)
{
    (void)state;
    bool seen[2] = {false, false};
    struct config *c = good("[lists]\ncap = refuse\nttl_renew = read\n[lists x]\nttl_s = 3\n"
                            "[lists y]\nmax_items = 3\n");
    config_print(c, keep_setting, seen);
    assert_true(seen[0]);
    assert_false(seen[1]);
    config_destroy(&c);
}

/* The combination counts, wherever its halves come from. */
static void test_inherited(void **state)
{
    (void)state;
    refused("[lists \\xff]\nlog_limit_bytes = 100k\n[lists]\nlog_hard_limit_bytes = 64k\n",
            ":1: [lists \\xff]: log_hard_limit_bytes (65536) must be at least twice "
            "log_limit_bytes (102400), or changes are refused while a log is folded");
}

/* The smallest limits that tests of many flips want. */
static void test_tiny_limits(void **state)
{
    (void)state;
    accepted("[lists]\nmax_item_bytes = 64\nlog_limit_bytes = 256\nlog_hard_limit_bytes = 512\n"
             "sublist_limit_bytes = 512\ncache_bytes = 512\nmax_answer_bytes = 1k\n"
             "fold_memory_bytes = 34k\n");
}

static void test_pools_added_later(void **state)
{
    (void)state;
    struct config *c = config_create();
    assert_int_equal(config_add_pool(c, "a", "x:0", config_error), -1);
    assert_string_equal(config_error, "'x:0' has a bad port; expected 1 to 65535");
    config_destroy(&c);
    c = config_create();
    assert_int_equal(config_add_pool(c, "a", "x:1", config_error), 0);
    assert_int_equal(config_add_pool(c, "a", "y:1", config_error), -1);
    assert_string_equal(config_error, "a second pool 'a'");
    assert_int_equal(config_add_pool(c, "b", "x:1 2", config_error), 0);
    c->pools[1].distribution = DISTRIBUTION_MODULA;
    assert_int_equal(config_finish(c, config_error), -1);
    assert_string_equal(
        config_error,
        "[pool b]: x:1 has a weight, which only distribution = ketama_weighted heeds");
    config_destroy(&c);
    c = config_create();
    assert_int_equal(config_add_pool(c, "a", "couchbase://x", config_error), 0);
    assert_int_equal(config_finish(c, config_error), -1);
    assert_string_equal(config_error, "[pool a]: couchbase://x:11211 is no address of a memcached; "
                                      "expected with type = couchbase");
    config_destroy(&c);
}

static void test_set(void **state)
{
    (void)state;
    struct config *c = config_create();
    assert_int_equal(config_set(c, "threads", " 7 ", config_error), 0);
    assert_int_equal(c->threads, 7);
    assert_int_equal(config_set(c, "threads", "x", config_error), -1);
    assert_string_equal(config_error, "threads: 'x' is not a number; expected 1 to 64");
    assert_int_equal(config_set(c, "listen", "a:1,b:2", config_error), 0);
    assert_int_equal(c->listeners[0].listen.count, 2);
    config_destroy(&c);
}

static void test_set_listen(void **state)
{
    (void)state;
    char name[ENDPOINT_TEXT_MAX];
    struct config *c = config_create();
    assert_int_equal(config_set_listen(c, NULL, 5, config_error), 0);
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[0], name), "127.0.0.1:5");
    assert_int_equal(config_set_listen(c, "0.0.0.0, [::1]:7, unix:x", 6, config_error), 0);
    assert_int_equal(c->listeners[0].listen.count, 3);
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[0], name), "0.0.0.0:6");
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[1], name), "[::1]:7");
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[2], name), "unix:x");
    assert_int_equal(config_set_listen(c, NULL, 8, config_error), 0);
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[1], name), "[::1]:8");
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[2], name), "unix:x");
    assert_int_equal(config_set_listen(c, "localhost", 0, config_error), 0);
    assert_string_equal(endpoint_format(&c->listeners[0].listen.at[0], name), "localhost:11220");
    assert_int_equal(config_set_listen(c, "a:1,a:2", 0, config_error), 0);
    assert_int_equal(config_set_listen(c, NULL, 3, config_error), -1);
    assert_string_equal(config_error, "'a:3' is named twice; expected each address once");
    config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_a_flush_that_keeps_lists),
        cmocka_unit_test(test_embedded),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_keys_that_need_another),
        cmocka_unit_test(test_needs_of_what_is_printed),
        cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_tiny_limits),
        cmocka_unit_test(test_pools_added_later),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
