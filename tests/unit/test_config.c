/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/table.h"
#include "support_config.h"

/* Enough for a file to be complete. */
#define POOL "[pool a]\nservers = s:1\n"

/* Loads and finishes text; returns the result, the configuration in *config. */
static int load_bytes(struct config **config, const void *text, size_t len)
{
    *config = config_create();
    int result = config_load_bytes(*config, text, len);
    return result != 0 ? result : config_finish(*config, config_error);
}

/* expected is what follows the file's name. */
static void bad(const char *text, const char *expected)
{
    struct config *config;
    assert_int_equal(load_bytes(&config, text, strlen(text)), -1);
    assert_config_error(expected);
    config_destroy(&config);
}

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
    static const char *const wrong[][2] = {
        {"", "'' is not one byte"},
        {";", "'' is not one byte"}, /* a comment */
        {"ab", "'ab' is not one byte"},
        {"\\", "'\\' is not one byte"},
        {"\\x2", "'\\x2' is not one byte"},
        {"\\x2g", "'\\x2g' is not one byte"},
        {"x", "'x' is in too many items"},
        {"7", "'7' is in too many items"},
        {"\\x41", "'\\x41' is in too many items"},
        {"\\x0a", "'\\x0a' would break answers apart"},
        {"\\x00", "'\\x00' would break answers apart"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char ini[128];
        char expected[256];
        (void)snprintf(ini, sizeof ini, "[lists]\ndelimiter = %s\n", wrong[i][0]);
        (void)snprintf(expected, sizeof expected,
                       ":2: delimiter: %s; expected a punctuation character, \\xNN (# and ; are "
                       "\\x23 and \\x3b) or none",
                       wrong[i][1]);
        bad(ini, expected);
    }
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
    struct config *c;
    memset(prefix, 'p', sizeof prefix);
    (void)snprintf(ini, sizeof ini, "[lists %.220s]\nmax_item_bytes = 5\n", prefix);
    c = good(ini);
    prefix[220] = '\0';
    assert_int_equal(policy_of(c, prefix)->max_item_bytes, 5);
    assert_int_equal(policy_of(c, prefix)->prefix_len, 220);
    config_destroy(&c);
    memset(prefix, 'p', sizeof prefix);
    (void)snprintf(ini, sizeof ini, "[lists %.221s]\n", prefix);
    assert_int_equal(load_bytes(&c, ini, strlen(ini)), -1);
    assert_non_null(strstr(config_error, "is no prefix of a list's key; expected 1 to 220 bytes"));
    config_destroy(&c);
}

static void test_bad_sections(void **state)
{
    (void)state;
    static const char *const expected =
        "; expected [proxy], [listener NAME], [admin], [pool NAME], [route], [route PREFIX], "
        "[lists] or [lists PREFIX]";
    char text[256];
    (void)snprintf(text, sizeof text, ":2: unknown section [prox] (did you mean [proxy]?)%s",
                   expected);
    bad("\n[prox]\nthreads = 1\n", text);
    (void)snprintf(text, sizeof text, ":1: unknown section [pools m] (did you mean [pool NAME]?)%s",
                   expected);
    bad("[pools m]\n", text);
    (void)snprintf(text, sizeof text, ":1: unknown section []%s", expected);
    bad("[]\n", text);
    (void)snprintf(text, sizeof text, ":1: unknown section [proxy x] (did you mean [proxy]?)%s",
                   expected);
    bad("[proxy x]\n", text);
    bad("[proxy\n", ":1: a section without ]; expected [NAME]");
    bad("[proxy] threads = 1\n", ":1: text behind ]; expected a line with [NAME] only");
    bad("[proxy]\n[lists]\n[proxy]\n",
        ":3: a second [proxy] (the first is in line 1); expected one");
    bad("[lists]\n\n[lists]\n", ":3: a second [lists] (the first is in line 1); expected one");
    bad("[lists x]\n[lists \\x78]\n",
        ":2: [lists \\x78]: a second [lists x] (the first is in line 1)");
    bad("[pool a]\nservers = s:1\n[pool a]\n",
        ":3: [pool a]: a second pool 'a' (the first is in line 1)");
    bad("[pool]\n", ":1: [pool]: '' is no name for a pool; expected 1 to 64 letters, digits, . - "
                    "or _");
    bad("[pool a b]\n", ":1: [pool a b]: 'a b' is no name for a pool; expected 1 to 64 letters, "
                        "digits, . - or _");
    bad("[lists a b]\n",
        ":1: [lists a b]: 'a b' is no prefix of a list's key; expected 1 to 220 bytes without "
        "blanks and control characters (\\xNN is allowed)");
    bad("[lists \"topic-\"]\n",
        ":1: [lists \"topic-\"]: the prefix is in quotes; expected it without (or \\x22)");
}

