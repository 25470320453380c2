/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/request_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/key.h"
#include "support_request.h"

static void test_meta_requests(void **state)
{
    (void)state;
    struct request r = take_request("mg a v k q O" OPAQUE_31 "\r\n");
    assert_int_equal(r.verb->verb, VERB_MG);
    assert_slice(r.key, "a");
    assert_int_equal(r.arg_count, 4);
    assert_true(r.quiet);
    assert_false(r.base64);
    assert_false(r.has_data);
    r = take_request("md Zm9v b E5 x\r\n");
    assert_true(r.base64);
    assert_slice(r.key, "Zm9v");
    assert_false(take_request("ma a M+ D5 J7 N0\r\n").quiet);
    r = take_request("ms a 5 MA q I\r\nhello\r\n");
    assert_true(r.has_data);
    assert_slice(r.data, "hello");
    assert_int_equal(r.arg_count, 4);
    assert_slice(take_request("ms a 0\r\n\r\n").data_crlf, "\r\n");
    assert_true(take_request("me Zm9v b\r\n").base64);
    assert_false(take_request("me Zm9v q b ? ?\r\n").base64);
}

static void test_bad_meta_lines(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        REFUSED("mg", "ERROR\r\n"),
        REFUSED("me", BAD_FORMAT),
        REFUSED("mg " KEY_251, BAD_FORMAT),
        REFUSED("md " KEY_251, BAD_FORMAT),
        REFUSED("me " KEY_251, BAD_FORMAT),
        REFUSED("mg a k\0v", BAD_FORMAT),
        REFUSED("mg a z", BAD_FLAG),
        REFUSED("mg a v v", "CLIENT_ERROR duplicate flag\r\n"),
        REFUSED("mg a \xff", "CLIENT_ERROR duplicate flag\r\n"),
        REFUSED("mg a Tx", BAD_TOKEN),
        REFUSED("mg a N", BAD_TOKEN),
        REFUSED("mg a R9223372036854775808", BAD_TOKEN),
        REFUSED("mg a C-1", BAD_TOKEN),
        REFUSED("mg a Fx", BAD_FORMAT),
        REFUSED("mg a Tx Fx", BAD_TOKEN),
        REFUSED("mg a Tx Fx z", BAD_FLAG),
        REFUSED("mg a M", "CLIENT_ERROR incorrect length for M token\r\n"),
        REFUSED("mg a Oo" OPAQUE_31, "CLIENT_ERROR opaque token too long\r\n"),
        REFUSED("mg a b", BAD_KEY64),
        REFUSED("mg a s t v f c h l k q u O1 P1 L1 R3 T3 N3 D1 J1",
                "CLIENT_ERROR options flags are too long\r\n"),
        REFUSED("md a s t v f c h l k q u O1 P1 L1 R3 T3 N3 D1 J1",
                "CLIENT_ERROR options flags too long\r\n"),
        REFUSED("md a z", BAD_META),
        REFUSED("md a q q", BAD_META),
        REFUSED("md a b", BAD_META),
        REFUSED("ma a Dx", BAD_META),
        REFUSED("ma a MX", "CLIENT_ERROR invalid mode for ma M token\r\n"),
        REFUSED("ma a Oo" OPAQUE_31, "CLIENT_ERROR opaque token too long\r\n"),
        REFUSED("me a b", BAD_FORMAT),
    };
    assert_refusals(rows);
}

static void test_bad_ms_lines_lose_their_data(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        REFUSED("ms", "ERROR\r\n"),
        REFUSED_BLOCK("ms a 5 z", 7, BAD_FLAG),
        REFUSED_BLOCK("ms a 5 F1 F2", 7, "CLIENT_ERROR duplicate flag\r\n"),
        REFUSED_BLOCK("ms a 5 q Tx", 7, BAD_TOKEN),
        REFUSED_BLOCK("ms a 5 D", 7, "CLIENT_ERROR invalid numeric delta value\r\n"),
        REFUSED_BLOCK("ms a 5 J", 7, "CLIENT_ERROR invalid numeric initial value\r\n"),
        REFUSED_BLOCK("ms a 5 MX", 7, "CLIENT_ERROR invalid mode for ms M token\r\n"),
        REFUSED_BLOCK("ms a 5 Mset", 7, "CLIENT_ERROR incorrect length for M token\r\n"),
        REFUSED_BLOCK("ms a 5 Oo" OPAQUE_31, 7, "CLIENT_ERROR opaque token too long\r\n"),
        REFUSED_BLOCK("ms a 5 b", 7, BAD_KEY64),
        REFUSED_BLOCK("ms " KEY_251 " 5", 7, BAD_FORMAT),
        REFUSED_BLOCK("ms a 5 k s t c f v h u q I l O P L N T R", 7,
                      "CLIENT_ERROR options flags too long\r\n"),
    };
    assert_refusals(rows);
}

/* memcached echoes the decoded key: a line feed in it would forge an answer to the next request. */
static void test_base64_keys_with_a_line_feed_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        /* "a\nHD" */
        REFUSED("mg YQpIRA== b k v", BAD_KEY64),
        REFUSED("md YQpIRA== b k q", BAD_META),
        REFUSED("me YQpIRA== b", BAD_FORMAT),
        REFUSED_BLOCK("ms YQpIRA== 5 b", 7, BAD_KEY64),
    };
    assert_refusals(rows);
    /* "a\rHD" is harmless. */
    assert_true(take_request("mg YQ1IRA== b k v\r\n").base64);
}

static void test_base64_keys(void **state)
{
    (void)state;
    char out[250];
    assert_int_equal(key_decode_base64(SLICE_LIT("Zm9vYmFy"), out), 6);
    assert_memory_equal(out, "foobar", 6);
    assert_int_equal(key_decode_base64(SLICE_LIT("Zm9vYmE="), out), 5);
    assert_memory_equal(out, "fooba", 5);
    assert_int_equal(key_decode_base64(SLICE_LIT("Zm9vYg=="), out), 4);
    assert_memory_equal(out, "foob", 4);
    assert_int_equal(key_decode_base64(SLICE_LIT("+/8A"), out), 3);
    assert_memory_equal(out, "\xfb\xff\0", 3);
    static const char *const wrong[] = {"",     "A",    "AA",   "AAA",      "AAAAA", "A===", "====",
                                        "AA-_", "AA=A", "A A=", "AAA=AAAA", "AAAA=", "AA\n="};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(key_decode_base64(slice_of(wrong[i]), out), 0);
    }
    char longest[252];
    memset(longest, 'A', sizeof longest);
    assert_int_equal(key_decode_base64(slice_make(longest, 248), out), 186);
    assert_int_equal(key_decode_base64(slice_make(longest, 252), out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meta_requests),
        cmocka_unit_test(test_bad_meta_lines),
        cmocka_unit_test(test_bad_ms_lines_lose_their_data),
        cmocka_unit_test(test_base64_keys_with_a_line_feed_are_refused),
        cmocka_unit_test(test_base64_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
