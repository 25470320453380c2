/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/list_format.h"

void list_format_item(struct chain *out, struct slice key, struct slice item)
{
    char digits[24];
    size_t n = format_u64(digits, item.len);
    chain_copy(out, "ITEM ", 5);
    chain_copy_slice(out, key);
    chain_copy(out, " ", 1);
    chain_copy(out, digits, n);
    chain_copy(out, "\r\n", 2);
    chain_copy_slice(out, item);
    chain_copy(out, "\r\n", 2);
}
