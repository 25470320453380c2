/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a client's requests. Checks that every answer keeps to the contract, that it does
 * not depend on the pieces in which the bytes arrive, that the fields say what a second, simpler
 * reading of the line says, and that a line as it would be forwarded is read in the same way again.
 */
#include <stdlib.h>

#include "base/check.h"
#include "input.h"
#include "proto/client/request_parse.h"
#include "proto/client/tx_block.h"
#include "proto/server/backend.h"
#include "proxy/bridge/part.h"
#include "proxy/bridge/text.h"

#define FLAGS_MAX 17

/* The word at that place of the line, counted from 0; empty when there are not so many. */
static struct slice word_at(struct slice line, size_t place)
{
    size_t i = 0;
    for (;;) {
        while (i < line.len && line.p[i] == ' ') {
            i++;
        }
        size_t start = i;
        while (i < line.len && line.p[i] != ' ') {
            i++;
        }
        if (place-- == 0 || start == i) {
            return slice_make(line.p + start, i - start);
        }
    }
}

static size_t count_words(struct slice line)
{
    size_t count = 0;
    while (word_at(line, count).len > 0) {
        count++;
    }
    return count;
}

/* The word as a number that fits long long, as the C library reads it. */
static long long number_of(struct slice word)
{
    char text[32];
    char *end;
    CHECK(word.len > 0 && word.len < sizeof text);
    memcpy(text, word.p, word.len);
    text[word.len] = '\0';
    long long number = strtoll(text, &end, 10);
    CHECK(*end == '\0');
    return number;
}

static void check_list_key(struct slice key)
{
    CHECK(key.len >= 1 && key.len <= LIST_KEY_BYTES_MAX);
    for (size_t i = 0; i < key.len; i++) {
        CHECK((unsigned char)key.p[i] > ' ' && key.p[i] != 0x7f);
    }
}

/* A line of a block without its line end, as a second reading has it. */
static void check_change(struct slice text, const struct tx_line *line)
{
    static const struct slice words[] = {
#define TX_OP(id, word) [TX_OP_##id] = {#word, sizeof(#word) - 1},
        TX_OP_TABLE(TX_OP)
#undef TX_OP
    };
    if (text.len > 0 && text.p[text.len - 1] == '\r') {
        text.len--;
    }
    check_list_key(line->key);
    struct slice word = word_at(text, 0), second = word_at(text, 1);
    CHECK(slice_equal(slice_make(word.p, word.len - line->is_one), words[line->op]));
    CHECK(second.p == line->key.p && second.len == line->key.len);
    if (line->is_one) {
        CHECK(word.p[word.len - 1] == 'b' && count_words(text) == 3 && line->op != TX_OP_SET);
        CHECK(number_of(word_at(text, 2)) == (long long)line->items.len);
        return;
    }
    size_t items = count_words(line->items);
    CHECK(inside(line->items, text) && items == count_words(text) - 2);
    CHECK(items > 0 || line->op == TX_OP_SET);
}

/* The number of the line with which rest, the end of the data, begins. */
static size_t line_of(struct slice data, struct slice rest)
{
    size_t line = 1;
    for (size_t i = 0; i < data.len - rest.len; i++) {
        line += data.p[i] == '\n';
    }
    return line;
}

/* Each line that is taken begins behind the one before it; all are, or there is a fault. */
static void check_changes(const struct request *r)
{
    struct tx_block b;
    struct tx_line line;
    struct slice rest = r->data;
    CHECK(r->has_data && !r->quiet && !r->base64 && r->key.len == 0);
    CHECK(number_of(word_at(r->line, 1)) == (long long)r->data.len);
    for (tx_block_begin(&b, r->data); tx_block_next(&b, &line);) {
        const char *end = memchr(rest.p, '\n', rest.len);
        CHECK(end != NULL && b.line == line_of(r->data, rest));
        check_change(slice_take(&rest, (size_t)(end - rest.p)), &line);
        (void)slice_take(&rest, 1);
        if (line.is_one) {
            CHECK(line.items.p == rest.p && line.items.len < rest.len);
            (void)slice_take(&rest, line.items.len);
            (void)slice_take(&rest, *rest.p == '\r');
            CHECK(rest.len > 0 && *slice_take(&rest, 1).p == '\n');
        }
    }
    CHECK(b.fault == NULL ? rest.len == 0 : rest.len > 0 && b.line == line_of(r->data, rest));
}

