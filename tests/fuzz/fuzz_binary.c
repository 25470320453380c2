/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what a server of the binary protocol answers: the same reply in whatever pieces they
 * arrive, with a meaning that the verb can have, or none.
 *
 *     byte 0    the verb
 *     byte 1    bit 0: a small limit on values
 *     the rest  what arrives; the request's opaque is 42
 */
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "proto/server/binary.h"

#define NOW_S 1800000000
#define VERBS BE_LINE

/* May a server give that answer to that verb? */
static bool answers(enum be_verb verb, enum be_status status)
{
    bool reads = verb < BE_ADD || verb == BE_GAT;
    bool compares = be_is_conditional(verb);
    bool counts = verb == BE_INCR || verb == BE_DECR;
    switch (status) {
    case BE_HIT:
    case BE_MISS:
        return reads;
    case BE_STORED:
        return !reads && verb != BE_DELETE;
    case BE_NOT_STORED:
        return verb == BE_ADD || verb == BE_REPLACE || verb == BE_APPEND || verb == BE_PREPEND;
    case BE_EXISTS:
        /* The others with a CAS number. */
        return compares || counts || verb == BE_REPLACE || verb == BE_APPEND || verb == BE_PREPEND;
    case BE_NOT_FOUND:
        return compares || counts || verb == BE_DELETE || verb == BE_TOUCH;
    case BE_DELETED:
        return verb == BE_DELETE;
    case BE_NO_MEMORY:
    case BE_TOO_LARGE:
    case BE_REFUSED:
        return true;
    case BE_LOST:
        return be_changes(verb);
    case BE_DOWN:
    case BE_ANSWERED:
        return false;
    }
    return false;
}

static void check_reply(enum be_verb verb, const struct be_reply *reply, struct slice used)
{
    CHECK(answers(verb, reply->status) && inside(reply->value, used));
    CHECK(reply->has_value || reply->value.len == 0);
    CHECK(reply->ttl_s >= -1);
    CHECK(binary_status_text(reply->code) != NULL);
    if (reply->has_value) {
        CHECK(reply->status == BE_HIT || reply->code == BINARY_STATUS_NOT_MY_VBUCKET);
    }
    if (reply->status == BE_HIT || reply->status == BE_STORED || reply->status == BE_DELETED) {
        CHECK(reply->code == BINARY_STATUS_SUCCESS);
    } else {
        CHECK(reply->code != BINARY_STATUS_SUCCESS && reply->number == 0);
    }
}

/* The bytes in a block of their own, so that the sanitizer sees the first byte read beyond them. */
static enum binary_result decode_copy(const struct be_operation *op, struct slice bytes,
                                      size_t value_max, size_t *size)
{
    struct be_reply reply = {0};
    char *copy = malloc(bytes.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, bytes.p, bytes.len);
    struct slice moved = {copy + 1, bytes.len};
    enum binary_result result = binary_decode(op, moved, value_max, NOW_S, &reply, size);
    if (result == BINARY_OK) {
        CHECK(*size >= BINARY_HEADER_BYTES && *size <= bytes.len);
        check_reply(op->verb, &reply, slice_make(moved.p, *size));
    } else if (result == BINARY_MORE) {
        CHECK(*size == 0 || *size > bytes.len);
        CHECK(*size <= 2 * (BINARY_HEADER_BYTES + value_max + BINARY_BODY_REST));
    }
    free(copy);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    struct be_operation op = {.verb = (enum be_verb)input_below(&in, VERBS), .opaque = 42};
    uint8_t options = input_byte(&in);
    size_t value_max = (options & 1) != 0 ? 16 : 1 << 20;
    op.key = SLICE_LIT("k");
    op.collection = (options & 2) != 0 ? 0x555 : 0;
    struct slice bytes = in.rest;
    while (bytes.len > 0) {
        size_t whole_size, part_size;
        enum binary_result whole = decode_copy(&op, bytes, value_max, &whole_size);
        size_t step = bytes.len > 200 ? bytes.len / 100 : 1;
        for (size_t len = 0; len < bytes.len; len += step) {
            enum binary_result part =
                decode_copy(&op, slice_make(bytes.p, len), value_max, &part_size);
            CHECK(part == BINARY_MORE || part == whole);
            CHECK(part != BINARY_OK || part_size == whole_size);
            CHECK(part != BINARY_MORE || whole != BINARY_OK || part_size <= whole_size);
        }
        if (whole != BINARY_OK) {
            break;
        }
        (void)slice_take(&bytes, whole_size);
    }
    return 0;
}
