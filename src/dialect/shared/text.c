/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/text.h"

#include <stdio.h>
#include <stdlib.h>

bool text_next(struct slice *rest, char delimiter, struct slice *item)
{
    while (rest->len > 0) {
        const char *end = memchr(rest->p, delimiter, rest->len);
        *item = slice_take(rest, end != NULL ? (size_t)(end - rest->p) : rest->len);
        if (end != NULL) {
            (void)slice_take(rest, 1);
        }
        if (item->len > 0) {
            return true;
        }
    }
    return false;
}

bool text_has_gaps(struct slice text, char delimiter)
{
    const char pair[2] = {delimiter, delimiter};
    return text.len > 0 &&
           (text.p[0] == delimiter || memmem(text.p, text.len, pair, sizeof pair) != NULL);
}

void text_append(struct block **b, struct slice item, char delimiter)
{
    block_append(b, item.p, item.len);
    block_append(b, &delimiter, 1);
}

void text_append_items(struct block **b, const struct fold *fold, char delimiter)
{
    struct slice item;
    for (uint32_t at = 0; fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item);) {
        text_append(b, item, delimiter);
    }
}

static bool is_sign(char c, struct signs signs)
{
    return c == signs.add || c == signs.delete;
}

bool signed_next(struct slice *rest, struct signs signs, enum entry_op *op, struct slice *item)
{
    if (rest->len == 0) {
        return false;
    }
    const char *p = rest->p, *end = rest->p + rest->len;
    while (p < end && !is_sign(*p, signs)) {
        p++;
    }
    while (p < end) {
        char sign = *p++;
        const char *start = p;
        while (p < end && !is_sign(*p, signs)) {
            p++;
        }
        if (p > start) {
            *op = sign == signs.add ? ENTRY_ADD : ENTRY_DEL;
            *item = slice_make(start, (size_t)(p - start));
            *rest = slice_make(p, (size_t)(end - p));
            return true;
        }
    }
    *rest = slice_make(end, 0);
    return false;
}

void signed_append(struct block **b, enum entry_op op, struct slice item, struct signs signs)
{
    block_append(b, op == ENTRY_ADD ? &signs.add : &signs.delete, 1);
    block_append(b, item.p, item.len);
}

void signed_fold(struct fold *fold, struct slice text, struct signs signs)
{
    enum entry_op op;
    struct slice item;
    while (signed_next(&text, signs, &op, &item)) {
        fold_apply(fold, op, item);
    }
}

void counted_fold(struct fold *fold, struct slice adds, struct slice deletes, char delimiter)
{
    struct counts counts;
    struct slice item;
    counts_init(&counts, deletes, delimiter);
    while (text_next(&adds, delimiter, &item)) {
        uint32_t *left = counts_find(&counts, item);
        if (left != NULL && *left > 0) {
            --*left;
        } else {
            fold_apply(fold, ENTRY_ADD, item);
        }
    }
    counts_fini(&counts);
}

char text_mark_sign(char delimiter)
{
    return delimiter == '@' ? '~' : '@';
}

bool text_is_mark(struct slice item, char delimiter)
{
    bool is = item.len == TEXT_MARK_BYTES && item.p[0] == text_mark_sign(delimiter);
    for (size_t i = 1; is && i < item.len; i++) {
        is = memchr("0123456789abcdef", item.p[i], 16) != NULL;
    }
    return is;
}

void text_make_mark(char out[TEXT_MARK_BYTES], uint64_t number, char delimiter)
{
    char text[TEXT_MARK_BYTES + 1];
    (void)snprintf(text, sizeof text, "%c%016llx", text_mark_sign(delimiter),
                   (unsigned long long)number);
    memcpy(out, text, TEXT_MARK_BYTES);
}

/* ---- counts ---- */

static struct count *find_place(const struct counts *counts, struct slice item)
{
    uint32_t mask = counts->size - 1;
    for (uint32_t i = item_hash(item) & mask;; i = (i + 1) & mask) {
        struct count *count = &counts->table[i];
        if (count->item.len == 0 || slice_equal(count->item, item)) {
            return count;
        }
    }
}

static void grow(struct counts *counts)
{
    struct counts old = *counts;
    counts->size = old.size == 0 ? 64 : old.size * 2;
    counts->table = calloc(counts->size, sizeof *counts->table);
    CHECK(counts->table != NULL);
    for (uint32_t i = 0; i < old.size; i++) {
        if (old.table[i].item.len > 0) {
            *find_place(counts, old.table[i].item) = old.table[i];
        }
    }
    free(old.table);
}

void counts_init(struct counts *counts, struct slice text, char delimiter)
{
    struct slice item;
    *counts = (struct counts){0};
    while (text_next(&text, delimiter, &item)) {
        if (counts->used * 2 >= counts->size) {
            grow(counts);
        }
        struct count *count = find_place(counts, item);
        counts->used += count->times == 0;
        count->item = item;
        count->times++;
    }
}

void counts_fini(struct counts *counts)
{
    free(counts->table);
    *counts = (struct counts){0};
}

uint32_t *counts_find(const struct counts *counts, struct slice item)
{
    if (counts->size == 0) {
        return NULL;
    }
    struct count *count = find_place(counts, item);
    return count->item.len > 0 ? &count->times : NULL;
}
