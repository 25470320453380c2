/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a ring: first the counter, then the slots of as many of the newest entries as the calls
 * ask for; more of them where some are gaps. Without a counter all slots.
 *
 * The counter says how many entries there are. What has a larger number was written since the
 * counter was read, or under a counter that is gone: it is not shown. So one slot that holds a
 * number far too large hides nothing.
 *
 * Slots without numbers say nothing of their age. While they are read others may be written, and
 * what was the oldest entry's slot holds the newest: behind a read of more than half of the ring
 * the counter is asked for again, and what the new entries may have overwritten is left out. Where
 * there was no counter, and their times told which entry is the newest, the read begins anew if
 * there is one by then: clocks of writers differ, so of entries that were written meanwhile the
 * times may say otherwise than the counter does. A number that was taken and is not written leaves
 * the entry of a lap ago in its place, where it is shown: clocks of writers differ, so its time
 * proves nothing.
 */
#include <stdlib.h>

#include "base/number.h"
#include "dialect/ring/slot.h"
#include "dialect/ring/ring.h"

bool ring_is_numbered(const struct list_policy *policy)
{
    return slot_has(policy->slot, 'n');
}

bool ring_counter(const struct part *part, uint64_t *number)
{
    struct slice text = part->value;
    /* memcached pads a number with blanks when it becomes shorter. */
    while (text.len > 0 && text.p[text.len - 1] == ' ') {
        text.len--;
    }
    return slice_to_u64(text, number);
}

/* ---- which slots ---- */

/* How many of the newest entries do the calls need? */
static uint64_t entries_wanted(const struct work *w)
{
    const struct list_call *call;
    uint64_t capacity = w->op.list->policy->capacity, most = 0;
    if (w->lane != LANE_READ || TAILQ_EMPTY(&w->calls)) {
        return capacity;
    }
    TAILQ_FOREACH(call, &w->calls, link)
    {
        bool front = list_verb_has(call->verb, LIST_RANGES) && call->from >= 0 && call->to >= 0;
        uint64_t wanted = front && !call->wants_version ? (uint64_t)call->to + 1 : capacity;
        most = wanted > most ? wanted : most;
    }
    return u64_least(most, capacity);
}

void ring_parts(struct work *w)
{
    struct ring_work *own = ring_own(w);
    own->wanted = entries_wanted(w);
    own->named = 0;
    own->counted = own->recounted = false;
    (void)work_add_part(w, PART_SEQ, 0);
}

/* How many slots may hold entries: a counter that counts on has reached no more. */
static uint32_t slots_in_use(const struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct ring_work *own = ring_own(w);
    bool all = policy->counter_wraps || !own->counted || work_is_asked(w, LIST_DROP);
    return all || own->last >= policy->capacity ? policy->capacity : (uint32_t)own->last + 1;
}

static void name_slots(struct work *w, uint64_t up_to)
{
    struct ring_work *own = ring_own(w);
    uint32_t capacity = w->op.list->policy->capacity, newest = (uint32_t)(own->last % capacity);
    for (up_to = u64_least(up_to, slots_in_use(w)); own->named < up_to; own->named++) {
        (void)work_add_part(w, PART_SLOT, (newest + capacity - own->named) % capacity);
    }
    w->partial = own->named < capacity;
}

/* ---- what they hold ---- */

struct entry_at {
    uint64_t number; /* last and less */
    struct slot_entry entry;
};

static int newest_first(const void *a, const void *b)
{
    const struct entry_at *left = a, *right = b;
    return left->number > right->number ? -1 : left->number < right->number;
}

/* Reads the slots. Returns how many there are. */
static size_t read_slots(const struct work *w, struct entry_at *found)
{
    const struct list_policy *policy = w->op.list->policy;
    size_t count = 0;
    for (size_t i = 0; i < w->part_count; i++) {
        const struct part *part = &w->parts[i];
        struct entry_at *at = &found[count];
        if (part->role == PART_SLOT && slot_read(policy->slot, part->value, &at->entry)) {
            at->number = ring_is_numbered(policy) ? at->entry.number : part->number;
            count++;
        }
    }
    return count;
}

/* The number of the newest entry where there is no counter: the largest one; or that of the slot
 * with the latest time whose next one holds none as late. One that counts on has been all around,
 * so that all slots are in use. */
static uint64_t newest_of(const struct list_policy *policy, const struct entry_at *found,
                          size_t count)
{
    uint64_t newest = 0, *times = calloc(policy->capacity, sizeof *times);
    uint64_t latest = 0;
    CHECK(times != NULL);
    for (size_t i = 0; i < count; i++) {
        if (ring_is_numbered(policy)) {
            newest = found[i].number > newest ? found[i].number : newest;
        } else if (found[i].number < policy->capacity) {
            times[found[i].number] = found[i].entry.time_s + 1;
        }
    }
    if (!ring_is_numbered(policy) && count > 0) {
        newest = policy->capacity - 1;
        for (uint32_t slot = 0; slot < policy->capacity; slot++) {
            bool ends = times[slot] > times[(slot + 1) % policy->capacity];
            if (ends && times[slot] >= latest) {
                latest = times[slot];
                newest = slot;
            }
        }
        newest += policy->counter_wraps ? 0 : policy->capacity;
    }
    free(times);
    return newest;
}

