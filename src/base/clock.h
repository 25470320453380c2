/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers and their pools read the clock when something wakes them (worker_woke, context_woke);
 * all other files are given the time. list/ never reads a clock.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <sys/time.h>

struct now {
    uint64_t mono_us; /* microseconds since some moment; never goes back */
    int64_t wall_s; /* seconds since 1970, for memcached's absolute expiry times; never negative */
};

/* Seconds since 1970 are stored without a sign: to a clock that stands before that it is 1970. */
static inline int64_t clock_wall_s(int64_t clock_s)
{
    return clock_s > 0 ? clock_s : 0;
}

/* Reads both clocks of the machine. */
struct now clock_now(void);

/* The time of the day in UTC, as the log has it: "14:02:11". Returns out. */
#define CLOCK_TEXT_MAX 16
const char *clock_text(int64_t wall_s, char out[CLOCK_TEXT_MAX]);

/* For libevent's timers. */
static inline struct timeval timeval_of_ms(uint64_t ms)
{
    return (struct timeval){(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
}

/* From now_us to at_us, which may be over. */
static inline struct timeval timeval_until(uint64_t at_us, uint64_t now_us)
{
    uint64_t us = at_us > now_us ? at_us - now_us : 0;
    return (struct timeval){(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
}

#endif
