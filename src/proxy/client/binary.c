/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/client/binary.h"

#include "base/check.h"

static void emit(const struct binary_call *call, const struct binary_answer *a, struct chain *out)
{
    char *start = chain_reserve(out, BINARY_HEADER_BYTES + 4 + a->key.len);
    chain_commit(out, (size_t)(binary_answer_put(start, call, a) - start));
}

void binary_emit_text(const struct binary_call *call, enum binary_status status, struct slice text,
                      struct chain *out)
{
    struct binary_answer a = {.status = status, .value_len = text.len};
    if (binary_answer_is_hidden(call, status)) {
        return;
    }
    emit(call, &a, out);
    chain_copy_slice(out, text);
}

void binary_emit_status(const struct request *r, enum binary_status status, uint64_t cas,
                        struct chain *out)
{
    const struct binary_call *call = &r->binary;
    if (binary_answer_is_hidden(call, status)) {
        return;
    }
    /* A miss of these has the key in place of words. */
    bool has_key = status == BINARY_STATUS_NOT_FOUND && binary_names_key(call->opcode);
    struct slice text = has_key ? SLICE_NONE : binary_answer_text(status);
    struct binary_answer a = {.status = status,
                              .has_flags =
                                  status == BINARY_STATUS_SUCCESS && call->opcode == BINARY_TOUCH,
                              .cas = cas,
                              .key = has_key ? r->key : SLICE_NONE,
                              .value_len = text.len};
    emit(call, &a, out);
    chain_copy_slice(out, text);
}

void binary_emit_hit(const struct request *r, uint32_t flags, uint64_t cas, size_t value_len,
                     struct chain *out)
{
    struct binary_answer a = {.has_flags = true,
                              .flags = flags,
                              .cas = cas,
                              .key = binary_names_key(r->binary.opcode) ? r->key : SLICE_NONE,
                              .value_len = value_len};
    emit(&r->binary, &a, out);
}

void binary_emit_number(const struct request *r, uint64_t number, uint64_t cas, struct chain *out)
{
    char digits[8];
    struct binary_answer a = {.cas = cas, .value_len = sizeof digits};
    if (binary_answer_is_hidden(&r->binary, BINARY_STATUS_SUCCESS)) {
        return;
    }
    (void)packet_put_u64(digits, number);
    emit(&r->binary, &a, out);
    chain_copy(out, digits, sizeof digits);
}

void binary_emit_line(const struct request *r, struct slice line, struct chain *out)
{
    struct slice text;
    enum binary_status status = binary_answer_read(&r->binary, line, &text);
    if (status == BINARY_STATUS_SUCCESS || status == BINARY_STATUS_NOT_FOUND) {
        binary_emit_status(r, status, 0, out);
    } else {
        binary_emit_text(&r->binary, status, text, out);
    }
}

/* --- answers of the proxy itself --- */

/* "NAME VALUE" of a statistic. */
static void translate_figure(const struct binary_call *call, struct slice line, struct chain *out)
{
    const char *blank = line.len == 0 ? NULL : memchr(line.p, ' ', line.len);
    struct slice name = slice_take(&line, blank == NULL ? line.len : (size_t)(blank - line.p));
    if (line.len > 0) {
        (void)slice_take(&line, 1);
    }
    name.len = name.len > KEY_BYTES_MAX ? KEY_BYTES_MAX : name.len;
    struct binary_answer a = {.key = name, .value_len = line.len};
    emit(call, &a, out);
    chain_copy_slice(out, line);
}

static void translate_line(const struct binary_call *call, struct slice line, struct chain *out)
{
    struct slice text;
    bool is_stat = call->opcode == BINARY_STAT;
    if (is_stat && slice_starts_with(line, SLICE_LIT("STAT "))) {
        (void)slice_take(&line, 5);
        translate_figure(call, line, out);
        return;
    }
    enum binary_status status = binary_answer_read(call, line, &text);
    if (is_stat && slice_equal(line, SLICE_LIT("END"))) {
        status = BINARY_STATUS_SUCCESS; /* an empty name ends them */
        text = SLICE_NONE;
    } else if (is_stat && status == BINARY_STATUS_UNKNOWN_COMMAND) {
        status = BINARY_STATUS_NOT_FOUND; /* there are no such statistics */
        text = binary_answer_text(status);
    }
    binary_emit_text(call, status, text, out);
}

void binary_translate(const struct binary_call *call, struct slice text, struct chain *out)
{
    while (text.len > 0) {
        const char *end = memmem(text.p, text.len, "\r\n", 2);
        CHECK(end != NULL);
        struct slice line = slice_take(&text, (size_t)(end - text.p));
        (void)slice_take(&text, 2);
        translate_line(call, line, out);
    }
}
