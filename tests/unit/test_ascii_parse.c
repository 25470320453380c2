/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/server/ascii_parse.h"

#define MAX_VALUE ((size_t)1 << 20)

static const struct be_operation a_line = {.verb = BE_LINE}, a_get = {.verb = BE_LINE_GET},
                                 a_gets = {.verb = BE_LINE_GET, .asks_cas = true};

/* What ascii_parse finds. */
struct parsed {
    struct be_reply reply;
    size_t size;
};

static enum ascii_parse_result parse(const char *text, struct parsed *out)
{
    return ascii_parse(&a_line, slice_of(text), MAX_VALUE, &out->reply, &out->size);
}

static void lines_end_in_both_characters(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(parse("STORED\r\nHD\r\n", &p), ASCII_PARSE_OK);
    assert_true(slice_equal(p.reply.line, SLICE_LIT("STORED")));
    assert_false(p.reply.has_value);
    assert_int_equal(p.size, 8);
    assert_int_equal(parse("", &p), ASCII_PARSE_MORE);
    assert_int_equal(parse("STORED\r", &p), ASCII_PARSE_MORE);
    assert_int_equal(p.size, 0);
    assert_int_equal(parse("STORED\n", &p), ASCII_PARSE_GARBAGE);
    assert_int_equal(parse("\r\n", &p), ASCII_PARSE_GARBAGE);
}

static void values_are_measured_not_searched(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(parse("VA 7 f1 c2\r\nab\r\ncde\r\nEN\r\n", &p), ASCII_PARSE_OK);
    assert_true(slice_equal(p.reply.line, SLICE_LIT("VA 7 f1 c2")));
    assert_true(p.reply.has_value);
    assert_true(slice_equal(p.reply.value, SLICE_LIT("ab\r\ncde")));
    assert_int_equal(p.size, 21);
    assert_int_equal(parse("VA 0\r\n\r\n", &p), ASCII_PARSE_OK);
    assert_true(p.reply.has_value && p.reply.value.len == 0 && p.size == 8);
}

static void every_prefix_of_a_value_wants_more(void **state)
{
    (void)state;
    const char *whole = "VA 3 t-1\r\nabc\r\n";
    struct parsed p;
    for (size_t len = 0; len < strlen(whole); len++) {
        /* A copy of its own: the sanitizer sees what is read behind it. */
        char *part = malloc(len + 1);
        memcpy(part, whole, len);
        assert_int_equal(ascii_parse(&a_line, slice_make(part, len), MAX_VALUE, &p.reply, &p.size),
                         ASCII_PARSE_MORE);
        assert_int_equal(p.size, len >= 10 ? strlen(whole) : 0);
        free(part);
    }
}

static void what_no_memcached_says_is_garbage(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "VA 3\r\nabcXX",     "VA 3\r\nabcd\r\n", "VA x\r\n",
        "VA \r\n",           "VA -1\r\n\r\n",    "VA 1048577\r\n",
        "VA 3x\r\nabc\r\n",  "VA  3\r\nabc\r\n", "VA 99999999999999999999\r\n",
        "VALUE foo 0 1\r\n",
    };
    struct parsed p;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(parse(lines[i], &p), ASCII_PARSE_GARBAGE);
    }
}

/* The two ways of taking a hit must agree. */
static enum ascii_parse_result parse_pieces(const struct be_operation *op, const char *text,
                                            struct parsed *out)
{
    struct parsed quick;
    enum ascii_parse_result result =
        ascii_parse(op, slice_of(text), MAX_VALUE, &out->reply, &out->size);
    if (ascii_take_usual(op, slice_of(text), MAX_VALUE, &quick.reply, &quick.size)) {
        assert_int_equal(result, ASCII_PARSE_OK);
        assert_true(out->reply.has_value && quick.size == out->size);
        assert_true(slice_equal(quick.reply.line, out->reply.line));
        assert_true(slice_equal(quick.reply.value, out->reply.value));
        assert_true(quick.reply.flags == out->reply.flags && quick.reply.cas == out->reply.cas);
    }
    return result;
}

