/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/endpoint.h"

static void good(const char *text, const char *host, uint16_t port)
{
    struct endpoint endpoint;
    char error[CONFIG_ERROR_MAX] = "";
    char out[ENDPOINT_TEXT_MAX];
    if (endpoint_parse(slice_of(text), 0, &endpoint, error) != 0) {
        fail_msg("%s: %s", text, error);
    }
    assert_string_equal(endpoint.host, host);
    assert_int_equal(endpoint.port, port);
    assert_string_equal(endpoint_format(&endpoint, out), text);
}

static void bad(const char *text, const char *expected)
{
    struct endpoint endpoint;
    char error[CONFIG_ERROR_MAX] = "";
    assert_int_equal(endpoint_parse(slice_of(text), 0, &endpoint, error), -1);
    assert_string_equal(error, expected);
}

static void test_good(void **state)
{
    (void)state;
    good("127.0.0.1:11211", "127.0.0.1", 11211);
    good("cache-1.example.org:1", "cache-1.example.org", 1);
    good("a:65535", "a", 65535);
    good("[::1]:11211", "::1", 11211);
    good("[2001:db8::7]:80", "2001:db8::7", 80);
    good("[fe80::1%eth0]:80", "fe80::1%eth0", 80);
    good("unix:/run/memcached.sock", "/run/memcached.sock", 0);
    good("unix:relative", "relative", 0);
}

static void test_bad(void **state)
{
    (void)state;
    bad("", "an address is missing; expected host:port, [IPv6]:port or unix:PATH");
    bad("host", "'host' has no port; expected host:port, [IPv6]:port or unix:PATH");
    bad("[::1]", "'[::1]' has no port; expected host:port, [IPv6]:port or unix:PATH");
    bad("host:", "'host:' has a bad port; expected 1 to 65535");
    bad("couchbase://host",
        "'couchbase://host' is a URL; expected host:port, [IPv6]:port or unix:PATH");
    bad("host:0", "'host:0' has a bad port; expected 1 to 65535");
    bad("host:65536", "'host:65536' has a bad port; expected 1 to 65535");
    bad("host:-1", "'host:-1' has a bad port; expected 1 to 65535");
    bad("host:11211x", "'host:11211x' has a bad port; expected 1 to 65535");
    bad("::1:11211", "'::1:11211' has several colons; an IPv6 address is written in brackets, "
                     "expected [IPv6]:port");
    bad("[::1:11211", "'[::1:11211' has no ]; expected host:port, [IPv6]:port or unix:PATH");
    bad("[::1]11211", "'[::1]11211' goes on behind the ]; expected host:port, [IPv6]:port or "
                      "unix:PATH");
    bad("[1.2.3.4]:1", "'[1.2.3.4]:1' is no host name or address; expected host:port, "
                       "[IPv6]:port or unix:PATH");
    bad("[]:1", "'[]:1' is no host name or address; expected host:port, [IPv6]:port or unix:PATH");
    bad(":1", "':1' is no host name or address; expected host:port, [IPv6]:port or unix:PATH");
    bad("a b:1", "'a b:1' is no host name or address; expected host:port, [IPv6]:port or "
                 "unix:PATH");
    bad("*:1", "'*:1' is no host name or address; expected host:port, [IPv6]:port or unix:PATH");
    bad("unix:", "a socket path of 0 bytes; expected unix:PATH with 1 to 107 bytes");
}

static void test_too_long(void **state)
{
    (void)state;
    char text[400];
    struct endpoint endpoint;
    char error[CONFIG_ERROR_MAX] = "";
    memset(text, 'a', sizeof text);
    memcpy(text, "unix:", 5);
    assert_int_equal(endpoint_parse(slice_make(text, 5 + 107), 0, &endpoint, error), 0);
    assert_int_equal(strlen(endpoint.host), 107);
    assert_int_equal(endpoint_parse(slice_make(text, 5 + 108), 0, &endpoint, error), -1);
    assert_string_equal(error,
                        "a socket path of 108 bytes; expected unix:PATH with 1 to 107 bytes");
    memset(text, 'a', sizeof text);
    memcpy(text + 255, ":1", 2);
    assert_int_equal(endpoint_parse(slice_make(text, 257), 0, &endpoint, error), 0);
    memset(text, 'a', sizeof text);
    memcpy(text + 256, ":1", 2);
    assert_int_equal(endpoint_parse(slice_make(text, 258), 0, &endpoint, error), -1);
    assert_string_equal(error, "a host of 256 bytes; expected at most 255");
    memset(text, '0', sizeof text);
    text[0] = '[';
    memcpy(text + 200, "]:1", 3);
    assert_int_equal(endpoint_parse(slice_make(text, 203), 0, &endpoint, error), -1);
}

static void test_control_bytes_are_escaped(void **state)
{
    (void)state;
    bad("a\r\nb:1", "'a\\x0d\\x0ab:1' is no host name or address; expected host:port, "
                    "[IPv6]:port or unix:PATH");
}

