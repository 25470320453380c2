/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/ascii_parse.h"

#include <strings.h>

/* Takes a number and the blank behind it, if there is one. */
static inline bool take_number(struct slice *words, uint64_t *number)
{
    const char *p = words->p;
    const char *end = p + words->len;
    uint64_t n = 0;
    for (; p < end && *p != ' '; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, digit, &n)) {
            return false;
        }
    }
    bool good = p > words->p;
    p += p < end;
    *words = slice_make(p, (size_t)(end - p));
    *number = n;
    return good;
}

/* "VA <size> <flags>*": the size, or false. */
static bool meta_size(struct slice line, uint64_t *size)
{
    (void)slice_take(&line, 3);
    return take_number(&line, size);
}

/* "VALUE <key> <flags> <size>[ <cas>]" */
static bool classic_size(struct slice line, uint64_t *size)
{
    uint64_t flags, cas;
    (void)slice_take(&line, 6);
    const char *blank = line.len == 0 ? NULL : memchr(line.p, ' ', line.len);
    if (blank == NULL || blank == line.p) {
        return false;
    }
    (void)slice_take(&line, (size_t)(blank - line.p) + 1);
    return take_number(&line, &flags) && take_number(&line, size) &&
           (line.len == 0 || (take_number(&line, &cas) && line.len == 0));
}

/* Takes a data block of len bytes behind the line, which is *size long. */
static inline enum ascii_parse_result take_data(struct slice bytes, uint64_t len, size_t max_value,
                                                struct be_reply *reply, size_t *size)
{
    if (len > max_value) {
        return ASCII_PARSE_GARBAGE;
    }
    const char *value = bytes.p + *size;
    *size += (size_t)len + 2;
    if (bytes.len < *size) {
        return ASCII_PARSE_MORE;
    }
    if (memcmp(value + len, "\r\n", 2) != 0) {
        return ASCII_PARSE_GARBAGE;
    }
    reply->has_value = true;
    reply->value = slice_make(value, (size_t)len);
    return ASCII_PARSE_OK;
}

/* Out of the way of the answers that come one by one. */
static NOINLINE enum ascii_parse_result take_classic(struct slice bytes, size_t max_value,
                                                     struct be_reply *reply, size_t *size)
{
    uint64_t len;
    return classic_size(reply->line, &len) ? take_data(bytes, len, max_value, reply, size)
                                           : ASCII_PARSE_GARBAGE;
}

enum ascii_parse_result ascii_parse(struct slice bytes, bool classic, size_t max_value,
                                    struct be_reply *reply, size_t *size)
{
    size_t window = bytes.len < ASCII_REPLY_LINE_MAX ? bytes.len : ASCII_REPLY_LINE_MAX;
    const char *newline = window == 0 ? NULL : memchr(bytes.p, '\n', window);
    if (newline == NULL) {
        *size = 0;
        return bytes.len < ASCII_REPLY_LINE_MAX ? ASCII_PARSE_MORE : ASCII_PARSE_GARBAGE;
    }
    size_t line_end = (size_t)(newline - bytes.p) + 1;
    /* memcached always ends its lines with both. */
    if (line_end < 3 || newline[-1] != '\r') {
        return ASCII_PARSE_GARBAGE;
    }
    reply->line = slice_make(bytes.p, line_end - 2);
    reply->has_value = false;
    reply->value = SLICE_NONE;
    *size = line_end;
    if (bytes.p[0] != 'V') {
        return ASCII_PARSE_OK;
    }
    /* A hit of the other kind has a data block as well: the proxy has not asked for it here, so it
     * answers something else. */
    if (slice_starts_with(reply->line, SLICE_LIT("VA "))) {
        uint64_t len;
        return !classic && meta_size(reply->line, &len)
                   ? take_data(bytes, len, max_value, reply, size)
                   : ASCII_PARSE_GARBAGE;
    }
    if (slice_starts_with(reply->line, SLICE_LIT("VALUE "))) {
        return classic ? take_classic(bytes, max_value, reply, size) : ASCII_PARSE_GARBAGE;
    }
    return ASCII_PARSE_OK;
}

static bool read_ttl(struct slice digits, int64_t *ttl_s)
{
    uint64_t n;
    if (slice_equal(digits, SLICE_LIT("-1"))) {
        *ttl_s = -1;
        return true;
    }
    if (!slice_to_u64(digits, &n) || n > INT64_MAX) {
        return false;
    }
    *ttl_s = (int64_t)n;
    return true;
}

static bool read_flag(struct slice word, struct be_reply *reply)
{
    struct slice digits = slice_make(word.p + 1, word.len - 1);
    uint64_t n;
    switch (word.p[0]) {
    case 'c':
        return slice_to_u64(digits, &reply->cas);
    case 's':
        return slice_to_u64(digits, &reply->size_bytes);
    case 'f':
        if (!slice_to_u64(digits, &n) || n > UINT32_MAX) {
            return false;
        }
        reply->flags = (uint32_t)n;
        return true;
    case 't':
        return read_ttl(digits, &reply->ttl_s);
    default:
        return true; /* flags that later versions may add unasked */
    }
}

