/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is shown of a violation.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"

#define SHOWN_ITEMS_MAX 60

static void put_items(struct checker *c, const uint32_t *items, uint32_t count)
{
    char text[128];
    for (uint32_t i = 0; i < count && i < SHOWN_ITEMS_MAX; i++) {
        slice_escape(c->history->items.texts[items[i]], text, sizeof text);
        fprintf(c->report, " %s", text);
    }
    if (count > SHOWN_ITEMS_MAX) {
        fprintf(c->report, " ... (%" PRIu32 " in all)", count);
    }
}

/* Keeps what is in view, and no more than is to be shown. */
static void cut_items(struct checker *c, const struct evidence *e, const uint32_t *items,
                      struct slice *texts, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count && kept < SHOWN_ITEMS_MAX; i++) {
        bool shown = e == NULL || e->view.items == NULL;
        for (uint32_t n = 0; !shown && n < e->view.item_count; n++) {
            shown = items[i] == e->view.items[n];
        }
        if (shown) {
            texts[kept++] = c->history->items.texts[items[i]];
        }
    }
    *count = kept;
}

static void put_record(struct checker *c, const struct evidence *e, uint32_t number)
{
    const struct record *r = &c->history->records[number];
    struct op_buffers buffers = {0};
    struct history_op op = record_op(c->history, r, &buffers);
    cut_items(c, e, r->items, buffers.items, &op.item_count);
    cut_items(c, e, r->answer, buffers.answer, &op.answer_count);
    if (op.item_count < r->item_count || op.answer_count < r->answer_count) {
        fprintf(c->report, "(shortened, of %" PRIu32 " + %" PRIu32 " items) ", r->item_count,
                r->answer_count);
    }
    fprintf(c->report, "op %" PRIu64 ": ", r->number);
    history_write(c->report, &op);
    op_buffers_fini(&buffers);
}

static void put_beginning(struct checker *c, const struct evidence *e)
{
    if (e->any_beginning) {
        fprintf(c->report, "  begins at %" PRId64 ", whatever the list held\n", e->view.cut_from);
    } else if (e->beginning != NO_RECORD) {
        fprintf(c->report, "  begins with what this read was answered: ");
        put_record(c, e, e->beginning);
    } else {
        fprintf(c->report, "  begins with no list\n");
    }
}

static void put_states(struct checker *c, const struct search_result *r)
{
    for (uint32_t i = 0; i < r->state_count; i++) {
        const struct search_state *state = &r->states[i];
        uint32_t *items = history_alloc(state->count, sizeof *items);
        for (uint32_t n = 0; n < state->count; n++) {
            items[n] = c->projector.items[state->items[n]];
        }
        fprintf(c->report, "  the list then (%" PRIu32 "):", state->count);
        put_items(c, items, state->count);
        fprintf(c->report, c->history->refuse && !state->exists ? " (missing)\n" : "\n");
        free(items);
    }
    if (r->state_count == SEARCH_STATES_MAX) {
        fprintf(c->report, "  or perhaps others\n");
    }
}

static int compare_steps(const void *a, const void *b)
{
    const struct step *const *x = a, *const *y = b;
    if ((*x)->invoked != (*y)->invoked) {
        return (*x)->invoked < (*y)->invoked ? -1 : 1;
    }
    return (*x)->record < (*y)->record ? -1 : (*x)->record > (*y)->record;
}

/* Is the record shown? What was set free is not. */
static bool is_kept(const struct checker *c, const struct evidence *e, uint32_t record)
{
    const struct list_records *l = &c->history->lists[e->view.list];
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->records[i] == record) {
            return e->fates[i] == FATE_KEEP;
        }
    }
    return false;
}

/* The operations that are left, those that were under way when the search was stuck marked. */
static void put_slice(struct checker *c, const struct evidence *e, const struct problem *p,
                      const struct step *stuck)
{
    const struct step **steps = history_alloc(p->step_count, sizeof *steps);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->step_count; i++) {
        if (is_kept(c, e, p->steps[i].record)) {
            steps[count++] = &p->steps[i];
        }
    }
    qsort(steps, count, sizeof *steps, compare_steps);
    fprintf(c->report,
            "  these %" PRIu32
            " operations suffice ('*' cannot follow, '|' is concurrent to it):\n",
            count);
    for (uint32_t i = 0; i < count; i++) {
        bool beside = stuck != NULL && steps[i]->invoked <= stuck->completed &&
                      steps[i]->completed >= stuck->invoked;
        fprintf(c->report, "  %c ", steps[i] == stuck ? '*' : beside ? '|' : ' ');
        put_record(c, e, steps[i]->record);
    }
    free(steps);
}

