/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/answer.h"
#include "list/core/engine_state.h"
#include "list/read/from_sublists.h"
#include "list/read/index_op.h"

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

static bool part_visit(void *arg, struct sublist *s)
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
        index_note_scan(o);
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
        CO_CALL(co, index_questions_step(e, o, event));
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

enum progress index_items_step(struct engine *e, struct op_index *o, const struct op_event *event)
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
