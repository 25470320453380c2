/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/chain.h"

#include <stdlib.h>

#include "base/check.h"

/* A chain whose segment array once grew beyond this gives it back when it is empty. */
#define KEEP_SEGS_MAX 64
/* The first block of a chain that begins small. */
#define SMALL_BYTES ((size_t)256)

void chain_clear(struct chain *c)
{
    for (size_t i = 0; i < c->count; i++) {
        block_unref(&c->segs[c->first + i].block);
    }
    block_unref(&c->tail);
    c->first = c->count = c->bytes = 0;
    if (c->cap > KEEP_SEGS_MAX) {
        free(c->segs);
        c->segs = NULL;
        c->cap = 0;
    }
}

void chain_fini(struct chain *c)
{
    chain_clear(c);
    free(c->segs);
    *c = (struct chain){0};
}

static struct chain_seg *push_seg(struct chain *c)
{
    if (c->first + c->count == c->cap) {
        if (c->first > c->cap / 2) {
            memmove(c->segs, c->segs + c->first, c->count * sizeof *c->segs);
            c->first = 0;
        } else {
            c->cap = c->cap == 0 ? 8 : c->cap * 2;
            c->segs = realloc(c->segs, c->cap * sizeof *c->segs);
            CHECK(c->segs != NULL);
        }
    }
    return &c->segs[c->first + c->count++];
}

void chain_begin_small(struct chain *c)
{
    if (c->tail == NULL) {
        c->tail = block_new_exact(SMALL_BYTES);
    }
}

char *chain_reserve(struct chain *c, size_t len)
{
    CHECK(len <= BLOCK_BYTES);
    if (c->tail == NULL || block_room(c->tail) < len) {
        block_unref(&c->tail);
        c->tail = block_new(BLOCK_BYTES);
    }
    return c->tail->data + c->tail->used;
}

void chain_commit_piece(struct chain *c, size_t n)
{
    if (n == 0) {
        return;
    }
    CHECK(n <= block_room(c->tail));
    char *p = c->tail->data + c->tail->used;
    c->tail->used += n;
    c->bytes += n;
    *push_seg(c) = (struct chain_seg){block_ref(c->tail), p, n};
}

void chain_copy_any(struct chain *c, const void *data, size_t len)
{
    const char *p = data;
    while (len > 0) {
        if (c->tail == NULL || block_room(c->tail) == 0) {
            (void)chain_reserve(c, 1);
        }
        size_t n = block_room(c->tail) < len ? block_room(c->tail) : len;
        memcpy(c->tail->data + c->tail->used, p, n);
        chain_commit(c, n);
        p += n;
        len -= n;
    }
}

void chain_add(struct chain *c, struct block *block, const char *p, size_t len)
{
    if (len <= CHAIN_COPY_MAX) {
        chain_copy(c, p, len);
        return;
    }
    *push_seg(c) = (struct chain_seg){block_ref(block), p, len};
    c->bytes += len;
}

void chain_move(struct chain *to, struct chain *from)
{
    for (size_t i = 0; i < from->count; i++) {
        struct chain_seg *seg = &from->segs[from->first + i];
        if (seg->len <= CHAIN_COPY_MAX) {
            chain_copy(to, seg->p, seg->len);
            block_unref(&seg->block);
        } else {
            to->bytes += seg->len;
            *push_seg(to) = *seg;
        }
    }
    from->count = 0;
    chain_clear(from);
}

size_t chain_iov(const struct chain *c, struct iovec *iov, size_t max)
{
    size_t n = c->count < max ? c->count : max;
    for (size_t i = 0; i < n; i++) {
        const struct chain_seg *seg = &c->segs[c->first + i];
        iov[i] = (struct iovec){(void *)(uintptr_t)seg->p, seg->len};
    }
    return n;
}

void chain_consume(struct chain *c, size_t n)
{
    CHECK(n <= c->bytes);
    c->bytes -= n;
    while (n > 0) {
        struct chain_seg *seg = &c->segs[c->first];
        if (n < seg->len) {
            seg->p += n;
            seg->len -= n;
            return;
        }
        n -= seg->len;
        block_unref(&seg->block);
        c->first++;
        c->count--;
    }
    if (c->count == 0) {
        chain_clear(c);
    }
}
