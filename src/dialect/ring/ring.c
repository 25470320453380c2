/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stored: X.seq, a counter, and X.0 ... X.N-1, one entry each: "17 user-4", with its number in
 * front and, if stamp = yes, the proxy's time in seconds behind it. An entry's slot is its number
 * modulo N.
 *
 * Order of writes: INCR the counter by the number of entries, then SET their slots. Where there is
 * no counter, it is made as large as the largest number in a slot.
 *
 * A SET does not look at what stands in the slot. So before the first entry that this worker adds
 * to a ring, it reads the counter and the slots that the call is about to write.
 *
 * Not guaranteed: a proxy that dies between the two writes leaves a gap. A writer that falls behind
 * by a whole lap leaves one as well, since its late entry overwrites a newer one. Readers skip
 * gaps. When N changes, entries in slots that are no longer used are not found.
 */
#include "dialect/ring/ring.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "dialect/shared/foreign.h"

#define TRIES_MAX 4
/* Slots written, or deleted, at the same time. */
#define INFLIGHT_MAX 256
/* A blank and 20 digits behind an item: its time. */
#define STAMP_BYTES_MAX 21

/* The state of an operation. */
struct ring_work {
    uint64_t last, number;     /* the last entry's number, and that of the one being written */
    struct list_call *writing; /* the call whose items are being written */
    bool is_new;               /* this worker does not know the ring: it looks first */
};

static struct ring_work *ring_own(const struct work *w)
{
    return w->own;
}

static void ring_parts(struct work *w)
{
    (void)work_add_part(w, PART_SEQ, 0);
    for (uint32_t n = 0; n < w->op.list->policy->capacity; n++) {
        (void)work_add_part(w, PART_SLOT, n);
    }
}

/* The item of an entry: without the time behind it. */
static struct slice ring_item(const struct list_policy *policy, struct slice entry)
{
    if (policy->stamp) {
        for (size_t i = entry.len; i-- > 0;) {
            if (entry.p[i] == ' ') {
                return slice_make(entry.p, i);
            }
        }
    }
    return entry;
}

/* ---- reading ---- */

struct entry_at {
    uint64_t number;
    struct slice entry;
};

static int newest_first(const void *a, const void *b)
{
    const struct entry_at *left = a, *right = b;
    return left->number > right->number ? -1 : left->number < right->number;
}

/* Reads "17 user-4". False: it is no entry. */
static bool slot_parse(struct slice value, uint64_t *number, struct slice *entry)
{
    const char *blank = value.len > 0 ? memchr(value.p, ' ', value.len) : NULL;
    if (blank == NULL) {
        return false;
    }
    struct slice digits = slice_take(&value, (size_t)(blank - value.p));
    (void)slice_take(&value, 1);
    *entry = value;
    return value.len > 0 && slice_to_u64(digits, number);
}

/* memcached pads a number with blanks when it becomes shorter. */
static bool counter_parse(const struct part *part, uint64_t *number)
{
    struct slice text = part->value;
    while (text.len > 0 && text.p[text.len - 1] == ' ') {
        text.len--;
    }
    return slice_to_u64(text, number);
}

static const char *ring_grammar(const struct grammar *g, const struct part *part)
{
    uint64_t number;
    struct slice entry;
    switch (part->role) {
    case PART_SEQ:
        return counter_parse(part, &number) ? NULL : "no number";
    case PART_SLOT:
        return slot_parse(g->value, &number, &entry)
                   ? grammar_item_with(g, entry, STAMP_BYTES_MAX)
                   : "no entry of a ring: a number, a blank, an item";
    default:
        return NULL;
    }
}

/* The numbers of a ring go on after an ldrop, if memcached can count on. */
static bool ring_survives_drop(const struct part *part)
{
    uint64_t number;
    bool broken = part->state == PART_THERE && !counter_parse(part, &number);
    return part->role == PART_SEQ && !part->foreign && !broken;
}

static void ring_replace_call(struct work *w, const struct list_call *call, struct list_call *ghost)
{
    if (ring_own(w)->writing == call) {
        ring_own(w)->writing = ghost;
    }
}

static enum look ring_look(struct engine *e, struct work *w)
{
    uint32_t capacity = w->op.list->policy->capacity;
    struct entry_at *found = malloc((w->part_count + 1) * sizeof *found);
    size_t count = 0;
    (void)e;
    CHECK(found != NULL);
    if (!counter_parse(&w->parts[0], &ring_own(w)->last)) {
        ring_own(w)->last = 0;
    }
    for (size_t i = 1; i < w->part_count; i++) {
        if (slot_parse(w->parts[i].value, &found[count].number, &found[count].entry)) {
            if (found[count].number > ring_own(w)->last) {
                ring_own(w)->last = found[count].number;
            }
            count++;
        }
    }
    qsort(found, count, sizeof *found, newest_first);
    for (size_t i = 0; i < count && ring_own(w)->last - found[i].number < capacity; i++) {
        if (i == 0 || found[i].number != found[i - 1].number) {
            items_push(&w->items, found[i].entry);
        }
    }
    free(found);
    w->can_shrink = false;
    return LOOK_DONE;
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

/* Before the first INCR: ends with failed, or memcached can count on. */
static enum progress look_at_counter(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    metric_inc(e->metrics, METRIC_list_part_reads);
    part_send(e, &w->op, &counter, BE_GET, NULL, 0);
    CO_AWAIT(co, "looking at a counter that is not known");
    if (event->status != BE_HIT && event->status != BE_MISS) {
        work_note_error(w, event);
    } else if (foreign_refuse_reply(e, w, PART_SEQ, 0, event->reply)) {
        foreign_note_known(w->op.list, &counter);
    }
    CO_END(co);
}

/* Before the first write to slots: ends with failed when one of them holds a foreign value. */
static enum progress look_at_slots(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    uint32_t capacity = w->op.list->policy->capacity;
    CO_BEGIN(co);
    work_forget_parts(w);
    for (uint64_t i = 0; i < u64_least(count_items(w), capacity); i++) {
        (void)work_add_part(w, PART_SLOT, (uint32_t)((ring_own(w)->last - i) % capacity));
    }
    CO_CALL(co, work_gather(e, w, event));
    if (!w->failed) {
        w->failed = !foreign_refuse_parts(e, w, 0, w->part_count);
    }
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

static void send_slot(struct engine *e, struct work *w, uint64_t number, struct slice item)
{
    const struct list_policy *policy = w->op.list->policy;
    char text[32];
    struct part slot = {.role = PART_SLOT, .number = (uint32_t)(number % policy->capacity)};
    struct block *value = block_new(item.len + 2 * sizeof text);
    block_append(&value, text, format_u64(text, number));
    block_append(&value, " ", 1);
    block_append(&value, item.p, item.len);
    if (policy->stamp) {
        int len = snprintf(text, sizeof text, " %lld", (long long)e->now.wall_s);
        block_append(&value, text, (size_t)len);
    }
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
    if (ring_own(w)->is_new) {
        CO_CALL(co, look_at_counter(e, w, event));
    }
    if (!w->failed) {
        CO_CALL(co, take_numbers(e, w, event));
    }
    if (!w->failed && ring_own(w)->is_new) {
        CO_CALL(co, look_at_slots(e, w, event));
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
    .work_bytes = sizeof(struct ring_work),
    .parts = ring_parts,
    .look = ring_look,
    .change = ring_change,
    .drop = dialect_drop,
    .drops_at_once = INFLIGHT_MAX,
    .survives_drop = ring_survives_drop,
    .replace_call = ring_replace_call,
    .compact = ring_compact,
};