static void check_list(const struct request *r, enum verb_shape shape)
{
    size_t words = count_words(r->line);
    if (shape == SHAPE_LIST_CHANGES) {
        CHECK(words == 2 || (words == 3 && r->noreply));
        check_changes(r);
        return;
    }
    check_list_key(r->key);
    CHECK(slice_equal(r->key, word_at(r->line, 1)) && !r->quiet && !r->base64);
    CHECK(r->has_data == (shape_has_item_block(shape) || shape_has_block(shape)));
    if (shape == SHAPE_LIST_ITEMS || shape == SHAPE_LIST_CONTENT || shape == SHAPE_LIST_KEY) {
        CHECK(count_words(r->args) == words - 2 && !r->noreply);
        CHECK(shape == SHAPE_LIST_CONTENT || (words > 2) == (shape == SHAPE_LIST_ITEMS));
    } else if (shape == SHAPE_LIST_TIMED) {
        CHECK(words > 3 && count_words(r->args) == words - 3 && !r->noreply);
        CHECK(r->seconds == number_of(word_at(r->line, 2)));
    } else if (shape == SHAPE_LIST_KEY_ITEM) {
        CHECK((words == 2 || words == 3) && count_words(r->args) == words - 2 && !r->noreply);
    } else if (shape == SHAPE_LIST_KEYS || shape_has_lists(shape)) {
        CHECK(r->arg_count == words - 1 && !r->noreply);
        size_t lists = r->arg_count - (shape == SHAPE_LIST_TARGET);
        CHECK(lists > 0);
        for (size_t i = 1; i < words; i++) {
            check_list_key(word_at(r->line, i));
        }
    } else if (shape_moves(shape)) {
        check_list_key(r->second);
        CHECK(slice_equal(r->second, word_at(r->line, 2)) && words > 3 && !r->noreply);
        CHECK(count_words(r->args) == words - 3);
        CHECK(shape == SHAPE_LIST_MOVE ||
              (words == 4 && r->count == number_of(word_at(r->line, 3))));
    } else if (shape == SHAPE_LIST_LEASE) {
        CHECK(words == 3 && r->seconds == number_of(word_at(r->line, 2)));
    } else if (shape == SHAPE_LIST_RANGE) {
        CHECK(words == 4 && r->from == number_of(word_at(r->line, 2)));
        CHECK(r->to == number_of(word_at(r->line, 3)));
    } else if (shape == SHAPE_LIST_COUNT) {
        CHECK(words == 3 && r->count == number_of(word_at(r->line, 2)));
    } else if (shape == SHAPE_LIST_PAGE) {
        CHECK(words == 4 && slice_equal(r->second, word_at(r->line, 2)));
        CHECK(r->count == number_of(word_at(r->line, 3)));
    } else if (shape == SHAPE_LIST_EXPTIME) {
        CHECK(words == 3 && r->exptime == number_of(word_at(r->line, 2)));
    } else if (shape == SHAPE_LIST_PAIR) {
        check_list_key(r->second);
        CHECK(words >= 3 && words <= 5 && r->arg_count == words - r->only_new - 2);
        CHECK(slice_equal(r->second, word_at(r->line, 2)));
        CHECK(r->arg_count < 2 || r->exptime == number_of(word_at(r->line, 3)));
    } else if (shape_has_block(shape)) {
        CHECK(words >= 3 && words <= 5 && !r->noreply);
        CHECK(r->arg_count == words - r->only_new - 2);
        CHECK((long long)r->data.len == number_of(word_at(r->line, 2)));
        CHECK(r->arg_count < 2 || r->exptime == number_of(word_at(r->line, 3)));
    } else {
        size_t timed = shape == SHAPE_LIST_TIMED_DATA;
        CHECK(words == 3 + timed || (words == 4 + timed && r->noreply));
        CHECK(r->data.len > 0 && (long long)r->data.len == number_of(word_at(r->line, 2 + timed)));
        CHECK(!timed || r->seconds == number_of(word_at(r->line, 2)));
    }
}

