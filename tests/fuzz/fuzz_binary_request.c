/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what a client of the binary protocol sends: the same requests in whatever pieces
 * they arrive, with fields that a second reading of the header finds, too, and each of them as the
 * one line that a memcached is sent for it. The same bytes as lines that the proxy says: whole
 * packets.
 *
 *     byte 0    bit 0: small limits; bit 1: a statistic is asked for
 *     the rest  what arrives
 */
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "proto/client/binary_request.h"
#include "proto/server/ascii_format.h"
#include "proxy/client/binary.h"
#include "proxy/plain/operation.h"

static size_t number_at(struct slice input, size_t place, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n = n << 8 | (unsigned char)input.p[place + i];
    }
    return n;
}

static void check_result(struct parse_result p, struct slice input)
{
    CHECK(p.consumed <= input.len && p.status != PARSE_BINARY && p.stranger == STRANGER_NONE);
    switch (p.status) {
    case PARSE_MORE:
        CHECK(p.consumed == 0 && p.need > input.len && p.swallow == 0);
        break;
    case PARSE_ERROR:
        CHECK(p.consumed >= BINARY_HEADER_BYTES && (p.swallow == 0 || p.consumed == input.len));
        CHECK(p.consumed + p.swallow == BINARY_HEADER_BYTES + number_at(input, 8, 4));
        CHECK(p.reply.len > 2 && memcmp(p.reply.p + p.reply.len - 2, "\r\n", 2) == 0);
        break;
    default:
        CHECK(p.swallow == 0);
        break;
    }
}

static void check_fields(const struct request *r, struct slice used)
{
    size_t key_len = number_at(used, 2, 2), extras_len = number_at(used, 4, 1);
    CHECK(used.len == BINARY_HEADER_BYTES + number_at(used, 8, 4));
    CHECK(r->key.len == key_len && key_len <= KEY_BYTES_MAX && inside(r->key, used));
    CHECK(key_len == 0 || r->key.p == used.p + BINARY_HEADER_BYTES + extras_len);
    CHECK(r->binary.opcode == number_at(used, 1, 1) && r->binary.opaque == number_at(used, 12, 4));
    CHECK(r->cas == number_at(used, 16, 8) && !r->noreply && !r->quiet && !r->base64);
    CHECK(!r->has_data || (inside(r->data, used) &&
                           r->data.len == used.len - BINARY_HEADER_BYTES - key_len - extras_len));
    CHECK((r->verb == NULL) == binary_is_sasl(r->binary.opcode));
}

/* The key that the text parser has found, decoded. */
static bool same_key(const struct request *line, struct slice key)
{
    char decoded[KEY_BYTES_MAX];
    struct slice found = line->key;
    if (line->base64) {
        found = slice_make(decoded, key_decode_base64(line->key, decoded));
    }
    return slice_equal(found, key);
}

/* What a memcached is sent for it is one request, of that key and value, whatever bytes they have.
 */
static void check_line(const struct request *r)
{
    static const struct request_limits limits = {.max_line_bytes = 4096, .max_value_bytes = 4096};
    struct be_operation op = {.verb = BE_LINE};
    struct request again;
    op.key = r->key;
    op.value = r->has_data ? r->data : SLICE_NONE;
    operation_fill_binary(r, &op);
    CHECK(be_has_value(op.verb) == r->has_data);
    char *text = malloc(ASCII_LINE_MAX + op.value.len + 2);
    CHECK(text != NULL);
    size_t len = ascii_format(&op, text);
    CHECK(len <= ASCII_LINE_MAX && memchr(text, '\n', len) == text + len - 1);
    if (r->has_data) {
        len = (size_t)(packet_put(packet_put(text + len, op.value), SLICE_LIT("\r\n")) - text);
    }
    struct parse_result p = request_parse(slice_make(text, len), 0, &limits, &again);
    CHECK(p.consumed == len && p.swallow == 0);
    /* The proxy takes no such key in base64 from text clients, to whom it might be shown. */
    if (memchr(r->key.p, '\n', r->key.len) == NULL) {
        CHECK(p.status == PARSE_OK && same_key(&again, r->key));
        CHECK(request_is_meta(&again) && slice_equal(again.data, op.value));
    }
    free(text);
}

