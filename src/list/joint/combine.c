/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/joint/combine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/number.h"
#include "list/core/engine_state.h"

/* Items that are walked at a time; the same where a list is asked by a pass over all of it. */
#define CHUNK_ITEMS ((size_t)2048)
#define CHUNK_ITEMS_STREAM ((size_t)262144)
/* Items written or sorted in before others get their turn. */
#define SLICE_ITEMS ((size_t)8192)
/* Times that a view is asked for; afterwards the list is read without one. */
#define VIEWS_MAX 3
/* As in lgets: what follows an item of a list soon. */
#define AHEAD_ITEMS ((size_t)64)

void combine_init(struct combine *c, struct joint *joint, enum joint_verb verb,
                  uint64_t limit_bytes)
{
    *c = (struct combine){.joint = joint, .verb = verb, .limit_bytes = limit_bytes};
    gather_init(&c->chunk, limit_bytes);
    gather_init(&c->found, limit_bytes);
    fold_init(&c->wanted);
}

static void forget_filter(struct combine *c)
{
    if (c->has_filter) {
        fold_fini(&c->filter);
        c->has_filter = false;
    }
}

void combine_fini(struct combine *c)
{
    if (c->joint == NULL) {
        return;
    }
    forget_filter(c);
    fold_fini(&c->wanted);
    gather_fini(&c->chunk);
    gather_fini(&c->found);
    arena_fini(&c->kept);
    free(c->some);
    free(c->places);
    free(c->hits);
    memory_give(c->memory_bytes);
    *c = (struct combine){0};
}

static struct source *source_of(const struct combine *c, size_t arg)
{
    return joint_arg(c->joint, arg);
}

static void fail(struct combine *c, enum joint_state state, const char *text)
{
    snprintf(c->joint->error, LIST_ERROR_MAX, "%s", text);
    c->joint->state = state;
}

static bool may_go_on(const struct combine *c)
{
    return c->joint->state == JOINT_OK && !c->joint->over;
}

static void fail_for_memory(struct combine *c)
{
    snprintf(c->joint->error, LIST_ERROR_MAX,
             "the lists need more than fold_memory_bytes (%llu) to be compared, nothing done: "
             "raise it",
             (unsigned long long)c->limit_bytes);
    c->joint->state = JOINT_FAILED;
}

/* Counts what is held, with that many bytes that are expected, and says whose it is. */
static void count_memory(struct combine *c, uint64_t expected_bytes)
{
    size_t bytes = fold_bytes(&c->wanted) + c->kept.bytes + c->hit_cap * sizeof *c->hits +
                   c->some_cap * sizeof *c->some + c->place_cap * sizeof *c->places;
    bytes += c->has_filter ? fold_bytes(&c->filter) : 0;
    bytes += c->items != NULL ? fold_bytes(c->items) : 0;
    memory_count((int64_t)bytes - (int64_t)c->memory_bytes);
    c->memory_bytes = bytes;
    if (!c->joint->over) {
        uint64_t answer_bytes = c->output.out != NULL ? c->output.out->bytes : 0;
        session_charge(c->joint->call, joint_bytes(c->joint) + bytes + c->chunk.memory_bytes +
                                           c->found.memory_bytes + answer_bytes + expected_bytes);
    }
}

/* A pass is about to bring all of a list: so much at most. */
static uint64_t expected_bytes(const struct combine *c, const struct source *s)
{
    struct list_extent extent = session_extent(s->look->head);
    uint64_t bytes = u64_sum(extent.bytes, extent.items * sizeof(struct slice));
    return u64_least(bytes, c->limit_bytes);
}

/* ---- where the result goes ---- */

/* Can the item stand among others in the answer, or in the list that is made? */
static bool fits(struct combine *c, struct slice item)
{
    if (c->to == NULL) {
        return true;
    }
    if (c->to->delimiter >= 0 && memchr(item.p, c->to->delimiter, item.len) != NULL) {
        fail(c, JOINT_REFUSED,
             c->items != NULL
                 ? "an item holds the delimiter of the list that it would be in, nothing done"
                 : "an item holds the delimiter of the first list: name one first whose delimiter "
                   "no item holds");
        return false;
    }
    if (c->items != NULL && item.len > c->to->max_item_bytes) {
        snprintf(c->joint->error, LIST_ERROR_MAX,
                 "an item is longer than %u bytes (max_item_bytes), nothing done",
                 c->to->max_item_bytes);
        c->joint->state = JOINT_REFUSED;
        return false;
    }
    return true;
}

