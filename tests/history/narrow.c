/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of a list that suffice to see a violation: one item, two, or the time between some full
 * reads. Cheaper to search than the whole, and easier to read.
 */
#include <stdlib.h>

#include "check.h"

#define TRY_CONFIGURATIONS 5000
/* How many pairs of items are tried, from which full reads, and which of their items. */
#define PAIRS_MAX 600
#define READS_AROUND 8
#define LAST_NEIGHBOURS 20
/* Full reads that a window in time spans. */
#define WINDOW_READS 4

/* --- items --- */

/* All items that the list's records name, those of one record first; the caller frees them. */
static uint32_t *items_of_list(const struct checker *c, const struct evidence *e, uint32_t *count)
{
    const struct history *h = c->history;
    const struct list_records *l = &h->lists[e->view.list];
    uint32_t *items = history_alloc(h->items.count, sizeof *items);
    bool *taken = history_alloc(h->items.count, sizeof *taken);
    *count = 0;
    for (uint32_t i = 0; i <= l->count; i++) {
        uint32_t number = i == 0 ? e->stuck : l->records[i - 1];
        const struct record *r = number == NO_RECORD ? NULL : &h->records[number];
        for (uint32_t n = 0; r != NULL && n < r->item_count + r->answer_count; n++) {
            uint32_t item = n < r->item_count ? r->items[n] : r->answer[n - r->item_count];
            if (!taken[item]) {
                taken[item] = true;
                items[(*count)++] = item;
            }
        }
    }
    free(taken);
    return items;
}

static bool suffice(struct checker *c, struct evidence *e, uint32_t a, uint32_t b)
{
    e->items[0] = a;
    e->items[1] = b;
    e->view = view_of_list(e->view.list);
    e->view.items = e->items;
    e->view.item_count = a == b ? 1 : 2;
    return check_view(c, &e->view, TRY_CONFIGURATIONS, NULL) == SEARCH_NONE;
}

/* A full read of the list, by its completion. */
struct full_read {
    int64_t completed;
    const struct record *record;
};

static int compare_reads(const void *a, const void *b)
{
    const struct full_read *x = a, *y = b;
    return x->completed < y->completed ? -1 : x->completed > y->completed;
}

static struct full_read *full_reads(const struct checker *c, uint32_t list, uint32_t *count)
{
    const struct list_records *l = &c->history->lists[list];
    struct full_read *reads = history_alloc(l->count, sizeof *reads);
    *count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct record *r = &c->history->records[l->records[i]];
        if (r->verb == HISTORY_LGET && r->outcome == HISTORY_OK) {
            reads[(*count)++] = (struct full_read){r->completed, r};
        }
    }
    qsort(reads, *count, sizeof *reads, compare_reads);
    return reads;
}

/* Neighbours in the later answer that the earlier one has the other way round; without an earlier
 * one, the last neighbours. */
static bool try_neighbours(struct checker *c, struct evidence *e, const struct record *earlier,
                           const struct record *later, unsigned *tries)
{
    uint32_t *places = history_alloc(c->history->items.count, sizeof *places); /* 0: not there */
    bool found = false;
    for (uint32_t n = 0; earlier != NULL && n < earlier->answer_count; n++) {
        places[earlier->answer[n]] = n + 1;
    }
    for (uint32_t n = later->answer_count; n-- > 1 && !found;) {
        uint32_t a = later->answer[n - 1], b = later->answer[n];
        bool turned = earlier == NULL ? n + LAST_NEIGHBOURS >= later->answer_count
                                      : places[b] != 0 && places[b] < places[a];
        if (turned && a != b && (*tries)++ < PAIRS_MAX) {
            found = suffice(c, e, a, b);
        }
    }
    free(places);
    return found;
}

/* Pairs of which full reads, around the record that got stuck, show an order that may be wrong. */
static bool narrow_to_pair(struct checker *c, struct evidence *e)
{
    uint32_t count, middle = 0;
    unsigned tries = 0;
    bool found = false;
    struct full_read *reads = full_reads(c, e->view.list, &count);
    while (e->stuck != NO_RECORD && middle < count &&
           reads[middle].completed < c->history->records[e->stuck].completed) {
        middle++;
    }
    uint32_t first = middle > READS_AROUND ? middle - READS_AROUND : 0;
    for (uint32_t back = 1; back <= 3 && !found; back++) {
        for (uint32_t i = first; i < count && i <= middle + READS_AROUND && !found; i++) {
            found =
                i >= back && try_neighbours(c, e, reads[i - back].record, reads[i].record, &tries);
        }
    }
    for (uint32_t i = first; i < count && i <= middle + READS_AROUND && !found; i++) {
        found = try_neighbours(c, e, NULL, reads[i].record, &tries);
    }
    free(reads);
    return found;
}

static bool narrow_to_items(struct checker *c, struct evidence *e)
{
    uint32_t count;
    uint32_t *items = items_of_list(c, e, &count);
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        found = suffice(c, e, items[i], items[i]);
    }
    free(items);
    return found || narrow_to_pair(c, e);
}

/* --- windows --- */

static bool all_different(const uint32_t *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = 0; n < i; n++) {
            if (items[i] == items[n]) {
                return false;
            }
        }
    }
    return true;
}

bool evidence_begin_read(const struct checker *c, struct evidence *e, uint32_t read)
{
    const struct record *r = &c->history->records[read];
    e->beginning = read;
    e->view.cut_from = r->invoked;
    e->view.cut_to = r->completed;
    e->view.initial_long = r->answer;
    e->view.initial_count = r->answer_count;
    e->view.initially_exists = true;
    return all_different(r->answer, r->answer_count);
}

/* All items, from one full read to a later one. */
static bool narrow_to_window(struct checker *c, struct evidence *e)
{
    uint32_t count;
    bool found = false;
    struct full_read *reads = full_reads(c, e->view.list, &count);
    struct evidence window = *e;
    for (uint32_t i = 0; i < count && !found; i++) {
        window.view = view_of_list(e->view.list);
        if (i + WINDOW_READS < count) {
            window.view.until = reads[i + WINDOW_READS].completed;
        }
        found =
            evidence_begin_read(c, &window, (uint32_t)(reads[i].record - c->history->records)) &&
            check_evidence(c, &window, TRY_CONFIGURATIONS) == SEARCH_NONE;
    }
    if (found) {
        *e = window;
    }
    free(reads);
    return found;
}

bool narrow(struct checker *c, struct evidence *e)
{
    return narrow_to_items(c, e) || narrow_to_window(c, e);
}
