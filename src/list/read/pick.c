/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/pick.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/number.h"
#include "list/content/view.h"
#include "list/core/answer.h"
#include "list/core/engine_state.h"

static bool has_room(struct pick *p, uint64_t bytes)
{
    p->too_large = bytes > p->list->policy->max_answer_bytes;
    return !p->too_large;
}

/* lafter, lbefore */
static bool take_beside(struct output *o, struct slice item)
{
    struct pick *p = o->taker;
    struct list_call *call = p->call;
    if (!p->found) {
        p->found = slice_equal(item, call->items[0]);
        return true;
    }
    answer_member(p->list, call, item);
    return has_room(p, call->answer.bytes) && call->number < (uint64_t)call->count;
}

/* lrandom, into the reservoir */
static bool take_sample(struct output *o, struct slice item)
{
    struct pick *p = o->taker;
    p->seen++;
    if (p->count < (uint64_t)p->call->count) {
        p->items = array_room(p->items, p->count, &p->cap, sizeof *p->items);
        p->items[p->count++] = arena_copy(&p->arena, item);
        p->bytes += item.len + 1;
        return has_room(p, p->bytes);
    }
    uint64_t place = rng_below(p->rng, p->seen);
    if (place >= p->count) {
        return true;
    }
    p->bytes += item.len - p->items[place].len;
    p->items[place] = arena_copy(&p->arena, item);
    return has_room(p, p->bytes);
}

/* lrandom, from known positions */
static bool take_position(struct output *o, struct slice item)
{
    struct pick *p = o->taker;
    answer_member(p->list, p->call, item);
    if (++p->seen == p->count) {
        return false;
    }
    o->from = p->positions[p->seen];
    return has_room(p, p->call->answer.bytes);
}

void pick_begin(struct pick *p, const struct list *list, struct list_call *call, struct rng *rng,
                struct output *output)
{
    pick_fini(p);
    *p = (struct pick){.list = list, .call = call, .rng = rng};
    arena_init(&p->arena);
    bool samples = list_verb_has(call->verb, LIST_SAMPLES);
    output->take = samples ? take_sample : take_beside;
    output->taker = p;
}

void pick_finish(struct engine *e, struct pick *p, const struct head *head)
{
    struct list_call *call = p->call;
    struct list *list = call->list;
    for (size_t i = 0; i < p->count && p->positions == NULL && !p->too_large; i++) {
        answer_member(list, call, p->items[i]);
        (void)has_room(p, call->answer.bytes);
    }
    if (p->too_large) {
        chain_clear(&call->answer);
        call_fail(e, list, call,
                  "answer is larger than max_answer_bytes (%llu): ask for fewer items",
                  (unsigned long long)list->policy->max_answer_bytes);
        return;
    }
    bool missing = list_verb_has(call->verb, LIST_PAGES) && !p->found;
    answer_call(e, list, call, head, missing ? LIST_MISSING : LIST_OK);
}

void pick_fini(struct pick *p)
{
    free(p->items);
    free(p->positions);
    if (p->call != NULL) {
        arena_fini(&p->arena);
    }
    *p = (struct pick){0};
}

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? -1 : first > second;
}

/* R. W. Floyd's way: of the numbers up to total - count + i, the i-th step takes one that is not
 * taken yet; a number that is taken stands for the last one. Which are taken, a table says. */
uint64_t *pick_positions(struct rng *rng, uint64_t total, size_t count)
{
    size_t size = 16;
    while (size < 2 * count) {
        size *= 2;
    }
    uint64_t *positions = malloc((count + 1) * sizeof *positions);
    uint64_t *table = calloc(size, sizeof *table); /* position + 1; 0: empty */
    CHECK(positions != NULL && table != NULL);
    for (size_t i = 0; i < count; i++) {
        uint64_t last = total - count + i, drawn = rng_below(rng, last + 1);
        for (int again = 0; again < 2; again++) {
            size_t at = (size_t)(drawn * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
            while (table[at] != 0 && table[at] != drawn + 1) {
                at = (at + 1) & (size - 1);
            }
            if (table[at] == 0) {
                table[at] = drawn + 1;
                break;
            }
            drawn = last;
        }
        positions[i] = drawn;
    }
    free(table);
    qsort(positions, count, sizeof *positions, compare);
    return positions;
}

void pick_beside(struct pick *p, uint64_t position, uint64_t total, struct output *output)
{
    bool back = list_verb_has(p->call->verb, LIST_AHEAD);
    p->found = true;
    output->from = (back ? total - 1 - position : position) + 1;
    output->to = u64_sum(output->from, (uint64_t)p->call->count - 1);
}

bool pick_sample(struct pick *p, uint64_t total, struct output *output)
{
    p->count = (size_t)u64_least(total, (uint64_t)p->call->count);
    p->positions = pick_positions(p->rng, total, p->count);
    if (p->count > 0) {
        output->take = take_position;
        output->from = p->positions[0];
    }
    return p->count > 0;
}

/* The items beside one whose position is known. */
static void read_beside(struct pick *p, struct view *view, struct output *output)
{
    uint64_t position;
    if (!view_position(view, p->call->items[0], &position)) {
        return;
    }
    pick_beside(p, position, view_count(view), output);
    if (list_verb_has(p->call->verb, LIST_AHEAD)) {
        view_write_back(view, output);
    } else {
        view_write(view, output);
    }
}

static void read_sample(struct pick *p, struct view *view, struct output *output)
{
    if (pick_sample(p, view_count(view), output)) {
        view_write(view, output);
    }
}

void pick_from_view(struct engine *e, struct list *list, struct list_call *call, struct view *view,
                    const struct head *head)
{
    struct pick pick = {0};
    struct output output = {.to = UINT64_MAX};
    call->number = 0;
    pick_begin(&pick, list, call, e->rng, &output);
    if (list_verb_has(call->verb, LIST_SAMPLES)) {
        read_sample(&pick, view, &output);
    } else {
        read_beside(&pick, view, &output);
    }
    pick_finish(e, &pick, head);
    pick_fini(&pick);
}