/* The return flags of a meta line: single letters, some with a value. */
static int read_meta_flags(struct slice words, struct be_reply *reply)
{
    while (words.len > 0) {
        if (words.p[0] == ' ') {
            (void)slice_take(&words, 1);
            continue;
        }
        size_t n = 1;
        while (n < words.len && words.p[n] != ' ') {
            n++;
        }
        if (!read_flag(slice_take(&words, n), reply)) {
            return -1;
        }
    }
    return 0;
}

static int read_mg(enum be_verb verb, struct be_reply *reply)
{
    struct slice words = reply->line;
    bool wants_value = verb == BE_GET || verb == BE_FETCH || verb == BE_GAT;
    if (slice_equal(words, SLICE_LIT("EN"))) {
        reply->status = BE_MISS;
        return 0;
    }
    if (reply->has_value != wants_value) {
        return -1;
    }
    reply->ttl_s = -1;
    reply->status = BE_HIT;
    if (wants_value) {
        (void)slice_take(&words, 3);
        while (words.len > 0 && words.p[0] != ' ') { /* the size, see meta_size */
            (void)slice_take(&words, 1);
        }
        reply->size_bytes = reply->value.len;
        return read_meta_flags(words, reply);
    }
    if (!slice_equal(words, SLICE_LIT("HD")) && !slice_starts_with(words, SLICE_LIT("HD "))) {
        return -1;
    }
    (void)slice_take(&words, 2);
    if ((verb == BE_SIZE || verb == BE_TIME) && words.len == 0) {
        return -1;
    }
    return read_meta_flags(words, reply);
}

static bool starts_with_nocase(struct slice s, const char *prefix)
{
    size_t len = strlen(prefix);
    return s.len >= len && strncasecmp(s.p, prefix, len) == 0;
}

/* True for the lines by which a server refuses a request. memcached did nothing then; what a
 * SERVER_ERROR of an unknown kind means for a change is decided in pool/wire_memcached.c. */
static bool read_error(struct slice line, enum be_status *status)
{
    /* The capitals of "out of memory" differ between the places that say it. */
    if (starts_with_nocase(line, "SERVER_ERROR out of memory")) {
        *status = BE_NO_MEMORY;
        return true;
    }
    if (starts_with_nocase(line, "SERVER_ERROR object too large")) {
        *status = BE_TOO_LARGE;
        return true;
    }
    *status = BE_REFUSED;
    return slice_equal(line, SLICE_LIT("ERROR")) || slice_starts_with(line, SLICE_LIT("ERROR ")) ||
           slice_starts_with(line, SLICE_LIT("CLIENT_ERROR")) ||
           slice_starts_with(line, SLICE_LIT("SERVER_ERROR"));
}

static const struct {
    struct slice line;
    enum be_status status;
} words_of_change[] = {
    {{"STORED", 6}, BE_STORED},   {{"NOT_STORED", 10}, BE_NOT_STORED},
    {{"EXISTS", 6}, BE_EXISTS},   {{"NOT_FOUND", 9}, BE_NOT_FOUND},
    {{"DELETED", 7}, BE_DELETED},
};

/* NOT_STORED is tolerated wherever something is stored: memcached says it when it runs out of
 * memory late. */
static bool fits(enum be_verb verb, enum be_status status)
{
    switch (status) {
    case BE_STORED:
    case BE_NOT_STORED:
        return verb != BE_DELETE && verb != BE_INCR && verb != BE_DECR && verb != BE_TOUCH;
    case BE_EXISTS:
        return verb == BE_CAS || verb == BE_CAS_DELETE;
    case BE_NOT_FOUND:
        return verb == BE_CAS || verb == BE_CAS_DELETE || verb == BE_DELETE || verb == BE_INCR ||
               verb == BE_DECR || verb == BE_TOUCH;
    case BE_DELETED:
        return verb == BE_DELETE;
    default:
        return false;
    }
}

static int read_change(enum be_verb verb, struct slice line, struct be_reply *reply)
{
    bool counts = verb == BE_INCR || verb == BE_DECR;
    if ((counts && slice_to_u64(line, &reply->number)) ||
        (verb == BE_TOUCH && slice_equal(line, SLICE_LIT("TOUCHED")))) {
        reply->status = BE_STORED;
        return 0;
    }
    for (size_t i = 0; i < sizeof words_of_change / sizeof words_of_change[0]; i++) {
        if (slice_equal(line, words_of_change[i].line)) {
            reply->status = words_of_change[i].status;
            return fits(verb, reply->status) ? 0 : -1;
        }
    }
    return -1;
}

int ascii_reply_read(enum be_verb verb, struct be_reply *reply)
{
    if (read_error(reply->line, &reply->status)) {
        return 0;
    }
    if (verb < BE_ADD || verb == BE_GAT) {
        return read_mg(verb, reply);
    }
    return reply->has_value ? -1 : read_change(verb, reply->line, reply);
}

const char *ascii_line_text(struct slice line, char *out, size_t cap)
{
    size_t n = line.len < cap - 1 ? line.len : cap - 1;
    for (size_t i = 0; i < n; i++) {
        out[i] = line.p[i] >= ' ' && line.p[i] <= '~' ? line.p[i] : '?';
    }
    out[n] = '\0';
    return out;
}
