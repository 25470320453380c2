/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/from_index.h"

#include <stdlib.h>

#include "base/memory.h"
#include "list/content/outline.h"
#include "list/core/answer.h"
#include "list/core/engine_state.h"
#include "list/core/lists.h"
#include "list/core/run_index.h"
#include "list/core/scan.h"
#include "list/read/from_sublists.h"
#include "list/read/pick.h"
#include "list/read/touch.h"

/* Where an index could not be made, the list is read without for so long. */
#define RETRY_US 1000000u
/* A range from the list's beginning is not worth an index while the newer runs, which it needs
 * besides, are this part of the oldest one. */
#define NEWER_PART 16u

/* An item that a call asks for. */
struct look {
    struct list_call *call; /* NULL: its time is over */
    size_t item;
    bool has;
};

struct op_index {
    struct op op;
    struct call_queue calls; /* each with its head */
    struct head *head;       /* of those that are being answered */
    struct list_call *call;  /* the one that is, NULL when its time is over */
    struct scan scan;
    struct lists *lists;
    bool failed;

    struct locator **locators; /* of the head's runs, as far as they are at hand */
    size_t locator_count;
    size_t at;          /* the run that is being read */
    size_t keeps;       /* runs that the outline had before */
    uint32_t next_part; /* of that run */
    struct run_index_build *build;

    struct look *looks;
    struct outline_found *found; /* for each of them */
    size_t look_count;

    struct output output;
    struct pick pick;          /* lrandom, lafter, lbefore */
    struct outline_found page; /* lafter, lbefore: where the item stands */
    bool backwards;
    struct view_place next; /* the sublist behind those that were visited, and the position there */
    uint64_t next_position;
};

static struct outline *outline_of(const struct op_index *o)
{
    return o->op.list->outline;
}
static struct view *view_of(const struct op_index *o)
{
    return &o->op.list->outline->view;
}

/* ---- runs: what the worker knows of the list is brought up to a head ---- */

static void drop_locators(struct op_index *o)
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

static enum visited run_visit(void *arg, struct sublist *s)
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

static enum visited question_visit(void *arg, struct sublist *s)
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

/* The scan is over: o->failed unless it came to its end. */
static void note_scan(struct op_index *o)
{
    if (o->scan.state == SCAN_MISSING) {
        o->op.list->suspect = o->scan.missing.name;
    }
    o->failed = o->failed || o->scan.state != SCAN_END;
}

/* Has all questions answered, or o->failed. */
static enum progress questions_step(struct engine *e, struct op_index *o,
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
        note_scan(o);
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
        note_scan(o);
        if (!o->failed) {
            CO_CALL(co, questions_step(e, o, event));
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

/* The outline gets the runs of o->head, and the operation their locators. o->failed when that
 * cannot be done. */
static enum progress runs_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    drop_locators(o);
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

/* ---- lhas ---- */

/* lhas, and lttl of an item. */
static bool looks(const struct list_call *call)
{
    return call->verb == LIST_HAS || (call->verb == LIST_TTL && call->item_count > 0);
}

static bool is_of_head(const struct op_index *o, const struct list_call *call)
{
    return call->head == o->head;
}

/* Lines of a megabyte ask for several hundred thousand. */
static size_t looks_bytes(const struct op_index *o)
{
    return o->look_count * (sizeof *o->looks + sizeof *o->found);
}

static void begin_looks(struct op_index *o)
{
    struct list_call *call;
    size_t count = 0;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        count += is_of_head(o, call) && looks(call) ? call->item_count : 0;
    }
    o->look_count = count;
    o->looks = calloc(count + 1, sizeof *o->looks);
    o->found = calloc(count + 1, sizeof *o->found);
    CHECK(o->looks != NULL && o->found != NULL);
    memory_take(looks_bytes(o));
    outline_of(o)->answers = o->found;
    count = 0;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        for (size_t i = 0; is_of_head(o, call) && looks(call) && i < call->item_count;
             i++, count++) {
            struct look *look = &o->looks[count];
            *look = (struct look){.call = call, .item = i};
            outline_ask_item(outline_of(o), call->items[i], (uint32_t)count, &look->has);
        }
    }
}

static void end_looks(struct op_index *o)
{
    memory_give(looks_bytes(o));
    free(o->looks);
    free(o->found);
    o->looks = NULL;
    o->found = NULL;
    o->look_count = 0;
}

