/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/server/ascii_classic.h"

#define MAX_VALUE ((size_t)1 << 20)
#define KEY SLICE_LIT("key")

static const struct be_operation a_get = {.verb = BE_GET, .key = {"key", 3}},
                                 a_size = {.verb = BE_SIZE, .key = {"key", 3}},
                                 a_probe = {.verb = BE_PROBE, .key = {"key", 3}},
                                 a_fetch = {.verb = BE_FETCH, .key = {"key", 3}};

static void reads_are_gets(void **state)
{
    (void)state;
    static const struct {
        struct be_operation op;
        const char *line;
    } cases[] = {
        {{.verb = BE_GET}, "gets key\r\n"},
        {{.verb = BE_SIZE}, "gets key\r\n"},
        {{.verb = BE_PROBE}, "get key\r\n"},
        {{.verb = BE_FETCH}, "get key\r\n"},
        {{.verb = BE_FETCH, .asks_cas = true}, "gets key\r\n"},
        {{.verb = BE_GAT, .exptime = 100}, "gat 100 key\r\n"},
        {{.verb = BE_GAT, .exptime = -1, .asks_cas = true}, "gats -1 key\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct be_operation op = cases[i].op;
        char out[ASCII_LINE_MAX];
        op.key = KEY;
        assert_true(ascii_classic_reads(op.verb));
        size_t len = ascii_classic_format(&op, out);
        assert_true(slice_equal(slice_make(out, len), slice_of(cases[i].line)));
    }
    assert_false(ascii_classic_reads(BE_TIME)); /* no command tells that */
    assert_false(ascii_classic_reads(BE_APPEND));
    assert_false(ascii_classic_reads(BE_LINE_GET));
}

static enum ascii_classic_result answer(const struct be_operation *op, const char *text,
                                        struct be_reply *reply, size_t *size)
{
    return ascii_classic_read(op, slice_of(text), MAX_VALUE, reply, size);
}

static void hits_and_misses(void **state)
{
    (void)state;
    struct be_reply reply;
    size_t size;
    assert_int_equal(answer(&a_get, "VALUE key 7 3 99\r\nabc\r\nEND\r\nmore", &reply, &size),
                     ASCII_CLASSIC_READ);
    assert_true(reply.status == BE_HIT && reply.flags == 7 && reply.cas == 99);
    assert_true(reply.has_value && slice_equal(reply.value, SLICE_LIT("abc")));
    assert_true(reply.size_bytes == 3 && reply.ttl_s == -1 && reply.no_times);
    assert_int_equal(size, 30 - 2);
    assert_int_equal(answer(&a_get, "END\r\nmore", &reply, &size), ASCII_CLASSIC_READ);
    assert_true(reply.status == BE_MISS && reply.no_times && size == 5);
    assert_int_equal(answer(&a_fetch, "VALUE key 7 0\r\n\r\nEND\r\n", &reply, &size),
                     ASCII_CLASSIC_READ);
    assert_true(reply.status == BE_HIT && reply.has_value && reply.value.len == 0);
}

/* Their values are no use of anyone. */
static void sizes_and_probes_have_no_value(void **state)
{
    (void)state;
    struct be_reply reply;
    size_t size;
    assert_int_equal(answer(&a_size, "VALUE key 7 3 99\r\nabc\r\nEND\r\n", &reply, &size),
                     ASCII_CLASSIC_READ);
    assert_true(reply.size_bytes == 3 && reply.cas == 99 && !reply.has_value);
    assert_int_equal(answer(&a_probe, "VALUE key 7 3\r\nabc\r\nEND\r\n", &reply, &size),
                     ASCII_CLASSIC_READ);
    assert_true(reply.status == BE_HIT && !reply.has_value && reply.value.len == 0);
}

static void every_prefix_of_an_answer_wants_more(void **state)
{
    (void)state;
    const char *whole = "VALUE key 7 3 99\r\nabc\r\nEND\r\n";
    struct be_reply reply;
    size_t size;
    for (size_t len = 0; len < strlen(whole); len++) {
        /* A copy of its own: the sanitizer sees what is read behind it. */
        char *part = malloc(len + 1);
        memcpy(part, whole, len);
        assert_int_equal(
            ascii_classic_read(&a_get, slice_make(part, len), MAX_VALUE, &reply, &size),
            ASCII_CLASSIC_MORE);
        assert_int_equal(size, len >= 18 ? strlen(whole) : 0);
        free(part);
    }
}

static void stray_answers_are_seen_where_they_can_be(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum ascii_classic_result result;
    } cases[] = {
        {"VALUE kez 7 3 99\r\nabc\r\nEND\r\n", ASCII_CLASSIC_MISFIT},
        {"VALUE key1 7 3 99\r\nabc\r\nEND\r\n", ASCII_CLASSIC_MISFIT},
        {"STORED\r\n", ASCII_CLASSIC_MISFIT},
        {"EN\r\n", ASCII_CLASSIC_MISFIT},
        {"HD\r\n", ASCII_CLASSIC_MISFIT},
        {"ENDE\r\n", ASCII_CLASSIC_MISFIT},
        {"VALUE key 7 3 99\r\nabc\r\nSTORED\r\n", ASCII_CLASSIC_GARBAGE},
        {"VALUE key 7 3 99\r\nabc\r\nVALUE key 7 3 99\r\nabc\r\nEND\r\n", ASCII_CLASSIC_GARBAGE},
        {"VALUE key 7 3 99\r\nabcd\r\nEND\r\n", ASCII_CLASSIC_GARBAGE},
        {"VALUE key 7 3\r\nabc\r\nEND\r\n", ASCII_CLASSIC_GARBAGE}, /* no CAS number */
        {"VALUE key 7 3 9x\r\nabc\r\nEND\r\n", ASCII_CLASSIC_GARBAGE},
        {"VALUE key 4294967296 3 9\r\nabc\r\nEND\r\n", ASCII_CLASSIC_GARBAGE},
        {"VALUE key 7 1048577 99\r\n", ASCII_CLASSIC_GARBAGE},
        {"VA 3 kkey f7 c99 t-1\r\nabc\r\n", ASCII_CLASSIC_GARBAGE},
        {"END\n", ASCII_CLASSIC_GARBAGE},
        {"ERROR\r\n", ASCII_CLASSIC_ERROR},
        {"CLIENT_ERROR bad command line format\r\n", ASCII_CLASSIC_ERROR},
        {"SERVER_ERROR out of memory making CAS suffix\r\n", ASCII_CLASSIC_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct be_reply reply;
        size_t size;
        assert_int_equal(answer(&a_get, cases[i].text, &reply, &size), cases[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_are_gets),
        cmocka_unit_test(hits_and_misses),
        cmocka_unit_test(sizes_and_probes_have_no_value),
        cmocka_unit_test(every_prefix_of_an_answer_wants_more),
        cmocka_unit_test(stray_answers_are_seen_where_they_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
