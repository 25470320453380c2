/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/binary.h"

#define MAGIC_ANSWER_FRAMES 0x18

/* Of the datatype: the value is JSON, which is only a remark; any other bit changes its bytes. */
#define DATATYPE_JSON 0x01

/* The beginning of the year 1 as a second since 1970, in 32 bits: how servers written in Go may say
 * that a document has no expiry. As an expiry it would be that of one second of 2042. */
#define EXPIRES_IN_YEAR_1_S ((uint32_t)INT64_C(-62135596800))

static const char UNKNOWN_STATUS[] = "unknown status";

const char *binary_status_text(uint32_t code)
{
    switch (code) {
#define BINARY_STATUS_TEXT(code, name, text) \
    case (code): \
        return (text);
        BINARY_STATUS_TABLE(BINARY_STATUS_TEXT)
#undef BINARY_STATUS_TEXT
    default:
        return UNKNOWN_STATUS;
    }
}

bool binary_read_version(struct slice bytes, int64_t *epoch, int64_t *revision)
{
    if (bytes.len != BINARY_VERSION_BYTES) {
        return false;
    }
    *epoch = (int64_t)packet_u64(bytes.p);
    *revision = (int64_t)packet_u64(bytes.p + 8);
    return true;
}

/* What follows the first byte. */
static enum binary_result parse_rest(struct slice bytes, size_t body_max,
                                     struct binary_packet *packet)
{
    if (bytes.len < BINARY_HEADER_BYTES) {
        return BINARY_MORE;
    }
    const char *p = bytes.p;
    bool framed = (uint8_t)p[0] == MAGIC_ANSWER_FRAMES;
    size_t frames_len = framed ? (uint8_t)p[2] : 0;
    size_t key_len = framed ? (uint8_t)p[3] : packet_u16(p + 2);
    size_t extras_len = (uint8_t)p[4];
    size_t body_len = packet_u32(p + 8);
    size_t front = frames_len + extras_len + key_len;
    if (body_len > body_max || front > body_len) {
        return BINARY_GARBAGE;
    }
    packet->size = BINARY_HEADER_BYTES + body_len;
    if (bytes.len < packet->size) {
        return BINARY_MORE;
    }
    const char *body = p + BINARY_HEADER_BYTES + frames_len;
    packet->opcode = (uint8_t)p[1];
    packet->datatype = (uint8_t)p[5];
    packet->status = packet_u16(p + 6);
    packet->opaque = packet_u32(p + 12);
    packet->cas = packet_u64(p + 16);
    packet->extras = slice_make(body, extras_len);
    packet->key = slice_make(body + extras_len, key_len);
    packet->value = slice_make(body + extras_len + key_len, body_len - front);
    return BINARY_OK;
}

enum binary_result binary_parse(struct slice bytes, size_t body_max, struct binary_packet *packet)
{
    packet->size = 0;
    if (bytes.len > 0 && (uint8_t)bytes.p[0] != BINARY_MAGIC_ANSWER &&
        (uint8_t)bytes.p[0] != MAGIC_ANSWER_FRAMES) {
        return BINARY_GARBAGE;
    }
    return parse_rest(bytes, body_max, packet);
}

enum binary_result binary_parse_news(struct slice bytes, size_t body_max,
                                     struct binary_packet *packet)
{
    packet->size = 0;
    if (bytes.len > 0 && (uint8_t)bytes.p[0] != BINARY_NEWS) {
        return BINARY_GARBAGE;
    }
    return parse_rest(bytes, body_max, packet);
}

/* A JSON document with "manifest_uid":"1f" in it. */
static uint64_t read_manifest(struct slice json)
{
    static const char name[] = "\"manifest_uid\":\"";
    const char *found = json.len == 0 ? NULL : memmem(json.p, json.len, name, sizeof name - 1);
    uint64_t manifest = 0;
    if (found == NULL) {
        return 0;
    }
    for (found += sizeof name - 1; found < json.p + json.len && *found != '"'; found++) {
        int digit = *found >= '0' && *found <= '9'   ? *found - '0'
                    : *found >= 'a' && *found <= 'f' ? *found - 'a' + 10
                    : *found >= 'A' && *found <= 'F' ? *found - 'A' + 10
                                                     : -1;
        if (digit < 0 || manifest >> 60 != 0) {
            return 0;
        }
        manifest = manifest << 4 | (uint64_t)digit;
    }
    return manifest;
}

