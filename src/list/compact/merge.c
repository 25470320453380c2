/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The merge: several neighbouring runs become one. Order of writes:
 *
 *   1. APPEND the announcement of a fresh name; read the head: it must still hold the
 *      announcement, and the inputs side by side.
 *   2. ADD the sublists of the merged run as they fill, while the inputs are read. Appends and
 *      flips go on meanwhile.
 *   3. ONE CAS of the head, whatever it is by then, as long as it still holds the announcement
 *      and the inputs side by side: they are replaced by the result and become garbage; the log
 *      stays as it is, but for the announcement.
 *
 * With the oldest run among the inputs, deletions vanish, and items that are over; without it these
 * become deletions, or what lies below them would be back. When all runs are merged and the result
 * is small, it goes in front of the log instead of into a sublist. With one input it is a healing:
 * its sublists are written anew.
 */
#include <stdio.h>
#include <stdlib.h>

#include "list/compact/compact.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

/* Where the inputs stand side by side in the head, or -1. */
static long find_inputs(const struct head *head, const struct op_compact *c)
{
    for (size_t at = 0; at + c->input_count <= head->run_count; at++) {
        size_t same = 0;
        while (same < c->input_count &&
               name_equal(&head->runs[at + same].range.name, &c->inputs[same].range.name)) {
            same++;
        }
        if (same == c->input_count) {
            return (long)at;
        }
    }
    return -1;
}

static void choose_inputs(struct op_compact *c)
{
    CHECK(c->plan.first + c->plan.count <= c->head->run_count);
    free(c->inputs);
    c->input_count = c->plan.count;
    c->inputs = malloc(c->input_count * sizeof *c->inputs);
    CHECK(c->inputs != NULL);
    memcpy(c->inputs, c->head->runs + c->plan.first, c->input_count * sizeof *c->inputs);
}

static uint64_t input_bytes(const struct op_compact *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->input_count; i++) {
        sum += c->inputs[i].bytes;
    }
    return sum;
}

/* The announcement is in the head: begin to read. False when the head has moved on. */
static bool begin(struct op_compact *c)
{
    if (!head_announces(c->head, &c->writer.announcement.range.name) ||
        find_inputs(c->head, c) < 0) {
        c->result = STEP_CONFLICT;
        return false;
    }
    c->oldest = find_inputs(c->head, c) == 0;
    if (c->content_ready) {
        content_fini(&c->content);
    }
    c->content = (struct content){
        .runs = c->inputs,
        .run_count = c->input_count,
        .memory_limit_bytes = c->op.list->policy->fold_memory_bytes,
    };
    fold_init(&c->content.overlay);
    c->content_ready = true;
    return true;
}

struct merge_base {
    struct engine *e;
    struct op_compact *c;
};

/* Passes items of the oldest input through what is newer. */
static void pass_base(struct engine *e, struct op_compact *c, struct sublist *s, uint32_t from,
                      uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        content_expect(&c->content, s, i);
        struct entry entry = sublist_entry(s, i);
        char op = fold_over(&c->content.overlay, entry.op, entry.bytes);
        bool over = entry_is_over(op, entry.until_s, c->over_s);
        entry.op = over ? (char)ENTRY_DEL : op;
        if (op == 0 || (c->oldest && entry.op == ENTRY_DEL)) {
            continue;
        }
        if (c->oldest && entry.op != ENTRY_TIMED) {
            entry.op = ENTRY_ADD;
        }
        writer_put(e, &c->writer, &entry);
    }
}

static enum visited visit_base(void *arg, struct sublist *s)
{
    struct merge_base *base = arg;
    struct op_compact *c = base->c;
    struct sublist_part part = sublist_next_part(s, &c->passed);
    pass_base(base->e, c, s, part.from, part.to);
    bool waits = part.visited == VISITED_WHOLE && c->op.due >= WRITES_MAX;
    return writer_failed(&c->writer) || waits ? VISITED_ENOUGH : part.visited;
}

