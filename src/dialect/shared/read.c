/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every dialect does in the same way: answers reads from one look at the cells; removes them
 * for ldrop.
 */
#include "dialect/shared/dialect.h"
#include "dialect/shared/foreign.h"
#include "list/core/answer.h"
#include "list/read/pick.h"

static bool holds(const struct list *list, const struct items *items, struct slice item)
{
    const struct dialect *dialect = dialect_of(list);
    if (items->fold.table_used > 0) {
        return items_have(items, item);
    }
    for (size_t i = 0; i < items->count; i++) {
        struct slice found = items->at[i];
        if (dialect->item_of != NULL) {
            found = dialect->item_of(list->policy, found);
        }
        if (slice_equal(found, item)) {
            return true;
        }
    }
    return false;
}

static void answer_has(const struct work *w, struct list_call *call)
{
    for (size_t i = 0; i < call->item_count; i++) {
        if (holds(w->op.list, &w->items, call->items[i])) {
            answer_member(w->op.list, call, call->items[i]);
        }
    }
}

static void answer_items(struct engine *e, struct work *w, struct list_call *call)
{
    const struct items *items = &w->items;
    struct output output = {.to = UINT64_MAX};
    struct pick pick = {0};
    bool picks = list_verb_has(call->verb, LIST_PICKS);
    /* Where a dialect finds the newest items first, lrange begins with them, too. */
    bool back = list_verb_has(call->verb, LIST_FROM_NEWEST | LIST_AHEAD) &&
                !dialect_of(w->op.list)->newest_first;
    answer_begin(w->op.list, call, &output);
    if (picks) {
        pick_begin(&pick, w->op.list, call, e->rng, &output);
    }
    if (!list_verb_has(call->verb, LIST_RANGES) || answer_range(call, items->count, &output)) {
        output.position = output.from;
        for (size_t i = output.from; i < items->count && !output_satisfied(&output); i++) {
            output_item(&output, items->at[back ? items->count - 1 - i : i]);
        }
    }
    if (picks) {
        pick_finish(e, &pick, NULL);
        pick_fini(&pick);
    } else {
        answer_content(e, w->op.list, call, NULL, &output);
    }
}

static void fill_stat(const struct work *w, struct list_stat *stat)
{
    const struct dialect *dialect = dialect_of(w->op.list);
    stat->log_bytes = w->stored_bytes;
    stat->items = w->items.count;
    stat->head_server = w->op.list->head_server;
    stat->ttl_s = -1;
    for (size_t i = 0; i < w->cell_count; i++) {
        const struct cell *cell = &w->cells[i];
        if (cell->state == CELL_THERE) {
            stat->sublists += (dialect->sublists & ROLE(cell->role)) != 0;
            stat->head_cas = stat->head_cas == 0 ? cell->cas : stat->head_cas;
            stat->ttl_s = stat->ttl_s < 0 ? cell->ttl_s : stat->ttl_s;
        }
    }
}

/* -1: no cell expires. */
static int64_t least_ttl_s(const struct work *w)
{
    int64_t least_s = -1;
    for (size_t i = 0; i < w->cell_count; i++) {
        int64_t ttl_s = w->cells[i].state == CELL_THERE ? w->cells[i].ttl_s : -1;
        least_s = ttl_s >= 0 && (least_s < 0 || ttl_s < least_s) ? ttl_s : least_s;
    }
    return least_s;
}

/* Does the answer join several items in one text? One item alone needs no delimiter. */
static bool is_joined(const struct list_call *call)
{
    bool several = list_verb_has(call->verb, LIST_GIVES_ITEMS) ||
                   (call->verb == LIST_HAS && call->item_count > 1);
    return several && call->form == LIST_FORM_JOINED;
}

/* The version of a list of one item is that of the item; of several, a mixture. */
static uint64_t answer_version(const struct work *w)
{
    uint64_t mixture = 0, version = 0;
    for (size_t i = 0; i < w->cell_count; i++) {
        const struct cell *cell = &w->cells[i];
        version = cell->state == CELL_THERE ? head_version(cell->cas, cell->value) : 0;
        mixture = hash_stable(slice_make((const char *)&version, sizeof version), mixture);
    }
    return w->cell_count == 1 ? version : version_of_hash(mixture);
}

/* The list is one item: others are not looked at in this way. */
static void answer_look(struct engine *e, struct work *w, struct list_call *call)
{
    const struct cell *cell = w->cells;
    bool there = w->cell_count > 0 && cell->state == CELL_THERE;
    for (size_t i = 0; i < w->items.count; i++) {
        fold_apply(&call->inner->items, ENTRY_ADD, w->items.at[i]);
    }
    call->inner->cas = there ? cell->cas : 0;
    call->inner->epoch = there ? cell->epoch : 0;
    call_finish(e, w->op.list, call, there ? LIST_OK : LIST_MISSING);
}

void answer_read(struct engine *e, struct work *w, struct list_call *call)
{
    call->version = call->wants_version ? answer_version(w) : 0;
    if (is_joined(call) && foreign_delimiter_within(w)) {
        call_fail(e, w->op.list, call, "%s", foreign_delimiter_text);
        return;
    }
    if (inner_looks(call)) {
        answer_look(e, w, call);
        return;
    }
    switch (call->verb) {
    case LIST_TTL:
        call->stat.ttl_s = least_ttl_s(w);
        call->number = w->items.count;
        answer_call(e, w->op.list, call, NULL, LIST_OK);
        return;
    case LIST_LEN:
        call->number = w->items.count;
        answer_call(e, w->op.list, call, NULL, LIST_OK);
        return;
    case LIST_HAS:
        answer_has(w, call);
        answer_call(e, w->op.list, call, NULL, call->number > 0 ? LIST_OK : LIST_MISSING);
        return;
    case LIST_STAT:
        fill_stat(w, &call->stat);
        answer_call(e, w->op.list, call, NULL, work_any_there(w) ? LIST_OK : LIST_MISSING);
        return;
    default:
        answer_items(e, w, call);
        return;
    }
}

