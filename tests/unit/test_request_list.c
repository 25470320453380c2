/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/request_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_request.h"

static void test_list_requests(void **state)
{
    (void)state;
    struct request r = take_request("ladd k  one two noreply \r\n");
    assert_int_equal(r.verb->verb, VERB_ladd);
    assert_slice(r.key, "k");
    assert_false(r.noreply);
    struct slice item;
    assert_true(item_next(&r.args, &item));
    assert_slice(item, "one");
    assert_true(item_next(&r.args, &item));
    assert_slice(item, "two");
    assert_true(item_next(&r.args, &item));
    assert_slice(item, "noreply");
    assert_false(item_next(&r.args, &item));
    r = take_request("lset k\n");
    assert_false(item_next(&r.args, &item));
    r = take_request("lgets a b\r\n");
    assert_slice(r.args, "a b");
    assert_int_equal(r.arg_count, 2);
    r = take_request("lrange k -9223372036854775808 9223372036854775807\r\n");
    assert_true(r.from == INT64_MIN);
    assert_true(r.to == INT64_MAX);
    assert_slice(take_request("llen " KEY_220 "\r\n").key, KEY_220);
    r = take_request("laddt k -5 a b\r\n");
    assert_true(r.seconds == -5);
    assert_slice(r.args, " a b");
    r = take_request("laddtb k 60 5 noreply\r\na\r\nb \r\n");
    assert_true(r.seconds == 60 && r.noreply);
    assert_slice(r.data, "a\r\nb ");
    r = take_request("laddb k 5 noreply\r\na\r\nb \r\n");
    assert_slice(r.data, "a\r\nb ");
    assert_true(r.noreply);
}

static void test_list_keys(void **state)
{
    (void)state;
    static const char too_long[] = "CLIENT_ERROR key too long, 220 bytes at most\r\n";
    static const char bad_key[] = "CLIENT_ERROR bad key: it holds a blank or control bytes\r\n";
    assert_slice(list_key_fault(SLICE_LIT("k")), "");
    assert_slice(list_key_fault(SLICE_LIT("\xff!#~")), "");
    assert_slice(list_key_fault(SLICE_LIT(KEY_220)), "");
    assert_slice(list_key_fault(SLICE_LIT(KEY_220 "k")), too_long);
    assert_slice(list_key_fault(SLICE_LIT("")), bad_key);
    assert_slice(list_key_fault(SLICE_LIT("a b")), bad_key);
    assert_slice(list_key_fault(SLICE_LIT("a\0")), bad_key);
    assert_slice(list_key_fault(SLICE_LIT("a\x7f")), bad_key);
}

