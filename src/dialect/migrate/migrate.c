/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/migrate/migrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "dialect/shared/foreign.h"

#define INFLIGHT_MAX 256

static const char foreign_key[] = "something else is stored under the list's key";

enum { TAG_KEY = 1, TAG_HEAD };

/* No list that another proxy has converted since is over sooner: times to live are whole seconds,
 * which may end up to one earlier, and it takes some round trips. */
#define RECORD_FRESH_US 100000U

static work_step migrate_clean, migrate_complete;

/* ---- where a list is ---- */

static void send_key_get(struct engine *e, struct work *w)
{
    cell_send(e, &w->op, &(struct cell){.role = CELL_KEY}, BE_GET, NULL, TAG_KEY);
}

/* Takes the reply to a look at the key, or at the head. */
static void take_place(struct work *w, const struct op_event *event)
{
    struct record record;
    if (event->status != BE_HIT && event->status != BE_MISS) {
        work_note_error(w, event);
    } else if (event->tag == TAG_HEAD) {
        w->move->head_there = event->status == BE_HIT;
        w->move->head_is_foreign = w->move->head_there && event->head == NULL;
    } else {
        cell_take(&w->move->control, event->reply);
        w->met_record = event->status == BE_HIT && record_parse(w->move->control.value, &record);
    }
}

/* Inner: has the list moved by now? Ends with moved or failed, or neither. */
static enum progress migrate_verify(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = w->moved = w->met_record = w->move->head_there = false;
    w->move->asked_us = e->now.mono_us;
    send_key_get(e, w);
    CO_AWAIT(co, "looking whether the list has moved");
    take_place(w, event);
    if (!w->failed && w->move->control.state == CELL_MISSING) {
        /* Not earlier: the head is written before the record goes. */
        emit_get(e, &w->op, TAG_HEAD);
        CO_AWAIT(co, "looking for a native head");
        take_place(w, event);
    }
    w->moved = !w->failed && (w->met_record || w->move->head_there);
    CO_END(co);
}

/* Takes the next waiting call, also a deferred one: it is to end now. NULL: there is none. */
static struct list_call *take_waiting(struct list *list)
{
    struct list_call *call = TAILQ_FIRST(&list->queue);
    if (call != NULL) {
        session_release(call);
        TAILQ_REMOVE(&list->queue, call, link);
        TAILQ_INSERT_TAIL(&list->active, call, active);
    }
    return call;
}

static void fail_queue(struct engine *e, struct work *w)
{
    struct list_call *call;
    while ((call = take_waiting(w->op.list)) != NULL) {
        call_fail(e, w->op.list, call, "%s", w->error);
    }
}

static void settle(struct list *list, enum list_kept kept)
{
    known_of(list)->kept = kept;
    list->is_native = kept == KEPT_NATIVE;
    if (kept == KEPT_NATIVE) {
        /* What was known of sizes is of the dialect's items. */
        list->size_known = false;
        list->size_bytes = list->appended_bytes = list->header_bytes = 0;
        list->extent = (struct list_extent){0};
        list->wants_compaction = false;
    }
}

/* Is a native list to be made where there is none? Also to get rid of items without a list. */
static bool is_wanted(const struct work *w)
{
    const struct list_call *call;
    bool left_over = work_any_there(w);
    TAILQ_FOREACH(call, &w->op.list->queue, link)
    {
        if (list_verb_has(call->verb, LIST_MAKES) || (call->verb == LIST_CONVERT && left_over)) {
            return true;
        }
    }
    return false;
}

/* There is no list, and no call makes one. */
static void answer_queue(struct engine *e, struct work *w)
{
    struct list *list = w->op.list;
    struct list_call *call;
    while ((call = take_waiting(list)) != NULL) {
        if (list_verb_reads(call->verb)) {
            answer_read(e, w, call);
        } else {
            bool must_be = call->condition == LIST_IF_PRESENT; /* an ldrop */
            call_finish(e, list, call, must_be ? LIST_NOT_STORED : LIST_OK);
        }
    }
}

static enum progress convert(struct engine *e, struct work *w, const struct op_event *event,
                             unsigned tries_max);

/* There is no list, and it is to become a native one. Other proxies may take it for one of the
 * dialect at the same time: so it begins as a record, which they look for. Ends with failed, or
 * something is there. */
