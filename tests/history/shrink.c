/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a violation small. Each step goes to a weaker problem that still has no solution, so that
 * what is left proves the violation by itself (narrow.c has gone first):
 *
 *   the end     nothing behind the first moment at which all is lost
 *   the begin   a later one, with any content, or with that of a full read
 *   the rest    reads are left out; changes are set free: whenever one of them takes effect before
 *               its completion, or never, there is still no solution
 */
#include <stdlib.h>

#include "check.h"

/* Bounds of the effort, in configurations: of one try, and of all for one list. */
#define TRY_CONFIGURATIONS 5000
#define EFFORT_CONFIGURATIONS 2000000
#define LOST_CONFIGURATIONS 20000
#define TRIES_MAX 3000
#define READS_BACK 40

/* --- the end and the beginning --- */

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Times of all records, completions or invocations, in order; the caller frees them. */
static int64_t *times_of_list(const struct checker *c, uint32_t list, bool completions,
                              uint32_t *count)
{
    const struct list_records *l = &c->history->lists[list];
    int64_t *times = history_alloc(l->count, sizeof *times);
    *count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct record *r = &c->history->records[l->records[i]];
        if (!completions || r->completed != HISTORY_NEVER) {
            times[(*count)++] = completions ? r->completed : r->invoked;
        }
    }
    qsort(times, *count, sizeof *times, compare_times);
    return times;
}

/* What has no solution has none either when it goes on for longer: so halve. */
static void shrink_end(struct checker *c, struct evidence *e, uint64_t limit)
{
    uint32_t count;
    int64_t *times = times_of_list(c, e->view.list, true, &count);
    uint32_t from = 0, to = count; /* times[to] is late enough */
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        e->view.until = times[middle];
        if (check_evidence(c, e, limit) == SEARCH_NONE) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    e->view.until = to < count ? times[to] : INT64_MAX;
    free(times);
}

uint32_t find_lost(struct checker *c, uint32_t list)
{
    const struct list_records *l = &c->history->lists[list];
    struct evidence whole = {.view = view_of_list(list), .beginning = NO_RECORD};
    if (check_evidence(c, &whole, LOST_CONFIGURATIONS) != SEARCH_NONE) {
        return NO_RECORD;
    }
    shrink_end(c, &whole, LOST_CONFIGURATIONS);
    struct view before = whole.view;
    before.until = whole.view.until - 1;
    if (whole.view.until == INT64_MAX ||
        check_view(c, &before, LOST_CONFIGURATIONS, NULL) != SEARCH_FOUND) {
        return NO_RECORD;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        if (c->history->records[l->records[i]].completed == whole.view.until) {
            return l->records[i];
        }
    }
    return NO_RECORD;
}

/* With one item or two: the latest beginning for which every content is as bad. */
static void shrink_begin_any(struct checker *c, struct evidence *e)
{
    uint32_t count;
    int64_t *times = times_of_list(c, e->view.list, false, &count);
    uint32_t from = 0, to = count; /* times[from - 1] is early enough */
    struct evidence best = *e;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        struct evidence later = *e;
        later.any_beginning = true;
        later.view.cut_from = later.view.cut_to = times[middle];
        if (check_evidence(c, &later, TRY_CONFIGURATIONS) == SEARCH_NONE) {
            best = later;
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    *e = best;
    free(times);
}

/* With all items: the answer of the latest full read that was completed before the end and is late
 * enough, if one of the last ones is. */
static void shrink_begin_read(struct checker *c, struct evidence *e)
{
    const struct list_records *l = &c->history->lists[e->view.list];
    int64_t before = e->view.until;
    for (unsigned tries = 0; tries < READS_BACK; tries++) {
        const struct record *read = NULL;
        struct evidence later = *e;
        for (uint32_t i = 0; i < l->count; i++) {
            const struct record *r = &c->history->records[l->records[i]];
            if (r->verb == HISTORY_LGET && r->outcome == HISTORY_OK && r->completed < before &&
                (read == NULL || r->completed > read->completed)) {
                read = r;
                later.beginning = l->records[i];
            }
        }
        if (read == NULL) {
            return;
        }
        before = read->completed;
        if (evidence_begin_read(c, &later, later.beginning) &&
            check_evidence(c, &later, TRY_CONFIGURATIONS) == SEARCH_NONE) {
            *e = later;
            return;
        }
    }
}

/* --- the rest --- */

static bool is_change(const struct record *r)
{
    return (r->verb < HISTORY_LGET || r->verb == HISTORY_LDROP) && r->outcome != HISTORY_MISSING &&
           r->outcome != HISTORY_NOT_STORED;
}

/* Tries without the records at these places, all of them; false when they are needed. */
static bool try_without(struct checker *c, struct evidence *e, const uint32_t *places,
                        uint32_t count)
{
    const struct list_records *l = &c->history->lists[e->view.list];
    for (uint32_t i = 0; i < count; i++) {
        const struct record *r = &c->history->records[l->records[places[i]]];
        e->fates[places[i]] = is_change(r) ? FATE_FREE : FATE_DROP;
    }
    if (check_evidence(c, e, TRY_CONFIGURATIONS) == SEARCH_NONE) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        e->fates[places[i]] = FATE_KEEP;
    }
    return false;
}

/* The places of the records that are in view and not left out yet. */
static uint32_t kept_places(struct checker *c, const struct evidence *e, uint32_t *places)
{
    const struct list_records *l = &c->history->lists[e->view.list];
    struct problem p;
    uint32_t count = 0, step = 0;
    projector_build(&c->projector, &e->view, &p);
    for (uint32_t i = 0; i < l->count; i++) {
        bool in_view = false;
        while (step < p.step_count && p.steps[step].record == l->records[i]) {
            in_view = true;
            step++;
        }
        if (in_view && e->fates[i] == FATE_KEEP) {
            places[count++] = i;
        }
    }
    return count;
}

static void shrink_rest(struct checker *c, struct evidence *e)
{
    uint32_t *places = history_alloc(c->history->lists[e->view.list].count, sizeof *places);
    uint64_t end = c->configurations + EFFORT_CONFIGURATIONS;
    uint32_t count = kept_places(c, e, places);
    unsigned tries = 0;
    for (uint32_t chunk = count / 2; chunk > 0; chunk /= 2) {
        for (uint32_t first = 0; first < count; first += chunk) {
            uint32_t n = count - first < chunk ? count - first : chunk;
            if (c->configurations < end && tries++ < TRIES_MAX) {
                try_without(c, e, places + first, n);
            }
        }
        count = kept_places(c, e, places);
    }
    free(places);
}

void shrink(struct checker *c, struct evidence *e)
{
    /* A search that took long is not repeated often. */
    bool whole = e->view.items == NULL;
    bool long_search = whole && e->beginning == NO_RECORD;
    shrink_end(c, e, long_search ? c->history->configurations_max : TRY_CONFIGURATIONS);
    if (whole) {
        shrink_begin_read(c, e);
    } else {
        shrink_begin_any(c, e);
    }
    shrink_rest(c, e);
}
