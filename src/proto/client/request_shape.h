/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the request parser: one function per shape of line. Each is given the line and fills the
 * request, or says what to answer.
 *
 *     input.p                          input.p + total
 *      |  blanks VERB rest blanks \r\n  |  data block \r\n  |  next request
 *               '--- line ---'
 */
#ifndef PROTO_CLIENT_REQUEST_SHAPE_H
#define PROTO_CLIENT_REQUEST_SHAPE_H

#include "base/check.h"
#include "proto/client/request_parse.h"
#include "proto/key.h"

struct request_line {
    struct slice input; /* everything that has arrived */
    size_t total;       /* bytes of the line with its line end */
    struct slice line;  /* from the verb to the last byte that is no blank */
    struct slice rest;  /* of line, behind the verb */
    const struct verb_info *verb;
    const struct request_limits *limits;
};

/* Older memcacheds end the line at a NUL, newer ones do not: such a line is never forwarded. */
static inline bool line_has_nul(const struct request_line *line)
{
    return memchr(line->line.p, '\0', line->line.len) != NULL;
}

#define REPLY_ERROR SLICE_LIT("ERROR\r\n")
#define REPLY_BAD_FORMAT SLICE_LIT("CLIENT_ERROR bad command line format\r\n")
#define REPLY_BAD_EXPTIME SLICE_LIT("CLIENT_ERROR invalid exptime argument\r\n")
#define REPLY_UNAUTHENTICATED SLICE_LIT("CLIENT_ERROR unauthenticated\r\n")
#define REPLY_TOO_LARGE SLICE_LIT("SERVER_ERROR object too large for cache\r\n")

/* Fills *out from *line, which shapes with a data block take from the input behind the line. */
struct parse_result request_store(const struct request_line *line, struct request *out);
struct parse_result request_meta(const struct request_line *line, struct request *out);
struct parse_result request_meta_set(const struct request_line *line, struct request *out);

/* Does a connection begin with a byte that no verb begins with, but another protocol does? Then
 * *result says what to do about it. */
bool request_is_other(struct slice input, struct parse_result *result);

/* The request ends with its line. */
static inline struct parse_result request_ok(const struct request_line *line)
{
    return (struct parse_result){.status = PARSE_OK, .consumed = line->total};
}

/* Nothing follows the refused line. hide: classic noreply suppresses errors too. */
static inline struct parse_result request_refuse(const struct request_line *line,
                                                 struct slice reply, bool hide)
{
    return (struct parse_result){
        .status = PARSE_ERROR, .consumed = line->total, .reply = hide ? SLICE_LIT("") : reply};
}

/* A data block of len bytes follows the refused line and is thrown away with it. */
struct parse_result request_refuse_data(const struct request_line *line, struct slice reply,
                                        bool hide, size_t len);

/* The same for one that is too large. removes: memcached does not leave the old value either. */
struct parse_result request_refuse_large(const struct request_line *line, bool removes, bool hide,
                                         size_t len);

/* A data block of unknown length follows the refused line: whatever comes next must not be run as
 * commands. */
static inline struct parse_result request_close(const struct request_line *line, struct slice reply,
                                                bool hide)
{
    return (struct parse_result){
        .status = PARSE_CLOSE, .consumed = line->input.len, .reply = hide ? SLICE_LIT("") : reply};
}

/* Takes the data block of len bytes behind the line and the line end behind that. */
struct parse_result request_take_data(const struct request_line *line, size_t len, bool hide,
                                      struct request *out);

/* Splits rest into words[0..max-1]; returns how many there are, max + 1 when there are more than
 * max. */
size_t request_words(struct slice rest, struct slice *words, size_t max);

/* Numbers as every memcached takes them: decimal, a sign where strtol would take one, no other
 * blanks or tails. */
/* The flags of an item: memcached takes 64 bits and keeps the lower 32. */
bool word_to_flags(struct slice word, uint32_t *value);
bool word_to_i32(struct slice word, int64_t *value);
/* The exptime of memcached's own verbs: it takes 64 bits and keeps the lower 32, with their sign.
 * Not every memcached does, so is_usual says whether the word is a number of 32 bits without plus.
 */
bool word_to_exptime(struct slice word, int64_t *value, bool *is_usual);
bool word_to_u64(struct slice word, uint64_t *value);
bool word_to_i64(struct slice word, int64_t *value);
/* The length of a data block: 0 to 2^31 - 3, as for memcached, which takes a plus. */
bool word_to_length(struct slice word, size_t *value);

static inline bool word_is_noreply(struct slice word)
{
    return word.len == 7 && memcmp(word.p, "noreply", 7) == 0;
}

#endif
