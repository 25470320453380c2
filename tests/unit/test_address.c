/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pool/locate/address.h"

static struct address read_address(const char *host)
{
    struct address address;
    assert_true(address_read(host, 11211, &address));
    return address;
}

static void addresses_are_read_and_shown(void **state)
{
    static const char *const texts[][2] = {{"10.0.0.1", "10.0.0.1:11211"},
                                           {"127.1", "127.0.0.1:11211"},
                                           {"::1", "[::1]:11211"},
                                           {"FE80::1%lo", "[fe80::1%lo]:11211"}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct address address = read_address(texts[i][0]);
        char text[ADDRESS_TEXT_MAX];
        assert_string_equal(address_text(&address, text), texts[i][1]);
    }
}

static void names_are_no_addresses(void **state)
{
    static const char *const names[] = {"localhost", "mc1", "10.0.0.256", "mc.example.org", "a"};
    struct address address;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_false(address_read(names[i], 11211, &address));
    }
}

static void paths_have_a_longest(void **state)
{
    char path[200], text[ADDRESS_TEXT_MAX];
    struct address address;
    (void)state;
    memset(path, 'x', sizeof path);
    path[108] = '\0';
    assert_false(address_of_path(path, &address));
    path[107] = '\0';
    assert_true(address_of_path(path, &address));
    path[3] = '\0';
    assert_true(address_of_path(path, &address));
    assert_string_equal(address_text(&address, text), "unix:xxx");
}

/* The order in which they are chosen. Numerically: 9 goes before 10. */
static void the_lowest_goes_first(void **state)
{
    static const char *const order[] = {"9.0.0.1", "10.0.0.9",    "10.0.0.10", "200.0.0.1",
                                        "::1",     "2001:db8::1", "fe80::1"};
    size_t count = sizeof order / sizeof order[0];
    (void)state;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct address a = read_address(order[i]), b = read_address(order[j]);
            int compared = address_compare(&a, &b);
            assert_int_equal(compared < 0 ? -1 : compared > 0, i < j ? -1 : i > j);
        }
    }
    struct address a = read_address("::1"), b = read_address("::1");
    address_set_port(&b, 11212);
    assert_int_equal(address_compare(&a, &b), 0);
}

static void some_addresses_are_of_no_server(void **state)
{
    static const char *const good[] = {"1.0.0.0", "10.0.0.1", "127.0.0.1", "::1", "fd00::1"};
    static const char *const bad[] = {"0.0.0.0",         "0.1.2.3", "224.0.0.1", "239.255.255.255",
                                      "255.255.255.255", "::",      "ff02::1",   "::ffff:0.0.0.0"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct address address = read_address(good[i]);
        assert_true(address_is_host(&address));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct address address = read_address(bad[i]);
        assert_false(address_is_host(&address));
    }
}

static void localhost_is_this_machine(void **state)
{
    static const char *const names[] = {"localhost", "LOCALHOST", "a.localhost"};
    static const char *const others[] = {"localhost.example.org", "mylocalhost", ".localhost", ""};
    struct location location;
    char text[ADDRESS_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(address_is_localhost(names[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(address_is_localhost(others[i]));
    }
    address_localhost(&location);
    assert_string_equal(address_text(&location.address, text), "127.0.0.1");
    assert_string_equal(address_text(&location.twin, text), "::1");
    assert_true(address_is_loopback(&location.address) && address_is_loopback(&location.twin));
    struct address address = read_address("127.0.1.1");
    assert_true(address_is_loopback(&address));
    address = read_address("128.0.0.1");
    assert_false(address_is_loopback(&address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_shown),
        cmocka_unit_test(names_are_no_addresses),
        cmocka_unit_test(paths_have_a_longest),
        cmocka_unit_test(the_lowest_goes_first),
        cmocka_unit_test(some_addresses_are_of_no_server),
        cmocka_unit_test(localhost_is_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
