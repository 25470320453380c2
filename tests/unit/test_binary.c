/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of the binary protocol, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "proto/server/binary.h"
#include "support_packet.h"

#define NOW_S 1800000000

static void expect(struct be_operation op, const char *wanted)
{
    char front[BINARY_FRONT_MAX], bytes[PACKET_ROOM];
    op.key = SLICE_LIT("fruit");
    op.opaque = 0x01020304;
    op.vbucket = 0x02ab;
    size_t len = binary_format(&op, front);
    assert_int_equal(len, bytes_of(wanted, bytes).len);
    assert_memory_equal(front, bytes, len);
}

#define REST "01020304 0000000000000000"

static void reads_are_a_key(void **state)
{
    (void)state;
    const char *get = "80 00 0005 00 00 02ab 00000005 " REST "'fruit'";
    expect((struct be_operation){.verb = BE_FETCH}, get);
    expect((struct be_operation){.verb = BE_SIZE}, get);
    expect((struct be_operation){.verb = BE_PROBE}, get);
    expect((struct be_operation){.verb = BE_TIME},
           "80 a0 0005 01 00 02ab 00000006 " REST "02 'fruit'");
}

static void a_get_asks_for_the_time_as_well(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_GET},
           "80 00 0005 00 00 02ab 00000005 " REST "'fruit'"
           "80 a0 0005 01 00 02ab 00000006 " REST "02 'fruit'");
}

static void changes_carry_flags_and_time(void **state)
{
    (void)state;
    struct slice value = SLICE_LIT("apple");
    expect((struct be_operation){.verb = BE_SET, .flags = 7, .exptime = 60, .value = value},
           "80 01 0005 08 00 02ab 00000012 " REST "00000007 0000003c 'fruit'");
    expect((struct be_operation){.verb = BE_ADD, .flags = 0xffffffff, .value = value},
           "80 02 0005 08 00 02ab 00000012 " REST "ffffffff 00000000 'fruit'");
    expect((struct be_operation){.verb = BE_REPLACE, .exptime = -1},
           "80 03 0005 08 00 02ab 0000000d " REST "00000000 00278d01 'fruit'");
    expect((struct be_operation){.verb = BE_APPEND, .value = value},
           "80 0e 0005 00 00 02ab 0000000a " REST "'fruit'");
    expect((struct be_operation){.verb = BE_PREPEND, .value = value},
           "80 0f 0005 00 00 02ab 0000000a " REST "'fruit'");
    expect((struct be_operation){.verb = BE_DELETE, .cas = 5},
           "80 04 0005 00 00 02ab 00000005 " REST "'fruit'");
    expect((struct be_operation){.verb = BE_TOUCH, .exptime = 3},
           "80 1c 0005 04 00 02ab 00000009 " REST "00000003 'fruit'");
    expect((struct be_operation){.verb = BE_GAT, .exptime = -9},
           "80 1d 0005 04 00 02ab 00000009 " REST "00278d01 'fruit'");
}

/* Examples of Couchbase's documents. */
static void the_id_of_a_collection_stands_in_front_of_the_key(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_GET, .collection = 8},
           "80 00 0006 00 00 02ab 00000006 " REST "08 'fruit'"
           "80 a0 0006 01 00 02ab 00000007 " REST "02 08 'fruit'");
    expect((struct be_operation){.verb = BE_SET, .collection = 0x555, .value = SLICE_LIT("x")},
           "80 01 0007 08 00 02ab 00000010 " REST "00000000 00000000 d50a 'fruit'");
    expect((struct be_operation){.verb = BE_DELETE,
                                 .collection = 0xcafef00d,
                                 .durability = BE_DURABILITY_MAJORITY},
           "08 04 02 0a 00 00 02ab 0000000c " REST "1101 8de0fbd70c 'fruit'");
    static const struct {
        uint32_t id;
        const char *bytes;
    } ids[] = {{0x7f, "7f"},
               {0x80, "8001"},
               {0x7fff, "ffff01"},
               {0xbfff, "ffff02"},
               {0x8000, "808002"},
               {0x5555, "d5aa01"},
               {0xcafef00, "80debf65"},
               {UINT32_MAX, "ffffffff0f"}};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char out[BINARY_COLLECTION_MAX], bytes[PACKET_ROOM];
        assert_int_equal(binary_put_collection(out, ids[i].id), bytes_of(ids[i].bytes, bytes).len);
        assert_memory_equal(out, bytes, bytes_of(ids[i].bytes, bytes).len);
    }
}

