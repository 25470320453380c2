/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

const struct request_limits test_limits = {.max_line_bytes = 8192, .max_value_bytes = 1000};

struct parse_result parse_input(struct slice input, struct request *out)
{
    return request_parse(input, 0, &test_limits, out);
}

struct request take_request(const char *input)
{
    struct request r;
    struct parse_result p = parse_input(slice_of(input), &r);
    assert_int_equal(p.status, PARSE_OK);
    assert_int_equal(p.consumed, strlen(input));
    assert_int_equal(p.swallow, 0);
    return r;
}

void assert_slice(struct slice s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.p, text, s.len);
}

void assert_refusal(const struct refusal *expected)
{
    struct request r;
    struct parse_result p = parse_input(expected->input, &r);
    if (p.status != expected->status || !slice_equal(p.reply, slice_of(expected->reply))) {
        print_error("%.*s -> %d %.*s", SLICE_ARGS(expected->input), (int)p.status,
                    SLICE_ARGS(p.reply));
    }
    assert_int_equal(p.status, expected->status);
    assert_slice(p.reply, expected->reply);
    if (p.status == PARSE_ERROR) {
        assert_int_equal(p.consumed, expected->input.len);
        assert_int_equal(p.swallow, expected->block);
    }
}

struct slice long_line(const char *head, const char *word, size_t bytes, const char *tail)
{
    static char line[20000];
    size_t len = strlen(head);
    memcpy(line, head, len);
    while (len < bytes) {
        line[len] = word[(len - strlen(head)) % strlen(word)];
        len++;
    }
    memcpy(line + len, tail, strlen(tail));
    return slice_make(line, len + strlen(tail));
}
