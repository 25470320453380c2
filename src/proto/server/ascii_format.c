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

/* As short as can be, and with nothing looked up: a `get` of a client is one. */
static size_t format_fetch(const struct be_operation *op, char *out)
{
    char *to = put(out, "mg ");
    memcpy(to, op->key.p, op->key.len);
    to = put(to + op->key.len, " k v f");
    if (UNLIKELY(op->asks_cas)) {
        to = put(to, " c");
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

size_t ascii_format(const struct be_operation *op, char out[ASCII_LINE_MAX])
{
    CHECK(op->key.len > 0 && op->key.len <= KEY_BYTES_MAX);
    if (op->verb == BE_FETCH || op->verb == BE_GAT) {
        return format_fetch(op, out);
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
