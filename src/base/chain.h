/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain: a queue of bytes waiting to be written, made of pieces of blocks.
 *
 *     segs[first] ... segs[first+count-1]
 *      |block p len|block p len|block p len|   -> writev
 *
 * Small pieces are copied behind one another into blocks of the chain's own; large ones are passed
 * on by reference.
 */
#ifndef BASE_CHAIN_H
#define BASE_CHAIN_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/block.h"
#include "base/check.h"
#include "base/slice.h"

/* Pieces up to this many bytes are cheaper to copy than to refer to. */
#define CHAIN_COPY_MAX ((size_t)1024)

struct chain_seg {
    struct block *block; /* holds one reference */
    const char *p;
    size_t len;
};

struct chain {
    struct chain_seg *segs;
    size_t first;
    size_t count;
    size_t cap;
    size_t bytes;       /* sum of all len */
    struct block *tail; /* the block copies go to (also a reference), or NULL */
};

static inline void chain_init(struct chain *c)
{
    *c = (struct chain){0};
}
/* Drops everything the chain holds and its own memory. The chain may be used again after
 * chain_init. */
void chain_fini(struct chain *c);
/* Drops the bytes, keeps the memory for reuse. */
void chain_clear(struct chain *c);

/* Copies begin in a block of few bytes: for answers of which very many may wait at once. */
void chain_begin_small(struct chain *c);

/* The last piece if copies go right behind it, or NULL. */
static inline struct chain_seg *chain_open_seg(const struct chain *c)
{
    struct chain_seg *last = c->count == 0 ? NULL : &c->segs[c->first + c->count - 1];
    return last != NULL && last->block == c->tail ? last : NULL;
}

/* chain_copy, wherever the bytes go. */
void chain_copy_any(struct chain *c, const void *p, size_t len);

/* Appends a copy of the bytes. */
static inline void chain_copy(struct chain *c, const void *p, size_t len)
{
    if (len == 0) {
        return;
    }
    struct chain_seg *open = chain_open_seg(c);
    if (open == NULL || block_room(c->tail) < len) {
        chain_copy_any(c, p, len);
        return;
    }
    memcpy(c->tail->data + c->tail->used, p, len);
    c->tail->used += len;
    c->bytes += len;
    open->len += len;
}
/* The same of that byte, where there is one, and of the bytes behind it. */
static inline void chain_copy_behind(struct chain *c, bool has_first, char first, struct slice s)
{
    struct chain_seg *open = chain_open_seg(c);
    if (open == NULL || block_room(c->tail) < s.len + 1) {
        chain_copy_any(c, &first, has_first);
        chain_copy_any(c, s.p, s.len);
        return;
    }
    char *p = c->tail->data + c->tail->used;
    *p = first;
    memcpy(p + has_first, s.p, s.len);
    c->tail->used += s.len + has_first;
    c->bytes += s.len + has_first;
    open->len += s.len + has_first;
}
static inline void chain_copy_slice(struct chain *c, struct slice s)
{
    chain_copy(c, s.p, s.len);
}
/* Appends bytes that live in block: copies small ones, takes a reference to block for larger ones.
 */
void chain_add(struct chain *c, struct block *block, const char *p, size_t len);
/* Moves all of from's bytes behind to's; from is empty afterwards. */
void chain_move(struct chain *to, struct chain *from);
/* Returns room for len contiguous bytes (len <= BLOCK_BYTES) at the chain's end; they count once
 * chain_commit says how many were filled (0 <= n <= len). Valid until the next call on the chain.
 */
char *chain_reserve(struct chain *c, size_t len);
/* How many bytes fit right behind the last piece, from *p on; chain_commit as above. */
static inline size_t chain_room(const struct chain *c, char **p)
{
    bool open = chain_open_seg(c) != NULL;
    *p = open ? c->tail->data + c->tail->used : NULL;
    return open ? block_room(c->tail) : 0;
}
/* chain_commit, where the bytes are the first of a piece. */
void chain_commit_piece(struct chain *c, size_t n);
static inline void chain_commit(struct chain *c, size_t n)
{
    struct chain_seg *open = chain_open_seg(c);
    if (open == NULL) {
        chain_commit_piece(c, n);
        return;
    }
    CHECK(n <= block_room(c->tail));
    c->tail->used += n;
    c->bytes += n;
    open->len += n;
}

/* Fills iov with up to max of the first pieces; returns how many. Valid until the chain changes. */
size_t chain_iov(const struct chain *c, struct iovec *iov, size_t max);
/* Drops the first n bytes (they were written). */
void chain_consume(struct chain *c, size_t n);

#endif
