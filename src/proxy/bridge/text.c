/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/bridge/text.h"

size_t bridge_joined_count(struct slice value, char delimiter, bool *whole)
{
    struct item_block block;
    struct slice item;
    size_t count = 0;
    *whole = true;
    for (item_block_begin(&block, value, delimiter); item_block_next(&block, &item); count++) {
        *whole = *whole && item.len > 0;
    }
    return count;
}

size_t bridge_signed_count(struct slice value, struct signs signs, bool *whole)
{
    size_t count = 0, bytes = 0;
    enum entry_op op;
    struct slice rest = value, item;
    while (signed_next(&rest, signs, &op, &item)) {
        bytes += 1 + item.len;
        count++;
    }
    *whole = bytes == value.len;
    return count;
}
