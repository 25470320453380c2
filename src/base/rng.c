/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"

#include <sys/random.h>

#include "base/check.h"

static uint64_t kernel_bits(void)
{
    uint64_t bits;
    CHECK(getrandom(&bits, sizeof bits, 0) == (ssize_t)sizeof bits);
    return bits;
}

void rng_init_system(struct rng *r)
{
    *r = (struct rng){.state = kernel_bits(), .deterministic = 0};
}

void rng_init_seed(struct rng *r, uint64_t seed)
{
    *r = (struct rng){.state = seed, .deterministic = 1};
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
    return (uint64_t)(((__uint128_t)rng_next(r) * bound) >> 64);
}

uint64_t rng_unique(struct rng *r)
{
    return r->deterministic ? rng_next(r) : kernel_bits();
}
