/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes over a file: options and pools added later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "support_config.h"

#define POOL "[pool a]\nservers = s:1\n"

static void test_a_flush_that_keeps_lists(void **state)
{
    (void)state;
#define KEEPS "[proxy]\npool = a\nallow_flush_all = keep_lists\n"
#define LISTS "[pool lists]\nservers = t:1\n[lists]\npool = lists\n"
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
    struct config *embedded = good("[proxy]\nallow_flush_all = keep_lists\n");
    assert_int_equal(config_add_embedded(embedded, "unix:/tmp/x", config_error), -1);
    config_destroy(&embedded);
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
        cmocka_unit_test(test_a_flush_that_keeps_lists),
        cmocka_unit_test(test_needs_of_what_is_printed),
        cmocka_unit_test(test_pools_added_later),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
