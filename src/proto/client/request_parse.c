/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the line, looks the verb up and leaves the rest to the verb's shape.
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

static struct parse_result dispatch(const struct request_line *line, struct request *out)
{
    switch (line->verb->shape) {
    case SHAPE_KEYS:
        return request_keys(line, out);
    case SHAPE_GAT:
        return request_gat(line, out);
    case SHAPE_STORE:
        return request_store(line, out);
    case SHAPE_DELETE:
        return request_delete(line, out);
    case SHAPE_ARITH:
        return request_arith(line, out);
    case SHAPE_TOUCH:
        return request_touch(line, out);
    case SHAPE_META:
        return request_meta(line, out);
    case SHAPE_META_SET:
        return request_meta_set(line, out);
    case SHAPE_PLAIN:
        return request_plain(line, out);
    case SHAPE_LIST_ITEMS:
    case SHAPE_LIST_CONTENT:
    case SHAPE_LIST_KEY:
    case SHAPE_LIST_KEY_ITEM:
        return request_list(line, out);
    case SHAPE_LIST_KEYS:
    case SHAPE_LIST_LISTS:
    case SHAPE_LIST_TARGET:
        return request_list_keys(line, out);
    case SHAPE_LIST_RANGE:
        return request_list_range(line, out);
    case SHAPE_LIST_EXPTIME:
        return request_list_exptime(line, out);
    case SHAPE_LIST_LEASE:
        return request_list_lease(line, out);
    case SHAPE_LIST_TIMED:
        return request_list_timed(line, out);
    case SHAPE_LIST_COUNT:
    case SHAPE_LIST_PAGE:
        return request_list_count(line, out);
    case SHAPE_LIST_DATA:
    case SHAPE_LIST_TIMED_DATA:
        return request_list_data(line, out);
    case SHAPE_LIST_PAIR:
        return request_list_pair(line, out);
    case SHAPE_LIST_BLOCK:
    case SHAPE_LIST_LINES:
        return request_list_block(line, out);
    case SHAPE_LIST_CHANGES:
        return request_list_changes(line, out);
    case SHAPE_LIST_MOVE:
    case SHAPE_LIST_MOVE_ENDS:
        return request_list_move(line, out);
    case SHAPE_REFUSED:
        return refuse_verb(line);
    }
    CHECK(!"a shape without a parser");
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
