/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/timers.h"

#include <stdlib.h>

#include "base/array.h"

static void put(struct timers *t, size_t i, struct timer *timer)
{
    t->heap[i] = timer;
    timer->place = i + 1;
}

static void sift_up(struct timers *t, size_t i)
{
    struct timer *timer = t->heap[i];
    while (i > 0 && t->heap[(i - 1) / 2]->at_us > timer->at_us) {
        put(t, i, t->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(t, i, timer);
}

static void sift_down(struct timers *t, size_t i)
{
    struct timer *timer = t->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= t->count) {
            break;
        }
        if (child + 1 < t->count && t->heap[child + 1]->at_us < t->heap[child]->at_us) {
            child++;
        }
        if (t->heap[child]->at_us >= timer->at_us) {
            break;
        }
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, timer);
}

void timers_fini(struct timers *t)
{
    free(t->heap);
    *t = (struct timers){0};
}

void timer_set(struct timers *t, struct timer *timer, uint64_t at_us)
{
    timer_stop(t, timer);
    t->heap = array_room(t->heap, t->count, &t->cap, sizeof(struct timer *));
    timer->at_us = at_us;
    put(t, t->count++, timer);
    sift_up(t, t->count - 1);
}

void timer_stop(struct timers *t, struct timer *timer)
{
    if (timer->place == 0) {
        return;
    }
    size_t i = timer->place - 1;
    timer->place = 0;
    struct timer *last = t->heap[--t->count];
    if (last != timer) {
        put(t, i, last);
        sift_up(t, i);
        sift_down(t, last->place - 1);
    }
}

uint64_t timers_next(const struct timers *t)
{
    return t->count == 0 ? UINT64_MAX : t->heap[0]->at_us;
}

struct timer *timers_take_due(struct timers *t, uint64_t now_us)
{
    if (t->count == 0 || t->heap[0]->at_us > now_us) {
        return NULL;
    }
    struct timer *timer = t->heap[0];
    timer_stop(t, timer);
    return timer;
}
