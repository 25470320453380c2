/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two texts that the dialects' items hold, as pure functions:
 *
 *     user-1234,user-222,        delimited: a delimiter behind each item
 *     +1234+222+987-222          signed: a sign in front of each item
 */
#ifndef DIALECT_SHARED_TEXT_H
#define DIALECT_SHARED_TEXT_H

#include "list/format/fold.h"

/* Takes the next item from a delimited text. Passes over empty ones; the last item needs no
 * delimiter. False at the end. */
bool text_next(struct slice *rest, char delimiter, struct slice *item);
/* Does it have delimiters that end no item? */
bool text_has_gaps(struct slice text, char delimiter);
/* Appends the item and its delimiter. */
void text_append(struct block **b, struct slice item, char delimiter);
/* The same of all items that are in the fold, in their order. */
void text_append_items(struct block **b, const struct fold *fold, char delimiter);

struct signs {
    char add, delete;
};
/* Takes the next item from a signed text, and its op (ENTRY_ADD or ENTRY_DEL). Passes over what
 * stands before the first sign, and signs without an item. False at the end. */
bool signed_next(struct slice *rest, struct signs signs, enum entry_op *op, struct slice *item);
void signed_append(struct block **b, enum entry_op op, struct slice item, struct signs signs);

/* Applies a signed text: the later sign of an item wins, and one that was deleted and added again
 * stands where it was added again. */
void signed_fold(struct fold *fold, struct slice text, struct signs signs);

/* Applies delimited texts whose items are counted: an item that was added m times and deleted k
 * times is in when m > k; the first k of its places are void. */
void counted_fold(struct fold *fold, struct slice adds, struct slice deletes, char delimiter);

/* A mark, which a folding leaves among the items of a delimited text: "@" and 16 hexadecimal
 * digits; "~" where @ is the delimiter. */
#define TEXT_MARK_BYTES 17
char text_mark_sign(char delimiter);
bool text_is_mark(struct slice item, char delimiter);
void text_make_mark(char out[TEXT_MARK_BYTES], uint64_t number, char delimiter);

/* How often items occur. */
struct counts {
    struct count {
        struct slice item; /* lives in the text */
        uint32_t times;
    } * table;     /* open addressing */
    uint32_t size; /* a power of two, or 0 */
    uint32_t used;
};
void counts_init(struct counts *counts, struct slice text, char delimiter);
void counts_fini(struct counts *counts);
/* The item's count, or NULL when it does not occur. Valid until counts_fini. */
uint32_t *counts_find(const struct counts *counts, struct slice item);

#endif
