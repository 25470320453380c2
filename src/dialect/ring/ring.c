/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.seq, a counter, and X.0 ... X.N-1, one entry each, as the prefix's slot says (slot.h):
 * "17 user-4", its number in front, or "user-4 1700000299", who and when. An entry's slot is its
 * number modulo N.
 *
 * Order of writes: INCR the counter by the number of entries, then SET their slots. Where there is
 * no counter, it is made as large as the number of the newest entry that is there. With
 * counter_wraps = yes a counter that has reached N is set back by CAS, by a multiple of N, before
 * the slots are written.
 *
 * A SET does not look at what stands in the slot. So before the first entry that this worker adds
 * to a ring, it reads the counter, the slot of the newest entry, those that the call will write to,
 * and the one behind the last: a value that no slot has, or a number in another one's place, says
 * that the ring is not as it is configured here.
 *
 * Not guaranteed: a proxy that dies between the two writes leaves a gap. A writer that falls behind
 * by a whole lap leaves one as well, since its late entry overwrites a newer one; without numbers
 * it is shown in that one's place.
 */
#include "dialect/ring/ring.h"

#include <stdio.h>

#include "base/number.h"
#include "dialect/ring/slot.h"
#include "dialect/shared/foreign.h"

#define TRIES_MAX 4
/* Slots written, or deleted, at the same time. */
#define INFLIGHT_MAX 256

/* All slots, whatever the counter says: those that a late change may have written to. */
static void all_parts(struct work *w)
{
    (void)work_add_part(w, PART_SEQ, 0);
    for (uint32_t n = 0; n < w->op.list->policy->capacity; n++) {
        (void)work_add_part(w, PART_SLOT, n);
    }
}

/* The item of an entry, as it is shown: without its time. */
static struct slice ring_item(const struct list_policy *policy, struct slice shown)
{
    struct slot_entry entry;
    return slot_read_shown(policy->slot, shown, &entry) ? entry.item : shown;
}

static const char *slot_grammar(const struct grammar *g, const struct part *part)
{
    const struct list_policy *policy = g->list->policy;
    struct slot_entry entry;
    if (part->number >= policy->capacity) {
        snprintf(g->reason, GRAMMAR_REASON_MAX, "a slot beyond capacity = %u", policy->capacity);
        return g->reason;
    }
    if (!slot_read(policy->slot, g->value, &entry)) {
        snprintf(g->reason, GRAMMAR_REASON_MAX, "no entry as slot = %.48s says", policy->slot);
        return g->reason;
    }
    if (ring_is_numbered(policy) && entry.number % policy->capacity != part->number) {
        snprintf(g->reason, GRAMMAR_REASON_MAX, "its number %llu is of another slot",
                 (unsigned long long)entry.number);
        return g->reason;
    }
    return grammar_item(g, entry.item);
}

static const char *ring_grammar(const struct grammar *g, const struct part *part)
{
    uint64_t number;
    switch (part->role) {
    case PART_SEQ:
        return ring_counter(part, &number) ? NULL : "no number";
    case PART_SLOT:
        return slot_grammar(g, part);
    default:
        return NULL;
    }
}

/* The ring may be sound, and this proxy's settings wrong. */
static const char *ring_use_elsewhere(const struct list *list, const struct part *part)
{
    (void)list;
    return part->role == PART_SLOT ? "do slot and capacity say what clients write?" : NULL;
}

/* The numbers of a ring go on after an ldrop, if memcached can count on. */
static bool ring_survives_drop(const struct part *part)
{
    uint64_t number;
    bool broken = part->state == PART_THERE && !ring_counter(part, &number);
    return part->role == PART_SEQ && !part->foreign && !broken;
}

static void ring_replace_call(struct work *w, const struct list_call *call, struct list_call *ghost)
{
    if (ring_own(w)->writing == call) {
        ring_own(w)->writing = ghost;
    }
}

/* ---- adding ---- */

static size_t count_items(const struct work *w)
{
    const struct list_call *call;
    size_t count = 0;
    TAILQ_FOREACH(call, &w->calls, link)
    {
        count += call->item_count;
    }
    return count;
}

static const struct part counter = {.role = PART_SEQ};

