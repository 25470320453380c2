/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that speak memcached's binary protocol, RULE_BINARY: their answers as packets. Handlers
 * that know what an item holds write one with binary_emit_hit and binary_emit_status; all else that
 * the proxy says in lines is translated here, on its way to the client.
 */
#ifndef PROXY_CLIENT_BINARY_H
#define PROXY_CLIENT_BINARY_H

#include "base/chain.h"
#include "proto/client/binary_answer.h"

/* Appends the answer with that status, in memcached's words, and nothing where a quiet request
 * hides it. */
void binary_emit_status(const struct request *request, enum binary_status status, uint64_t cas,
                        struct chain *out);
/* Appends the answer to a read that has found an item, or to a touch, up to where a value of so
 * many bytes follows: the caller's to append. */
void binary_emit_hit(const struct request *request, uint32_t flags, uint64_t cas, size_t value_len,
                     struct chain *out);
/* Appends the number as the answer to incr and decr. */
void binary_emit_number(const struct request *request, uint64_t number, uint64_t cas,
                        struct chain *out);
/* Appends what a text client would be answered by that line, without its line end. */
void binary_emit_line(const struct request *request, struct slice line, struct chain *out);

/* Appends an answer whose value is that text, and nothing where a quiet request hides it. */
void binary_emit_text(const struct binary_call *call, enum binary_status status, struct slice text,
                      struct chain *out);
/* Translates an answer of the proxy itself to that request: whole lines. */
void binary_translate(const struct binary_call *call, struct slice text, struct chain *out);

#endif
