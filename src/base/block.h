/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks: reference-counted memory that requests, values and answers live in, so that bytes travel
 * from socket to socket without being copied.
 *
 *     data           data+used        data+cap
 *      |  filled      |  room          |
 *
 * The filled part never moves and never changes; every holder of a reference may read it. Only the
 * holder that fills the block appends behind used. References may be dropped in any thread.
 */
#ifndef BASE_BLOCK_H
#define BASE_BLOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Room in an ordinary block, bytes: one read() of a busy socket. Such blocks are kept for reuse per
 * thread. */
#define BLOCK_BYTES ((size_t)16384)
/* The same in a small one: what one request writes, most often. These are kept, too. */
#define BLOCK_SMALL_BYTES ((size_t)256)

struct block {
    _Atomic uint32_t refs;
    size_t cap;
    size_t used;
    struct block *next_free;
    char data[];
};

/* Returns a block with room for at least cap bytes, used = 0, one reference, owned by the caller.
 * Never NULL: the process ends when memory is gone, since limits are enforced before. Blocks count
 * in base/memory.h, spare ones too. */
struct block *block_new(size_t cap);

/* The same, a small one. */
struct block *block_new_small(void);

/* The same with room for exactly cap bytes, for what is kept for long. */
struct block *block_new_exact(size_t cap);

/* Takes one more reference; returns b. */
struct block *block_ref(struct block *b);

/* Drops the caller's reference and sets *b to NULL; NULL is fine. */
void block_unref(struct block **b);

/* Makes room for len bytes in a block that only the caller holds, moving it to a larger one when
 * there is none: *b may change. Returns where they go; add to used what was written. */
char *block_reserve(struct block **b, size_t len);

/* Appends a copy of the bytes to a block that only the caller holds, moving it to a larger one when
 * there is no room: *b may change. */
void block_append(struct block **b, const void *p, size_t len);

static inline size_t block_room(const struct block *b)
{
    return b->cap - b->used;
}

/* Threads keep no more than so many bytes in spare blocks; the default is 4 MB. Call it before
 * there are threads. */
void block_limit_spare(size_t bytes);
/* Frees the calling thread's spare blocks. */
void block_drop_spare(void);
/* The same, at the end of a thread. */
void block_thread_fini(void);

#endif
