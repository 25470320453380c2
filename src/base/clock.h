/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers and their pools read the clock when something wakes them (worker_woke, context_woke);
 * all other files are given the time. list/ never reads a clock.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct now {
    uint64_t mono_us; /* microseconds since some moment; never goes back */
    int64_t wall_s;   /* seconds since 1970, for memcached's absolute expiry times */
};

/* Reads both clocks of the machine. */
struct now clock_now(void);

#endif
