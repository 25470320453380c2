/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/table.h"
#include "support_config.h"

/* Enough for a file to be complete. */
#define POOL "[pool a]\nservers = s:1\n"

static const struct list_policy *policy_of(const struct config *config, const char *key)
{
    return config_list_policy(config, slice_of(key));
}

static void test_defaults(void **state)
{
    (void)state;
    struct config *c = config_create();
    assert_int_equal(c->listeners[0].listen.count, 1);
    assert_string_equal(c->listeners[0].listen.at[0].host, "127.0.0.1");
    assert_int_equal(c->listeners[0].listen.at[0].port, 11220);
    assert_int_equal(c->threads, 2);
    assert_int_equal(c->max_line_bytes, 1048576);
    assert_int_equal(c->client_hard_bytes, 256 << 20);
    assert_int_equal(c->allow_flush_all, FLUSH_ALL_EMBEDDED);
    assert_int_equal(c->socket_mode, -1);
    assert_int_equal(c->log_level, LOG_INFO_LEVEL);
    assert_string_equal(c->embedded_memcached, "memcached");
    assert_int_equal(c->pool_count, 0);
    assert_int_equal(c->list_count, 1);
    assert_string_equal(c->lists[0].prefix, "");
    assert_int_equal(c->lists[0].delimiter, ',');
    assert_int_equal(c->lists[0].log_limit_bytes, 16384);
    assert_int_equal(config_finish(c, config_error), 0);
    assert_int_equal(config_add_pool(c, "default", "a:1 2, b:1", config_error), 0);
    assert_int_equal(config_finish(c, config_error), 0);
    assert_int_equal(c->pools[0].server_count, 2);
    assert_int_equal(c->pools[0].timeout_ms, 1000);
    config_destroy(&c);
    assert_null(c);
    config_destroy(&c);
}

static void test_layout_of_a_file(void **state)
{
    (void)state;
    struct config *c = good("\xef\xbb\xbf# comment\r\n"
                            "; another\r\n"
                            "\r\n"
                            "  [ proxy ]  # behind a section\r\n"
                            "threads=3\r\n"
                            "   max_pipeline   =   7   ; behind a value\r\n"
                            "log_file = /x;y#z # only behind a blank\r\n"
                            "[pool a];x\r\n"
                            "servers = s:1"); /* no line end */
    assert_int_equal(c->threads, 3);
    assert_int_equal(c->max_pipeline, 7);
    assert_string_equal(c->log_file, "/x;y#z");
    assert_int_equal(c->pools[0].line, 8);
    config_destroy(&c);
    c = good("");
    config_destroy(&c);
}

static void test_all_kinds_of_values(void **state)
{
    (void)state;
    struct config *c = good("[proxy]\n"
                            "listen = 0.0.0.0:1, [::1]:2\ninsecure = yes\n"
                            "listen = unix:/run/x\n"
                            "max_line_bytes = 2k\n"
                            "max_value_bytes = 8M\n"
                            "client_hard_bytes = 2g\nmemory_limit_bytes = 2g\n"
                            "allow_flush_all = no\n"
                            "socket_mode = 0640\n"
                            "log_level = debug\n"
                            "pool = b\n"
                            "[pool a]\n"
                            "servers = x:1 3, y:1\n"
                            "servers = z:1\n"
                            "[pool b]\n"
                            "servers = unix:/y\n"
                            "distribution = modula\n"
                            "hash = hsieh\n"
                            "[lists]\n"
                            "delimiter = none\n"
                            "cache_bytes = 0\n"
                            "on_damaged = miss\n"
                            "placement = spread\n");
    assert_int_equal(c->listeners[0].listen.count, 3);
    assert_int_equal(c->listeners[0].listen.at[2].port, 0);
    assert_int_equal(c->max_line_bytes, 2048);
    assert_int_equal(c->max_value_bytes, 8 << 20);
    assert_true(c->client_hard_bytes == (uint64_t)2 << 30);
    assert_int_equal(c->allow_flush_all, FLUSH_ALL_NO);
    assert_int_equal(c->socket_mode, 0640);
    assert_int_equal(c->log_level, LOG_DEBUG_LEVEL);
    assert_int_equal(c->pool_index, 1);
    assert_int_equal(c->pools[0].server_count, 3);
    assert_int_equal(c->pools[0].distribution, DISTRIBUTION_KETAMA_WEIGHTED);
    assert_int_equal(c->pools[1].distribution, DISTRIBUTION_MODULA);
    assert_int_equal(c->pools[1].hash, HASH_HSIEH);
    assert_int_equal(c->lists[0].delimiter, -1);
    assert_int_equal(c->lists[0].cache_bytes, 0);
    assert_int_equal(c->lists[0].on_damaged, ON_DAMAGED_MISS);
    assert_int_equal(c->lists[0].placement, PLACEMENT_SPREAD);
    assert_int_equal(c->lists[0].pool_index, 1);
    config_destroy(&c);
}

