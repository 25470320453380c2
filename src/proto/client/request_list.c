/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list verbs. Items are only counted here: what they may hold depends on the list's policy.
 */
#include "proto/client/request_shape.h"

/* What follows the word: the column "takes" of the table. */
#define USAGE_ITEMS "KEY ITEM..."
#define USAGE_CONTENT "KEY [ITEM...]"
#define USAGE_TIMED "KEY SECONDS ITEM..."
#define USAGE_KEY "KEY"
#define USAGE_KEY_ITEM "KEY [ITEM]"
#define USAGE_KEYS "KEY..."
#define USAGE_LISTS "KEY..."
#define USAGE_TARGET "DST KEY..."
#define USAGE_RANGE "KEY FROM TO"
#define USAGE_EXPTIME "KEY EXPTIME"
#define USAGE_LEASE "KEY SECONDS"
#define USAGE_PAIR "SRC DST [EXPTIME] [new]"
#define USAGE_COUNT "KEY COUNT"
#define USAGE_PAGE "KEY ITEM COUNT"
#define USAGE_DATA "KEY BYTES [noreply]"
#define USAGE_TIMED_DATA "KEY SECONDS BYTES [noreply]"
#define USAGE_BLOCK "KEY BYTES [EXPTIME [TOKEN]] [new]"
#define USAGE_LINES "KEY BYTES [EXPTIME [TOKEN]] [new]"
#define USAGE_CHANGES "BYTES [noreply]"
#define USAGE_MOVE "SRC DST ITEM..."
#define USAGE_MOVE_ENDS "SRC DST COUNT"

/* The most words that stand before and with "new": KEY BYTES EXPTIME new. */
#define NEW_WORDS_MAX 4

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
#define REPLY_LONG_CHANGES \
    SLICE_LIT("CLIENT_ERROR ltx: the data block is longer than max_value_bytes: raise it, or use " \
              "several transactions\r\n")

static struct slice usage(const struct request_line *line)
{
    return usages[line->verb->verb];
}

enum key_fault { KEY_GOOD, KEY_LONG, KEY_BAD };
#define KEY_LONG_TEXT "key too long, 220 bytes at most"
#define KEY_BAD_TEXT "bad key: it holds a blank or control bytes"
_Static_assert(LIST_KEY_BYTES_MAX == 220, "the text says so");

static enum key_fault find_key_fault(struct slice key)
{
    if (key.len > LIST_KEY_BYTES_MAX) {
        return KEY_LONG;
    }
    return key_is_word(key) ? KEY_GOOD : KEY_BAD;
}

struct slice list_key_fault(struct slice key)
{
    static const struct slice replies[] = {
        [KEY_LONG] = {"CLIENT_ERROR " KEY_LONG_TEXT "\r\n",
                      sizeof("CLIENT_ERROR " KEY_LONG_TEXT "\r\n") - 1},
        [KEY_BAD] = {"CLIENT_ERROR " KEY_BAD_TEXT "\r\n",
                     sizeof("CLIENT_ERROR " KEY_BAD_TEXT "\r\n") - 1}};
    enum key_fault fault = find_key_fault(key);
    return fault == KEY_GOOD ? SLICE_LIT("") : replies[fault];
}

const char *list_key_fault_text(struct slice key)
{
    static const char *const texts[] = {
        [KEY_GOOD] = NULL, [KEY_LONG] = KEY_LONG_TEXT, [KEY_BAD] = KEY_BAD_TEXT};
    return texts[find_key_fault(key)];
}

/* Up to two. */
static size_t words_in(struct slice rest)
{
    struct slice words[2];
    return request_words(rest, words, 2);
}

