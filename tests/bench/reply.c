/* SPDX-License-Identifier: BSD-3-Clause */
#include "reply.h"

#include <stdio.h>
#include <string.h>

static bool range_parse(const char *text, uint64_t *min, uint64_t *max, const char **rest)
{
    unsigned long long first, second;
    int used = 0;
    if (sscanf(text, " %llu %llu%n", &first, &second, &used) != 2) {
        return false;
    }
    *min = first;
    *max = second;
    *rest = text + used;
    return first <= second;
}

/* "", "N" or "N M". */
static bool number_range_parse(const char *text, uint64_t *min, uint64_t *max)
{
    unsigned long long first = 0, second = UINT64_MAX;
    char junk;
    int count = sscanf(text, " %llu %llu %c", &first, &second, &junk);
    *min = first;
    *max = count == 1 ? first : second;
    return (count <= 0 && text[strspn(text, " ")] == '\0') || count == 1 || count == 2;
}

static bool line_parse(const char *text, struct expectation *expectation)
{
    int bytes = snprintf(expectation->line, sizeof(expectation->line), "%s\r\n", text);
    expectation->line_bytes = (size_t)bytes;
    return bytes > 2 && (size_t)bytes < sizeof(expectation->line);
}

/* Words, one blank between them. */
static bool lines_parse(const char *text, struct expectation *expectation)
{
    int bytes = snprintf(expectation->line, sizeof(expectation->line), "%s ", text);
    expectation->line_bytes = (size_t)bytes;
    return (size_t)bytes < sizeof(expectation->line) && *text != ' ' && bytes > 1 &&
           strstr(expectation->line, "  ") == NULL;
}

bool expectation_parse(const char *text, struct expectation *expectation)
{
    static const struct {
        const char *word;
        enum reply_kind kind;
    } kinds[] = {
        {"line ", REPLY_LINE},      {"number", REPLY_NUMBER}, {"values ", REPLY_VALUES},
        {"integer", REPLY_INTEGER}, {"bulk", REPLY_BULK},     {"array ", REPLY_ARRAY},
        {"lines ", REPLY_LINES},
    };
    *expectation = (struct expectation){.count_max = UINT64_MAX, .data_bytes_max = UINT64_MAX};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t word_bytes = strlen(kinds[i].word);
        if (strncmp(text, kinds[i].word, word_bytes) != 0) {
            continue;
        }
        const char *rest = text + word_bytes;
        expectation->kind = kinds[i].kind;
        switch (kinds[i].kind) {
        case REPLY_LINE:
            return line_parse(rest, expectation);
        case REPLY_LINES:
            return lines_parse(rest, expectation);
        case REPLY_NUMBER:
        case REPLY_INTEGER:
            return number_range_parse(rest, &expectation->count_min, &expectation->count_max);
        case REPLY_VALUES:
        case REPLY_ARRAY:
            if (!range_parse(rest, &expectation->count_min, &expectation->count_max, &rest)) {
                return false;
            }
            break;
        case REPLY_BULK:
            break;
        }
        return number_range_parse(rest, &expectation->data_bytes_min, &expectation->data_bytes_max);
    }
    return false;
}

/* Digits up to `end` exactly. */
static bool digits_parse(const char *at, const char *end, uint64_t *number)
{
    uint64_t sum = 0;
    if (at == end || end - at > 18) {
        return false;
    }
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') {
            return false;
        }
        sum = sum * 10 + (uint64_t)(*at - '0');
    }
    *number = sum;
    return true;
}

static bool is_within(uint64_t number, uint64_t min, uint64_t max)
{
    return min <= number && number <= max;
}

/* A data block of so many bytes follows. */
static bool enter_block(struct reply_reader *reader, const struct expectation *expectation,
                        uint64_t bytes)
{
    reader->skip_bytes = bytes;
    reader->in_tail = true;
    reader->blocks++;
    return is_within(bytes, expectation->data_bytes_min, expectation->data_bytes_max);
}

/* The next word of [*at, end), which is left behind its blank. */
static const char *word_end(const char **at, const char *end)
{
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));
    const char *stop = blank ? blank : end;
    *at = blank ? blank + 1 : end;
    return stop;
}

