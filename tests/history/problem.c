/* SPDX-License-Identifier: BSD-3-Clause */
#include "problem.h"

#include <stdlib.h>

#define NO_NUMBER UINT32_MAX

void projector_init(struct projector *pr, const struct history *h)
{
    *pr = (struct projector){.history = h};
    pr->number_of = history_alloc(h->items.count, sizeof *pr->number_of);
    pr->number_stamp = history_alloc(h->items.count, sizeof *pr->number_stamp);
    pr->mark = history_alloc(h->items.count, sizeof *pr->mark);
    pr->items = history_alloc(h->items.count, sizeof *pr->items);
    arena_init(&pr->arena);
}

void projector_fini(struct projector *pr)
{
    free(pr->number_of);
    free(pr->number_stamp);
    free(pr->mark);
    free(pr->items);
    free(pr->steps);
    arena_fini(&pr->arena);
}

/* --- items --- */

static uint32_t take_number(struct projector *pr, uint32_t item)
{
    pr->number_stamp[item] = pr->stamp;
    pr->number_of[item] = pr->item_count;
    pr->items[pr->item_count] = item;
    return pr->item_count++;
}

static uint32_t number_of(struct projector *pr, const struct view *view, uint32_t item)
{
    if (pr->number_stamp[item] == pr->stamp) {
        return pr->number_of[item];
    }
    return view->items == NULL ? take_number(pr, item) : NO_NUMBER;
}

/* The items that are in view, each once; *repeated when one came again. */
static uint32_t *project(struct projector *pr, const struct view *view, const uint32_t *items,
                         uint32_t count, uint32_t *kept, bool *repeated)
{
    uint32_t *out = arena_alloc(&pr->arena, count * sizeof *out);
    *kept = 0;
    *repeated = false;
    pr->marks++;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = number_of(pr, view, items[i]);
        if (pr->mark[items[i]] == pr->marks) {
            *repeated = true;
        } else if (number != NO_NUMBER) {
            out[(*kept)++] = number;
        }
        pr->mark[items[i]] = pr->marks;
    }
    return out;
}

static uint32_t count_different(struct projector *pr, const struct record *r)
{
    uint32_t n = 0;
    pr->marks++;
    for (uint32_t i = 0; i < r->item_count; i++) {
        n += pr->mark[r->items[i]] != pr->marks;
        pr->mark[r->items[i]] = pr->marks;
    }
    return n;
}

/* --- answers --- */

/* Does the answer hold the whole list? So do ranges that begin at one end of the list and found
 * less than they asked for. */
static bool is_whole(const struct record *r)
{
    int64_t n = r->answer_count;
    if (r->verb != HISTORY_LRANGE) {
        return r->verb == HISTORY_LGET;
    }
    return (r->from == 0 && (r->to == -1 || (r->to >= 0 && n <= r->to))) ||
           (r->to == -1 && r->from < 0 && n < -r->from);
}

/* The answer of an lhas: each item asked for that is there, in the order asked and as often. Items
 * that were seen come first in the step. */
static void step_of_has(struct projector *pr, const struct view *view, const struct record *r,
                        struct step *step)
{
    uint32_t expected = 0, kept;
    bool repeated;
    uint32_t *all = project(pr, view, r->items, r->item_count, &kept, &repeated);
    uint32_t *items = arena_alloc(&pr->arena, kept * sizeof *items), front = 0, back = kept;
    pr->marks++;
    for (uint32_t i = 0; i < r->answer_count; i++) {
        pr->mark[r->answer[i]] = pr->marks;
    }
    for (uint32_t i = 0; i < kept; i++) {
        bool seen = pr->mark[pr->items[all[i]]] == pr->marks;
        items[seen ? front++ : --back] = all[i];
    }
    for (uint32_t i = 0; i < r->item_count; i++) {
        if (pr->mark[r->items[i]] == pr->marks) {
            if (expected >= r->answer_count || r->answer[expected] != r->items[i]) {
                step->kind = STEP_NEVER;
            }
            expected++;
        }
    }
    step->kind = expected != r->answer_count || step->kind == STEP_NEVER ? STEP_NEVER : STEP_HAS;
    step->items = items;
    step->item_count = kept;
    step->seen_count = front;
}

