/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/gather.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"

void gather_init(struct gather *g, uint64_t limit_bytes)
{
    *g = (struct gather){.limit_bytes = limit_bytes};
}

static void count_memory(struct gather *g)
{
    size_t bytes = g->cap * sizeof *g->items + g->held_bytes + g->copies.bytes;
    memory_count((int64_t)bytes - (int64_t)g->memory_bytes);
    g->memory_bytes = bytes;
}

static void let_go(struct gather *g)
{
    for (size_t i = 0; i < g->held_count; i++) {
        sublist_unref(&g->held[i]);
    }
    arena_fini(&g->copies);
    g->held_count = g->count = 0;
    g->held_bytes = 0;
    g->full = false;
}

void gather_fini(struct gather *g)
{
    let_go(g);
    free(g->held);
    free(g->items);
    memory_give(g->memory_bytes);
    *g = (struct gather){0};
}

void gather_clear(struct gather *g)
{
    let_go(g);
    count_memory(g);
}

static void push(struct gather *g, struct slice item)
{
    g->items = array_room(g->items, g->count, &g->cap, sizeof *g->items);
    g->items[g->count++] = item;
}

static void measure(struct gather *g)
{
    uint64_t bytes = g->count * sizeof *g->items + g->held_bytes + g->copies.bytes;
    g->full = bytes > g->limit_bytes;
    count_memory(g);
}

void gather_item(struct gather *g, struct slice item)
{
    char outcome = g->filter != NULL ? fold_outcome(g->filter, item) : ENTRY_ADD;
    if (outcome == ENTRY_ADD || outcome == ENTRY_READD) {
        push(g, arena_copy(&g->copies, item));
        measure(g);
    }
}

static void hold(struct gather *g, struct sublist *s)
{
    if (g->held_count == 0 || g->held[g->held_count - 1] != s) {
        g->held = array_room(g->held, g->held_count, &g->held_cap, sizeof *g->held);
        g->held[g->held_count++] = sublist_ref(s);
        g->held_bytes += sublist_memory_bytes(s);
    }
}

void gather_span(struct gather *g, struct sublist *s, uint32_t first, uint32_t last)
{
    if (g->filter != NULL) {
        for (uint32_t i = first; i < last; i++) {
            gather_item(g, sublist_item(s, i));
        }
        return;
    }
    hold(g, s);
    for (uint32_t i = first; i < last; i++) {
        push(g, sublist_item(s, i));
    }
    measure(g);
}
