/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of a ring. Each has an item of its own; how far the counter is can be known only from how
 * many entries were asked for.
 */
#include "outside.h"

#include <stdio.h>

void ring_asked(struct outside *o, struct sim_call *call)
{
    struct outside_list *l = &o->list[call->list];
    const struct sim_call *other;
    if (call->call.verb != LIST_ADD) {
        l->clearing += call->call.verb == LIST_DROP;
        return;
    }
    call->entries_before = l->entries;
    uint64_t since = l->entries;
    /* Whoever was late already may overwrite what comes now. */
    TAILQ_FOREACH(other, &o->under_way, under_way)
    {
        if (other->list == call->list && other->call.verb == LIST_ADD &&
            other->entries_before < since) {
            since = other->entries_before;
        }
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        l->ring[call->ids[i]] = (struct ring_word){.asked = call->asked, .since = since};
    }
    l->entries += call->call.item_count;
}

void ring_over(struct outside *o, struct sim_call *call, bool acknowledged)
{
    struct outside_list *l = &o->list[call->list];
    if (call->call.verb == LIST_DROP) {
        l->clearing--;
        l->clear_over = o->oracle->moment;
        l->counter = 0;
    }
    for (size_t i = 0; call->call.verb == LIST_ADD && i < call->call.item_count; i++) {
        struct ring_word *w = &l->ring[call->ids[i]];
        if (w->asked == call->asked && acknowledged) {
            w->answered = o->oracle->moment;
        }
    }
}

static void check_order(struct outside *o, unsigned list, const struct ids *seen,
                        const struct sim_call *call)
{
    const struct outside_list *l = &o->list[list];
    for (uint32_t i = 0; i < seen->count; i++) {
        const struct ring_word *w = &l->ring[seen->ids[i]];
        for (uint32_t front = 0; front < i; front++) {
            const struct ring_word *newer = &l->ring[seen->ids[front]];
            if (newer->answered != 0 && newer->answered < w->asked &&
                newer->asked > l->clear_over) {
                outside_wrong(o, list, call, seen, "stands behind an older entry", seen->ids[i]);
            }
        }
    }
}

void ring_check(struct outside *o, unsigned list, const struct ids *seen, uint64_t asked,
                const struct sim_call *call)
{
    struct outside_list *l = &o->list[list];
    static uint8_t times[ITEMS_MAX];
    memset(times, 0, sizeof times);
    bool has = call != NULL && call->call.verb == LIST_HAS;
    for (uint32_t i = 0; !has && i < seen->count; i++) {
        uint16_t id = seen->ids[i];
        if (l->ring[id].asked == 0) {
            outside_wrong(o, list, call, seen, "was never added", id);
        }
        if (times[id]++ > 0) {
            outside_wrong(o, list, call, seen, "is shown twice", id);
        }
    }
    if (seen->count > o->format->capacity) {
        outside_wrong(o, list, call, seen, "and others: more than the ring has", 0);
    }
    if (!has) {
        check_order(o, list, seen, call);
    }
    if (l->clearing > 0 || (call != NULL && call->call.verb != LIST_GET)) {
        return;
    }
    for (unsigned id = 0; id < ITEMS_MAX; id++) {
        const struct ring_word *w = &l->ring[id];
        bool lapped = l->entries - w->since > o->format->capacity;
        if (w->answered != 0 && w->answered < asked && w->asked > l->clear_over && !lapped &&
            times[id] == 0) {
            outside_wrong(o, list, call, seen, "is lost", (uint16_t)id);
        }
    }
}

void ring_check_counter(struct outside *o, unsigned list, uint64_t counter)
{
    struct outside_list *l = &o->list[list];
    if (counter != 0 && counter < l->counter && l->clearing == 0) {
        sim_violation("L%u: the counter went back from %llu to %llu", list,
                      (unsigned long long)l->counter, (unsigned long long)counter);
    }
    if (counter > l->entries) {
        sim_violation("L%u: the counter is %llu after %llu entries", list,
                      (unsigned long long)counter, (unsigned long long)l->entries);
    }
    l->counter = counter != 0 ? counter : l->counter;
}
