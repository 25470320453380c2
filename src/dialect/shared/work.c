/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "dialect/migrate/migrate.h"
#include "dialect/shared/dialect.h"
#include "dialect/shared/foreign.h"

/* Parts asked for at the same time: more than most lists have, and a bounded amount of memory in
 * flight. */
#define PARTS_INFLIGHT_MAX 1024
/* A read whose answer was lost, or that met a change half done, is made again so often. */
#define GET_TRIES_MAX 3
#define LOOK_TRIES_MAX 16
/* Then with pauses in between. */
#define LOOKS_AT_ONCE 4
/* An append that finds its item missing creates it, which somebody may do or undo in between. */
#define APPEND_TRIES_MAX 8
/* First pause after a conflict; doubles up to 2^8 times that. */
#define BACKOFF_US 200u

/* Behind the tags of parts. */
#define TAG_APPENDED ((uint64_t)1 << 40)

/* ---- items ---- */

static void items_reset(struct items *items)
{
    fold_fini(&items->fold);
    fold_init(&items->fold);
    items->count = 0;
    items->bytes = 0;
}

void items_push(struct items *items, struct slice item)
{
    if (items->count == items->cap) {
        items->cap = items->cap == 0 ? 64 : items->cap * 2;
        items->at = realloc(items->at, items->cap * sizeof *items->at);
        CHECK(items->at != NULL);
    }
    items->at[items->count++] = item;
    items->bytes += item.len;
}

void items_settle(struct items *items)
{
    uint32_t at = 0;
    char op;
    struct slice item;
    items->count = 0;
    items->bytes = 0;
    while (fold_next(&items->fold, true, &at, &op, &item)) {
        items_push(items, item);
    }
}

/* ---- calls ---- */

void work_add(struct work *w, struct list_call *call)
{
    call_enter(&w->op, &w->calls, call);
    if (w->lane != LANE_READ && call->item_count > 0) {
        work_keep_items(w, call);
    }
    for (size_t i = 0; i < call->item_count; i++) {
        w->call_bytes += entry_bytes(call->items[i].len);
    }
}

/* What was written beside a list that has moved meanwhile does not count. A single item is written
 * by CAS, which says so itself. */
static bool is_in_doubt(const struct work *w)
{
    const struct list *list = w->op.list;
    return list_migrates(list) && dialect_of(list->policy)->encode == NULL;
}

void work_finish_first(struct engine *e, struct work *w, enum list_status status)
{
    struct list_call *call = TAILQ_FIRST(&w->calls);
    TAILQ_REMOVE(&w->calls, call, link);
    if (is_in_doubt(w)) {
        call->status = status;
        TAILQ_INSERT_TAIL(&w->written, call, link);
    } else {
        call_finish(e, w->op.list, call, status);
    }
}

void work_finish(struct engine *e, struct work *w)
{
    while (!TAILQ_EMPTY(&w->calls)) {
        work_finish_first(e, w, LIST_OK);
    }
}

static void requeue(struct engine *e, struct work *w, struct call_queue *calls, bool in_doubt)
{
    struct list_call *call;
    TAILQ_FOREACH(call, calls, link)
    {
        call->in_doubt = call->in_doubt || in_doubt;
    }
    migrate_requeue(e, w, calls);
}

void work_fail(struct engine *e, struct work *w, const char *text)
{
    if (w->move.moved) {
        requeue(e, w, &w->calls, w->wrote_any);
    } else {
        calls_fail(e, w->op.list, &w->calls, text);
    }
}

void work_note_error(struct work *w, const struct op_event *event)
{
    w->failed = true;
    if (event->status == BE_TOO_LARGE || event->status == BE_NO_MEMORY) {
        snprintf(w->error, sizeof w->error,
                 "backend has no room for this list in one item, nothing done");
    } else {
        op_error_text(event, w->error);
    }
}

void work_note_unknown(struct work *w)
{
    static const char unknown[] = ", outcome unknown";
    char *claim = strstr(w->error, ", nothing done");
    if (claim != NULL) {
        *claim = '\0';
    }
    size_t len = strlen(w->error), most = sizeof w->error - sizeof unknown;
    if (strstr(w->error, "outcome unknown") == NULL) {
        len = len < most ? len : most;
        memcpy(w->error + len, unknown, sizeof unknown);
    }
}

void work_note_text(struct work *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(w->error, sizeof w->error, format, args);
    va_end(args);
    w->failed = true;
}

bool work_written(struct engine *e, struct work *w, const struct op_event *event)
{
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND ||
        event->status == BE_NOT_STORED) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    if (event->status != BE_STORED) {
        work_note_error(w, event);
    }
    return true;
}

