/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the binary protocol, and the answers to them, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "proto/client/binary_answer.h"
#include "proto/client/binary_request.h"
#include "proto/key.h"
#include "support_packet.h"
#include "support_request.h"

#define REST "01020304 0000000000000000"
#define CAS_5 "01020304 0000000000000005"

static struct parse_result parse(const char *text, struct request *out)
{
    static char bytes[PACKET_ROOM];
    return binary_request_parse(bytes_of(text, bytes), &test_limits, out);
}

/* One whole request with that verb. */
static struct request take(const char *text, const char *verb)
{
    struct request r;
    char bytes[PACKET_ROOM];
    struct parse_result p = parse(text, &r);
    assert_int_equal(p.status, PARSE_OK);
    assert_int_equal(p.consumed, bytes_of(text, bytes).len);
    assert_slice(r.verb->text, verb);
    assert_int_equal(r.binary.opaque, 0x01020304);
    assert_false(r.noreply);
    return r;
}

static void test_reads_are_gets(void **state)
{
    (void)state;
    struct request r = take("80 00 0005 00 00 0000 00000005 " REST "'fruit'", "gets");
    assert_slice(r.key, "fruit");
    assert_slice(r.args, "fruit");
    assert_int_equal(r.arg_count, 1);
    assert_false(r.binary.is_quiet);
    r = take("80 0d 0001 00 00 0000 00000001 " REST "'k'", "gets");
    assert_true(r.binary.is_quiet);
    r = take("80 23 0001 04 00 0000 00000005 " REST "00000064 'k'", "gats");
    assert_int_equal(r.exptime, 100);
    assert_slice(r.key, "k");
    r = take("80 1c 0001 04 00 0000 00000005 " REST "ffffffff 'k'", "touch");
    assert_int_equal(r.exptime, INT32_MAX);
}

static void test_changes_have_their_values(void **state)
{
    (void)state;
    struct request r =
        take("80 01 0003 08 00 0000 00000010 " REST "00000007 0000000a 'key' 'value'", "set");
    assert_slice(r.key, "key");
    assert_slice(r.data, "value");
    assert_int_equal(r.flags, 7);
    assert_int_equal(r.exptime, 10);
    assert_int_equal(r.line.len, 24 + 8 + 3);
    r = take("80 12 0001 08 00 0000 00000009 " CAS_5 "00000000 00000000 'k'", "cas");
    assert_true(r.cas == 5 && r.has_data && r.data.len == 0 && r.binary.is_quiet);
    r = take("80 0e 0001 00 00 0000 00000003 " CAS_5 "'k' 'xy'", "append");
    assert_true(r.cas == 5);
    assert_slice(r.data, "xy");
    r = take("80 14 0001 00 00 0000 00000001 " CAS_5 "'k'", "delete");
    assert_true(r.cas == 5 && !r.has_data);
    r = take("80 06 0001 14 00 0000 00000015 " REST
             "0000000000000002 0000000000000009 ffffffff 'k'",
             "decr");
    assert_true(r.delta == 2 && r.binary.initial == 9 && !r.binary.creates);
    r = take("80 05 0001 14 00 0000 00000015 " REST
             "0000000000000002 0000000000000009 00000000 'k'",
             "incr");
    assert_true(r.binary.creates && r.exptime == 0);
}

static void test_what_has_no_key(void **state)
{
    (void)state;
    (void)take("80 0a 0000 00 00 0000 00000000 " REST, "mn");
    (void)take("80 0b 0000 00 00 0000 00000000 " REST, "version");
    assert_true(take("80 17 0000 00 00 0000 00000000 " REST, "quit").binary.is_quiet);
    assert_slice(take("80 10 0000 00 00 0000 00000000 " REST, "stats").args, "");
    assert_slice(take("80 10 0005 00 00 0000 00000005 " REST "'a b c'", "stats").args, "a b c");
    assert_slice(take("80 08 0000 04 00 0000 00000004 " REST "00000000", "flush_all").args, "");
    assert_non_null(take("80 08 0000 00 00 0000 00000000 " REST, "flush_all").args.p);
    assert_slice(take("80 08 0000 04 00 0000 00000004 " REST "00000009", "flush_all").args, "1");
}