bool binary_read_collection(const struct binary_packet *packet, uint32_t *collection,
                            uint64_t *manifest)
{
    if (packet->status != BINARY_STATUS_SUCCESS) {
        *collection = 0;
        *manifest = read_manifest(packet->value);
        return true;
    }
    if (packet->extras.len != 12) {
        return false;
    }
    *manifest = packet_u64(packet->extras.p);
    *collection = packet_u32(packet->extras.p + 8);
    return *collection != 0;
}

/* --- what a packet means ---------------------------------------------------------------------- */

/* A refusal, which all verbs have in common. */
static void read_refusal(enum be_verb verb, uint16_t code, struct be_reply *reply)
{
    switch (code) {
    case BINARY_STATUS_TOO_LARGE:
        reply->status = BE_TOO_LARGE;
        return;
    case BINARY_STATUS_NO_MEMORY:
        reply->status = BE_NO_MEMORY;
        return;
    case BINARY_STATUS_SYNC_WRITE_AMBIGUOUS:
    case BINARY_STATUS_INTERNAL:
        reply->status = be_changes(verb) ? BE_LOST : BE_REFUSED;
        return;
    default: {
        /* What another status means for a change is not known. */
        bool lost = be_changes(verb) && binary_status_text(code) == UNKNOWN_STATUS;
        reply->status = lost ? BE_LOST : BE_REFUSED;
        return;
    }
    }
}

/* The words of memcached's ASCII protocol for the three ways in which an item can be in the way. */
static bool read_condition(enum be_verb verb, uint16_t code, struct be_reply *reply)
{
    bool missing = code == BINARY_STATUS_NOT_FOUND;
    switch (verb) {
    case BE_GET:
    case BE_SIZE:
    case BE_PROBE:
    case BE_TIME:
    case BE_FETCH:
    case BE_GAT:
        reply->status = BE_MISS;
        return missing;
    case BE_ADD:
        reply->status = BE_NOT_STORED;
        return code == BINARY_STATUS_EXISTS || code == BINARY_STATUS_NOT_STORED;
    case BE_REPLACE:
    case BE_APPEND:
    case BE_PREPEND:
        reply->status = code == BINARY_STATUS_EXISTS ? BE_EXISTS : BE_NOT_STORED;
        return missing || code == BINARY_STATUS_NOT_STORED || code == BINARY_STATUS_EXISTS;
    case BE_CAS:
    case BE_CAS_DELETE:
        reply->status = missing ? BE_NOT_FOUND : BE_EXISTS;
        return missing || code == BINARY_STATUS_EXISTS;
    case BE_INCR:
    case BE_DECR:
        reply->status = missing ? BE_NOT_FOUND : BE_EXISTS;
        return missing || code == BINARY_STATUS_EXISTS;
    case BE_TOUCH:
    case BE_DELETE:
        reply->status = BE_NOT_FOUND;
        return missing;
    default:
        return false;
    }
}

static bool read_value(enum be_verb verb, const struct binary_packet *packet,
                       struct be_reply *reply)
{
    if (packet->extras.len < 4 || (packet->datatype & ~DATATYPE_JSON) != 0) {
        return false;
    }
    reply->status = BE_HIT;
    reply->ttl_s = -1;
    reply->size_bytes = packet->value.len;
    if (verb != BE_SIZE && verb != BE_PROBE) {
        reply->flags = packet_u32(packet->extras.p);
        reply->has_value = true;
        reply->value = packet->value;
    }
    return true;
}

/* The answer to GET_META: deleted u32, flags u32, expiry u32, and more. */
static bool read_meta(const struct binary_packet *packet, int64_t now_s, struct be_reply *reply)
{
    if (packet->extras.len < 20) {
        return false;
    }
    uint32_t expires_s = packet_u32(packet->extras.p + 8);
    expires_s = expires_s == EXPIRES_IN_YEAR_1_S ? 0 : expires_s;
    if (packet_u32(packet->extras.p) != 0) {
        reply->status = BE_MISS;
        reply->cas = 0;
        reply->code = BINARY_STATUS_NOT_FOUND;
        return true;
    }
    reply->status = BE_HIT;
    /* The server removes it up to a second late: until then it has no second left. */
    reply->ttl_s = expires_s == 0 ? -1 : (int64_t)expires_s > now_s ? expires_s - now_s : 0;
    reply->expires_s = expires_s;
    return true;
}

