/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * set and its relatives, and data blocks.
 *
 * A refused line is followed by its data block all the same. It is thrown away when its length is
 * known; when not, the connection is closed, since data that may not be the client's own must not
 * be run as commands.
 */
#include "proto/client/request_shape.h"

/* A data block that is longer than announced is thrown away to its line end, if that comes within
 * so many bytes. */
#define STRAY_DATA_MAX ((size_t)2048)

struct parse_result request_refuse_data(const struct request_line *line, struct slice reply,
                                        bool hide, size_t len)
{
    struct parse_result result = request_refuse(line, reply, hide);
    size_t block = len + 2;
    size_t arrived = line->input.len - line->total;
    if (arrived > block) {
        arrived = block;
    }
    result.consumed += arrived;
    result.swallow = block - arrived;
    return result;
}

/* The len bytes at data are not followed by \r\n: the request ends at the next newline. */
static struct parse_result refuse_chunk(const struct request_line *line, size_t len, bool hide)
{
    const struct slice reply =
        shape_is_list(line->verb->shape)
            ? SLICE_LIT("CLIENT_ERROR bad data chunk: no \\r\\n behind BYTES bytes\r\n")
            : SLICE_LIT("CLIENT_ERROR bad data chunk\r\n");
    struct slice stray = line->input;
    slice_take(&stray, line->total + len);
    if (stray.len > STRAY_DATA_MAX) {
        stray.len = STRAY_DATA_MAX;
    }
    const char *newline = memchr(stray.p, '\n', stray.len);
    if (newline != NULL) {
        struct parse_result result = request_refuse(line, reply, hide);
        result.consumed += len + (size_t)(newline - stray.p) + 1;
        return result;
    }
    if (stray.len == STRAY_DATA_MAX) {
        return request_close(line, reply, hide);
    }
    return (struct parse_result){.status = PARSE_MORE, .need = line->input.len + 1};
}

struct parse_result request_take_data(const struct request_line *line, size_t len, bool hide,
                                      struct request *out)
{
    const char *data = line->input.p + line->total;
    size_t arrived = line->input.len - line->total;
    size_t block = len + 2;
    if ((arrived > len && data[len] != '\r') || (arrived > len + 1 && data[len + 1] != '\n')) {
        return refuse_chunk(line, len, hide);
    }
    if (arrived < block) {
        return (struct parse_result){.status = PARSE_MORE, .need = line->total + block};
    }
    out->has_data = true;
    out->data = slice_make(data, len);
    out->data_crlf = slice_make(data, block);
    return (struct parse_result){.status = PARSE_OK, .consumed = line->total + block};
}

enum { STORE_KEY, STORE_FLAGS, STORE_EXPTIME, STORE_BYTES, STORE_CAS, STORE_WORDS_MAX = 6 };

static bool store_words_valid(const struct request_line *line, const struct slice *words,
                              struct request *out)
{
    return !line_has_nul(line) && words[STORE_KEY].len <= KEY_BYTES_MAX &&
           word_to_flags(words[STORE_FLAGS], &out->flags) &&
           word_to_exptime(words[STORE_EXPTIME], &out->exptime, &out->is_usual) &&
           (line->verb->verb != VERB_CAS || word_to_u64(words[STORE_CAS], &out->cas));
}

struct parse_result request_refuse_large(const struct request_line *line, bool removes, bool hide,
                                         size_t len)
{
    struct parse_result result = request_refuse_data(line, REPLY_TOO_LARGE, hide, len);
    result.removes = removes;
    return result;
}

struct parse_result request_store(const struct request_line *line, struct request *out)
{
    struct slice words[STORE_WORDS_MAX];
    size_t least = line->verb->verb == VERB_CAS ? 5 : 4;
    size_t count = request_words(line->rest, words, least + 1);
    if (count == 0) {
        /* Typed at a terminal: no data will follow. */
        return request_refuse(line, REPLY_ERROR, false);
    }
    bool complete = count >= least && count <= least + 1;
    bool noreply = complete && word_is_noreply(words[count - 1]);
    size_t len;
    if (count <= STORE_BYTES || !word_to_length(words[STORE_BYTES], &len)) {
        return request_close(line, complete ? REPLY_BAD_FORMAT : REPLY_ERROR, noreply);
    }
    if (!complete) {
        return request_refuse_data(line, REPLY_ERROR, false, len);
    }
    if (!store_words_valid(line, words, out)) {
        return request_refuse_data(line, REPLY_BAD_FORMAT, noreply, len);
    }
    out->key = words[STORE_KEY];
    if (len > line->limits->max_value_bytes) {
        out->noreply = noreply;
        return request_refuse_large(line, line->verb->verb == VERB_SET, noreply, len);
    }
    out->args = slice_make(words[STORE_FLAGS].p,
                           (size_t)(line->line.p + line->line.len - words[STORE_FLAGS].p));
    out->arg_count = count - 1;
    out->is_usual = out->is_usual && *words[STORE_BYTES].p != '+';
    out->noreply = noreply;
    return request_take_data(line, len, noreply, out);
}
