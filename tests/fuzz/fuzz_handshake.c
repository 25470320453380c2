/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what a node of Couchbase says to a connection that logs in: the handshake ends, or
 * waits for more, with requests that are whole and errors that can be printed.
 *
 *     byte 0    bit 0: PLAIN is allowed; bit 1: durability is wanted; bit 2: maps come over HTTP
 *     the rest  what arrives, byte by byte
 *
 * User, password and nonce are those of RFC 7677's example.
 */
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "pool/couchbase/wire_couchbase.h"
#include "proto/server/binary.h"
#include "proto/server/cluster_map.h"

static void check_printable(const char *text, size_t cap)
{
    size_t len = strnlen(text, cap);
    CHECK(len < cap);
    for (size_t i = 0; i < len; i++) {
        CHECK(text[i] >= ' ' && text[i] <= '~');
    }
}

static size_t length_at(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
}

/* What is sent is requests, one behind the other. */
static void check_sent(const struct handshake_step *step)
{
    struct slice rest = slice_make(step->send, step->send_len);
    CHECK(step->send_len <= sizeof step->send);
    while (rest.len > 0) {
        CHECK(rest.len >= BINARY_HEADER_BYTES && (uint8_t)rest.p[0] == 0x80);
        size_t body = length_at(rest.p + 8);
        CHECK(body <= rest.len - BINARY_HEADER_BYTES);
        (void)slice_take(&rest, BINARY_HEADER_BYTES + body);
    }
}

/* One step with the bytes in a block of their own. Returns how many of them it has taken. */
static size_t take_step(struct handshake *hs, struct handshake_step *step, struct slice bytes,
                        enum handshake_result *result)
{
    char *copy = malloc(bytes.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, bytes.p == NULL ? "" : bytes.p, bytes.len);
    struct slice moved = {copy + 1, bytes.len};
    step->in = moved;
    *result = wire_couchbase.handshake(hs, step);
    size_t taken = bytes.len - step->in.len;
    CHECK(step->in.len <= bytes.len && step->in.p == moved.p + taken);
    check_sent(step);
    check_printable(hs->version, sizeof hs->version);
    if (*result == HANDSHAKE_REFUSED) {
        CHECK(step->error[0] != '\0');
        check_printable(step->error, sizeof step->error);
    } else if (*result == HANDSHAKE_DONE) {
        CHECK(step->map.len == 0 ||
              (step->map.p >= moved.p && step->map.p + step->map.len <= moved.p + taken));
        CHECK(step->map.len > 0);
    } else {
        CHECK(step->need == 0 || step->need > step->in.len);
        CHECK(step->need <= BINARY_HEADER_BYTES + CLUSTER_MAP_BYTES_MAX);
        check_printable(hs->waits_for, 64);
    }
    free(copy);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    struct scram_cache cache = {0};
    uint8_t options = input_byte(&in);
    struct wire_login login = {.bucket = SLICE_LIT("lists"),
                               .user = SLICE_LIT("user"),
                               .password = SLICE_LIT("pencil"),
                               .plain = (options & 1) != 0,
                               .durable = (options & 2) != 0,
                               .collection =
                                   (options & 8) != 0 ? SLICE_LIT("shop.carts") : SLICE_NONE,
                               .cache = &cache};
    struct handshake hs = {.login = &login, .nonce = "rOprNGfwEbeRWgbNEkqO"};
    struct handshake_step step;
    enum handshake_result result;
    size_t from = 0, to = 0;
    CHECK(take_step(&hs, &step, SLICE_NONE, &result) == 0 && result == HANDSHAKE_MORE);
    while (result == HANDSHAKE_MORE && to < in.rest.len) {
        to++;
        if (step.need <= to - from) {
            from += take_step(&hs, &step, slice_make(in.rest.p + from, to - from), &result);
        }
    }
    return 0;
}
