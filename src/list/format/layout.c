/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/layout.h"

#include <stdlib.h>

#include "base/array.h"
#include "list/format/intent.h"

static void add_garbage(struct layout *layout, const struct name_range *range)
{
    layout->garbage = array_room(layout->garbage, layout->garbage_count, &layout->garbage_cap,
                                 sizeof *layout->garbage);
    layout->garbage[layout->garbage_count++] = *range;
}

void layout_init(struct layout *layout, const struct head *head)
{
    CHECK(head->whole == NULL ? head->open_count == 0 : head->is_cut);
    *layout = (struct layout){.marks = head->marks,
                              .residue = head->residue != NULL ? block_ref(head->residue) : NULL,
                              .log = block_new(head->log.len + 256)};
    struct slice tail = head->is_cut ? head_tail(head) : SLICE_NONE;
    if (tail.len > 0) {
        layout->tail = block_new_exact(tail.len);
        block_append(&layout->tail, tail.p, tail.len);
    }
    for (size_t i = 0; i < head->run_count; i++) {
        layout_insert_run(layout, i, &head->runs[i]);
    }
    for (size_t i = 0; i < head->garbage_count; i++) {
        add_garbage(layout, &head->garbage[i]);
    }
}

void layout_fini(struct layout *layout)
{
    free(layout->runs);
    free(layout->garbage);
    block_unref(&layout->residue);
    block_unref(&layout->log);
    block_unref(&layout->tail);
    *layout = (struct layout){0};
}

void layout_fill(struct layout *layout)
{
    layout->marks.absent = false;
    layout->marks.lease = 0;
    layout->marks.lease_until_s = 0;
}

void layout_make_absent(struct layout *layout)
{
    CHECK(layout->run_count == 0);
    layout_fill(layout);
    layout->marks.cap = (struct cap){0};
    layout->marks.absent = true;
}

void layout_insert_run(struct layout *layout, size_t at, const struct run *run)
{
    layout->runs =
        array_room(layout->runs, layout->run_count, &layout->run_cap, sizeof *layout->runs);
    memmove(&layout->runs[at + 1], &layout->runs[at],
            (layout->run_count - at) * sizeof *layout->runs);
    layout->runs[at] = *run;
    layout->run_count++;
}

void layout_publish_run(struct layout *layout, size_t at, const struct run *run,
                        const struct run_times *times)
{
    struct head_marks *marks = &layout->marks;
    marks->times = layout->run_count == 0 ? *times : run_times_join(marks->times, *times);
    layout_insert_run(layout, at, run);
}

void layout_drop_runs(struct layout *layout, size_t at, size_t count)
{
    CHECK(at + count <= layout->run_count);
    for (size_t i = at; i < at + count; i++) {
        add_garbage(layout, &layout->runs[i].range);
    }
    if (count > 0) {
        memmove(&layout->runs[at], &layout->runs[at + count],
                (layout->run_count - at - count) * sizeof *layout->runs);
        layout->run_count -= count;
        if (layout->run_count == 0) {
            layout->marks.sublists_until_s = 0; /* there are none to speak of */
            layout->marks.times = (struct run_times){0};
        }
    }
}

bool layout_remove_garbage(struct layout *layout, const struct name_range *garbage)
{
    for (size_t i = 0; i < layout->garbage_count; i++) {
        struct name_range *g = &layout->garbage[i];
        if (g->count == garbage->count && name_equal(&g->name, &garbage->name)) {
            layout->garbage_count--;
            memmove(g, g + 1, (layout->garbage_count - i) * sizeof *g);
            return true;
        }
    }
    return false;
}

static void append_without(struct block **b, struct slice log, const struct name *own)
{
    struct entry entry;
    for (const char *start = log.p; entry_next(&log, &entry) == ENTRY_OK; start = log.p) {
        struct announcement announcement;
        bool is_own = entry.op == ENTRY_ANNOUNCE &&
                      announcement_parse(entry.bytes, &announcement) &&
                      name_equal(&announcement.range.name, own);
        if (!is_own) {
            block_append(b, start, (size_t)(log.p - start));
        }
    }
}

void layout_append_log(struct layout *layout, struct slice log, const struct name *own)
{
    append_without(&layout->log, log, own);
}

/* What this proxy has announced behind an open intent. */
static void take_off_tail(struct layout *layout, const struct name *own)
{
    struct slice tail = slice_make(layout->tail->data, layout->tail->used);
    struct block *kept = block_new_exact(tail.len);
    append_without(&kept, tail, own);
    block_unref(&layout->tail);
    layout->tail = kept;
}