static void the_longest_key_of_a_collection_fits(void **state)
{
    (void)state;
    char key[COLLECTION_KEY_BYTES_MAX], front[BINARY_FRONT_MAX];
    memset(key, 'k', sizeof key);
    struct be_operation op = {
        .verb = BE_GET, .collection = UINT32_MAX, .key = slice_make(key, sizeof key)};
    assert_int_equal(binary_format(&op, front), BINARY_FRONT_MAX);
    op.verb = BE_SET;
    op.durability = BE_DURABILITY_MAJORITY;
    (void)binary_format(&op, front);
    assert_int_equal((unsigned char)front[3], 251);
}

static void an_answer_that_names_a_key_names_this_one(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        enum binary_result result;
    } answers[] = {
        {"81 04 0000 00 00 0000 00000000 0000002a 0000000000000000", BINARY_OK},
        {"81 04 0006 00 00 0000 00000006 0000002a 0000000000000000 08 'fruit'", BINARY_OK},
        {"81 04 0005 00 00 0000 00000005 0000002a 0000000000000000 'fruit'", BINARY_MISFIT},
        {"81 04 0006 00 00 0000 00000006 0000002a 0000000000000000 09 'fruit'", BINARY_MISFIT},
        {"81 04 0006 00 00 0000 00000006 0000002a 0000000000000000 08 'froot'", BINARY_MISFIT},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct be_operation op = {
            .verb = BE_DELETE, .key = SLICE_LIT("fruit"), .opaque = 42, .collection = 8};
        struct be_reply reply = {0};
        char bytes[PACKET_ROOM];
        size_t size, len = bytes_of(answers[i].bytes, bytes).len;
        assert_int_equal(binary_decode(&op, slice_make(bytes, len), 100, NOW_S, &reply, &size),
                         answers[i].result);
    }
}

static void numbers_are_not_made(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_INCR, .delta = 0x0102030405060708},
           "80 05 0005 14 00 02ab 00000019 " REST
           "0102030405060708 0000000000000000 ffffffff 'fruit'");
    expect((struct be_operation){.verb = BE_DECR, .delta = 1},
           "80 06 0005 14 00 02ab 00000019 " REST
           "0000000000000001 0000000000000000 ffffffff 'fruit'");
}

static void a_condition_is_never_left_out(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_CAS, .cas = 9, .value = SLICE_LIT("x")},
           "80 01 0005 08 00 02ab 0000000e 01020304 0000000000000009 00000000 00000000 'fruit'");
    expect((struct be_operation){.verb = BE_CAS_DELETE, .cas = 9},
           "80 04 0005 00 00 02ab 00000005 01020304 0000000000000009 'fruit'");
    expect((struct be_operation){.verb = BE_CAS_DELETE, .cas = 0},
           "80 04 0005 00 00 02ab 00000005 01020304 fffffffffffffffe 'fruit'");
}

static void a_change_of_plain_verbs_may_have_a_cas(void **state)
{
    (void)state;
    expect(
        (struct be_operation){
            .verb = BE_APPEND, .cas = 9, .with_cas = true, .value = SLICE_LIT("x")},
        "80 0e 0005 00 00 02ab 00000006 01020304 0000000000000009 'fruit'");
    expect((struct be_operation){.verb = BE_APPEND, .cas = 9, .value = SLICE_LIT("x")},
           "80 0e 0005 00 00 02ab 00000006 " REST "'fruit'");
    expect((struct be_operation){.verb = BE_REPLACE, .with_cas = true, .value = SLICE_LIT("x")},
           "80 03 0005 08 00 02ab 0000000e 01020304 fffffffffffffffe 00000000 00000000 'fruit'");
}