static void put(struct combine *c, struct slice item)
{
    if (!fits(c, item)) {
        return;
    }
    c->number++;
    if (c->items != NULL) {
        fold_apply(c->items, ENTRY_ADD, item);
        fold_trim_often(c->items);
        c->item_bytes += entry_bytes(item.len);
    } else if (c->output.out != NULL) {
        output_item(&c->output, item);
        if (c->output.too_large) {
            snprintf(c->joint->error, LIST_ERROR_MAX,
                     "answer is larger than max_answer_bytes (%llu): store the result and ask for "
                     "parts with lrange",
                     (unsigned long long)c->output.limit_bytes);
            c->joint->state = JOINT_FAILED;
        }
    }
}

/* ---- order ---- */

static void keep_hit(struct combine *c, size_t i)
{
    c->hits = array_room(c->hits, c->hit_count, &c->hit_cap, sizeof *c->hits);
    c->hits[c->hit_count++] = (struct hit){arena_copy(&c->kept, c->some[i]), c->places[i]};
    if (c->kept.bytes + c->hit_cap * sizeof *c->hits > c->limit_bytes) {
        fail_for_memory(c);
    }
}

static int compare_places(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* ---- asking ---- */

/* Brings the source's view to its head. Ends when it is there, or the source has none any more. */
static enum progress view_step(struct engine *e, struct combine *c, struct source *s)
{
    struct co *co = &c->joint->op->co;
    CO_BEGIN(co);
    while (may_go_on(c) && s->kind == SOURCE_VIEW && source_view(s) == NULL) {
        if (s->brought++ == VIEWS_MAX) {
            s->kind = SOURCE_STREAM;
            break;
        }
        source_read(e, s, c->joint->op, LIST_LEN, LIST_FORM_JOINED, 0, NULL);
        while (!s->read->done) {
            CO_AWAIT(co, "reading a list to compare it");
        }
        joint_take_read(c->joint, s);
    }
    CO_END(co);
}

/* What is left keeps only those of which that was found; places go with them. */
static void keep_some(struct combine *c, bool in, bool found, size_t i, size_t *kept)
{
    if (found == in) {
        c->some[*kept] = c->some[i];
        if (c->by_place) {
            c->places[*kept] = c->places[i];
        }
        (*kept)++;
    }
}

static void ask_items(struct combine *c, const struct source *s, bool in)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->some_count; i++) {
        uint64_t at;
        bool found = source_has(s, c->some[i], &at);
        if (c->by_place && c->asked == 0) {
            c->places[i] = at;
        }
        keep_some(c, in, found, i, &kept);
    }
    c->some_count = kept;
}

static void ask_view(struct combine *c, struct view *view, bool in)
{
    size_t kept = 0;
    bool places = c->by_place && c->asked == 0;
    for (size_t i = 0; i < c->some_count; i++) {
        if (i % AHEAD_ITEMS == 0) {
            size_t left = c->some_count - i;
            view_expect(view, c->some + i, left < AHEAD_ITEMS ? left : AHEAD_ITEMS);
        }
        bool found =
            places ? view_place(view, c->some[i], &c->places[i]) : view_has(view, c->some[i]);
        keep_some(c, in, found, i, &kept);
    }
    c->some_count = kept;
}

/* One pass over the list finds what it has of the filter. */
static enum progress pass_step(struct engine *e, struct combine *c, struct source *s,
                               const struct fold *filter)
{
    struct co *co = &c->joint->op->co;
    CO_BEGIN(co);
    gather_clear(&c->found);
    count_memory(c, 0);
    c->found.filter = filter;
    source_read(e, s, c->joint->op, LIST_RANGE, LIST_FORM_JOINED, 0, &c->found);
    while (!s->read->done) {
        CO_AWAIT(co, "reading a list to compare it");
    }
    if (c->found.full) {
        fail_for_memory(c);
    } else {
        joint_take_read(c->joint, s);
    }
    CO_END(co);
}

static void begin_filter(struct combine *c)
{
    forget_filter(c);
    fold_init(&c->filter);
    c->has_filter = true;
}

static enum progress stream_step(struct engine *e, struct combine *c, struct source *s, bool in)
{
    struct co *co = &c->joint->op->co;
    size_t kept = 0;
    CO_BEGIN(co);
    begin_filter(c);
    for (size_t i = 0; i < c->some_count; i++) {
        fold_apply(&c->filter, ENTRY_ADD, c->some[i]);
    }
    CO_CALL(co, pass_step(e, c, s, &c->filter));
    if (!may_go_on(c)) {
        CO_RETURN(co);
    }
    begin_filter(c);
    for (size_t i = 0; i < c->found.count; i++) {
        fold_apply(&c->filter, ENTRY_ADD, c->found.items[i]);
    }
    for (size_t i = 0; i < c->some_count; i++) {
        keep_some(c, in, fold_outcome(&c->filter, c->some[i]) != 0, i, &kept);
    }
    c->some_count = kept;
    CO_END(co);
}

