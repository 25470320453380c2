/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/entry.h"

/* Takes "SECOND:" off the entry's bytes; false when it is not there. */
static bool take_second(struct entry *entry)
{
    const char *p = entry->bytes.p;
    uint64_t second = 0;
    size_t n = 0;
    for (unsigned digit;
         n < entry->bytes.len && (digit = (unsigned char)p[n] - (unsigned)'0') <= 9 &&
         second <= ENTRY_UNTIL_MAX_S;
         n++) {
        second = second * 10 + digit;
    }
    /* No zero in front: each second is written in one way. */
    if (n == 0 || n == entry->bytes.len || p[n] != ':' || p[0] == '0' ||
        second > ENTRY_UNTIL_MAX_S) {
        return false;
    }
    entry->until_s = (uint32_t)second;
    (void)slice_take(&entry->bytes, n + 1);
    return true;
}

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
    out->until_s = 0;
    out->bytes = slice_make(p + 1, n);
    if (out->op == ENTRY_TIMED && !take_second(out)) {
        return ENTRY_MALFORMED;
    }
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

void entry_put(struct block **b, const struct entry *entry)
{
    if (entry->op != ENTRY_TIMED) {
        entry_append(b, (enum entry_op)entry->op, entry->bytes);
        return;
    }
    char second[21];
    size_t digits = format_u64(second, entry->until_s), len = digits + 1 + entry->bytes.len;
    char *start = block_reserve(b, entry_bytes(len));
    char *p = start;
    *p++ = ENTRY_TIMED;
    p += format_u64(p, len);
    *p++ = ':';
    memcpy(p, second, digits);
    p += digits;
    *p++ = ':';
    if (entry->bytes.len > 0) {
        memcpy(p, entry->bytes.p, entry->bytes.len);
    }
    (*b)->used += (size_t)(p - start) + entry->bytes.len;
}