static void a_number_may_begin(void **state)
{
    (void)state;
    expect(
        (struct be_operation){
            .verb = BE_DECR, .delta = 3, .creates = true, .initial = 7, .exptime = 100},
        "80 06 0005 14 00 02ab 00000019 " REST
        "0000000000000003 0000000000000007 00000064 'fruit'");
}

static void a_durable_change_says_so_in_a_frame(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_DELETE, .durability = BE_DURABILITY_PERSIST_MAJORITY},
           "08 04 02 05 00 00 02ab 00000007 " REST "1103 'fruit'");
    expect((struct be_operation){.verb = BE_SET,
                                 .value = SLICE_LIT("x"),
                                 .durability = BE_DURABILITY_MAJORITY},
           "08 01 02 05 08 00 02ab 00000010 " REST "1101 00000000 00000000 'fruit'");
    expect((struct be_operation){.verb = BE_DELETE,
                                 .durability = BE_DURABILITY_MAJORITY,
                                 .durability_ms = 900},
           "08 04 04 05 00 00 02ab 00000009 " REST "13010384 'fruit'");
    /* Neither reads nor a new time alone. */
    expect((struct be_operation){.verb = BE_FETCH, .durability = BE_DURABILITY_MAJORITY},
           "80 00 0005 00 00 02ab 00000005 " REST "'fruit'");
    expect((struct be_operation){.verb = BE_TOUCH, .durability = BE_DURABILITY_MAJORITY},
           "80 1c 0005 04 00 02ab 00000009 " REST "00000000 'fruit'");
}

/* --- answers --------------------------------------------------------------------------------- */

#define HEAD(opcode, extras, status, body) \
    "81 " opcode " 0000 " extras " 00 " status " " body " 0000002a "

/* Decodes each prefix and then the whole. */
static enum binary_result decode(enum be_verb verb, const char *text, struct be_reply *reply)
{
    static char bytes[PACKET_ROOM];
    size_t len = bytes_of(text, bytes).len, size = 1;
    struct be_operation op = {.verb = verb, .key = SLICE_LIT("fruit"), .opaque = 42};
    for (size_t part = 0; part < len; part++) {
        char *copy = malloc(part + 1); /* so that a sanitizer sees a byte too far */
        assert_non_null(copy);
        memcpy(copy, bytes, part);
        *reply = (struct be_reply){0};
        enum binary_result result =
            binary_decode(&op, slice_make(copy, part), 1000, NOW_S, reply, &size);
        free(copy);
        if (result != BINARY_MORE) {
            return result;
        }
        assert_true(size == 0 || (size > part && size <= len));
    }
    *reply = (struct be_reply){0};
    enum binary_result result =
        binary_decode(&op, slice_make(bytes, len), 1000, NOW_S, reply, &size);
    assert_true(result == BINARY_GARBAGE || size == len);
    return result;
}

static void expect_status(enum be_verb verb, const char *text, enum be_status status, uint32_t code)
{
    struct be_reply reply;
    assert_int_equal(decode(verb, text, &reply), BINARY_OK);
    assert_int_equal(reply.status, status);
    assert_int_equal(reply.code, code);
}

static void a_hit_has_flags_value_and_cas(void **state)
{
    (void)state;
    struct be_reply reply;
    const char *hit = HEAD("00", "04", "0000", "00000009") "00000000000000ff 00000007 'apple'";
    assert_int_equal(decode(BE_FETCH, hit, &reply), BINARY_OK);
    assert_int_equal(reply.status, BE_HIT);
    assert_int_equal(reply.flags, 7);
    assert_int_equal(reply.cas, 255);
    assert_int_equal(reply.size_bytes, 5);
    assert_true(reply.has_value && slice_equal(reply.value, SLICE_LIT("apple")));
    assert_int_equal(decode(BE_SIZE, hit, &reply), BINARY_OK);
    assert_true(reply.size_bytes == 5 && !reply.has_value);
    expect_status(BE_FETCH, HEAD("00", "00", "0001", "00000009") "0000000000000000 'Not found'",
                  BE_MISS, 1);
}

