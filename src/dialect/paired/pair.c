/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/paired/pair.h"

/* Takes the last mark of the additions, and what stands before it. */
static void read_adds(struct pair *pair)
{
    struct slice rest = pair->adds;
    const char *at;
    while (rest.len > 0 &&
           (at = memrchr(rest.p, text_mark_sign(pair->delimiter), rest.len)) != NULL) {
        size_t before = (size_t)(at - rest.p), left = pair->adds.len - before;
        struct slice item = slice_make(at, left < TEXT_MARK_BYTES ? left : TEXT_MARK_BYTES);
        bool whole = (before == 0 || at[-1] == pair->delimiter) &&
                     (left <= TEXT_MARK_BYTES || at[TEXT_MARK_BYTES] == pair->delimiter);
        rest.len = before;
        if (whole && text_is_mark(item, pair->delimiter)) {
            pair->mark = item;
            pair->base = rest;
            return;
        }
    }
}

/* Finds the mark of the additions among the deletions; what stands behind it is pending. */
static void find_mark(struct pair *pair)
{
    struct slice rest = pair->deletes, item;
    while (pair->mark.len > 0 && text_next(&rest, pair->delimiter, &item)) {
        if (slice_equal(item, pair->mark)) {
            pair->mark_there = true;
            pair->cut = (size_t)(item.p - pair->deletes.p);
            pair->last = item;
            pair->pending = rest;
            return;
        }
    }
    pair->pending = pair->deletes;
}

void pair_read(struct pair *pair, struct slice adds, struct slice deletes, char delimiter)
{
    *pair = (struct pair){.delimiter = delimiter, .adds = adds, .deletes = deletes};
    read_adds(pair);
    find_mark(pair);
    struct slice rest = pair->pending, item;
    while (text_next(&rest, delimiter, &item)) {
        if (text_is_mark(item, delimiter)) {
            pair->strays++;
            pair->last = item;
        } else {
            pair->pending_bytes += item.len + 1;
            pair->last = SLICE_NONE;
        }
    }
    if (!pair->mark_there && pair->pending_bytes == 0) {
        /* Only marks are left of a list that was dropped, whose deletions may be about to be
         * removed. */
        pair->strays = 0;
        pair->last = SLICE_NONE;
    }
}

bool pair_is_torn(const struct pair *pair)
{
    struct slice rest = pair->deletes, item;
    if (pair->mark.len > 0) {
        return !pair->mark_there;
    }
    return text_next(&rest, pair->delimiter, &item) && text_is_mark(item, pair->delimiter);
}

size_t pair_find(const struct pair *pair, struct slice mark)
{
    struct slice rest = pair->pending, item;
    while (text_next(&rest, pair->delimiter, &item)) {
        if (slice_equal(item, mark)) {
            return (size_t)(item.p - pair->deletes.p);
        }
    }
    bool own = pair->mark_there && slice_equal(mark, pair->mark);
    return own ? pair->cut : SIZE_MAX;
}

/* The pending deletions that stand before that byte of all deletions. */
static struct slice pending_until(const struct pair *pair, size_t until)
{
    size_t from = (size_t)(pair->pending.p - pair->deletes.p);
    if (pair->pending.len == 0 || until <= from) {
        return SLICE_NONE;
    }
    size_t len = until - from;
    return slice_make(pair->pending.p, len < pair->pending.len ? len : pair->pending.len);
}

void pair_fold(const struct pair *pair, size_t until, struct fold *fold)
{
    struct slice rest = pair->adds, item, before = SLICE_NONE;
    struct counts deletes;
    const char *base_end = pair->base.len > 0 ? pair->base.p + pair->base.len : pair->adds.p;
    counts_init(&deletes, pending_until(pair, until), pair->delimiter);
    while (text_next(&rest, pair->delimiter, &item)) {
        bool copy = item.p < base_end && before.len > 0 && slice_equal(item, before);
        before = item;
        if (copy || text_is_mark(item, pair->delimiter)) {
            continue;
        }
        uint32_t *left = counts_find(&deletes, item);
        if (left != NULL && *left > 0) {
            --*left;
        } else {
            fold_apply(fold, ENTRY_ADD, item);
        }
    }
    counts_fini(&deletes);
}

struct block *pair_folded(const struct pair *pair, const struct fold *fold, size_t until,
                          struct slice mark)
{
    struct block *text = block_new(pair->adds.len + TEXT_MARK_BYTES + 1);
    struct counts deletes;
    uint32_t at = 0;
    struct slice item;
    size_t len = until < pair->deletes.len ? until : pair->deletes.len;
    counts_init(&deletes, slice_make(pair->deletes.p, len), pair->delimiter);
    while (fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item)) {
        const uint32_t *copies = counts_find(&deletes, item);
        for (uint32_t i = 0; i <= (copies != NULL ? *copies : 0); i++) {
            text_append(&text, item, pair->delimiter);
        }
    }
    counts_fini(&deletes);
    if (mark.len > 0) {
        text_append(&text, mark, pair->delimiter);
    }
    return text;
}
