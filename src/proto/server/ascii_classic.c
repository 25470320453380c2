/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/server/ascii_classic.h"

#define END "END\r\n"
#define END_BYTES (sizeof END - 1)

static bool asks_cas(const struct be_operation *op)
{
    return op->verb == BE_GET || op->verb == BE_SIZE || (op->verb != BE_PROBE && op->asks_cas);
}

static char *put(char *to, const char *p, size_t len)
{
    memcpy(to, p, len);
    return to + len;
}

size_t ascii_classic_format(const struct be_operation *op, char out[ASCII_LINE_MAX])
{
    bool touches = op->verb == BE_GAT;
    char *to = put(out, touches ? "gat" : "get", 3);
    CHECK(ascii_classic_reads(op->verb) && op->key.len > 0 && op->key.len <= KEY_BYTES_MAX);
    if (asks_cas(op)) {
        *to++ = 's';
    }
    *to++ = ' ';
    if (touches) {
        to = ascii_put_exptime(to, op->exptime);
        *to++ = ' ';
    }
    to = put(to, op->key.p, op->key.len);
    return (size_t)(put(to, "\r\n", 2) - out);
}

/* What is left of a hit for the operation. */
static void keep(const struct be_operation *op, struct be_reply *reply)
{
    reply->status = BE_HIT;
    reply->size_bytes = reply->value.len;
    if (op->verb == BE_SIZE || op->verb == BE_PROBE) {
        reply->has_value = false;
        reply->value = SLICE_NONE;
    }
}

enum ascii_classic_result ascii_classic_read(const struct be_operation *op, struct slice bytes,
                                             size_t max_value, struct be_reply *reply, size_t *size)
{
    struct be_operation piece = {.verb = BE_LINE_GET, .asks_cas = asks_cas(op)};
    enum be_status error;
    *reply = (struct be_reply){.ttl_s = -1, .no_times = op->verb == BE_GET};
    enum ascii_parse_result result = ascii_parse(&piece, bytes, max_value, reply, size);
    if (result == ASCII_PARSE_GARBAGE) {
        return ASCII_CLASSIC_GARBAGE;
    }
    if (result == ASCII_PARSE_MORE) {
        *size += *size == 0 ? 0 : END_BYTES;
        return ASCII_CLASSIC_MORE;
    }
    if (!reply->has_value) {
        reply->status = BE_MISS;
        return slice_equal(reply->line, SLICE_LIT("END")) ? ASCII_CLASSIC_READ
               : ascii_error_read(reply->line, &error)    ? ASCII_CLASSIC_ERROR
                                                          : ASCII_CLASSIC_MISFIT;
    }
    struct slice rest = slice_make(bytes.p + *size, bytes.len - *size);
    size_t have = rest.len < END_BYTES ? rest.len : END_BYTES;
    *size += END_BYTES;
    if (have > 0 && memcmp(rest.p, END, have) != 0) {
        return ASCII_CLASSIC_GARBAGE;
    }
    if (have < END_BYTES) {
        return ASCII_CLASSIC_MORE;
    }
    if (!slice_equal(reply->line, op->key)) {
        return ASCII_CLASSIC_MISFIT;
    }
    keep(op, reply);
    return ASCII_CLASSIC_READ;
}