/* Couchbase may always answer in this form; the frame says how long the server took. */
static void an_answer_may_have_frames(void **state)
{
    (void)state;
    struct be_reply reply;
    assert_int_equal(decode(BE_FETCH,
                            "18 00 03 00 04 01 0000 0000000c 0000002a 00000000000000ff"
                            "02 1234 00000007 'apple'",
                            &reply),
                     BINARY_OK);
    assert_true(reply.status == BE_HIT && slice_equal(reply.value, SLICE_LIT("apple")));
}

#define GOT HEAD("00", "04", "0000", "00000009") "00000000000000ff 00000007 'apple'"
#define META(deleted, expiry, cas) \
    HEAD("a0", "14", "0000", "00000014") cas deleted "00000007" expiry "0000000000000001"

static void the_time_to_live_comes_behind_the_value(void **state)
{
    (void)state;
    struct be_reply reply;
    /* 1800000060 */
    assert_int_equal(decode(BE_GET, GOT META("00000000", "6b49d23c", "00000000000000ff"), &reply),
                     BINARY_OK);
    assert_int_equal(reply.status, BE_HIT);
    assert_int_equal(reply.ttl_s, 60);
    assert_int_equal(reply.cas, 255);
    assert_true(slice_equal(reply.value, SLICE_LIT("apple")));
    assert_int_equal(decode(BE_GET, GOT META("00000000", "00000000", "00000000000000ff"), &reply),
                     BINARY_OK);
    assert_int_equal(reply.ttl_s, -1);
    /* The year 1 is none either. */
    assert_int_equal(decode(BE_GET, GOT META("00000000", "886e0900", "00000000000000ff"), &reply),
                     BINARY_OK);
    assert_true(reply.ttl_s == -1 && reply.expires_s == 0);
    assert_int_equal(decode(BE_TIME, META("00000000", "6b49d23c", "00000000000000ff"), &reply),
                     BINARY_OK);
    assert_true(reply.ttl_s == 60 && reply.expires_s == 1800000060 && reply.cas == 255);
    /* A tombstone. */
    expect_status(BE_TIME, META("00000001", "00000000", "00000000000000ff"), BE_MISS, 1);
    /* Written, or removed, between the two: a time that belongs to a later state. */
    assert_int_equal(decode(BE_GET, GOT META("00000000", "6b49d23c", "0000000000000100"), &reply),
                     BINARY_OK);
    assert_true(reply.status == BE_HIT && reply.ttl_s == 60 && reply.cas == 255);
    assert_true(slice_equal(reply.value, SLICE_LIT("apple")));
    assert_int_equal(decode(BE_GET, GOT META("00000001", "00000000", "00000000000000ff"), &reply),
                     BINARY_OK);
    assert_true(reply.status == BE_HIT && reply.ttl_s == -1 && reply.cas == 255);
    expect_status(BE_GET, GOT HEAD("a0", "00", "0086", "00000000") "0000000000000000", BE_REFUSED,
                  0x86);
    /* A miss takes both, too. */
    expect_status(BE_GET,
                  HEAD("00", "00", "0001", "00000000") "0000000000000000" HEAD(
                      "a0", "00", "0001", "00000000") "0000000000000000",
                  BE_MISS, 1);
}