/* Is it the same list as the one that is walked, or as one that was asked before? */
static bool is_repeated(const struct combine *c, size_t arg)
{
    return source_of(c, arg)->first_arg < arg;
}

/* Is the list of that argument to be asked for what is walked? */
static bool is_asked(const struct combine *c, size_t arg)
{
    bool same = c->joint->args[arg] == c->joint->args[c->walked];
    if (is_repeated(c, arg)) {
        return false;
    }
    switch (c->verb) {
    case JOINT_INTER:
        return !same && !(arg == 0 && c->first_last);
    case JOINT_UNION:
        return arg < c->walked;
    default:
        return arg > 0;
    }
}

/* There is no memory any more for the view that tells the places. */
static void ask_first_last(struct combine *c)
{
    c->by_place = false;
    c->first_last = true;
    for (size_t i = 0; i < c->hit_count; i++) {
        fold_apply(&c->wanted, ENTRY_ADD, c->hits[i].item);
    }
    c->hit_count = 0;
}

/* Asks all lists for what is being walked, the first one last: it may tell the places. */
static enum progress ask_step(struct engine *e, struct combine *c, const struct op_event *event)
{
    struct co *co = &c->joint->op->co;
    struct source *s;
    (void)event;
    CO_BEGIN(co);
    for (c->asked = c->joint->arg_count; c->asked-- > 0;) {
        if (!is_asked(c, c->asked) || c->some_count == 0) {
            continue;
        }
        CO_CALL(co, view_step(e, c, source_of(c, c->asked)));
        if (!may_go_on(c)) {
            CO_RETURN(co);
        }
        s = source_of(c, c->asked);
        if (s->kind == SOURCE_STREAM && c->by_place && c->asked == 0) {
            ask_first_last(c);
        } else if (s->kind == SOURCE_ITEMS) {
            ask_items(c, s, c->verb == JOINT_INTER);
        } else if (s->kind == SOURCE_VIEW) {
            ask_view(c, source_view(s), c->verb == JOINT_INTER);
        } else {
            CO_CALL(co, stream_step(e, c, source_of(c, c->asked), c->verb == JOINT_INTER));
            if (!may_go_on(c)) {
                CO_RETURN(co);
            }
        }
    }
    CO_END(co);
}

/* ---- walking ---- */

static void walk_items(struct combine *c, const struct source *s)
{
    struct slice item;
    while (c->chunk.count < c->chunk_max) {
        if (!source_next(s, &c->at, &item)) {
            c->walk_over = true;
            return;
        }
        gather_item(&c->chunk, item);
    }
}

static void walk_view(struct combine *c, struct view *view)
{
    struct output output = {
        .gather = &c->chunk, .from = c->position, .to = c->position + c->chunk_max - 1};
    view_write(view, &output);
    c->position += c->chunk.count;
    c->walk_over = c->chunk.count < c->chunk_max;
}

/* The next items of the list that is walked. A stream gives all at once. */
static enum progress walk_step(struct engine *e, struct combine *c, const struct op_event *event)
{
    struct co *co = &c->joint->op->co;
    struct source *s;
    (void)event;
    CO_BEGIN(co);
    gather_clear(&c->chunk);
    CO_CALL(co, view_step(e, c, source_of(c, c->walked)));
    if (!may_go_on(c)) {
        CO_RETURN(co);
    }
    s = source_of(c, c->walked);
    if (s->kind == SOURCE_ITEMS) {
        walk_items(c, s);
    } else if (s->kind == SOURCE_VIEW) {
        walk_view(c, source_view(s));
    } else {
        count_memory(c, expected_bytes(c, s));
        source_read(e, s, c->joint->op, LIST_RANGE, LIST_FORM_JOINED, c->position, &c->chunk);
        while (!source_of(c, c->walked)->read->done) {
            CO_AWAIT(co, "reading a list to compare it");
        }
        c->walk_over = true;
        joint_take_read(c->joint, source_of(c, c->walked));
    }
    if (c->chunk.full) {
        fail_for_memory(c);
    }
    CO_END(co);
}

