/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/block.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

/* Spare blocks kept per thread: 4 MB of ordinary ones, enough for a few hundred busy sockets, and
 * small ones for as many requests as a busy worker has under way. */
#define SPARE_MAX 256
#define SMALL_SPARE_MAX 1024
/* Where memory is little, small ones have this part of it. */
#define SMALL_PART 16

struct spare {
    struct block *first;
    unsigned count;
};

static unsigned spare_max = SPARE_MAX, small_spare_max = SMALL_SPARE_MAX;
static _Thread_local struct spare spare, small_spare;

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

static struct block *take(struct spare *list, size_t cap)
{
    struct block *b = list->first;
    if (b == NULL) {
        return begin(allocate(cap));
    }
    list->first = b->next_free;
    list->count--;
    return begin(b);
}

static void keep(struct spare *list, unsigned max, struct block *b)
{
    if (list->count >= max) {
        deallocate(b);
        return;
    }
    b->next_free = list->first;
    list->first = b;
    list->count++;
}

struct block *block_new(size_t cap)
{
    return cap <= BLOCK_BYTES ? take(&spare, BLOCK_BYTES) : begin(allocate(cap));
}

struct block *block_new_small(void)
{
    return take(&small_spare, BLOCK_SMALL_BYTES);
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
    if (b->cap == BLOCK_BYTES) {
        keep(&spare, spare_max, b);
    } else if (b->cap == BLOCK_SMALL_BYTES) {
        keep(&small_spare, small_spare_max, b);
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

static unsigned least(size_t count, unsigned max)
{
    return count < max ? (unsigned)count : max;
}

void block_limit_spare(size_t bytes)
{
    size_t small = bytes / SMALL_PART;
    small_spare_max = least(small / (sizeof(struct block) + BLOCK_SMALL_BYTES), SMALL_SPARE_MAX);
    spare_max = least((bytes - small) / (sizeof(struct block) + BLOCK_BYTES), SPARE_MAX);
}

static void drop(struct spare *list)
{
    while (list->first != NULL) {
        struct block *b = list->first;
        list->first = b->next_free;
        deallocate(b);
    }
    list->count = 0;
}

void block_drop_spare(void)
{
    drop(&spare);
    drop(&small_spare);
}

void block_thread_fini(void)
{
    block_drop_spare();
    memory_settle();
}
