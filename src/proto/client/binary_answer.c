/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/binary_answer.h"

#include "base/check.h"

char *binary_answer_put(char *to, const struct binary_call *call, const struct binary_answer *a)
{
    size_t extras_len = a->has_flags ? 4 : 0;
    CHECK(a->key.len <= KEY_BYTES_MAX);
    *to++ = (char)BINARY_MAGIC_ANSWER;
    *to++ = (char)call->opcode;
    to = packet_put_u16(to, (uint16_t)a->key.len);
    *to++ = (char)extras_len;
    *to++ = 0; /* the datatype: plain bytes */
    to = packet_put_u16(to, (uint16_t)a->status);
    to = packet_put_u32(to, (uint32_t)(extras_len + a->key.len + a->value_len));
    to = packet_put_u32(to, call->opaque);
    to = packet_put_u64(to, a->cas);
    if (a->has_flags) {
        to = packet_put_u32(to, a->flags);
    }
    return packet_put(to, a->key);
}

struct slice binary_answer_text(enum binary_status status)
{
    switch (status) {
    case BINARY_STATUS_NOT_FOUND:
        return SLICE_LIT("Not found");
    case BINARY_STATUS_EXISTS:
        return SLICE_LIT("Data exists for key.");
    case BINARY_STATUS_TOO_LARGE:
        return SLICE_LIT("Too large.");
    case BINARY_STATUS_INVALID:
        return SLICE_LIT("Invalid arguments");
    case BINARY_STATUS_NOT_STORED:
        return SLICE_LIT("Not stored.");
    case BINARY_STATUS_NOT_A_NUMBER:
        return SLICE_LIT("Non-numeric server-side value for incr or decr");
    case BINARY_STATUS_AUTH_ERROR:
        return SLICE_LIT("Auth failure.");
    case BINARY_STATUS_UNKNOWN_COMMAND:
        return SLICE_LIT("Unknown command");
    case BINARY_STATUS_NO_MEMORY:
        return SLICE_LIT("Out of memory");
    default:
        return SLICE_NONE;
    }
}

enum binary_status binary_not_stored(uint8_t opcode)
{
    switch (opcode) {
    case BINARY_ADD:
    case BINARY_ADDQ:
        return BINARY_STATUS_EXISTS;
    case BINARY_REPLACE:
    case BINARY_REPLACEQ:
        return BINARY_STATUS_NOT_FOUND;
    default:
        return BINARY_STATUS_NOT_STORED;
    }
}

/* Whole lines. */
static const struct {
    struct slice line;
    enum binary_status status;
} lines[] = {
    {SLICE_LIT("STORED"), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("DELETED"), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("TOUCHED"), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("OK"), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("MN"), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("RESET"), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("NOT_FOUND"), BINARY_STATUS_NOT_FOUND},
    {SLICE_LIT("END"), BINARY_STATUS_NOT_FOUND},
    {SLICE_LIT("EXISTS"), BINARY_STATUS_EXISTS},
    {SLICE_LIT("ERROR"), BINARY_STATUS_UNKNOWN_COMMAND},
    {SLICE_LIT("CLIENT_ERROR unauthenticated"), BINARY_STATUS_AUTH_ERROR},
    {SLICE_LIT("CLIENT_ERROR authentication failure"), BINARY_STATUS_AUTH_ERROR},
    {SLICE_LIT("CLIENT_ERROR cannot increment or decrement non-numeric value"),
     BINARY_STATUS_NOT_A_NUMBER},
    {SLICE_LIT("SERVER_ERROR object too large for cache"), BINARY_STATUS_TOO_LARGE},
    {SLICE_LIT("SERVER_ERROR out of memory storing object"), BINARY_STATUS_NO_MEMORY},
};

/* Begins of lines: what follows is the text. */
static const struct {
    struct slice begin;
    enum binary_status status;
} begins[] = {
    {SLICE_LIT("VERSION "), BINARY_STATUS_SUCCESS},
    {SLICE_LIT("CLIENT_ERROR "), BINARY_STATUS_INVALID},
    {SLICE_LIT("SERVER_ERROR "), BINARY_STATUS_TEMPORARY},
    {SLICE_LIT("ERROR "), BINARY_STATUS_TEMPORARY},
};

/* Of errors of which clients know more than that there was one. */
static enum binary_status refine(enum binary_status status, struct slice text)
{
    static const char unknown[] = "outcome unknown";
    if (status != BINARY_STATUS_TEMPORARY) {
        return status;
    }
    if (slice_starts_with(text, SLICE_LIT("object too large"))) {
        return BINARY_STATUS_TOO_LARGE;
    }
    if (slice_starts_with(text, SLICE_LIT("out of memory"))) {
        return BINARY_STATUS_NO_MEMORY;
    }
    if (slice_starts_with(text, SLICE_LIT("busy"))) {
        return BINARY_STATUS_BUSY;
    }
    return memmem(text.p, text.len, unknown, sizeof unknown - 1) != NULL ? BINARY_STATUS_INTERNAL
                                                                         : status;
}

enum binary_status binary_answer_read(const struct binary_call *call, struct slice line,
                                      struct slice *text)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (slice_equal(line, lines[i].line)) {
            *text = binary_answer_text(lines[i].status);
            return lines[i].status;
        }
    }
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (slice_starts_with(line, begins[i].begin)) {
            (void)slice_take(&line, begins[i].begin.len);
            *text = line;
            return refine(begins[i].status, line);
        }
    }
    enum binary_status status = slice_equal(line, SLICE_LIT("NOT_STORED"))
                                    ? binary_not_stored(call->opcode)
                                    : BINARY_STATUS_INTERNAL;
    *text = binary_answer_text(status);
    return status;
}

static bool is_read(uint8_t opcode)
{
    return opcode == BINARY_GETQ || opcode == BINARY_GETKQ || opcode == BINARY_GATQ ||
           opcode == BINARY_GATKQ;
}

bool binary_answer_is_hidden(const struct binary_call *call, enum binary_status status)
{
    enum binary_status usual =
        is_read(call->opcode) ? BINARY_STATUS_NOT_FOUND : BINARY_STATUS_SUCCESS;
    return call->is_quiet && status == usual;
}
