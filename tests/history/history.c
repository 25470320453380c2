/* SPDX-License-Identifier: BSD-3-Clause */
#include "history.h"

#include <stdlib.h>

#include "records.h"

void *history_alloc(size_t count, size_t size)
{
    void *memory = calloc(count == 0 ? 1 : count, size);
    CHECK(memory != NULL);
    return memory;
}

void *history_grow(void *array, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap) {
        return array;
    }
    *cap = *cap == 0 ? 16 : *cap * 2;
    array = realloc(array, (size_t)*cap * size);
    CHECK(array != NULL);
    return array;
}

static void names_widen(struct names *n)
{
    free(n->table);
    n->table_size = n->table_size == 0 ? 64 : n->table_size * 2;
    n->table = history_alloc(n->table_size, sizeof *n->table);
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t at = (uint32_t)hash_bytes(n->texts[i].p, n->texts[i].len, 0);
        while (n->table[at & (n->table_size - 1)] != 0) {
            at++;
        }
        n->table[at & (n->table_size - 1)] = i + 1;
    }
}

static uint32_t names_take(struct names *n, struct slice text, struct arena *arena)
{
    if (n->count * 2 >= n->table_size) {
        names_widen(n);
    }
    uint32_t at = (uint32_t)hash_bytes(text.p, text.len, 0), found;
    while ((found = n->table[at & (n->table_size - 1)]) != 0) {
        if (slice_equal(n->texts[found - 1], text)) {
            return found - 1;
        }
        at++;
    }
    n->texts = history_grow(n->texts, n->count, &n->cap, sizeof *n->texts);
    n->texts[n->count] = arena_copy(arena, text);
    n->table[at & (n->table_size - 1)] = ++n->count;
    return n->count - 1;
}

struct history *history_create(const struct history_options *options)
{
    struct history *h = history_alloc(1, sizeof *h);
    h->refuse = options->refuse;
    h->configurations_max =
        options->configurations_max == 0 ? HISTORY_CONFIGURATIONS_MAX : options->configurations_max;
    arena_init(&h->arena);
    return h;
}

void history_destroy(struct history **history)
{
    struct history *h = *history;
    *history = NULL;
    if (h == NULL) {
        return;
    }
    for (uint32_t i = 0; i < h->keys.count; i++) {
        free(h->lists[i].records);
    }
    free(h->lists);
    free(h->keys.texts);
    free(h->keys.table);
    free(h->items.texts);
    free(h->items.table);
    free(h->records);
    arena_fini(&h->arena);
    free(h);
}

static bool is_read(enum history_verb verb)
{
    return verb == HISTORY_LGET || verb == HISTORY_LHAS || verb == HISTORY_LLEN ||
           verb == HISTORY_LRANGE;
}

static const char *fault_of(const struct history_op *op)
{
    bool needs = op->verb == HISTORY_LADD || op->verb == HISTORY_LDEL ||
                 op->verb == HISTORY_LADDX || op->verb == HISTORY_LDELX || op->verb == HISTORY_LHAS;
    bool takes = needs || op->verb == HISTORY_LSET || op->verb == HISTORY_LCREATE;
    bool answers =
        op->verb == HISTORY_LGET || op->verb == HISTORY_LHAS || op->verb == HISTORY_LRANGE;
    if (op->verb >= HISTORY_VERBS || op->outcome >= HISTORY_OUTCOMES) {
        return "no such verb or outcome";
    }
    if (op->list.len == 0) {
        return "the list has no name";
    }
    if (op->completed < op->invoked) {
        return "completed before it was invoked";
    }
    if (op->completed == HISTORY_NEVER && op->outcome != HISTORY_UNKNOWN) {
        return "only an operation of unknown outcome has no completion";
    }
    if (needs && op->item_count == 0) {
        return "items are missing";
    }
    if (!takes && op->item_count > 0) {
        return "this verb takes no items";
    }
    if (op->answer_count > 0 && (op->outcome != HISTORY_OK || !answers)) {
        return "items in an answer that has none";
    }
    if (op->outcome == HISTORY_NONE && !answers) {
        return "this verb does not answer \"none\"";
    }
    for (size_t i = 0; i < op->item_count + op->answer_count; i++) {
        struct slice item = i < op->item_count ? op->items[i] : op->answer[i - op->item_count];
        if (item.len == 0) {
            return "empty item";
        }
    }
    return NULL;
}

static const uint32_t *numbers_of(struct history *h, const struct slice *items, size_t count)
{
    uint32_t *numbers = arena_alloc(&h->arena, count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = names_take(&h->items, items[i], &h->arena);
    }
    return numbers;
}

const char *history_add(struct history *h, const struct history_op *op)
{
    const char *fault = fault_of(op);
    if (fault != NULL) {
        return fault;
    }
    uint32_t list = names_take(&h->keys, op->list, &h->arena);
    if (h->keys.count > h->list_cap || h->lists == NULL) {
        uint32_t old = h->list_cap;
        h->lists = history_grow(h->lists, h->list_cap, &h->list_cap, sizeof *h->lists);
        memset(h->lists + old, 0, (h->list_cap - old) * sizeof *h->lists);
    }
    h->records = history_grow(h->records, h->count, &h->cap, sizeof *h->records);
    struct record *r = &h->records[h->count];
    *r = (struct record){
        .number = op->number == 0 ? h->count + 1 : op->number,
        .process = op->process,
        .verb = op->verb,
        .outcome = op->outcome,
        .list = list,
        .item_count = (uint32_t)op->item_count,
        .answer_count = (uint32_t)op->answer_count,
        .items = numbers_of(h, op->items, op->item_count),
        .answer = numbers_of(h, op->answer, op->answer_count),
        .from = op->from,
        .to = op->to,
        .invoked = op->invoked,
        .completed = op->completed,
        .hint = op->hint,
        .count = op->outcome == HISTORY_OK ? op->count : 0,
    };
    if (is_read(op->verb) && op->outcome == HISTORY_MAYBE) {
        r->outcome = HISTORY_UNKNOWN; /* says as little */
    }
    struct list_records *l = &h->lists[list];
    l->records = history_grow(l->records, l->count, &l->cap, sizeof *l->records);
    l->records[l->count++] = h->count++;
    return NULL;
}

static void spell(const struct history *h, const uint32_t *numbers, uint32_t count,
                  struct slice **out, uint32_t *cap)
{
    while (*cap < count) {
        *out = history_grow(*out, *cap, cap, sizeof **out);
    }
    for (uint32_t i = 0; i < count; i++) {
        (*out)[i] = h->items.texts[numbers[i]];
    }
}

struct history_op record_op(const struct history *h, const struct record *r, struct op_buffers *b)
{
    spell(h, r->items, r->item_count, &b->items, &b->item_cap);
    spell(h, r->answer, r->answer_count, &b->answer, &b->answer_cap);
    return (struct history_op){
        .number = r->number,
        .process = r->process,
        .verb = r->verb,
        .outcome = r->outcome,
        .list = h->keys.texts[r->list],
        .items = b->items,
        .item_count = r->item_count,
        .from = r->from,
        .to = r->to,
        .invoked = r->invoked,
        .completed = r->completed,
        .hint = r->hint,
        .count = r->count,
        .answer = b->answer,
        .answer_count = r->answer_count,
    };
}

void op_buffers_fini(struct op_buffers *b)
{
    free(b->items);
    free(b->answer);
    *b = (struct op_buffers){0};
}
