/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client sends that has to log in first, as memcached reads it with -Y. The key, the flags
 * and the exptime may be anything, and noreply is not heeded:
 *
 *     set KEY FLAGS EXPTIME BYTES\r\n
 *     USER PASSWORD\r\n
 */
#ifndef PROTO_CLIENT_LOGIN_PARSE_H
#define PROTO_CLIENT_LOGIN_PARSE_H

#include "proto/client/request_parse.h"

struct login {
    struct slice user, password;
};

/* Parses what stands at the front of input. PARSE_OK: *out is filled, its slices point into the
 * input. All else is as request_parse has it; no request is looked at, so that each is refused.
 * is_first: as in struct request_limits. */
struct parse_result login_parse(struct slice input, bool is_first, struct login *out);

#endif
