/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/request_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_request.h"

static void test_an_unfinished_line_asks_for_more(void **state)
{
    (void)state;
    struct request r;
    for (size_t len = 0; len < 6; len++) {
        struct parse_result p = parse_input(slice_make("get k\n", len), &r);
        assert_int_equal(p.status, PARSE_MORE);
        assert_int_equal(p.need, 0);
        assert_int_equal(p.consumed, 0);
    }
}

static void test_scanned_bytes_are_not_searched(void **state)
{
    (void)state;
    struct request r;
    struct slice input = SLICE_LIT("get k\r\n");
    assert_int_equal(request_parse(input, 6, &test_limits, &r).status, PARSE_OK);
    assert_int_equal(request_parse(input, 7, &test_limits, &r).status, PARSE_MORE);
    assert_int_equal(request_parse(input, 70, &test_limits, &r).status, PARSE_MORE);
}

static void test_only_the_first_request_is_taken(void **state)
{
    (void)state;
    struct request r;
    struct parse_result p = parse_input(SLICE_LIT("get a\r\nget b\r\n"), &r);
    assert_int_equal(p.status, PARSE_OK);
    assert_int_equal(p.consumed, 7);
    assert_slice(r.line, "get a");
}

static void test_blanks_and_line_ends_are_tolerated(void **state)
{
    (void)state;
    struct request r = take_request("  get   a   b  \n");
    assert_int_equal(r.verb->verb, VERB_GET);
    assert_slice(r.line, "get   a   b");
    assert_slice(r.key, "a");
    assert_slice(r.args, "a   b");
    assert_int_equal(r.arg_count, 2);
    assert_slice(take_request("version\n").line, "version");
}

static void test_what_is_no_verb_is_an_error(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        REFUSED("", "ERROR\r\n"),      REFUSED("   ", "ERROR\r\n"),
        REFUSED("\r", "ERROR\r\n"),    REFUSED("foo", "ERROR\r\n"),
        REFUSED("GET a", "ERROR\r\n"), REFUSED("Get a", "ERROR\r\n"),
        REFUSED("POST", "ERROR\r\n"),  REFUSED("get\ta", "ERROR\r\n"),
        REFUSED("mx a", "ERROR\r\n"),  REFUSED("bget a", "ERROR\r\n"),
    };
    assert_refusals(rows);
}

#define HTTP_REPLY \
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 55\r\n" \
    "Connection: close\r\n\r\nThis port speaks the protocols of memcached, not HTTP.\n"

static void test_http_closes(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        CLOSED("GET / HTTP/1.1", HTTP_REPLY),   CLOSED("GET /", HTTP_REPLY),
        CLOSED("POST /x HTTP/1.0", HTTP_REPLY), CLOSED("foo HTTP/1.1", HTTP_REPLY),
        CLOSED("PUT /x HTTP/1.1", HTTP_REPLY),
    };
    assert_refusals(rows);
    assert_slice(take_request("get /\r\n").key, "/");
    assert_slice(take_request("get HTTP/1.1\r\n").key, "HTTP/1.1");
}

/* By the first bytes of a connection, and only there. */
static void test_other_protocols_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    static const struct request_limits first = {
        .max_line_bytes = 8192, .max_value_bytes = 1000, .is_first = true};
    static const struct {
        struct slice input;
        enum stranger stranger;
    } rows[] = {
        {SLICE_LIT("\x16"), STRANGER_TLS},
        {SLICE_LIT("\x16\x03\x01\x02\0"), STRANGER_TLS},
        {SLICE_LIT("*1\r\n$4\r\nPING\r\n"), STRANGER_REDIS},
        {SLICE_LIT("GET / HTTP/1.1\r\n"), STRANGER_HTTP},
    };
    struct request r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct parse_result p = request_parse(rows[i].input, 0, &first, &r);
        assert_int_equal(p.status, PARSE_CLOSE);
        assert_int_equal(p.stranger, rows[i].stranger);
        assert_int_equal(p.consumed, rows[i].input.len);
        assert_true(p.reply.len > 0);
    }
    struct parse_result binary = request_parse(SLICE_LIT("\x80"), 0, &first, &r);
    assert_true(binary.status == PARSE_BINARY && binary.consumed == 0);
    assert_int_equal(request_parse(SLICE_LIT("*\r\n"), 0, &first, &r).status, PARSE_ERROR);
    assert_int_equal(request_parse(SLICE_LIT("get a\r\n"), 0, &first, &r).status, PARSE_OK);
    static const struct refusal later[] = {
        REFUSED("\x80\x0b", "ERROR\r\n"), REFUSED("\x16", "ERROR\r\n"), REFUSED("*1", "ERROR\r\n")};
    assert_refusals(later);
}

