/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of a ring. Each has an item of its own; the number that it got is seen when its slot is
 * written.
 */
#include "outside.h"

#include <stdio.h>
#include <stdlib.h>

bool ring_free(const struct outside *o, unsigned list, uint16_t id)
{
    const struct outside_list *l = &o->list[list];
    const struct ring_word *w = &l->ring[id];
    /* A call that came late has left it among the newest entries. */
    bool is_new = w->number != 0 && w->number <= l->counter &&
                  l->counter < w->number + 2 * o->format->capacity;
    return w->under_way == 0 && !is_new;
}

void ring_asked(struct outside *o, struct sim_call *call)
{
    struct outside_list *l = &o->list[call->list];
    if (call->call.verb != LIST_ADD) {
        l->clearing += call->call.verb == LIST_DROP;
        return;
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        struct ring_word *w = &l->ring[call->ids[i]];
        l->ring_end = call->ids[i] < l->ring_end ? l->ring_end : call->ids[i] + 1u;
        *w = (struct ring_word){
            .asked = call->asked, .under_way = w->under_way + 1, .reused = w->asked != 0};
    }
    l->entries += call->call.item_count;
}

/* Numbers begin again. */
static void forget_numbers(struct outside_list *l)
{
    l->counter = l->raw;
    if (l->numbers == NULL) {
        return;
    }
    memset(l->numbers, 0, l->number_cap * sizeof *l->numbers);
}

void ring_over(struct outside *o, struct sim_call *call, bool acknowledged)
{
    struct outside_list *l = &o->list[call->list];
    if (call->call.verb == LIST_DROP) {
        l->clearing--;
        l->clear_over = o->oracle->moment;
        forget_numbers(l);
    }
    for (size_t i = 0; call->call.verb == LIST_ADD && i < call->call.item_count; i++) {
        struct ring_word *w = &l->ring[call->ids[i]];
        w->under_way--;
        if (w->asked == call->asked && acknowledged) {
            w->answered = o->oracle->moment;
        }
    }
}

/* Those of before an ldrop may be anywhere; and after some thousand entries items are used again.
 */
static bool is_judged(const struct outside_list *l, const struct ring_word *w)
{
    return w->asked > l->clear_over && l->clearing == 0 && !w->reused;
}

/* Entries in the same slot that have a larger number than that. */
static void note_overwritten(struct outside_list *l, uint32_t capacity, uint64_t than, uint64_t by)
{
    for (uint64_t n = by % capacity; n <= l->counter && n < l->number_cap; n += capacity) {
        if (n > than && l->numbers[n] != 0) {
            l->ring[l->numbers[n] - 1].overwritten = true;
        }
    }
}

/* Without numbers an entry has the one that its place says. */
static uint64_t number_of_slot(const struct outside *o, const struct outside_list *l,
                               const struct list_request *request)
{
    enum format_part part;
    uint64_t slot, capacity = o->format->capacity;
    (void)format_list(o->format, request->be.key, &part, &slot);
    uint64_t age = (l->counter % capacity + capacity - slot) % capacity;
    return l->counter < age ? 0 : l->counter - age;
}

void ring_stored(struct outside *o, unsigned list, const struct list_request *request, bool stored)
{
    struct outside_list *l = &o->list[list];
    struct ring_entry e;
    if (!entry_take(o->format, request->be.value, &e)) {
        sim_violation("L%u: a slot was written with something else than an entry", list);
    }
    e.number = o->format->numbered ? e.number : number_of_slot(o, l, request);
    struct ring_word *w = &l->ring[e.id];
    note_overwritten(l, o->format->capacity, is_judged(l, w) ? e.number : 0, e.number);
    w->number = stored ? e.number : w->number;
    if (!o->format->numbered && e.number < l->number_cap && l->numbers[e.number] != 0) {
        l->ring[l->numbers[e.number] - 1].overwritten = true; /* by one of a lap ago */
    }
    if (!is_judged(l, w) || !stored) {
        return;
    }
    if (e.number == 0 || e.number > l->counter) {
        sim_violation("L%u: item %u has the number %llu, but the counter is %llu", list,
                      (unsigned)e.id, (unsigned long long)e.number, (unsigned long long)l->counter);
    }
    if (e.number >= l->number_cap) {
        uint64_t cap = e.number * 2 + 1024;
        l->numbers = realloc(l->numbers, cap * sizeof *l->numbers);
        CHECK(l->numbers != NULL);
        memset(l->numbers + l->number_cap, 0, (cap - l->number_cap) * sizeof *l->numbers);
        l->number_cap = cap;
    }
    if (o->format->numbered && l->numbers[e.number] != 0 && l->numbers[e.number] != e.id + 1) {
        sim_violation("L%u: items %u and %u have the same number %llu", list,
                      (unsigned)l->numbers[e.number] - 1, (unsigned)e.id,
                      (unsigned long long)e.number);
    }
    l->numbers[e.number] = (uint16_t)(e.id + 1);
}

