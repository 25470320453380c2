/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the line, looks the verb up and leaves the rest to the verb's shape. Those of memcached's
 * verbs with a data block and those of meta commands are in the files beside.
 */
#include "proto/client/request_parse.h"

#include "proto/client/request_shape.h"
#include "proto/packet.h"

/* memcached closes when so many bytes hold no newline, get and gets aside. */
#define SHORT_LINE_BYTES ((size_t)2048)
/* More blanks than this before the verb, and memcached does not look for get or gets. */
#define LEADING_BLANKS_MAX ((size_t)100)

static bool shape_may_be_long(enum verb_shape shape)
{
    return shape == SHAPE_KEYS || shape == SHAPE_GAT || shape_is_list(shape);
}

/* Does the line that begins here name any number of keys or items? front is long enough to hold the
 * verb. */
static bool line_may_be_long(struct slice front)
{
    size_t blanks = 0;
    while (blanks < front.len && front.p[blanks] == ' ') {
        blanks++;
    }
    if (blanks > LEADING_BLANKS_MAX) {
        return false;
    }
    struct slice word;
    if (!token_next(&front, &word) || front.len == 0) {
        return false;
    }
    const struct verb_info *info = verb_find(word);
    return info != NULL && shape_may_be_long(info->shape);
}

/* Decides on a line of more bytes than usual, whole or not; used is what there is of it, without
 * its newline. Looks at nothing that could still change, so that it does not matter in which pieces
 * the line arrives. True when the line is refused; then *result says how. */
static RARE bool refuse_long_line(struct slice used, bool whole,
                                  const struct request_limits *limits, struct parse_result *result)
{
    *result = (struct parse_result){
        .status = PARSE_CLOSE,
        .consumed = used.len,
        .reply = SLICE_LIT("CLIENT_ERROR line too long: above max_line_bytes\r\n")};
    if (!line_may_be_long(used)) {
        result->reply = SLICE_LIT("CLIENT_ERROR line too long: above 2048 bytes\r\n");
        return used.len > SHORT_LINE_BYTES;
    }
    size_t len = used.len;
    if (!whole || used.p[len - 1] == '\r') {
        len--; /* its last byte is, or may turn out to be, part of the line end */
    }
    return len > limits->max_line_bytes;
}

/* A web browser or a script that was tricked into talking to us, or a health check: whatever it
 * sends next must not be run. */
static bool is_http(struct slice line)
{
    static const char *const methods[] = {"GET",     "POST",    "PUT",   "HEAD", "DELETE",
                                          "OPTIONS", "CONNECT", "TRACE", "PATCH"};
    size_t start = line.len;
    while (start > 0 && line.p[start - 1] != ' ') {
        start--;
    }
    struct slice last = slice_make(line.p + start, line.len - start);
    if (slice_starts_with(last, SLICE_LIT("HTTP/"))) {
        return true;
    }
    struct slice rest = line, method, path;
    token_next(&rest, &method);
    if (!token_next(&rest, &path) || *path.p != '/') {
        return false;
    }
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (slice_equal(method, slice_of(methods[i]))) {
            return true;
        }
    }
    return false;
}

/* Redis clients send arrays: *COUNT, and then their words. */
static bool is_redis(struct slice line)
{
    uint64_t count;
    struct slice digits = line;
    return line.len > 1 && slice_take(&digits, 1).p[0] == '*' && slice_to_u64(digits, &count);
}

static struct parse_result close_stranger(enum stranger stranger, struct slice input,
                                          struct slice reply)
{
    return (struct parse_result){
        .status = PARSE_CLOSE, .consumed = input.len, .reply = reply, .stranger = stranger};
}

#define HTTP_BODY "This port speaks the protocols of memcached, not HTTP.\n"
_Static_assert(sizeof HTTP_BODY - 1 == 55, "Content-Length below");
#define REPLY_HTTP \
    SLICE_LIT("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 55\r\n" \
              "Connection: close\r\n\r\n" HTTP_BODY)
#define REPLY_REDIS SLICE_LIT("-ERR this port speaks the protocols of memcached\r\n")
/* An alert record: fatal, handshake_failure (RFC 5246, 7.2). */
#define REPLY_TLS SLICE_LIT("\x15\x03\x01\x00\x02\x02\x28")

static RARE struct parse_result refuse_unknown(const struct request_line *line)
{
    if (is_http(line->line)) {
        return close_stranger(STRANGER_HTTP, line->input, REPLY_HTTP);
    }
    if (line->limits->is_first && is_redis(line->line)) {
        return close_stranger(STRANGER_REDIS, line->input, REPLY_REDIS);
    }
    return request_refuse(line, REPLY_ERROR, false);
}

