/* SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"

#include <stdlib.h>

#include "base/rng.h"
#include "records.h"

#define NAME_BYTES 16
#define ASKED_MAX 4
#define NEVER_DONE INT64_MAX

struct plain_list {
    uint32_t *items;
    uint32_t count;
    bool exists;
};

/* When an operation is to be carried out, and by whom. */
struct moment {
    int64_t invoked, at, completed;
    uint64_t hint;
    uint32_t process, list;
    enum history_verb verb;
    bool unknown;
};

struct deed {
    int64_t at;
    uint32_t moment;
};

struct generator {
    const struct generate_options *o;
    struct rng rng;
    struct plain_list *lists;
    struct moment *moments;
    struct generated *out;
};

static uint64_t below(struct generator *g, uint64_t bound)
{
    return rng_below(&g->rng, bound);
}

/* --- the plain list --- */

static uint32_t place_of(const struct plain_list *l, uint32_t item)
{
    uint32_t at = 0;
    while (at < l->count && l->items[at] != item) {
        at++;
    }
    return at;
}

static bool add_item(struct plain_list *l, uint32_t item)
{
    bool is_new = place_of(l, item) == l->count;
    if (is_new) {
        l->items[l->count++] = item;
    }
    return is_new;
}

static bool delete_item(struct plain_list *l, uint32_t item)
{
    uint32_t at = place_of(l, item);
    if (at == l->count) {
        return false;
    }
    memmove(l->items + at, l->items + at + 1, (l->count - at - 1) * sizeof *l->items);
    l->count--;
    return true;
}

/* --- operations --- */

static struct slice name_of(const struct generator *g, uint32_t item)
{
    return slice_of(g->out->names + (size_t)item * NAME_BYTES);
}

static struct slice *take_slices(struct generator *g, size_t n)
{
    return arena_alloc(&g->out->arena, n * sizeof(struct slice));
}

static void do_change(struct generator *g, struct plain_list *l, struct history_op *op,
                      const uint32_t *items)
{
    bool add = op->verb != HISTORY_LDEL && op->verb != HISTORY_LDELX;
    bool replaces = op->verb == HISTORY_LSET || op->verb == HISTORY_LCREATE;
    bool there = g->o->refuse ? l->exists : l->count > 0;
    if (op->verb == HISTORY_LCREATE && there) {
        op->outcome = HISTORY_NOT_STORED;
        return;
    }
    if (!replaces && g->o->refuse && !l->exists) {
        op->outcome = add ? HISTORY_NOT_STORED : HISTORY_MISSING;
        return;
    }
    l->exists = true;
    l->count = replaces ? 0 : l->count;
    for (size_t i = 0; i < op->item_count; i++) {
        op->count += add ? add_item(l, items[i]) : delete_item(l, items[i]);
    }
}

static void do_read(struct generator *g, struct plain_list *l, struct history_op *op,
                    const uint32_t *items)
{
    int64_t n = l->count, from = 0, to = n - 1;
    struct slice *answer = take_slices(g, l->count > op->item_count ? l->count : op->item_count);
    op->answer = answer;
    op->count = l->count;
    for (size_t i = 0; op->verb == HISTORY_LHAS && i < op->item_count; i++) {
        if (place_of(l, items[i]) < l->count) {
            answer[op->answer_count++] = name_of(g, items[i]);
        }
    }
    if (op->verb == HISTORY_LRANGE) {
        from = op->from < 0 ? n + op->from : op->from;
        to = op->to < 0 ? n + op->to : op->to;
        from = from < 0 ? 0 : from;
        to = to >= n ? n - 1 : to;
    }
    for (; (op->verb == HISTORY_LRANGE || op->verb == HISTORY_LGET) && from <= to; from++) {
        answer[op->answer_count++] = name_of(g, l->items[from]);
    }
    if (op->verb != HISTORY_LLEN && op->answer_count == 0) {
        bool lget = op->verb == HISTORY_LGET;
        op->outcome = !g->o->refuse ? HISTORY_MISSING
                      : lget        ? l->exists ? HISTORY_OK : HISTORY_MISSING
                                    : HISTORY_NONE;
    }
}

