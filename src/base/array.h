/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow one element at a time. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

#include "base/check.h"

/* Makes room for one element behind count others; size: of an element, in bytes. Returns the array,
 * which may have moved; from malloc, the caller's. *cap: 0 at first, with array NULL. */
static inline void *array_room(void *array, size_t count, size_t *cap, size_t size)
{
    if (count < *cap) {
        return array;
    }
    *cap = *cap == 0 ? 8 : *cap * 2;
    array = realloc(array, *cap * size);
    CHECK(array != NULL);
    return array;
}

#endif