static enum step_exists read_exists(const struct record *r)
{
    if (r->outcome == HISTORY_MISSING) {
        return r->verb == HISTORY_LHAS || r->verb == HISTORY_LLEN ? EXISTS_EITHER : EXISTS_NO;
    }
    return r->outcome == HISTORY_OK && (is_whole(r) || r->verb == HISTORY_LRANGE) ? EXISTS_YES
                                                                                  : EXISTS_EITHER;
}

static void step_of_read(struct projector *pr, const struct view *view, const struct record *r,
                         struct step *step)
{
    bool repeated;
    step->exists = read_exists(r);
    if (r->outcome == HISTORY_NOT_STORED) {
        step->kind = STEP_NEVER;
    } else if (r->verb == HISTORY_LHAS) {
        step_of_has(pr, view, r, step);
    } else if (r->verb == HISTORY_LLEN) {
        step->kind = STEP_LEN;
        step->count_max = r->count > UINT32_MAX ? UINT32_MAX : (uint32_t)r->count;
        step->count_min = view->items == NULL ? step->count_max : 0;
    } else {
        step->items = project(pr, view, r->answer, r->answer_count, &step->item_count, &repeated);
        step->kind = is_whole(r) ? STEP_READ : view->items == NULL ? STEP_RANGE : STEP_SEES;
        step->from = r->from;
        step->to = r->to;
        step->kind = repeated ? STEP_NEVER : step->kind;
    }
}

/* A blind or exact change of items that was done, or may have been. */
static void step_of_change(struct projector *pr, const struct view *view, const struct record *r,
                           struct step *step)
{
    bool add = r->verb == HISTORY_LADD || r->verb == HISTORY_LADDX, repeated;
    bool exact = r->verb == HISTORY_LADDX || r->verb == HISTORY_LDELX;
    uint32_t all = count_different(pr, r);
    step->kind = add ? STEP_ADD : STEP_DEL;
    step->items = project(pr, view, r->items, r->item_count, &step->item_count, &repeated);
    step->count_max = step->item_count;
    if (exact && r->outcome == HISTORY_OK) {
        uint32_t others = all - step->item_count;
        if (r->count > all) {
            step->kind = STEP_NEVER;
            return;
        }
        step->count_min = r->count > others ? (uint32_t)r->count - others : 0;
        step->count_max = r->count < step->count_max ? (uint32_t)r->count : step->count_max;
    }
    if (step->count_max == 0 && r->outcome == HISTORY_OK) {
        /* It changed nothing: all were there, or none. */
        step->kind = STEP_HAS;
        step->exists = EXISTS_YES;
        step->seen_count = add ? step->item_count : 0;
    }
}

/* A list had to be there, or not, and nothing was done. */
static void step_of_refusal(const struct history *h, const struct view *view,
                            const struct record *r, struct step *step)
{
    bool add = r->verb == HISTORY_LADD || r->verb == HISTORY_LADDX;
    step->kind = STEP_NEVER;
    if (r->outcome == HISTORY_NOT_STORED && r->verb == HISTORY_LCREATE) {
        step->kind = h->refuse ? STEP_CHECK : STEP_LEN;
        step->exists = EXISTS_YES;
        step->count_min = view->items == NULL ? 1 : 0;
        step->count_max = UINT32_MAX;
    } else if (!h->refuse && r->outcome == HISTORY_MISSING && r->verb == HISTORY_LDROP) {
        step->kind = STEP_LEN; /* a bridge's delete, which found no item */
        step->exists = EXISTS_EITHER;
    } else if (h->refuse && (r->outcome == HISTORY_NOT_STORED
                                 ? add
                                 : !add && r->verb != HISTORY_LSET && r->verb != HISTORY_LCREATE)) {
        step->kind = STEP_CHECK;
        step->exists = EXISTS_NO;
    }
}

/* Was it answered that nothing was done, since the list was there, or not? */
static bool refused(const struct record *r)
{
    return r->outcome == HISTORY_MISSING || r->outcome == HISTORY_NOT_STORED;
}

static void step_of_record(struct projector *pr, const struct view *view, const struct record *r,
                           struct step *step)
{
    bool repeated;
    if (r->verb >= HISTORY_LGET && r->verb <= HISTORY_LRANGE) {
        step_of_read(pr, view, r, step);
    } else if (refused(r)) {
        step_of_refusal(pr->history, view, r, step);
    } else if (r->verb == HISTORY_LCOMPACT) {
        step->kind = STEP_CHECK;
        step->exists = EXISTS_YES;
    } else if (r->verb == HISTORY_LDROP) {
        step->kind = STEP_REMOVE;
    } else if (r->verb == HISTORY_LSET || r->verb == HISTORY_LCREATE) {
        step->kind = r->verb == HISTORY_LSET ? STEP_SET : STEP_CREATE;
        step->items = project(pr, view, r->items, r->item_count, &step->item_count, &repeated);
        step->count_max = step->item_count;
    } else {
        step_of_change(pr, view, r, step);
    }
}

