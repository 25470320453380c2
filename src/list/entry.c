/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/entry.h"

/* Digits of the longest length that is accepted: no item comes near 10 MB. */
#define LENGTH_DIGITS_MAX 7

static bool op_known(char op)
{
    return op == ENTRY_ADD || op == ENTRY_DEL || op == ENTRY_READD || op == ENTRY_CLEAR ||
           op == ENTRY_ANNOUNCE;
}

enum entry_status entry_next(struct slice *rest, struct entry *out)
{
    const char *p = rest->p;
    size_t len = rest->len;
    if (len == 0) {
        return ENTRY_END;
    }
    if (!op_known(p[0])) {
        return ENTRY_MALFORMED;
    }
    size_t i = 1;
    size_t n = 0;
    while (i < len && i <= LENGTH_DIGITS_MAX && (unsigned char)(p[i] - '0') <= 9) {
        n = n * 10 + (size_t)(p[i] - '0');
        i++;
    }
    if (i == 1 || i >= len || p[i] != ':' || len - i - 1 < n) {
        return ENTRY_MALFORMED;
    }
    out->op = p[0];
    out->bytes = slice_make(p + i + 1, n);
    rest->p += i + 1 + n;
    rest->len -= i + 1 + n;
    return ENTRY_OK;
}

size_t entry_bytes(size_t len)
{
    size_t digits = 1;
    for (size_t n = len; n >= 10; n /= 10) {
        digits++;
    }
    return 2 + digits + len;
}

void entry_append(struct block **b, enum entry_op op, struct slice bytes)
{
    char prefix[24];
    prefix[0] = (char)op;
    size_t n = 1 + format_u64(prefix + 1, bytes.len);
    prefix[n++] = ':';
    block_append(b, prefix, n);
    block_append(b, bytes.p, bytes.len);
}
