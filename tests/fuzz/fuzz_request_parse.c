/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: any bytes as a client's requests. Checks that every answer keeps to the
 * contract, and that it does not depend on the pieces in which the bytes arrive.
 *
 *     clang -std=gnu11 -g -O1 -D_GNU_SOURCE -Isrc -fsanitize=fuzzer,address,undefined \
 *         tests/fuzz/fuzz_request_parse.c src/proto/verb.c src/proto/request_*.c src/base/slice.c
 * src/base/check.c
 */
#include <stdlib.h>

#include "base/check.h"
#include "proto/backend.h"
#include "proto/request_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool inside(struct slice s, struct slice input)
{
    return s.len == 0 || (s.p >= input.p && s.p + s.len <= input.p + input.len);
}

static void check_request(const struct request *r, struct slice input, size_t consumed)
{
    struct slice used = {input.p, consumed};
    CHECK(consumed > 0 && consumed <= input.len && input.p[consumed - 1] == '\n');
    CHECK(inside(r->line, used) && inside(r->key, r->line) && inside(r->args, r->line));
    CHECK(inside(r->exptime_text, r->line) && inside(r->data, used) && inside(r->data_crlf, used));
    CHECK(slice_equal(slice_take(&(struct slice){r->line.p, r->line.len}, r->verb->text.len),
                      r->verb->text));
    CHECK(r->key.len <= KEY_BYTES_MAX);

    struct slice args = r->args, token;
    size_t count = 0;
    while (token_next(&args, &token)) {
        CHECK(token.len > 0 && inside(token, r->args) && memchr(token.p, ' ', token.len) == NULL);
        count++;
    }
    CHECK(count == r->arg_count);

    CHECK(!r->has_data || r->data_crlf.len == r->data.len + 2);
    CHECK(!r->has_data || memcmp(r->data.p + r->data.len, "\r\n", 2) == 0);
    char decoded[KEY_BYTES_MAX];
    CHECK(!r->base64 || key_decode_base64(r->key, decoded) > 0);
}

static void check_result(struct parse_result p, struct slice input)
{
    CHECK(p.consumed <= input.len);
    switch (p.status) {
    case PARSE_MORE:
        CHECK(p.consumed == 0 && (p.need == 0 || p.need > input.len));
        CHECK((p.need == 0) == (memchr(input.p, '\n', input.len) == NULL));
        break;
    case PARSE_OK:
        CHECK(p.swallow == 0);
        break;
    case PARSE_ERROR:
        CHECK(p.consumed > 0 && (p.swallow == 0 || p.consumed == input.len));
        CHECK(p.reply.len == 0 || p.reply.p[p.reply.len - 1] == '\n');
        break;
    case PARSE_CLOSE:
        break;
    }
}

/* The bytes in a block of their own, so that the sanitizer sees the first byte read beyond them. */
static struct parse_result parse_copy(struct slice input, size_t scanned,
                                      const struct request_limits *limits)
{
    char *copy = malloc(input.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, input.p, input.len);
    struct slice moved = {copy + 1, input.len};
    struct request r;
    struct parse_result p = request_parse(moved, scanned, limits, &r);
    check_result(p, moved);
    if (p.status == PARSE_OK) {
        check_request(&r, moved, p.consumed);
    }
    free(copy);
    return p;
}

/* Every prefix asks for more, or already says what the whole says. */
static void check_prefixes(struct slice input, const struct request_limits *limits,
                           struct parse_result whole)
{
    size_t step = input.len > 400 ? input.len / 200 : 1;
    size_t scanned = 0;
    for (size_t len = 0; len < input.len; len += step) {
        struct parse_result p = parse_copy(slice_make(input.p, len), scanned, limits);
        if (p.status == PARSE_MORE) {
            /* A data block that ends in LF alone is refused one byte earlier than a good one would
             * be taken. */
            CHECK(whole.status == PARSE_MORE || whole.status == PARSE_CLOSE ||
                  p.need <= whole.consumed + whole.swallow + 1);
            scanned = p.need == 0 ? len : 0;
            continue;
        }
        CHECK(p.status == whole.status && slice_equal(p.reply, whole.reply));
        CHECK(p.status == PARSE_CLOSE || p.consumed + p.swallow == whole.consumed + whole.swallow);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct request_limits choices[] = {
        {.max_line_bytes = 4096, .max_value_bytes = 1000},
        {.max_line_bytes = 40, .max_value_bytes = 10}};
    if (size == 0) {
        return 0;
    }
    const struct request_limits *limits = &choices[data[0] & 1];
    struct slice input = {(const char *)data + 1, size - 1};
    while (input.len > 0) {
        struct parse_result whole = parse_copy(input, 0, limits);
        check_prefixes(input, limits, whole);
        if (whole.status != PARSE_OK && whole.status != PARSE_ERROR) {
            break;
        }
        slice_take(&input, whole.consumed);
    }
    return 0;
}
