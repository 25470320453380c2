/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data block of an ltx: a line for each change or condition, ended by LF or CRLF. Words stand
 * between blanks, the first one as in TX_OP_TABLE, then a list's key, then items:
 *
 *     ladd KEY ITEM...
 *     laddb KEY BYTES        and a line of BYTES bytes, which are one item. So do all but lset
 */
#ifndef PROTO_CLIENT_TX_BLOCK_H
#define PROTO_CLIENT_TX_BLOCK_H

#include <stdbool.h>

#include "base/slice.h"
#include "proto/tx_lines.h"

struct tx_line {
    enum tx_op op;
    struct slice key;   /* one that a list may have */
    struct slice items; /* walk it with tx_line_next; there are none only of TX_OP_SET */
    bool is_one;        /* items is one item, of any bytes, maybe none: laddb and its like */
};
/* Takes the line's next item; false when there is none. */
bool tx_line_next(struct tx_line *line, struct slice *item);

/* The lines, one after the other:
 *
 *     tx_block_begin(&b, data);
 *     while (tx_block_next(&b, &line)) ...
 *     b.fault: what is wrong with line b.line, in words, or NULL
 */
struct tx_block {
    struct slice rest;
    size_t line;  /* the number of the last one, counted from 1; items that hold line ends, and the
                     lines that such items end, count as well */
    size_t ended; /* line ends before rest */
    const char *fault;
};
void tx_block_begin(struct tx_block *b, struct slice data);
bool tx_block_next(struct tx_block *b, struct tx_line *line);

#endif