static enum ascii_parse_result parse_values(const char *text, struct parsed *out)
{
    return parse_pieces(&a_get, text, out);
}

static void stored_is_taken_the_short_way(void **state)
{
    (void)state;
    static const struct be_operation is_stored[] = {
        {.verb = BE_APPEND},
        {.verb = BE_CAS},
        {.verb = BE_LINE, .form.like = BE_SET},
    };
    static const struct be_operation is_not[] = {
        {.verb = BE_INCR},
        {.verb = BE_DELETE},
        {.verb = BE_GET},
        {.verb = BE_FETCH, .key = {"STORED", 6}},
        {.verb = BE_LINE_GET},
        {.verb = BE_LINE, .form.like = BE_INCR},
        {.verb = BE_LINE, .form.like = BE_DELETE},
        {.verb = BE_LINE, .form.like = BE_LINE},
        {.verb = BE_LINE, .form = {.meta = 's', .like = BE_SET}},
        {.verb = BE_LINE_READ, .form.like = BE_SET},
    };
    struct parsed p;
    const struct slice text = SLICE_LIT("STORED\r\nHD\r\n");
    for (size_t i = 0; i < sizeof is_stored / sizeof is_stored[0]; i++) {
        assert_true(ascii_take_usual(&is_stored[i], text, MAX_VALUE, &p.reply, &p.size));
        assert_int_equal(p.reply.status, i < 2 ? BE_STORED : BE_ANSWERED);
        assert_true(slice_equal(p.reply.line, SLICE_LIT("STORED")) && !p.reply.has_value);
        assert_int_equal(p.size, 8);
    }
    for (size_t i = 0; i < sizeof is_not / sizeof is_not[0]; i++) {
        assert_false(ascii_take_usual(&is_not[i], text, MAX_VALUE, &p.reply, &p.size));
    }
    for (size_t len = 0; len < 8; len++) {
        assert_false(
            ascii_take_usual(&is_stored[0], slice_make(text.p, len), MAX_VALUE, &p.reply, &p.size));
    }
}

/* Where reading stops in the middle of one, others before it are taken all the same. */
static void hits_are_taken_the_short_way_wherever_the_bytes_end(void **state)
{
    (void)state;
    static const struct be_operation fetch = {.verb = BE_FETCH, .key = {"k", 1}};
    const struct slice text = SLICE_LIT("VA 3 kk f7\r\n\r\na\r\nVA 3 kk f7\r\n\r\na\r\n");
    struct parsed p;
    for (size_t len = 0; len <= text.len; len++) {
        char *part = malloc(len + 1);
        memcpy(part, text.p, len);
        bool taken = ascii_take_usual(&fetch, slice_make(part, len), MAX_VALUE, &p.reply, &p.size);
        assert_int_equal(taken, len >= text.len / 2);
        assert_true(!taken || (p.size == text.len / 2 && p.reply.flags == 7));
        free(part);
    }
}

static void answers_to_get_are_taken_in_pieces(void **state)
{
    (void)state;
    struct parsed p;
    assert_int_equal(parse_values("VALUE k 7 4\r\na\r\nb\r\nEND\r\n", &p), ASCII_PARSE_OK);
    assert_true(slice_equal(p.reply.line, SLICE_LIT("k")) && p.reply.flags == 7);
    assert_true(p.reply.has_value);
    assert_true(slice_equal(p.reply.value, SLICE_LIT("a\r\nb")));
    assert_int_equal(p.size, 19);
    assert_int_equal(parse_pieces(&a_gets, "VALUE k 0 0 18446744073709551615\r\n\r\n", &p),
                     ASCII_PARSE_OK);
    assert_true(p.reply.has_value && p.reply.value.len == 0 && p.reply.cas == UINT64_MAX);
    assert_int_equal(parse_pieces(&a_gets, "VALUE k 4294967295 0 7\r\n\r\n", &p), ASCII_PARSE_OK);
    assert_true(p.reply.flags == UINT32_MAX && p.reply.cas == 7);
    assert_int_equal(parse_values("END\r\n", &p), ASCII_PARSE_OK);
    assert_true(!p.reply.has_value && slice_equal(p.reply.line, SLICE_LIT("END")));
    assert_int_equal(parse_values("SERVER_ERROR x\r\n", &p), ASCII_PARSE_OK);
    assert_false(p.reply.has_value);
    const char *whole = "VALUE k 0 3 5\r\nabc\r\n";
    size_t unused;
    for (size_t len = 0; len < strlen(whole); len++) {
        char *part = malloc(len + 1);
        memcpy(part, whole, len);
        assert_int_equal(ascii_parse(&a_gets, slice_make(part, len), MAX_VALUE, &p.reply, &p.size),
                         ASCII_PARSE_MORE);
        assert_false(
            ascii_take_usual(&a_gets, slice_make(part, len), MAX_VALUE, &p.reply, &unused));
        assert_int_equal(p.size, len >= 15 ? strlen(whole) : 0);
        free(part);
    }
}

