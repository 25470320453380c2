/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/scan.h"

#include <stdio.h>

#include "base/number.h"
#include "list/core/engine_state.h"

/* Items visited before others get their turn: less than a millisecond of work. */
#define SLICE_ITEMS_MAX 8192u

void scan_start(struct op *op, struct scan *scan, const struct run *runs, size_t run_count,
                bool newest_first, bool keep, scan_visit *visitor, void *arg)
{
    *scan = (struct scan){
        .runs = runs,
        .run_count = run_count,
        .newest_first = newest_first,
        .keep = keep,
        .all_cached = true,
        .visitor = visitor,
        .arg = arg,
    };
    for (size_t i = 0; i < run_count; i++) {
        scan->total += runs[i].range.count;
    }
    op->scan_generation++;
}

void scan_start_one(struct op *op, struct scan *scan, const struct run *run, uint32_t number,
                    bool keep, scan_visit *visitor, void *arg)
{
    scan_start(op, scan, run, 1, false, keep, visitor, arg);
    scan->fetch = scan->visit = (struct scan_cursor){.number = number, .index = number};
    scan->total = (uint64_t)number + 1;
}

/* The number of the sublist that the cursor is at. */
static uint32_t cursor_number(const struct scan *scan, const struct scan_cursor *cursor,
                              const struct run *run)
{
    return scan->backwards ? run->range.count - 1 - cursor->number : cursor->number;
}

static size_t cursor_place(const struct scan *scan, const struct scan_cursor *cursor)
{
    return scan->newest_first ? scan->run_count - 1 - cursor->run : cursor->run;
}

static const struct run *cursor_run(const struct scan *scan, struct scan_cursor *cursor)
{
    for (;;) {
        size_t at = cursor_place(scan, cursor);
        const struct run *run = &scan->runs[at];
        if (cursor->number == run->range.count) {
            cursor->run++;
            cursor->number = 0;
        } else if (scan->wants == NULL ||
                   scan->wants(scan->arg, at, cursor_number(scan, cursor, run))) {
            return run;
        } else {
            cursor->number++;
        }
    }
}

void scan_only(struct scan *scan, scan_wants *wants)
{
    scan->wants = wants;
    scan->total = 0;
    for (size_t i = 0; i < scan->run_count; i++) {
        for (uint32_t n = 0; n < scan->runs[i].range.count; n++) {
            scan->total += wants(scan->arg, i, n);
        }
    }
}

size_t scan_place(const struct scan *scan, uint32_t *number)
{
    size_t at = cursor_place(scan, &scan->visit);
    *number = cursor_number(scan, &scan->visit, &scan->runs[at]);
    return at;
}

static void fetch_ahead(struct engine *e, struct op *op, struct scan *scan)
{
    while (scan->fetch.index < scan->total && scan->fetch.index - scan->visit.index < SCAN_WINDOW) {
        const struct run *run = cursor_run(scan, &scan->fetch);
        uint64_t place = scan->fetch.index % SCAN_WINDOW;
        uint64_t tag = TAG_SCAN | (uint64_t)op->scan_generation << 8 | place;
        struct scan_slot *slot = &scan->slots[place];
        uint32_t number = cursor_number(scan, &scan->fetch, run);
        slot->sublist = fetch_sublist(e, op, &run->range.name, number, scan->keep, tag);
        slot->state = slot->sublist != NULL ? SLOT_READY : SLOT_WAITING;
        scan->all_cached = scan->all_cached && slot->sublist != NULL;
        scan->fetch.number++;
        scan->fetch.index++;
    }
}

void scan_take(struct scan *scan, const struct op_event *event)
{
    struct scan_slot *slot = &scan->slots[event->tag & 0xff];
    CHECK(slot->state == SLOT_WAITING);
    if (event->status == BE_HIT) {
        slot->sublist = sublist_ref(event->sublist);
        slot->state = SLOT_READY;
    } else if (event->status == BE_MISS) {
        slot->state = SLOT_MISSING;
    } else {
        slot->state = SLOT_ERROR;
        snprintf(scan->error, sizeof scan->error, "%s",
                 event->text != NULL ? event->text : "backend refused a read");
    }
}

/* A worker that is busy with other requests for long between two slices does not let these starve
 * what is scanned: a merge that is too slow leaves a list with more and more runs. */
static uint32_t slice_items(const struct engine *e)
{
    enum { ITEMS_A_US = 4 };
    uint64_t items = e->pass_us * ITEMS_A_US;
    return (uint32_t)u64_least(items > VISIT_PART_ITEMS ? items : VISIT_PART_ITEMS,
                               SLICE_ITEMS_MAX);
}

static bool slice_is_over(const struct engine *e, struct scan *scan)
{
    if (scan->slice_pass != e->passes) {
        scan->slice_pass = e->passes;
        scan->slice_items = 0;
    }
    return scan->slice_items >= slice_items(e);
}

static void note_visit(struct scan *scan, struct scan_slot *slot, enum visited visited)
{
    if (visited == VISITED_PART) {
        scan->slice_items += VISIT_PART_ITEMS;
        return;
    }
    scan->slice_items += scan->visit_items > 0 ? scan->visit_items : slot->sublist->count;
    sublist_unref(&slot->sublist);
    slot->state = SLOT_EMPTY;
    scan->visit.number++;
    scan->visit.index++;
}

enum scan_state scan_step(struct engine *e, struct op *op, struct scan *scan)
{
    for (;;) {
        if (scan->visit.index == scan->total) {
            return SCAN_END;
        }
        fetch_ahead(e, op, scan);
        struct scan_slot *slot = &scan->slots[scan->visit.index % SCAN_WINDOW];
        const struct run *run = cursor_run(scan, &scan->visit);
        if (slot->state == SLOT_WAITING) {
            return SCAN_WAIT;
        }
        if (slot->state == SLOT_MISSING) {
            uint32_t number = cursor_number(scan, &scan->visit, run);
            scan->missing = (struct name_range){run->range.name, number};
            return SCAN_MISSING;
        }
        if (slot->state == SLOT_ERROR) {
            return SCAN_ERROR;
        }
        if (slice_is_over(e, scan)) {
            return SCAN_YIELD;
        }
        enum visited visited = scan->visitor(scan->arg, slot->sublist);
        note_visit(scan, slot, visited);
        if (visited == VISITED_ENOUGH) {
            return SCAN_END;
        }
    }
}

void scan_stop(struct op *op, struct scan *scan)
{
    op->scan_generation++;
    for (size_t i = 0; i < SCAN_WINDOW; i++) {
        sublist_unref(&scan->slots[i].sublist);
        scan->slots[i].state = SLOT_EMPTY;
    }
}
