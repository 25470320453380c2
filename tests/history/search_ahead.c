/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking ahead: which changes may still come.
 */
#include <stdlib.h>

#include "search_impl.h"

/* --- tables --- */

struct by_call {
    uint32_t call_at, step;
};

static int compare_calls(const void *a, const void *b)
{
    const struct by_call *x = a, *y = b;
    return x->call_at < y->call_at ? -1 : x->call_at > y->call_at;
}

static bool adds(const struct step *step)
{
    return step->kind == STEP_ADD || step->kind == STEP_SET || step->kind == STEP_CREATE;
}

static void index_init(struct search *s, struct step_index *index,
                       bool (*wanted)(const struct step *), const struct by_call *sorted)
{
    const struct problem *p = s->p;
    uint32_t *end = history_alloc((size_t)p->item_limit + 1, sizeof *end);
    index->start = history_alloc((size_t)p->item_limit + 1, sizeof *index->start);
    for (uint32_t i = 0; i < p->step_count; i++) {
        for (uint32_t n = 0; wanted(&p->steps[i]) && n < p->steps[i].item_count; n++) {
            index->start[p->steps[i].items[n] + 1]++;
        }
    }
    for (uint32_t item = 0; item < p->item_limit; item++) {
        index->start[item + 1] += index->start[item];
        end[item] = index->start[item];
    }
    index->steps = history_alloc(index->start[p->item_limit], sizeof *index->steps);
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct step *step = &p->steps[sorted[i].step];
        for (uint32_t n = 0; wanted(step) && n < step->item_count; n++) {
            index->steps[end[step->items[n]]++] = sorted[i].step;
        }
    }
    free(end);
}

static bool deletes(const struct step *step)
{
    return step->kind == STEP_DEL;
}

static int compare_places(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Pairs of item and position, in the order of items. */
static uint32_t *places_of(const struct step *step)
{
    uint32_t *places = history_alloc((size_t)step->item_count * 2, sizeof *places);
    for (uint32_t n = 0; n < step->item_count; n++) {
        places[2 * n] = step->items[n];
        places[2 * n + 1] = n;
    }
    qsort(places, step->item_count, 2 * sizeof *places, compare_places);
    return places;
}

void ahead_init(struct search *s)
{
    const struct problem *p = s->p;
    struct by_call *sorted = history_alloc(p->step_count, sizeof *sorted);
    for (uint32_t i = 0; i < p->step_count; i++) {
        sorted[i] = (struct by_call){s->call_at[i], i};
    }
    qsort(sorted, p->step_count, sizeof *sorted, compare_calls);
    index_init(s, &s->adders, adds, sorted);
    index_init(s, &s->removers, deletes, sorted);
    s->adders_now = history_alloc(p->item_limit, sizeof *s->adders_now);
    s->removers_now = history_alloc(p->item_limit, sizeof *s->removers_now);
    s->seen_mark = history_alloc(p->item_limit, sizeof *s->seen_mark);
    s->wipers = history_alloc(p->step_count, sizeof *s->wipers);
    s->reads = history_alloc(p->step_count, sizeof *s->reads);
    s->answer_order = history_alloc(p->step_count, sizeof *s->answer_order);
    s->answer_set = history_alloc(p->step_count, sizeof *s->answer_set);
    s->places = history_alloc(p->step_count, sizeof *s->places);
    for (uint32_t n = 0; n < p->step_count; n++) {
        uint32_t i = sorted[n].step;
        const struct step *step = &p->steps[i];
        if (wipes(step)) {
            s->wipers[s->wiper_count++] = i;
        } else if (step->kind == STEP_READ) {
            s->reads[s->read_count++] = i;
            s->answer_order[i] = hash128_of_items(step->items, step->item_count);
            s->answer_set[i] = hash128_of_set(step->items, step->item_count);
            s->places[i] = places_of(step);
        }
    }
    free(sorted);
}

void ahead_fini(struct search *s)
{
    for (uint32_t i = 0; i < s->p->step_count; i++) {
        free(s->places[i]);
    }
    free(s->places);
    free(s->answer_order);
    free(s->answer_set);
    free(s->reads);
    free(s->wipers);
    free(s->seen_mark);
    free(s->adders_now);
    free(s->removers_now);
    free(s->adders.start);
    free(s->adders.steps);
    free(s->removers.start);
    free(s->removers.steps);
}

void ahead_count(struct search *s, uint32_t i, bool begins)
{
    const struct step *step = &s->p->steps[i];
    uint32_t by = begins ? 1 : UINT32_MAX; /* one less, in unsigned arithmetic */
    uint32_t *counts = adds(step) ? s->adders_now : deletes(step) ? s->removers_now : NULL;
    for (uint32_t n = 0; counts != NULL && n < step->item_count; n++) {
        counts[step->items[n]] += by;
    }
    s->wipers_now += wipes(step) ? by : 0;
}

/* --- what may come --- */

uint32_t ahead_first_to_come(const struct search *s, const uint32_t *steps, uint32_t from,
                             uint32_t to)
{
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (s->call_at[steps[middle]] < s->event) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static bool any_to_come(const struct search *s, const uint32_t *steps, uint32_t from, uint32_t to,
                        uint32_t until)
{
    uint32_t first = ahead_first_to_come(s, steps, from, to);
    return first < to && s->call_at[steps[first]] < until;
}

bool ahead_index_to_come(const struct search *s, const struct step_index *index, uint32_t item,
                         uint32_t until)
{
    return any_to_come(s, index->steps, index->start[item], index->start[item + 1], until);
}

bool ahead_may_add(const struct search *s, uint32_t item, uint32_t until)
{
    return s->adders_now[item] > 0 || ahead_index_to_come(s, &s->adders, item, until);
}

bool ahead_may_wipe(const struct search *s, uint32_t until)
{
    return s->wipers_now > 0 || any_to_come(s, s->wipers, 0, s->wiper_count, until);
}

bool ahead_may_remove(const struct search *s, uint32_t item, uint32_t until)
{
    return s->removers_now[item] > 0 || ahead_index_to_come(s, &s->removers, item, until) ||
           ahead_may_wipe(s, until);
}
