/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary protocol of memcached and Couchbase, as pure functions: operations as packets, and
 * what the packets of an answer mean.
 *
 *     request  80  opcode  key u16           extras  00        vbucket  body  opaque  cas
 *              08  opcode  frames u8 key u8  ... with frames
 *     answer   81  opcode  key u16           extras  datatype  status   body  opaque  cas
 *              18  opcode  frames u8 key u8  ... with frames
 *
 * These are the 24 bytes of the header; key, extras, frames and body are lengths. The body follows:
 * frames, extras, key, value.
 *
 * Every operation is one packet and draws one, with one exception: Couchbase tells a time to live
 * by GET_META only, so BE_GET is two packets, GET and GET_META, and their two answers are one. The
 * document may change in between: then the time is that of the later state. No harm is done by it:
 * a CAS of what was read fails.
 */
#ifndef PROTO_SERVER_BINARY_H
#define PROTO_SERVER_BINARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/slice.h"
#include "proto/packet.h"
#include "proto/server/backend.h"

/* Room for the longest front of an operation: BE_GET. */
#define BINARY_FRONT_MAX \
    (2 * (BINARY_HEADER_BYTES + BINARY_COLLECTION_MAX + COLLECTION_KEY_BYTES_MAX) + 1)
/* A collection's id in front of a key: seven bits per byte, the low ones first, and another bit
 * where more follow. */
#define BINARY_COLLECTION_MAX ((size_t)5)
/* What a body may hold beside a value: frames, extras, a key. */
#define BINARY_BODY_REST ((size_t)1024)

/* What the number means, in words; lives for ever. "unknown status" when it is not in the table. */
const char *binary_status_text(uint32_t code);

/* One packet of a server. The slices point into the bytes. */
struct binary_packet {
    uint8_t opcode;
    uint8_t datatype;
    uint16_t status;
    uint32_t opaque;
    uint64_t cas;
    struct slice extras, key, value;
    size_t size; /* of the whole packet */
};

enum binary_result {
    BINARY_MORE,    /* not all there yet */
    BINARY_OK,      /* a whole packet, or a whole answer */
    BINARY_MISFIT,  /* an answer, but not one to this operation */
    BINARY_GARBAGE, /* the stream cannot be followed any further: close the connection */
};

/* Is there a whole packet at the front of the bytes? One whose body is above body_max is garbage,
 * as is one that is no answer. OK: fills packet. MORE: sets packet->size, or 0 while it is not
 * known. Keeps nothing between calls: all the memory that it takes is the bytes', at most
 * BINARY_HEADER_BYTES + body_max. */
MUST_CHECK enum binary_result binary_parse(struct slice bytes, size_t body_max,
                                           struct binary_packet *packet);

/* Writes a request without frames, and without vBucket and CAS, as all those of a handshake are.
 * Returns its length: BINARY_HEADER_BYTES, extras, key and value. */
size_t binary_put_request(char *out, enum binary_opcode opcode, uint32_t opaque,
                          struct slice extras, struct slice key, struct slice value);

/* The first byte of what a server says by itself, where it was told that it may. */
#define BINARY_NEWS 0x82
/* What it says then of its map. */
#define BINARY_NEWS_MAP 0x01
/* Is there something whole that a server says by itself at the front of the bytes? As binary_parse,
 * for packets whose first byte is BINARY_NEWS; status is not set. None is answered. */
MUST_CHECK enum binary_result binary_parse_news(struct slice bytes, size_t body_max,
                                                struct binary_packet *packet);

/* Which map is it? As Couchbase writes that: epoch and revision. */
#define BINARY_VERSION_BYTES 16
void binary_put_version(char out[BINARY_VERSION_BYTES], int64_t epoch, int64_t revision);
/* False when the bytes have no such form. */
MUST_CHECK bool binary_read_version(struct slice bytes, int64_t *epoch, int64_t *revision);

/* Writes the number as it stands in front of a key; returns its length. */
size_t binary_put_collection(char out[BINARY_COLLECTION_MAX], uint32_t collection);

/* Reads the answer to BINARY_GET_COLLECTION_ID: the id, never 0, where its status is success; and
 * the manifest, 0 where that is not told. False when it has no such form. */
MUST_CHECK bool binary_read_collection(const struct binary_packet *packet, uint32_t *collection,
                                       uint64_t *manifest);

/* Of the verb's only packet, or its first one. Not for BE_LINE and what comes after it. */
uint8_t binary_opcode(enum be_verb verb);

/* Writes what stands in front of the operation's value to out; returns its length. Where
 * be_has_value, the value must follow. An operation's CAS number of 0 is sent as one that no item
 * has: 0 would mean any. A key in a collection has at most COLLECTION_KEY_BYTES_MAX bytes. Not for
 * BE_LINE and what comes after it. */
size_t binary_format(const struct be_operation *op, char out[BINARY_FRONT_MAX]);

/* Is there an answer to op at the front of the bytes? now_s: seconds since 1970, for times to live.
 * OK: fills status, code, flags, ttl_s, expires_s, cas, size_bytes, number, has_value and value of
 * reply, which were zero; text is not set. A value of BINARY_STATUS_NOT_MY_VBUCKET is the server's
 * map, or empty. OK and MISFIT set size to the bytes of the whole answer; MORE sets it to the bytes
 * that are needed at least, or to 0. Values above value_max bytes are garbage. */
MUST_CHECK enum binary_result binary_decode(const struct be_operation *op, struct slice bytes,
                                            size_t value_max, int64_t now_s, struct be_reply *reply,
                                            size_t *size);

#endif