static int delimiter_of(const char *text)
{
    char ini[128];
    (void)snprintf(ini, sizeof ini, "[lists]\ndelimiter = %s\n", text);
    struct config *c = good(ini);
    int delimiter = c->lists[0].delimiter;
    config_destroy(&c);
    return delimiter;
}

static void test_delimiters(void **state)
{
    (void)state;
    assert_int_equal(delimiter_of("|"), '|');
    assert_int_equal(delimiter_of("\\x20"), ' ');
    assert_int_equal(delimiter_of("\\x23"), '#');
    assert_int_equal(delimiter_of("\\xFf"), 255);
    assert_int_equal(delimiter_of("none"), -1);
}

static void test_inheritance_whatever_the_order(void **state)
{
    (void)state;
    struct config *c = good("[lists topic-]\n"
                            "log_limit_bytes = 1k\n"
                            "max_item_bytes = 100\n"
                            "[lists]\n"
                            "pool = b\n"
                            "log_limit_bytes = 2k\n"
                            "on_missing = refuse\n"
                            "[lists topic-hot-]\n"
                            "pool = a\n"
                            "on_missing = create\n" POOL "[pool b]\nservers = s:2\n");
    const struct list_policy *hot = policy_of(c, "topic-hot-1");
    const struct list_policy *topic = policy_of(c, "topic-1");
    const struct list_policy *other = policy_of(c, "x");
    assert_ptr_equal(other, &c->lists[0]);
    assert_int_equal(other->log_limit_bytes, 2048);
    assert_int_equal(other->pool_index, 1);
    assert_string_equal(topic->prefix, "topic-");
    assert_int_equal(topic->log_limit_bytes, 1024);
    assert_int_equal(topic->max_item_bytes, 100);
    assert_int_equal(topic->on_missing, ON_MISSING_REFUSE);
    assert_int_equal(topic->pool_index, 1);
    assert_string_equal(hot->prefix, "topic-hot-");
    /* From [lists], not from the shorter prefix. */
    assert_int_equal(hot->log_limit_bytes, 2048);
    assert_int_equal(hot->max_item_bytes, 1024);
    assert_int_equal(hot->on_missing, ON_MISSING_CREATE);
    assert_int_equal(hot->pool_index, 0);
    for (uint32_t i = 0; i < c->list_count; i++) {
        assert_int_equal(c->lists[i].index, i);
    }
    config_destroy(&c);
}

