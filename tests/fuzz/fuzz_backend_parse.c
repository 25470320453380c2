/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what a server answers: the same replies in whatever pieces they arrive, and for
 * every verb of the backend vocabulary a meaning that fits it, or none. And as a server's
 * handshake.
 *
 *     byte 0    what to do: bit 0 the handshake, else replies; bit 1 a small limit on values;
 *               bit 7 replies to get
 *     the rest  what arrives
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "pool/handshake.h"
#include "proto/server/backend_parse.h"

#define VERBS (BE_DELETE + 1)

static bool inside(struct slice s, struct slice bytes)
{
    return s.len == 0 || (s.p >= bytes.p && s.p + s.len <= bytes.p + bytes.len);
}

static void check_line_text(struct slice line)
{
    char text[40];
    for (size_t cap = 1; cap <= sizeof text; cap += 13) {
        CHECK(backend_line_text(line, text, cap) == text);
        CHECK(strlen(text) == (line.len < cap - 1 ? line.len : cap - 1));
        for (const char *p = text; *p != '\0'; p++) {
            CHECK(*p >= ' ' && *p <= '~');
        }
    }
}

/* May a server give that answer to that verb? */
static bool answers(enum be_verb verb, enum be_status status)
{
    bool reads = verb < BE_ADD;
    bool compares = verb == BE_CAS || verb == BE_CAS_DELETE;
    switch (status) {
    case BE_HIT:
    case BE_MISS:
        return reads;
    case BE_STORED:
    case BE_NOT_STORED:
        return !reads && verb != BE_DELETE && (verb != BE_INCR || status == BE_STORED);
    case BE_EXISTS:
        return compares;
    case BE_NOT_FOUND:
        return compares || verb == BE_DELETE || verb == BE_INCR;
    case BE_DELETED:
        return verb == BE_DELETE;
    case BE_NO_MEMORY:
    case BE_TOO_LARGE:
    case BE_REFUSED:
        return true;
    case BE_DOWN:
    case BE_LOST:
        return false;
    }
    return false;
}

/* The number behind the last flag of that letter, or the fallback. */
static uint64_t flag_of(struct slice line, char letter, uint64_t fallback)
{
    char text[BACKEND_REPLY_LINE_MAX + 1];
    char *rest = text, *word;
    uint64_t value = fallback;
    memcpy(text, line.p, line.len);
    text[line.len] = '\0';
    for (int place = 0; (word = strsep(&rest, " ")) != NULL; place++) {
        if (place >= 1 && word[0] == letter && !(place == 1 && line.p[0] == 'V')) {
            value = strtoull(word + 1, NULL, 10);
        }
    }
    return value;
}

static void check_hit(enum be_verb verb, const struct backend_parsed *parsed,
                      const struct be_reply *reply)
{
    bool has_nul = memchr(parsed->line.p, '\0', parsed->line.len) != NULL;
    CHECK(parsed->has_value == (verb == BE_GET) && reply->ttl_s >= -1);
    CHECK(slice_equal(reply->value, parsed->has_value ? parsed->value : SLICE_NONE));
    if (has_nul) {
        return; /* the second reading goes by C strings */
    }
    CHECK(reply->cas == flag_of(parsed->line, 'c', 0));
    CHECK(reply->flags == flag_of(parsed->line, 'f', 0));
    CHECK(reply->size_bytes == flag_of(parsed->line, 's', parsed->value.len));
    CHECK(reply->ttl_s == (int64_t)flag_of(parsed->line, 't', (uint64_t)-1));
}

static void check_number(struct slice line, uint64_t number)
{
    char digits[24];
    while (line.len > 1 && line.p[0] == '0') {
        (void)slice_take(&line, 1);
    }
    CHECK(slice_equal(line, slice_make(digits, format_u64(digits, number))));
}

static void check_meaning(enum be_verb verb, const struct backend_parsed *parsed)
{
    struct be_reply reply = {.epoch = 77, .text = "kept"};
    if (backend_reply_read(verb, parsed, &reply) != 0) {
        return;
    }
    CHECK(answers(verb, reply.status));
    CHECK(reply.epoch == 77 && reply.block == NULL && strcmp(reply.text, "kept") == 0);
    if (reply.status == BE_HIT) {
        check_hit(verb, parsed, &reply);
    } else {
        CHECK(reply.value.p == NULL);
    }
    if (verb == BE_INCR && reply.status == BE_STORED) {
        check_number(parsed->line, reply.number);
    } else {
        CHECK(reply.number == 0);
    }
}

typedef enum backend_parse_result parse_fn(struct slice bytes, size_t max_value,
                                           struct backend_parsed *out);
/* What takes this input: backend_parse or backend_parse_values. */
static parse_fn *parse;

