/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/binary.h"

#define MAGIC_REQUEST_FRAMES 0x08

/* The id of the frame that says how durable a change must be, and the length of its data: the level
 * alone, or with milliseconds. */
#define FRAME_DURABILITY 0x11
#define FRAME_DURABILITY_TIMED 0x13

/* In the past for every server: 30 days and a second since 1970. A relative time above 30 days is
 * an absolute one. */
#define EXPTIME_OVER UINT32_C(2592001)
/* GET_META in its second version, whose answer has the datatype as well: Couchbase takes it and the
 * one without a number, other servers of its protocol this one only. */
#define META_VERSION 2

void binary_put_version(char out[BINARY_VERSION_BYTES], int64_t epoch, int64_t revision)
{
    (void)packet_put_u64(packet_put_u64(out, (uint64_t)epoch), (uint64_t)revision);
}

/* The parts of a request behind its header. */
struct body {
    char frames[4];
    char extras[20];
    uint8_t frames_len, extras_len;
    char collection[BINARY_COLLECTION_MAX];
    uint8_t collection_len;
    struct slice key;
    size_t value_len;
};

size_t binary_put_collection(char out[BINARY_COLLECTION_MAX], uint32_t collection)
{
    char *to = out;
    while (collection >= 0x80) {
        *to++ = (char)(0x80 | (collection & 0x7f));
        collection >>= 7;
    }
    *to++ = (char)collection;
    return (size_t)(to - out);
}

/* Header, frames, extras and key. */
static char *put_front(char *to, enum binary_opcode opcode, const struct body *body,
                       uint16_t vbucket, uint32_t opaque, uint64_t cas)
{
    size_t key_len = body->collection_len + body->key.len;
    size_t front = body->frames_len + (size_t)body->extras_len + key_len;
    if (body->frames_len > 0) {
        *to++ = MAGIC_REQUEST_FRAMES;
        *to++ = (char)opcode;
        *to++ = (char)body->frames_len;
        *to++ = (char)key_len;
    } else {
        *to++ = (char)BINARY_MAGIC_REQUEST;
        *to++ = (char)opcode;
        to = packet_put_u16(to, (uint16_t)key_len);
    }
    *to++ = (char)body->extras_len;
    *to++ = 0; /* the datatype: plain bytes */
    to = packet_put_u16(to, vbucket);
    to = packet_put_u32(to, (uint32_t)(front + body->value_len));
    to = packet_put_u32(to, opaque);
    to = packet_put_u64(to, cas);
    to = packet_put(to, slice_make(body->frames, body->frames_len));
    to = packet_put(to, slice_make(body->extras, body->extras_len));
    to = packet_put(to, slice_make(body->collection, body->collection_len));
    return packet_put(to, body->key);
}

size_t binary_put_request(char *out, enum binary_opcode opcode, uint32_t opaque,
                          struct slice extras, struct slice key, struct slice value)
{
    struct body body = {.extras_len = (uint8_t)extras.len, .key = key, .value_len = value.len};
    CHECK(extras.len <= sizeof body.extras && key.len <= UINT16_MAX);
    packet_put(body.extras, extras);
    return (size_t)(packet_put(put_front(out, opcode, &body, 0, opaque, 0), value) - out);
}

static uint32_t exptime_of(const struct be_operation *op)
{
    return op->exptime < 0 ? EXPTIME_OVER : (uint32_t)op->exptime;
}

static const uint8_t opcodes[] = {
    [BE_GET] = BINARY_GET,           [BE_SIZE] = BINARY_GET,       [BE_PROBE] = BINARY_GET,
    [BE_TIME] = BINARY_GET_META,     [BE_FETCH] = BINARY_GET,      [BE_ADD] = BINARY_ADD,
    [BE_REPLACE] = BINARY_REPLACE,   [BE_SET] = BINARY_SET,        [BE_APPEND] = BINARY_APPEND,
    [BE_PREPEND] = BINARY_PREPEND,   [BE_INCR] = BINARY_INCREMENT, [BE_CAS] = BINARY_SET,
    [BE_CAS_DELETE] = BINARY_DELETE, [BE_DELETE] = BINARY_DELETE,  [BE_DECR] = BINARY_DECREMENT,
    [BE_TOUCH] = BINARY_TOUCH,       [BE_GAT] = BINARY_GAT,
};

uint8_t binary_opcode(enum be_verb verb)
{
    return opcodes[verb];
}

static void fill_extras(struct body *body, const struct be_operation *op)
{
    char *to = body->extras;
    switch (opcodes[op->verb]) {
    case BINARY_SET:
    case BINARY_ADD:
    case BINARY_REPLACE:
        to = packet_put_u32(packet_put_u32(to, op->flags), exptime_of(op));
        break;
    case BINARY_INCREMENT:
    case BINARY_DECREMENT:
        to = packet_put_u64(packet_put_u64(to, op->delta), op->creates ? op->initial : 0);
        to = packet_put_u32(to, op->creates ? exptime_of(op) : BINARY_DO_NOT_CREATE);
        break;
    case BINARY_TOUCH:
    case BINARY_GAT:
        to = packet_put_u32(to, exptime_of(op));
        break;
    case BINARY_GET_META:
        *to++ = META_VERSION;
        break;
    default:
        break;
    }
    body->extras_len = (uint8_t)(to - body->extras);
}

size_t binary_format(const struct be_operation *op, char out[BINARY_FRONT_MAX])
{
    bool touches = op->verb == BE_TOUCH || op->verb == BE_GAT;
    bool conditional = be_is_conditional(op->verb) || op->with_cas;
    uint64_t cas = conditional ? be_condition(op) : 0;
    struct body body = {.key = op->key};
    CHECK(op->verb < BE_LINE && op->key.len > 0 && op->key.len <= KEY_BYTES_MAX);
    if (op->collection != 0) {
        CHECK(op->key.len <= COLLECTION_KEY_BYTES_MAX);
        body.collection_len = (uint8_t)binary_put_collection(body.collection, op->collection);
    }
    /* No server takes it with a new exptime alone. */
    if (op->durability != BE_DURABILITY_NONE && be_changes(op->verb) && !touches) {
        bool timed = op->durability_ms != 0;
        body.frames[0] = timed ? FRAME_DURABILITY_TIMED : FRAME_DURABILITY;
        body.frames[1] = (char)op->durability;
        packet_put_u16(body.frames + 2, op->durability_ms);
        body.frames_len = timed ? 4 : 2;
    }
    fill_extras(&body, op);
    body.value_len = be_has_value(op->verb) ? op->value.len : 0;
    char *to = put_front(out, opcodes[op->verb], &body, op->vbucket, op->opaque, cas);
    if (op->verb == BE_GET && !op->without_time) {
        body.extras[0] = META_VERSION;
        body.extras_len = 1;
        to = put_front(to, BINARY_GET_META, &body, op->vbucket, op->opaque, 0);
    }
    return (size_t)(to - out);
}
