/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's request in memcached's binary protocol. The same requests come out as of the text
 * parser, so that nothing behind it knows which of the two the client speaks:
 *
 *     get getq getk getkq           gets, since the answer has the CAS number
 *     gat gatq gatk gatkq           gats
 *     set add replace, with cas     cas
 *     noop                          mn
 *     stat KEY                      stats KEY
 *     and all others by their names
 *
 * It refuses what memcached refuses, and closes where memcached closes.
 */
#ifndef PROTO_CLIENT_BINARY_REQUEST_H
#define PROTO_CLIENT_BINARY_REQUEST_H

#include "proto/client/request_parse.h"
#include "proto/packet.h"

/* Parses the request at the front of input. All is as request_parse has it, but that replies are
 * those of the text protocol, which binary_answer.h turns into packets, and that out->binary is
 * filled when a header is there. SASL: out->verb is NULL, out->key is the mechanism and out->data
 * what the client says in it. */
struct parse_result binary_request_parse(struct slice input, const struct request_limits *limits,
                                         struct request *out);

/* Is a request with that opcode about logging in? */
static inline bool binary_is_sasl(uint8_t opcode)
{
    return opcode >= BINARY_SASL_LIST && opcode <= BINARY_SASL_STEP;
}

/* What a client that logs in by SASL PLAIN says: name NUL user NUL password. False: it is no such
 * text. */
bool binary_read_plain(struct slice text, struct slice *user, struct slice *password);

#endif