static void check_order(struct outside *o, unsigned list, const struct ids *seen,
                        const struct sim_call *call)
{
    const struct outside_list *l = &o->list[list];
    uint64_t first_answered = UINT64_MAX; /* among those that are shown as newer */
    for (uint32_t i = 0; i < seen->count; i++) {
        const struct ring_word *w = &l->ring[seen->ids[i]];
        bool short_read = call != NULL && (list_verb_has(call->call.verb, LIST_RANGES) ||
                                           call->ring_counter <= o->format->capacity / 2);
        /* Half a ring may have been written while the first slots were read. */
        bool emptied = call != NULL && call->asked <= l->clear_over; /* numbers have begun again */
        bool may_be_new = !o->format->numbered && short_read &&
                          (emptied || w->number > call->ring_counter + o->format->capacity / 2);
        if (!may_be_new && first_answered < w->asked) {
            outside_wrong(o, list, call, seen, "stands behind an older entry", seen->ids[i]);
        }
        /* One may stand in the place of one that is not written yet. */
        bool may_be_old = !o->format->numbered && w->number + o->format->capacity <= l->counter;
        if (w->answered != 0 && w->answered < first_answered && !may_be_old && is_judged(l, w)) {
            first_answered = w->answered;
        }
    }
}

static void check_shown(struct outside *o, unsigned list, const struct ids *seen,
                        const struct sim_call *call, uint8_t times[ITEMS_MAX])
{
    const struct outside_list *l = &o->list[list];
    memset(times, 0, ITEMS_MAX);
    for (uint32_t i = 0; i < seen->count; i++) {
        uint16_t id = seen->ids[i];
        if (l->ring[id].asked == 0) {
            outside_wrong(o, list, call, seen, "was never added", id);
        }
        if (times[id]++ > 0 && (call == NULL || call->call.verb != LIST_HAS)) {
            outside_wrong(o, list, call, seen, "is shown twice", id);
        }
    }
    if (seen->count > o->format->capacity && (call == NULL || call->call.verb != LIST_HAS)) {
        outside_wrong(o, list, call, seen, "and others: more than the ring has", 0);
    }
}

/* Of so many entries that must be there, a stretch that begins with the newest has enough. */
static void check_range(struct outside *o, unsigned list, const struct ids *seen,
                        const struct sim_call *call, uint32_t there)
{
    int64_t from = call->call.from, to = call->call.to;
    int64_t most = to + 1 < (int64_t)there ? to + 1 : (int64_t)there;
    if (from >= 0 && to >= 0 && (int64_t)seen->count < most - from) {
        outside_wrong(o, list, call, seen, "and others: fewer than there must be", 0);
    }
}

void ring_check(struct outside *o, unsigned list, const struct ids *seen, uint64_t asked,
                const struct sim_call *call)
{
    const struct outside_list *l = &o->list[list];
    static uint8_t times[ITEMS_MAX];
    bool has = call != NULL && call->call.verb == LIST_HAS;
    check_shown(o, list, seen, call, times);
    if (!has) {
        check_order(o, list, seen, call);
    }
    bool ranges = call != NULL && list_verb_has(call->call.verb, LIST_RANGES);
    uint32_t there = 0;
    for (unsigned id = 0; id < l->ring_end; id++) {
        const struct ring_word *w = &l->ring[id];
        if (w->number + o->format->capacity <= l->counter || w->answered == 0 ||
            w->answered >= asked || !is_judged(l, w) || w->overwritten) {
            continue;
        }
        bool wanted = !has;
        for (size_t i = 0; has && i < call->call.item_count; i++) {
            wanted = wanted || call->ids[i] == id;
        }
        there++;
        if (wanted && times[id] == 0 && !ranges) {
            outside_wrong(o, list, call, seen, "is lost", (uint16_t)id);
        }
    }
    if (ranges) {
        check_range(o, list, seen, call, there);
    }
}

/* Where it is set back. */
static void unwrap_counter(struct outside *o, unsigned list, uint64_t counter)
{
    struct outside_list *l = &o->list[list];
    uint64_t capacity = o->format->capacity;
    if (counter != 0 && counter < l->raw && counter % capacity != l->raw % capacity) {
        sim_violation("L%u: the counter was set from %llu to %llu", list,
                      (unsigned long long)l->raw, (unsigned long long)counter);
    }
    l->counter += counter > l->raw ? counter - l->raw : 0;
    l->counter += (counter % capacity + capacity - l->counter % capacity) % capacity;
    l->raw = counter;
}

void ring_check_counter(struct outside *o, unsigned list, uint64_t counter)
{
    struct outside_list *l = &o->list[list];
    if (o->format->counter_wraps) {
        unwrap_counter(o, list, counter);
        return;
    }
    if (l->clearing > 0) {
        return;
    }
    if (counter != 0 && counter < l->counter) {
        sim_violation("L%u: the counter went back from %llu to %llu", list,
                      (unsigned long long)l->counter, (unsigned long long)counter);
    }
    if (counter > l->entries) {
        sim_violation("L%u: the counter is %llu after %llu entries", list,
                      (unsigned long long)counter, (unsigned long long)l->entries);
    }
    l->counter = counter != 0 ? counter : l->counter;
}
