/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meta commands. Flags are checked as memcached checks them; which of its errors wins when
 * there are several follows its order of checks.
 */
#include "proto/client/request_shape.h"
#include "proto/key.h"

/* Flags behind the key, beyond which older memcacheds refuse; ms spends one place on its length. */
#define META_FLAGS_MAX ((size_t)17)
/* An opaque with its O. */
#define OPAQUE_BYTES_MAX ((size_t)32)

struct meta_flags {
    char mode;          /* of flag M, 0 when there is none */
    bool opaque_long;   /* flag O has too many bytes */
    struct slice error; /* empty when all is well */
};

static void fault(struct meta_flags *flags, struct slice reply)
{
    flags->error = reply;
}

/* A memcached answers some requests with the decoded key as it is: a line feed in it would make two
 * answers of one, and the second would go to the next request on that connection. */
static bool base64_key_fits(struct slice key)
{
    char decoded[KEY_BYTES_MAX];
    size_t len = key_decode_base64(key, decoded);
    return len > 0 && memchr(decoded, '\n', len) == NULL;
}

/* Only CAS numbers for newer memcacheds (E) and the removal of values (x) are not known to all; the
 * others answer them with an error of one line, so they may be forwarded. */
static bool take_flag(struct slice token, struct meta_flags *flags, struct request *out)
{
    struct slice value = slice_make(token.p + 1, token.len - 1);
    uint64_t u64;
    uint32_t u32;
    int64_t i32;
    bool is_usual;
    switch (*token.p) {
    case 'b':
        out->base64 = true;
        if (!base64_key_fits(out->key)) {
            fault(flags, SLICE_LIT("CLIENT_ERROR error decoding key\r\n"));
        }
        return true;
    case 'q':
        out->quiet = true;
        return true;
    case 'N':
    case 'T':
    case 'R':
        if (!word_to_exptime(value, &i32, &is_usual)) {
            fault(flags, SLICE_LIT("CLIENT_ERROR bad token in command line format\r\n"));
        }
        return true;
    case 'C':
    case 'E':
        if (!word_to_u64(value, &u64)) {
            fault(flags, SLICE_LIT("CLIENT_ERROR bad token in command line format\r\n"));
        }
        return true;
    case 'F':
        if (!word_to_flags(value, &u32) && flags->error.len == 0) {
            fault(flags, REPLY_BAD_FORMAT);
        }
        return true;
    case 'J':
        if (!word_to_u64(value, &u64)) {
            fault(flags, SLICE_LIT("CLIENT_ERROR invalid numeric initial value\r\n"));
        }
        return true;
    case 'D':
        if (!word_to_u64(value, &u64)) {
            fault(flags, SLICE_LIT("CLIENT_ERROR invalid numeric delta value\r\n"));
        }
        return true;
    case 'M':
        if (value.len != 1) {
            fault(flags, SLICE_LIT("CLIENT_ERROR incorrect length for M token\r\n"));
        } else {
            flags->mode = *value.p;
        }
        return true;
    case 'O':
        out->opaque = value;
        flags->opaque_long = token.len > OPAQUE_BYTES_MAX;
        return true;
    default:
        return memchr("kstcfvhulIPLx", *token.p, 13) != NULL;
    }
}

static void take_flags(struct slice args, struct meta_flags *flags, struct request *out)
{
    uint64_t seen[2] = {0, 0}; /* letters are in the second */
    struct slice token;
    while (token_next(&args, &token)) {
        unsigned char letter = (unsigned char)*token.p;
        if (letter >= 127 || (seen[letter >> 6] & letter_bit(*token.p)) != 0) {
            fault(flags, SLICE_LIT("CLIENT_ERROR duplicate flag\r\n"));
            return;
        }
        seen[letter >> 6] |= letter_bit(*token.p);
        out->meta_flags = seen[1];
        if (!take_flag(token, flags, out)) {
            fault(flags, SLICE_LIT("CLIENT_ERROR invalid flag\r\n"));
            return;
        }
    }
}

static size_t count_words(struct slice rest)
{
    struct slice word;
    size_t count = 0;
    while (token_next(&rest, &word)) {
        count++;
    }
    return count;
}