/* The text, and behind it the names of all keys of [proxy]. */
static const char *all_keys_of_proxy(const char *text)
{
    static char out[CONFIG_ERROR_MAX];
    size_t count;
    const struct config_key *keys = config_keys(&count);
    size_t n = (size_t)snprintf(out, sizeof out, "%s", text);
    for (size_t i = 0; i < count && n < sizeof out; i++) {
        if (keys[i].section == SECTION_PROXY) {
            n += (size_t)snprintf(out + n, sizeof out - n, " %s", keys[i].name);
        }
    }
    assert_true(n < sizeof out);
    return out;
}

static void test_bad_lines(void **state)
{
    (void)state;
    bad("threads = 1\n",
        ":1: threads: stands before any section; expected [proxy] or another first");
    bad("[proxy]\nthreads\n",
        ":2: no = in this line; expected KEY = VALUE, [SECTION] or # comment");
    bad("[proxy]\nthreads = 1\nmax_pipeline = 2\nthreads = 1\n",
        ":4: threads: given twice; expected once in a section");
    bad("[proxy]\n\nthread = 1\n", ":3: thread: not a key of [proxy]; did you mean threads?");
    bad("[proxy]\n\nTHREDAS = 1\n", ":3: THREDAS: not a key of [proxy]; did you mean threads?");
    bad("[proxy]\n\ncolour = 1\n", all_keys_of_proxy(":3: colour: not a key of [proxy]; expected"));
    bad("[proxy]\nservers = a:1\n", ":2: servers: not a key of [proxy]; expected in [pool NAME]");
    bad("[pool a]\nthreads = 1\n", ":2: threads: not a key of [pool a]; expected in [proxy]");
    bad("[lists x]\ntimeout_ms = 1\n",
        ":2: timeout_ms: not a key of [lists x]; expected in [admin] or [pool NAME]");
    /* What comes after the first fault is not looked at. */
    bad("[proxy]\nthreads = x\n[nonsense]\n", ":2: threads: 'x' is not a number; expected 1 to 64");
}

static void test_lines_that_are_no_text(void **state)
{
    (void)state;
    struct config *c;
    size_t len = 70000;
    char *line = malloc(len);
    assert_non_null(line);
    memset(line, 'x', len);
    assert_int_equal(load_bytes(&c, line, len), -1);
    assert_non_null(strstr(config_error, ":1: the line is too long; expected less than 64k"));
    config_destroy(&c);
    free(line);
    assert_int_equal(load_bytes(&c, "[proxy]\nlog_file = a\0b\n", 23), -1);
    assert_non_null(strstr(config_error, ":2: the line holds a NUL byte; expected text"));
    config_destroy(&c);
}