/* One read in compact_chance, at random, asks for a folding if there is something to fold. */
static void consider_compaction(struct engine *e, struct work *w)
{
    struct list *list = w->op.list;
    uint32_t chance = list->policy->compact_chance;
    if (w->can_shrink && chance > 0 && rng_below(e->rng, chance) == 0) {
        list->wants_compaction = true;
        lists_mark_ready(&e->lists, list);
    }
}

enum progress dialect_read(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_look(e, w, event));
    if (!w->failed && list_migrates(w->op.list)) {
        /* If it has not moved, the cells belonged to the list all the time while they were read. */
        CO_CALL(co, migration_of(w->op.list)->verify(e, w, event));
    }
    if (w->failed || w->moved) {
        work_fail(e, w, w->error);
        CO_RETURN(co);
    }
    while (!TAILQ_EMPTY(&w->calls)) {
        struct list_call *call = TAILQ_FIRST(&w->calls);
        TAILQ_REMOVE(&w->calls, call, link);
        answer_read(e, w, call);
    }
    consider_compaction(e, w);
    CO_END(co);
}

/* Deletes one after the other, except for cells that are all alike. */
static void send_drops(struct engine *e, struct work *w)
{
    const struct dialect *dialect = dialect_of(w->op.list);
    unsigned most = dialect->drops_at_once != 0 ? dialect->drops_at_once : 1;
    while (!w->failed && w->next_cell < w->cell_count && w->op.due < most) {
        size_t n = w->next_cell++;
        size_t at = dialect->nth_drop != NULL ? dialect->nth_drop(w, n) : w->cell_count - 1 - n;
        const struct cell *cell = &w->cells[at];
        if (dialect->survives_drop == NULL || !dialect->survives_drop(cell)) {
            cell_send(e, &w->op, cell, BE_DELETE, NULL, 0);
        }
    }
}

/* Deletes the items, once. */
static enum progress delete_cells(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->next_cell = 0;
    send_drops(e, w);
    while (w->op.due > 0) {
        CO_AWAIT(co, "dropping the list's items");
        if (event->status != BE_DELETED && event->status != BE_NOT_FOUND) {
            work_note_error(w, event);
            if (w->cell_count > 1) {
                work_note_unknown(w);
            }
        }
        send_drops(e, w);
    }
    CO_END(co);
}

/* Reads what there is behind the deletions. */
static enum progress read_what_came(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    work_forget_cells(w);
    dialect_of(w->op.list)->cells(w);
    w->met_record = false;
    CO_CALL(co, work_gather(e, w, event));
    w->goes_on = !w->failed && dialect_of(w->op.list)->outlives_drop(w);
    CO_END(co);
}

/* Writes what others have begun by hand once more, as it is. */
static void renew_what_came(struct engine *e, struct work *w)
{
    for (size_t i = 0; i < w->cell_count; i++) {
        const struct cell *cell = &w->cells[i];
        bool essential = (dialect_of(w->op.list)->essential & ROLE(cell->role)) != 0;
        if (essential && cell->state == CELL_THERE) {
            struct block *value = block_new(cell->value.len);
            block_append(&value, cell->value.p, cell->value.len);
            cell_write(e, &w->op, cell, value, 0);
            block_unref(&value);
        }
    }
}

/* Another proxy that folds, and has read the list before, may write what it held between two of the
 * deletions. So the items are read behind these, and go once more. One that others have begun by
 * hand between the deletions stays, but gets another CAS number: so it does not take what was read
 * before. If it has changed by itself, it has another one, and is read again. */
static enum progress delete_what_came(struct engine *e, struct work *w,
                                      const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, read_what_came(e, w, event));
    w->conflict = false;
    if (!w->failed && !w->goes_on && !w->met_record) {
        renew_what_came(e, w);
        while (w->op.due > 0) {
            CO_AWAIT(co, "writing what others began beside the drop");
            w->conflict = !work_written(e, w, event) || w->conflict;
        }
    }
    if (!w->failed && w->conflict) {
        CO_CALL(co, read_what_came(e, w, event));
    }
    if (w->failed) {
        work_note_unknown(w);
    } else if (w->goes_on) {
        CO_CALL(co, delete_cells(e, w, event));
    }
    CO_END(co);
}

enum progress dialect_drop(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_look(e, w, event));
    if (work_drops_nothing(e, w)) {
        CO_RETURN(co);
    }
    if (!w->failed && list_migrates(w->op.list) && dialect_of(w->op.list)->remove != NULL) {
        CO_CALL(co, dialect_of(w->op.list)->remove(e, w, event));
        CO_RETURN(co);
    }
    CO_CALL(co, delete_cells(e, w, event));
    w->goes_on = dialect_of(w->op.list)->outlives_drop != NULL;
    for (w->tries = 0; !w->failed && w->goes_on && w->tries < WORK_TRIES_MAX; w->tries++) {
        CO_CALL(co, delete_what_came(e, w, event));
    }
    if (w->failed) {
        dialect_forget(w->op.list); /* some of the items may have gone */
    }
    work_end(e, w);
    CO_END(co);
}
