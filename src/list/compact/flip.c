/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flip: the log becomes a run, an empty log becomes active. Order of writes:
 *
 *   1. APPEND the announcement of a fresh name, and read the head behind it.
 *   2. ADD the sublists: the log up to there, folded. No head refers to them yet.
 *   3. ONE CAS of the head: the new run in the header; the log is what came in after 1, and
 *      every other announcement.
 *
 * Where a view has the list's runs, entries that change nothing in them are left out. When little
 * is left, it stays in the log, in front of what came in after 1, and no run is made.
 *
 * A crash after 1 or 2 leaves names that the announcement tells. When the CAS is refused, the head
 * is read again, and the next try is made only if it still holds the announcement, the same runs
 * and the log that was folded, whatever was appended to that. This worker's own appends wait from
 * before 1 until after 3, so that they cannot starve the CAS. They do not wait for a flip that has
 * become needless: where the head behind 1 shows that another proxy has flipped the log, it ends.
 *
 * An item that is full takes no announcement: many proxies have appended at once. Then nothing is
 * announced, and the CAS is made of the very head that was read before 2, within half of
 * announcement_grace_s, or not at all. A crash leaves the names to scripts/sweep.
 */
#include "list/compact/compact.h"
#include "list/content/view.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

/* The list's view, if it can tell what the head's runs hold; else NULL. */
static struct view *view_below(const struct op_compact *c)
{
    const struct list *list = c->op.list;
    bool below = !c->cleared && c->head->run_count > 0;
    return below && list->view != NULL && list->viewing == NULL &&
                   view_has_runs(list->view, c->head)
               ? list->view
               : NULL;
}

/* Entries of a fold that are looked up together. */
struct batch {
    size_t count;
    struct entry entries[64];
    struct slice items[64];
};

static bool take_batch(const struct op_compact *c, const struct fold *fold, bool oldest,
                       uint32_t *at, struct batch *batch)
{
    size_t n = 0;
    while (n < sizeof batch->entries / sizeof batch->entries[0] &&
           fold_next_entry(fold, oldest, c->over_s, at, &batch->entries[n])) {
        batch->items[n] = batch->entries[n].bytes;
        n++;
    }
    batch->count = n;
    return n > 0;
}

static void write_folded(struct engine *e, struct op_compact *c, const struct fold *fold)
{
    c->cleared = fold->cleared;
    struct view *view = view_below(c);
    bool oldest = c->cleared || c->head->run_count == 0;
    uint32_t at = 0;
    struct batch batch;
    while (take_batch(c, fold, oldest, &at, &batch)) {
        if (view != NULL) {
            view_expect(view, batch.items, batch.count);
        }
        for (size_t i = 0; i < batch.count; i++) {
            if (view == NULL || view_changes(view, batch.entries[i].op, batch.items[i])) {
                writer_put(e, &c->writer, &batch.entries[i]);
            }
        }
    }
    bool little = view != NULL && writer_bytes(&c->writer) <= list_log_limit(c->op.list) / 4;
    c->inlined = little && c->goal == COMPACT_AUTO; /* an lcompact leaves nothing in the log */
    if (!c->inlined) {
        writer_flush(e, &c->writer);
    }
}

/* Was the flip chosen for the log's length, and is that no more over the limit? */
static bool is_needless(const struct op_compact *c)
{
    return c->goal == COMPACT_AUTO && !c->extends &&
           head_front_bytes(c->head) <= list_log_limit(c->op.list);
}

/* May a run be named in the head that was read last? */
static bool may_name(const struct engine *e, const struct op_compact *c)
{
    const struct head *head = c->head, *folded = c->folded;
    if (!c->writer.is_full) {
        return head_announces(head, &c->writer.announcement.range.name);
    }
    return head->cas == folded->cas && head->epoch == folded->epoch &&
           !writer_is_old(e, &c->writer);
}

/* Folds the log of c->head and sends its sublists. False when there is nothing to do or the head is
 * not as it should be. */
