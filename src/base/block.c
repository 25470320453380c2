/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/block.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

/* Spare ordinary blocks kept per thread: 4 MB, enough for a few hundred busy sockets. */
#define SPARE_MAX 256

static unsigned spare_max = SPARE_MAX;
static _Thread_local struct block *spare;
static _Thread_local unsigned spare_count;

static struct block *allocate(size_t cap)
{
    struct block *b = malloc(sizeof *b + cap);
    CHECK(b != NULL);
    memory_take(sizeof *b + cap);
    b->cap = cap;
    return b;
}

static void deallocate(struct block *b)
{
    memory_give(sizeof *b + b->cap);
    free(b);
}

static struct block *begin(struct block *b)
{
    atomic_init(&b->refs, 1);
    b->used = 0;
    b->next_free = NULL;
    return b;
}

struct block *block_new(size_t cap)
{
    struct block *b;
    if (cap <= BLOCK_BYTES && spare != NULL) {
        b = spare;
        spare = b->next_free;
        spare_count--;
    } else {
        b = allocate(cap < BLOCK_BYTES ? BLOCK_BYTES : cap);
    }
    return begin(b);
}

struct block *block_new_exact(size_t cap)
{
    return begin(allocate(cap));
}

struct block *block_ref(struct block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

/* Drops one reference; returns whether it was the last. The last holder is the only one
 * that could take another: it is spared the bus lock. */
static bool drop_ref(struct block *b)
{
    return atomic_load_explicit(&b->refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1;
}

void block_unref(struct block **slot)
{
    struct block *b = *slot;
    *slot = NULL;
    if (b == NULL || !drop_ref(b)) {
        return;
    }
    if (b->cap == BLOCK_BYTES && spare_count < spare_max) {
        b->next_free = spare;
        spare = b;
        spare_count++;
    } else {
        deallocate(b);
    }
}

char *block_reserve(struct block **slot, size_t len)
{
    struct block *b = *slot;
    CHECK_SLOW(atomic_load(&b->refs) == 1);
    if (block_room(b) < len) {
        size_t cap = b->cap * 2;
        struct block *larger = block_new(cap < b->used + len ? b->used + len : cap);
        memcpy(larger->data, b->data, b->used);
        larger->used = b->used;
        block_unref(slot);
        *slot = b = larger;
    }
    return b->data + b->used;
}

void block_append(struct block **slot, const void *p, size_t len)
{
    char *end = block_reserve(slot, len);
    if (len > 0) {
        memcpy(end, p, len);
        (*slot)->used += len;
    }
}

void block_limit_spare(size_t bytes)
{
    size_t blocks = bytes / (sizeof(struct block) + BLOCK_BYTES);
    spare_max = blocks < SPARE_MAX ? (unsigned)blocks : SPARE_MAX;
}

void block_drop_spare(void)
{
    while (spare != NULL) {
        struct block *b = spare;
        spare = b->next_free;
        deallocate(b);
    }
    spare_count = 0;
}

void block_thread_fini(void)
{
    block_drop_spare();
    memory_settle();
}