/* Slots without numbers: gives each entry the one that its place says. */
static void number_by_place(const struct work *w, struct entry_at *found, size_t count)
{
    uint32_t capacity = w->op.list->policy->capacity;
    uint64_t last = ring_own(w)->last + capacity; /* so that none is below 0 */
    for (size_t i = 0; i < count; i++) {
        uint64_t age = (last % capacity + capacity - found[i].number % capacity) % capacity;
        found[i].number = last - age;
    }
}

/* How many entries were counted while the slots were read? */
static uint64_t counted_since(const struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct ring_work *own = ring_own(w);
    uint64_t now = 0;
    if (!own->recounted || !ring_counter(&w->parts[w->part_count - 1], &now)) {
        return 0;
    }
    uint64_t lap = policy->capacity;
    return policy->counter_wraps ? (now % lap + lap - own->last % lap) % lap
           : now > own->last     ? now - own->last
                                 : 0;
}

/* Is the counter to be asked for again, behind the slots? */
static bool wants_recount(const struct work *w, size_t count)
{
    const struct list_policy *policy = w->op.list->policy;
    const struct ring_work *own = ring_own(w);
    if (own->recounted || ring_is_numbered(policy)) {
        return false;
    }
    return own->counted ? own->named > policy->capacity / 2 : count > 0;
}

/* Was there no counter when the read began, and is there one now? */
static bool was_made_since(const struct work *w)
{
    uint64_t now;
    return !ring_own(w)->counted && ring_own(w)->recounted &&
           ring_counter(&w->parts[w->part_count - 1], &now);
}

/* Keeps those that are shown. Returns how many. */
static size_t keep_shown(const struct work *w, struct entry_at *found, size_t count)
{
    const struct list_policy *policy = w->op.list->policy;
    uint64_t last = ring_own(w)->last, since = 0;
    size_t kept = 0;
    if (!ring_is_numbered(policy)) {
        last += policy->capacity;
        since = counted_since(w);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t age = last - found[i].number;
        if (found[i].number <= last && age < policy->capacity && age + since < policy->capacity) {
            found[kept++] = found[i];
        }
    }
    return kept;
}

/* Entries that the counter does not have stay where they are when the list is moved. */
static void leave_uncounted(struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    struct slot_entry entry;
    for (size_t i = 0; w->completing && ring_is_numbered(policy) && i < w->part_count; i++) {
        struct part *part = &w->parts[i];
        part->foreign = part->foreign ||
                        (part->role == PART_SLOT && slot_read(policy->slot, part->value, &entry) &&
                         entry.number > ring_own(w)->last);
    }
}

/* Takes the counter, and names the first slots. */
static void begin(struct work *w)
{
    struct ring_work *own = ring_own(w);
    own->counted = ring_counter(&w->parts[0], &own->last);
    own->last = own->counted ? own->last : 0;
    name_slots(w, own->counted ? own->wanted : UINT64_MAX);
    if (w->lane != LANE_READ) {
        /* One more than the ring has: it is larger than this proxy believes. */
        (void)work_add_part(w, PART_SLOT, w->op.list->policy->capacity);
    }
}

enum look ring_look(struct engine *e, struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    struct ring_work *own = ring_own(w);
    (void)e;
    w->can_shrink = false;
    if (own->named == 0) {
        begin(w);
        return LOOK_MORE;
    }
    if (was_made_since(w)) {
        return LOOK_AGAIN;
    }
    struct entry_at *found = malloc((w->part_count + 1) * sizeof *found);
    CHECK(found != NULL);
    size_t count = read_slots(w, found);
    own->last = own->counted ? own->last : newest_of(policy, found, count);
    if (!ring_is_numbered(policy)) {
        number_by_place(w, found, count);
    }
    qsort(found, count, sizeof *found, newest_first);
    count = keep_shown(w, found, count);
    uint32_t named = own->named;
    if (!own->recounted && count < own->wanted) {
        name_slots(w, 2 * (uint64_t)named);
    }
    bool more = own->named > named;
    if (!more && wants_recount(w, count)) {
        (void)work_add_part(w, PART_SEQ, 0);
        more = own->recounted = true;
    }
    for (size_t i = 0; !more && i < count; i++) {
        items_push(&w->items, found[i].entry.shown);
    }
    free(found);
    leave_uncounted(w);
    return more ? LOOK_MORE : LOOK_DONE;
}