/* Fills key and args. False when there is no key. */
static bool take_key(const struct request_line *line, struct request *out)
{
    struct slice rest = line->rest;
    if (!token_next(&rest, &out->key)) {
        return false;
    }
    out->args = rest;
    out->arg_count = count_words(rest);
    out->meta_flags = 0;
    out->opaque = SLICE_NONE;
    return true;
}

static bool key_fits(const struct request_line *line, const struct request *out)
{
    return !line_has_nul(line) && out->key.len <= KEY_BYTES_MAX;
}

/* me is for people: memcached looks at nothing but a b right behind the key. */
static struct parse_result request_meta_debug(const struct request_line *line, struct request *out)
{
    struct slice rest = out->args, word;
    out->base64 = token_next(&rest, &word) && slice_equal(word, SLICE_LIT("b"));
    if (out->base64 && !base64_key_fits(out->key)) {
        return request_refuse(line, REPLY_BAD_FORMAT, false);
    }
    return request_ok(line);
}

struct parse_result request_meta(const struct request_line *line, struct request *out)
{
    enum verb verb = line->verb->verb;
    if (!take_key(line, out)) {
        return request_refuse(line, verb == VERB_ME ? REPLY_BAD_FORMAT : REPLY_ERROR, false);
    }
    if (!key_fits(line, out)) {
        return request_refuse(line, REPLY_BAD_FORMAT, false);
    }
    if (verb == VERB_ME) {
        return request_meta_debug(line, out);
    }
    if (out->arg_count > META_FLAGS_MAX) {
        return request_refuse(line,
                              verb == VERB_MG
                                  ? SLICE_LIT("CLIENT_ERROR options flags are too long\r\n")
                                  : SLICE_LIT("CLIENT_ERROR options flags too long\r\n"),
                              false);
    }
    struct meta_flags flags = {0};
    take_flags(out->args, &flags, out);
    if (flags.error.len > 0) {
        return request_refuse(
            line,
            verb == VERB_MG ? flags.error : SLICE_LIT("CLIENT_ERROR invalid or duplicate flag\r\n"),
            false);
    }
    if (verb == VERB_MA && flags.mode != 0 && memchr("I+D-", flags.mode, 4) == NULL) {
        return request_refuse(line, SLICE_LIT("CLIENT_ERROR invalid mode for ma M token\r\n"),
                              false);
    }
    if (flags.opaque_long) {
        return request_refuse(line, SLICE_LIT("CLIENT_ERROR opaque token too long\r\n"), false);
    }
    return request_ok(line);
}

struct parse_result request_meta_set(const struct request_line *line, struct request *out)
{
    if (!take_key(line, out)) {
        return request_refuse(line, REPLY_ERROR, false);
    }
    struct slice options = out->args, word;
    size_t len;
    if (!token_next(&options, &word) || !word_to_length(word, &len)) {
        return request_close(line, REPLY_BAD_FORMAT, false);
    }
    if (!key_fits(line, out)) {
        return request_refuse_data(line, REPLY_BAD_FORMAT, false, len);
    }
    if (out->arg_count > META_FLAGS_MAX) {
        return request_refuse_data(line, SLICE_LIT("CLIENT_ERROR options flags too long\r\n"),
                                   false, len);
    }
    struct meta_flags flags = {0};
    take_flags(options, &flags, out);
    if (flags.error.len == 0 && flags.opaque_long) {
        fault(&flags, SLICE_LIT("CLIENT_ERROR opaque token too long\r\n"));
    }
    if (flags.error.len == 0 && flags.mode != 0 && memchr("EAPRS", flags.mode, 5) == NULL) {
        fault(&flags, SLICE_LIT("CLIENT_ERROR invalid mode for ms M token\r\n"));
    }
    if (flags.error.len > 0) {
        return request_refuse_data(line, flags.error, false, len);
    }
    if (len > line->limits->max_value_bytes) {
        return request_refuse_large(line, true, false, len); /* in each of its modes */
    }
    return request_take_data(line, len, false, out);
}
