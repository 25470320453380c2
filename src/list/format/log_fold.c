/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/log_fold.h"

void log_fold_init(struct log_fold *f)
{
    *f = (struct log_fold){.log = SLICE_NONE};
    fold_init(&f->fold);
}

void log_fold_fini(struct log_fold *f)
{
    fold_fini(&f->fold);
    block_unref(&f->block);
}

void log_fold_clear(struct log_fold *f)
{
    log_fold_fini(f);
    log_fold_init(f);
}

static bool holds_clear(struct slice entries)
{
    struct entry entry;
    while (entry_next(&entries, &entry) == ENTRY_OK) {
        if (entry.op == ENTRY_CLEAR) {
            return true;
        }
    }
    return false;
}

/* A block of a connection holds many short heads, and would stay there for each of them. */
static bool is_worth_copying(const struct head *head)
{
    return head->run_count == 0 && head->log.len < head->log_block->cap / 4;
}

static void keep_log(struct log_fold *f, const struct head *head)
{
    block_unref(&f->block);
    if (!is_worth_copying(head)) {
        f->block = block_ref(head->log_block);
        f->log = head->log;
        return;
    }
    f->block = block_new_exact(head->log.len + 1);
    block_append(&f->block, head->log.p, head->log.len);
    f->log = slice_make(f->block->data, f->block->used);
}

bool log_fold_take(struct log_fold *f, const struct head *head)
{
    CHECK(head->open_count == 0 || head->whole != NULL);
    struct slice tail = head->log;
    bool goes_on = slice_starts_with(tail, f->log);
    if (goes_on) {
        (void)slice_take(&tail, f->log.len);
        goes_on = !head->clears || !holds_clear(tail);
    }
    goes_on = goes_on && cap_equal(f->fold.cap, head->marks.cap);
    if (!goes_on) {
        log_fold_clear(f);
        fold_set_cap(&f->fold, head->marks.cap);
        tail = head->log;
    }
    bool whole = fold_apply_entries(&f->fold, tail);
    CHECK(whole); /* head_read checked it */
    keep_log(f, head);
    return goes_on;
}