/* Flags are single letters, none twice, and b and q were seen wherever they stand. */
static void check_meta(const struct request *r, size_t first_flag)
{
    size_t words = count_words(r->line);
    bool seen[256] = {false};
    CHECK(words >= first_flag && words - 2 <= FLAGS_MAX && !r->noreply);
    for (size_t i = first_flag; i < words; i++) {
        unsigned char letter = (unsigned char)word_at(r->line, i).p[0];
        CHECK(!seen[letter]);
        seen[letter] = true;
    }
    CHECK(r->quiet == seen['q'] && r->base64 == seen['b']);
}

static void check_store(const struct request *r)
{
    size_t words = count_words(r->line);
    size_t least = r->verb->verb == VERB_CAS ? 6 : 5;
    /* memcached takes any word behind the others, and looks whether it is noreply. */
    CHECK(words == least || words == least + 1);
    CHECK(r->noreply == slice_equal(word_at(r->line, least), SLICE_LIT("noreply")));
    CHECK(number_of(word_at(r->line, 2)) == r->flags);
    CHECK(number_of(word_at(r->line, 3)) == r->exptime);
    CHECK(r->has_data && number_of(word_at(r->line, 4)) == (long long)r->data.len);
}

/* What goes to a server has no NUL, a key that every memcached takes, and no line end but its own.
 */
/* What a bridge makes of it: the parser has checked the numbers, and items lie in the value. */
static void check_bridge(const struct request *r)
{
    static const struct signs signs = {'+', '-'};
    struct bridge_request bridge;
    struct item_block block;
    struct slice item;
    bool whole;
    if (request_is_meta(r)) {
        bridge_meta_read(r, &bridge);
        CHECK(bridge.verb <= BRIDGE_NONE && (bridge.verb != BRIDGE_CAS || bridge.has_cas));
    }
    if (!r->has_data) {
        return;
    }
    size_t left = bridge_joined_count(r->data, ',', &whole);
    CHECK(left <= r->data.len + 1 && bridge_signed_count(r->data, signs, &whole) <= r->data.len);
    for (item_block_begin(&block, r->data, ','); item_block_next(&block, &item); left--) {
        CHECK(inside(item, r->data) && left > 0);
    }
    CHECK(left == 0);
}

static void check_forwarded(const struct request *r)
{
    CHECK(r->key.len > 0 && r->key.len <= KEY_BYTES_MAX);
    CHECK(memchr(r->line.p, '\0', r->line.len) == NULL);
    CHECK(memchr(r->line.p, '\n', r->line.len) == NULL);
    CHECK(r->line.p[0] != ' ' && r->line.p[r->line.len - 1] != ' ');
}