size_t layout_carry(struct layout *layout, struct slice log, const struct carry *carry)
{
    size_t swept = 0;
    if (carry->own != NULL && layout->tail != NULL) {
        take_off_tail(layout, carry->own);
    }
    struct name_set withdrawn = {0};
    log_withdrawals(log, &withdrawn);
    struct entry entry;
    for (;;) {
        const char *start = log.p;
        if (entry_next(&log, &entry) != ENTRY_OK) {
            name_set_fini(&withdrawn);
            return swept;
        }
        struct announcement announcement;
        if (entry.op != ENTRY_ANNOUNCE) {
            if (!carry->keep_ops) {
                continue;
            }
        } else {
            CHECK(announcement_parse(entry.bytes, &announcement));
            bool own = carry->own != NULL && name_equal(&announcement.range.name, carry->own);
            if (own || announcement.range.count == 0 ||
                name_set_has(&withdrawn, &announcement.range.name)) {
                continue;
            }
            if (announcement_is_dead(&announcement, carry->now_s, carry->grace_s)) {
                add_garbage(layout, &announcement.range);
                swept++;
                continue;
            }
        }
        block_append(&layout->log, start, (size_t)(log.p - start));
    }
}

void layout_append_fold(struct layout *layout, const struct fold *fold, bool oldest, int64_t over_s)
{
    uint32_t at = 0;
    struct entry entry;
    while (fold_next_entry(fold, oldest, over_s, &at, &entry)) {
        entry_put(&layout->log, &entry);
    }
}

size_t layout_fold_log(struct layout *layout, const struct head *head, const struct fold *log,
                       const struct carry *carry)
{
    CHECK(!carry->keep_ops);
    if (log->cleared) {
        layout_drop_runs(layout, 0, layout->run_count);
        layout_fill(layout);
    }
    size_t swept = layout_carry(layout, head->announcements, carry);
    /* What stands in an absent head will lie over what fills the list. */
    layout_append_fold(layout, log, layout->run_count == 0 && !layout->marks.absent,
                       carry->now_s - CLOCK_SKEW_S);
    return swept;
}

struct block *layout_value(const struct layout *layout)
{
    size_t residue_bytes = layout->residue != NULL ? layout->residue->used : 0;
    size_t tail_bytes = layout->tail != NULL ? layout->tail->used : 0;
    struct block *value = block_new(residue_bytes + layout->log->used + tail_bytes +
                                    64 * (2 + layout->run_count + layout->garbage_count));
    struct head_marks marks = layout->marks;
    if (layout->run_count == 0) {
        marks.sublists_until_s = 0; /* there are none to speak of */
        marks.times.timed = false;
    }
    CHECK(marks.cap.max == 0 || layout->run_count == 0);
    head_append_header(&value, &marks, layout->runs, layout->run_count, layout->garbage,
                       layout->garbage_count);
    if (residue_bytes > 0) {
        block_append(&value, layout->residue->data, residue_bytes);
    }
    block_append(&value, layout->log->data, layout->log->used);
    if (tail_bytes > 0) {
        block_append(&value, layout->tail->data, tail_bytes);
    }
    return value;
}

/* What stands behind the cut, without what says nothing any more: intents that are aborted, and
 * decisions that decide none of those that are left. */
static struct block *tail_in_need(const struct head *whole, const struct head *front)
{
    struct slice tail = head_tail(front);
    struct block *kept = block_new(tail.len);
    struct name_set left = {0};
    size_t at = 0;
    struct entry entry;
    while (whole->intents[at].at < front->cut_at) {
        at++;
    }
    for (size_t i = at; i < whole->intent_count; i++) {
        if (whole->intents[i].state != INTENT_ABORTED) {
            name_set_add(&left, &whole->intents[i].name);
        }
    }
    for (const char *start = tail.p; entry_next(&tail, &entry) == ENTRY_OK; start = tail.p) {
        struct name name;
        enum decision decision;
        bool keeps = true;
        if (entry.op == ENTRY_INTENT) {
            keeps = whole->intents[at++].state != INTENT_ABORTED;
        } else if (entry.op == ENTRY_DECISION && decision_parse(entry.bytes, &name, &decision)) {
            keeps = name_set_has(&left, &name);
        }
        if (keeps) {
            block_append(&kept, start, (size_t)(tail.p - start));
        }
    }
    name_set_fini(&left);
    return kept;
}

struct block *layout_decided(const struct head *head, struct slice key, struct slice decisions)
{
    struct block *longer = head_with_entries(head, decisions);
    struct be_caps caps = {.rolls_back = head->rolls_back};
    struct be_reply reply = {.status = BE_HIT,
                             .value = slice_make(longer->data, longer->used),
                             .block = longer,
                             .flags = head->flags,
                             .caps = &caps};
    struct head *whole;
    enum head_status status = head_read(&reply, key, &whole);
    CHECK(status == HEAD_OK); /* the head was read before, and decisions fit any */
    struct head *front = whole->open_count > 0 ? head_cut(whole) : head_ref(whole);
    struct layout layout;
    /* Marks go, as from each head that is written anew: else one that lost what was aborted would
     * be the same again as before. */
    struct carry carry = {.grace_s = INT64_MAX, .keep_ops = true};
    layout_init(&layout, front);
    (void)layout_carry(&layout, front->log, &carry);
    if (layout.tail != NULL) {
        block_unref(&layout.tail);
        layout.tail = tail_in_need(whole, front);
    }
    struct block *value = layout_value(&layout);
    layout_fini(&layout);
    head_unref(&front);
    head_unref(&whole);
    block_unref(&longer);
    return value;
}