RARE bool request_is_other(struct slice input, struct parse_result *result)
{
    enum { TLS_HANDSHAKE = 0x16 };
    unsigned char first = (unsigned char)(input.len > 0 ? *input.p : 0);
    if (first == TLS_HANDSHAKE) {
        *result = close_stranger(STRANGER_TLS, input, REPLY_TLS);
        return true;
    }
    *result = (struct parse_result){.status = PARSE_BINARY};
    return first == BINARY_MAGIC_REQUEST;
}

static RARE struct parse_result refuse_verb(const struct request_line *line)
{
#define REFUSAL " is not available through a proxy: ask each memcached itself\r\n"
#define REFUSED_ROW(id, text, shape) \
    [VERB_##id] = {"CLIENT_ERROR " text REFUSAL, sizeof("CLIENT_ERROR " text REFUSAL) - 1},
    static const struct slice replies[VERB_COUNT] = {VERB_TABLE(REFUSED_ROW)};
#undef REFUSED_ROW
#undef REFUSAL
    return request_refuse(line, replies[line->verb->verb], false);
}

static RARE struct parse_result request_plain(const struct request_line *line, struct request *out)
{
    struct slice rest = line->rest, word;
    while (token_next(&rest, &word)) {
        out->arg_count++;
    }
    out->args = line->rest;
    return request_ok(line);
}

/* ---- memcached's own verbs without a data block: get, gat, delete, incr, touch ---- */

/* Checks that only valid keys follow in keys, counts them, notes the first. */
static bool take_keys(const struct request_line *line, struct slice keys, struct request *out)
{
    struct slice rest = keys, key;
    bool valid = !line_has_nul(line);
    size_t count = 0;
    while (item_next(&rest, &key)) {
        if (count++ == 0) {
            out->key = key;
            out->args = slice_make(key.p, (size_t)(keys.p + keys.len - key.p));
        }
        valid = valid && key.len <= KEY_BYTES_MAX;
    }
    out->arg_count = count;
    return valid;
}

static struct parse_result take_get(const struct request_line *line, struct request *out)
{
    bool valid = take_keys(line, line->rest, out);
    if (out->arg_count == 0) {
        return request_refuse(line, REPLY_ERROR, false);
    }
    if (!valid) {
        return request_refuse(line, REPLY_BAD_FORMAT, false);
    }
    return request_ok(line);
}

static struct parse_result take_gat(const struct request_line *line, struct request *out)
{
    struct slice rest = line->rest, exptime;
    token_next(&rest, &exptime);
    bool valid = take_keys(line, rest, out);
    if (out->arg_count == 0) {
        return request_refuse(line, REPLY_ERROR, false);
    }
    if (!word_to_exptime(exptime, &out->exptime, &out->is_usual)) {
        return request_refuse(line, REPLY_BAD_EXPTIME, false);
    }
    if (!valid) {
        return request_refuse(line, REPLY_BAD_FORMAT, false);
    }
    return request_ok(line);
}

/* What delete, incr and touch have in common once their words were found right. */
static struct parse_result take_classic_words(const struct request_line *line,
                                              const struct slice *words, size_t count, bool noreply,
                                              struct request *out)
{
    out->key = words[0];
    if (count > 1) {
        out->args = slice_make(words[1].p, (size_t)(line->line.p + line->line.len - words[1].p));
    }
    out->arg_count = count - 1;
    out->noreply = noreply;
    return request_ok(line);
}

static struct parse_result take_delete(const struct request_line *line, struct request *out)
{
    struct slice words[3];
    size_t count = request_words(line->rest, words, 3);
    if (count == 0 || count > 3) {
        return request_refuse(line, REPLY_ERROR, false);
    }
    bool noreply = count > 1 && word_is_noreply(words[count - 1]);
    /* Once a delay could be given; 0 is all that is left of it. */
    bool zero = count > 1 && slice_equal(words[1], SLICE_LIT("0"));
    if ((count == 2 && !zero && !noreply) || (count == 3 && !(zero && noreply))) {
        return request_refuse(
            line,
            SLICE_LIT("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"),
            noreply);
    }
    if (line_has_nul(line) || words[0].len > KEY_BYTES_MAX) {
        return request_refuse(line, REPLY_BAD_FORMAT, noreply);
    }
    return take_classic_words(line, words, count, noreply, out);
}

/* KEY NUMBER [noreply]; take reads the number, false: the line is refused by that text. */
static struct parse_result take_key_and_number(const struct request_line *line,
                                               bool (*take)(struct request *, struct slice),
                                               struct slice refusal, struct request *out)
{
    struct slice words[3];
    size_t count = request_words(line->rest, words, 3);
    if (count < 2 || count > 3) {
        return request_refuse(line, REPLY_ERROR, false);
    }
    bool noreply = word_is_noreply(words[count - 1]);
    if (line_has_nul(line) || words[0].len > KEY_BYTES_MAX) {
        return request_refuse(line, REPLY_BAD_FORMAT, noreply);
    }
    if (!take(out, words[1])) {
        return request_refuse(line, refusal, noreply);
    }
    return take_classic_words(line, words, count, noreply, out);
}

static bool take_delta(struct request *out, struct slice word)
{
    return word_to_u64(word, &out->delta);
}

static struct parse_result take_arith(const struct request_line *line, struct request *out)
{
    return take_key_and_number(line, take_delta,
                               SLICE_LIT("CLIENT_ERROR invalid numeric delta argument\r\n"), out);
}

static bool take_touch_exptime(struct request *out, struct slice word)
{
    return word_to_exptime(word, &out->exptime, &out->is_usual);
}

static struct parse_result take_touch(const struct request_line *line, struct request *out)
{
    return take_key_and_number(line, take_touch_exptime, REPLY_BAD_EXPTIME, out);
}

/* ---- list verbs ----
 *
 * Items are only counted here: what they may hold depends on the list's policy.
 */

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

static struct parse_result take_list(const struct request_line *line, struct request *out)
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

static struct parse_result take_timed(const struct request_line *line, struct request *out)
{
    struct slice second;
    struct parse_result parsed = take_list(line, out);
    if (parsed.status != PARSE_OK) {
        return parsed;
    }
    bool good = item_next(&out->args, &second) && word_to_i64(second, &out->seconds) &&
                words_in(out->args) > 0;
    return good ? parsed : request_refuse(line, usage(line), false);
}

static struct parse_result take_lists(const struct request_line *line, struct request *out)
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

/* Of a whole content: "new" behind all other words, of which there are two or more. Returns how
 * many these are. */
static size_t without_new(const struct slice *words, size_t count, struct request *out)
{
    out->only_new =
        count > 2 && count <= NEW_WORDS_MAX && slice_equal(words[count - 1], SLICE_LIT("new"));
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

static struct parse_result take_range(const struct request_line *line, struct request *out)
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

static struct parse_result take_exptime(const struct request_line *line, struct request *out)
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

static struct parse_result take_lease(const struct request_line *line, struct request *out)
{
    struct slice words[2];
    struct parse_result refused;
    if (!take_words(line, words, 2, out, &refused)) {
        return refused;
    }
    return word_to_i64(words[1], &out->seconds) ? request_ok(line)
                                                : request_refuse(line, usage(line), false);
}

static struct parse_result take_count(const struct request_line *line, struct request *out)
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

static struct parse_result take_pair(const struct request_line *line, struct request *out)
{
    struct slice words[4];
    size_t count = request_words(line->rest, words, 4);
    size_t given = without_new(words, count, out);
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
static struct parse_result take_move(const struct request_line *line, struct request *out)
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
static struct parse_result take_changes(const struct request_line *line, struct request *out)
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

static struct parse_result take_data(const struct request_line *line, struct request *out)
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

static struct parse_result take_block(const struct request_line *line, struct request *out)
{
    struct slice words[4];
    size_t count = request_words(line->rest, words, 4), len;
    if (count < 2 || !word_to_length(words[1], &len)) {
        struct slice reply = usage(line);
        return count == 0 ? request_refuse(line, reply, false) : request_close(line, reply, false);
    }
    size_t given = without_new(words, count, out);
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

/* ---- the line ---- */

/* What takes the lines of each shape of list verb. */
static struct parse_result (*const list_shapes[])(const struct request_line *, struct request *) = {
    [SHAPE_LIST_ITEMS] = take_list,      [SHAPE_LIST_CONTENT] = take_list,
    [SHAPE_LIST_KEY] = take_list,        [SHAPE_LIST_KEY_ITEM] = take_list,
    [SHAPE_LIST_KEYS] = take_lists,      [SHAPE_LIST_LISTS] = take_lists,
    [SHAPE_LIST_TARGET] = take_lists,    [SHAPE_LIST_RANGE] = take_range,
    [SHAPE_LIST_EXPTIME] = take_exptime, [SHAPE_LIST_LEASE] = take_lease,
    [SHAPE_LIST_TIMED] = take_timed,     [SHAPE_LIST_COUNT] = take_count,
    [SHAPE_LIST_PAGE] = take_count,      [SHAPE_LIST_DATA] = take_data,
    [SHAPE_LIST_TIMED_DATA] = take_data, [SHAPE_LIST_PAIR] = take_pair,
    [SHAPE_LIST_BLOCK] = take_block,     [SHAPE_LIST_LINES] = take_block,
    [SHAPE_LIST_CHANGES] = take_changes, [SHAPE_LIST_MOVE] = take_move,
    [SHAPE_LIST_MOVE_ENDS] = take_move,
};

static struct parse_result dispatch(const struct request_line *line, struct request *out)
{
    switch (line->verb->shape) {
    case SHAPE_KEYS:
        return take_get(line, out);
    case SHAPE_GAT:
        return take_gat(line, out);
    case SHAPE_STORE:
        return request_store(line, out);
    case SHAPE_DELETE:
        return take_delete(line, out);
    case SHAPE_ARITH:
        return take_arith(line, out);
    case SHAPE_TOUCH:
        return take_touch(line, out);
    case SHAPE_META:
        return request_meta(line, out);
    case SHAPE_META_SET:
        return request_meta_set(line, out);
    case SHAPE_PLAIN:
        return request_plain(line, out);
    case SHAPE_REFUSED:
        return refuse_verb(line);
    default:
        return list_shapes[line->verb->shape](line, out);
    }
}

/* The line without its line end and the blanks around it: memcacheds differ in which blanks they
 * take. */
static struct slice trim(struct slice s)
{
    if (s.len > 0 && s.p[s.len - 1] == '\r') {
        s.len--;
    }
    while (s.len > 0 && s.p[s.len - 1] == ' ') {
        s.len--;
    }
    while (s.len > 0 && *s.p == ' ') {
        s.p++;
        s.len--;
    }
    return s;
}

/* Field by field: for a whole struct of this size compilers choose a string instruction that takes
 * longer than all the rest of a short line. */
static void begin(struct request *r, const struct request_line *line)
{
    r->verb = line->verb;
    r->line = line->line;
    r->key = SLICE_NONE;
    r->args = slice_make(line->line.p + line->line.len, 0);
    r->arg_count = 0;
    r->flags = 0;
    r->exptime = 0;
    r->is_usual = true;
    r->cas = 0;
    r->delta = 0;
    r->from = 0;
    r->to = 0;
    r->noreply = false;
    r->quiet = false;
    r->base64 = false;
    r->only_new = false;
    r->has_data = false;
    r->data = SLICE_NONE;
    r->data_crlf = SLICE_NONE;
}

struct parse_result request_parse(struct slice input, size_t scanned,
                                  const struct request_limits *limits, struct request *out)
{
    const char *newline = NULL;
    struct parse_result stranger;
    if (UNLIKELY(limits->is_first) && request_is_other(input, &stranger)) {
        return stranger;
    }
    if (scanned < input.len) {
        newline = memchr(input.p + scanned, '\n', input.len - scanned);
    }
    struct slice used = {input.p, newline != NULL ? (size_t)(newline - input.p) : input.len};
    if (UNLIKELY(used.len > SHORT_LINE_BYTES || used.len > limits->max_line_bytes)) {
        struct parse_result refused;
        if (refuse_long_line(used, newline != NULL, limits, &refused)) {
            return refused;
        }
    }
    if (newline == NULL) {
        return (struct parse_result){.status = PARSE_MORE};
    }

    struct slice text = trim(used);
    struct request_line line = {
        .input = input, .total = used.len + 1, .line = text, .rest = text, .limits = limits};
    line.verb = verb_take(&line.rest);
    if (line.verb == NULL) {
        return refuse_unknown(&line);
    }
    begin(out, &line);
    return dispatch(&line, out);
}

bool request_changes(const struct request *r)
{
    switch (r->verb->verb) {
    case VERB_MG: /* N makes an item where none is, T sets the time to live */
        return (r->meta_flags & (letter_bit('N') | letter_bit('T'))) != 0;
    case VERB_GET:
    case VERB_GETS:
    case VERB_ME:
        return false;
    default:
        return !shape_is_list(r->verb->shape) || r->verb->changes_lists;
    }
}
