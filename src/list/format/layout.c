/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/layout.h"

#include <stdlib.h>

#include "base/array.h"

static void add_garbage(struct layout *layout, const struct name_range *range, bool burn)
{
    layout->garbage = array_room(layout->garbage, layout->garbage_count, &layout->garbage_cap,
                                 sizeof *layout->garbage);
    layout->garbage[layout->garbage_count++] = (struct garbage){*range, burn};
}

void layout_init(struct layout *layout, const struct head *head)
{
    *layout = (struct layout){.marks = head->marks, .log = block_new(head->log.len + 256)};
    for (size_t i = 0; i < head->run_count; i++) {
        layout_insert_run(layout, i, &head->runs[i]);
    }
    for (size_t i = 0; i < head->garbage_count; i++) {
        add_garbage(layout, &head->garbage[i].range, head->garbage[i].burn);
    }
}

void layout_fini(struct layout *layout)
{
    free(layout->runs);
    free(layout->garbage);
    block_unref(&layout->log);
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

void layout_drop_runs(struct layout *layout, size_t at, size_t count)
{
    CHECK(at + count <= layout->run_count);
    for (size_t i = at; i < at + count; i++) {
        add_garbage(layout, &layout->runs[i].range, false);
    }
    if (count > 0) {
        memmove(&layout->runs[at], &layout->runs[at + count],
                (layout->run_count - at - count) * sizeof *layout->runs);
        layout->run_count -= count;
        if (layout->run_count == 0) {
            layout->marks.sublists_until_s = 0; /* there are none to speak of */
        }
    }
}

bool layout_remove_garbage(struct layout *layout, const struct garbage *garbage)
{
    for (size_t i = 0; i < layout->garbage_count; i++) {
        struct garbage *g = &layout->garbage[i];
        if (g->burn == garbage->burn && name_equal(&g->range.name, &garbage->range.name)) {
            layout->garbage_count--;
            memmove(g, g + 1, (layout->garbage_count - i) * sizeof *g);
            return true;
        }
    }
    return false;
}

size_t layout_carry(struct layout *layout, struct slice log, const struct carry *carry)
{
    size_t swept = 0;
    struct slice whole = log;
    struct entry entry;
    for (;;) {
        const char *start = log.p;
        if (entry_next(&log, &entry) != ENTRY_OK) {
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
                log_has_withdrawal(whole, &announcement.range.name)) {
                continue;
            }
            if (announcement_is_dead(&announcement, carry->now_s, carry->grace_s)) {
                add_garbage(layout, &announcement.range, true);
                swept++;
                continue;
            }
        }
        block_append(&layout->log, start, (size_t)(log.p - start));
    }
}

void layout_append_fold(struct layout *layout, const struct fold *fold, bool oldest)
{
    uint32_t at = 0;
    char op;
    struct slice item;
    while (fold_next(fold, oldest, &at, &op, &item)) {
        entry_append(&layout->log, (enum entry_op)op, item);
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
    layout_append_fold(layout, log, layout->run_count == 0 && !layout->marks.absent);
    return swept;
}

struct block *layout_value(const struct layout *layout)
{
    struct block *value =
        block_new(layout->log->used + 64 * (2 + layout->run_count + layout->garbage_count));
    struct head_marks marks = layout->marks;
    if (layout->run_count == 0) {
        marks.sublists_until_s = 0; /* there are none to speak of */
    }
    head_append_header(&value, &marks, layout->runs, layout->run_count, layout->garbage,
                       layout->garbage_count);
    block_append(&value, layout->log->data, layout->log->used);
    return value;
}

bool layout_is_empty(const struct layout *layout)
{
    return layout->run_count == 0 && layout->garbage_count == 0 && layout->log->used == 0 &&
           !layout->marks.absent; /* "@" is not written without runs */
}
