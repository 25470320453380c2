/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/index_op.h"

#include <stdlib.h>

#include "list/core/engine_state.h"

void index_drop_locators(struct op_index *o)
{
    for (size_t i = 0; i < o->locator_count; i++) {
        locator_unref(&o->locators[i]);
    }
    free(o->locators);
    o->locators = NULL;
    o->locator_count = o->at = 0;
}

/* The outline lacks the run that is being read. */
static bool is_new(const struct op_index *o)
{
    return o->at >= o->keeps;
}

static bool is_too_large(const struct op_index *o)
{
    return view_memory_bytes(view_of(o)) > o->lists->outline_limit_bytes;
}

static bool feed_build(struct op_index *o, const struct sublist *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        run_index_add(o->build, s->ops[i], sublist_item(s, i));
    }
    return run_index_end_sublist(o->build);
}

static bool run_visit(void *arg, struct sublist *s)
{
    struct op_index *o = arg;
    struct outline *outline = outline_of(o);
    /* Times of their own are in lists only whose heads say so, which are read without an index. */
    if (s->until_s != NULL || (o->build != NULL && !feed_build(o, s))) {
        o->failed = true;
        return false;
    }
    if (is_new(o)) {
        outline->locators = o->locators;
        outline_add_sublist(outline, s);
        o->failed = is_too_large(o);
    }
    o->next_part++;
    return !o->failed &&
           outline_question_bytes(outline) <= o->op.list->policy->fold_memory_bytes / 2;
}

static bool run_wants(const void *arg, size_t run, uint32_t number)
{
    const struct op_index *o = arg;
    (void)run;
    return number >= o->next_part;
}

static bool question_visit(void *arg, struct sublist *s)
{
    struct op_index *o = arg;
    uint32_t number;
    size_t run = scan_place(&o->scan, &number);
    outline_answer(outline_of(o), run, number, s);
    return true;
}

static bool question_wants(const void *arg, size_t run, uint32_t number)
{
    const struct op_index *o = arg;
    return outline_asks(outline_of(o), run, number);
}

void index_note_scan(struct op_index *o)
{
    if (o->scan.state == SCAN_MISSING) {
        o->op.list->suspect = o->scan.missing.name;
    }
    o->failed = o->failed || o->scan.state != SCAN_END;
}

enum progress index_questions_step(struct engine *e, struct op_index *o,
                                   const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    if (outline_has_questions(outline_of(o))) {
        scan_start(&o->op, &o->scan, o->head->runs, view_of(o)->run_count, false, true,
                   question_visit, o);
        scan_only(&o->scan, question_wants);
        SCAN_RUN(co, e, &o->op, &o->scan, "looking into sublists");
        scan_stop(&o->op, &o->scan);
        index_note_scan(o);
    }
    outline_forget_questions(outline_of(o));
    CO_END(co);
}

/* Begins with the run: true when its sublists have to be read. */
static bool begin_run(struct engine *e, struct op_index *o)
{
    const struct run *run = &o->head->runs[o->at];
    struct locator *locator = run_indexes_get(e->indexes, list_key(o->op.list), &run->range.name);
    o->locators[o->at] = locator;
    o->next_part = 0;
    if (is_new(o)) {
        view_begin_counts(view_of(o), &run->range.name);
    }
    /* A name stands for one run, but heads need not come from a proxy. */
    if ((locator != NULL && locator->sublists != run->range.count) ||
        (!is_new(o) && view_of(o)->runs[o->at].part_count != run->range.count)) {
        o->failed = true;
        return false;
    }
    if (locator == NULL) {
        o->build = run_index_begin(e->indexes, list_key(o->op.list), &run->range.name,
                                   run->range.count, run->items);
        o->failed = o->build == NULL;
        return !o->failed;
    }
    if (is_new(o) && o->at == 0 && locator->all_add) {
        outline_add_counts(outline_of(o), locator);
        o->failed = is_too_large(o);
        return false;
    }
    return is_new(o);
}

/* Sublists of a run that a cache could not hold beside others are not worth a place there. */
static bool is_cacheable(const struct op_index *o)
{
    return o->head->runs[o->at].bytes <= o->op.list->policy->cache_bytes / 8;
}

/* Reads the run that is next: for its index, for the outline, or both. */
static enum progress run_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    if (!begin_run(e, o)) {
        CO_RETURN(co);
    }
    do {
        scan_start(&o->op, &o->scan, &o->head->runs[o->at], 1, false, is_cacheable(o), run_visit,
                   o);
        if (o->next_part > 0) {
            scan_only(&o->scan, run_wants);
        }
        SCAN_RUN(co, e, &o->op, &o->scan, "reading a run for its index");
        scan_stop(&o->op, &o->scan);
        index_note_scan(o);
        if (!o->failed) {
            CO_CALL(co, index_questions_step(e, o, event));
        }
    } while (!o->failed && o->next_part < o->head->runs[o->at].range.count);
    if (o->build != NULL && !o->failed) {
        while (!run_index_sort(o->build)) {
            CO_PAUSE(co, "sorting an index", PROGRESS_YIELD);
        }
        o->locators[o->at] = run_index_end(&o->build);
        metric_inc(e->metrics, METRIC_run_indexes);
    }
    run_index_give_up(&o->build);
    CO_END(co);
}

enum progress index_runs_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    index_drop_locators(o);
    o->locators = calloc(o->head->run_count, sizeof(struct locator *));
    CHECK(o->locators != NULL);
    o->locator_count = o->head->run_count;
    o->keeps = outline_keep(outline_of(o), o->head);
    while (!o->failed && o->at < o->head->run_count) {
        CO_CALL(co, run_step(e, o, event));
        o->at++;
    }
    outline_of(o)->locators = o->locators;
    CO_END(co);
}
