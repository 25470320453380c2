/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory clients' requests and answers take, over all threads. Each thread adds to a
 * number of its own, which goes into the common one whenever it has changed by MEMORY_SLACK_BYTES:
 * so the common number is wrong by that much per thread at most, and counting costs one addition.
 *
 *     counted   blocks (base/block.h): input, requests on their way, replies, answers; structs
 *               for requests under way, and spare ones (base/spare.h); arrays of items
 *     shared    blocks that cache or views hold as well have limits of their own:
 *               list/format/sublist.h takes them out as long as they do
 *     scratch   arenas: limited by fold_memory_bytes, counted apart, only to know when to trim
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define MEMORY_SLACK_BYTES 65536

/* What this thread has not told yet. For the functions below only. */
extern _Thread_local int64_t memory_untold, memory_scratch_untold;

/* Tells the allocator what suits large, short-lived blocks. Call it before there are threads. */
void memory_init(void);

/* Tells at once what this thread has changed. */
void memory_settle(void);

/* So many bytes more (or, below zero, less) are held. */
static inline void memory_count(int64_t bytes)
{
    memory_untold += bytes;
    if (UNLIKELY(memory_untold > MEMORY_SLACK_BYTES || memory_untold < -MEMORY_SLACK_BYTES)) {
        memory_settle();
    }
}
static inline void memory_take(size_t bytes)
{
    memory_count((int64_t)bytes);
}
static inline void memory_give(size_t bytes)
{
    memory_count(-(int64_t)bytes);
}
/* The same for scratch memory. */
static inline void memory_count_scratch(int64_t bytes)
{
    memory_scratch_untold += bytes;
    if (UNLIKELY(memory_scratch_untold > MEMORY_SLACK_BYTES ||
                 memory_scratch_untold < -MEMORY_SLACK_BYTES)) {
        memory_settle();
    }
}

/* Bytes held by all threads, as far as told. */
uint64_t memory_held(void);
/* What this thread has taken more than it gave; 0 when it gave more. */
uint64_t memory_held_here(void);

/* Was so much freed since the last trim that the allocator should hand it back to the system? */
bool memory_wants_trim(void);
/* Does that. Takes some milliseconds when a lot is handed back; other threads' allocations wait. */
void memory_trim(void);

#endif
