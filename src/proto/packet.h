/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of memcached's binary protocol, which clients and servers of Couchbase speak alike:
 *
 *     request  80  opcode  key u16  extras  datatype  vbucket  body  opaque  cas
 *     answer   81  opcode  key u16  extras  datatype  status   body  opaque  cas
 *
 * These are the 24 bytes of the header; key, extras and body are lengths. The body follows: extras,
 * key, value.
 */
#ifndef PROTO_PACKET_H
#define PROTO_PACKET_H

#include <stdint.h>

#include "base/slice.h"

#define BINARY_HEADER_BYTES ((size_t)24)
/* The first byte. */
#define BINARY_MAGIC_REQUEST 0x80
#define BINARY_MAGIC_ANSWER 0x81
/* With this time to live, a number that is missing is not made. */
#define BINARY_DO_NOT_CREATE UINT32_MAX

/* Those that end in Q are quiet. */
enum binary_opcode {
    BINARY_GET = 0x00,
    BINARY_SET = 0x01,
    BINARY_ADD = 0x02,
    BINARY_REPLACE = 0x03,
    BINARY_DELETE = 0x04,
    BINARY_INCREMENT = 0x05,
    BINARY_DECREMENT = 0x06,
    BINARY_QUIT = 0x07,
    BINARY_FLUSH = 0x08,
    BINARY_GETQ = 0x09,
    BINARY_NOOP = 0x0a,
    BINARY_VERSION = 0x0b,
    BINARY_GETK = 0x0c,
    BINARY_GETKQ = 0x0d,
    BINARY_APPEND = 0x0e,
    BINARY_PREPEND = 0x0f,
    BINARY_STAT = 0x10,
    BINARY_SETQ = 0x11,
    BINARY_ADDQ = 0x12,
    BINARY_REPLACEQ = 0x13,
    BINARY_DELETEQ = 0x14,
    BINARY_INCREMENTQ = 0x15,
    BINARY_DECREMENTQ = 0x16,
    BINARY_QUITQ = 0x17,
    BINARY_FLUSHQ = 0x18,
    BINARY_APPENDQ = 0x19,
    BINARY_PREPENDQ = 0x1a,
    BINARY_TOUCH = 0x1c,
    BINARY_GAT = 0x1d,
    BINARY_GATQ = 0x1e,
    BINARY_HELLO = 0x1f,
    BINARY_SASL_LIST = 0x20,
    BINARY_SASL_AUTH = 0x21,
    BINARY_SASL_STEP = 0x22,
    BINARY_GATK = 0x23,
    BINARY_GATKQ = 0x24,
    BINARY_SELECT_BUCKET = 0x89,
    BINARY_GET_META = 0xa0,
    BINARY_GET_CLUSTER_CONFIG = 0xb5,
    BINARY_GET_COLLECTION_ID = 0xbb,
    BINARY_GET_ERROR_MAP = 0xfe,
};

