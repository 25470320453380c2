/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Appending to one cell of a list: creates a cell that is missing, and writes a cell whole that
 * takes no append.
 */
#include "dialect/shared/dialect.h"
#include "dialect/shared/foreign.h"

/* An append that finds its item missing creates it; another client may create or delete it in
 * between. */
#define APPEND_TRIES_MAX 8

/* Not the tag of a cell, which is its position. */
#define TAG_APPENDED ((uint64_t)1 << 40)

/* ---- the delimiter that an append begins with ----
 *
 * Clients by hand may leave out the delimiter behind the last item:
 *
 *     user-1234,user-222          what they have written
 *     user-1234,user-222user-5,   what an append of "user-5," would make of it
 *
 * An APPEND does not show what it is made to, so it brings a delimiter of its own in front. Two
 * delimiters in a row mean nothing (text.h). With compatible = strict it brings none where the text
 * ended with one when this worker saw it last.
 */

static bool strict(const struct list *list)
{
    return list->policy->compatible == COMPATIBLE_STRICT;
}

bool closing_is_open(const struct list *list, struct slice text)
{
    char reserved[RESERVED_MAX];
    const struct dialect *dialect = dialect_of(list);
    char last = text.len == 0 ? (char)list->policy->delimiter : text.p[text.len - 1];
    size_t count = dialect->reserved == NULL ? 0 : dialect->reserved(list->policy, reserved);
    return dialect->delimited && last != (char)list->policy->delimiter &&
           (count == 0 || memchr(reserved, last, count) == NULL);
}

void closing_note_read(struct list *list, const struct cell *cell)
{
    struct known *known = known_of(list);
    known->open &= ~ROLE(cell->role);
    if (cell->state == CELL_THERE && closing_is_open(list, cell->value)) {
        known->open |= ROLE(cell->role);
    }
}

/* Makes what is sent to append that text to the cell: the caller has a reference to it. */
static struct block *append_text(const struct list *list, enum cell_role role, struct block *text)
{
    bool closed = strict(list) && (known_of(list)->open & ROLE(role)) == 0;
    if (!dialect_of(list)->delimited || closed) {
        return block_ref(text);
    }
    char delimiter = (char)list->policy->delimiter;
    struct block *more = block_new(text->used + 1);
    block_append(&more, &delimiter, 1);
    block_append(&more, text->data, text->used);
    return more;
}

/* ---- appending ---- */

/* A missing item was answered NOT_STORED, or one without room for more. */
static void write_whole(struct engine *e, struct work *w)
{
    struct append *a = &w->append;
    struct slice old = a->target.value, more = block_text(a->value);
    struct block *value = block_new(old.len + more.len + 1);
    bool before = a->verb == BE_PREPEND;
    char delimiter = (char)w->op.list->policy->delimiter;
    block_append(&value, before ? more.p : old.p, before ? more.len : old.len);
    if (!before && closing_is_open(w->op.list, old)) {
        block_append(&value, &delimiter, 1);
    }
    block_append(&value, before ? old.p : more.p, before ? old.len : more.len);
    cell_write(e, &w->op, &a->target, value, TAG_APPENDED);
    block_unref(&value);
}

static bool append_settled(struct work *w, const struct op_event *event)
{
    struct append *a = &w->append;
    a->status = event->status;
    switch (event->status) {
    case BE_STORED:
        if (a->verb == BE_APPEND) {
            known_of(w->op.list)->open &= ~ROLE(a->target.role);
        }
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

static void send_append(struct engine *e, struct work *w)
{
    struct append *a = &w->append;
    bool before = a->verb == BE_PREPEND;
    struct block *value =
        before ? block_ref(a->value) : append_text(w->op.list, a->target.role, a->value);
    metric_inc(e->metrics, METRIC_list_appends);
    cell_append_blind(e, &w->op, &a->target, a->verb, value, TAG_APPENDED);
    block_unref(&value);
}

static void look_at_target(struct engine *e, struct work *w)
{
    metric_inc(e->metrics, METRIC_list_part_reads);
    cell_send(e, &w->op, &w->append.target, BE_GET, NULL, TAG_APPENDED);
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
    cell_take(&a->target, event->reply);
    w->met_record = false;
    work_unwrap(w, &a->target);
    if (w->met_record) {
        w->failed = w->moved = true;
        return false;
    }
    if (!foreign_refuse(e, w, &a->target)) {
        a->status = BE_REFUSED;
        return false;
    }
    foreign_note_known(w->op.list, &a->target);
    closing_note_read(w->op.list, &a->target);
    return true;
}

/* Nothing is there, and nothing is to be made. */
static bool append_misses(struct append *a)
{
    bool misses = a->target.state == CELL_MISSING && (a->create == NULL || a->only_there);
    a->status = misses ? BE_MISS : a->status;
    return misses;
}

enum progress work_append(struct engine *e, struct work *w, const struct op_event *event)
{
    struct append *a = &w->append;
    struct co *co = &w->op.co;
    CO_BEGIN(co);
    w->failed = false;
    for (a->tries = 0; a->tries < APPEND_TRIES_MAX; a->tries++) {
        if (foreign_knows(w->op.list, &a->target)) {
            send_append(e, w);
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
        if (a->target.state == CELL_MISSING) {
            cell_write(e, &w->op, &a->target, a->create, TAG_APPENDED);
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
    work_note_busy(e, w);
    CO_END(co);
}

void append_fini(struct append *a)
{
    cell_forget(&a->target);
    block_unref(&a->value);
    block_unref(&a->create);
}