/* Names the slots of the next entries behind that number. */
static void name_next(struct work *w, uint64_t last)
{
    uint32_t capacity = w->op.list->policy->capacity;
    for (uint64_t i = 1; i <= u64_least(count_items(w), capacity); i++) {
        (void)work_add_part(w, PART_SLOT, (uint32_t)((last + i) % capacity));
    }
}

/* Before the first INCR: ends with failed, or memcached can count on, and the slots that the call
 * is going to write to are the ring's. */
static enum progress look_before(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    uint32_t capacity = w->op.list->policy->capacity;
    CO_BEGIN(co);
    work_forget_parts(w);
    (void)work_add_part(w, PART_SEQ, 0);
    CO_CALL(co, work_gather(e, w, event));
    if (w->failed || !foreign_refuse_parts(e, w, 0, 1) ||
        !ring_counter(&w->parts[0], &ring_own(w)->last)) {
        CO_RETURN(co); /* there is none: it is made from all slots, which are read then */
    }
    ring_own(w)->expected = ring_own(w)->last + count_items(w);
    (void)work_add_part(w, PART_SLOT, (uint32_t)(ring_own(w)->last % capacity));
    (void)work_add_part(w, PART_SLOT, capacity);
    name_next(w, ring_own(w)->last);
    CO_CALL(co, work_gather(e, w, event));
    if (!w->failed) {
        w->failed = !foreign_refuse_parts(e, w, 0, w->part_count);
    }
    if (!w->failed && ring_own(w)->last > 0 && w->parts[1].state == PART_MISSING) {
        /* A gap, or entries of a ring of another capacity stand elsewhere. */
        CO_CALL(co, work_look(e, w, event));
        ring_own(w)->expected = ring_own(w)->last + count_items(w);
    }
    CO_END(co);
}

/* Before the first write to slots: ends with failed when one of them holds a foreign value. */
static enum progress look_at_slots(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    work_forget_parts(w);
    name_next(w, ring_own(w)->last - count_items(w));
    CO_CALL(co, work_gather(e, w, event));
    if (!w->failed) {
        w->failed = !foreign_refuse_parts(e, w, 0, w->part_count);
    }
    CO_END(co);
}

/* The counter has come around: sets it back as clients by hand do, but loses no number that another
 * one takes meanwhile. If it cannot, the next writer does. */
static enum progress set_back(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    uint32_t capacity = w->op.list->policy->capacity;
    struct block *value;
    uint64_t number;
    char digits[24];
    CO_BEGIN(co);
    for (w->tries = 0; w->tries < TRIES_MAX; w->tries++) {
        work_forget_parts(w);
        (void)work_add_part(w, PART_SEQ, 0);
        CO_CALL(co, work_gather(e, w, event));
        if (w->failed || !ring_counter(&w->parts[0], &number) || number < capacity) {
            break;
        }
        value = block_new(sizeof digits);
        block_append(&value, digits, format_u64(digits, number % capacity));
        part_write(e, &w->op, &w->parts[0], value, 0);
        block_unref(&value);
        CO_AWAIT(co, "setting the counter back");
        if (event->status != BE_EXISTS) {
            break;
        }
    }
    w->failed = false;
    CO_END(co);
}

/* Ends with the number of the last entry in ring_own(w)->last, or failed. */
static enum progress take_numbers(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct block *value;
    char digits[24];
    CO_BEGIN(co);
    for (w->tries = 0; w->tries < TRIES_MAX; w->tries++) {
        part_incr(e, &w->op, &counter, count_items(w), 0);
        CO_AWAIT(co, "taking numbers");
        if (event->status == BE_STORED) {
            ring_own(w)->last = event->reply->number;
            CO_RETURN(co);
        }
        if (event->status != BE_NOT_FOUND) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
        CO_CALL(co, work_look(e, w, event));
        if (w->failed) {
            CO_RETURN(co);
        }
        value = block_new(sizeof digits);
        block_append(&value, digits, format_u64(digits, ring_own(w)->last));
        part_send(e, &w->op, &counter, BE_ADD, value, 0);
        block_unref(&value);
        CO_AWAIT(co, "making the counter");
        if (event->status != BE_STORED && event->status != BE_NOT_STORED) {
            work_note_error(w, event);
            CO_RETURN(co);
        }
    }
    work_note_text(w, "busy, nothing done: the ring's counter is removed each time");
    CO_END(co);
}