/* BINARY_STATUS(code, name, its text in an error) */
#define BINARY_STATUS_TABLE(STATUS) \
    STATUS(0x00, SUCCESS, "success") \
    STATUS(0x01, NOT_FOUND, "not found") \
    STATUS(0x02, EXISTS, "exists") \
    STATUS(0x03, TOO_LARGE, "value too large") \
    STATUS(0x04, INVALID, "invalid arguments") \
    STATUS(0x05, NOT_STORED, "not stored") \
    STATUS(0x06, NOT_A_NUMBER, "the value is not a number") \
    STATUS(0x07, NOT_MY_VBUCKET, "another node has this key") \
    STATUS(0x08, NO_BUCKET, "no bucket is selected") \
    STATUS(0x09, LOCKED, "the document is locked") \
    STATUS(0x0c, THROTTLED, "the bucket has used up its share for now") \
    STATUS(0x0d, CONFIG_ONLY, "this node serves no documents yet") \
    STATUS(0x1f, AUTH_STALE, "the login has expired") \
    STATUS(0x20, AUTH_ERROR, "the login is refused") \
    STATUS(0x21, AUTH_CONTINUE, "the login is not complete") \
    STATUS(0x22, OUT_OF_RANGE, "out of range") \
    STATUS(0x23, ROLLBACK, "rollback") \
    STATUS(0x24, NO_ACCESS, "the user has no access") \
    STATUS(0x25, NOT_INITIALIZED, "the node is not initialized") \
    STATUS(0x26, NO_ENCRYPTION_KEY, "the node does not have the encryption key") \
    STATUS(0x27, CHECKSUM, "a checksum does not match") \
    STATUS(0x30, RATE_INGRESS, "rate limit of data sent") \
    STATUS(0x31, RATE_EGRESS, "rate limit of data received") \
    STATUS(0x32, RATE_CONNECTIONS, "limit of connections") \
    STATUS(0x33, RATE_REQUESTS, "rate limit of requests") \
    STATUS(0x34, SCOPE_FULL, "the scope is as large as it may be: it takes no more data") \
    STATUS(0x35, BUCKET_FULL, "the bucket is as large as it may be: it takes no more data") \
    STATUS(0x36, RESIDENT_RATIO, \
           "too little of the bucket fits into memory: it takes no more data") \
    STATUS(0x37, NODE_FULL, "a node has as much of the bucket as it may: it takes no more data") \
    STATUS(0x38, DISK_FULL, "too little room on a node's disk: the bucket takes no more data") \
    STATUS(0x50, PAUSED, "the bucket is paused") \
    STATUS(0x51, CANCELLED, "cancelled by the server") \
    STATUS(0x80, UNKNOWN_FRAME, "the server does not know a frame of this request") \
    STATUS(0x81, UNKNOWN_COMMAND, "the server does not know this request") \
    STATUS(0x82, NO_MEMORY, "out of memory") \
    STATUS(0x83, NOT_SUPPORTED, "the server does not support this request") \
    STATUS(0x84, INTERNAL, "internal error") \
    STATUS(0x85, BUSY, "busy") \
    STATUS(0x86, TEMPORARY, "temporary failure") \
    STATUS(0x88, UNKNOWN_COLLECTION, "the collection is not there") \
    STATUS(0x89, NO_MANIFEST, "the node knows no collections yet") \
    STATUS(0x8c, UNKNOWN_SCOPE, "the scope is not there") \
    STATUS(0xa0, DURABILITY_LEVEL, "the bucket has no such durability") \
    STATUS(0xa1, DURABILITY_IMPOSSIBLE, \
           "too few nodes for a durable change: add some, or lower the bucket's replicas") \
    STATUS(0xa2, SYNC_WRITE_IN_PROGRESS, "another durable write of this key is under way") \
    STATUS(0xa3, SYNC_WRITE_AMBIGUOUS, "the durable write was not confirmed") \
    STATUS(0xa4, SYNC_WRITE_RECOMMIT, "an earlier durable write of this key is being confirmed")

/* Of an answer; be_reply.code. */
enum binary_status {
#define BINARY_STATUS_ENUM(code, name, text) BINARY_STATUS_##name = (code),
    BINARY_STATUS_TABLE(BINARY_STATUS_ENUM)
#undef BINARY_STATUS_ENUM
};

static inline char *packet_put(char *to, struct slice s)
{
    if (s.len > 0) {
        memcpy(to, s.p, s.len);
    }
    return to + s.len;
}

static inline char *packet_put_u16(char *to, uint16_t n)
{
    to[0] = (char)(n >> 8);
    to[1] = (char)n;
    return to + 2;
}

static inline char *packet_put_u32(char *to, uint32_t n)
{
    return packet_put_u16(packet_put_u16(to, (uint16_t)(n >> 16)), (uint16_t)n);
}

static inline char *packet_put_u64(char *to, uint64_t n)
{
    return packet_put_u32(packet_put_u32(to, (uint32_t)(n >> 32)), (uint32_t)n);
}

static inline uint16_t packet_u16(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t packet_u32(const char *p)
{
    return (uint32_t)packet_u16(p) << 16 | packet_u16(p + 2);
}

static inline uint64_t packet_u64(const char *p)
{
    return (uint64_t)packet_u32(p) << 32 | packet_u32(p + 4);
}

#endif