static void test_longest_prefix(void **state)
{
    (void)state;
    struct config *c = good("[lists a]\n[lists abc]\n[lists ab]\n[lists \\xc3\\xa4]\n[lists b]\n");
    assert_string_equal(policy_of(c, "")->prefix, "");
    assert_string_equal(policy_of(c, "z")->prefix, "");
    assert_string_equal(policy_of(c, "a")->prefix, "a");
    assert_string_equal(policy_of(c, "ab")->prefix, "ab");
    assert_string_equal(policy_of(c, "abb")->prefix, "ab");
    assert_string_equal(policy_of(c, "abcd")->prefix, "abc");
    assert_string_equal(policy_of(c, "axbc")->prefix, "a");
    assert_string_equal(policy_of(c, "ba")->prefix, "b");
    assert_string_equal(policy_of(c, "\xc3\xa4x")->prefix, "\xc3\xa4");
    config_destroy(&c);
}

static void test_long_prefixes(void **state)
{
    (void)state;
    char ini[400];
    char prefix[222];
    memset(prefix, 'p', sizeof prefix);
    (void)snprintf(ini, sizeof ini, "[lists %.220s]\nmax_item_bytes = 5\n", prefix);
    struct config *c = good(ini);
    prefix[220] = '\0';
    assert_int_equal(policy_of(c, prefix)->max_item_bytes, 5);
    assert_int_equal(policy_of(c, prefix)->prefix_len, 220);
    config_destroy(&c);
    memset(prefix, 'p', sizeof prefix);
    (void)snprintf(ini, sizeof ini, "[lists %.221s]\n", prefix);
    assert_non_null(strstr(said_of(ini), "is no prefix of a list's key; expected 1 to 220 bytes"));
}

/* The error names all keys of [proxy]. */
static void test_a_key_like_no_other(void **state)
{
    (void)state;
    char expected[CONFIG_ERROR_MAX];
    size_t count;
    const struct config_key *keys = config_keys(&count);
    size_t n =
        (size_t)snprintf(expected, sizeof expected, ":3: colour: not a key of [proxy]; expected");
    for (size_t i = 0; i < count && n < sizeof expected; i++) {
        if (keys[i].section == SECTION_PROXY) {
            n += (size_t)snprintf(expected + n, sizeof expected - n, " %s", keys[i].name);
        }
    }
    assert_true(n < sizeof expected);
    refused("[proxy]\n\ncolour = 1\n", expected);
}

static void test_lines_that_are_no_text(void **state)
{
    (void)state;
    size_t len = 70000;
    char *line = calloc(1, len + 1);
    assert_non_null(line);
    memset(line, 'x', len);
    assert_non_null(strstr(said_of(line), ":1: the line is too long; expected less than 64k"));
    free(line);
    struct config *c = config_create();
    assert_int_equal(config_load_bytes(c, "[proxy]\nlog_file = a\0b\n", 23), -1);
    assert_non_null(strstr(config_error, ":2: the line holds a NUL byte; expected text"));
    config_destroy(&c);
}

/* What users write who know other programs. */
static void test_friendly(void **state)
{
    (void)state;
    struct config *c = good("\xef\xbb\xbf[proxy]\nlisten = 127.0.0.1\n[pool a]\n"
                            "servers = one, two 3, [::1], unix:/tmp/x\n"
                            "[lists topic-*]\nmax_item_bytes = 64\n[lists a\\x2a]\n");
    assert_int_equal(c->listeners[0].listen.at[0].port, 11220);
    assert_string_equal(c->pools[0].servers[0].name, "one:11211");
    assert_string_equal(c->pools[0].servers[1].name, "two:11211");
    assert_int_equal(c->pools[0].servers[1].weight, 3);
    assert_string_equal(c->pools[0].servers[2].name, "[::1]:11211");
    assert_string_equal(c->pools[0].servers[3].name, "unix:/tmp/x");
    assert_int_equal(policy_of(c, "topic-7")->max_item_bytes, 64);
    assert_string_equal(policy_of(c, "topic-7")->prefix, "topic-");
    assert_string_equal(policy_of(c, "a*7")->prefix, "a*");
    config_destroy(&c);
    /* Only a file begins with a byte order mark. */
    refused("[proxy]\n\xef\xbb\xbfthreads = 1\n",
            ":2: \\xef\\xbb\\xbfthreads: not a key of [proxy]; did you mean threads?");
}