static void answer_looks(struct engine *e, struct op_index *o)
{
    for (size_t i = 0; i < o->look_count;) {
        struct list_call *call = o->looks[i].call;
        if (call == NULL) {
            i++;
            continue;
        }
        bool has = false;
        call->number = 0;
        for (; i < o->look_count && o->looks[i].call == call; i++) {
            has = o->looks[i].has || o->found[i].found;
            size_t item = o->looks[i].item;
            if (call->inner != NULL) {
                call->inner->members->verdict[item] = has ? ENTRY_ADD : ENTRY_DEL;
            } else if (has && call->verb == LIST_HAS) {
                answer_member(o->op.list, call, call->items[item]);
            }
        }
        reads_drop(&o->calls, call);
        metric_inc(e->metrics, METRIC_list_indexed_reads);
        if (call->verb == LIST_TTL) {
            answer_item_time(e, o->op.list, call, o->head, has, 0);
        } else {
            answer_call(e, o->op.list, call, o->head, call->number > 0 ? LIST_OK : LIST_MISSING);
        }
    }
}

static enum progress looks_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    begin_looks(o);
    CO_CALL(co, questions_step(e, o, event));
    if (!o->failed) {
        answer_looks(e, o);
    }
    end_looks(o);
    CO_END(co);
}

/* ---- items: those of an answer are read ---- */

/* The first sublist in the order of reading, or the one behind another. False: there is none. */
static bool step_place(const struct view *view, bool backwards, struct view_place *place)
{
    place->part++;
    while (place->run < view->run_count) {
        uint32_t run = backwards ? view->run_count - 1 - place->run : place->run;
        if (place->part < view->runs[run].part_count) {
            return true;
        }
        place->run++;
        place->part = 0;
    }
    return false;
}

/* Places are counted in the order of reading: this is what stands there. */
static struct view_part *part_at(const struct view *view, bool backwards, struct view_place place)
{
    uint32_t at = backwards ? view->run_count - 1 - place.run : place.run;
    const struct view_run *run = &view->runs[at];
    return &run->parts[backwards ? run->part_count - 1 - place.part : place.part];
}

static void begin_places(struct op_index *o, uint64_t position)
{
    o->next = (struct view_place){.part = UINT32_MAX};
    o->next_position = position;
}

/* Is one of the positions wanted, from there on? at: how many of a sample's stand before. */
static bool is_wanted(const struct op_index *o, uint64_t from, uint64_t live, size_t *at)
{
    const struct pick *pick = &o->pick;
    if (pick->positions == NULL) {
        return from + live > o->output.from && from <= o->output.to;
    }
    while (*at < pick->count && pick->positions[*at] < from) {
        (*at)++;
    }
    return *at < pick->count && pick->positions[*at] < from + live;
}

/* Marks the sublists that hold wanted positions, the first of which is there. */
static bool choose_parts(struct op_index *o)
{
    const struct view *view = view_of(o);
    uint64_t position = o->output.position;
    bool any = false;
    size_t at = 0;
    begin_places(o, position);
    while (step_place(view, o->backwards, &o->next)) {
        struct view_part *part = part_at(view, o->backwards, o->next);
        part->wanted = part->live > 0 && is_wanted(o, position, part->live, &at);
        any = any || part->wanted;
        position += part->live;
    }
    begin_places(o, o->output.position);
    return any;
}

static bool part_wants(const void *arg, size_t run, uint32_t number)
{
    const struct op_index *o = arg;
    return view_of(o)->runs[run].parts[number].wanted;
}

/* Goes on to that sublist, which is visited: the output is where it begins. */
static void go_to(struct op_index *o, const struct view_part *visited)
{
    const struct view *view = view_of(o);
    const struct view_part *part = NULL;
    o->output.position = o->next_position;
    while (part != visited && step_place(view, o->backwards, &o->next)) {
        part = part_at(view, o->backwards, o->next);
        o->output.position = o->next_position;
        o->next_position += part->live;
    }
}

static enum visited part_visit(void *arg, struct sublist *s)
{
    struct op_index *o = arg;
    uint32_t number;
    size_t run = scan_place(&o->scan, &number);
    if (o->call == NULL) {
        return false;
    }
    go_to(o, &view_of(o)->runs[run].parts[number]);
    o->failed = !outline_write_part(outline_of(o), run, number, s, o->backwards, &o->output);
    return !o->failed && !output_satisfied(&o->output);
}

/* The wanted items that stand in the runs; behind it the output is at the end of these. */
static enum progress parts_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    if (!output_satisfied(&o->output) && choose_parts(o)) {
        scan_start(&o->op, &o->scan, o->head->runs, o->head->run_count, o->backwards, true,
                   part_visit, o);
        o->scan.backwards = o->backwards;
        scan_only(&o->scan, part_wants);
        SCAN_RUN(co, e, &o->op, &o->scan, "reading the sublists of an answer");
        scan_stop(&o->op, &o->scan);
        note_scan(o);
    }
    if (!o->backwards && !output_satisfied(&o->output)) {
        o->output.position = view_run_items(view_of(o));
    }
    CO_END(co);
}

