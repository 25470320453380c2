/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list verbs. Items are only counted here: what they may hold depends on the list's policy.
 */
#include "proto/client/request_shape.h"

/* What follows the word: the column "takes" of the table. */
#define USAGE_ITEMS "KEY ITEM..."
#define USAGE_CONTENT "KEY [ITEM...]"
#define USAGE_KEY "KEY"
#define USAGE_KEYS "KEY..."
#define USAGE_RANGE "KEY FROM TO"
#define USAGE_EXPTIME "KEY EXPTIME"
#define USAGE_LEASE "KEY SECONDS"
#define USAGE_PAIR "SRC DST"
#define USAGE_DATA "KEY BYTES [noreply]"
#define USAGE_BLOCK "KEY BYTES [EXPTIME [TOKEN]]"
#define USAGE_LINES "KEY BYTES [EXPTIME [TOKEN]]"

#define LIST_VERB(id, kind, traits)
#define LIST_WORD(id, word, takes, answer) \
    [VERB_##word] = {"CLIENT_ERROR usage: " #word " " USAGE_##takes "\r\n", \
                     sizeof("CLIENT_ERROR usage: " #word " " USAGE_##takes "\r\n") - 1},
static const struct slice usages[VERB_COUNT] = {LIST_VERB_TABLE(LIST_VERB, LIST_WORD)};
#undef LIST_VERB
#undef LIST_WORD

/* Its size is in the settings: a line of the parser is the same for all. */
#define REPLY_LONG_BLOCK \
    SLICE_LIT( \
        "CLIENT_ERROR data block is longer than max_value_bytes: raise it, or fill a scratch " \
        "list by ladd and lcopy it\r\n")

static struct slice usage(const struct request_line *line)
{
    return usages[line->verb->verb];
}

static bool key_byte(unsigned char c)
{
    return c > ' ' && c != 0x7f;
}

/* Takes the next word as a key. Returns whether it is one: 1 to LIST_KEY_BYTES_MAX bytes, no
 * control bytes. */
static bool key_next(struct slice *rest, struct slice *key)
{
    const char *p = rest->p;
    const char *end = p + rest->len;
    while (p < end && *p == ' ') {
        p++;
    }
    const char *start = p;
    while (p < end && key_byte((unsigned char)*p)) {
        p++;
    }
    bool valid = p == end || *p == ' ';
    while (p < end && *p != ' ') {
        p++;
    }
    *key = slice_make(start, (size_t)(p - start));
    *rest = slice_make(p, (size_t)(end - p));
    return valid && key->len > 0 && key->len <= LIST_KEY_BYTES_MAX;
}

static bool list_key_valid(struct slice word)
{
    struct slice key;
    return key_next(&word, &key);
}

/* What to answer to a key that is not valid. */
static struct slice key_fault(struct slice key)
{
    return key.len > LIST_KEY_BYTES_MAX
               ? SLICE_LIT("CLIENT_ERROR key too long, 220 bytes at most\r\n")
               : SLICE_LIT("CLIENT_ERROR bad key\r\n");
}

struct parse_result request_list(const struct request_line *line, struct request *out)
{
    out->args = line->rest;
    if (!key_next(&out->args, &out->key)) {
        struct slice reply = out->key.len == 0 ? usage(line) : key_fault(out->key);
        return request_refuse(line, reply, false);
    }
    /* The line ends in no blank: what is behind the key are items. */
    bool has_items = out->args.len > 0;
    if (line->verb->shape == (has_items ? SHAPE_LIST_KEY : SHAPE_LIST_ITEMS)) {
        return request_refuse(line, usage(line), false);
    }
    return request_ok(line);
}

struct parse_result request_list_keys(const struct request_line *line, struct request *out)
{
    struct slice rest = line->rest, key;
    while (rest.len > 0) {
        if (!key_next(&rest, &key)) {
            return request_refuse(line, key_fault(key), false);
        }
        if (out->arg_count++ == 0) {
            out->key = key;
            out->args = slice_make(key.p, (size_t)(line->line.p + line->line.len - key.p));
        }
    }
    if (out->arg_count == 0) {
        return request_refuse(line, usage(line), false);
    }
    return request_ok(line);
}

/* Takes a line of exactly count words, of which the first is a list's key; what is behind it counts
 * as arguments. False: *refused is the answer. */
static bool take_words(const struct request_line *line, struct slice *words, size_t count,
                       struct request *out, struct parse_result *refused)
{
    if (request_words(line->rest, words, count) != count) {
        *refused = request_refuse(line, usage(line), false);
        return false;
    }
    if (!list_key_valid(words[0])) {
        *refused = request_refuse(line, key_fault(words[0]), false);
        return false;
    }
    out->key = words[0];
    out->args = slice_make(words[1].p, (size_t)(line->line.p + line->line.len - words[1].p));
    out->arg_count = count - 1;
    return true;
}

struct parse_result request_list_range(const struct request_line *line, struct request *out)
{
    struct slice words[3];
    struct parse_result refused;
    if (!take_words(line, words, 3, out, &refused)) {
        return refused;
    }
    if (!word_to_i64(words[1], &out->from) || !word_to_i64(words[2], &out->to)) {
        return request_refuse(line, usage(line), false);
    }
    return request_ok(line);
}

struct parse_result request_list_exptime(const struct request_line *line, struct request *out)
{
    struct slice words[2];
    struct parse_result refused;
    if (!take_words(line, words, 2, out, &refused)) {
        return refused;
    }
    if (!word_to_i32(words[1], &out->exptime)) {
        return request_refuse(line, REPLY_BAD_EXPTIME, false);
    }
    out->exptime_text = words[1];
    return request_ok(line);
}

struct parse_result request_list_lease(const struct request_line *line, struct request *out)
{
    struct slice words[2];
    struct parse_result refused;
    if (!take_words(line, words, 2, out, &refused)) {
        return refused;
    }
    return word_to_i64(words[1], &out->seconds) ? request_ok(line)
                                                : request_refuse(line, usage(line), false);
}

struct parse_result request_list_pair(const struct request_line *line, struct request *out)
{
    struct slice words[2];
    struct parse_result refused;
    if (!take_words(line, words, 2, out, &refused)) {
        return refused;
    }
    out->second = words[1];
    return list_key_valid(words[1]) ? request_ok(line)
                                    : request_refuse(line, key_fault(words[1]), false);
}

struct parse_result request_list_data(const struct request_line *line, struct request *out)
{
    struct slice words[3];
    size_t count = request_words(line->rest, words, 3);
    if (count == 0) {
        return request_refuse(line, usage(line), false);
    }
    bool noreply = count == 3 && word_is_noreply(words[2]);
    size_t len;
    if (count == 1) {
        return request_close(line, usage(line), false);
    }
    if (!word_to_length(words[1], &len)) {
        return request_close(line, usage(line), noreply);
    }
    if (count > 2 && !noreply) {
        return request_refuse_data(line, usage(line), false, len);
    }
    if (!list_key_valid(words[0])) {
        return request_refuse_data(line, key_fault(words[0]), noreply, len);
    }
    if (len == 0) {
        return request_refuse_data(line, SLICE_LIT("CLIENT_ERROR empty item\r\n"), noreply, len);
    }
    if (len > line->limits->max_value_bytes) {
        return request_refuse_data(line, REPLY_TOO_LARGE, noreply, len);
    }
    out->key = words[0];
    out->args = slice_make(words[1].p, (size_t)(line->line.p + line->line.len - words[1].p));
    out->arg_count = count - 1;
    out->noreply = noreply;
    return request_take_data(line, len, noreply, out);
}

struct parse_result request_list_block(const struct request_line *line, struct request *out)
{
    struct slice words[4];
    size_t count = request_words(line->rest, words, 4), len;
    if (count < 2 || !word_to_length(words[1], &len)) {
        struct slice reply = usage(line);
        return count == 0 ? request_refuse(line, reply, false) : request_close(line, reply, false);
    }
    if (count > 4) {
        return request_refuse_data(line, usage(line), false, len);
    }
    if (!list_key_valid(words[0])) {
        return request_refuse_data(line, key_fault(words[0]), false, len);
    }
    if (count > 2 && !word_to_i32(words[2], &out->exptime)) {
        return request_refuse_data(line, REPLY_BAD_EXPTIME, false, len);
    }
    if (count > 3 && !word_to_u64(words[3], &out->token)) {
        return request_refuse_data(line, usage(line), false, len);
    }
    if (len > line->limits->max_value_bytes) {
        return request_refuse_data(line, REPLY_LONG_BLOCK, false, len);
    }
    out->key = words[0];
    out->args = slice_make(words[1].p, (size_t)(line->line.p + line->line.len - words[1].p));
    out->arg_count = count - 1;
    return request_take_data(line, len, false, out);
}
