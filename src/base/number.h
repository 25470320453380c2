/* SPDX-License-Identifier: BSD-3-Clause */
/* Small arithmetic. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

static inline uint64_t u64_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The sum, or UINT64_MAX when it is larger. */
static inline uint64_t u64_sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

#endif
