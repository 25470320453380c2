/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include <malloc.h>
#include <stdatomic.h>

/* Less is not worth looking through the allocator's arenas; it is about what the spare blocks of a
 * few threads hold. */
#define TRIM_BYTES (INT64_C(16) << 20)

/* From this size on the allocator gives each piece a mapping of its own, which goes back to the
 * system at once: so rarely that it costs nothing, while pieces of that size would leave large gaps
 * elsewhere. glibc's own threshold rises to 32 MB by itself. */
#define MAP_BYTES (4 << 20)
/* What it keeps at the end of its memory without memory_trim; glibc's own choice for that
 * threshold. */
#define KEEP_BYTES (2 * MAP_BYTES)

_Thread_local int64_t memory_untold, memory_scratch_untold;
static _Thread_local int64_t told; /* by this thread */

static _Atomic int64_t held, scratch;
/* The most that both were together since the last trim. Threads may overwrite each other's: it is
 * seen again at the next change. */
static _Atomic int64_t peak;

void memory_init(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MAP_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
}

static int64_t together(void)
{
    return atomic_load_explicit(&held, memory_order_relaxed) +
           atomic_load_explicit(&scratch, memory_order_relaxed);
}

static void raise_peak(void)
{
    int64_t now = together();
    if (now > atomic_load_explicit(&peak, memory_order_relaxed)) {
        atomic_store_explicit(&peak, now, memory_order_relaxed);
    }
}

void memory_settle(void)
{
    bool grew = memory_untold + memory_scratch_untold > 0;
    told += memory_untold;
    atomic_fetch_add_explicit(&held, memory_untold, memory_order_relaxed);
    memory_untold = 0;
    if (memory_scratch_untold != 0) {
        atomic_fetch_add_explicit(&scratch, memory_scratch_untold, memory_order_relaxed);
        memory_scratch_untold = 0;
    }
    if (grew) {
        raise_peak();
    }
}

uint64_t memory_held(void)
{
    int64_t bytes = atomic_load_explicit(&held, memory_order_relaxed);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t memory_held_here(void)
{
    int64_t bytes = told + memory_untold;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

bool memory_wants_trim(void)
{
    return atomic_load_explicit(&peak, memory_order_relaxed) - together() > TRIM_BYTES;
}

void memory_trim(void)
{
    atomic_store_explicit(&peak, together(), memory_order_relaxed);
    (void)malloc_trim(0);
}