/* The operations that are shown, as far as they can be ordered, and what the list can hold then. */
static void put_furthest(struct checker *c, const struct evidence *e, const struct search_result *r)
{
    if (r->verdict != SEARCH_NONE) {
        return; /* it took too long to find out how far one can get */
    }
    fprintf(c->report, "  an order that goes furthest:");
    for (uint32_t i = 0; i < r->order_count; i++) {
        uint32_t record = c->projector.steps[r->order[i]].record;
        if (is_kept(c, e, record)) {
            fprintf(c->report, " %" PRIu64, c->history->records[record].number);
        }
    }
    fprintf(c->report, "\n");
    put_states(c, r);
}

/* Of all contents that it may begin with, the one that goes furthest. */
static unsigned furthest_beginning(struct checker *c, struct evidence *e,
                                   const struct search_options *options)
{
    unsigned best = 0;
    int64_t best_at = INT64_MIN;
    for (unsigned n = 0; evidence_begin(c, e, n); n++) {
        struct problem p;
        struct search_result r;
        projector_build(&c->projector, &e->view, &p);
        search_run(&p, options, &r);
        if (r.stuck_at > best_at) {
            best = n;
            best_at = r.stuck_at;
        }
        search_result_fini(&r);
    }
    return best;
}

/* The list as a whole, just before all is lost: a content that it can have then, and what was under
 * way with the operation that cannot follow. */
static void put_whole(struct checker *c, const struct evidence *e)
{
    const struct list_records *l = &c->history->lists[e->view.list];
    struct view view = view_of_list(e->view.list);
    struct search_result r;
    if (e->lost == NO_RECORD) {
        if (e->stuck != NO_RECORD) {
            fprintf(c->report, "  looking at the whole list, no order was found beyond ");
            put_record(c, NULL, e->stuck);
        }
        return;
    }
    const struct record *lost = &c->history->records[e->lost];
    view.until = lost->completed - 1;
    fprintf(c->report,
            "  the whole list, up to %" PRId64 ", can be explained; then cannot follow:\n  * ",
            view.until);
    put_record(c, NULL, e->lost);
    fprintf(c->report, "  concurrent to it:");
    for (uint32_t i = 0; i < l->count; i++) {
        const struct record *other = &c->history->records[l->records[i]];
        if (other != lost && other->invoked <= lost->completed &&
            (other->completed >= lost->invoked || other->outcome == HISTORY_UNKNOWN)) {
            fprintf(c->report, " %" PRIu64, other->number);
        }
    }
    fprintf(c->report, "\n");
    if (check_view(c, &view, c->history->configurations_max, &r) == SEARCH_FOUND) {
        put_states(c, &r);
    }
    search_result_fini(&r);
}

void report_violation(struct checker *c, struct evidence *e)
{
    struct problem p;
    struct search_result r;
    /* Without looking ahead, the search is stuck where the eye is. */
    struct search_options options = {.configurations_max = 200000, .plainly = true};
    char key[256];
    (void)evidence_begin(c, e, furthest_beginning(c, e, &options));
    projector_build(&c->projector, &e->view, &p);
    search_run(&p, &options, &r);
    slice_escape(c->history->keys.texts[e->view.list], key, sizeof key);
    fprintf(c->report, "list %s is not linearizable\n", key);
    if (e->view.items != NULL) {
        fprintf(c->report, "  it is seen by looking only at:");
        put_items(c, e->view.items, e->view.item_count);
        fprintf(c->report, "\n");
    }
    put_beginning(c, e);
    put_slice(c, e, &p, r.stuck_at == INT64_MIN ? NULL : &p.steps[r.stuck]);
    put_furthest(c, e, &r);
    search_result_fini(&r);
    put_whole(c, e);
}

void report_undecided(struct checker *c, uint32_t list, uint32_t stuck)
{
    char key[256];
    if (c->report == NULL) {
        return;
    }
    slice_escape(c->history->keys.texts[list], key, sizeof key);
    fprintf(c->report, "list %s is undecided after %" PRIu64 " configurations\n", key,
            c->history->configurations_max);
    if (stuck != NO_RECORD) {
        fprintf(c->report, "  no order was found beyond ");
        put_record(c, NULL, stuck);
    }
}