static void test_keys_that_no_line_can_hold(void **state)
{
    (void)state;
    struct request r = take("80 00 0003 00 00 0000 00000003 " REST "'a b'", "gets");
    assert_true(r.binary.odd_key);
    assert_slice(r.key, "a b");
    assert_slice(r.args, "");
    assert_non_null(r.args.p);
    assert_false(take("80 00 0003 00 00 0000 00000003 " REST "'a' ff 7f", "gets").binary.odd_key);
    /* In base64 it would be longer than memcached takes. */
    char bytes[PACKET_ROOM] = "";
    (void)bytes_of("80 00 00bb 00 00 0000 000000bb " REST, bytes);
    memset(bytes + 24, ' ', 187);
    struct parse_result p = binary_request_parse(slice_make(bytes, 24 + 187), &test_limits, &r);
    assert_int_equal(p.status, PARSE_ERROR);
    assert_int_equal(p.consumed, 24 + 187);
}

static void expect_refusal(const char *text, enum parse_status status, const char *reply,
                           size_t swallow)
{
    struct request r;
    struct parse_result p = parse(text, &r);
    assert_int_equal(p.status, status);
    assert_slice(p.reply, reply);
    assert_int_equal(p.swallow, swallow);
}

#define INVALID "CLIENT_ERROR Invalid arguments\r\n"

static void test_what_memcached_refuses(void **state)
{
    (void)state;
    /* Another first byte. */
    expect_refusal("81 0a 0000 00 00 0000 00000000 " REST, PARSE_CLOSE, "", 0);
    expect_refusal("67", PARSE_CLOSE, "", 0);
    /* Opcodes that it does not know: the body is thrown away. */
    expect_refusal("80 1b 0000 04 00 0000 00000004 " REST "0000", PARSE_ERROR, "ERROR\r\n", 2);
    expect_refusal("80 ff 0001 00 00 0000 ffffffff " REST "'k'", PARSE_ERROR, "ERROR\r\n",
                   4294967294);
    /* Lengths that cannot be. */
    expect_refusal("80 00 0002 00 00 0000 00000001 " REST "'k'", PARSE_CLOSE, "ERROR\r\n", 0);
    expect_refusal("80 01 0001 08 00 0000 00000008 " REST, PARSE_CLOSE, "ERROR\r\n", 0);
    static const char *const wrong[] = {
        "80 00 0000 00 00 0000 00000000", "80 00 00fb 00 00 0000 000000fb",
        "80 00 0001 01 00 0000 00000002", "80 00 0001 00 00 0000 00000002",
        "80 01 0000 08 00 0000 00000008", "80 01 0001 07 00 0000 00000008",
        "80 05 0001 14 00 0000 00000016", "80 05 0001 13 00 0000 00000014",
        "80 0a 0001 00 00 0000 00000001", "80 0b 0000 00 00 0000 00000001",
        "80 08 0001 00 00 0000 00000001", "80 08 0000 02 00 0000 00000002",
        "80 10 0000 01 00 0000 00000001", "80 1c 0001 04 00 0000 00000006",
        "80 0e 0001 04 00 0000 00000005", "80 21 0000 00 00 0000 00000000",
        "80 20 0001 00 00 0000 00000001",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[PACKET_ROOM];
        snprintf(text, sizeof text, "%s " REST, wrong[i]);
        expect_refusal(text, PARSE_CLOSE, INVALID, 0);
    }
}

static void test_values_that_are_too_large(void **state)
{
    (void)state;
    struct request r;
    const char *set = "80 11 0001 08 00 0000 000003f2 " REST "0000000000000000 'k' 'x'";
    struct parse_result p = parse(set, &r);
    assert_int_equal(p.status, PARSE_ERROR);
    assert_true(p.removes && p.swallow == 1000);
    assert_slice(r.key, "k");
    assert_slice(p.reply, TOO_LARGE);
    p = parse("80 02 0001 08 00 0000 000003f2 " REST "0000000000000000 'k' 'x'", &r);
    assert_true(p.status == PARSE_ERROR && !p.removes);
    /* The largest is waited for as a whole. */
    p = parse("80 01 0001 08 00 0000 000003f1 " REST "0000000000000000 'k' 'x'", &r);
    assert_true(p.status == PARSE_MORE && p.need == 24 + 9 + 1000);
    p = parse("80 01 0001 08 00 0000 000003f2 " REST "00", &r);
    assert_true(p.status == PARSE_MORE && p.need == 24 + 9);
}