static void test_refused_verbs_say_so(void **state)
{
    (void)state;
#define REFUSAL " is not available through a proxy: ask each memcached itself\r\n"
    static const struct refusal rows[] = {
        REFUSED("slabs reassign 1 2", "CLIENT_ERROR slabs" REFUSAL),
        REFUSED("cache_memlimit 5", "CLIENT_ERROR cache_memlimit" REFUSAL),
        REFUSED("watch", "CLIENT_ERROR watch" REFUSAL),
    };
#undef REFUSAL
    assert_refusals(rows);
}

static void test_plain_verbs_keep_their_words(void **state)
{
    (void)state;
    struct request r = take_request("flush_all  10 noreply\r\n");
    assert_int_equal(r.verb->verb, VERB_FLUSH_ALL);
    assert_int_equal(r.arg_count, 2);
    assert_slice(r.key, "");
    struct slice token;
    assert_true(token_next(&r.args, &token));
    assert_slice(token, "10");
    assert_true(token_next(&r.args, &token));
    assert_slice(token, "noreply");
    assert_false(token_next(&r.args, &token));
    assert_int_equal(take_request("mn any tail\r\n").verb->verb, VERB_MN);
}

static void test_long_lines_close_silently(void **state)
{
    (void)state;
    static const char *const heads[] = {"x", "mg a ", "set ", "get", "        delete "};
    struct request r;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        assert_int_equal(parse_input(long_line(heads[i], "x", 2048, ""), &r).status, PARSE_MORE);
        struct parse_result p = parse_input(long_line(heads[i], "x", 2049, ""), &r);
        assert_int_equal(p.status, PARSE_CLOSE);
        assert_slice(p.reply, LINE_LONG);
        assert_int_equal(parse_input(long_line(heads[i], "x", 2049, "\r\n"), &r).status,
                         PARSE_CLOSE);
    }
}

static void test_lines_of_keys_and_items_may_be_long(void **state)
{
    (void)state;
    static const char *const heads[] = {"get ",    "gets ", " gat 0 ", "gats 0 ",
                                        "ladd k ", "lget ", "lset k "};
    struct request r;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        assert_int_equal(parse_input(long_line(heads[i], "ab ", 8192, ""), &r).status, PARSE_MORE);
        assert_int_equal(parse_input(long_line(heads[i], "ab ", 8192, "\n"), &r).status, PARSE_OK);
        assert_int_equal(parse_input(long_line(heads[i], "ab ", 8192, "\r\n"), &r).status,
                         PARSE_OK);
        struct parse_result p = parse_input(long_line(heads[i], "ab ", 8193, "\r\n"), &r);
        assert_int_equal(p.status, PARSE_CLOSE);
        assert_slice(p.reply, LINE_ABOVE_LIMIT);
        p = parse_input(long_line(heads[i], "ab ", 8194, ""), &r);
        assert_int_equal(p.status, PARSE_CLOSE);
        assert_slice(p.reply, LINE_ABOVE_LIMIT);
    }
}

static void test_keys(void **state)
{
    (void)state;
    struct request r = take_request("gets a noreply " KEY_250 "\r\n");
    assert_int_equal(r.verb->verb, VERB_GETS);
    assert_int_equal(r.arg_count, 3);
    assert_slice(r.key, "a");
    assert_false(r.noreply);
    static const struct refusal rows[] = {
        REFUSED("get", "ERROR\r\n"),         REFUSED("get  ", "ERROR\r\n"),
        REFUSED("get " KEY_251, BAD_FORMAT), REFUSED("get a " KEY_251 " b", BAD_FORMAT),
        REFUSED("get a\0b", BAD_FORMAT),
    };
    assert_refusals(rows);
}

