/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers in memcached's binary protocol: written from what is known of an item, or from the line
 * that a text client would get.
 */
#ifndef PROTO_CLIENT_BINARY_ANSWER_H
#define PROTO_CLIENT_BINARY_ANSWER_H

#include "proto/client/request_parse.h"
#include "proto/key.h"
#include "proto/packet.h"

/* An answer to a request, without its value. */
struct binary_answer {
    enum binary_status status;
    bool has_flags;
    uint32_t flags;
    uint64_t cas;
    struct slice key;
    size_t value_len;
};

/* What stands in front of an answer's value, at most. */
#define BINARY_ANSWER_FRONT_MAX (BINARY_HEADER_BYTES + 4 + KEY_BYTES_MAX)

/* Writes that; returns where it ends. A key that is longer than KEY_BYTES_MAX is an error. */
char *binary_answer_put(char *to, const struct binary_call *call,
                        const struct binary_answer *answer);

/* What a line means that the text protocol answers to such a request, without its line end. *text:
 * the answer's value, in memcached's words where it has some; static, or in the line. */
enum binary_status binary_answer_read(const struct binary_call *call, struct slice line,
                                      struct slice *text);
/* memcached's words for a status; empty: it has none. */
struct slice binary_answer_text(enum binary_status status);

/* Is an answer with that status not sent, since the request is a quiet one? */
bool binary_answer_is_hidden(const struct binary_call *call, enum binary_status status);

/* Is it one of the reads that are answered with the key? */
static inline bool binary_names_key(uint8_t opcode)
{
    return opcode == BINARY_GETK || opcode == BINARY_GETKQ || opcode == BINARY_GATK ||
           opcode == BINARY_GATKQ;
}

/* What is not stored: memcached says why, where that follows from the request. */
enum binary_status binary_not_stored(uint8_t opcode);

#endif