/* "VALUE KEY FLAGS BYTES [CAS]" or "ITEM KEY BYTES". */
static enum reply_step values_line(struct reply_reader *reader, const struct expectation *expected,
                                   const char *line, const char *end)
{
    uint64_t bytes;
    if (end - line == 3 && memcmp(line, "END", 3) == 0) {
        bool fits = is_within(reader->blocks, expected->count_min, expected->count_max);
        return fits ? REPLY_DONE : REPLY_WRONG;
    }
    const char *at = line;
    const char *stop = word_end(&at, end);
    bool is_value = stop - line == 5 && memcmp(line, "VALUE", 5) == 0;
    if (!is_value && !(stop - line == 4 && memcmp(line, "ITEM", 4) == 0)) {
        return REPLY_WRONG;
    }
    word_end(&at, end); /* the key */
    if (is_value) {
        word_end(&at, end); /* the flags */
    }
    const char *number = at;
    stop = word_end(&at, end);
    if (!digits_parse(number, stop, &bytes) || !enter_block(reader, expected, bytes)) {
        return REPLY_WRONG;
    }
    return REPLY_MORE;
}

static enum reply_step resp_line(struct reply_reader *reader, const struct expectation *expected,
                                 const char *line, const char *end)
{
    uint64_t number;
    char mark = expected->kind == REPLY_ARRAY && !reader->in_array ? '*' : '$';
    if (line == end || *line != mark || !digits_parse(line + 1, end, &number)) {
        return REPLY_WRONG;
    }
    if (mark == '$') {
        return enter_block(reader, expected, number) ? REPLY_MORE : REPLY_WRONG;
    }
    if (!is_within(number, expected->count_min, expected->count_max)) {
        return REPLY_WRONG;
    }
    reader->in_array = true;
    reader->elements = number;
    return number == 0 ? REPLY_DONE : REPLY_MORE;
}

static enum reply_step number_line(const struct expectation *expected, const char *line,
                                   const char *end)
{
    uint64_t number;
    if (expected->kind == REPLY_INTEGER && (line == end || *line++ != ':')) {
        return REPLY_WRONG;
    }
    bool fits = digits_parse(line, end, &number) &&
                is_within(number, expected->count_min, expected->count_max);
    return fits ? REPLY_DONE : REPLY_WRONG;
}

static enum reply_step one_of_lines(struct reply_reader *reader, const struct expectation *expected,
                                    const char *line, const char *end)
{
    const char *word = expected->line + reader->begun;
    size_t word_bytes = strcspn(word, " ");
    if ((size_t)(end - line) < word_bytes || memcmp(line, word, word_bytes) != 0) {
        return REPLY_WRONG;
    }
    reader->begun += word_bytes + 1;
    return reader->begun == expected->line_bytes ? REPLY_DONE : REPLY_MORE;
}

/* A whole line without its line end. */
static enum reply_step read_line(struct reply_reader *reader, const struct expectation *expected,
                                 const char *line, const char *end)
{
    if (reader->in_tail) {
        reader->in_tail = false;
        if (line != end) {
            return REPLY_WRONG;
        }
        bool ended = expected->kind == REPLY_BULK ||
                     (expected->kind == REPLY_ARRAY && --reader->elements == 0);
        return ended ? REPLY_DONE : REPLY_MORE;
    }
    switch (expected->kind) {
    case REPLY_LINE:
        break;
    case REPLY_NUMBER:
    case REPLY_INTEGER:
        return number_line(expected, line, end);
    case REPLY_VALUES:
        return values_line(reader, expected, line, end);
    case REPLY_BULK:
    case REPLY_ARRAY:
        return resp_line(reader, expected, line, end);
    case REPLY_LINES:
        return one_of_lines(reader, expected, line, end);
    }
    return REPLY_WRONG;
}

enum reply_step reply_read(struct reply_reader *reader, const struct expectation *expectation,
                           const char **at, const char *end)
{
    if (expectation->kind == REPLY_LINE && (size_t)(end - *at) >= expectation->line_bytes &&
        memcmp(*at, expectation->line, expectation->line_bytes) == 0) {
        *at += expectation->line_bytes;
        return REPLY_DONE;
    }
    for (;;) {
        uint64_t here = (uint64_t)(end - *at);
        uint64_t skipped = reader->skip_bytes < here ? reader->skip_bytes : here;
        *at += skipped;
        reader->skip_bytes -= skipped;
        here -= skipped;
        if (here == 0) {
            return REPLY_MORE;
        }
        const char *feed = memchr(*at, '\n', here);
        if (!feed) {
            return here < REPLY_LINE_BYTES_MAX ? REPLY_MORE : REPLY_WRONG;
        }
        if (feed == *at || feed[-1] != '\r') {
            return REPLY_WRONG;
        }
        enum reply_step step = read_line(reader, expectation, *at, feed - 1);
        if (step == REPLY_WRONG) {
            return step;
        }
        *at = feed + 1;
        if (step == REPLY_DONE) {
            *reader = (struct reply_reader){0};
            return step;
        }
    }
}
