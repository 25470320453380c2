/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/request_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_request.h"

static void test_set_takes_its_data(void **state)
{
    (void)state;
    struct request r = take_request("  set  a 4294967295 -1 7 \r\nab\r\ncd\n\r\n");
    assert_int_equal(r.verb->verb, VERB_SET);
    assert_slice(r.line, "set  a 4294967295 -1 7");
    assert_slice(r.key, "a");
    assert_int_equal(r.arg_count, 3);
    assert_true(r.flags == UINT32_MAX);
    assert_int_equal(r.exptime, -1);
    assert_true(r.exptime == -1 && r.is_usual);
    assert_false(r.noreply);
    assert_true(r.has_data);
    assert_slice(r.data, "ab\r\ncd\n");
    assert_slice(r.data_crlf, "ab\r\ncd\n\r\n");
    r = take_request("set a 0 0 +2\r\nab\r\n");
    assert_slice(r.data, "ab");
    assert_false(r.is_usual);
}

/* memcached reads 64 bits of them and keeps 32. */
static void test_flags_are_cut(void **state)
{
    (void)state;
    assert_int_equal(take_request("set a 4294967296 0 1\r\nx\r\n").flags, 0);
    assert_int_equal(take_request("set a 99999999999 0 1\r\nx\r\n").flags, 1215752191);
    assert_int_equal(take_request("set a 00000000000005 0 1\r\nx\r\n").flags, 5);
    assert_true(take_request("add a 18446744073709551615 0 1\r\nx\r\n").flags == UINT32_MAX);
    assert_int_equal(take_request("ms a 1 F4294967296\r\nx\r\n").arg_count, 2);
}

/* memcached takes the old value away with a set that is too large, and with any such ms. */
static void test_too_large_values_remove(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool removes, noreply, base64;
    } rows[] = {
        {"set a 0 0 1001\r\n", true, false, false},
        {"set a 0 0 1001 noreply\r\n", true, true, false},
        {"add a 0 0 1001\r\n", false, false, false},
        {"append a 0 0 1001\r\n", false, false, false},
        {"cas a 0 0 1001 1\r\n", false, false, false},
        {"ms a 1001 MA q\r\n", true, false, false},
        {"ms YWFh 1001 b\r\n", true, false, true},
        {"laddb a 1001\r\n", false, false, false},
        {"set a x 0 1001\r\n", false, false, false},
        {"ms a 1001 MX\r\n", false, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request r;
        struct parse_result p = parse_input(slice_of(rows[i].line), &r);
        assert_int_equal(p.status, PARSE_ERROR);
        assert_int_equal(p.removes, rows[i].removes);
        if (p.removes) {
            assert_int_equal(r.noreply, rows[i].noreply);
            assert_int_equal(r.base64, rows[i].base64);
            assert_slice(r.key, rows[i].base64 ? "YWFh" : "a");
        }
    }
}

static void test_data_may_be_empty_or_anything(void **state)
{
    (void)state;
    struct request r = take_request("append a 0 0 0 noreply\n\r\n");
    assert_true(r.has_data);
    assert_true(r.noreply);
    assert_int_equal(r.data.len, 0);
    assert_false(take_request("set a 0 0 1 6\r\nx\r\n").noreply);
    struct parse_result p = parse_input(SLICE_LIT("set a 0 0 3\r\n\0\r\n\r\n"), &r);
    assert_int_equal(p.status, PARSE_OK);
    assert_memory_equal(r.data.p, "\0\r\n", 3);
}

static void test_cas_takes_its_number(void **state)
{
    (void)state;
    struct request r = take_request("cas a 5 0 1 18446744073709551615 noreply\r\nx\r\n");
    assert_true(r.cas == UINT64_MAX);
    assert_true(r.noreply);
    assert_int_equal(r.flags, 5);
}

static void test_missing_data_is_waited_for(void **state)
{
    (void)state;
    struct slice whole = SLICE_LIT("set a 0 0 5\r\nhello\r\n");
    struct request r;
    for (size_t len = 13; len < whole.len; len++) {
        struct parse_result p = parse_input(slice_make(whole.p, len), &r);
        assert_int_equal(p.status, PARSE_MORE);
        assert_int_equal(p.need, whole.len);
    }
}

static void test_bad_chunks_are_dropped_to_their_line_end(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        REFUSED("set a 0 0 5\r\nhelloflush_all", BAD_CHUNK),
        REFUSED("set a 0 0 5\r\nhelloX", BAD_CHUNK),
        REFUSED("set a 0 0 5\r\nhello\rX", BAD_CHUNK),
        REFUSED("set a 0 0 5\r\nhell", BAD_CHUNK), /* one byte too few: the block ends before the
                                                      next request */
        REFUSED("set a 0 0 5 noreply\r\nhelloX", ""),
        REFUSED("ms a 5 q\r\nhelloX", BAD_CHUNK),
        REFUSED("laddb a 5\r\nhelloX",
                "CLIENT_ERROR bad data chunk: no \\r\\n behind BYTES bytes\r\n"),
        {SLICE_LIT("set a 0 0 5\r\nhello\n"), PARSE_ERROR, 0, BAD_CHUNK},
    };
    assert_refusals(rows);
}