static void what_no_get_is_answered_is_garbage(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "VALUE k 0 3\r\nabcXX",
        "VALUE k 0 3\r\nabcd\r\n",
        "VALUE k 0\r\n",
        "VALUE k\r\n",
        "VALUE \r\n",
        "VALUE  0 1\r\na\r\n",
        "VALUE k x 1\r\na\r\n",
        "VALUE k 0 x\r\n",
        "VALUE k 0 -1\r\n",
        "VALUE k 0 1048577\r\n",
        "VALUE k 0 1 x\r\na\r\n",
        "VALUE k 0 1 5\r\na\r\n", /* nothing has asked for the CAS */
        "VALUE k 4294967296 1\r\na\r\n",
        "VALUE k 123456789012345678901 1\r\na\r\n",
        "VALUE k 0 1 2 3\r\na\r\n",
        "VALUE k  0 1\r\na\r\n",
        "VALUE k 0 99999999999999999999\r\n",
        "VA 1 f0\r\na\r\n",
    };
    struct parsed p;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(parse_values(lines[i], &p), ASCII_PARSE_GARBAGE);
    }
    assert_int_equal(parse_pieces(&a_gets, "VALUE k 0 1\r\na\r\n", &p), ASCII_PARSE_GARBAGE);
    assert_int_equal(parse_pieces(&a_gets, "VALUE k 0 1 18446744073709551616\r\na\r\n", &p),
                     ASCII_PARSE_GARBAGE);
}

static void a_line_without_end_is_given_up(void **state)
{
    (void)state;
    static char line[ASCII_REPLY_LINE_MAX + 2];
    struct parsed p;
    memset(line, 'x', sizeof line);
    assert_int_equal(ascii_parse(&a_line, slice_make(line, ASCII_REPLY_LINE_MAX - 1), MAX_VALUE,
                                 &p.reply, &p.size),
                     ASCII_PARSE_MORE);
    assert_int_equal(
        ascii_parse(&a_line, slice_make(line, ASCII_REPLY_LINE_MAX), MAX_VALUE, &p.reply, &p.size),
        ASCII_PARSE_GARBAGE);
    memcpy(line + ASCII_REPLY_LINE_MAX, "\r\n", 2);
    assert_int_equal(
        ascii_parse(&a_line, slice_make(line, sizeof line), MAX_VALUE, &p.reply, &p.size),
        ASCII_PARSE_GARBAGE);
}

static int read_reply(enum be_verb verb, const char *text, struct be_reply *reply)
{
    struct parsed p = {0};
    assert_int_equal(parse(text, &p), ASCII_PARSE_OK);
    *reply = p.reply;
    const struct be_operation op = {.verb = verb, .key = SLICE_LIT("fruit")};
    return ascii_reply_read(&op, reply);
}

