/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/entry.h"

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