static void test_bad_values(void **state)
{
    (void)state;
    bad("[proxy]\nthreads = 0\n", ":2: threads: '0' is out of range; expected 1 to 64");
    bad("[proxy]\nthreads = 65\n", ":2: threads: '65' is out of range; expected 1 to 64");
    bad("[proxy]\nthreads =\n", ":2: threads: '' is not a number; expected 1 to 64");
    bad("[proxy]\nthreads = -1\n", ":2: threads: '-1' is not a number; expected 1 to 64");
    bad("[proxy]\nthreads = 1k\n", ":2: threads: '1k' is not a number; expected 1 to 64");
    bad("[proxy]\nthreads = 99999999999999999999999\n",
        ":2: threads: '99999999999999999999999' is out of range; expected 1 to 64");
    bad("[proxy]\ndrain_timeout_ms = 5s\n",
        ":2: drain_timeout_ms: '5s' is not a number; expected 0 to 3600000 ms");
    bad("[proxy]\nmax_line_bytes = 1k\n",
        ":2: max_line_bytes: '1k' is out of range; expected 2k to 16m bytes");
    bad("[proxy]\nmax_line_bytes = k\n",
        ":2: max_line_bytes: 'k' is not a number; expected 2k to 16m bytes");
    bad("[proxy]\nmax_line_bytes = 4kb\n",
        ":2: max_line_bytes: '4kb' is not a number; expected 2k to 16m bytes");
    bad("[proxy]\nclient_hard_bytes = 18446744073709551615g\n",
        ":2: client_hard_bytes: '18446744073709551615g' is out of range; expected 64k to 64g "
        "bytes");
    bad("[proxy]\nallow_flush_all = true\n",
        ":2: allow_flush_all: 'true' is not known; expected embedded, no, yes or keep_lists");
    bad("[lists x]\ndialect = ring\ncounter_wraps = true\n",
        ":3: counter_wraps: 'true' is not known; expected yes or no");
    bad("[proxy]\nsocket_mode = 0668\n",
        ":2: socket_mode: '0668' is no octal number; expected permissions as an octal number, 0 "
        "to 0777");
    bad("[proxy]\nsocket_mode = 1777\n",
        ":2: socket_mode: '1777' is out of range; expected permissions as an octal number, 0 to "
        "0777");
    bad("[proxy]\nlog_level = Info\n", ":2: log_level: 'Info' is not known (did you mean info?); "
                                       "expected error, warn, info or debug");
    bad("[proxy]\nembedded_memcached =\n",
        ":2: embedded_memcached: nothing is given; expected a text");
    bad("[proxy]\nlisten = a:1, a:1\n",
        ":2: listen: 'a:1' is named twice; expected each address once");
    bad("[proxy]\nlisten = 127.0.0.1, 127.0.0.1:11220\n",
        ":2: listen: '127.0.0.1:11220' is named twice; expected each address once");
    bad("[pool a]\nservers = ::1\n",
        ":2: servers: '::1' has several colons; an IPv6 address is written in brackets, expected "
        "[IPv6]:port");
    bad("[pool a]\nservers = ::1:11211\n",
        ":2: servers: '::1:11211' has several colons; an IPv6 address is written in brackets, "
        "expected [IPv6]:port");
    bad("[pool a]\ndistribution = random\n",
        ":2: distribution: 'random' is not known; expected ketama_weighted, ketama or modula");
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
    bad("[proxy]\n\xef\xbb\xbfthreads = 1\n",
        ":2: \\xef\\xbb\\xbfthreads: not a key of [proxy]; did you mean threads?");
    bad("[lists *]\n",
        ":1: [lists *]: expected [lists] for the lists of all keys without a prefix of "
        "their own");
    static const char star[] = "' has a * within; expected PREFIX, or *PART for keys that hold "
                               "PART anywhere, or [lists] for all others (\\x2a is the byte *)";
    static const char *const prefixes[] = {"a*b", "a**"};
    for (size_t i = 0; i < 2; i++) {
        char text[64], expected[256];
        /* The last one is the end, which the message does not show. */
        const char *shown = i == 1 ? "a*" : prefixes[i];
        (void)snprintf(text, sizeof text, "[lists %s]\n", prefixes[i]);
        (void)snprintf(expected, sizeof expected, ":1: [lists %s]: '%s%s", prefixes[i], shown,
                       star);
        bad(text, expected);
    }
    bad("[lists a*]\n[lists a]\n", ":2: [lists a]: a second [lists a] (the first is in line 1)");
    bad("[route *a]\n", ":1: [route *a]: '*a' has a * that is not its end; expected PREFIX or "
                        "PREFIX*, or [route] for all others (\\x2a is the byte *)");
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
    static const char *const others[] = {"*ags", "*|7", "*gs", "ta", "my-tags"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[64], expected[256];
        (void)snprintf(text, sizeof text, "[lists *tags|]\n[lists %s]\n", others[i]);
        (void)snprintf(expected, sizeof expected,
                       ":1: [lists *tags|]: a key may hold this and the prefix of [lists %s] so "
                       "that they share bytes, and which of the two holds is not plain; expected "
                       "others",
                       others[i]);
        refused(text, expected);
    }
    bad("[lists *a]\n[lists *a*]\n",
        ":2: [lists *a*]: a second [lists *a] (the first is in line 1)");
    refused("[lists *tags|]\nbridge = yes\n[route app:tags|]\n",
            ":3: [route app:tags|]: [lists *tags|] has a bridge: plain verbs on these keys work on "
            "lists, in the pool that it names; expected a prefix without one");
}

static void test_too_much(void **state)
{
    (void)state;
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "[pool a]\nservers = ");
    for (int i = 1; i <= 101; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%sh:%d", i == 1 ? "" : ",", i);
    }
    bad(text, ":2: servers: too many servers; expected at most 100 in a pool");
    n = 0;
    for (int i = 1; i <= CONFIG_POOLS_MAX + 1; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "[pool p%d]\nservers = a:1\n", i);
    }
    bad(text, ":129: [pool p65]: too many pools; expected at most 64");
    n = 0;
    for (int i = 1; i <= CONFIG_LISTS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "[lists p%d]\n", i);
    }
    bad(text, ":256: [lists p256]: too many prefixes of lists; expected at most 255");
    n = (size_t)snprintf(text, sizeof text, "[proxy]\n");
    for (int i = 1; i <= CONFIG_LISTEN_MAX + 1; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "listen = a:%d\n", i);
    }
    bad(text, ":34: listen: too many addresses; expected at most 32");
    memset(text, 'x', sizeof text);
    memcpy(text, "[proxy]\nlog_file = ", 19);
    text[19 + 256] = '\0';
    bad(text, ":2: log_file: a text of 256 bytes; expected at most 255");
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
        cmocka_unit_test(test_bad_sections),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_friendly),
        cmocka_unit_test(test_keys_behind_what_clients_put_before),
        cmocka_unit_test(test_lines_that_are_no_text),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_unreadable_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