static void do_operation(struct generator *g, const struct moment *m, struct history_op *op,
                         const uint32_t *items)
{
    struct plain_list *l = &g->lists[m->list];
    if (op->verb >= HISTORY_LGET && op->verb <= HISTORY_LRANGE) {
        do_read(g, l, op, items);
    } else if (op->verb == HISTORY_LDROP || op->verb == HISTORY_LCOMPACT) {
        bool there = !g->o->refuse || l->exists;
        if (!g->o->refuse && op->verb == HISTORY_LDROP && l->count == 0) {
            there = below(g, 2) == 0; /* as a bridge's delete, which tells */
        }
        op->outcome = there ? HISTORY_OK : HISTORY_MISSING;
        if (op->verb == HISTORY_LDROP) {
            l->count = 0;
            l->exists = false;
        }
    } else {
        do_change(g, l, op, items);
    }
    if (op->verb != HISTORY_LADDX && op->verb != HISTORY_LDELX && op->verb != HISTORY_LLEN) {
        op->count = 0;
    }
}

static void choose_items(struct generator *g, struct history_op *op, uint32_t *items)
{
    bool has = op->verb == HISTORY_LHAS;
    bool optional = op->verb == HISTORY_LSET || op->verb == HISTORY_LCREATE;
    if (op->verb > HISTORY_LHAS || op->verb == HISTORY_LGET) {
        return;
    }
    unsigned most = has ? ASKED_MAX : optional ? 2 * g->o->items_max : g->o->items_max;
    op->item_count = below(g, most) + (optional ? 0 : 1);
    struct slice *names = take_slices(g, op->item_count);
    op->items = names;
    for (size_t i = 0; i < op->item_count; i++) {
        items[i] = (uint32_t)below(g, g->o->items);
        names[i] = name_of(g, items[i]);
    }
}

static void carry_out(struct generator *g, const struct moment *m)
{
    uint32_t *items = history_alloc((size_t)g->o->items_max * 2 + ASKED_MAX, sizeof *items);
    struct history_op *op = &g->out->ops[g->out->count++];
    *op = (struct history_op){
        .process = m->process,
        .verb = m->verb,
        .list = name_of(g, g->o->items + m->list),
        .invoked = m->invoked,
        .completed = m->completed,
    };
    choose_items(g, op, items);
    if (op->verb == HISTORY_LRANGE) {
        op->from = (int64_t)below(g, 12) - 6;
        op->to = op->from + (int64_t)below(g, 6);
        op->to = op->from < 0 && op->to >= 0 ? -1 : op->to;
    }
    bool gone = m->verb == HISTORY_LDROP && !g->lists[m->list].exists;
    if (m->at != NEVER_DONE) {
        do_operation(g, m, op, items);
    }
    if (g->o->hints) {
        bool done = m->at != NEVER_DONE && op->outcome == HISTORY_OK && !(gone && m->unknown);
        op->hint = done ? m->hint : 0;
    }
    if (m->unknown) {
        op->outcome = HISTORY_UNKNOWN;
        op->answer_count = 0;
        op->count = 0;
    }
    free(items);
}

/* --- the plan --- */

static enum history_verb choose_verb(struct generator *g)
{
    static const enum history_verb wipes[] = {HISTORY_LSET, HISTORY_LDROP, HISTORY_LCREATE};
    static const enum history_verb others[] = {
        HISTORY_LADD,  HISTORY_LADD,   HISTORY_LADD,   HISTORY_LADD,    HISTORY_LADD,
        HISTORY_LADD,  HISTORY_LDEL,   HISTORY_LDEL,   HISTORY_LDEL,    HISTORY_LADDX,
        HISTORY_LADDX, HISTORY_LADDX,  HISTORY_LDELX,  HISTORY_LDELX,   HISTORY_LGET,
        HISTORY_LGET,  HISTORY_LGET,   HISTORY_LHAS,   HISTORY_LHAS,    HISTORY_LLEN,
        HISTORY_LLEN,  HISTORY_LRANGE, HISTORY_LRANGE, HISTORY_LCOMPACT};
    if (below(g, 1000) < g->o->wipe_permille) {
        return wipes[below(g, 3)];
    }
    return others[below(g, sizeof others / sizeof *others)];
}