uint64_t work_backoff_us(struct engine *e, const struct work *w)
{
    return 1 + rng_below(e->rng, BACKOFF_US << u64_least(w->tries + w->conflicts, 8));
}

/* ---- parts ---- */

struct part *work_add_part(struct work *w, enum part_role role, uint32_t number)
{
    if (w->part_count == w->part_cap) {
        w->part_cap = w->part_cap == 0 ? 4 : w->part_cap * 2;
        w->parts = realloc(w->parts, w->part_cap * sizeof *w->parts);
        CHECK(w->parts != NULL);
    }
    struct part *part = &w->parts[w->part_count++];
    *part = (struct part){.role = role, .number = number, .ttl_s = -1};
    return part;
}

void work_forget_parts(struct work *w)
{
    for (size_t i = 0; i < w->part_count; i++) {
        part_forget(&w->parts[i]);
    }
    w->part_count = 0;
    w->read_bytes = 0;
    w->next_part = w->first_part = 0;
    items_reset(&w->items);
}

void work_forget_texts(struct work *w)
{
    for (size_t i = 0; i < w->text_count; i++) {
        block_unref(&w->texts[i]);
    }
    free(w->texts);
    w->texts = NULL;
    w->text_count = 0;
}

static enum be_verb verb_for(const struct part *part)
{
    return part->check || part->bare ? BE_SIZE : BE_GET;
}

static void ask_for_parts(struct engine *e, struct work *w)
{
    while (!w->failed && w->next_part < w->part_count && w->op.due < PARTS_INFLIGHT_MAX) {
        size_t i = (w->next_part++ + w->first_part) % w->part_count;
        struct part *part = &w->parts[i];
        if (part->state == PART_UNREAD || part->check) {
            metric_inc(e->metrics, METRIC_list_part_reads);
            part_send(e, &w->op, part, verb_for(part), NULL, i);
        }
    }
}

/* A record that the list has moved holds what stood there before. */
static void unwrap(struct work *w, struct part *part)
{
    struct record record;
    if (part->role == PART_KEY && list_migrates(w->op.list) && part->state == PART_THERE &&
        record_parse(part->value, &record)) {
        w->move.met_record = true;
        part->value = record.before;
    }
}

/* A part that is not what was read is to be read again. */
static void check_part(struct work *w, struct part *part, const struct op_event *event)
{
    bool same = part->state == PART_THERE
                    ? event->status == BE_HIT && event->reply->cas == part->cas
                    : event->status == BE_MISS;
    part->check = false;
    if (!same) {
        part_forget(part);
        bool last = part == &w->parts[w->part_count - 1];
        w->changed_older = w->changed_older || !last;
        w->changed_last = w->changed_last || last;
    }
}

bool work_is_asked(const struct work *w, enum list_verb verb)
{
    const struct list_call *call = TAILQ_FIRST(&w->calls);
    return call != NULL && call->verb == verb;
}

/* Does it do without what the list holds? A list that is too large to be read can be dropped. */
static bool is_drop(const struct work *w)
{
    return work_is_asked(w, LIST_DROP);
}

static const char too_large[] = "list needs more than fold_memory_bytes to be read";

/* What was read is kept until the work is done: up to a limit. */
static void keep_part(struct work *w, struct part *part)
{
    w->read_bytes += part->value.len;
    if (w->read_bytes <= w->op.list->policy->fold_memory_bytes) {
        return;
    }
    if (!is_drop(w)) {
        work_note_text(w, "%s", too_large);
    } else if (part->role != PART_KEY) {
        block_unref(&part->block);
        part->value = SLICE_NONE;
    }
}

static void take_part(struct engine *e, struct work *w, const struct op_event *event)
{
    struct part *part = &w->parts[event->tag];
    struct list *list = w->op.list;
    if (event->reply->caps != NULL) {
        list->item_size_max = event->reply->caps->item_size_max;
        if (event->tag == 0) {
            list->head_server = event->reply->caps->server_name;
        }
    }
    bool answered = event->status == BE_HIT || event->status == BE_MISS;
    if (answered && part->check) {
        check_part(w, part, event);
    } else if (answered) {
        part_take(part, event->reply);
        unwrap(w, part);
        keep_part(w, part);
    } else if (event->status == BE_LOST && w->get_tries < GET_TRIES_MAX) {
        w->get_tries++;
        part_send(e, &w->op, part, verb_for(part), NULL, event->tag);
    } else {
        w->failed = true;
        snprintf(w->error, sizeof w->error, "%s",
                 event->text != NULL ? event->text : "backend refused to read the list");
    }
}

enum progress work_gather(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->gathering;
    CO_BEGIN(co);
    w->get_tries = 0;
    ask_for_parts(e, w);
    while (w->op.due > 0) {
        CO_AWAIT(co, "reading the list's items");
        take_part(e, w, event);
        ask_for_parts(e, w);
    }
    CO_END(co);
}

