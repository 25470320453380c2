/* SPDX-License-Identifier: BSD-3-Clause */
/* What memcached 1.6.18 does with -Y: tests/wire/test_login.py compares with the real one. */
#include "proto/client/login_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void logs_in(const char *input, const char *user, const char *password)
{
    struct login login;
    struct parse_result p = login_parse(slice_of(input), false, &login);
    assert_int_equal(p.status, PARSE_OK);
    assert_int_equal(p.consumed, strlen(input));
    assert_true(slice_equal(login.user, slice_of(user)));
    assert_true(slice_equal(login.password, slice_of(password)));
}

static void test_a_set_logs_in(void **state)
{
    (void)state;
    logs_in("set x 0 0 6\r\na bb c\r\n", "a", "bb");
    logs_in("set x ? ! 4 noreply\na bb\r\n", "a", "bb");
    logs_in("  set  x 0 0 +05 \r\n a  b\r\n", "a", "b");
    logs_in("set x 0 0 6\r\na b:c \r\n", "a", "b:c");
}

static void is_refused(struct slice input, size_t consumed, const char *reply)
{
    struct login login;
    struct parse_result p = login_parse(input, false, &login);
    assert_int_equal(p.status, PARSE_ERROR);
    assert_int_equal(p.consumed, consumed);
    assert_true(slice_equal(p.reply, slice_of(reply)));
    assert_int_equal(p.swallow, 0);
}

static void test_all_else_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "get x\r\n",         "quit\r\n",         "\r\n",
        "set x 0 0\r\n",     "set x 0 0 -1\r\n", "set x 0 0 1x\r\n",
        "SET x 0 0 4\r\n",   "add x 0 0 4\r\n",  "ms x 4\r\n",
        "set x 0 0 0x4\r\n", "set\r\n",          "set x 0 0 99999999999999999999\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        is_refused(slice_of(lines[i]), strlen(lines[i]), "CLIENT_ERROR unauthenticated\r\n");
    }
    is_refused(SLICE_LIT("set x\0 0 0 3\r\na b\r\n"), 14, "CLIENT_ERROR unauthenticated\r\n");
    is_refused(SLICE_LIT("set x 0 0 3\r\na bc\r\n"), 18,
               "CLIENT_ERROR bad command line termination\r\n");
    is_refused(SLICE_LIT("set x 0 0 3\r\na  \r\n"), 18,
               "CLIENT_ERROR bad authentication token format\r\n");
    is_refused(SLICE_LIT("set x 0 0 3\r\na\0b\r\n"), 18,
               "CLIENT_ERROR bad authentication token format\r\n");
    is_refused(SLICE_LIT("set x 0 0 0\r\n\r\n"), 15,
               "CLIENT_ERROR bad authentication token format\r\n");
}

static void test_pieces_are_waited_for(void **state)
{
    (void)state;
    static const char input[] = "set x 0 0 3\r\na b\r\n";
    struct login login;
    for (size_t len = 0; len < sizeof input - 1; len++) {
        struct parse_result p = login_parse(slice_make(input, len), true, &login);
        assert_int_equal(p.status, PARSE_MORE);
        assert_int_equal(p.need, len < 13 ? 0 : sizeof input - 1);
    }
}

static void test_too_much_is_not_waited_for(void **state)
{
    (void)state;
    static char much[2049];
    struct login login;
    memset(much, 'a', sizeof much);
    assert_int_equal(login_parse(slice_make(much, 2048), true, &login).status, PARSE_MORE);
    assert_int_equal(login_parse(slice_make(much, 2049), true, &login).status, PARSE_CLOSE);
    struct parse_result p = login_parse(SLICE_LIT("set x 0 0 4294967295\r\nab"), true, &login);
    assert_int_equal(p.status, PARSE_ERROR);
    assert_int_equal(p.consumed, 24);
    assert_int_equal(p.swallow, 4294967295);
}

static void test_other_protocols_are_known(void **state)
{
    (void)state;
    struct login login;
    struct parse_result p = login_parse(SLICE_LIT("\x16\x03\x01"), true, &login);
    assert_int_equal(p.status, PARSE_CLOSE);
    assert_int_equal(p.stranger, STRANGER_TLS);
    assert_int_equal(login_parse(SLICE_LIT("\x80"), true, &login).status, PARSE_BINARY);
    assert_int_equal(login_parse(SLICE_LIT("\x16\n"), false, &login).status, PARSE_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_logs_in),
        cmocka_unit_test(test_all_else_is_refused),
        cmocka_unit_test(test_pieces_are_waited_for),
        cmocka_unit_test(test_too_much_is_not_waited_for),
        cmocka_unit_test(test_other_protocols_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