static void statuses_become_the_words_of_the_ascii_protocol(void **state)
{
    (void)state;
    static const struct {
        enum be_verb verb;
        const char *opcode, *status;
        enum be_status wanted;
    } rows[] = {
        {BE_SET, "01", "0000", BE_STORED},        {BE_ADD, "02", "0002", BE_NOT_STORED},
        {BE_ADD, "02", "0005", BE_NOT_STORED},    {BE_REPLACE, "03", "0001", BE_NOT_STORED},
        {BE_APPEND, "0e", "0005", BE_NOT_STORED}, {BE_APPEND, "0e", "0001", BE_NOT_STORED},
        {BE_PREPEND, "0f", "0000", BE_STORED},    {BE_CAS, "01", "0002", BE_EXISTS},
        {BE_CAS, "01", "0001", BE_NOT_FOUND},     {BE_CAS_DELETE, "04", "0000", BE_STORED},
        {BE_CAS_DELETE, "04", "0002", BE_EXISTS}, {BE_DELETE, "04", "0000", BE_DELETED},
        {BE_DELETE, "04", "0001", BE_NOT_FOUND},  {BE_INCR, "05", "0001", BE_NOT_FOUND},
        {BE_INCR, "05", "0006", BE_REFUSED},      {BE_TOUCH, "1c", "0000", BE_STORED},
        {BE_TOUCH, "1c", "0001", BE_NOT_FOUND},   {BE_SET, "01", "0003", BE_TOO_LARGE},
        {BE_SET, "01", "0082", BE_NO_MEMORY},     {BE_SET, "01", "0086", BE_REFUSED},
        {BE_SET, "01", "00a2", BE_REFUSED},       {BE_SET, "01", "00a3", BE_LOST},
        {BE_SET, "01", "0084", BE_LOST},          {BE_FETCH, "00", "0084", BE_REFUSED},
        {BE_SET, "01", "0024", BE_REFUSED},       {BE_SET, "01", "1234", BE_LOST},
        {BE_FETCH, "00", "1234", BE_REFUSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "81 %s 0000 00 00 %s 00000000 0000002a 0000000000000001",
                 rows[i].opcode, rows[i].status);
        expect_status(rows[i].verb, text, rows[i].wanted,
                      (uint32_t)strtoul(rows[i].status, NULL, 16));
    }
}

/* MUTATION_SEQNO adds 16 bytes of extras to the answers of changes. */
static void extras_that_were_not_asked_for_do_no_harm(void **state)
{
    (void)state;
    struct be_reply reply;
    assert_int_equal(decode(BE_INCR,
                            HEAD("05", "10", "0000",
                                 "00000018") "0000000000000001"
                                             "0000000000000000 0000000000000000 0000000000000102",
                            &reply),
                     BINARY_OK);
    assert_true(reply.status == BE_STORED && reply.number == 0x102);
}

static void the_map_of_another_node_is_kept(void **state)
{
    (void)state;
    struct be_reply reply;
    assert_int_equal(
        decode(BE_SET, HEAD("01", "00", "0007", "00000002") "0000000000000000 '{}'", &reply),
        BINARY_OK);
    assert_true(reply.status == BE_REFUSED && reply.code == BINARY_STATUS_NOT_MY_VBUCKET);
    assert_true(reply.has_value && slice_equal(reply.value, SLICE_LIT("{}")));
    /* The same when only the second of two requests finds it moved. */
    assert_int_equal(
        decode(BE_GET, GOT HEAD("a0", "00", "0007", "00000002") "0000000000000000 '{}'", &reply),
        BINARY_OK);
    assert_true(reply.code == BINARY_STATUS_NOT_MY_VBUCKET && reply.has_value);
}