static void a_get_brings_everything(void **state)
{
    (void)state;
    struct be_reply r;
    assert_int_equal(
        read_reply(BE_GET, "VA 5 kfruit f7 c18446744073709551615 t3600\r\nhello\r\n", &r), 0);
    assert_int_equal(r.status, BE_HIT);
    assert_int_equal(r.flags, 7);
    assert_true(r.cas == UINT64_MAX);
    assert_int_equal(r.ttl_s, 3600);
    assert_int_equal(r.size_bytes, 5);
    assert_true(slice_equal(r.value, SLICE_LIT("hello")));
    assert_int_equal(read_reply(BE_GET, "VA 0 t-1 c1 f0 W kfruit\r\n\r\n", &r), 0);
    assert_int_equal(r.ttl_s, -1);
    assert_int_equal(read_reply(BE_GET, "EN\r\n", &r), 0);
    assert_int_equal(r.status, BE_MISS);
}

static void sizes_and_probes_have_no_value(void **state)
{
    (void)state;
    struct be_reply r;
    assert_int_equal(read_reply(BE_SIZE, "HD kfruit s12345 c1\r\n", &r), 0);
    assert_true(r.status == BE_HIT && r.size_bytes == 12345);
    assert_int_equal(read_reply(BE_SIZE, "EN\r\n", &r), 0);
    assert_int_equal(r.status, BE_MISS);
    assert_int_equal(read_reply(BE_TIME, "HD kfruit t59 c7\r\n", &r), 0);
    assert_true(r.status == BE_HIT && r.ttl_s == 59 && r.cas == 7);
    assert_int_equal(read_reply(BE_TIME, "HD kfruit t-1 c7\r\n", &r), 0);
    assert_int_equal(r.ttl_s, -1);
    assert_int_equal(read_reply(BE_TIME, "EN\r\n", &r), 0);
    assert_int_equal(r.status, BE_MISS);
    assert_int_equal(read_reply(BE_PROBE, "HD kfruit\r\n", &r), 0);
    assert_int_equal(r.status, BE_HIT);
    assert_int_equal(read_reply(BE_PROBE, "EN\r\n", &r), 0);
    assert_int_equal(r.status, BE_MISS);
}

