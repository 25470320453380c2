/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as what a server answers: the same replies in whatever pieces they arrive, and for
 * every verb of the backend vocabulary a meaning that fits it, or none. And as a server's
 * handshake.
 *
 *     byte 0    what to do: bit 0 the handshake, else replies; bit 1 a small limit on values,
 *               or a handshake with a probe; bit 7 replies to get, bit 6 to gets; bits 2 to 5 which
 *               kind of line
 *     the rest  what arrives
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "pool/memcached/wire_memcached.h"
#include "proto/server/ascii_classic.h"

#define VERBS (BE_DELETE + 1)

static void check_line_text(struct slice line)
{
    char text[40];
    for (size_t cap = 1; cap <= sizeof text; cap += 13) {
        CHECK(ascii_line_text(line, text, cap) == text);
        CHECK(strlen(text) == (line.len < cap - 1 ? line.len : cap - 1));
        for (const char *p = text; *p != '\0'; p++) {
            CHECK(*p >= ' ' && *p <= '~');
        }
    }
}

static bool gives_value(enum be_verb verb)
{
    return verb == BE_GET || verb == BE_FETCH || verb == BE_GAT;
}

static bool counts(enum be_verb verb)
{
    return verb == BE_INCR || verb == BE_DECR;
}

/* May a server give that answer to that verb? */
static bool answers(enum be_verb verb, enum be_status status)
{
    bool reads = verb < BE_ADD || verb == BE_GAT;
    bool compares = verb == BE_CAS || verb == BE_CAS_DELETE;
    bool stores = !reads && verb != BE_DELETE && verb != BE_TOUCH;
    switch (status) {
    case BE_HIT:
    case BE_MISS:
        return reads;
    case BE_STORED:
    case BE_NOT_STORED:
        return (stores && (!counts(verb) || status == BE_STORED)) ||
               (verb == BE_TOUCH && status == BE_STORED);
    case BE_EXISTS:
        return compares;
    case BE_NOT_FOUND:
        return compares || verb == BE_DELETE || verb == BE_TOUCH || counts(verb);
    case BE_DELETED:
        return verb == BE_DELETE;
    case BE_NO_MEMORY:
    case BE_TOO_LARGE:
    case BE_REFUSED:
        return true;
    case BE_DOWN:
    case BE_LOST:
    case BE_ANSWERED:
        return false;
    }
    return false;
}