static void what_does_not_fit_is_no_answer(void **state)
{
    (void)state;
    struct be_reply reply;
    /* Another opcode, another opaque, no flags, a number of 4 bytes, a compressed value. */
    assert_int_equal(
        decode(BE_SET, HEAD("02", "00", "0000", "00000000") "0000000000000001", &reply),
        BINARY_MISFIT);
    assert_int_equal(
        decode(BE_SET, "81 01 0000 00 00 0000 00000000 0000002b 0000000000000001", &reply),
        BINARY_MISFIT);
    assert_int_equal(
        decode(BE_FETCH, HEAD("00", "00", "0000", "00000001") "0000000000000001 'x'", &reply),
        BINARY_MISFIT);
    assert_int_equal(
        decode(BE_INCR, HEAD("05", "00", "0000", "00000004") "0000000000000001 'abcd'", &reply),
        BINARY_MISFIT);
    assert_int_equal(decode(BE_FETCH,
                            "81 00 0000 04 02 0000 00000005 0000002a 0000000000000001 00000000 'x'",
                            &reply),
                     BINARY_MISFIT);
    /* A request, a body that is too large, parts that are longer than their body. */
    assert_int_equal(decode(BE_SET, "80", &reply), BINARY_GARBAGE);
    assert_int_equal(
        decode(BE_SET, HEAD("01", "00", "0000", "00001000") "0000000000000001", &reply),
        BINARY_GARBAGE);
    assert_int_equal(
        decode(BE_SET, HEAD("01", "04", "0000", "00000003") "0000000000000001 '123'", &reply),
        BINARY_GARBAGE);
}

/* The engine's: what it reads without a time serves as well. */
static void a_time_may_be_left_out(void **state)
{
    (void)state;
    static const char *const answers[] = {HEAD("a0", "00", "0081", "00000000") "0000000000000000",
                                          HEAD("a0", "00", "0083", "00000000") "0000000000000000",
                                          HEAD("a0", "04", "0000", "00000004") "0000000000000000"
                                                                               "00000000"};
    char bytes[PACKET_ROOM];
    struct be_operation op = {
        .verb = BE_GET, .key = SLICE_LIT("fruit"), .opaque = 42, .time_optional = true};
    size_t size, got = bytes_of(GOT, bytes).len;
    for (size_t i = 0; i < 3; i++) {
        struct be_reply reply = {0};
        size_t len = got + bytes_of(answers[i], bytes + got).len;
        assert_int_equal(binary_decode(&op, slice_make(bytes, len), 1000, NOW_S, &reply, &size),
                         BINARY_OK);
        assert_true(reply.status == BE_HIT && reply.no_times && reply.ttl_s == -1 && size == len);
        assert_true(slice_equal(reply.value, SLICE_LIT("apple")));
    }
    op.without_time = true;
    struct be_reply reply = {0};
    assert_int_equal(binary_decode(&op, slice_make(bytes, got), 1000, NOW_S, &reply, &size),
                     BINARY_OK);
    assert_true(reply.status == BE_HIT && reply.no_times && size == got);
    expect(op, "80 00 0005 00 00 02ab 00000005 " REST "'fruit'");
}

static void every_status_has_a_text(void **state)
{
    (void)state;
    assert_string_equal(binary_status_text(BINARY_STATUS_TEMPORARY), "temporary failure");
    assert_string_equal(binary_status_text(0x1234), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_are_a_key),
        cmocka_unit_test(a_get_asks_for_the_time_as_well),
        cmocka_unit_test(changes_carry_flags_and_time),
        cmocka_unit_test(the_id_of_a_collection_stands_in_front_of_the_key),
        cmocka_unit_test(the_longest_key_of_a_collection_fits),
        cmocka_unit_test(an_answer_that_names_a_key_names_this_one),
        cmocka_unit_test(numbers_are_not_made),
        cmocka_unit_test(a_condition_is_never_left_out),
        cmocka_unit_test(a_change_of_plain_verbs_may_have_a_cas),
        cmocka_unit_test(a_number_may_begin),
        cmocka_unit_test(a_durable_change_says_so_in_a_frame),
        cmocka_unit_test(a_hit_has_flags_value_and_cas),
        cmocka_unit_test(an_answer_may_have_frames),
        cmocka_unit_test(the_time_to_live_comes_behind_the_value),
        cmocka_unit_test(a_time_may_be_left_out),
        cmocka_unit_test(statuses_become_the_words_of_the_ascii_protocol),
        cmocka_unit_test(extras_that_were_not_asked_for_do_no_harm),
        cmocka_unit_test(the_map_of_another_node_is_kept),
        cmocka_unit_test(what_does_not_fit_is_no_answer),
        cmocka_unit_test(every_status_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
