/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time is read once per turn of a worker's loop and passed on as an argument; nobody below proxy/
 * asks for it.
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