struct parse_result request_list(const struct request_line *line, struct request *out)
{
    out->args = line->rest;
    if (!token_next(&out->args, &out->key)) {
        return request_refuse(line, usage(line), false);
    }
    struct slice fault = list_key_fault(out->key);
    if (fault.len > 0) {
        return request_refuse(line, fault, false);
    }
    /* The line ends in no blank: what is behind the key are items. */
    bool has_items = out->args.len > 0;
    bool one = line->verb->shape == SHAPE_LIST_KEY_ITEM;
    if (line->verb->shape == (has_items ? SHAPE_LIST_KEY : SHAPE_LIST_ITEMS) ||
        (one && words_in(out->args) > 1)) {
        return request_refuse(line, usage(line), false);
    }
    return request_ok(line);
}

struct parse_result request_list_timed(const struct request_line *line, struct request *out)
{
    struct slice second;
    struct parse_result parsed = request_list(line, out);
    if (parsed.status != PARSE_OK) {
        return parsed;
    }
    bool good = item_next(&out->args, &second) && word_to_i64(second, &out->seconds) &&
                words_in(out->args) > 0;
    return good ? parsed : request_refuse(line, usage(line), false);
}

struct parse_result request_list_keys(const struct request_line *line, struct request *out)
{
    struct slice rest = line->rest, key;
    while (rest.len > 0) {
        token_next(&rest, &key);
        struct slice fault = list_key_fault(key);
        if (fault.len > 0) {
            return request_refuse(line, fault, false);
        }
        if (out->arg_count++ == 0) {
            out->key = key;
            out->args = slice_make(key.p, (size_t)(line->line.p + line->line.len - key.p));
        }
    }
    bool target = line->verb->shape == SHAPE_LIST_TARGET;
    if (out->arg_count <= target) {
        return request_refuse(line, usage(line), false);
    }
    return request_ok(line);
}

/* Of a whole content: "new" behind all other words, of which there are least or more. Returns how
 * many these are. */
static size_t without_new(const struct slice *words, size_t count, size_t least,
                          struct request *out)
{
    out->only_new =
        count > least && count <= NEW_WORDS_MAX && slice_equal(words[count - 1], SLICE_LIT("new"));
    return count - out->only_new;
}

/* Of a line of two words or more, the first is a list's key; what is behind it counts as arguments.
 */
static void set_words(const struct request_line *line, const struct slice *words, size_t count,
                      struct request *out)
{
    out->key = words[0];
    out->args = slice_make(words[1].p, (size_t)(line->line.p + line->line.len - words[1].p));
    out->arg_count = count - 1;
}