static bool prepare(struct engine *e, struct op_compact *c)
{
    head_unref(&c->folded);
    c->folded = head_ref(c->head);
    if (!may_name(e, c)) {
        c->writer.announced = false; /* it has gone, with its list or by a sweep */
        c->result = STEP_CONFLICT;
        return false;
    }
    if (compact_is_absent(c) || c->head->marks.cap.max != 0 || is_needless(c)) {
        c->result = STEP_CONFLICT; /* another list is to be filled here, or all stays in the log */
        return false;
    }
    writer_make_index(e, &c->writer, head_run_bytes(c->head));
    write_folded(e, c, compact_log(c));
    return true;
}

static void take_written(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    if (event->tag != TAG_HEAD) {
        writer_take_reply(&c->writer, event);
    } else if (!compact_take_head(e, c, event)) {
        c->foreign = event->status == BE_HIT;
    }
}

static bool same_runs(const struct head *a, const struct head *b)
{
    if (a->run_count != b->run_count) {
        return false;
    }
    for (size_t i = 0; i < a->run_count; i++) {
        if (!name_equal(&a->runs[i].range.name, &b->runs[i].range.name)) {
            return false;
        }
    }
    return true;
}

static struct block *build_flip(struct engine *e, struct op_compact *c)
{
    const struct head *head = c->head;
    const struct head *folded = c->folded;
    if (!may_name(e, c) || compact_is_absent(c) || head->marks.cap.max != 0 ||
        !same_runs(head, folded) || !slice_starts_with(head->log, folded->log)) {
        return NULL;
    }
    struct slice tail = head->log;
    (void)slice_take(&tail, folded->log.len);
    struct carry carry = {
        .own = &c->writer.announcement.range.name,
        .now_s = e->now.wall_s,
        .grace_s = c->op.list->policy->announcement_grace_s,
        .keep_ops = false,
    };
    struct layout layout;
    layout_init(&layout, head);
    if (c->cleared) {
        layout_drop_runs(&layout, 0, layout.run_count);
        layout_fill(&layout);
    }
    if (c->writer.run.range.count > 0) {
        layout_publish_run(&layout, layout.run_count, &c->writer.run, &c->writer.times);
    }
    if (c->inlined) {
        struct slice entries = writer_entries(&c->writer);
        block_append(&layout.log, entries.p, entries.len);
    }
    size_t swept = layout_carry(&layout, folded->announcements, &carry);
    metric_add(e->metrics, METRIC_list_sweeps, swept);
    /* The announcement may have stood behind the cut of the head that was folded. */
    layout_append_log(&layout, tail, carry.own);
    return compact_value(c, &layout);
}

enum progress flip_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    struct op *op = &c->op;

    CO_BEGIN(co);
    OP_BECOME_PUBLISHER(co, &c->op);
    writer_init(e, &c->writer, op, c->head->log.len + 2 * list_log_hard_limit(op->list), c->error);
    CO_CALL(co, announce_step(e, &c->writer, &c->head, event, "announcing a flip"));
    if (c->writer.is_full) {
        c->writer.refused = c->writer.no_memory = false;
        emit_get(e, op, TAG_HEAD);
        CO_AWAIT(co, "reading a head that takes no announcement");
        take_written(e, c, event);
    }
    if (c->head != NULL) {
        CO_CALL(co, life_step(e, c, event, c->head->run_count > 0 && !compact_log(c)->cleared));
    }
    c->result = c->writer.conflict ? STEP_CONFLICT : STEP_FAILED;
    if (c->head != NULL && !writer_failed(&c->writer) && prepare(e, c)) {
        if (list_is_far(op->list)) {
            /* The head behind the sublists: fewer round trips for others to append in. */
            emit_get(e, op, TAG_HEAD);
        }
        while (op->due > 0) {
            CO_AWAIT(co, "writing the log's sublists");
            take_written(e, c, event);
        }
        c->result = c->writer.unknown ? STEP_UNKNOWN : STEP_FAILED;
        CO_CALL(co, writer_index_step(e, &c->writer));
        if (!writer_failed(&c->writer) && c->head != NULL) {
            CO_CALL(co, publish_step(e, c, event, build_flip));
        }
    }
    op_stop_publishing(e, &c->op);
    if (c->result == STEP_DONE) {
        metric_inc(e->metrics, METRIC_list_flips);
    } else if ((c->writer.announced || c->writer.is_full) && c->result != STEP_UNKNOWN) {
        CO_CALL(co, undo_step(e, &c->writer, event));
    }
    CO_END(co);
}
