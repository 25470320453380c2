/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <time.h>

struct now clock_now(void)
{
    struct timespec mono, wall;
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    return (struct now){
        .mono_us = (uint64_t)mono.tv_sec * 1000000 + (uint64_t)mono.tv_nsec / 1000,
        .wall_s = clock_wall_s(wall.tv_sec),
    };
}

const char *clock_text(int64_t wall_s, char out[CLOCK_TEXT_MAX])
{
    time_t t = (time_t)wall_s;
    struct tm tm;
    gmtime_r(&t, &tm);
    (void)strftime(out, CLOCK_TEXT_MAX, "%H:%M:%S", &tm); /* which has room for that */
    return out;
}