static enum look look_at_parts(struct engine *e, struct work *w)
{
    const struct list_policy *policy = w->op.list->policy;
    items_reset(&w->items);
    /* Of sublists only those that the index names: their look sees to it. */
    if (policy->dialect != DIALECT_SUBLISTS && !foreign_refuse_parts(e, w, 0, w->part_count)) {
        return LOOK_FAILED;
    }
    enum look look = dialect_of(policy)->look(e, w);
    if (look == LOOK_DONE && list_migrates(w->op.list) && !w->move.completing && migrate_left(w)) {
        w->failed = w->move.moved = true;
        return LOOK_FAILED;
    }
    if (!is_drop(w) && fold_bytes(&w->items.fold) > policy->fold_memory_bytes) {
        work_note_text(w, "%s", too_large);
        return LOOK_FAILED;
    }
    return look;
}

static void note_extent(struct work *w)
{
    struct list *list = w->op.list;
    w->stored_bytes = 0;
    for (size_t i = 0; i < w->part_count; i++) {
        w->stored_bytes += w->parts[i].value.len;
        if (!w->parts[i].foreign && !w->parts[i].bare) {
            foreign_note_known(list, &w->parts[i]);
        }
    }
    list->extent = (struct list_extent){.bytes = w->stored_bytes, .items = w->items.count};
    list_note_size(list, w->stored_bytes);
}

enum progress work_look(struct engine *e, struct work *w, const struct op_event *event)
{
    struct co *co = &w->looking;
    enum look look;
    CO_BEGIN(co);
    w->failed = w->move.met_record = w->move.moved = false;
    w->look_tries = 0;
    do {
        if (w->look_tries > LOOKS_AT_ONCE) {
            CO_SLEEP(&w->op, co, "waiting until others have written",
                     e->now.mono_us + 1 + rng_below(e->rng, BACKOFF_US << w->look_tries / 2));
        }
        work_forget_parts(w);
        dialect_of(w->op.list->policy)->parts(w);
        do {
            CO_CALL(co, work_gather(e, w, event));
            look = w->failed ? LOOK_FAILED : look_at_parts(e, w);
        } while (look == LOOK_MORE);
    } while (look == LOOK_AGAIN && ++w->look_tries < LOOK_TRIES_MAX);
    if (look == LOOK_AGAIN) {
        metric_inc(e->metrics, METRIC_list_busy);
        work_note_text(w, "busy: the list's items change faster than they can be read");
    } else if (look == LOOK_DONE) {
        note_extent(w);
    }
    CO_END(co);
}

bool work_any_there(const struct work *w)
{
    for (size_t i = 0; i < w->part_count; i++) {
        if (w->parts[i].state == PART_THERE) {
            return true;
        }
    }
    return false;
}

uint64_t work_version(const struct work *w, bool with_key)
{
    uint64_t version = 0;
    if (w->part_count == 1) {
        return w->parts[0].state == PART_THERE ? w->parts[0].cas : 0;
    }
    for (size_t i = 0; i < w->part_count; i++) {
        uint64_t cas = w->parts[i].state == PART_THERE ? w->parts[i].cas : 0;
        if (with_key || w->parts[i].role != PART_KEY) {
            version = text_hash(slice_make((const char *)&cas, sizeof cas), version);
        }
    }
    return version;
}

/* ---- appending ---- */

/* A missing item was answered NOT_STORED, or one without room for more. */
static void write_whole(struct engine *e, struct work *w)
{
    struct append *a = &w->append;
    struct slice old = a->target.value, more = block_text(a->value);
    struct block *value = block_new(old.len + more.len);
    bool before = a->verb == BE_PREPEND;
    block_append(&value, before ? more.p : old.p, before ? more.len : old.len);
    block_append(&value, before ? old.p : more.p, before ? old.len : more.len);
    part_write(e, &w->op, &a->target, value, TAG_APPENDED);
    block_unref(&value);
}

static bool append_settled(struct work *w, const struct op_event *event)
{
    struct append *a = &w->append;
    a->status = event->status;
    switch (event->status) {
    case BE_STORED:
        return true;
    case BE_TOO_LARGE:
    case BE_NO_MEMORY:
        a->status = BE_TOO_LARGE;
        return true;
    case BE_NOT_STORED:
    case BE_EXISTS:
    case BE_NOT_FOUND:
        return false;
    default:
        work_note_error(w, event);
        return true;
    }
}

static void look_at_target(struct engine *e, struct work *w)
{
    metric_inc(e->metrics, METRIC_list_part_reads);
    part_send(e, &w->op, &w->append.target, BE_GET, NULL, TAG_APPENDED);
}