static bool read_success(enum be_verb verb, const struct binary_packet *packet, int64_t now_s,
                         struct be_reply *reply)
{
    reply->cas = packet->cas;
    switch (verb) {
    case BE_GET:
    case BE_SIZE:
    case BE_PROBE:
    case BE_FETCH:
    case BE_GAT:
        return read_value(verb, packet, reply);
    case BE_TIME:
        return read_meta(packet, now_s, reply);
    case BE_INCR:
    case BE_DECR:
        if (packet->value.len != 8) {
            return false;
        }
        reply->number = packet_u64(packet->value.p);
        break;
    default:
        break;
    }
    reply->status = verb == BE_DELETE ? BE_DELETED : BE_STORED;
    return true;
}

static enum binary_result read_packet(enum be_verb verb, const struct binary_packet *packet,
                                      int64_t now_s, struct be_reply *reply)
{
    reply->code = packet->status;
    if (packet->status == BINARY_STATUS_SUCCESS) {
        return read_success(verb, packet, now_s, reply) ? BINARY_OK : BINARY_MISFIT;
    }
    if (!read_condition(verb, packet->status, reply)) {
        read_refusal(verb, packet->status, reply);
    }
    if (packet->status == BINARY_STATUS_NOT_MY_VBUCKET) {
        reply->has_value = packet->value.len > 0;
        reply->value = packet->value;
    }
    return BINARY_OK;
}

/* Servers that speak a part of the protocol only do not know GET_META, or answer it somehow. */
static bool tells_no_times(const struct be_operation *op, const struct binary_packet *meta)
{
    return op->time_optional && (meta->status == BINARY_STATUS_UNKNOWN_COMMAND ||
                                 meta->status == BINARY_STATUS_NOT_SUPPORTED ||
                                 (meta->status == BINARY_STATUS_SUCCESS && meta->extras.len < 20));
}

/* The second answer to BE_GET. Of a document that has gone in between, nothing is known. */
static enum binary_result add_time(const struct be_operation *op, const struct binary_packet *meta,
                                   int64_t now_s, struct be_reply *reply)
{
    struct be_reply time = {.status = BE_REFUSED};
    reply->no_times = tells_no_times(op, meta);
    if (reply->status != BE_HIT || reply->no_times) {
        return BINARY_OK;
    }
    if (read_packet(BE_TIME, meta, now_s, &time) != BINARY_OK) {
        return BINARY_MISFIT;
    }
    if (time.status == BE_HIT) {
        reply->ttl_s = time.ttl_s;
        reply->expires_s = time.expires_s;
    } else if (time.status != BE_MISS) {
        *reply = time;
    }
    return BINARY_OK;
}

/* An answer need not name the key; where it does, it is as the request had it. */
static bool is_its_key(const struct be_operation *op, struct slice key)
{
    char collection[BINARY_COLLECTION_MAX];
    struct slice front = slice_make(
        collection, op->collection == 0 ? 0 : binary_put_collection(collection, op->collection));
    return key.len == 0 ||
           (slice_equal(slice_take(&key, front.len < key.len ? front.len : key.len), front) &&
            slice_equal(key, op->key));
}

/* One packet of an answer, and whether it belongs to the request. */
static enum binary_result take_packet(const struct be_operation *op, uint8_t opcode,
                                      struct slice bytes, size_t value_max,
                                      struct binary_packet *packet)
{
    enum binary_result result = binary_parse(bytes, value_max + BINARY_BODY_REST, packet);
    if (result != BINARY_OK) {
        return result;
    }
    return packet->opcode == opcode && packet->opaque == op->opaque && is_its_key(op, packet->key)
               ? BINARY_OK
               : BINARY_MISFIT;
}

enum binary_result binary_decode(const struct be_operation *op, struct slice bytes,
                                 size_t value_max, int64_t now_s, struct be_reply *reply,
                                 size_t *size)
{
    struct binary_packet packet, meta;
    enum binary_result result = take_packet(op, binary_opcode(op->verb), bytes, value_max, &packet);
    *size = packet.size;
    if (result != BINARY_OK || op->verb != BE_GET || op->without_time) {
        reply->no_times = op->without_time;
        return result == BINARY_OK ? read_packet(op->verb, &packet, now_s, reply) : result;
    }
    (void)slice_take(&bytes, packet.size);
    result = take_packet(op, BINARY_GET_META, bytes, value_max, &meta);
    *size += result == BINARY_MORE && meta.size == 0 ? BINARY_HEADER_BYTES : meta.size;
    if (result != BINARY_OK || read_packet(BE_GET, &packet, now_s, reply) != BINARY_OK) {
        return result == BINARY_OK ? BINARY_MISFIT : result;
    }
    return add_time(op, &meta, now_s, reply);
}