static void test_gat(void **state)
{
    (void)state;
    struct request r = take_request("gat -1 a b\r\n");
    assert_int_equal(r.exptime, -1);
    assert_slice(r.key, "a");
    assert_slice(r.args, "a b");
    assert_int_equal(r.arg_count, 2);
    static const struct refusal rows[] = {
        REFUSED("gat", "ERROR\r\n"),
        REFUSED("gat 0", "ERROR\r\n"),
        REFUSED("gat x a", BAD_EXPTIME),
        REFUSED("gat 1x a", BAD_EXPTIME),
        REFUSED("gats 9223372036854775808 a", BAD_EXPTIME),
        REFUSED("gat 0 " KEY_251, BAD_FORMAT),
    };
    assert_refusals(rows);
}

static void test_delete(void **state)
{
    (void)state;
    assert_slice(take_request("delete a\r\n").key, "a");
    assert_false(take_request("delete noreply\r\n").noreply);
    assert_false(take_request("delete a 0\r\n").noreply);
    assert_true(take_request("delete a noreply\r\n").noreply);
    assert_true(take_request("delete a 0 noreply\r\n").noreply);
    static const struct refusal rows[] = {
        REFUSED("delete", "ERROR\r\n"),
        REFUSED("delete a 0 noreply x", "ERROR\r\n"),
        REFUSED("delete a 1", BAD_DELETE),
        REFUSED("delete a 00", BAD_DELETE),
        REFUSED("delete a noreply 0", BAD_DELETE),
        REFUSED("delete a 0 c", BAD_DELETE),
        REFUSED("delete a b noreply", ""),
        REFUSED("delete " KEY_251, BAD_FORMAT),
        REFUSED("delete " KEY_251 " noreply", ""),
    };
    assert_refusals(rows);
}

static void test_incr_and_decr(void **state)
{
    (void)state;
    assert_true(take_request("incr a 18446744073709551615\r\n").delta == UINT64_MAX);
    assert_int_equal(take_request("decr a +5\r\n").delta, 5);
    assert_int_equal(take_request("incr a 010\r\n").delta, 10);
    assert_false(take_request("incr a 5 x\r\n").noreply);
    assert_true(take_request("incr a 5 noreply\r\n").noreply);
    static const struct refusal rows[] = {
        REFUSED("incr", "ERROR\r\n"),
        REFUSED("incr a", "ERROR\r\n"),
        REFUSED("decr a 1 2 3", "ERROR\r\n"),
        REFUSED("incr a x", BAD_DELTA),
        REFUSED("incr a -1", BAD_DELTA),
        REFUSED("incr a 1x", BAD_DELTA),
        REFUSED("incr a 0x10", BAD_DELTA),
        REFUSED("incr a 18446744073709551616", BAD_DELTA),
        REFUSED("incr a noreply", ""),
        REFUSED("incr a x noreply", ""),
        REFUSED("incr " KEY_251 " 1", BAD_FORMAT),
    };
    assert_refusals(rows);
}

/* As memcached reads it: 64 bits, of which the lower 32 count, with their sign. */
static void an_exptime_has_32_bits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t exptime;
        bool is_usual;
    } cases[] = {
        {"0", 0, true},
        {"2147483647", INT32_MAX, true},
        {"-2147483648", INT32_MIN, true},
        {"2147483648", INT32_MIN, false},
        {"4294967295", -1, false}, /* pylibmc's -1 */
        {"4294967296", 0, false},
        {"4294967297", 1, false},
        {"-2147483649", INT32_MAX, false},
        {"-4294967296", 0, false},
        {"9223372036854775807", -1, false},
        {"-9223372036854775808", 0, false},
        {"+5", 5, false},
        {"00000000000000000005", 5, false},
    };
    static const struct {
        const char *front, *rest;
    } forms[] = {{"set a 0 ", " 1\r\nx\r\n"}, {"cas a 0 ", " 1 9\r\nx\r\n"},
                 {"touch a ", "\r\n"},        {"gat ", " a\r\n"},
                 {"mg a T", "\r\n"},          {"ms a 1 T", "\r\nx\r\n"},
                 {"ma a N", "\r\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
            char text[100];
            snprintf(text, sizeof text, "%s%s%s", forms[f].front, cases[i].text, forms[f].rest);
            struct request r = take_request(text);
            bool is_meta = forms[f].front[0] == 'm';
            assert_true(is_meta || r.exptime == cases[i].exptime);
            assert_true(is_meta || r.is_usual == cases[i].is_usual);
        }
    }
}

