/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing a run: its sublists under a fresh name that was announced in the log before (storage
 * rules 1 and 2), each by ADD, so that a name that was swept in the meantime (burnt) refuses
 * instead of coming to life.
 */
#include "list/engine_state.h"
#include "list/op_compact.h"

void writer_init(struct engine *e, struct op_compact *c, uint64_t bytes_max)
{
    struct run_writer *w = &c->writer;
    uint64_t limit = list_sublist_limit(c->op.list);
    writer_fini(c);
    *w = (struct run_writer){0};
    name_fresh(&w->announcement.range.name, e->rng);
    /* An entry that does not fit closes a sublist: any two neighbours hold more than one limit
     * together. */
    uint64_t most = 2 * bytes_max / (limit - SUBLIST_HEADER_BYTES) + 2;
    w->announcement.range.count = most > SUBLISTS_MAX ? SUBLISTS_MAX : (uint32_t)most;
    w->announcement.created_s = e->now.wall_s;
    w->run.range.name = w->announcement.range.name;
}

void writer_fini(struct op_compact *c)
{
    block_unref(&c->writer.sublist);
}

struct block *writer_announcement(const struct op_compact *c)
{
    struct block *b = block_new(64);
    announcement_append(&b, &c->writer.announcement);
    return b;
}

void writer_flush(struct engine *e, struct op_compact *c)
{
    struct run_writer *w = &c->writer;
    if (w->sublist == NULL) {
        return;
    }
    if (w->run.range.count == w->announcement.range.count) {
        /* More than was announced would be beyond the reach of a sweep. */
        w->refused = true;
    } else {
        sublist_finish(w->sublist, w->sublist_entries);
        emit_add_sublist(e, &c->op, &w->run.range.name, w->run.range.count, w->sublist,
                         TAG_SUBLIST);
        w->run.bytes += w->sublist->used;
        w->run.range.count++;
    }
    block_unref(&w->sublist);
    w->sublist_entries = 0;
}

void writer_put(struct engine *e, struct op_compact *c, char op, struct slice item)
{
    struct run_writer *w = &c->writer;
    uint64_t limit = list_sublist_limit(c->op.list);
    if (w->sublist != NULL && w->sublist->used + entry_bytes(item.len) > limit) {
        writer_flush(e, c);
    }
    if (w->sublist == NULL) {
        w->sublist = sublist_begin(limit);
    }
    entry_append(&w->sublist, (enum entry_op)op, item);
    w->sublist_entries++;
    w->run.items += op != ENTRY_DEL;
}

void writer_take_reply(struct op_compact *c, const struct op_event *event)
{
    if (event == NULL || event->tag != TAG_SUBLIST || event->status == BE_STORED) {
        return;
    }
    /* NOT_STORED: the name is taken, so somebody swept it: it is burnt, and not ours to delete any
     * more. */
    if (event->status == BE_NOT_STORED) {
        c->writer.unknown = true; /* others are at it, which is "busy" and no error of the backend
                                   */
        return;
    }
    if (event->status == BE_LOST) {
        c->writer.unknown = true;
    } else {
        c->writer.refused = true;
    }
    op_error_text(event, c->error);
}

bool writer_failed(const struct op_compact *c)
{
    return c->writer.refused || c->writer.unknown;
}

/* Nothing of that name is stored: the announcement is taken back by an append, which no other
 * writer can refuse. */
static void emit_withdrawal(struct engine *e, struct op_compact *c)
{
    c->writer.announcement.range.count = 0;
    struct block *withdrawal = writer_announcement(c);
    emit_append(e, &c->op, withdrawal, TAG_ANNOUNCE);
    block_unref(&withdrawal);
}

enum progress undo_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    enum { WINDOW = 32 };
    struct run_writer *w = &c->writer;
    struct co *co = &c->innermost;

    CO_BEGIN(co);
    metric_inc(e->metrics, METRIC_list_giveups);
    c->garbage_number = 0;
    while (c->garbage_number < w->run.range.count || c->op.due > 0) {
        while (c->garbage_number < w->run.range.count && c->op.due < WINDOW) {
            emit_delete_sublist(e, &c->op, &w->run.range.name, c->garbage_number++, TAG_DELETE);
        }
        CO_AWAIT(co, "deleting own unpublished sublists");
        if (event->status != BE_DELETED && event->status != BE_NOT_FOUND) {
            w->unknown = true;
        }
    }
    if (!w->unknown) {
        emit_withdrawal(e, c);
        CO_AWAIT(co, "withdrawing the announcement");
    }
    CO_END(co);
}
