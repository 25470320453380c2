/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "search_impl.h"

static void note(struct search *s, enum trail_kind kind, uint32_t step, uint32_t before)
{
    if (s->trail_count == s->trail_cap) {
        s->trail_cap = s->trail_cap == 0 ? 1024 : s->trail_cap * 2;
        s->trail = realloc(s->trail, s->trail_cap * sizeof *s->trail);
        CHECK(s->trail != NULL);
    }
    s->trail[s->trail_count++] = (struct trail_entry){kind, step, before};
}

/* --- may it take effect? --- */

static uint32_t present_count(const struct search *s, const struct step *step)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < step->item_count; i++) {
        n += sequence_has(&s->content, step->items[i]);
    }
    return n;
}

static bool has_as_seen(const struct search *s, const struct step *step)
{
    for (uint32_t i = 0; i < step->item_count; i++) {
        if (sequence_has(&s->content, step->items[i]) != (i < step->seen_count)) {
            return false;
        }
    }
    return true;
}

static bool sees_in_order(struct search *s, const struct step *step)
{
    uint32_t found = 0;
    if (present_count(s, step) < step->item_count) {
        return false;
    }
    for (uint32_t node = s->content.next[0]; node != 0 && found < step->item_count;
         node = s->content.next[node]) {
        found += node == step->items[found] + 1;
    }
    s->order_mattered = s->order_mattered || found < step->item_count;
    return found == step->item_count;
}

static bool reads_all(struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    if (s->content.count != step->item_count || !hash128_equal(s->content.set, s->answer_set[i])) {
        return false;
    }
    bool same = hash128_equal(s->content.order, s->answer_order[i]) &&
                sequence_equals(&s->content, step->items, step->item_count);
    s->order_mattered = s->order_mattered || !same;
    return same;
}

static bool reads_range(struct search *s, const struct step *step)
{
    if (present_count(s, step) < step->item_count) {
        return false;
    }
    bool same =
        sequence_range_equals(&s->content, step->from, step->to, step->items, step->item_count);
    s->order_mattered = s->order_mattered || (!same && step->item_count > 0);
    return same;
}

static bool exists_as_needed(const struct search *s, const struct step *step)
{
    return !s->p->refuse || step->exists == EXISTS_EITHER ||
           (step->exists == EXISTS_YES) == s->exists;
}

static bool count_fits(const struct step *step, uint32_t n)
{
    return n >= step->count_min && n <= step->count_max;
}

bool step_possible(struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    switch (step->kind) {
    case STEP_ADD:
        return (!s->p->refuse || s->exists) &&
               count_fits(step, step->item_count - present_count(s, step));
    case STEP_DEL:
        return (!s->p->refuse || s->exists) && count_fits(step, present_count(s, step));
    case STEP_SET:
        return true;
    case STEP_CREATE:
        return s->p->refuse ? !s->exists : s->content.count == 0;
    case STEP_REMOVE:
        return !s->p->refuse || s->exists;
    case STEP_NEVER:
        return false;
    case STEP_CHECK:
        return exists_as_needed(s, step);
    case STEP_READ:
        return exists_as_needed(s, step) && reads_all(s, i);
    case STEP_HAS:
        return exists_as_needed(s, step) && has_as_seen(s, step);
    case STEP_LEN:
        return exists_as_needed(s, step) && count_fits(step, s->content.count);
    case STEP_RANGE:
        return exists_as_needed(s, step) && reads_range(s, step);
    case STEP_SEES:
        return exists_as_needed(s, step) && sees_in_order(s, step);
    }
    return false;
}

bool step_effective(struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    bool same;
    switch (step->kind) {
    case STEP_ADD:
        return present_count(s, step) < step->item_count;
    case STEP_DEL:
        return present_count(s, step) > 0;
    case STEP_SET:
    case STEP_CREATE:
        same = sequence_equals(&s->content, step->items, step->item_count) &&
               (!s->p->refuse || s->exists);
        s->order_mattered = s->order_mattered || (same && step->item_count > 1);
        return !same;
    case STEP_REMOVE:
        return s->content.count > 0 || (s->p->refuse && s->exists);
    default:
        return false;
    }
}

/* --- taking effect --- */

static void push(struct search *s, uint32_t item)
{
    sequence_push(&s->content, item);
    note(s, TRAIL_PUSH, item, 0);
}

static void cut(struct search *s, uint32_t item)
{
    uint32_t before;
    sequence_cut(&s->content, item, &before);
    note(s, TRAIL_CUT, item, before);
}

static void set_exists(struct search *s, bool exists)
{
    if (s->p->refuse && s->exists != exists) {
        note(s, TRAIL_EXISTS, s->exists, 0);
        s->exists = exists;
    }
}

static void empty(struct search *s)
{
    while (s->content.count > 0) {
        cut(s, s->content.prev[0] - 1);
    }
}

static struct hash128 hash_of_step(uint32_t i)
{
    return hash128_of((uint64_t)1 << 63 | i);
}

static void ring_leave(struct search *s, uint32_t i)
{
    s->ring_next[s->ring_prev[i]] = s->ring_next[i];
    s->ring_prev[s->ring_next[i]] = s->ring_prev[i];
    s->under_way[i] = false;
    if (s->free_bit[i] == NO_STEP) {
        hash128_sub(&s->under_way_hash, hash_of_step(i));
    }
    ahead_count(s, i, false);
}

