/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/login_parse.h"

#include <string.h>

#include "proto/client/request_shape.h"

/* memcached closes when so many bytes hold no newline. */
#define LINE_BYTES ((size_t)2048)
/* The same limit on user and password; memcached takes a little less than its buffer for input. */
#define DATA_BYTES ((size_t)2048)
/* The shortest input that memcached looks at. */
#define SHORTEST ((size_t)2)
/* "set", key, flags, exptime, bytes. */
#define WORDS 5

#define REPLY_BAD_END SLICE_LIT("CLIENT_ERROR bad command line termination\r\n")
#define REPLY_BAD_TOKENS SLICE_LIT("CLIENT_ERROR bad authentication token format\r\n")

static struct parse_result refuse(size_t consumed, struct slice reply)
{
    return (struct parse_result){.status = PARSE_ERROR, .consumed = consumed, .reply = reply};
}

/* memcached takes both lines for C strings. */
static struct slice until_nul(struct slice s)
{
    const char *nul = memchr(s.p, '\0', s.len);
    return nul == NULL ? s : slice_make(s.p, (size_t)(nul - s.p));
}

/* A number as strtoul takes it, up to white space. */
static bool parse_size(struct slice word, uint64_t *size)
{
    static const char blanks[] = " \t\n\v\f\r";
    size_t start = 0;
    while (start < word.len && memchr(blanks, word.p[start], sizeof blanks - 1) != NULL) {
        start++;
    }
    start += start < word.len && word.p[start] == '+';
    size_t end = start;
    while (end < word.len && word.p[end] >= '0' && word.p[end] <= '9') {
        end++;
    }
    bool ends = end == word.len || memchr(blanks, word.p[end], sizeof blanks - 1) != NULL;
    return ends && end > start && slice_to_u64(slice_make(word.p + start, end - start), size) &&
           *size <= UINT32_MAX;
}

/* Is the line a set? Then *size is that of its data. */
static bool parse_line(struct slice line, uint64_t *size)
{
    struct slice rest = until_nul(line), words[WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        if (!token_next(&rest, &words[i])) {
            return false;
        }
    }
    return slice_equal(words[0], SLICE_LIT("set")) && parse_size(words[WORDS - 1], size);
}

struct parse_result login_parse(struct slice input, bool is_first, struct login *out)
{
    struct parse_result stranger;
    uint64_t size;
    if (is_first && request_is_other(input, &stranger)) {
        return stranger;
    }
    const char *newline = input.len < SHORTEST ? NULL : memchr(input.p, '\n', input.len);
    if (newline == NULL) {
        return (struct parse_result){.status = input.len > LINE_BYTES ? PARSE_CLOSE : PARSE_MORE,
                                     .consumed = input.len};
    }
    struct slice line = slice_make(input.p, (size_t)(newline - input.p));
    size_t begin = line.len + 1;
    if (!parse_line(line, &size)) {
        return refuse(begin, REPLY_UNAUTHENTICATED);
    }
    size_t total = begin + size + 2, arrived = total < input.len ? total : input.len;
    if (size > DATA_BYTES) {
        struct parse_result result = refuse(arrived, REPLY_BAD_TOKENS);
        result.swallow = total - arrived;
        return result;
    }
    if (arrived < total) {
        return (struct parse_result){.status = PARSE_MORE, .need = total};
    }
    if (memcmp(input.p + begin + size, "\r\n", 2) != 0) {
        return refuse(total, REPLY_BAD_END);
    }
    struct slice data = until_nul(slice_make(input.p + begin, size));
    if (!token_next(&data, &out->user) || !token_next(&data, &out->password)) {
        return refuse(total, REPLY_BAD_TOKENS);
    }
    return (struct parse_result){.status = PARSE_OK, .consumed = total};
}