static void check_shape(const struct request *r)
{
    enum verb_shape shape = r->verb->shape;
    switch (shape) {
    case SHAPE_LIST_ITEMS:
    case SHAPE_LIST_CONTENT:
    case SHAPE_LIST_TIMED:
    case SHAPE_LIST_TIMED_DATA:
    case SHAPE_LIST_KEY:
    case SHAPE_LIST_KEY_ITEM:
    case SHAPE_LIST_KEYS:
    case SHAPE_LIST_LISTS:
    case SHAPE_LIST_TARGET:
    case SHAPE_LIST_RANGE:
    case SHAPE_LIST_COUNT:
    case SHAPE_LIST_PAGE:
    case SHAPE_LIST_EXPTIME:
    case SHAPE_LIST_LEASE:
    case SHAPE_LIST_DATA:
    case SHAPE_LIST_PAIR:
    case SHAPE_LIST_BLOCK:
    case SHAPE_LIST_LINES:
    case SHAPE_LIST_CHANGES:
    case SHAPE_LIST_MOVE:
    case SHAPE_LIST_MOVE_ENDS:
        check_list(r, shape);
        return;
    case SHAPE_PLAIN:
        CHECK(r->arg_count == count_words(r->line) - 1);
        return;
    case SHAPE_REFUSED:
        CHECK(!"a refused verb was taken");
        return;
    case SHAPE_STORE:
        check_store(r);
        break;
    case SHAPE_META:
        if (r->verb->verb != VERB_ME) {
            check_meta(r, 2);
        }
        break;
    case SHAPE_META_SET:
        check_meta(r, 3);
        CHECK(r->has_data && number_of(word_at(r->line, 2)) == (long long)r->data.len);
        break;
    case SHAPE_KEYS:
        CHECK(r->arg_count == count_words(r->line) - 1);
        break;
    case SHAPE_GAT:
        CHECK(r->arg_count == count_words(r->line) - 2);
        break;
    case SHAPE_DELETE:
    case SHAPE_ARITH:
    case SHAPE_TOUCH:
        break;
    }
    check_forwarded(r);
}

static void check_request(const struct request *r, struct slice input, size_t consumed)
{
    struct slice used = {input.p, consumed};
    CHECK(consumed > 0 && consumed <= input.len && input.p[consumed - 1] == '\n');
    CHECK(inside(r->line, used) && inside(r->key, r->line) && inside(r->args, r->line));
    CHECK(inside(r->data, used) && inside(r->data_crlf, used));
    CHECK(slice_equal(word_at(r->line, 0), r->verb->text));
    CHECK(r->key.len <= KEY_BYTES_MAX);

    struct slice args = r->args, rest = r->args, token, item;
    size_t count = 0;
    while (token_next(&args, &token)) {
        CHECK(inside(token, r->args) && slice_equal(token, word_at(r->args, count)));
        CHECK(item_next(&rest, &item) && item.p == token.p && item.len == token.len);
        count++;
    }
    CHECK(!item_next(&rest, &item));
    CHECK(count == r->arg_count || shape_has_items(r->verb->shape));

    CHECK(!r->has_data || r->data_crlf.len == r->data.len + 2);
    CHECK(!r->has_data || memcmp(r->data.p + r->data.len, "\r\n", 2) == 0);
    char decoded[KEY_BYTES_MAX];
    size_t decoded_len = r->base64 ? key_decode_base64(r->key, decoded) : 0;
    CHECK(!r->base64 || (decoded_len > 0 && decoded_len <= r->key.len / 4 * 3));
    check_shape(r);
    check_bridge(r);
}

static void check_result(struct parse_result p, struct slice input,
                         const struct request_limits *limits)
{
    CHECK(p.consumed <= input.len);
    switch (p.status) {
    case PARSE_MORE:
        CHECK(p.consumed == 0 && (p.need == 0 || p.need > input.len));
        CHECK((p.need == 0) == (memchr(input.p, '\n', input.len) == NULL));
        break;
    case PARSE_OK:
        CHECK(p.swallow == 0);
        break;
    case PARSE_ERROR:
        CHECK(p.consumed > 0 && (p.swallow == 0 || p.consumed == input.len));
        CHECK(p.reply.len == 0 || p.reply.p[p.reply.len - 1] == '\n');
        CHECK(p.reply.len == 0 || slice_starts_with(p.reply, SLICE_LIT("ERROR\r\n")) ||
              slice_starts_with(p.reply, SLICE_LIT("CLIENT_ERROR ")) ||
              slice_starts_with(p.reply, SLICE_LIT("SERVER_ERROR ")));
        break;
    case PARSE_CLOSE:
        break;
    case PARSE_BINARY:
        CHECK(limits->is_first && (unsigned char)*input.p == 0x80 && p.consumed == 0);
        break;
    }
}