static void test_touch(void **state)
{
    (void)state;
    struct request r = take_request("touch a +100 noreply\r\n");
    assert_int_equal(r.exptime, 100);
    assert_false(r.is_usual);
    assert_true(r.noreply);
    static const struct refusal rows[] = {
        REFUSED("touch", "ERROR\r\n"),
        REFUSED("touch a", "ERROR\r\n"),
        REFUSED("touch a 1 2 3", "ERROR\r\n"),
        REFUSED("touch a x", BAD_EXPTIME),
        REFUSED("touch a 9223372036854775808", BAD_EXPTIME),
        REFUSED("touch a x noreply", ""),
        REFUSED("touch " KEY_251 " 1", BAD_FORMAT),
        REFUSED("touch a\0 1", BAD_FORMAT),
    };
    assert_refusals(rows);
}

/* However a request is cut, the outcome is that of the whole. */
static void test_prefixes_decide_nothing_else(void **state)
{
    (void)state;
    static const char *const whole[] = {
        "get a b\r\n",
        "set a 0 0 5\r\nhello\r\n",
        "set a x 0 5\r\nhello\r\n",
        "set a 0 0 x\r\n",
        "ms a 5 q\r\nhello!",
        "laddb k 3 noreply\r\nabc",
        "set a 0 0 5\r\nhello!!\n",
        "nonsense\r\n",
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        struct request r;
        struct slice input = slice_of(whole[i]);
        struct parse_result all = parse_input(input, &r);
        for (size_t len = 0; len < input.len; len++) {
            char *copy = malloc(len + 1); /* exactly as long as it may be read */
            memcpy(copy + 1, input.p, len);
            struct parse_result p = parse_input(slice_make(copy + 1, len), &r);
            if (p.status != PARSE_MORE) {
                assert_int_equal(p.status, all.status);
                assert_true(slice_equal(p.reply, all.reply));
                assert_true(p.status == PARSE_CLOSE ||
                            p.consumed + p.swallow == all.consumed + all.swallow);
            }
            free(copy);
        }
    }
}

/* Those that a request of the other kind waits for. */
static void test_what_changes_items_or_lists(void **state)
{
    static const char *const reads[] = {"get k\n",  "gets k\n",   "mg k v t\n",
                                        "me k\n",   "lget k\n",   "lhas k a\n",
                                        "llen k\n", "linter k\n", "lttl k\n"};
    static const char *const changes[] = {
        "mg k N30\n",    "mg k T30\n",  "gat 1 k\n",  "touch k 1\n",  "delete k\n", "md k\n",
        "incr k 1\n",    "flush_all\n", "ladd k a\n", "ldel k a\n",   "lset k\n",   "lpop k 1\n",
        "llease k 10\n", "ldrop k\n",   "lpurge k\n", "ltouch k 1\n", "lcopy a b\n"};
    (void)state;
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        struct request r = take_request(reads[i]);
        assert_false(request_changes(&r));
    }
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct request r = take_request(changes[i]);
        assert_true(request_changes(&r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_changes_items_or_lists),
        cmocka_unit_test(test_an_unfinished_line_asks_for_more),
        cmocka_unit_test(test_scanned_bytes_are_not_searched),
        cmocka_unit_test(test_only_the_first_request_is_taken),
        cmocka_unit_test(test_blanks_and_line_ends_are_tolerated),
        cmocka_unit_test(test_what_is_no_verb_is_an_error),
        cmocka_unit_test(test_http_closes),
        cmocka_unit_test(test_other_protocols_are_known_by_their_first_bytes),
        cmocka_unit_test(test_refused_verbs_say_so),
        cmocka_unit_test(test_plain_verbs_keep_their_words),
        cmocka_unit_test(test_long_lines_close_silently),
        cmocka_unit_test(test_lines_of_keys_and_items_may_be_long),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_gat),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_incr_and_decr),
        cmocka_unit_test(an_exptime_has_32_bits),
        cmocka_unit_test(test_touch),
        cmocka_unit_test(test_prefixes_decide_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
