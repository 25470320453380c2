/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <stdlib.h>

#include "base/check.h"

void events_fini(struct events *events)
{
    free(events->heap);
    *events = (struct events){0};
}

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void events_plan(struct events *events, uint64_t at_us, int kind, void *what, uint64_t number)
{
    if (events->count == events->cap) {
        events->cap = events->cap == 0 ? 256 : events->cap * 2;
        events->heap = realloc(events->heap, events->cap * sizeof *events->heap);
        CHECK(events->heap != NULL);
    }
    struct event event = {at_us, events->planned++, kind, what, number};
    size_t i = events->count++;
    while (i > 0 && before(&event, &events->heap[(i - 1) / 2])) {
        events->heap[i] = events->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    events->heap[i] = event;
}

bool events_take(struct events *events, struct event *out)
{
    if (events->count == 0) {
        return false;
    }
    *out = events->heap[0];
    struct event last = events->heap[--events->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= events->count) {
            break;
        }
        if (child + 1 < events->count && before(&events->heap[child + 1], &events->heap[child])) {
            child++;
        }
        if (!before(&events->heap[child], &last)) {
            break;
        }
        events->heap[i] = events->heap[child];
        i = child;
    }
    if (events->count > 0) {
        events->heap[i] = last;
    }
    return true;
}

void alarm_set(struct alarm *alarm, struct events *events, uint64_t at_us, int kind, void *what,
               uint64_t number)
{
    if (at_us < alarm->at_us) {
        alarm->at_us = at_us;
        events_plan(events, at_us, kind, what, number);
    }
}

bool alarm_rings(struct alarm *alarm, const struct event *event)
{
    if (event->at_us != alarm->at_us) {
        return false;
    }
    alarm->at_us = ALARM_OFF;
    return true;
}
