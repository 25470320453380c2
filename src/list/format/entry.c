/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/entry.h"

enum entry_status entry_next_any(struct slice *rest, struct entry *out)
{
    if (rest->len == 0) {
        return ENTRY_END;
    }
    const char *p = rest->p;
    const char *end = p + rest->len;
    if (!entry_op_known(*p)) {
        return ENTRY_MALFORMED;
    }
    const char *digits = ++p;
    size_t n = 0;
    for (unsigned digit; p < end && (digit = (unsigned char)*p - (unsigned)'0') <= 9; p++) {
        n = n * 10 + digit;
        if (p - digits == ENTRY_DIGITS_MAX) {
            return ENTRY_MALFORMED;
        }
    }
    if (p == digits || p == end || *p != ':' || (size_t)(end - p) <= n) {
        return ENTRY_MALFORMED;
    }
    out->op = rest->p[0];
    out->bytes = slice_make(p + 1, n);
    rest->p = p + 1 + n;
    rest->len = (size_t)(end - rest->p);
    return ENTRY_OK;
}

void entry_append(struct block **b, enum entry_op op, struct slice bytes)
{
    char *start = block_reserve(b, entry_bytes(bytes.len));
    char *p = start;
    *p++ = (char)op;
    p += format_u64(p, bytes.len);
    *p++ = ':';
    if (bytes.len > 0) {
        memcpy(p, bytes.p, bytes.len);
    }
    (*b)->used += (size_t)(p - start) + bytes.len;
}