/* The number behind the last flag of that letter, or the fallback. */
static uint64_t flag_of(struct slice line, char letter, uint64_t fallback)
{
    char text[ASCII_REPLY_LINE_MAX + 1];
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

/* The answer names this key. */
#define KEY SLICE_LIT("k")

static void check_hit(enum be_verb verb, const struct be_reply *reply)
{
    struct slice line = reply->line;
    CHECK(memmem(line.p, line.len, " kk", 3) != NULL ||
          memmem(line.p, line.len, " kaw==", 6) != NULL);
    CHECK(reply->has_value == gives_value(verb) && reply->ttl_s >= -1);
    if (memchr(line.p, '\0', line.len) != NULL) {
        return; /* the second reading goes by C strings */
    }
    CHECK(reply->cas == flag_of(line, 'c', 0));
    CHECK(reply->flags == flag_of(line, 'f', 0));
    CHECK(reply->size_bytes == flag_of(line, 's', reply->value.len));
    CHECK(reply->ttl_s == (int64_t)flag_of(line, 't', (uint64_t)-1));
}

static void check_number(struct slice line, uint64_t number)
{
    char digits[24];
    while (line.len > 1 && line.p[0] == '0') {
        (void)slice_take(&line, 1);
    }
    CHECK(slice_equal(line, slice_make(digits, format_u64(digits, number))));
}

static void check_meaning(enum be_verb verb, const struct be_reply *parsed)
{
    struct be_reply reply = {.epoch = 77,
                             .text = "kept",
                             .line = parsed->line,
                             .has_value = parsed->has_value,
                             .value = parsed->value};
    const struct be_operation op = {.verb = verb, .key = KEY};
    if (ascii_reply_read(&op, &reply) != 0) {
        return;
    }
    CHECK(answers(verb, reply.status));
    CHECK(reply.epoch == 77 && reply.block == NULL && strcmp(reply.text, "kept") == 0);
    CHECK(slice_equal(reply.line, parsed->line) && slice_equal(reply.value, parsed->value));
    if (reply.status == BE_HIT) {
        check_hit(verb, &reply);
    } else {
        CHECK(reply.value.p == NULL);
    }
    if (counts(verb) && reply.status == BE_STORED) {
        check_number(parsed->line, reply.number);
    } else {
        CHECK(reply.number == 0);
    }
}

/* What the bytes answer; of lines of which form. */
static struct be_operation question;

static bool is_classic(void)
{
    return question.verb == BE_LINE_GET;
}

static void check_parsed(const struct be_reply *reply, struct slice bytes, size_t size,
                         size_t max_value)
{
    CHECK(size > 2 && size <= bytes.len);
    struct slice used = slice_make(bytes.p, size);
    CHECK(inside(reply->line, used) && inside(reply->value, used));
    CHECK(reply->line.len < ASCII_REPLY_LINE_MAX && reply->value.len <= max_value);
    CHECK(memchr(reply->line.p, '\n', reply->line.len) == NULL);
    CHECK(memcmp(used.p + used.len - 2, "\r\n", 2) == 0);
    if (is_classic() && reply->has_value) {
        CHECK(slice_starts_with(bytes, SLICE_LIT("VALUE ")) && reply->line.p == bytes.p + 6);
        CHECK(reply->line.len > 0 && memchr(reply->line.p, ' ', reply->line.len) == NULL);
        return;
    }
    CHECK(reply->line.p == bytes.p);
    CHECK(memcmp(reply->line.p + reply->line.len, "\r\n", 2) == 0);
    CHECK(size == reply->line.len + 2 + (reply->has_value ? reply->value.len + 2 : 0));
    CHECK(reply->has_value == slice_starts_with(reply->line, SLICE_LIT("VA ")));
}

/* The short way finds nothing, or what the other finds. */
static void check_short_way(const struct be_operation *op, struct slice bytes, size_t max_value)
{
    struct be_reply quick, slow = {0};
    size_t quick_size, slow_size;
    if (!ascii_take_usual(op, bytes, max_value, &quick, &quick_size)) {
        return;
    }
    CHECK(ascii_parse(op, bytes, max_value, &slow, &slow_size) == ASCII_PARSE_OK);
    CHECK(op->verb >= BE_LINE || ascii_reply_read(op, &slow) == 0);
    CHECK(op->verb != BE_LINE || ascii_line_fits(op, &slow));
    CHECK(quick_size == slow_size && slow.has_value == quick.has_value);
    CHECK(slice_equal(quick.value, slow.value) && quick.flags == slow.flags);
    CHECK(quick.cas == slow.cas);
    CHECK(op->verb == BE_FETCH ? slow.status == BE_HIT : slice_equal(quick.line, slow.line));
}

/* The same as answers of a memcached without meta commands. */
static enum ascii_classic_result check_classic(enum be_verb verb, struct slice bytes,
                                               size_t max_value)
{
    struct be_operation op = {.verb = verb, .key = KEY, .asks_cas = question.asks_cas};
    struct be_reply reply;
    size_t size;
    enum ascii_classic_result result = ascii_classic_read(&op, bytes, max_value, &reply, &size);
    if (result == ASCII_CLASSIC_MORE) {
        CHECK(size == 0 || size > bytes.len);
    } else if (result != ASCII_CLASSIC_GARBAGE) {
        CHECK(size > 2 && size <= bytes.len);
        CHECK(inside(reply.line, bytes) && inside(reply.value, bytes));
    }
    if (result == ASCII_CLASSIC_READ) {
        CHECK(answers(verb, reply.status) && reply.ttl_s == -1);
        CHECK(reply.no_times == (verb == BE_GET));
        CHECK(reply.has_value == (reply.status == BE_HIT && gives_value(verb)));
        CHECK(reply.status == BE_MISS || slice_equal(reply.line, KEY));
        CHECK(memcmp(bytes.p + size - 5, "END\r\n", 5) == 0);
    }
    return result;
}

/* Every prefix asks for more, or says what the whole says. */
static void fuzz_classic(struct slice bytes, size_t max_value)
{
    for (enum be_verb verb = BE_GET; verb <= BE_GAT; verb++) {
        if (!ascii_classic_reads(verb)) {
            continue;
        }
        enum ascii_classic_result whole = check_classic(verb, bytes, max_value);
        size_t step = bytes.len > 200 ? bytes.len / 50 : 1;
        for (size_t len = 0; len < bytes.len; len += step) {
            char *copy = malloc(len + 1);
            CHECK(copy != NULL);
            memcpy(copy, bytes.p, len);
            enum ascii_classic_result part = check_classic(verb, slice_make(copy, len), max_value);
            CHECK(part == ASCII_CLASSIC_MORE || part == whole);
            free(copy);
        }
    }
}

/* The bytes in a block of their own, so that the sanitizer sees the first byte read beyond them. */
static enum ascii_parse_result parse_copy(struct slice bytes, size_t max_value, size_t *size)
{
    struct be_reply reply;
    char *copy = malloc(bytes.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, bytes.p, bytes.len);
    struct slice moved = {copy + 1, bytes.len};
    struct be_operation fetch = {.verb = BE_FETCH, .key = KEY, .asks_cas = question.asks_cas};
    check_short_way(&question, moved, max_value);
    check_short_way(&fetch, moved, max_value);
    enum ascii_parse_result result = ascii_parse(&question, moved, max_value, &reply, size);
    if (result == ASCII_PARSE_OK) {
        check_parsed(&reply, moved, *size, max_value);
        check_line_text(reply.line);
        for (unsigned verb = 0; verb < VERBS && !is_classic(); verb++) {
            check_meaning((enum be_verb)verb, &reply);
        }
        if (!is_classic() || !reply.has_value) {
            struct be_reply line = reply;
            CHECK(!ascii_line_fits(&question, &line) || slice_equal(line.line, reply.line));
        }
    } else if (result == ASCII_PARSE_MORE) {
        CHECK(*size == 0 || *size > bytes.len);
        CHECK(*size == 0 || memchr(bytes.p, '\n', bytes.len) != NULL);
    }
    free(copy);
    return result;
}

/* Every prefix asks for more, or says what the whole says. */
static void check_prefixes(struct slice bytes, size_t max_value, enum ascii_parse_result whole,
                           size_t size)
{
    size_t step = bytes.len > 200 ? bytes.len / 100 : 1;
    size_t part;
    for (size_t len = 0; len < bytes.len; len += step) {
        enum ascii_parse_result result = parse_copy(slice_make(bytes.p, len), max_value, &part);
        if (result != ASCII_PARSE_MORE) {
            CHECK(result == whole);
            CHECK(result != ASCII_PARSE_OK || part == size);
        } else if (part != 0 && whole == ASCII_PARSE_OK) {
            CHECK(part == size);
        } else if (whole == ASCII_PARSE_OK) {
            CHECK(len < size);
        }
    }
}

static void fuzz_replies(struct slice bytes, size_t max_value)
{
    while (bytes.len > 0) {
        size_t size;
        enum ascii_parse_result result = parse_copy(bytes, max_value, &size);
        check_prefixes(bytes, max_value, result, size);
        if (result != ASCII_PARSE_OK) {
            return;
        }
        (void)slice_take(&bytes, size);
    }
}

/* One step with bytes of their own, so that the sanitizer sees the first byte read beyond them.
 * Takes off the bytes what the step has read. */
static enum handshake_result shake_hands(struct handshake *hs, struct slice *bytes)
{
    struct handshake_step step;
    char *copy = malloc(bytes->len + 1);
    CHECK(copy != NULL);
    if (bytes->len > 0) {
        memcpy(copy, bytes->p, bytes->len);
    }
    step.in = slice_make(copy, bytes->len);
    memset(step.error, 'x', sizeof step.error);
    enum handshake_result result = wire_memcached.handshake(hs, &step);
    CHECK(step.in.len <= bytes->len && step.in.p + step.in.len == copy + bytes->len);
    CHECK((step.send_len > 0) == (bytes->p == NULL) && step.send_len <= sizeof step.send);
    CHECK(hs->waits_for != NULL && memchr(hs->version, '\0', sizeof hs->version) != NULL);
    if (result == HANDSHAKE_REFUSED) {
        CHECK(memchr(step.error, '\0', sizeof step.error) != NULL && step.error[0] != '\0');
    }
    (void)slice_take(bytes, bytes->len - step.in.len);
    free(copy);
    return result;
}

static bool same_findings(const struct handshake *a, const struct handshake *b)
{
    return strcmp(a->version, b->version) == 0 && a->item_size_max == b->item_size_max &&
           a->cas_disabled == b->cas_disabled && a->flush_disabled == b->flush_disabled &&
           a->evictions_disabled == b->evictions_disabled;
}

/* At once and byte by byte: the same findings. */
static void fuzz_handshake(struct slice bytes, bool probe)
{
    struct handshake whole = {.probe = probe}, pieces = {.probe = probe};
    struct slice none = SLICE_NONE, rest = bytes, window = slice_make(bytes.p, 0);
    CHECK(shake_hands(&whole, &none) == HANDSHAKE_MORE);
    CHECK(shake_hands(&pieces, &none) == HANDSHAKE_MORE);
    enum handshake_result result = HANDSHAKE_MORE;
    enum handshake_result first = bytes.len > 0 ? shake_hands(&whole, &rest) : HANDSHAKE_MORE;
    const char *end = bytes.p + bytes.len;
    while (result == HANDSHAKE_MORE && window.p + window.len < end) {
        window.len++;
        result = shake_hands(&pieces, &window);
    }
    CHECK(result == first && same_findings(&whole, &pieces));
}

static struct be_operation question_of(uint8_t what)
{
    static const char metas[] = "gsdaen";
    static const enum be_verb classic[] = {BE_SET,  BE_CAS,   BE_APPEND, BE_DELETE,
                                           BE_INCR, BE_TOUCH, BE_LINE,   BE_ADD};
    struct be_operation op = {.verb = BE_LINE};
    unsigned form = what >> 2 & 15;
    if ((what & 0xc0) != 0) {
        op.verb = BE_LINE_GET;
        op.asks_cas = (what & 0x40) != 0;
    } else if (form < 8) {
        op.form.like = classic[form];
    } else {
        op.form.meta = metas[(form - 8) % 6];
        op.form.key = KEY;
        op.form.opaque = SLICE_LIT("1");
        op.form.key_is_base64 = form == 9;
        op.form.flags = (form < 14 ? letter_bit('k') : 0) | (form > 9 ? letter_bit('O') : 0) |
                        (form % 2 != 0 ? letter_bit('v') | letter_bit('f') : 0);
    }
    return op;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = input_make(data, size);
    uint8_t what = input_byte(&in);
    if ((what & 1) != 0) {
        fuzz_handshake(in.rest, (what & 2) != 0);
    } else {
        question = question_of(what);
        if (is_classic()) {
            fuzz_classic(in.rest, (what & 2) != 0 ? 16 : ASCII_VALUE_MAX);
        }
        fuzz_replies(in.rest, (what & 2) != 0 ? 16 : ASCII_VALUE_MAX);
    }
    return 0;
}