static void test_default_port(void **state)
{
    (void)state;
    struct endpoint endpoint;
    char error[CONFIG_ERROR_MAX];
    assert_int_equal(endpoint_parse(SLICE_LIT("host"), 7, &endpoint, error), 0);
    assert_int_equal(endpoint.port, 7);
    assert_int_equal(endpoint_parse(SLICE_LIT("[::]"), 7, &endpoint, error), 0);
    assert_int_equal(endpoint.port, 7);
    assert_string_equal(endpoint.host, "::");
    assert_int_equal(endpoint_parse(SLICE_LIT("host:8"), 7, &endpoint, error), 0);
    assert_int_equal(endpoint.port, 8);
    assert_int_equal(endpoint_parse(SLICE_LIT("unix:a"), 7, &endpoint, error), 0);
    assert_int_equal(endpoint.port, 0);
}

static void good_servers(struct pool_config *pool, const char *text)
{
    char error[CONFIG_ERROR_MAX] = "";
    if (server_list_add(pool, slice_of(text), error) != 0) {
        fail_msg("%s: %s", text, error);
    }
}

static void bad_servers(const char *text, const char *expected)
{
    struct pool_config pool = {.server_count = 0};
    char error[CONFIG_ERROR_MAX] = "";
    assert_int_equal(server_list_add(&pool, slice_of(text), error), -1);
    assert_string_equal(error, expected);
    free(pool.servers);
}

static void test_servers(void **state)
{
    (void)state;
    struct pool_config pool = {.server_count = 0};
    good_servers(&pool, " a:1 ,b:2 10,\t[::1]:3\t 1000000 , unix:/x");
    good_servers(&pool, "c:1");
    assert_int_equal(pool.server_count, 5);
    assert_string_equal(pool.servers[0].name, "a:1");
    assert_int_equal(pool.servers[0].weight, 1);
    assert_string_equal(pool.servers[1].name, "b:2");
    assert_int_equal(pool.servers[1].weight, 10);
    assert_string_equal(pool.servers[2].name, "[::1]:3");
    assert_int_equal(pool.servers[2].weight, 1000000);
    assert_string_equal(pool.servers[3].name, "unix:/x");
    assert_string_equal(pool.servers[4].name, "c:1");
    /* Weights that are none of the ports where memcacheds usually are, and one that surely is no
     * port. */
    good_servers(&pool, "d 1024, e 16384, f:1 11211, unix:/y 11211");
    assert_int_equal(pool.servers[5].weight, 1024);
    assert_int_equal(pool.servers[6].weight, 16384);
    assert_int_equal(pool.servers[7].weight, 11211);
    assert_int_equal(pool.servers[8].weight, 11211);
    free(pool.servers);
}

static void test_bad_servers(void **state)
{
    (void)state;
    bad_servers("", "an address is missing; expected host:port, [IPv6]:port or unix:PATH");
    bad_servers("a:1,", "an address is missing; expected host:port, [IPv6]:port or unix:PATH");
    bad_servers("a:1,,b:1", "an address is missing; expected host:port, [IPv6]:port or unix:PATH");
    bad_servers("a:1 0",
                "'0' is no weight; expected host:port WEIGHT with a weight of 1 to 1000000, "
                "and commas between servers");
    bad_servers("a:1 1000001",
                "'1000001' is no weight; expected host:port WEIGHT with a weight of 1 to 1000000, "
                "and commas between servers");
    bad_servers("a:1 b:1", "'b:1' is no weight; expected host:port WEIGHT with a weight of 1 to "
                           "1000000, and commas between servers");
    bad_servers("11211", "'11211' is a port without a host; expected host:11211");
    bad_servers("a, 11212 2", "'11212' is a port without a host; expected host:11212");
    bad_servers("a 11211",
                "'a 11211' has a weight that looks like a port; expected a:11211 for the "
                "port, or a:11211 11211 for the weight");
    bad_servers("b:1, [::1] 11213",
                "'[::1] 11213' has a weight that looks like a port; expected [::1]:11213 for the "
                "port, or [::1]:11211 11213 for the weight");
    bad_servers("0.0.0.0:1", "'0.0.0.0:1' is the address of no machine; expected that of a server");
    bad_servers("a:1, 0:2 3", "'0:2' is the address of no machine; expected that of a server");
    bad_servers("[::]", "'[::]:11211' is the address of no machine; expected that of a server");
    bad_servers("[::ffff:0.0.0.0]:1",
                "'[::ffff:0.0.0.0]:1' is the address of no machine; expected that of a server");
    bad_servers("224.0.0.1:1",
                "'224.0.0.1:1' is the address of no machine; expected that of a server");
    bad_servers("[ff02::1]:1",
                "'[ff02::1]:1' is the address of no machine; expected that of a server");
    bad_servers("a:1, b:1, a:1", "'a:1' is named twice; expected each server once");
    bad_servers("a:1 2, a:1 3", "'a:1' is named twice; expected each server once");
}

static void test_a_hundred_servers(void **state)
{
    (void)state;
    struct pool_config pool = {.server_count = 0};
    char error[CONFIG_ERROR_MAX] = "";
    for (int i = 1; i <= 100; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "h:%d", i);
        good_servers(&pool, name);
    }
    assert_int_equal(server_list_add(&pool, SLICE_LIT("h:101"), error), -1);
    assert_string_equal(error, "too many servers; expected at most 100 in a pool");
    free(pool.servers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_bad),
        cmocka_unit_test(test_too_long),     cmocka_unit_test(test_control_bytes_are_escaped),
        cmocka_unit_test(test_default_port), cmocka_unit_test(test_servers),
        cmocka_unit_test(test_bad_servers),  cmocka_unit_test(test_a_hundred_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