static void take_chunk(struct combine *c, size_t from)
{
    size_t count = c->chunk.count - from;
    count = count < c->chunk_max ? count : c->chunk_max;
    if (c->some_cap < count) {
        c->some_cap = count;
        free(c->some);
        c->some = malloc(count * sizeof *c->some);
        CHECK(c->some != NULL);
    }
    if (c->by_place && c->place_cap < count) {
        c->place_cap = count;
        free(c->places);
        c->places = malloc(count * sizeof *c->places);
        CHECK(c->places != NULL);
    }
    if (count > 0) {
        memcpy(c->some, c->chunk.items + from, count * sizeof *c->some);
    }
    c->some_count = count;
    c->some_at = from + count;
}

static void give_chunk(struct combine *c)
{
    for (size_t i = 0; i < c->some_count && may_go_on(c); i++) {
        if (c->first_last) {
            fold_apply(&c->wanted, ENTRY_ADD, c->some[i]);
        } else if (c->by_place) {
            keep_hit(c, i);
        } else {
            put(c, c->some[i]);
        }
    }
    if (c->first_last && fold_bytes(&c->wanted) > c->limit_bytes) {
        fail_for_memory(c);
    } else if (c->items != NULL && fold_bytes(c->items) > c->limit_bytes) {
        fail_for_memory(c);
    }
}

/* Walks one list. */
static enum progress list_step(struct engine *e, struct combine *c, const struct op_event *event)
{
    struct co *co = &c->joint->op->co;
    CO_BEGIN(co);
    c->position = c->at = 0;
    c->walk_over = false;
    while (!c->walk_over && may_go_on(c)) {
        CO_CALL(co, walk_step(e, c, event));
        c->some_at = 0;
        while (may_go_on(c) && c->some_at < c->chunk.count) {
            take_chunk(c, c->some_at);
            CO_CALL(co, ask_step(e, c, event));
            give_chunk(c);
            count_memory(c, 0);
            CO_PAUSE(co, "comparing lists", PROGRESS_YIELD);
        }
    }
    CO_END(co);
}

/* ---- all together ---- */

static size_t smallest(const struct combine *c)
{
    size_t best = 0;
    for (size_t i = 1; i < c->joint->arg_count; i++) {
        if (source_size(source_of(c, i)) < source_size(source_of(c, best))) {
            best = i;
        }
    }
    return best;
}

static void plan(struct combine *c)
{
    bool any_stream = false;
    for (size_t i = 0; i < c->joint->arg_count; i++) {
        any_stream = any_stream || source_of(c, i)->kind == SOURCE_STREAM;
    }
    c->chunk_max = any_stream ? CHUNK_ITEMS_STREAM : CHUNK_ITEMS;
    c->walk_first = c->verb == JOINT_INTER ? smallest(c) : 0;
    c->walk_last = c->verb == JOINT_UNION ? c->joint->arg_count - 1 : c->walk_first;
    bool ordered = c->items != NULL || c->output.out != NULL;
    bool moved = ordered && c->joint->args[c->walk_first] != c->joint->args[0];
    c->first_last = moved && source_of(c, 0)->kind == SOURCE_STREAM;
    c->by_place = moved && !c->first_last;
}

/* A difference with itself is empty. */
static bool takes_itself(const struct combine *c)
{
    for (size_t i = 1; i < c->joint->arg_count; i++) {
        if (c->verb == JOINT_DIFF && c->joint->args[i] == c->joint->args[0]) {
            return true;
        }
    }
    return false;
}

static void put_found(struct combine *c)
{
    for (size_t i = 0; i < c->found.count && may_go_on(c); i++) {
        put(c, c->found.items[i]);
    }
}

static void put_hits(struct combine *c)
{
    for (size_t n = 0; n < SLICE_ITEMS && c->hit_at < c->hit_count && may_go_on(c); n++) {
        put(c, c->hits[c->hit_at++].item);
    }
}

enum progress combine_step(struct engine *e, struct combine *c, const struct op_event *event)
{
    struct co *co = &c->joint->op->co;
    CO_BEGIN(co);
    if (c->joint->empty || takes_itself(c)) {
        CO_RETURN(co);
    }
    plan(c);
    for (c->walked = c->walk_first; c->walked <= c->walk_last && may_go_on(c); c->walked++) {
        if (c->verb != JOINT_UNION || !is_repeated(c, c->walked)) {
            CO_CALL(co, list_step(e, c, event));
        }
    }
    if (may_go_on(c) && c->first_last) {
        CO_CALL(co, pass_step(e, c, source_of(c, 0), &c->wanted));
        put_found(c);
    } else if (may_go_on(c) && c->by_place && c->hit_count > 0) {
        qsort(c->hits, c->hit_count, sizeof *c->hits, compare_places);
        while (c->hit_at < c->hit_count && may_go_on(c)) {
            put_hits(c);
            CO_PAUSE(co, "putting items in order", PROGRESS_YIELD);
        }
    }
    CO_END(co);
}