/* The line as it is passed on, with its data block, is the same request. */
static void check_again(const struct request *r, const struct request_limits *limits)
{
    size_t len = r->line.len + 2 + r->data_crlf.len;
    char *copy = malloc(len);
    CHECK(copy != NULL);
    memcpy(copy, r->line.p, r->line.len);
    memcpy(copy + r->line.len, "\r\n", 2);
    if (r->has_data) {
        memcpy(copy + r->line.len + 2, r->data_crlf.p, r->data_crlf.len);
    }
    struct request again;
    struct parse_result p = request_parse(slice_make(copy, len), 0, limits, &again);
    CHECK(p.status == PARSE_OK && p.consumed == len && again.verb == r->verb);
    CHECK(slice_equal(again.line, r->line) && slice_equal(again.key, r->key));
    CHECK(slice_equal(again.args, r->args) && again.arg_count == r->arg_count);
    CHECK(again.flags == r->flags && again.exptime == r->exptime && again.cas == r->cas);
    CHECK(again.delta == r->delta && again.from == r->from && again.to == r->to);
    CHECK(again.noreply == r->noreply && again.quiet == r->quiet && again.base64 == r->base64);
    CHECK(again.has_data == r->has_data && slice_equal(again.data, r->data));
    free(copy);
}

/* The bytes in a block of their own, so that the sanitizer sees the first byte read beyond them. */
static struct parse_result parse_copy(struct slice input, size_t scanned,
                                      const struct request_limits *limits)
{
    char *copy = malloc(input.len + 1);
    CHECK(copy != NULL);
    memmove(copy + 1, input.p, input.len);
    struct slice moved = {copy + 1, input.len};
    struct request r;
    struct parse_result p = request_parse(moved, scanned, limits, &r);
    check_result(p, moved, limits);
    if (p.status == PARSE_OK) {
        check_request(&r, moved, p.consumed);
        check_again(&r, limits);
    }
    free(copy);
    return p;
}

/* Every prefix asks for more, or already says what the whole says. */
static void check_prefixes(struct slice input, const struct request_limits *limits,
                           struct parse_result whole)
{
    size_t step = input.len > 400 ? input.len / 200 : 1;
    size_t scanned = 0;
    for (size_t len = 0; len < input.len; len += step) {
        struct parse_result p = parse_copy(slice_make(input.p, len), scanned, limits);
        if (p.status == PARSE_MORE) {
            /* A data block that ends in LF alone is refused one byte earlier than a good one would
             * be taken. */
            CHECK(whole.status == PARSE_MORE || whole.status == PARSE_CLOSE ||
                  p.need <= whole.consumed + whole.swallow + 1);
            scanned = p.need == 0 ? len : 0;
            continue;
        }
        CHECK(p.status == whole.status && slice_equal(p.reply, whole.reply));
        CHECK(p.status == PARSE_CLOSE || p.consumed + p.swallow == whole.consumed + whole.swallow);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct request_limits choices[] = {
        {.max_line_bytes = 4096, .max_value_bytes = 1000},
        {.max_line_bytes = 40, .max_value_bytes = 10, .is_first = true}};
    if (size == 0) {
        return 0;
    }
    const struct request_limits *limits = &choices[data[0] & 1];
    struct slice input = {(const char *)data + 1, size - 1};
    while (input.len > 0) {
        struct parse_result whole = parse_copy(input, 0, limits);
        check_prefixes(input, limits, whole);
        if (whole.status != PARSE_OK && whole.status != PARSE_ERROR) {
            break;
        }
        slice_take(&input, whole.consumed);
    }
    return 0;
}