static void test_bad_list_lines(void **state)
{
    (void)state;
    static const char too_long[] = "CLIENT_ERROR key too long, 220 bytes at most\r\n";
    static const char bad_key[] = "CLIENT_ERROR bad key: it holds a blank or control bytes\r\n";
    const struct refusal rows[] = {
        REFUSED("ladd", "CLIENT_ERROR usage: ladd KEY ITEM...\r\n"),
        REFUSED("ladd k", "CLIENT_ERROR usage: ladd KEY ITEM...\r\n"),
        REFUSED("lhas k ", "CLIENT_ERROR usage: lhas KEY ITEM...\r\n"),
        REFUSED("laddb k 2\r\nabc",
                "CLIENT_ERROR bad data chunk: no \\r\\n behind BYTES bytes\r\n"),
        REFUSED("lput k 4\r\na,b", "CLIENT_ERROR bad data chunk: no \\r\\n behind BYTES bytes\r\n"),
        REFUSED("lsetq", "CLIENT_ERROR usage: lsetq KEY [ITEM...]\r\n"),
        REFUSED("lget", "CLIENT_ERROR usage: lget KEY...\r\n"),
        REFUSED("llen", "CLIENT_ERROR usage: llen KEY...\r\n"),
        REFUSED("lpop k", "CLIENT_ERROR usage: lpop KEY COUNT\r\n"),
        REFUSED("lpop k x", "CLIENT_ERROR usage: lpop KEY COUNT\r\n"),
        REFUSED("lpop k 1 2", "CLIENT_ERROR usage: lpop KEY COUNT\r\n"),
        REFUSED("lrandomb k 9223372036854775808", "CLIENT_ERROR usage: lrandomb KEY COUNT\r\n"),
        REFUSED("lafter k a", "CLIENT_ERROR usage: lafter KEY ITEM COUNT\r\n"),
        REFUSED("lbefore k a b", "CLIENT_ERROR usage: lbefore KEY ITEM COUNT\r\n"),
        REFUSED("ldrop k noreply", "CLIENT_ERROR usage: ldrop KEY\r\n"),
        REFUSED("lcompact", "CLIENT_ERROR usage: lcompact KEY\r\n"),
        REFUSED("lmigrate a b", "CLIENT_ERROR usage: lmigrate KEY\r\n"),
        REFUSED("lstat k x", "CLIENT_ERROR usage: lstat KEY\r\n"),
        REFUSED("ltouch k", "CLIENT_ERROR usage: ltouch KEY EXPTIME\r\n"),
        REFUSED("ltouch k 1 2", "CLIENT_ERROR usage: ltouch KEY EXPTIME\r\n"),
        REFUSED("ltouch k 2147483648", "CLIENT_ERROR invalid exptime argument\r\n"),
        REFUSED("ltouch k 0x10", "CLIENT_ERROR invalid exptime argument\r\n"),
        REFUSED("llease k", "CLIENT_ERROR usage: llease KEY SECONDS\r\n"),
        REFUSED("llease k 1 2", "CLIENT_ERROR usage: llease KEY SECONDS\r\n"),
        REFUSED("llease k ten", "CLIENT_ERROR usage: llease KEY SECONDS\r\n"),
        REFUSED("lttl k 1 2", "CLIENT_ERROR usage: lttl KEY [ITEM]\r\n"),
        REFUSED("laddt k", "CLIENT_ERROR usage: laddt KEY SECONDS ITEM...\r\n"),
        REFUSED("laddt k 5", "CLIENT_ERROR usage: laddt KEY SECONDS ITEM...\r\n"),
        REFUSED("laddt k 1x a", "CLIENT_ERROR usage: laddt KEY SECONDS ITEM...\r\n"),
        REFUSED("lrange k 0", "CLIENT_ERROR usage: lrange KEY FROM TO\r\n"),
        REFUSED("lrange k 0 x", "CLIENT_ERROR usage: lrange KEY FROM TO\r\n"),
        REFUSED("lrange k 0 1 2", "CLIENT_ERROR usage: lrange KEY FROM TO\r\n"),
        REFUSED("lrevrange k x 0", "CLIENT_ERROR usage: lrevrange KEY FROM TO\r\n"),
        REFUSED("lrange k 0 9223372036854775808", "CLIENT_ERROR usage: lrange KEY FROM TO\r\n"),
        REFUSED("ladd " KEY_220 "k x", too_long),
        REFUSED("lget a " KEY_220 "k", too_long),
        REFUSED("ladd a\tb x", bad_key),
        REFUSED("lget a b\x7f", bad_key),
        REFUSED("lrange a\0 0 1", bad_key),
        REFUSED("laddb", "CLIENT_ERROR usage: laddb KEY BYTES [noreply]\r\n"),
        REFUSED_BLOCK("laddb k 0", 2, "CLIENT_ERROR empty item\r\n"),
        REFUSED_BLOCK("ldelb k 5 x", 7, "CLIENT_ERROR usage: ldelb KEY BYTES [noreply]\r\n"),
        REFUSED_BLOCK("ldelb k 5 noreply x", 7,
                      "CLIENT_ERROR usage: ldelb KEY BYTES [noreply]\r\n"),
        REFUSED_BLOCK("lhasb " KEY_220 "k 5", 7, too_long),
        REFUSED_BLOCK("lhasb a\tb 5 noreply", 7, ""),
    };
    assert_refusals(rows);
}