/* All of the list's older content in less than half a log: no sublist is worth that. */
static bool fits_log(const struct op_compact *c)
{
    size_t small = list_log_limit(c->op.list) / 2, bytes = writer_bytes(&c->writer);
    return c->oldest && c->input_count == c->head->run_count && bytes > 0 && bytes <= small &&
           c->goal != COMPACT_HEAL;
}

/* Writes what the newer inputs add behind the oldest, some of it. True when all of it is on its
 * way. */
static bool write_some_rest(struct engine *e, struct op_compact *c)
{
    struct entry entry;
    for (uint32_t i = 0;
         i < VISIT_PART_ITEMS && c->op.due < WRITES_MAX && !writer_failed(&c->writer); i++) {
        if (!fold_next_entry(&c->content.overlay, c->oldest, c->over_s, &c->rest_at, &entry)) {
            c->inlined = fits_log(c);
            if (!c->inlined) {
                writer_flush(e, &c->writer);
            }
            return true;
        }
        writer_put(e, &c->writer, &entry);
    }
    return writer_failed(&c->writer);
}

static struct block *build_merge(struct engine *e, struct op_compact *c)
{
    const struct head *head = c->head;
    long at = find_inputs(head, c);
    if (at < 0 || !head_announces(head, &c->writer.announcement.range.name) ||
        (c->inlined && head->run_count != c->input_count)) {
        return NULL;
    }
    struct carry carry = {
        .own = &c->writer.announcement.range.name,
        .now_s = e->now.wall_s,
        .grace_s = c->op.list->policy->announcement_grace_s,
        .keep_ops = true,
    };
    struct layout layout;
    layout_init(&layout, head);
    layout_drop_runs(&layout, (size_t)at, c->input_count);
    if (c->inlined) {
        struct slice entries = writer_entries(&c->writer);
        block_append(&layout.log, entries.p, entries.len);
    } else if (c->writer.run.range.count > 0) {
        layout_publish_run(&layout, (size_t)at, &c->writer.run, &c->writer.times);
    }
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, head->log, &carry));
    return compact_value(c, &layout);
}

/* Reads the newer inputs into memory. Ends with scan.state. */
static enum progress fold_newer(struct engine *e, struct op_compact *c,
                                const struct op_event *event)
{
    struct co *co = &c->op.co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    runs = content_overlay_runs(&c->content, &count);
    scan_start(&c->op, &c->scan, runs, count, false, false, content_fold_visit, &c->content);
    SCAN_RUN(co, e, &c->op, &c->scan, "reading newer runs to merge");
    scan_stop(&c->op, &c->scan);
    CO_END(co);
}

/* What was read is not all, and nothing of it is published. */
static void give_up(struct op_compact *c)
{
    c->scan.state = SCAN_YIELD;
}

/* Takes the scan as far as it can go now. True when it is over, well or not. */
static bool stream_over(struct engine *e, struct op_compact *c, struct merge_base *base)
{
    c->scan.arg = base;
    c->scan.state = scan_step(e, &c->op, &c->scan);
    if (c->scan.visit.index == c->scan.total) {
        c->scan.state = SCAN_END;
        return true;
    }
    if (compact_over(e, c)) {
        give_up(c);
        return true;
    }
    return c->scan.state == SCAN_MISSING || c->scan.state == SCAN_ERROR ||
           writer_failed(&c->writer);
}

static void take_any(struct op_compact *c, const struct op_event *event)
{
    if (event != NULL && (event->tag & TAG_SCAN) != 0) {
        scan_take(&c->scan, event);
    } else {
        writer_take_reply(&c->writer, event);
    }
}