static void test_pieces_are_waited_for(void **state)
{
    (void)state;
    char bytes[PACKET_ROOM];
    struct request r;
    struct slice whole =
        bytes_of("80 01 0003 08 00 0000 00000010 " REST "00000007 0000000a 'key' 'value'", bytes);
    for (size_t len = 0; len < whole.len; len++) {
        struct parse_result p = binary_request_parse(slice_make(whole.p, len), &test_limits, &r);
        assert_int_equal(p.status, PARSE_MORE);
        assert_int_equal(p.need, len < 24 ? 24 : whole.len);
    }
}

static void test_logins(void **state)
{
    (void)state;
    struct request r;
    struct slice user, password;
    struct parse_result p =
        parse("80 21 0005 00 00 0000 00000011 " REST "'PLAIN' 'id' 00 'ann' 00 'secre'", &r);
    assert_int_equal(p.status, PARSE_OK);
    assert_null(r.verb);
    assert_slice(r.key, "PLAIN");
    assert_true(binary_read_plain(r.data, &user, &password));
    assert_slice(user, "ann");
    assert_slice(password, "secre");
    assert_false(binary_read_plain(SLICE_LIT("ann\0secret"), &user, &password));
    assert_false(binary_read_plain(SLICE_NONE, &user, &password));
    assert_true(binary_read_plain(SLICE_LIT("\0\0"), &user, &password));
    assert_int_equal(user.len + password.len, 0);
    p = parse("80 21 0005 00 00 0000 00000806 " REST "'PLAIN'", &r);
    assert_true(p.status == PARSE_ERROR && p.swallow == 0x801);
}

/* As soon as the header is there: no value is waited for, and no key is looked at. */
static void test_what_comes_before_a_login_is_refused(void **state)
{
    (void)state;
    static const struct request_limits closed = {.max_value_bytes = 1000, .before_login = true};
    static const char *const refused[] = {
        "80 01 0001 08 00 0000 00100009 " REST, "80 00 0001 00 00 0000 00000001 " REST,
        "80 01 0001 00 00 0000 00000001 " REST, "80 40 0000 00 00 0000 00000000 " REST,
        "80 0a 0000 00 00 0000 00000000 " REST,
    };
    char bytes[PACKET_ROOM];
    struct request r;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct parse_result p = binary_request_parse(bytes_of(refused[i], bytes), &closed, &r);
        assert_int_equal(p.status, PARSE_CLOSE);
        assert_slice(p.reply, "CLIENT_ERROR unauthenticated\r\n");
        assert_int_equal(r.binary.opaque, 0x01020304);
    }
    struct slice version = bytes_of("80 0b 0000 00 00 0000 00000000 " REST, bytes);
    assert_int_equal(binary_request_parse(version, &closed, &r).status, PARSE_OK);
    struct slice list = bytes_of("80 20 0000 00 00 0000 00000000 " REST, bytes);
    assert_int_equal(binary_request_parse(list, &closed, &r).status, PARSE_OK);
}

/* --- answers --- */

static void expect_answer(const struct binary_call *call, struct binary_answer answer,
                          const char *wanted)
{
    char front[BINARY_ANSWER_FRONT_MAX], bytes[PACKET_ROOM];
    struct slice expected = bytes_of(wanted, bytes);
    char *end = binary_answer_put(front, call, &answer);
    assert_int_equal(end - front, expected.len);
    assert_memory_equal(front, bytes, expected.len);
}

static void test_answers(void **state)
{
    (void)state;
    const struct binary_call call = {.opaque = 0x01020304, .opcode = BINARY_GETK};
    expect_answer(&call, (struct binary_answer){.cas = 5}, "81 0c 0000 00 00 0000 00000000 " CAS_5);
    expect_answer(
        &call,
        (struct binary_answer){
            .has_flags = true, .flags = 7, .key = SLICE_LIT("fruit"), .value_len = 0x1000000},
        "81 0c 0005 04 00 0000 01000009 " REST "00000007 'fruit'");
    expect_answer(&call,
                  (struct binary_answer){.status = BINARY_STATUS_UNKNOWN_COMMAND, .value_len = 15},
                  "81 0c 0000 00 00 0081 0000000f " REST);
}

static void expect_status(uint8_t opcode, const char *line, enum binary_status status,
                          const char *text)
{
    struct slice said;
    const struct binary_call call = {.opcode = opcode};
    assert_int_equal(binary_answer_read(&call, slice_of(line), &said), status);
    assert_slice(said, text);
}