static void test_a_bad_chunk_without_end_closes(void **state)
{
    (void)state;
    struct request r;
    struct parse_result p = parse_input(long_line("set a 0 0 5\r\nhello", "x", 100, ""), &r);
    assert_int_equal(p.status, PARSE_MORE);
    assert_int_equal(p.need, 101);
    p = parse_input(long_line("set a 0 0 5\r\nhello", "x", 18 + 2048, "\r\n"), &r);
    assert_int_equal(p.status, PARSE_CLOSE);
    assert_slice(p.reply, BAD_CHUNK);
}

static void test_refused_data_is_thrown_away(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        REFUSED_BLOCK("set a 0 0 1001", 1003, TOO_LARGE),
        REFUSED_BLOCK("set a 0 0 1001 noreply", 1003, ""),
        REFUSED_BLOCK("set a 0 0 2147483645", 2147483647, TOO_LARGE),
        REFUSED_BLOCK("ms a 1001 q", 1003, TOO_LARGE),
        REFUSED_BLOCK("laddb a 1001", 1003, TOO_LARGE),
        REFUSED_BLOCK("set a x 0 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("set a x 0 5 noreply", 7, ""),
    };
    assert_refusals(rows);

    /* What has arrived of the block is consumed with the line. */
    struct request r;
    struct parse_result p = parse_input(SLICE_LIT("set a x 0 5\r\nhel"), &r);
    assert_int_equal(p.status, PARSE_ERROR);
    assert_int_equal(p.consumed, 16);
    assert_int_equal(p.swallow, 4);
    p = parse_input(SLICE_LIT("set a x 0 5\r\nhello\r\nget a\r\n"), &r);
    assert_int_equal(p.consumed, 20);
    assert_int_equal(p.swallow, 0);
}

static void test_bad_set_lines(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        REFUSED("set", "ERROR\r\n"),
        REFUSED_BLOCK("set a 0 x 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("set a -1 0 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("set a 18446744073709551616 0 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("set a 0 9223372036854775808 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("set a\0b 0 0 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("set a 0 0 5 no\0reply", 7, BAD_FORMAT),
        REFUSED_BLOCK("add " KEY_251 " 0 0 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("add " KEY_251 " 0 0 5 noreply", 7, ""),
        REFUSED_BLOCK("set a 0 0 5 6 7", 7, "ERROR\r\n"),
        REFUSED_BLOCK("set a 0 0 5 noreply x", 7, "ERROR\r\n"),
        REFUSED_BLOCK("cas a 0 0 5", 7, "ERROR\r\n"),
        REFUSED_BLOCK("cas a 0 0 5 1 2 3", 7, "ERROR\r\n"),
        REFUSED_BLOCK("cas a 0 0 5 x", 7, BAD_FORMAT),
        REFUSED_BLOCK("cas a 0 0 5 -1", 7, BAD_FORMAT),
        REFUSED_BLOCK("cas a 0 0 5 noreply", 7, ""),
    };
    assert_refusals(rows);
}

/* Where the data ends that may follow is unknown. */
static void test_unknown_lengths_close(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        CLOSED("set a 0 0", "ERROR\r\n"),
        CLOSED("set a 0 0 x", BAD_FORMAT),
        CLOSED("set a 0 0 -1", BAD_FORMAT),
        CLOSED("set a 0 0 5x", BAD_FORMAT),
        CLOSED("set a 0 0 2147483646", BAD_FORMAT),
        CLOSED("set a 0 0 2147483647", BAD_FORMAT),
        CLOSED("set a 0 0 4294967301", BAD_FORMAT),
        CLOSED("set a 0 0 -1 noreply", ""),
        CLOSED("ms a", BAD_FORMAT),
        CLOSED("ms a S5", BAD_FORMAT),
        CLOSED("ms a -1", BAD_FORMAT),
        CLOSED("laddb a", "CLIENT_ERROR usage: laddb KEY BYTES [noreply]\r\n"),
        CLOSED("laddb a x", "CLIENT_ERROR usage: laddb KEY BYTES [noreply]\r\n"),
        CLOSED("ldelb a -1", "CLIENT_ERROR usage: ldelb KEY BYTES [noreply]\r\n"),
        CLOSED("lhasb a 4294967296", "CLIENT_ERROR usage: lhasb KEY BYTES [noreply]\r\n"),
        CLOSED("laddb a x noreply", ""),
    };
    assert_refusals(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_takes_its_data),
        cmocka_unit_test(test_flags_are_cut),
        cmocka_unit_test(test_too_large_values_remove),
        cmocka_unit_test(test_data_may_be_empty_or_anything),
        cmocka_unit_test(test_cas_takes_its_number),
        cmocka_unit_test(test_missing_data_is_waited_for),
        cmocka_unit_test(test_bad_chunks_are_dropped_to_their_line_end),
        cmocka_unit_test(test_a_bad_chunk_without_end_closes),
        cmocka_unit_test(test_refused_data_is_thrown_away),
        cmocka_unit_test(test_bad_set_lines),
        cmocka_unit_test(test_unknown_lengths_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
