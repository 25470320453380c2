/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is going to happen, in order of virtual time; what is planned for the same moment happens in
 * the order planned.
 */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
    uint64_t at_us;
    uint64_t order;
    int kind;
    void *what;
    uint64_t number; /* the planner's */
};

struct events {
    struct event *heap;
    size_t count, cap;
    uint64_t planned;
};

void events_fini(struct events *events);
void events_plan(struct events *events, uint64_t at_us, int kind, void *what, uint64_t number);
/* Takes the next one; false when there is none. */
bool events_take(struct events *events, struct event *out);

/* The one moment at which a thing is to be woken next. It is moved to earlier moments only. What
 * was planned for a later one stays among the events, and counts no more: if it did, each such
 * event would set the alarm anew, and there would be ever more of them. */
struct alarm {
    uint64_t at_us; /* ALARM_OFF: none */
};
#define ALARM_OFF UINT64_MAX

/* Plans an event for that moment, unless the alarm is set for that one or an earlier one. */
void alarm_set(struct alarm *alarm, struct events *events, uint64_t at_us, int kind, void *what,
               uint64_t number);
/* Is that the event that the alarm is set for? It is off then. */
bool alarm_rings(struct alarm *alarm, const struct event *event);

#endif