/* The next operation in a lane of a client that becomes free at that time. */
static void plan_moment(struct generator *g, struct moment *m, int64_t *free_at)
{
    int64_t span = (int64_t)g->o->duration;
    m->invoked = *free_at + (int64_t)below(g, (uint64_t)span * 2);
    m->at = m->invoked + (int64_t)below(g, (uint64_t)span + 1);
    m->completed = m->at + (int64_t)below(g, (uint64_t)span + 1);
    m->verb = choose_verb(g);
    m->unknown = below(g, 1000) < g->o->unknown_permille;
    *free_at = m->completed;
    if (m->unknown) {
        m->at = below(g, 2) == 0 ? NEVER_DONE : m->at + (int64_t)below(g, (uint64_t)span * 8);
        m->completed = below(g, 2) == 0 ? HISTORY_NEVER : m->completed;
    }
}

static int compare_deeds(const void *a, const void *b)
{
    const struct deed *x = a, *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return x->moment < y->moment ? -1 : x->moment > y->moment;
}

static void make_names(struct generator *g)
{
    size_t count = (size_t)g->o->items + g->o->lists;
    g->out->names = history_alloc(count, NAME_BYTES);
    for (size_t i = 0; i < count; i++) {
        snprintf(g->out->names + i * NAME_BYTES, NAME_BYTES, i < g->o->items ? "i%zu" : "L%zu",
                 i < g->o->items ? i : i - g->o->items);
    }
}

/* Carries out what was planned, in the order of the moments. */
static void carry_out_all(struct generator *g)
{
    struct deed *deeds = history_alloc(g->o->operations, sizeof *deeds);
    for (uint32_t i = 0; i < g->o->operations; i++) {
        deeds[i] = (struct deed){g->moments[i].at, i};
    }
    qsort(deeds, g->o->operations, sizeof *deeds, compare_deeds);
    for (uint32_t i = 0; i < g->o->operations; i++) {
        struct moment *m = &g->moments[deeds[i].moment];
        m->hint = HISTORY_HINT_NOTHING + 1 + i;
        carry_out(g, m);
    }
    free(deeds);
}

void generate(const struct generate_options *o, struct generated *out)
{
    struct generator g = {.o = o, .out = out};
    unsigned lanes = o->clients * o->depth;
    int64_t *free_at = history_alloc(lanes, sizeof *free_at);
    *out = (struct generated){.ops = history_alloc(o->operations, sizeof *out->ops)};
    arena_init(&out->arena);
    rng_init_seed(&g.rng, o->seed);
    g.moments = history_alloc(o->operations, sizeof *g.moments);
    g.lists = history_alloc(o->lists, sizeof *g.lists);
    for (unsigned i = 0; i < o->lists; i++) {
        g.lists[i].items = history_alloc(o->items, sizeof *g.lists[i].items);
    }
    make_names(&g);
    for (uint32_t i = 0; i < o->operations; i++) {
        uint32_t lane = i % lanes;
        g.moments[i].process = lane / o->depth;
        g.moments[i].list = (uint32_t)below(&g, o->lists);
        plan_moment(&g, &g.moments[i], &free_at[lane]);
    }
    carry_out_all(&g);
    for (unsigned i = 0; i < o->lists; i++) {
        free(g.lists[i].items);
    }
    free(g.lists);
    free(g.moments);
    free(free_at);
}

void generated_fini(struct generated *g)
{
    free(g->ops);
    arena_fini(&g->arena);
    free(g->names);
    *g = (struct generated){0};
}