static void test_lines_of_transactions(void **state)
{
    (void)state;
    struct request r = take_request("ltx 10 noreply\r\nladd k a\r\n\r\n");
    assert_slice(r.data, "ladd k a\r\n");
    assert_true(r.noreply);
    r = take_request("ltx 0\r\n\r\n");
    assert_int_equal(r.data.len, 0);
    assert_false(r.noreply);
    r = take_request("lmove from to a  b\r\n");
    assert_slice(r.key, "from");
    assert_slice(r.second, "to");
    assert_slice(r.args, " a  b");
    r = take_request("lpopto  from to -3\r\n");
    assert_slice(r.second, "to");
    assert_int_equal(r.count, -3);
    static const char too_long[] = "CLIENT_ERROR key too long, 220 bytes at most\r\n",
                      usage[] = "CLIENT_ERROR usage: ltx BYTES [noreply]\r\n",
                      move[] = "CLIENT_ERROR usage: lmove SRC DST ITEM...\r\n",
                      popto[] = "CLIENT_ERROR usage: lpopto SRC DST COUNT\r\n";
    static const struct refusal rows[] = {
        REFUSED("ltx", usage),
        CLOSED("ltx ten", usage),
        CLOSED("ltx -1", usage),
        CLOSED("ltx noreply 10", usage),
        CLOSED("ltx ten noreply", ""),
        REFUSED_BLOCK("ltx 10 now", 12, usage),
        REFUSED_BLOCK("ltx 10 noreply noreply", 12, usage),
        REFUSED_BLOCK("ltx 1001", 1003,
                      "CLIENT_ERROR ltx: the data block is longer than max_value_bytes: raise it, "
                      "or use several transactions\r\n"),
        REFUSED_BLOCK("ltx 1001 noreply", 1003, ""),
        REFUSED("lmove", move),
        REFUSED("lmove from", move),
        REFUSED("lmove from to", move),
        REFUSED("lmove " KEY_220 "k to a", too_long),
        REFUSED("lmove from " KEY_220 "k a", too_long),
        REFUSED("lmove from t\to a", "CLIENT_ERROR bad key: it holds a blank or control bytes\r\n"),
        REFUSED("lpopto from to", popto),
        REFUSED("lpopto from to x", popto),
        REFUSED("lpopto from to 1 2", popto),
        REFUSED("lpoptob from to 9223372036854775808",
                "CLIENT_ERROR usage: lpoptob SRC DST COUNT\r\n"),
    };
    assert_refusals(rows);
}

static void test_every_list_verb_has_a_usage(void **state)
{
    (void)state;
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        const struct verb_info *info = verb_info((enum verb)v);
        if (info->shape < SHAPE_LIST_ITEMS) {
            continue;
        }
        char line[32], start[64];
        snprintf(line, sizeof line, "%.*s\r\n", SLICE_ARGS(info->text));
        snprintf(start, sizeof start, "CLIENT_ERROR usage: %.*s ", SLICE_ARGS(info->text));
        struct request r;
        struct parse_result p = parse_input(slice_of(line), &r);
        assert_int_equal(p.status, PARSE_ERROR);
        assert_true(slice_starts_with(p.reply, slice_of(start)));
        assert_true(slice_equal(slice_make(p.reply.p + p.reply.len - 2, 2), SLICE_LIT("\r\n")));
    }
}

/* Requests are parsed one after the other to the same place: "new" is of one of them only. */
static void test_new_does_not_last(void **state)
{
    (void)state;
    static const char *const others[] = {"linterstore d a b\r\n", "lset k a\r\n", "get k\r\n"};
    struct request r;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(parse_input(SLICE_LIT("lput k 1 new\r\nx\r\n"), &r).status, PARSE_OK);
        assert_true(r.only_new);
        assert_int_equal(parse_input(slice_of(others[i]), &r).status, PARSE_OK);
        assert_false(r.only_new);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_requests),
        cmocka_unit_test(test_list_keys),
        cmocka_unit_test(test_bad_list_lines),
        cmocka_unit_test(test_lines_of_transactions),
        cmocka_unit_test(test_every_list_verb_has_a_usage),
        cmocka_unit_test(test_new_does_not_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