static void check_parsed(const struct backend_parsed *parsed, struct slice bytes, size_t max_value)
{
    CHECK(parsed->consumed > 2 && parsed->consumed <= bytes.len);
    struct slice used = slice_make(bytes.p, parsed->consumed);
    CHECK(inside(parsed->line, used) && inside(parsed->value, used));
    CHECK(parsed->line.p == bytes.p && parsed->line.len < BACKEND_REPLY_LINE_MAX);
    CHECK(memchr(parsed->line.p, '\n', parsed->line.len) == NULL);
    CHECK(memcmp(parsed->line.p + parsed->line.len, "\r\n", 2) == 0);
    CHECK(memcmp(used.p + used.len - 2, "\r\n", 2) == 0);
    CHECK(parsed->value.len <= max_value);
    CHECK(parsed->consumed ==
          parsed->line.len + 2 + (parsed->has_value ? parsed->value.len + 2 : 0));
    bool classic = parse == backend_parse_values;
    CHECK(parsed->has_value ==
          slice_starts_with(parsed->line, classic ? SLICE_LIT("VALUE ") : SLICE_LIT("VA ")));
}

/* The bytes in a block of their own, so that the sanitizer sees the first byte read beyond them. */
static enum backend_parse_result parse_copy(struct slice bytes, size_t max_value,
                                            struct backend_parsed *out)
{
    char *copy = malloc(bytes.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, bytes.p, bytes.len);
    struct slice moved = {copy + 1, bytes.len};
    enum backend_parse_result result = parse(moved, max_value, out);
    if (result == BACKEND_PARSE_OK) {
        check_parsed(out, moved, max_value);
        check_line_text(out->line);
        for (unsigned verb = 0; verb < VERBS && parse == backend_parse; verb++) {
            check_meaning((enum be_verb)verb, out);
        }
        out->line.p = bytes.p;
        out->value.p = out->has_value ? bytes.p + out->line.len + 2 : NULL;
    } else if (result == BACKEND_PARSE_MORE) {
        CHECK(out->need == 0 || out->need > bytes.len);
        CHECK(out->need == 0 || memchr(bytes.p, '\n', bytes.len) != NULL);
    }
    free(copy);
    return result;
}

/* Every prefix asks for more, or says what the whole says. */
static void check_prefixes(struct slice bytes, size_t max_value, enum backend_parse_result whole,
                           const struct backend_parsed *parsed)
{
    size_t step = bytes.len > 200 ? bytes.len / 100 : 1;
    struct backend_parsed part;
    for (size_t len = 0; len < bytes.len; len += step) {
        enum backend_parse_result result = parse_copy(slice_make(bytes.p, len), max_value, &part);
        if (result != BACKEND_PARSE_MORE) {
            CHECK(result == whole);
            CHECK(result != BACKEND_PARSE_OK || part.consumed == parsed->consumed);
        } else if (part.need != 0 && whole == BACKEND_PARSE_OK) {
            CHECK(part.need == parsed->consumed);
        } else if (whole == BACKEND_PARSE_OK) {
            CHECK(len < parsed->consumed);
        }
    }
}

static void fuzz_replies(struct slice bytes, size_t max_value)
{
    while (bytes.len > 0) {
        struct backend_parsed parsed;
        enum backend_parse_result result = parse_copy(bytes, max_value, &parsed);
        check_prefixes(bytes, max_value, result, &parsed);
        if (result != BACKEND_PARSE_OK) {
            return;
        }
        (void)slice_take(&bytes, parsed.consumed);
    }
}

static void fuzz_handshake(struct slice bytes)
{
    struct handshake hs = {0};
    char error[HANDSHAKE_ERROR_MAX];
    struct backend_parsed parsed;
    while (backend_parse(bytes, 0, &parsed) == BACKEND_PARSE_OK) {
        memset(error, 'x', sizeof error);
        enum handshake_result result = handshake_line(&hs, parsed.line, error);
        if (result == HANDSHAKE_REFUSED) {
            CHECK(memchr(error, '\0', sizeof error) != NULL && error[0] != '\0');
            return;
        }
        CHECK(hs.version_known && memchr(hs.version, '\0', sizeof hs.version) != NULL);
        if (result == HANDSHAKE_DONE) {
            return;
        }
        (void)slice_take(&bytes, parsed.consumed);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    uint8_t what = input_byte(&in);
    if ((what & 1) != 0) {
        fuzz_handshake(in.rest);
    } else {
        parse = (what & 0x80) != 0 ? backend_parse_values : backend_parse;
        fuzz_replies(in.rest, (what & 2) != 0 ? 16 : BACKEND_VALUE_MAX);
    }
    return 0;
}
