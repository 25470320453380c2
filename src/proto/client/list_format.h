/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pieces of list answers that the engine writes itself while it streams a list, and the same
 * when a client sends them back as a data block.
 */
#ifndef PROTO_CLIENT_LIST_FORMAT_H
#define PROTO_CLIENT_LIST_FORMAT_H

#include "base/chain.h"
#include "base/slice.h"

/* Appends "ITEM KEY BYTES\r\n" item "\r\n". */
void list_format_item(struct chain *out, struct slice key, struct slice item);

/* The items of a data block, one after the other:
 *
 *     item_block_begin(&b, data, delimiter);
 *     while (item_block_next(&b, &item)) ...        empty ones as well
 *     b.bad: it ended early, at what is no ITEM line; b.rest begins there
 */
struct item_block {
    struct slice rest;
    int delimiter;
    bool more, bad;
};
/* delimiter: of joined items, of which one at either end of the block is passed over; -1: the block
 * holds ITEM lines, of any key, and may end in END. */
void item_block_begin(struct item_block *b, struct slice data, int delimiter);
bool item_block_next(struct item_block *b, struct slice *item);

#endif