static void count_settings(void *arg, const char *section, const char *key, const char *value,
                           const char *origin)
{
    size_t *count = arg;
    (void)origin;
    *count += strcmp(section, "lists *tags|") == 0 && strcmp(key, "bridge") == 0 &&
              strcmp(value, "yes") == 0;
    *count += strcmp(section, "lists \\x2atags|") == 0 && strcmp(key, "bridge") == 0 &&
              strcmp(value, "no") == 0;
}

static void test_keys_behind_what_clients_put_before(void **state)
{
    (void)state;
    size_t settings = 0;
    struct config *c = good("[lists *tags|*]\nbridge = yes\n[lists tags|]\nmax_items = 3\n"
                            "[lists \\x2atags|]\nmax_items = 4\n[lists *sub|]\nttl_s = 5\n"
                            "[lists]\nmax_items = 2\n");
    assert_true(c->has_bridge);
    assert_int_equal(policy_of(c, "app:1:tags|7")->bridge, BRIDGE_YES);
    assert_int_equal(policy_of(c, "app:1:tags|7")->max_items, 2);
    assert_int_equal(policy_of(c, "app:sub|x")->ttl_s, 5);
    assert_int_equal(policy_of(c, "tags|7")->max_items, 3);
    assert_int_equal(policy_of(c, "*tags|7")->max_items, 4);
    assert_string_equal(policy_of(c, "tags7")->prefix, "");
    config_print(c, count_settings, &settings);
    assert_int_equal(settings, 2);
    config_destroy(&c);
}

static void test_too_much(void **state)
{
    (void)state;
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "[pool a]\nservers = ");
    for (int i = 1; i <= 101; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%sh:%d", i == 1 ? "" : ",", i);
    }
    refused(text, ":2: servers: too many servers; expected at most 100 in a pool");
    n = 0;
    for (int i = 1; i <= CONFIG_POOLS_MAX + 1; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "[pool p%d]\nservers = a:1\n", i);
    }
    refused(text, ":129: [pool p65]: too many pools; expected at most 64");
    n = 0;
    for (int i = 1; i <= CONFIG_LISTS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "[lists p%d]\n", i);
    }
    refused(text, ":256: [lists p256]: too many prefixes of lists; expected at most 255");
    n = (size_t)snprintf(text, sizeof text, "[proxy]\n");
    for (int i = 1; i <= CONFIG_LISTEN_MAX + 1; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "listen = a:%d\n", i);
    }
    refused(text, ":34: listen: too many addresses; expected at most 32");
    memset(text, 'x', sizeof text);
    memcpy(text, "[proxy]\nlog_file = ", 19);
    text[19 + 256] = '\0';
    refused(text, ":2: log_file: a text of 256 bytes; expected at most 255");
}

static void test_unreadable_files(void **state)
{
    (void)state;
    struct config *c = config_create();
    assert_int_equal(config_load(c, "/nonexistent/file", config_error), -1);
    assert_string_equal(config_error,
                        "/nonexistent/file: cannot be opened: No such file or directory");
    assert_int_equal(config_load(c, "/tmp", config_error), -1);
    assert_string_equal(config_error, "/tmp: cannot be read: Is a directory");
    config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_layout_of_a_file),
        cmocka_unit_test(test_all_kinds_of_values),
        cmocka_unit_test(test_delimiters),
        cmocka_unit_test(test_inheritance_whatever_the_order),
        cmocka_unit_test(test_longest_prefix),
        cmocka_unit_test(test_long_prefixes),
        cmocka_unit_test(test_a_key_like_no_other),
        cmocka_unit_test(test_friendly),
        cmocka_unit_test(test_keys_behind_what_clients_put_before),
        cmocka_unit_test(test_lines_that_are_no_text),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_unreadable_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
