/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delays in virtual time: a binary heap of moments. Owners embed a timer and never move it while it
 * is set.
 */
#ifndef LIST_CORE_TIMERS_H
#define LIST_CORE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint64_t at_us;
    size_t place; /* position in the heap + 1; 0 = not set */
    void *owner;
    int kind; /* the owner's */
};

struct timers {
    struct timer **heap;
    size_t count, cap;
};

void timers_fini(struct timers *t);
/* Sets or moves the timer. */
void timer_set(struct timers *t, struct timer *timer, uint64_t at_us);
/* Stops it; fine when it is not set. */
void timer_stop(struct timers *t, struct timer *timer);
static inline bool timer_is_set(const struct timer *timer)
{
    return timer->place != 0;
}
/* The earliest moment, or UINT64_MAX. */
uint64_t timers_next(const struct timers *t);
/* Takes a timer that is due at now_us, or NULL. */
struct timer *timers_take_due(struct timers *t, uint64_t now_us);

#endif
