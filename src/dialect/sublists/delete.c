/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deleting where delimiters stand in place of signs: the items are taken out of each sublist that
 * holds them, by CAS, oldest first. A sublist that has changed since all were read has the proxy
 * look again. Reads see an item until the last of its places is gone.
 *
 * A deletion leaves no trace, so nothing may ever copy an item to another sublist: the copy might
 * come behind the deletion. Therefore no folding merges such sublists.
 */
#include <stdlib.h>

#include "dialect/sublists/sublists.h"

#define TRIES_MAX 64

static void fold_calls(const struct work *w, struct fold *deleted)
{
    const struct list_call *call;
    fold_init(deleted);
    TAILQ_FOREACH(call, &w->calls, link)
    {
        fold_call(deleted, call);
    }
}

/* The text without those items, NULL when it has none of them. */
static struct block *text_without(const struct list *list, struct slice text,
                                  const struct fold *deleted)
{
    struct block *rest = block_new(text.len + 1);
    enum entry_op op;
    struct slice item;
    bool found = false;
    while (sublists_next(list, &text, &op, &item)) {
        if (fold_outcome(deleted, item) != 0) {
            found = true;
        } else {
            sublists_append(list, &rest, op, item);
        }
    }
    if (!found) {
        block_unref(&rest);
    }
    return rest;
}

/* Fills w->texts with what is to stand in the sublists, NULL in those that stay. False: in all. */
static bool plan_deletions(struct work *w)
{
    struct fold deleted;
    bool any = false;
    work_forget_texts(w);
    w->texts = calloc(w->cell_count, sizeof *w->texts);
    CHECK(w->texts != NULL);
    w->text_count = w->cell_count - 1;
    fold_calls(w, &deleted);
    for (size_t i = 0; i < w->text_count; i++) {
        w->texts[i] = text_without(w->op.list, w->cells[i + 1].value, &deleted);
        any = any || w->texts[i] != NULL;
    }
    fold_fini(&deleted);
    return any;
}

/* Writes them. Ends with conflict or failed, or all is written. */
static enum progress delete_round(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    for (w->next_cell = 1; w->next_cell < w->cell_count; w->next_cell++) {
        if (w->texts[w->next_cell - 1] == NULL) {
            continue;
        }
        cell_write(e, &w->op, &w->cells[w->next_cell], w->texts[w->next_cell - 1], 0);
        CO_AWAIT(co, "taking items out of a sublist");
        w->conflict = !work_written(e, w, event);
        if (w->conflict || w->failed) {
            break;
        }
        w->wrote_any = true;
    }
    CO_END(co);
}

static enum progress delete_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (plan_deletions(w)) {
        CO_CALL(co, delete_round(e, w, event));
    }
    CO_END(co);
}

enum progress sublists_delete(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_try(e, w, event, delete_once, TRIES_MAX, 0));
    if (!w->failed && w->conflict) {
        work_note_busy(e, w);
    }
    if (w->failed && w->wrote_any && !w->moved) {
        work_note_unknown(w);
    }
    work_end(e, w);
    CO_END(co);
}