/* Back to where it was; its own links still tell. */
static void ring_return(struct search *s, uint32_t i)
{
    s->ring_next[s->ring_prev[i]] = i;
    s->ring_prev[s->ring_next[i]] = i;
    s->under_way[i] = true;
    if (s->free_bit[i] == NO_STEP) {
        hash128_add(&s->under_way_hash, hash_of_step(i));
    }
    ahead_count(s, i, true);
}

void step_call(struct search *s, uint32_t i)
{
    uint32_t head = ring_of(s, &s->p->steps[i]);
    s->ring_prev[i] = s->ring_prev[head];
    s->ring_next[i] = head;
    ring_return(s, i);
    note(s, TRAIL_CALL, i, 0);
}

static void leave(struct search *s, uint32_t i, enum trail_kind kind)
{
    ring_leave(s, i);
    note(s, kind, i, 0);
    if (kind == TRAIL_EFFECT && s->free_bit[i] != NO_STEP) {
        s->used[s->free_bit[i] / 64] |= (uint64_t)1 << (s->free_bit[i] % 64);
    }
}

void step_expire(struct search *s, uint32_t i)
{
    leave(s, i, TRAIL_EXPIRE);
}

/* Adds or deletes the items; false as soon as one is ruled out. */
static bool take_items(struct search *s, const struct step *step, bool add)
{
    bool allowed = true;
    size_t mark = s->trail_count;
    for (uint32_t n = 0; n < step->item_count; n++) {
        if (sequence_has(&s->content, step->items[n]) != add) {
            if (add) {
                push(s, step->items[n]);
            } else {
                cut(s, step->items[n]);
            }
        }
    }
    for (size_t t = mark, end = s->trail_count; t < end && allowed; t++) {
        allowed = owed_allows_item(s, s->trail[t].step);
    }
    return allowed;
}

bool step_take(struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    leave(s, i, TRAIL_EFFECT);
    switch (step->kind) {
    case STEP_ADD:
        return take_items(s, step, true);
    case STEP_DEL:
        return take_items(s, step, false);
    case STEP_SET:
    case STEP_CREATE:
        set_exists(s, true);
        empty(s);
        for (uint32_t n = 0; n < step->item_count; n++) {
            push(s, step->items[n]);
        }
        return owed_allows_all(s);
    case STEP_REMOVE:
        set_exists(s, false);
        empty(s);
        return owed_allows_all(s);
    default:
        return true;
    }
}

/* Is it a change that can do nothing any more? */
static bool is_idle(struct search *s, uint32_t i)
{
    const struct step *step = &s->p->steps[i];
    if (s->replays && step->hint == HISTORY_HINT_NOTHING) {
        return step_possible(s, i) && !step_effective(s, i);
    }
    if (step->optional || (step->kind != STEP_ADD && step->kind != STEP_DEL) ||
        !step_possible(s, i) || step_effective(s, i)) {
        return false;
    }
    for (uint32_t n = 0; n < step->item_count; n++) {
        if (step->kind == STEP_ADD ? ahead_may_remove(s, step->items[n], s->complete_at[i])
                                   : ahead_may_add(s, step->items[n], s->complete_at[i])) {
            return false;
        }
    }
    return true;
}

void step_settle(struct search *s, uint32_t i)
{
    if (changes(&s->p->steps[i]) ? is_idle(s, i) : step_possible(s, i)) {
        leave(s, i, TRAIL_EFFECT);
    }
}

void steps_settle(struct search *s)
{
    bool again = true;
    for (uint32_t next, i = s->ring_next[RING_OTHERS(s)]; i != RING_OTHERS(s); i = next) {
        next = s->ring_next[i];
        if (step_possible(s, i)) {
            leave(s, i, TRAIL_EFFECT);
        }
    }
    while (again) {
        again = false;
        for (uint32_t next, i = s->ring_next[RING_CHANGES(s)]; i != RING_CHANGES(s); i = next) {
            next = s->ring_next[i];
            if (is_idle(s, i)) {
                leave(s, i, TRAIL_EFFECT);
                again = true;
            }
        }
    }
}

/* --- taking back --- */

static void undo_entry(struct search *s, const struct trail_entry *t)
{
    switch (t->kind) {
    case TRAIL_PUSH:
        CHECK_SLOW(s->content.prev[0] == t->step + 1);
        sequence_pop(&s->content);
        break;
    case TRAIL_CUT:
        sequence_restore(&s->content, t->step, t->before);
        break;
    case TRAIL_EXISTS:
        s->exists = t->step != 0;
        break;
    case TRAIL_CALL:
        ring_leave(s, t->step);
        break;
    case TRAIL_EFFECT:
        if (s->free_bit[t->step] != NO_STEP) {
            s->used[s->free_bit[t->step] / 64] &= ~((uint64_t)1 << (s->free_bit[t->step] % 64));
        }
        ring_return(s, t->step);
        break;
    case TRAIL_EXPIRE:
        ring_return(s, t->step);
        break;
    }
}

void steps_undo(struct search *s, size_t trail_mark)
{
    while (s->trail_count > trail_mark) {
        undo_entry(s, &s->trail[--s->trail_count]);
    }
}
