/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing the content of a list of a dialect as a native list: one run of sublists under a fresh
 * name; or, if it is small, only the log of a head.
 */
#include <stdlib.h>

#include "dialect/migrate/migrate.h"

#define INFLIGHT_MAX 16

/* The items in the order in which they were added, each once. A list that keeps the newest first
 * may hold an item twice: then the last place counts. */
static void take_items(const struct work *w, struct fold *fold)
{
    const struct items *items = &w->items;
    bool newest_first = dialect_of(w->op.list)->newest_first;
    for (size_t i = 0; i < items->count; i++) {
        if (newest_first) {
            fold_apply(fold, ENTRY_READD, items->at[items->count - 1 - i]);
        } else {
            fold_apply(fold, ENTRY_ADD, items->at[i]);
        }
    }
}

static void add_text(struct work *w, struct block *text, uint32_t count)
{
    sublist_finish(text, count);
    w->texts = realloc(w->texts, (w->text_count + 1) * sizeof *w->texts);
    CHECK(w->texts != NULL);
    w->texts[w->text_count++] = text;
    w->move->import.bytes += text->used;
    w->move->import.items += count;
}

void import_begin(struct engine *e, struct work *w)
{
    size_t limit = list_sublist_limit(w->op.list);
    struct block *text = NULL;
    uint32_t count = 0, at = 0;
    char op;
    struct slice item;
    work_forget_texts(w);
    w->move->import = (struct run){0};
    name_fresh(&w->move->import.range.name, e->rng);
    fold_fini(&w->move->imported);
    fold_init(&w->move->imported);
    take_items(w, &w->move->imported);
    w->move->inlined = w->items.bytes + w->items.count * 8 <= list_log_limit(w->op.list) / 2;
    while (!w->move->inlined && fold_next(&w->move->imported, true, &at, &op, &item)) {
        if (text != NULL && text->used + entry_bytes(item.len) > limit) {
            add_text(w, text, count);
            text = NULL;
        }
        if (text == NULL) {
            text = sublist_begin(limit);
            count = 0;
        }
        entry_append(&text, ENTRY_ADD, item);
        count++;
    }
    if (text != NULL) {
        add_text(w, text, count);
    }
    w->move->import.range.count = (uint32_t)w->text_count;
}

enum progress import_write(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->next_part = 0;
    for (;;) {
        while (!w->failed && w->next_part < w->text_count && w->op.due < INFLIGHT_MAX) {
            emit_add_sublist(e, &w->op, &w->move->import.range.name, (uint32_t)w->next_part, 0,
                             w->texts[w->next_part], 0);
            w->next_part++;
        }
        if (w->op.due == 0) {
            break;
        }
        CO_AWAIT(co, "writing native sublists");
        if (event->status != BE_STORED) {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}

enum progress import_undo(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    (void)event;
    CO_BEGIN(co);
    for (w->next_part = 0; w->next_part < w->text_count; w->next_part++) {
        emit_delete_sublist(e, &w->op, &w->move->import.range.name, (uint32_t)w->next_part, 0);
        CO_AWAIT(co, "deleting native sublists again");
    }
    CO_END(co);
}

/* Appends the differences between what the list holds by now and what was written. */
static void append_difference(const struct work *w, struct block **b)
{
    struct fold now;
    uint32_t at = 0;
    char op;
    struct slice item;
    fold_init(&now);
    take_items(w, &now);
    while (fold_next(&w->move->imported, true, &at, &op, &item)) {
        if (fold_outcome(&now, item) == 0) {
            entry_append(b, ENTRY_DEL, item);
        }
    }
    at = 0;
    while (fold_next(&now, true, &at, &op, &item)) {
        if (fold_outcome(&w->move->imported, item) == 0) {
            entry_append(b, ENTRY_ADD, item);
        }
    }
    fold_fini(&now);
}

static void append_all(const struct work *w, struct block **b)
{
    uint32_t at = 0;
    char op;
    struct slice item;
    while (fold_next(&w->move->imported, true, &at, &op, &item)) {
        entry_append(b, ENTRY_ADD, item);
    }
}

struct block *import_head(const struct work *w)
{
    struct block *head = block_new(256);
    head_append_header(&head, NULL, &w->move->import, w->text_count > 0, &w->move->replaced,
                       w->move->replaced.count > 0);
    size_t header_bytes = head->used;
    if (w->move->inlined) {
        append_all(w, &head);
    }
    append_difference(w, &head);
    if (head->used - header_bytes > list_log_limit(w->op.list)) {
        block_unref(&head);
    }
    return head;
}