/* Streams the oldest input through them, sublists going out as they fill. Ends with scan.state. */
static enum progress stream_oldest(struct engine *e, struct op_compact *c,
                                   const struct op_event *event)
{
    struct co *co = &c->op.co;
    struct merge_base base = {e, c};
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    runs = content_base_run(&c->content, &count);
    scan_start(&c->op, &c->scan, runs, count, false, false, visit_base, NULL);
    c->passed = 0;
    while (!stream_over(e, c, &base)) {
        CO_PAUSE(co, "reading the oldest run to merge",
                 c->scan.state == SCAN_YIELD ? PROGRESS_YIELD : PROGRESS_WAITING);
        take_any(c, event);
        while (c->op.due >= WRITES_MAX) {
            CO_AWAIT(co, "writing merged sublists");
            take_any(c, event);
        }
    }
    scan_stop(&c->op, &c->scan);
    c->rest_at = 0;
    while (c->scan.state == SCAN_END && !write_some_rest(e, c)) {
        CO_PAUSE(co, "writing merged sublists",
                 c->op.due < WRITES_MAX ? PROGRESS_YIELD : PROGRESS_WAITING);
        writer_take_reply(&c->writer, event);
    }
    while (c->op.due > 0) {
        CO_AWAIT(co, "writing the last merged sublists");
        writer_take_reply(&c->writer, event);
    }
    CO_END(co);
}

static bool written(const struct op_compact *c)
{
    return c->scan.state == SCAN_END && !c->content.too_large && !writer_failed(&c->writer);
}

/* The inputs could not be read. True when that may be damage: then the head must be looked at
 * again. A head does not say how many deletions a run has. So a plan may take more than fits, and
 * fewer runs are merged then. */
static bool reading_failed(struct op_compact *c)
{
    if (c->content.too_large) {
        c->inputs_max = c->input_count > 4 ? c->input_count / 2 : 2;
        snprintf(c->error, sizeof c->error, "list needs more than fold_memory_bytes to be merged");
    } else if (c->scan.state == SCAN_ERROR) {
        snprintf(c->error, sizeof c->error, "%s", c->scan.error);
    }
    return c->scan.state == SCAN_MISSING;
}

static void look_for_damage(struct engine *e, struct op_compact *c)
{
    if (c->head == NULL || find_inputs(c->head, c) < 0) {
        c->result = STEP_CONFLICT;
        return;
    }
    compact_note_damage(e, c);
}

enum progress merge_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    struct op *op = &c->op;

    CO_BEGIN(co);
    choose_inputs(c);
    log_fold_clear(&c->log); /* a merge takes long */
    writer_init(e, &c->writer, &c->op, input_bytes(c), c->error);
    CO_CALL(co, announce_step(e, &c->writer, &c->head, event, "announcing a merge"));
    c->result = c->writer.conflict ? STEP_CONFLICT : STEP_FAILED;
    if (c->head != NULL && begin(c)) {
        CO_CALL(co, life_step(e, c, event, c->input_count < c->head->run_count));
        writer_make_index(e, &c->writer, head_run_bytes(c->head));
        give_up(c);
        if (!writer_failed(&c->writer)) {
            CO_CALL(co, fold_newer(e, c, event));
        }
        if (compact_over(e, c)) {
            give_up(c);
        }
        if (c->scan.state == SCAN_END && !c->content.too_large) {
            CO_CALL(co, stream_oldest(e, c, event));
        }
        c->result = c->writer.unknown ? STEP_UNKNOWN : STEP_FAILED;
        if (reading_failed(c)) {
            emit_get(e, op, TAG_HEAD);
            CO_AWAIT(co, "reading head again");
            (void)compact_take_head(e, c, event);
            look_for_damage(e, c);
        } else if (written(c)) {
            CO_CALL(co, writer_index_step(e, &c->writer));
            OP_BECOME_PUBLISHER(co, &c->op);
            emit_get(e, op, TAG_HEAD);
            CO_AWAIT(co, "reading head to publish a merge");
            c->result = STEP_CONFLICT;
            if (compact_take_head(e, c, event)) {
                CO_CALL(co, publish_step(e, c, event, build_merge));
            }
            op_stop_publishing(e, &c->op);
        }
    }
    if (c->result == STEP_DONE) {
        metric_inc(e->metrics, c->goal == COMPACT_HEAL ? METRIC_list_heals : METRIC_list_merges);
    } else if (c->writer.announced && c->result != STEP_UNKNOWN) {
        CO_CALL(co, undo_step(e, &c->writer, event));
    }
    CO_END(co);
}