/* --- a whole list --- */

/* Does the step say nothing in this view? */
static bool says_nothing(const struct history *h, const struct view *view, struct step *step)
{
    bool existence = h->refuse && step->exists != EXISTS_EITHER;
    switch (step->kind) {
    case STEP_ADD:
    case STEP_DEL:
        if (step->item_count == 0 && !step->optional && h->refuse) {
            step->kind = STEP_CHECK;
            step->exists = EXISTS_YES;
            return false;
        }
        return step->item_count == 0;
    case STEP_CHECK:
        return !existence;
    case STEP_HAS:
    case STEP_SEES:
        return step->item_count == 0 && !existence;
    case STEP_LEN:
        return view->items != NULL && step->count_max >= view->item_count && !existence;
    default:
        return false;
    }
}

static void put(struct projector *pr, const struct step *step)
{
    pr->steps = history_grow(pr->steps, pr->step_count, &pr->step_cap, sizeof *pr->steps);
    pr->steps[pr->step_count++] = *step;
}

static bool is_change(const struct step *step)
{
    return step->kind <= STEP_REMOVE;
}

/* Is the record left out of the view as a whole? */
static bool is_out(const struct view *view, const struct record *r, enum fate fate)
{
    bool over = r->completed < view->cut_from && r->outcome != HISTORY_UNKNOWN;
    return r->outcome == HISTORY_ERROR || r->outcome == HISTORY_DAMAGED || fate == FATE_DROP ||
           over || r->invoked > view->until;
}

static void put_record(struct projector *pr, const struct view *view, uint32_t number,
                       enum fate fate)
{
    const struct record *r = &pr->history->records[number];
    if (is_out(view, r, fate)) {
        return;
    }
    bool unknown = r->outcome == HISTORY_UNKNOWN || r->outcome == HISTORY_MAYBE;
    bool lasting = r->outcome == HISTORY_UNKNOWN || r->completed > view->until;
    bool unanswered = unknown || lasting || fate == FATE_FREE;
    struct record copy = *r;
    struct step step = {
        .invoked = fate == FATE_FREE ? INT64_MIN : r->invoked,
        .completed = lasting ? INT64_MAX : r->completed,
        .optional = unanswered || r->invoked <= view->cut_to,
        .hint = r->hint,
        .record = number,
    };
    if (unanswered) {
        if (refused(r)) {
            return;
        }
        copy.outcome = r->outcome == HISTORY_MAYBE ? HISTORY_MAYBE : HISTORY_UNKNOWN;
    }
    step_of_record(pr, view, &copy, &step);
    if (says_nothing(pr->history, view, &step) || (step.optional && !is_change(&step))) {
        return;
    }
    put(pr, &step);
}

void projector_build(struct projector *pr, const struct view *view, struct problem *p)
{
    const struct list_records *l = &pr->history->lists[view->list];
    arena_fini(&pr->arena);
    pr->stamp++;
    pr->item_count = pr->step_count = 0;
    for (uint32_t i = 0; view->items != NULL && i < view->item_count; i++) {
        take_number(pr, view->items[i]);
    }
    /* Numbers for the content it begins with are the caller's, from the problem before. */
    for (uint32_t i = 0; view->initial_long != NULL && i < view->initial_count; i++) {
        CHECK(number_of(pr, view, view->initial_long[i]) == i);
    }
    for (uint32_t i = 0; i < l->count; i++) {
        put_record(pr, view, l->records[i],
                   view->fates == NULL ? FATE_KEEP : (enum fate)view->fates[i]);
    }
    uint32_t *initial = arena_alloc(&pr->arena, view->initial_count * sizeof *initial);
    for (uint32_t i = 0; i < view->initial_count; i++) {
        initial[i] = view->initial_long != NULL ? i : view->initial[i];
    }
    *p = (struct problem){
        .refuse = pr->history->refuse,
        .partial = view->items != NULL,
        .item_limit = pr->item_count,
        .steps = pr->steps,
        .step_count = pr->step_count,
        .initial = initial,
        .initial_count = view->initial_count,
        .initially_exists = view->initially_exists,
    };
}