static enum progress found(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (w->move->control.state == CELL_THERE) {
        work_note_text(w, "%s", foreign_key);
        CO_RETURN(co);
    }
    w->completing = true;
    CO_CALL(co, convert(e, w, event, 1));
    w->completing = false;
    if (w->failed || w->conflict) {
        CO_RETURN(co);
    }
    CO_CALL(co, migrate_verify(e, w, event));
    if (!w->failed && w->met_record) {
        CO_CALL(co, migrate_complete(e, w, event));
    }
    CO_END(co);
}

/* No essential cell was found. Ends with moved or failed, or there is no list. */
static enum progress resolve_left(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    /* It may have moved while the cells were read. */
    CO_CALL(co, migrate_verify(e, w, event));
    if (w->failed || w->moved) {
        CO_RETURN(co); /* the list is looked for anew */
    }
    if (is_wanted(w)) {
        CO_CALL(co, found(e, w, event));
    } else {
        answer_queue(e, w);
    }
    CO_END(co);
}

/* May cells be left though the one under the list's own key has gone? What is written to them
 * behind that makes no list. Those of sublists have no names then. */
static bool leaves_cells(const struct list *list)
{
    return dialect_keeps_key(list) && (dialect_of(list)->essential & ROLE(CELL_KEY)) == 0;
}

/* Finds out in which layout the list is, and lets its calls go on there. */
static enum progress migrate_resolve(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    struct list *list = w->op.list;
    CO_BEGIN(co);
    CO_CALL(co, migrate_verify(e, w, event));
    if (!w->failed && w->met_record) {
        CO_CALL(co, migrate_complete(e, w, event));
    }
    if (!w->failed && w->moved) {
        settle(list, KEPT_NATIVE);
    } else if (!w->failed && dialect_keeps_key(list)) {
        settle(list, w->move->control.state == CELL_THERE ? KEPT_OLD : KEPT_NATIVE);
    } else if (!w->failed) {
        CO_CALL(co, work_look(e, w, event));
        if (!w->failed) {
            settle(list, KEPT_OLD);
        } else if (w->moved) {
            CO_CALL(co, resolve_left(e, w, event));
        }
    }
    if (!w->failed && list->is_native && leaves_cells(list)) {
        CO_CALL(co, migrate_clean(e, w, event));
        w->failed = false; /* no reader asks for them */
    }
    if (w->failed) {
        fail_queue(e, w);
    }
    lists_mark_ready(&e->lists, list);
    CO_END(co);
}

/* ---- the native content ----
 *
 * The content of a list of a dialect becomes one run of sublists under a fresh name; or, if it is
 * small, only the log of a head.
 */

#define IMPORTED_INFLIGHT_MAX 16

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

