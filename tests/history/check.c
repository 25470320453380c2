/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <stdlib.h>

/* The first searches, before parts of the list are looked at by themselves: so many, and each so
 * long, and longer the more operations there are. */
#define QUICK_TRIES 20
#define QUICK_CONFIGURATIONS 5000
#define QUICK_PER_STEP 3

enum search_verdict check_view(struct checker *c, const struct view *view, uint64_t limit,
                               struct search_result *result)
{
    struct problem p;
    struct search_result own;
    struct search_options options = {.configurations_max = limit};
    struct search_result *r = result == NULL ? &own : result;
    projector_build(&c->projector, view, &p);
    search_run(&p, &options, r);
    c->configurations += r->configurations;
    enum search_verdict verdict = r->verdict;
    if (result == NULL) {
        search_result_fini(&own);
    }
    return verdict;
}

bool evidence_begin(const struct checker *c, struct evidence *e, unsigned n)
{
    static const uint8_t contents[][3] = {{0}, {1, 0}, {1, 1}, {2, 0, 1}, {2, 1, 0}};
    const unsigned count = e->view.item_count == 1 ? 2 : 5;
    if (!e->any_beginning) {
        return n == 0;
    }
    if (n >= count + (c->history->refuse ? 1 : 0)) {
        return false;
    }
    e->view.initially_exists = n < count;
    const uint8_t *content = contents[n < count ? n : 0];
    e->view.initial_count = content[0];
    for (unsigned i = 0; i < content[0]; i++) {
        e->view.initial[i] = content[i + 1];
    }
    return true;
}

enum search_verdict check_evidence(struct checker *c, const struct evidence *e, uint64_t limit)
{
    struct evidence copy = *e;
    enum search_verdict verdict = SEARCH_NONE;
    for (unsigned n = 0; verdict == SEARCH_NONE && evidence_begin(c, &copy, n); n++) {
        verdict = check_view(c, &copy.view, limit, NULL);
    }
    return verdict;
}

/* Searches again and again, each time in an order of its own: QUICK_TRIES times, or, growing, each
 * twice as long as the one before until *left configurations are used up. Ends when one has found
 * out. The last result is kept. */
static enum search_verdict check_again(struct checker *c, const struct view *view, uint64_t *left,
                                       bool growing, struct search_result *r)
{
    struct problem p;
    struct search_options options = {.seed = growing ? QUICK_TRIES : 0};
    projector_build(&c->projector, view, &p);
    uint64_t length = QUICK_CONFIGURATIONS + (uint64_t)p.step_count * QUICK_PER_STEP;
    for (unsigned tries = 0;; tries++, options.seed++) {
        length = growing ? length * 2 : length;
        /* The last one gets what is left. */
        options.configurations_max = *left < length * (growing ? 3 : 1) ? *left : length;
        search_run(&p, &options, r);
        c->configurations += r->configurations;
        *left -= r->configurations < *left ? r->configurations : *left;
        if (r->verdict != SEARCH_LIMIT || *left == 0 || (!growing && tries + 1 == QUICK_TRIES)) {
            return r->verdict;
        }
        search_result_fini(r);
    }
}

static uint32_t stuck_record(const struct checker *c, const struct search_result *r)
{
    return r->stuck_at == INT64_MIN ? NO_RECORD : c->projector.steps[r->stuck].record;
}

static enum history_verdict violated(struct checker *c, struct evidence *e, bool narrowed)
{
    if (c->report == NULL) {
        return HISTORY_VIOLATED;
    }
    e->lost = find_lost(c, e->view.list);
    e->stuck = e->lost == NO_RECORD ? e->stuck : e->lost;
    if (!narrowed && !narrow(c, e)) {
        e->view = view_of_list(e->view.list);
        e->beginning = NO_RECORD;
    }
    e->fates = history_alloc(c->history->lists[e->view.list].count, sizeof *e->fates);
    e->view.fates = e->fates;
    shrink(c, e);
    report_violation(c, e);
    free(e->fates);
    return HISTORY_VIOLATED;
}

/* Is the order that the records' hints believe in one of the list? */
static bool check_hints(struct checker *c, const struct view *view)
{
    struct problem p;
    projector_build(&c->projector, view, &p);
    return search_replay(&p);
}

static enum history_verdict check_list(struct checker *c, uint32_t list)
{
    uint64_t left = c->history->configurations_max;
    struct evidence e = {.view = view_of_list(list), .beginning = NO_RECORD};
    struct view all = e.view;
    struct search_result r;
    enum history_verdict verdict = HISTORY_LINEARIZABLE;
    if (check_hints(c, &all)) {
        return verdict;
    }
    enum search_verdict found = check_again(c, &all, &left, false, &r);
    e.stuck = stuck_record(c, &r);
    if (found == SEARCH_LIMIT && narrow(c, &e)) {
        verdict = violated(c, &e, true);
    } else {
        if (found == SEARCH_LIMIT && left > 0) {
            search_result_fini(&r);
            found = check_again(c, &all, &left, true, &r);
            e.stuck = stuck_record(c, &r);
        }
        if (found == SEARCH_NONE) {
            verdict = violated(c, &e, false);
        } else if (found == SEARCH_LIMIT) {
            report_undecided(c, list, e.stuck);
            verdict = HISTORY_UNDECIDED;
        }
    }
    search_result_fini(&r);
    return verdict;
}

enum history_verdict history_check(struct history *h, FILE *report, struct history_result *result)
{
    struct checker c = {.history = h, .report = report};
    struct history_result sum = {.operations = h->count, .lists = h->keys.count};
    projector_init(&c.projector, h);
    for (uint32_t list = 0; list < h->keys.count; list++) {
        enum history_verdict verdict = check_list(&c, list);
        sum.violated += verdict == HISTORY_VIOLATED;
        sum.undecided += verdict == HISTORY_UNDECIDED;
    }
    sum.configurations = c.configurations;
    projector_fini(&c.projector);
    if (result != NULL) {
        *result = sum;
    }
    return sum.violated > 0    ? HISTORY_VIOLATED
           : sum.undecided > 0 ? HISTORY_UNDECIDED
                               : HISTORY_LINEARIZABLE;
}
