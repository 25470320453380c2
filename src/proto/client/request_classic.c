/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcached's own verbs without a data block: get, gat, delete, incr, touch.
 */
#include "proto/client/request_shape.h"

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

struct parse_result request_keys(const struct request_line *line, struct request *out)
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

struct parse_result request_gat(const struct request_line *line, struct request *out)
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
static struct parse_result take_words(const struct request_line *line, const struct slice *words,
                                      size_t count, bool noreply, struct request *out)
{
    out->key = words[0];
    if (count > 1) {
        out->args = slice_make(words[1].p, (size_t)(line->line.p + line->line.len - words[1].p));
    }
    out->arg_count = count - 1;
    out->noreply = noreply;
    return request_ok(line);
}

struct parse_result request_delete(const struct request_line *line, struct request *out)
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
    return take_words(line, words, count, noreply, out);
}

/* KEY NUMBER [noreply]; take reads the number, false: the line is refused by that text. */
static struct parse_result request_key_and_number(const struct request_line *line,
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
    return take_words(line, words, count, noreply, out);
}

static bool take_delta(struct request *out, struct slice word)
{
    return word_to_u64(word, &out->delta);
}

struct parse_result request_arith(const struct request_line *line, struct request *out)
{
    return request_key_and_number(
        line, take_delta, SLICE_LIT("CLIENT_ERROR invalid numeric delta argument\r\n"), out);
}

static bool take_exptime(struct request *out, struct slice word)
{
    return word_to_exptime(word, &out->exptime, &out->is_usual);
}

struct parse_result request_touch(const struct request_line *line, struct request *out)
{
    return request_key_and_number(line, take_exptime, REPLY_BAD_EXPTIME, out);
}