static void test_lines_have_a_status(void **state)
{
    (void)state;
    expect_status(BINARY_SET, "STORED", BINARY_STATUS_SUCCESS, "");
    expect_status(BINARY_ADD, "NOT_STORED", BINARY_STATUS_EXISTS, "Data exists for key.");
    expect_status(BINARY_REPLACEQ, "NOT_STORED", BINARY_STATUS_NOT_FOUND, "Not found");
    expect_status(BINARY_APPEND, "NOT_STORED", BINARY_STATUS_NOT_STORED, "Not stored.");
    expect_status(BINARY_SET, "EXISTS", BINARY_STATUS_EXISTS, "Data exists for key.");
    expect_status(BINARY_DELETE, "NOT_FOUND", BINARY_STATUS_NOT_FOUND, "Not found");
    expect_status(BINARY_VERSION, "VERSION 1.6.0", BINARY_STATUS_SUCCESS, "1.6.0");
    expect_status(BINARY_GET, "ERROR", BINARY_STATUS_UNKNOWN_COMMAND, "Unknown command");
    expect_status(BINARY_SET, "SERVER_ERROR object too large for cache", BINARY_STATUS_TOO_LARGE,
                  "Too large.");
    expect_status(BINARY_SET, "SERVER_ERROR object too large for cache: above",
                  BINARY_STATUS_TOO_LARGE, "object too large for cache: above");
    expect_status(BINARY_SET, "SERVER_ERROR out of memory storing object", BINARY_STATUS_NO_MEMORY,
                  "Out of memory");
    expect_status(BINARY_SET, "SERVER_ERROR backend x down", BINARY_STATUS_TEMPORARY,
                  "backend x down");
    expect_status(BINARY_SET, "SERVER_ERROR timeout, outcome unknown", BINARY_STATUS_INTERNAL,
                  "timeout, outcome unknown");
    expect_status(BINARY_SET, "SERVER_ERROR busy", BINARY_STATUS_BUSY, "busy");
    expect_status(BINARY_SET, "CLIENT_ERROR no", BINARY_STATUS_INVALID, "no");
    expect_status(BINARY_GET, "ERROR Too many open connections", BINARY_STATUS_TEMPORARY,
                  "Too many open connections");
    expect_status(BINARY_GET, "something else", BINARY_STATUS_INTERNAL, "");
}

static void test_quiet_requests_hide_what_is_usual(void **state)
{
    (void)state;
    const struct binary_call set = {.opcode = BINARY_SETQ, .is_quiet = true},
                             get = {.opcode = BINARY_GETKQ, .is_quiet = true},
                             loud = {.opcode = BINARY_GET};
    assert_true(binary_answer_is_hidden(&set, BINARY_STATUS_SUCCESS));
    assert_false(binary_answer_is_hidden(&set, BINARY_STATUS_NOT_FOUND));
    assert_true(binary_answer_is_hidden(&get, BINARY_STATUS_NOT_FOUND));
    assert_false(binary_answer_is_hidden(&get, BINARY_STATUS_SUCCESS));
    assert_false(binary_answer_is_hidden(&loud, BINARY_STATUS_NOT_FOUND));
}

static void test_keys_in_base64(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"a", "YQ=="},
                                          {"ab", "YWI="},
                                          {"abc", "YWJj"},
                                          {"a b\r\n", "YSBiDQo="},
                                          {"\xff\xfe", "//4="}};
    char out[KEY_BYTES_MAX], back[KEY_BYTES_MAX], long_key[KEY_ENCODED_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = key_encode_base64(slice_of(rows[i][0]), out);
        assert_slice(slice_make(out, len), rows[i][1]);
        len = key_decode_base64(slice_make(out, len), back);
        assert_slice(slice_make(back, len), rows[i][0]);
    }
    memset(long_key, 'k', sizeof long_key);
    size_t len = key_encode_base64(slice_make(long_key, sizeof long_key), out);
    assert_int_equal(key_decode_base64(slice_make(out, len), back), sizeof long_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_are_gets),
        cmocka_unit_test(test_changes_have_their_values),
        cmocka_unit_test(test_what_has_no_key),
        cmocka_unit_test(test_keys_that_no_line_can_hold),
        cmocka_unit_test(test_what_memcached_refuses),
        cmocka_unit_test(test_values_that_are_too_large),
        cmocka_unit_test(test_pieces_are_waited_for),
        cmocka_unit_test(test_logins),
        cmocka_unit_test(test_what_comes_before_a_login_is_refused),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_lines_have_a_status),
        cmocka_unit_test(test_quiet_requests_hide_what_is_usual),
        cmocka_unit_test(test_keys_in_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