static void every_word_of_change_is_known(void **state)
{
    (void)state;
    static const struct {
        enum be_verb verb;
        const char *line;
        enum be_status status;
    } cases[] = {
        {BE_ADD, "STORED\r\n", BE_STORED},
        {BE_ADD, "NOT_STORED\r\n", BE_NOT_STORED},
        {BE_SET, "STORED\r\n", BE_STORED},
        {BE_APPEND, "STORED\r\n", BE_STORED},
        {BE_APPEND, "NOT_STORED\r\n", BE_NOT_STORED},
        {BE_PREPEND, "STORED\r\n", BE_STORED},
        {BE_PREPEND, "NOT_STORED\r\n", BE_NOT_STORED},
        {BE_INCR, "12\r\n", BE_STORED},
        {BE_INCR, "NOT_FOUND\r\n", BE_NOT_FOUND},
        {BE_CAS, "STORED\r\n", BE_STORED},
        {BE_CAS, "EXISTS\r\n", BE_EXISTS},
        {BE_CAS, "NOT_FOUND\r\n", BE_NOT_FOUND},
        {BE_CAS_DELETE, "STORED\r\n", BE_STORED},
        {BE_CAS_DELETE, "EXISTS\r\n", BE_EXISTS},
        {BE_DELETE, "DELETED\r\n", BE_DELETED},
        {BE_DELETE, "NOT_FOUND\r\n", BE_NOT_FOUND},
        {BE_DECR, "0\r\n", BE_STORED},
        {BE_DECR, "NOT_FOUND\r\n", BE_NOT_FOUND},
        {BE_TOUCH, "TOUCHED\r\n", BE_STORED},
        {BE_TOUCH, "NOT_FOUND\r\n", BE_NOT_FOUND},
        {BE_GAT, "EN\r\n", BE_MISS},
        {BE_GAT, "EN kfruit\r\n", BE_MISS},
        {BE_PROBE, "HD kZnJ1aXQ= b\r\n", BE_HIT}, /* stored by a base64 key */
        {BE_FETCH, "EN\r\n", BE_MISS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct be_reply r;
        assert_int_equal(read_reply(cases[i].verb, cases[i].line, &r), 0);
        assert_int_equal(r.status, cases[i].status);
    }
}

static void an_incr_brings_the_number(void **state)
{
    (void)state;
    struct be_reply r;
    assert_int_equal(read_reply(BE_INCR, "0\r\n", &r), 0);
    assert_true(r.status == BE_STORED && r.number == 0);
    assert_int_equal(read_reply(BE_INCR, "18446744073709551615\r\n", &r), 0);
    assert_true(r.status == BE_STORED && r.number == UINT64_MAX);
    assert_int_equal(
        read_reply(BE_INCR, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", &r),
        0);
    assert_int_equal(r.status, BE_REFUSED);
}

static void errors_are_told_apart_for_any_verb(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum be_status status;
    } cases[] = {
        {"SERVER_ERROR out of memory storing object\r\n", BE_NO_MEMORY},
        {"SERVER_ERROR Out of memory during read\r\n", BE_NO_MEMORY},
        {"SERVER_ERROR object too large for cache\r\n", BE_TOO_LARGE},
        {"SERVER_ERROR proxy write failure\r\n", BE_REFUSED},
        {"CLIENT_ERROR bad command line format\r\n", BE_REFUSED},
        {"ERROR\r\n", BE_REFUSED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int verb = BE_GET; verb <= BE_DELETE; verb++) {
            struct be_reply r;
            assert_int_equal(read_reply((enum be_verb)verb, cases[i].line, &r), 0);
            assert_int_equal(r.status, cases[i].status);
        }
    }
}

static void answers_to_other_requests_are_noticed(void **state)
{
    (void)state;
    static const struct {
        enum be_verb verb;
        const char *line;
    } cases[] = {
        {BE_GET, "STORED\r\n"},
        {BE_GET, "HD\r\n"},
        {BE_GET, "VA 1 kfruit c1 t1 fx\r\na\r\n"},
        {BE_GET, "VA 1 kfruit f0 c1 t\r\na\r\n"},
        {BE_SIZE, "HD\r\n"},
        {BE_TIME, "HD\r\n"},
        {BE_TIME, "VA 1 kfruit c1 t1\r\na\r\n"},
        {BE_SIZE, "VA 1 kfruit s1 c1\r\na\r\n"},
        {BE_PROBE, "HDX\r\n"},
        {BE_PROBE, "HD\r\n"},
        {BE_PROBE, "HD kapple\r\n"},
        {BE_PROBE, "HD kZnJ1aXQ\r\n"},
        {BE_GET, "VA 1 kfrui f0 c1 t1\r\na\r\n"},
        {BE_GET, "VA 1 kfruits f0 c1 t1\r\na\r\n"},
        {BE_GET, "VA 1 f0 c1 t1\r\na\r\n"},
        {BE_GET, "VA 1 kfruit c1 t1\r\na\r\n"},
        {BE_GET, "VA 1 kfruit f0 t1\r\na\r\n"},
        {BE_GET, "VA 1 kfruit f0 c1\r\na\r\n"},
        {BE_SIZE, "HD kfruit c1\r\n"},
        {BE_FETCH, "VA 1 kfruit f123456789012345678901\r\nx\r\n"},
        {BE_FETCH, "VA 1 kfruit fred\r\nx\r\n"},
        {BE_FETCH, "VA 1 kfruit f0 c18446744073709551616\r\nx\r\n"},
        {BE_FETCH, "VA 1 f0\r\nx\r\n"},
        {BE_ADD, "DELETED\r\n"},
        {BE_APPEND, "EXISTS\r\n"},
        {BE_SET, "EN\r\n"},
        {BE_DELETE, "STORED\r\n"},
        {BE_DELETE, "TOUCHED\r\n"},
        {BE_TOUCH, "STORED\r\n"},
        {BE_TOUCH, "1\r\n"},
        {BE_DECR, "STORED\r\n"},
        {BE_GAT, "HD kfruit f0 c1\r\n"},
        {BE_DELETE, "VA 1\r\na\r\n"},
        {BE_SET, "STOREDX\r\n"},
        {BE_CAS, "DELETED\r\n"},
        {BE_GET, "EN kother\r\n"},
        {BE_GET, "EN junk\r\n"},
        {BE_FETCH, "EN kfruit f0\r\n"},
        {BE_GET, "VA 1 kfruit c1 t1 f4294967296\r\na\r\n"},
        {BE_INCR, "STORED\r\n"},
        {BE_INCR, "NOT_STORED\r\n"},
        {BE_INCR, "18446744073709551616\r\n"},
        {BE_INCR, "1 \r\n"},
        {BE_INCR, "-1\r\n"},
        {BE_APPEND, "12\r\n"},
        {BE_PREPEND, "EXISTS\r\n"},
        {BE_SIZE, "12\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct be_reply r;
        assert_int_equal(read_reply(cases[i].verb, cases[i].line, &r), -1);
    }
}

static bool fits(const struct be_line_form *form, const char *text)
{
    struct parsed p = {0};
    struct be_operation op = {.verb = BE_LINE, .form = *form};
    assert_int_equal(parse(text, &p), ASCII_PARSE_OK);
    return ascii_line_fits(&op, &p.reply);
}

static void lines_are_answered_as_their_verbs_are(void **state)
{
    (void)state;
    static const struct be_line_form set = {.like = BE_SET}, incr = {.like = BE_INCR},
                                     flush = {.like = BE_LINE};
    assert_true(fits(&set, "STORED\r\n") && fits(&set, "NOT_STORED\r\n"));
    assert_true(fits(&set, "SERVER_ERROR x\r\n") && fits(&set, "ERROR\r\n"));
    assert_false(fits(&set, "DELETED\r\n") || fits(&set, "OK\r\n") || fits(&set, "HD\r\n"));
    assert_false(fits(&set, "VA 1\r\na\r\n") || fits(&set, "5\r\n"));
    assert_true(fits(&incr, "5\r\n") && fits(&incr, "NOT_FOUND\r\n"));
    assert_false(fits(&incr, "STORED\r\n"));
    assert_true(fits(&flush, "OK\r\n"));
    assert_false(fits(&flush, "STORED\r\n"));
}

/* The form of a meta command with flags of these letters. */
static struct be_line_form meta_form(char meta, const char *letters)
{
    struct be_line_form form = {.meta = meta, .key = {"fruit", 5}, .opaque = {"42", 2}};
    for (; *letters != '\0'; letters++) {
        form.flags |= letter_bit(*letters);
        form.key_is_base64 = form.key_is_base64 || *letters == 'b';
    }
    return form;
}

static bool meta_fits(char meta, const char *letters, const char *text)
{
    struct be_line_form form = meta_form(meta, letters);
    return fits(&form, text);
}

static void meta_answers_name_what_was_asked(void **state)
{
    (void)state;
    struct be_line_form base64 = meta_form('g', "kb"), blank = meta_form('g', "kb"),
                        value = meta_form('g', "kbvf");
    base64.key = SLICE_LIT("ZnJ1aXQ=");
    blank.key = value.key = SLICE_LIT("aGFzIGJsYW5r");
    assert_true(meta_fits('g', "", "HD\r\n") && meta_fits('g', "", "CLIENT_ERROR x\r\n"));
    assert_false(meta_fits('g', "", "NF\r\n") || meta_fits('g', "", "STORED\r\n"));
    assert_false(meta_fits('g', "", "MN\r\n") || meta_fits('n', "", "HD\r\n"));
    assert_false(meta_fits('g', "", "HD kfruit\r\n") || meta_fits('g', "", "HD O42\r\n"));
    assert_true(meta_fits('g', "kvO", "VA 1 O42 kfruit\r\na\r\n"));
    assert_true(meta_fits('g', "kvO", "EN\r\n") && meta_fits('g', "kvO", "EN kfruit O42\r\n"));
    assert_false(meta_fits('g', "kO", "HD kfruit\r\n") || meta_fits('g', "kO", "HD O42\r\n"));
    assert_false(meta_fits('g', "kO", "HD kfruit O43\r\n"));
    assert_false(meta_fits('g', "kO", "HD kapple O42\r\n"));
    assert_false(meta_fits('g', "kO", "EN O41\r\n") || meta_fits('g', "", "EN kfruit\r\n"));
    assert_true(fits(&base64, "HD kZnJ1aXQ= b\r\n") && !fits(&base64, "HD kfruit b\r\n"));
    assert_true(fits(&base64, "HD kfruit\r\n")); /* it was stored as it is */
    assert_false(fits(&base64, "HD kYXBwbGU= b\r\n") || fits(&base64, "HD\r\n"));
    assert_true(fits(&value, "VA 0 khas blank f0 W\r\n\r\n") && fits(&blank, "HD khas blank\r\n"));
    assert_false(fits(&blank, "HD khas\r\n") || fits(&blank, "HD khas blanks\r\n"));
}

static void meta_answers_tell_what_was_asked(void **state)
{
    (void)state;
    assert_true(meta_fits('g', "vft", "VA 1 f0 t-1\r\na\r\n"));
    assert_true(meta_fits('g', "cfhlst", "HD f0 c2 s2 t-1 h1 l0 Z X\r\n"));
    assert_true(meta_fits('g', "TNt", "HD t30 W\r\n"));
    /* With a value where none was asked for, or without one. */
    assert_false(meta_fits('g', "v", "HD\r\n") || meta_fits('g', "", "VA 1\r\na\r\n"));
    assert_false(meta_fits('a', "v", "HD\r\n") || meta_fits('a', "", "VA 1\r\n5\r\n"));
    /* Without what was asked for, or with what was not. */
    assert_false(meta_fits('g', "vf", "VA 1\r\na\r\n") || meta_fits('g', "h", "HD\r\n"));
    assert_false(meta_fits('g', "", "HD f0\r\n") || meta_fits('g', "t", "HD t1 l0\r\n"));
    assert_false(meta_fits('g', "f", "HD fx\r\n") || meta_fits('g', "l", "HD lx\r\n"));
    assert_false(meta_fits('g', "c", "HD c18446744073709551616\r\n"));
    /* A miss has nothing to tell. */
    assert_true(meta_fits('g', "vf", "EN\r\n"));
    assert_false(meta_fits('g', "v", "EN junk\r\n") || meta_fits('g', "f", "EN f0\r\n"));
    assert_true(meta_fits('s', "c", "HD c1\r\n") && meta_fits('s', "", "EX\r\n"));
    assert_true(meta_fits('s', "v", "HD\r\n")); /* memcached takes it for nothing */
    assert_true(meta_fits('s', "cO", "NS c0 O42\r\n") && meta_fits('d', "k", "NF kfruit\r\n"));
    assert_false(meta_fits('s', "", "NS junk\r\n") || meta_fits('d', "", "NF junk\r\n"));
    assert_false(meta_fits('s', "", "VA 1\r\na\r\n") || meta_fits('s', "", "EN\r\n"));
    assert_true(meta_fits('a', "tcv", "VA 1 t-1 c8\r\n5\r\n") && meta_fits('a', "tc", "NF\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_in_both_characters),
        cmocka_unit_test(values_are_measured_not_searched),
        cmocka_unit_test(every_prefix_of_a_value_wants_more),
        cmocka_unit_test(what_no_memcached_says_is_garbage),
        cmocka_unit_test(stored_is_taken_the_short_way),
        cmocka_unit_test(hits_are_taken_the_short_way_wherever_the_bytes_end),
        cmocka_unit_test(answers_to_get_are_taken_in_pieces),
        cmocka_unit_test(what_no_get_is_answered_is_garbage),
        cmocka_unit_test(a_line_without_end_is_given_up),
        cmocka_unit_test(a_get_brings_everything),
        cmocka_unit_test(sizes_and_probes_have_no_value),
        cmocka_unit_test(every_word_of_change_is_known),
        cmocka_unit_test(an_incr_brings_the_number),
        cmocka_unit_test(errors_are_told_apart_for_any_verb),
        cmocka_unit_test(answers_to_other_requests_are_noticed),
        cmocka_unit_test(lines_are_answered_as_their_verbs_are),
        cmocka_unit_test(meta_answers_name_what_was_asked),
        cmocka_unit_test(meta_answers_tell_what_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