/* Where the item of lafter or lbefore stands. */
static enum progress page_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    uint64_t position;
    bool has;
    CO_BEGIN(co);
    o->page = (struct outline_found){.found = false};
    outline_of(o)->answers = &o->page;
    if (!outline_ask_item(outline_of(o), o->call->items[0], 0, &has)) {
        CO_CALL(co, questions_step(e, o, event));
    }
    if (o->call == NULL || o->failed) {
        CO_RETURN(co);
    }
    if (o->page.found) {
        position = view_place_position(view_of(o), o->page.place);
    } else if (!view_log_position(view_of(o), o->call->items[0], &position)) {
        CO_RETURN(co);
    }
    pick_beside(&o->pick, position, view_count(view_of(o)), &o->output);
    CO_END(co);
}

/* Which items are wanted: false in *any, none are. */
static enum progress want_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    o->output = (struct output){.to = UINT64_MAX, .enough = true};
    answer_begin(o->op.list, o->call, &o->output);
    o->call->number = 0;
    if (!list_verb_has(o->call->verb, LIST_PICKS)) {
        o->output.enough = !answer_range(o->call, view_count(view_of(o)), &o->output);
        CO_RETURN(co);
    }
    pick_begin(&o->pick, o->op.list, o->call, e->rng, &o->output);
    if (list_verb_has(o->call->verb, LIST_SAMPLES)) {
        o->output.enough = !pick_sample(&o->pick, view_count(view_of(o)), &o->output);
    } else {
        CO_CALL(co, page_step(e, o, event));
        o->output.enough = !o->pick.found;
    }
    CO_END(co);
}

static void finish(struct engine *e, struct op_index *o)
{
    if (o->failed) {
        chain_clear(&o->call->answer);
        o->call->number = 0;
        read_start(e, o->op.list, o->call, o->head);
        return;
    }
    metric_inc(e->metrics, METRIC_list_indexed_reads);
    if (list_verb_has(o->call->verb, LIST_PICKS)) {
        pick_finish(e, &o->pick, o->head);
    } else {
        answer_content(e, o->op.list, o->call, o->head, &o->output);
    }
}

/* Answers o->call, one that gives items, from the outline, which is settled. */
static enum progress items_step(struct engine *e, struct op_index *o, const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    o->backwards = list_verb_has(o->call->verb, LIST_FROM_NEWEST | LIST_AHEAD);
    CO_CALL(co, want_step(e, o, event));
    if (o->call != NULL && !o->failed && o->backwards) {
        view_write_rest(view_of(o), true, &o->output);
    }
    if (o->call != NULL && !o->failed) {
        CO_CALL(co, parts_step(e, o, event));
    }
    if (o->call != NULL && !o->failed && !o->backwards) {
        view_write_rest(view_of(o), false, &o->output);
    }
    if (o->call != NULL) {
        finish(e, o);
    }
    o->call = NULL;
    pick_fini(&o->pick);
    CO_END(co);
}

/* ---- the others ---- */

/* The first such call that is to be answered from this head; it is taken off. */
static struct list_call *next_call(struct op_index *o)
{
    struct list_call *call;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        if (is_of_head(o, call) && !looks(call)) {
            reads_drop(&o->calls, call);
            return call;
        }
    }
    return NULL;
}

static bool any_of_head(const struct op_index *o, bool look)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &o->calls, link)
    {
        if (is_of_head(o, call) && looks(call) == look) {
            return true;
        }
    }
    return false;
}

static void answer_length(struct engine *e, struct op_index *o)
{
    o->call->number = view_count(view_of(o));
    metric_inc(e->metrics, METRIC_list_indexed_reads);
    answer_call(e, o->op.list, o->call, o->head, LIST_OK);
    o->call = NULL;
}

/* Answers the calls of o->head, whose runs the outline has. More of both kinds may come for the
 * same head while some are answered. */
static enum progress answers_step(struct engine *e, struct op_index *o,
                                  const struct op_event *event)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    view_take_log(view_of(o), o->head);
    while (!o->failed && (any_of_head(o, true) || any_of_head(o, false))) {
        if (any_of_head(o, true)) {
            CO_CALL(co, looks_step(e, o, event));
            continue;
        }
        outline_ask_log(outline_of(o));
        CO_CALL(co, questions_step(e, o, event));
        if (o->failed) {
            break;
        }
        outline_settle(outline_of(o));
        o->call = next_call(o);
        if (o->call != NULL && o->call->verb == LIST_LEN) {
            answer_length(e, o);
        } else if (o->call != NULL) {
            CO_CALL(co, items_step(e, o, event));
        }
    }
    CO_END(co);
}

/* ---- the operation ---- */

