/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the request parser share: requests as they are often sent, and what is answered
 * to bad ones.
 */
#ifndef SUPPORT_REQUEST_H
#define SUPPORT_REQUEST_H

#include "proto/client/request_parse.h"

#define KEY_50 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define KEY_250 KEY_50 KEY_50 KEY_50 KEY_50 KEY_50
#define KEY_251 KEY_250 "k"
#define KEY_220 KEY_50 KEY_50 KEY_50 KEY_50 "kkkkkkkkkkkkkkkkkkkk"
#define OPAQUE_31 "ooooooooooooooooooooooooooooooo"

#define BAD_FORMAT "CLIENT_ERROR bad command line format\r\n"
#define BAD_CHUNK "CLIENT_ERROR bad data chunk\r\n"
#define BAD_TOKEN "CLIENT_ERROR bad token in command line format\r\n"
#define BAD_DELTA "CLIENT_ERROR invalid numeric delta argument\r\n"
#define BAD_EXPTIME "CLIENT_ERROR invalid exptime argument\r\n"
#define BAD_DELETE "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
#define BAD_META "CLIENT_ERROR invalid or duplicate flag\r\n"
#define BAD_FLAG "CLIENT_ERROR invalid flag\r\n"
#define BAD_KEY64 "CLIENT_ERROR error decoding key\r\n"
#define TOO_LARGE "SERVER_ERROR object too large for cache\r\n"
#define LINE_LONG "CLIENT_ERROR line too long: above 2048 bytes\r\n"
#define LINE_ABOVE_LIMIT "CLIENT_ERROR line too long: above max_line_bytes\r\n"

/* A line as often sent, with what is wrong with it. */
struct refusal {
    struct slice input;
    enum parse_status status;
    size_t block; /* bytes of the refused data block still to come */
    const char *reply;
};
#define REFUSED(input, reply) \
    { \
        SLICE_LIT(input "\r\n"), PARSE_ERROR, 0, reply \
    }
#define REFUSED_BLOCK(input, block, reply) \
    { \
        SLICE_LIT(input "\r\n"), PARSE_ERROR, block, reply \
    }
#define CLOSED(input, reply) \
    { \
        SLICE_LIT(input "\r\n"), PARSE_CLOSE, 0, reply \
    }

/* 8,192 bytes for a line, 1,000 for a value. */
extern const struct request_limits test_limits;

/* request_parse with these limits. */
struct parse_result parse_input(struct slice input, struct request *out);
/* Parses input, which must be one whole request. */
struct request take_request(const char *input);
/* head, then word over and over up to so many bytes, then tail. Valid until the next call. */
struct slice long_line(const char *head, const char *word, size_t bytes, const char *tail);

void assert_slice(struct slice s, const char *text);
void assert_refusal(const struct refusal *expected);

#define assert_refusals(rows) \
    do { \
        for (size_t row = 0; row < sizeof(rows) / sizeof((rows)[0]); row++) { \
            assert_refusal(&(rows)[row]); \
        } \
    } while (0)

#endif
