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

#endif
