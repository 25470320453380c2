/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers: a small generator for delays and choices, seeded by its owner, and fresh bits for
 * names that must never be used twice. The simulator gives both a seed of its own, so that a run
 * can be repeated.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
    int deterministic; /* rng_unique draws from state (rng_init_seed), not from the kernel */
};

/* Seeded from getrandom; rng_unique() asks the kernel each time. */
void rng_init_system(struct rng *r);
/* Everything follows from seed. */
void rng_init_seed(struct rng *r, uint64_t seed);

/* 64 bits that are good enough for back-off and sampling (splitmix64). */
uint64_t rng_next(struct rng *r);
/* Evenly from 0 to bound-1; bound > 0. */
uint64_t rng_below(struct rng *r, uint64_t bound);
/* 64 bits that no other process has drawn, for names that are used once (storage rule 1). */
uint64_t rng_unique(struct rng *r);

#endif