/* Takes a line of exactly count words. False: *refused is the answer. */
static bool take_words(const struct request_line *line, struct slice *words, size_t count,
                       struct request *out, struct parse_result *refused)
{
    if (request_words(line->rest, words, count) != count) {
        *refused = request_refuse(line, usage(line), false);
        return false;
    }
    struct slice fault = list_key_fault(words[0]);
    if (fault.len > 0) {
        *refused = request_refuse(line, fault, false);
        return false;
    }
    set_words(line, words, count, out);
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

struct parse_result request_list_count(const struct request_line *line, struct request *out)
{
    struct slice words[3];
    struct parse_result refused;
    size_t count = line->verb->shape == SHAPE_LIST_PAGE ? 3 : 2;
    if (!take_words(line, words, count, out, &refused)) {
        return refused;
    }
    out->second = count == 3 ? words[1] : SLICE_NONE;
    return word_to_i64(words[count - 1], &out->count) ? request_ok(line)
                                                      : request_refuse(line, usage(line), false);
}

struct parse_result request_list_pair(const struct request_line *line, struct request *out)
{
    struct slice words[4];
    size_t count = request_words(line->rest, words, 4);
    size_t given = without_new(words, count, 2, out);
    if (count > 4 || given < 2 || given > 3) {
        return request_refuse(line, usage(line), false);
    }
    for (size_t i = 0; i < 2; i++) {
        struct slice fault = list_key_fault(words[i]);
        if (fault.len > 0) {
            return request_refuse(line, fault, false);
        }
    }
    if (given > 2 && !word_to_i32(words[2], &out->exptime)) {
        return request_refuse(line, REPLY_BAD_EXPTIME, false);
    }
    set_words(line, words, given, out);
    out->second = words[1];
    return request_ok(line);
}

/* SRC DST and what is moved. */
struct parse_result request_list_move(const struct request_line *line, struct request *out)
{
    bool ends = line->verb->shape == SHAPE_LIST_MOVE_ENDS;
    out->args = line->rest;
    if (!token_next(&out->args, &out->key) || !token_next(&out->args, &out->second) ||
        out->args.len == 0) {
        return request_refuse(line, usage(line), false);
    }
    struct slice fault = list_key_fault(out->key);
    fault = fault.len > 0 ? fault : list_key_fault(out->second);
    if (fault.len > 0) {
        return request_refuse(line, fault, false);
    }
    struct slice rest = out->args, word;
    out->arg_count = ends;
    if (ends && (!token_next(&rest, &word) || rest.len > 0 || !word_to_i64(word, &out->count))) {
        return request_refuse(line, usage(line), false);
    }
    return request_ok(line);
}

/* What the block holds is looked at where the lists are known. */
struct parse_result request_list_changes(const struct request_line *line, struct request *out)
{
    struct slice words[2];
    size_t count = request_words(line->rest, words, 2), len;
    if (count == 0) {
        return request_refuse(line, usage(line), false);
    }
    bool noreply = count == 2 && word_is_noreply(words[1]);
    if (!word_to_length(words[0], &len)) {
        return request_close(line, usage(line), noreply);
    }
    if (count > 1 && !noreply) {
        return request_refuse_data(line, usage(line), false, len);
    }
    if (len > line->limits->max_value_bytes) {
        return request_refuse_data(line, REPLY_LONG_CHANGES, noreply, len);
    }
    out->args = line->rest;
    out->arg_count = count;
    out->noreply = noreply;
    return request_take_data(line, len, noreply, out);
}

struct parse_result request_list_data(const struct request_line *line, struct request *out)
{
    struct slice words[4];
    size_t timed = line->verb->shape == SHAPE_LIST_TIMED_DATA, most = 3 + timed;
    size_t count = request_words(line->rest, words, most);
    if (count == 0) {
        return request_refuse(line, usage(line), false);
    }
    bool noreply = count == most && word_is_noreply(words[most - 1]);
    size_t len;
    if (count < most - 1) {
        return request_close(line, usage(line), false);
    }
    if (!word_to_length(words[most - 2], &len)) {
        return request_close(line, usage(line), noreply);
    }
    if ((count >= most && !noreply) || (timed && !word_to_i64(words[1], &out->seconds))) {
        return request_refuse_data(line, usage(line), false, len);
    }
    struct slice fault = list_key_fault(words[0]);
    if (fault.len > 0) {
        return request_refuse_data(line, fault, noreply, len);
    }
    if (len == 0) {
        return request_refuse_data(line, SLICE_LIT("CLIENT_ERROR empty item\r\n"), noreply, len);
    }
    if (len > line->limits->max_value_bytes) {
        return request_refuse_data(line, REPLY_TOO_LARGE, noreply, len);
    }
    set_words(line, words, count, out);
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
    size_t given = without_new(words, count, 2, out);
    if (count > 4) {
        return request_refuse_data(line, usage(line), false, len);
    }
    struct slice fault = list_key_fault(words[0]);
    if (fault.len > 0) {
        return request_refuse_data(line, fault, false, len);
    }
    if (given > 2 && !word_to_i32(words[2], &out->exptime)) {
        return request_refuse_data(line, REPLY_BAD_EXPTIME, false, len);
    }
    if (given > 3 && !word_to_u64(words[3], &out->token)) {
        return request_refuse_data(line, usage(line), false, len);
    }
    if (len > line->limits->max_value_bytes) {
        return request_refuse_data(line, REPLY_LONG_BLOCK, false, len);
    }
    set_words(line, words, given, out);
    return request_take_data(line, len, false, out);
}