/* The reply to that. False: it could not be read, or is not the list's. */
static bool append_looked(struct engine *e, struct work *w, const struct op_event *event)
{
    struct append *a = &w->append;
    if (event->status != BE_HIT && event->status != BE_MISS) {
        work_note_text(w, "%s",
                       event->text != NULL ? event->text : "backend refused to read the list");
        a->status = event->status;
        return false;
    }
    part_take(&a->target, event->reply);
    if (!foreign_refuse(e, w, &a->target)) {
        a->status = BE_REFUSED;
        return false;
    }
    foreign_note_known(w->op.list, &a->target);
    return true;
}

/* Nothing is there, and nothing is to be made. */
static bool append_misses(struct append *a)
{
    bool misses = a->target.state == PART_MISSING && (a->create == NULL || a->only_there);
    a->status = misses ? BE_MISS : a->status;
    return misses;
}

enum progress work_append(struct engine *e, struct work *w, const struct op_event *event)
{
    struct append *a = &w->append;
    struct co *co = &a->co;
    CO_BEGIN(co);
    w->failed = false;
    for (a->tries = 0; a->tries < APPEND_TRIES_MAX; a->tries++) {
        if (foreign_knows(w->op.list, &a->target)) {
            metric_inc(e->metrics, METRIC_list_appends);
            part_send(e, &w->op, &a->target, a->verb, a->value, TAG_APPENDED);
            CO_AWAIT(co, "appending");
            if (append_settled(w, event)) {
                CO_RETURN(co);
            }
        }
        look_at_target(e, w);
        CO_AWAIT(co, "looking at the item: it is not known, or the append was not stored");
        if (!append_looked(e, w, event) || append_misses(a)) {
            CO_RETURN(co);
        }
        if (a->target.state == PART_MISSING) {
            part_write(e, &w->op, &a->target, a->create, TAG_APPENDED);
        } else if (a->tries > 0) {
            write_whole(e, w);
        } else {
            continue; /* it was created in between, or is known now */
        }
        CO_AWAIT(co, "creating the item, or writing it whole");
        if (append_settled(w, event)) {
            CO_RETURN(co);
        }
    }
    metric_inc(e->metrics, METRIC_list_busy);
    work_note_text(w, "busy, nothing done: other writers were faster each time");
    CO_END(co);
}

static void append_fini(struct append *a)
{
    part_forget(&a->target);
    block_unref(&a->value);
    block_unref(&a->create);
}

/* ---- the operation ---- */

static void finish_written(struct engine *e, struct work *w)
{
    struct list_call *call;
    if (w->move.moved) {
        requeue(e, w, &w->written, true);
    }
    while ((call = TAILQ_FIRST(&w->written)) != NULL) {
        TAILQ_REMOVE(&w->written, call, link);
        if (w->failed) {
            work_note_unknown(w);
            call_fail(e, w->op.list, call, "%s", w->error);
        } else {
            call_finish(e, w->op.list, call, call->status);
        }
    }
}

/* May it have written beside a list that has moved meanwhile? */
static bool has_written(const struct work *w)
{
    return is_in_doubt(w) && w->lane != LANE_READ && w->run != migrate_resolve &&
           w->run != migrate_convert;
}

static enum progress work_step_all(struct engine *e, struct op *op, const struct op_event *event)
{
    struct work *w = (struct work *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    CO_CALL(co, w->run(e, w, event));
    CHECK(TAILQ_EMPTY(&w->calls));
    if (has_written(w)) {
        CO_CALL(co, migrate_verify(e, w, event));
        finish_written(e, w);
        if (w->move.moved && !w->move.met_record) {
            CO_CALL(co, migrate_clean(e, w, event));
        }
    }
    CO_END(co);
}

static void work_fini(struct engine *e, struct op *op)
{
    struct work *w = (struct work *)op;
    (void)e;
    work_free_ghosts(w);
    arena_fini(&w->kept);
    work_forget_parts(w);
    work_forget_texts(w);
    fold_fini(&w->items.fold);
    append_fini(&w->append);
    part_forget(&w->sublists.not_named);
    part_forget(&w->move.control);
    fold_fini(&w->move.imported);
    block_unref(&w->move.head);
    free(w->items.at);
    free(w->parts);
}

struct work *work_create(struct engine *e, struct list *list, enum lane lane, work_step *run)
{
    struct work *w = op_create(e, list, sizeof *w, work_step_all, work_fini);
    w->lane = lane;
    w->run = run;
    w->op.late = work_late;
    arena_init(&w->kept);
    TAILQ_INIT(&w->calls);
    TAILQ_INIT(&w->written);
    fold_init(&w->move.imported);
    fold_init(&w->items.fold);
    if (lane == LANE_READ) {
        list->reader = &w->op;
    } else {
        list->writer = &w->op;
    }
    return w;
}