/* The bytes in a block of their own, so that the sanitizer sees the first byte read beyond them. */
static struct parse_result parse_copy(struct slice input, const struct request_limits *limits)
{
    struct request r;
    char *copy = malloc(input.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, input.p, input.len);
    struct slice moved = {copy + 1, input.len};
    struct parse_result p = binary_request_parse(moved, limits, &r);
    check_result(p, moved);
    if (p.status == PARSE_OK) {
        check_fields(&r, slice_make(moved.p, p.consumed));
        if (r.verb != NULL && r.verb->shape != SHAPE_PLAIN) {
            check_line(&r);
        }
    } else if (p.removes) {
        CHECK(r.verb->shape == SHAPE_STORE && inside(r.key, moved) && r.key.len > 0);
    }
    free(copy);
    return p;
}

/* Every prefix asks for more, or already says what the whole says. */
static void check_prefixes(struct slice input, const struct request_limits *limits,
                           struct parse_result whole)
{
    size_t step = input.len > 400 ? input.len / 200 : 1;
    for (size_t len = 0; len < input.len; len += step) {
        struct parse_result p = parse_copy(slice_make(input.p, len), limits);
        if (p.status == PARSE_MORE) {
            continue;
        }
        CHECK(p.status == whole.status && slice_equal(p.reply, whole.reply));
        CHECK(p.status == PARSE_CLOSE || p.consumed + p.swallow == whole.consumed + whole.swallow);
    }
}

/* What the proxy says in lines becomes packets, whatever it is. */
static void check_translation(struct slice bytes, bool is_stat)
{
    const struct binary_call call = {.opcode = is_stat ? BINARY_STAT : BINARY_GETK, .opaque = 7};
    struct chain packets;
    char *text = malloc(bytes.len + 2);
    CHECK(text != NULL);
    (void)packet_put(packet_put(text, bytes), SLICE_LIT("\r\n"));
    chain_init(&packets);
    binary_translate(&call, slice_make(text, bytes.len + 2), &packets);
    size_t len = packets.bytes;
    char *all = malloc(len + 1), *to = all;
    struct iovec piece;
    CHECK(all != NULL);
    while (chain_iov(&packets, &piece, 1) == 1) {
        to = packet_put(to, slice_make(piece.iov_base, piece.iov_len));
        chain_consume(&packets, piece.iov_len);
    }
    for (struct slice rest = slice_make(all, len); rest.len > 0;) {
        CHECK(rest.len >= BINARY_HEADER_BYTES && (uint8_t)*rest.p == BINARY_MAGIC_ANSWER);
        size_t size = BINARY_HEADER_BYTES + number_at(rest, 8, 4);
        CHECK(size <= rest.len && number_at(rest, 12, 4) == 7);
        CHECK(number_at(rest, 2, 2) + number_at(rest, 4, 1) <= size - BINARY_HEADER_BYTES);
        (void)slice_take(&rest, size);
    }
    free(all);
    free(text);
    chain_fini(&packets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct request_limits choices[] = {{.max_value_bytes = 1000},
                                                    {.max_value_bytes = 10}};
    if (size == 0) {
        return 0;
    }
    const struct request_limits *limits = &choices[data[0] & 1];
    struct slice input = {(const char *)data + 1, size - 1};
    check_translation(input, (data[0] & 2) != 0);
    while (input.len > 0) {
        struct parse_result whole = parse_copy(input, limits);
        check_prefixes(input, limits, whole);
        if (whole.status != PARSE_OK && whole.status != PARSE_ERROR) {
            break;
        }
        slice_take(&input, whole.consumed);
    }
    return 0;
}
