/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/ascii_format.h"

#include "base/check.h"

static const struct {
    const char *verb; /* in front of the key */
    const char *rest; /* behind the key, or NULL: numbers follow */
} forms[] = {
    [BE_GET] = {"mg ", " k v f c t\r\n"},
    [BE_SIZE] = {"mg ", " k s c\r\n"},
    [BE_PROBE] = {"mg ", " k\r\n"},
    [BE_TIME] = {"mg ", " k t c\r\n"},
    [BE_ADD] = {"add ", NULL},
    [BE_REPLACE] = {"replace ", NULL},
    [BE_SET] = {"set ", NULL},
    [BE_APPEND] = {"append ", NULL},
    [BE_PREPEND] = {"prepend ", NULL},
    [BE_INCR] = {"incr ", NULL},
    [BE_CAS] = {"cas ", NULL},
    [BE_CAS_DELETE] = {"cas ", NULL},
    [BE_DELETE] = {"delete ", "\r\n"},
    [BE_TOUCH] = {"touch ", NULL},
    [BE_DECR] = {"decr ", NULL},
};

static inline char *put(char *to, const char *text)
{
    size_t len = strlen(text);
    memcpy(to, text, len);
    return to + len;
}

static char *put_number(char *to, uint64_t n)
{
    *to++ = ' ';
    return to + format_u64(to, n);
}

static char *put_delta(char *to, const struct be_operation *op)
{
    return put(put_number(to, op->delta), "\r\n");
}

char *ascii_put_exptime(char *to, int32_t exptime)
{
    return exptime < 0 ? put(to, "-1") : to + format_u64(to, (uint64_t)exptime);
}

/* The key of an operation that asks for a CAS number; in base64 it needs flag b behind it. */
static char *put_key(char *to, const struct be_operation *op)
{
    if (UNLIKELY(op->odd_key)) {
        return to + key_encode_base64(op->key, to);
    }
    memcpy(to, op->key.p, op->key.len);
    return to + op->key.len;
}

static char *put_key_flag(char *to, const struct be_operation *op)
{
    return op->odd_key ? put(to, " b") : to;
}

/* As short as can be, and with nothing looked up: a `get` of a client is one. */
static size_t format_fetch(const struct be_operation *op, char *out)
{
    char *to = put(out, "mg ");
    if (UNLIKELY(op->asks_cas)) {
        /* A key that is answered as it was stored might break the line. */
        to = put(put_key(to, op), op->odd_key ? " b v f c" : " k v f c");
    } else {
        memcpy(to, op->key.p, op->key.len);
        to = put(to + op->key.len, " k v f");
    }
    if (UNLIKELY(op->verb == BE_GAT)) {
        to = ascii_put_exptime(put(to, " T"), op->exptime);
    }
    return (size_t)(put(to, "\r\n") - out);
}

static char *put_storage(char *to, const struct be_operation *op)
{
    bool removes = op->verb == BE_CAS_DELETE;
    /* A negative exptime is over at once: the classic protocol's conditional delete. */
    int32_t exptime = removes ? -1 : op->exptime;
    to = put_number(to, removes ? 0 : op->flags);
    to = ascii_put_exptime(put(to, " "), exptime);
    to = put_number(to, removes ? 0 : op->value.len);
    if (op->verb == BE_CAS || removes) {
        to = put_number(to, op->cas);
    }
    return put(to, removes ? "\r\n\r\n" : "\r\n");
}

static char *put_flag(char *to, const char *letter, uint64_t n)
{
    to = put(to, letter);
    return to + format_u64(to, n);
}

static char mode_of(enum be_verb verb)
{
    return verb == BE_ADD       ? 'E'
           : verb == BE_REPLACE ? 'R'
           : verb == BE_APPEND  ? 'A'
           : verb == BE_PREPEND ? 'P'
                                : 'S';
}

static char *put_meta_set(char *to, const struct be_operation *op)
{
    bool extends = op->verb == BE_APPEND || op->verb == BE_PREPEND;
    char mode[] = {' ', 'M', mode_of(op->verb), '\0'};
    /* The length stands before all flags. */
    to = put_key_flag(put(put_number(put_key(to, op), op->value.len), mode), op);
    if (!extends) {
        to = ascii_put_exptime(put(put_flag(to, " F", op->flags), " T"), op->exptime);
    }
    return op->verb == BE_CAS || op->with_cas ? put_flag(to, " C", be_condition(op)) : to;
}

static char *put_meta_arithmetic(char *to, const struct be_operation *op)
{
    to = put_flag(put(to, op->verb == BE_DECR ? " v MD" : " v"), " D", op->delta);
    if (op->creates) {
        to = put_flag(ascii_put_exptime(put(to, " N"), op->exptime), " J", op->initial);
    }
    return op->with_cas ? put_flag(to, " C", be_condition(op)) : to;
}

/* A change whose answer has the item's CAS number: a meta command. */
static size_t format_meta(const struct be_operation *op, char *out)
{
    bool counts = op->verb == BE_INCR || op->verb == BE_DECR;
    bool deletes = op->verb == BE_DELETE || op->verb == BE_CAS_DELETE;
    bool touches = op->verb == BE_TOUCH;
    char *to = put(out, counts ? "ma " : deletes ? "md " : touches ? "mg " : "ms ");
    if (!counts && !deletes && !touches) {
        return (size_t)(put(put_meta_set(to, op), " c\r\n") - out);
    }
    to = put_key_flag(put_key(to, op), op);
    if (deletes) {
        to = op->verb == BE_CAS_DELETE ? put_flag(to, " C", be_condition(op)) : to;
    } else if (touches) {
        to = ascii_put_exptime(put(to, op->odd_key ? " f c T" : " k f c T"), op->exptime);
    } else {
        to = put(put_meta_arithmetic(to, op), " c");
    }
    return (size_t)(put(to, "\r\n") - out);
}

size_t ascii_format(const struct be_operation *op, char out[ASCII_LINE_MAX])
{
    CHECK(op->key.len > 0 && op->key.len <= KEY_BYTES_MAX);
    if (op->verb == BE_FETCH || op->verb == BE_GAT) {
        return format_fetch(op, out);
    }
    if (UNLIKELY(op->asks_cas) && be_changes(op->verb)) {
        return format_meta(op, out);
    }
    char *to = put(out, forms[op->verb].verb);
    memcpy(to, op->key.p, op->key.len);
    to += op->key.len;
    if (forms[op->verb].rest != NULL) {
        to = put(to, forms[op->verb].rest);
    } else if (op->verb == BE_INCR || op->verb == BE_DECR) {
        to = put_delta(to, op);
    } else if (op->verb == BE_TOUCH) {
        to = put(ascii_put_exptime(put(to, " "), op->exptime), "\r\n");
    } else {
        to = put_storage(to, op);
    }
    return (size_t)(to - out);
}