/* Fills w->texts with sublists of what the list holds. */
static void import_begin(struct engine *e, struct work *w)
{
    size_t limit = list_sublist_limit(w->op.list);
    struct block *text = NULL;
    uint32_t count = 0, at = 0;
    struct slice item;
    work_forget_texts(w);
    w->move->import = (struct run){0};
    name_fresh(&w->move->import.range.name, e->rng);
    fold_fini(&w->move->imported);
    fold_init(&w->move->imported);
    take_items(w, &w->move->imported);
    w->move->inlined = w->items.bytes + w->items.count * 8 <= list_log_limit(w->op.list) / 2;
    while (!w->move->inlined && fold_next_item(&w->move->imported, ENTRY_NEVER_OVER, &at, &item)) {
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

/* Inner: adds them. */
static enum progress import_write(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->next_cell = 0;
    for (;;) {
        while (!w->failed && w->next_cell < w->text_count && w->op.due < IMPORTED_INFLIGHT_MAX) {
            emit_add_sublist(e, &w->op, &w->move->import.range.name, (uint32_t)w->next_cell, 0,
                             w->texts[w->next_cell], 0);
            w->next_cell++;
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

/* Inner: deletes them again. */
static enum progress import_undo(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    (void)event;
    CO_BEGIN(co);
    for (w->next_cell = 0; w->next_cell < w->text_count; w->next_cell++) {
        emit_delete_sublist(e, &w->op, &w->move->import.range.name, (uint32_t)w->next_cell, 0);
        CO_AWAIT(co, "deleting native sublists again");
    }
    CO_END(co);
}

/* Appends the differences between what the list holds by now and what was written: what has gone,
 * and the items behind those that still stand in their order. */
static void append_difference(const struct work *w, struct block **b)
{
    const struct fold *before = &w->move->imported;
    const struct fold_item *last = before->items, *was;
    struct fold now;
    uint32_t at = 0;
    struct slice item;
    bool in_order = true;
    fold_init(&now);
    take_items(w, &now);
    while (fold_next_item(before, ENTRY_NEVER_OVER, &at, &item)) {
        if (fold_outcome(&now, item) == 0) {
            entry_append(b, ENTRY_DEL, item);
        }
    }
    at = 0;
    while (fold_next_item(&now, ENTRY_NEVER_OVER, &at, &item)) {
        was = fold_find(before, item);
        in_order = in_order && was != NULL && was >= last;
        if (in_order) {
            last = was;
        } else {
            entry_append(b, was == NULL ? ENTRY_ADD : ENTRY_READD, item);
        }
    }
    fold_fini(&now);
}

/* Makes the head of what was written, with what has changed since. NULL: too much has. */
static struct block *import_head(const struct work *w)
{
    struct block *head = block_new(256);
    head_append_header(&head, NULL, &w->move->import, w->text_count > 0, &w->move->replaced,
                       w->move->replaced.count > 0);
    size_t header_bytes = head->used;
    if (w->move->inlined) {
        fold_append_items(&w->move->imported, &head);
    }
    append_difference(w, &head);
    if (head->used - header_bytes > list_log_limit(w->op.list)) {
        block_unref(&head);
    }
    return head;
}

/* ---- carrying out a record ---- */

static void add_head(struct engine *e, struct work *w, struct block *head)
{
    struct list_request *r = request_new(e, w->op.list, BE_ADD);
    request_set_key(r, head_key(r->key, list_key(w->op.list)));
    struct life life = life_kept(w->move->control.ttl_s);
    expiry_send(e, &w->op, w->op.list, r, &life, list_key(w->op.list), head, 0);
}

/* The head that the record holds. */
static struct block *recorded_head(const struct work *w)
{
    struct record record;
    CHECK(record_parse(w->move->control.value, &record));
    struct block *head = block_new(record.head.len);
    block_append(&head, record.head.p, record.head.len);
    return head;
}

static bool came_more(const struct work *w)
{
    struct record record;
    CHECK(record_parse(w->move->control.value, &record));
    return work_version(w, false) != record.version;
}

/* Ends with failed, or all cells but the one under the list's key are gone. */
static enum progress delete_cells(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->next_cell = 0;
    for (;;) {
        while (!w->failed && w->next_cell < w->cell_count && w->op.due < INFLIGHT_MAX) {
            const struct cell *cell = &w->cells[w->next_cell++];
            bool own = cell_has_own_key(w->op.list, cell->role);
            if (!own && !cell->bare && !cell->foreign) {
                cell_send(e, &w->op, cell, BE_DELETE, NULL, 0);
            }
        }
        if (w->op.due == 0) {
            break;
        }
        CO_AWAIT(co, "deleting the items of the old layout");
        if (event->status != BE_DELETED && event->status != BE_NOT_FOUND) {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}

/* Deletes what w has written beside the native list, since it took the list for one of the dialect.
 * Its calls are done. */
static enum progress migrate_clean(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    const struct dialect *dialect;
    CO_BEGIN(co);
    work_forget_cells(w);
    dialect = dialect_of(w->op.list);
    if (dialect->late_cells != NULL) {
        dialect->late_cells(w);
    } else {
        dialect->cells(w);
    }
    w->failed = false;
    w->completing = true;
    CO_CALL(co, work_read(e, w, event));
    if (!w->failed) {
        CO_CALL(co, delete_cells(e, w, event));
    }
    CO_END(co);
}

static enum progress delete_old(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, delete_cells(e, w, event));
    if (!w->failed) {
        cell_send(e, &w->op, &(struct cell){.role = CELL_KEY}, BE_DELETE, NULL, 0);
        CO_AWAIT(co, "deleting the record of the move");
        if (event->status != BE_DELETED && event->status != BE_NOT_FOUND) {
            work_note_error(w, event);
        }
    }
    CO_END(co);
}

/* The run of the head in the record; count 0: it has none. */
static struct name_range recorded_run(const struct work *w)
{
    struct record record;
    struct head *head = NULL;
    struct name_range range = {.count = 0};
    CHECK(record_parse(w->move->control.value, &record));
    struct be_reply reply = {
        .status = BE_HIT, .value = record.head, .block = w->move->control.block};
    if (head_read(&reply, list_key(w->op.list), &head) == HEAD_OK && head->run_count > 0) {
        range = head->runs[0].range;
    }
    head_unref(&head);
    return range;
}

/* Another head was there before the record's, so no head will ever name the record's sublists:
 * deletes them. */
static enum progress take_back(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (w->move->imported_again) {
        CO_CALL(co, import_undo(e, w, event));
    }
    w->move->replaced = recorded_run(w);
    if (w->move->replaced.count == 0) {
        CO_RETURN(co);
    }
    emit_get(e, &w->op, TAG_HEAD);
    CO_AWAIT(co, "looking at the native head that was there before");
    if (event->head == NULL || head_names_run(event->head, &w->move->replaced.name)) {
        CO_RETURN(co);
    }
    for (w->next_cell = 0; w->next_cell < w->move->replaced.count; w->next_cell++) {
        emit_delete_sublist(e, &w->op, &w->move->replaced.name, (uint32_t)w->next_cell, 0);
        CO_AWAIT(co, "deleting sublists that no head names");
    }
    CO_END(co);
}

/* Reads the items once more; what was written to them since the record counts. */
static enum progress look_again(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->completing = true;
    CO_CALL(co, work_look(e, w, event));
    w->completing = false;
    if (!w->failed && came_more(w)) {
        w->move->head = NULL;
        if (w->move->has_import) {
            w->move->head = import_head(w);
        }
        if (w->move->head == NULL) {
            w->move->replaced = recorded_run(w);
            w->move->imported_again = true;
            import_begin(e, w);
            CO_CALL(co, import_write(e, w, event));
            w->move->head = w->failed ? NULL : import_head(w);
        }
    }
    CO_END(co);
}

/* Looks at the record once more if that was long ago: another proxy may have carried it out, and
 * the list's time be over by now, or another record stands there. Ends with failed, or stands. */
static enum progress look_at_record(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->move->stands = true;
    if (e->now.mono_us <= w->move->asked_us + RECORD_FRESH_US) {
        CO_RETURN(co);
    }
    w->move->record_cas = w->move->control.cas;
    CO_CALL(co, migrate_verify(e, w, event));
    w->move->stands = !w->failed && w->met_record && w->move->control.cas == w->move->record_cas;
    if (!w->failed && !w->move->stands && w->move->imported_again) {
        CO_CALL(co, import_undo(e, w, event));
    }
    CO_END(co);
}

/* Inner: does what the record in w->move->control leaves to be done. */
static enum progress migrate_complete(struct engine *e, struct work *w,
                                      const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    do {
        work_forget_cells(w);
        block_unref(&w->move->head);
        w->move->imported_again = false;
        if (!dialect_of(w->op.list)->one_item) {
            CO_CALL(co, look_again(e, w, event));
        }
        if (!w->failed) {
            CO_CALL(co, look_at_record(e, w, event));
        }
        if (w->failed || (!w->move->stands && !w->met_record)) {
            CO_RETURN(co);
        }
        w->move->has_import = w->move->has_import && w->move->stands;
    } while (!w->move->stands);
    if (w->move->head == NULL) {
        w->move->head = recorded_head(w);
    }
    add_head(e, w, w->move->head);
    block_unref(&w->move->head);
    CO_AWAIT(co, "adding the native head");
    w->move->taken = event->status == BE_NOT_STORED;
    if (event->status == BE_NOT_FOUND) {
        /* The record went while its expiry was asked for: another proxy has carried it out, or it
         * has expired. */
        emit_get(e, &w->op, TAG_HEAD);
        CO_AWAIT(co, "looking whether another has added the native head");
        w->move->taken = event->status == BE_HIT;
    }
    if (event->status == BE_MISS) {
        work_note_text(w, "the list expired while it was moved, nothing done");
        CO_RETURN(co);
    }
    if (event->status != BE_STORED && !w->move->taken) {
        work_note_error(w, event);
        CO_RETURN(co);
    }
    if (w->move->taken) {
        CO_CALL(co, take_back(e, w, event));
    }
    CO_CALL(co, delete_old(e, w, event));
    w->moved = true;
    CO_END(co);
}

/* ---- lconvert ---- */

/* Writes the record in its place as that was read. False: the head would be too long. */
static bool write_record(struct engine *e, struct work *w)
{
    struct block *head = import_head(w);
    if (head == NULL) {
        return false;
    }
    bool single = dialect_of(w->op.list)->one_item;
    struct cell *place = dialect_keeps_key(w->op.list) ? &w->cells[0] : &w->move->control;
    struct slice before = single || !dialect_keeps_key(w->op.list) ? SLICE_NONE : place->value;
    struct block *record = block_new(head->used + before.len + 80);
    record_append(&record, block_text(head), before, single ? 0 : work_version(w, false));
    cell_write(e, &w->op, place, record, 0);
    block_unref(&record);
    block_unref(&head);
    return true;
}

/* One attempt. Ends with conflict or failed, or the record stands. */
static enum progress convert_once(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    if (foreign_delimiter_within(w)) {
        work_note_text(w, "not converted: %s", foreign_delimiter_text);
    }
    if (!w->failed && !w->move->has_import) {
        import_begin(e, w);
        w->move->has_import = true;
        CO_CALL(co, import_write(e, w, event));
    }
    if (w->failed) {
        CO_RETURN(co);
    }
    w->conflict = !write_record(e, w);
    if (w->conflict) {
        CO_CALL(co, import_undo(e, w, event));
        w->move->has_import = false;
        CO_RETURN(co);
    }
    CO_AWAIT(co, "writing the record of the move");
    w->conflict = !work_written(e, w, event);
    if (w->failed && event->status == BE_LOST) {
        w->move->has_import = false; /* the record may be there, and name it */
    }
    CO_END(co);
}

/* Inner. Ends with the record written, with conflict, or with failed: then what was imported is
 * gone again. */
static enum progress convert(struct engine *e, struct work *w, const struct op_event *event,
                             unsigned tries_max)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    CO_CALL(co, work_try(e, w, event, convert_once, tries_max, 0));
    if (w->failed && w->move->has_import) {
        CO_CALL(co, import_undo(e, w, event));
        w->move->has_import = false;
    }
    CO_END(co);
}

/* Fails if there is a native head, which would count instead; or, where the dialect stores nothing
 * under the list's key, if there is a value. */
static enum progress check_free(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = w->move->head_there = false;
    emit_get(e, &w->op, TAG_HEAD);
    CO_AWAIT(co, "looking for a native list beside the old one");
    take_place(w, event);
    if (w->failed) {
        CO_RETURN(co);
    }
    /* Not earlier: if the list has been converted in between, a head that was there before the key
     * was read is no reason to refuse. */
    send_key_get(e, w);
    CO_AWAIT(co, "looking at the list's key");
    take_place(w, event);
    if (w->failed) {
        CO_RETURN(co);
    }
    bool key_there = w->move->control.state == CELL_THERE;
    if (w->met_record || (w->move->head_there && !key_there)) {
        w->failed = w->moved = true;
    } else if (w->move->head_is_foreign) {
        work_note_text(w, "something else is stored where the native list would begin, under KEY#");
    } else if (w->move->head_there) {
        work_note_text(w, "both a native list and an old one are stored: delete one of them");
    } else if (!dialect_keeps_key(w->op.list) && key_there) {
        work_note_text(w, "%s", foreign_key);
    }
    CO_END(co);
}

static enum progress migrate_convert(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    if (dialect_of(w->op.list)->before_convert != NULL) {
        CO_CALL(co, dialect_of(w->op.list)->before_convert(e, w, event));
    }
    if (!w->failed) {
        CO_CALL(co, check_free(e, w, event));
    }
    if (!w->failed) {
        CO_CALL(co, convert(e, w, event, WORK_TRIES_MAX));
    }
    if (!w->failed && w->conflict) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy, not converted: other writers were faster each time");
        CO_CALL(co, import_undo(e, w, event));
    }
    if (!w->failed) {
        /* The record is there: carries it out like any other; the call is tried again. */
        CO_CALL(co, migrate_verify(e, w, event));
    }
    if (!w->failed && w->met_record) {
        metric_inc(e->metrics, METRIC_list_conversions);
        CO_CALL(co, migrate_complete(e, w, event));
    }
    w->moved = w->moved || !w->failed;
    work_fail(e, w, w->error);
    CO_END(co);
}

/* ---- the table ---- */

static void move_init(struct work *w)
{
    fold_init(&w->move->imported);
}

static void move_fini(struct work *w)
{
    cell_forget(&w->move->control);
    fold_fini(&w->move->imported);
    block_unref(&w->move->head);
}

const struct migration migration_native = {
    .work_bytes = sizeof(struct move),
    .init = move_init,
    .fini = move_fini,
    .resolve = migrate_resolve,
    .convert = migrate_convert,
    .verify = migrate_verify,
    .clean = migrate_clean,
};