static enum progress index_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_index *o = (struct op_index *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    while (!o->failed && !TAILQ_EMPTY(&o->calls)) {
        head_unref(&o->head);
        o->head = head_ref(TAILQ_FIRST(&o->calls)->head);
        CO_CALL(co, runs_step(e, o, event));
        if (!o->failed) {
            CO_CALL(co, answers_step(e, o, event));
        }
        if (!o->failed) {
            touch_consider(e, op->list, o->head);
        }
    }
    if (o->failed) {
        outline_clear(outline_of(o));
        op->list->index_after_us = e->now.mono_us + RETRY_US;
    }
    op_leave(op);
    reads_start(e, op->list, &o->calls);
    lists_count_outline(&e->lists, op->list);
    CO_END(co);
}

/* What was begun for it goes on: the next read has it. */
static enum list_known index_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_index *o = (struct op_index *)op;
    (void)e;
    if (call == o->call) {
        o->call = NULL;
        o->output.out = NULL;
        return KNOWN_NOTHING;
    }
    for (size_t i = 0; i < o->look_count; i++) {
        if (o->looks[i].call == call) {
            o->looks[i].call = NULL;
        }
    }
    reads_drop(&o->calls, call);
    return KNOWN_NOTHING;
}

static void index_fini(struct engine *e, struct op *op)
{
    struct op_index *o = (struct op_index *)op;
    (void)e;
    scan_stop(op, &o->scan);
    run_index_give_up(&o->build);
    drop_locators(o);
    end_looks(o);
    pick_fini(&o->pick);
    while (!TAILQ_EMPTY(&o->calls)) {
        reads_drop(&o->calls, TAILQ_FIRST(&o->calls));
    }
    head_unref(&o->head);
}

/* ---- which reads ---- */

static bool can_index(const struct engine *e, const struct list *list, const struct head *head)
{
    uint64_t items = 0;
    for (size_t i = 0; i < head->run_count; i++) {
        items += head->runs[i].items;
    }
    return e->indexes != NULL && run_indexes_limit_bytes(e->indexes) > 0 && head->run_count > 0 &&
           !head->clears && !head_is_timed(head) && e->now.mono_us >= list->index_after_us &&
           run_indexes_would_fit(e->indexes, items) && !head_names_run(head, &list->suspect);
}

/* Is what takes longest, the oldest run's index, at hand? */
static bool is_indexed(const struct engine *e, const struct list *list, const struct head *head)
{
    const struct name *oldest = &head->runs[0].range.name;
    if (list->outline != NULL && list->outline->view.run_count > 0 && list->indexing == NULL &&
        name_equal(&list->outline->view.runs[0].name, oldest)) {
        return true;
    }
    struct locator *locator = run_indexes_get(e->indexes, list_key(list), oldest);
    bool is_there = locator != NULL;
    locator_unref(&locator);
    return is_there;
}

/* Would this call be answered as soon without an index that is still to be made? */
static bool is_cheap(const struct list_call *call, const struct head *head)
{
    uint64_t oldest = head->runs[0].bytes;
    bool from_here = list_verb_has(call->verb, LIST_RANGES) && call->from >= 0 && call->to >= 0;
    if (head->run_count == 1 && head->log.len == 0) {
        return from_here || call->verb == LIST_LEN; /* the head says how many there are */
    }
    return from_here && list_verb_has(call->verb, LIST_FROM_OLDEST) &&
           head_run_bytes(head) - oldest <= oldest / NEWER_PART;
}

static bool is_served(const struct list_call *call, const struct head *head, bool indexed)
{
    bool is_kind = looks(call) || call->verb == LIST_LEN ||
                   list_verb_has(call->verb, LIST_RANGES | LIST_PICKS);
    return is_kind && (indexed || !is_cheap(call, head));
}

void index_start_reads(struct engine *e, struct list *list, struct call_queue *calls,
                       struct head *head)
{
    struct op_index *o = (struct op_index *)list->indexing;
    bool starts = o == NULL;
    if (TAILQ_EMPTY(calls) || !can_index(e, list, head)) {
        return;
    }
    bool indexed = is_indexed(e, list, head);
    struct list_call *call, *next;
    for (call = TAILQ_FIRST(calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        if (!is_served(call, head, indexed)) {
            continue;
        }
        if (o == NULL) {
            o = op_create(e, list, sizeof *o, index_step, index_fini);
            o->op.let_go = index_let_go;
            o->lists = &e->lists;
            TAILQ_INIT(&o->calls);
            (void)lists_get_outline(&e->lists, list);
            op_enter(&o->op, &list->indexing);
        }
        TAILQ_REMOVE(calls, call, link);
        call->head = head_ref(head);
        call_enter(&o->op, &o->calls, call);
    }
    if (starts && o != NULL) {
        op_run(e, &o->op);
    }
}
