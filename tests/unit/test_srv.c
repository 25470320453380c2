/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions for SRV records, and answers, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pool/locate/srv.h"

#define NAME "_couchbase._tcp.db.example.com"
#define NAME_BYTES \
    "\x0a_couchbase\x04_tcp\x02" \
    "db\x07" \
    "example\x03" \
    "com\0"
#define TYPE_AND_CLASS "\0\x21\0\1"
#define QUESTION NAME_BYTES TYPE_AND_CLASS
/* A record of the name asked for, which lives a minute. */
#define RECORD "\xc0\x0c" TYPE_AND_CLASS "\0\0\0\x3c"
#define TARGET(text_len, text) \
    text_len text "\x02" \
                  "db\x07" \
                  "example\x03" \
                  "com\0"

static char question[SRV_QUESTION_MAX];
static size_t question_len;
static struct srv_records records;

static int setup(void **state)
{
    (void)state;
    question_len = srv_write_question(question, 0x1234, NAME);
    records.count = 99;
    return 0;
}

static enum srv_result read_bytes(const char *bytes, size_t len)
{
    return srv_read_answer(slice_make(bytes, len), slice_make(question, question_len), &records);
}

#define READ(bytes) read_bytes(bytes, sizeof(bytes) - 1)

static void a_question(void **state)
{
    static const char wanted[] =
        "\x12\x34\1\0\0\1\0\0\0\0\0\1" QUESTION "\0\0\x29\4\xd0\0\0\0\0\0\0";
    char long_one[SRV_QUESTION_MAX + 1];
    (void)state;
    assert_int_equal(question_len, sizeof wanted - 1);
    assert_memory_equal(question, wanted, sizeof wanted - 1);
    assert_int_equal(srv_write_question(question, 1, "_couchbase._tcp.a."),
                     srv_write_question(question, 1, "_couchbase._tcp.a"));
    assert_int_equal(srv_write_question(question, 1, "a..b"), 0);
    assert_int_equal(srv_write_question(question, 1, ""), 0);
    memset(long_one, 'a', sizeof long_one);
    long_one[64] = '\0';
    assert_int_equal(srv_write_question(question, 1, long_one), 0);
    memset(long_one, 'a', sizeof long_one);
    for (size_t i = 63; i < sizeof long_one; i += 64) {
        long_one[i] = '.';
    }
    long_one[sizeof long_one - 1] = '\0';
    assert_int_equal(srv_write_question(question, 1, long_one), 0);
}

static void records_in_their_order(void **state)
{
    (void)state;
    assert_int_equal(READ("\x12\x34\x81\x80\0\1\0\3\0\0\0\0" QUESTION RECORD
                          "\0\x18\0\2\0\0\x2b\xca" TARGET("\1", "c") RECORD
                          "\0\x18\0\1\0\1\x2b\xcb" TARGET("\1", "b") RECORD
                          "\0\x18\0\1\0\x63\0\7" TARGET("\1", "a")),
                     SRV_FOUND);
    assert_int_equal(records.count, 3);
    assert_string_equal(records.at[0].host, "a.db.example.com");
    assert_int_equal(records.at[0].port, 7);
    assert_string_equal(records.at[1].host, "b.db.example.com");
    assert_int_equal(records.at[1].port, 11211);
    assert_string_equal(records.at[2].host, "c.db.example.com");
    assert_int_equal(records.at[2].port, 11210);
}

/* Other records, the root as a target, port 0, names that would spoil a line. */
static void records_that_name_no_server(void **state)
{
    (void)state;
    assert_int_equal(READ("\x12\x34\x81\x80\0\1\0\5\0\0\0\0" QUESTION
                          "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\2\xc0\x0c" RECORD
                          "\0\7\0\0\0\0\x2b\xca\0" RECORD "\0\x9\0\0\0\0\0\0\1a\0" RECORD
                          "\0\xb\0\0\0\0\x2b\xca\3a\nb\0" RECORD "\0\x9\0\0\0\0\x2b\xca\1z\0"),
                     SRV_FOUND);
    assert_int_equal(records.count, 1);
    assert_string_equal(records.at[0].host, "z");
}

static void there_are_none(void **state)
{
    (void)state;
    assert_int_equal(READ("\x12\x34\x81\x83\0\1\0\0\0\0\0\0" QUESTION), SRV_FOUND);
    assert_int_equal(records.count, 0);
    assert_int_equal(READ("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" QUESTION), SRV_FOUND);
    assert_int_equal(records.count, 0);
}

static void answers_of_no_use(void **state)
{
    (void)state;
    assert_int_equal(READ("\x12\x34\x81\x82\0\1\0\0\0\0\0\0" QUESTION), SRV_FAILED);
    assert_int_equal(READ("\x12\x34\x83\x80\0\1\0\0\0\0\0\0" QUESTION), SRV_FAILED);
    /* Another id, a question, another name, another type, no question, too short. */
    assert_int_equal(READ("\x12\x35\x81\x80\0\1\0\0\0\0\0\0" QUESTION), SRV_NO_ANSWER);
    assert_int_equal(READ("\x12\x34\1\x80\0\1\0\0\0\0\0\0" QUESTION), SRV_NO_ANSWER);
    assert_int_equal(READ("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\1a\0" TYPE_AND_CLASS), SRV_NO_ANSWER);
    assert_int_equal(READ("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" NAME_BYTES "\0\1\0\1"), SRV_NO_ANSWER);
    assert_int_equal(READ("\x12\x34\x81\x80\0\0\0\0\0\0\0\0"), SRV_NO_ANSWER);
    assert_int_equal(READ("\x12\x34\x81"), SRV_NO_ANSWER);
    assert_int_equal(READ(""), SRV_NO_ANSWER);
}

/* A name that points to itself, and data that end too early. */
static void broken_records(void **state)
{
    (void)state;
    assert_int_equal(
        READ("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" QUESTION RECORD "\0\x8\0\0\0\0\x2b\xca\xc0\x40"),
        SRV_FOUND);
    assert_int_equal(records.count, 0);
    assert_int_equal(READ("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" QUESTION RECORD "\0\x40\0\0"),
                     SRV_NO_ANSWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_question, setup),
        cmocka_unit_test_setup(records_in_their_order, setup),
        cmocka_unit_test_setup(records_that_name_no_server, setup),
        cmocka_unit_test_setup(there_are_none, setup),
        cmocka_unit_test_setup(answers_of_no_use, setup),
        cmocka_unit_test_setup(broken_records, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