/* An item that comes with a time, as readers are shown it, keeps that. */
static void send_slot(struct engine *e, struct work *w, uint64_t number, struct slice item)
{
    const struct list_policy *policy = w->op.list->policy;
    struct part slot = {.role = PART_SLOT, .number = (uint32_t)(number % policy->capacity)};
    struct block *value = block_new(item.len + sizeof policy->slot);
    struct slot_entry entry;
    if (!slot_read_shown(policy->slot, item, &entry)) {
        entry.item = item;
        entry.time_s = (uint64_t)e->now.wall_s;
    }
    entry.number = number;
    slot_write(policy->slot, &entry, &value);
    part_send(e, &w->op, &slot, BE_SET, value, 0);
    block_unref(&value);
}

/* Takes the next item of the calls. False: there is no more. */
static bool next_item(struct work *w, struct slice *item)
{
    while (ring_own(w)->writing != NULL) {
        if (w->next_part < ring_own(w)->writing->item_count) {
            *item = ring_own(w)->writing->items[w->next_part++];
            return true;
        }
        ring_own(w)->writing = TAILQ_NEXT(ring_own(w)->writing, link);
        w->next_part = 0;
    }
    return false;
}

/* Sends the next slots, except for those that later entries of the same batch would overwrite. */
static void send_slots(struct engine *e, struct work *w)
{
    uint32_t capacity = w->op.list->policy->capacity;
    struct slice item;
    while (w->op.due < INFLIGHT_MAX && next_item(w, &item)) {
        uint64_t number = ++ring_own(w)->number;
        if (ring_own(w)->last - number < capacity) {
            send_slot(e, w, number, item);
        }
    }
}

static enum progress ring_change(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    ring_own(w)->is_new = !foreign_knows(w->op.list, &counter);
    ring_own(w)->expected = 0;
    if (ring_own(w)->is_new) {
        CO_CALL(co, look_before(e, w, event));
    }
    if (!w->failed) {
        CO_CALL(co, take_numbers(e, w, event));
    }
    if (!w->failed && ring_own(w)->is_new && ring_own(w)->last != ring_own(w)->expected) {
        CO_CALL(co, look_at_slots(e, w, event));
    }
    if (!w->failed && ring_own(w)->is_new) {
        foreign_note_known(w->op.list, &counter);
    }
    if (!w->failed && w->op.list->policy->counter_wraps &&
        ring_own(w)->last >= w->op.list->policy->capacity) {
        CO_CALL(co, set_back(e, w, event));
    }
    if (!w->failed) {
        ring_own(w)->number = ring_own(w)->last - count_items(w);
        ring_own(w)->writing = TAILQ_FIRST(&w->calls);
        w->next_part = 0;
        send_slots(e, w);
        while (w->op.due > 0) {
            CO_AWAIT(co, "writing slots");
            if (event->status != BE_STORED) {
                work_note_error(w, event);
            }
            w->wrote_any = w->wrote_any || event->status == BE_STORED || event->status == BE_LOST;
            send_slots(e, w);
        }
    }
    if (w->failed && w->wrote_any) {
        work_note_unknown(w);
    }
    work_end(e, w);
    CO_END(co);
}

/* There is nothing to fold in a ring. */
static enum progress ring_compact(struct engine *e, struct work *w, const struct op_event *event)
{
    (void)event;
    work_finish(e, w);
    return PROGRESS_DONE;
}

const struct dialect dialect_ring = {
    .name = "ring",
    .lanes = {[LIST_ADD] = LANE_ADD},
    .unsupported_reason = "a ring takes ladd alone, and forgets by itself",
    .grammar = ring_grammar,
    .integers = ROLE(PART_SEQ),
    .essential = ROLE(PART_SEQ),
    .newest_first = true,
    .item_of = ring_item,
    .use_elsewhere = ring_use_elsewhere,
    .work_bytes = sizeof(struct ring_work),
    .parts = ring_parts,
    .look = ring_look,
    .change = ring_change,
    .drop = dialect_drop,
    .drops_at_once = INFLIGHT_MAX,
    .survives_drop = ring_survives_drop,
    .replace_call = ring_replace_call,
    .compact = ring_compact,
    .late_parts = all_parts,
};
