/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/compact/write_run.h"

#include "list/compact/compact.h"
#include "list/core/engine_state.h"

void writer_init(struct engine *e, struct op_compact *c, uint64_t bytes_max)
{
    struct run_writer *w = &c->writer;
    uint64_t limit = list_sublist_limit(c->op.list);
    writer_fini(c);
    *w = (struct run_writer){.limit_bytes = limit};
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

static void emit_announcement(struct engine *e, struct op_compact *c)
{
    struct block *b = block_new(64);
    announcement_append(&b, &c->writer.announcement);
    emit_append(e, &c->op, b, TAG_ANNOUNCE);
    c->op.list->appended_bytes += b->used;
    block_unref(&b);
}

/* The same by CAS of the head as it was read. */
static void emit_announcing_cas(struct engine *e, struct op_compact *c)
{
    struct block *b = block_new(c->head->value.len + 64);
    block_append(&b, c->head->value.p, c->head->value.len);
    announcement_append(&b, &c->writer.announcement);
    emit_cas(e, &c->op, c->head, b, TAG_ANNOUNCE);
    block_unref(&b);
}

static void take_announced(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    bool gone = event->status == BE_NOT_STORED || event->status == BE_EXISTS ||
                event->status == BE_NOT_FOUND;
    if (event->tag == TAG_HEAD) {
        (void)compact_take_head(e, c, event);
    } else if (event->status == BE_STORED) {
        c->writer.announced = true;
    } else {
        c->writer.refused = true;
        c->result = gone ? STEP_CONFLICT : STEP_FAILED;
        if (!gone) {
            op_error_text(event, c->error);
        }
    }
}

enum progress announce_step(struct engine *e, struct op_compact *c, const struct op_event *event,
                            const char *name)
{
    struct co *co = &c->op.co;
    struct op *op = &c->op;

    CO_BEGIN(co);
    emit_announcement(e, c);
    emit_get(e, op, TAG_HEAD);
    while (op->due > 0) {
        CO_AWAIT(co, name);
        take_announced(e, c, event);
    }
    if (c->writer.refused && c->result == STEP_CONFLICT && c->head != NULL) {
        /* There is a head, but it takes no appends: extstore has it on disk, or there is no memory
         * for a longer one in this moment. */
        c->writer.refused = false;
        c->result = STEP_FAILED;
        emit_announcing_cas(e, c);
        CO_AWAIT(co, name);
        take_announced(e, c, event);
        if (c->writer.announced) {
            /* Not before: a CAS that keeps an expiry is sent when the server's clock is known. */
            emit_get(e, op, TAG_HEAD);
            CO_AWAIT(co, name);
            take_announced(e, c, event);
        }
    }
    if (c->writer.refused) {
        head_unref(&c->head);
    }
    CO_END(co);
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
    if (w->sublist != NULL && w->sublist->used + entry_bytes(item.len) > w->limit_bytes) {
        writer_flush(e, c);
    }
    if (w->sublist == NULL) {
        w->sublist = sublist_begin(w->limit_bytes);
    }
    entry_append(&w->sublist, (enum entry_op)op, item);
    w->sublist_entries++;
    w->run.items += op != ENTRY_DEL;
}

uint64_t writer_bytes(const struct op_compact *c)
{
    const struct run_writer *w = &c->writer;
    if (w->run.range.count > 0 || w->refused) {
        return UINT64_MAX;
    }
    return w->sublist == NULL ? 0 : w->sublist->used;
}

struct slice writer_entries(const struct op_compact *c)
{
    const struct block *s = c->writer.sublist;
    return s == NULL ? SLICE_NONE
                     : slice_make(s->data + SUBLIST_HEADER_BYTES, s->used - SUBLIST_HEADER_BYTES);
}

void writer_take_reply(struct op_compact *c, const struct op_event *event)
{
    if (event == NULL || event->tag != TAG_SUBLIST || event->status == BE_STORED) {
        return;
    }
    /* NOT_STORED: the name is taken, so another proxy swept it: it is burnt, and no longer this
     * proxy's to delete. */
    if (event->status == BE_NOT_STORED) {
        c->writer.unknown = true; /* the call ends with "busy": the backend has made no error */
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
    emit_announcement(e, c);
}

enum progress undo_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    enum { WINDOW = 32 };
    struct run_writer *w = &c->writer;
    struct co *co = &c->op.co;

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
    /* What was last seen in the head's place may be no list: then the announcement is gone, too. */
    if (!w->unknown && c->op.list->has_head) {
        emit_withdrawal(e, c);
        CO_AWAIT(co, "withdrawing the announcement");
    }
    CO_END(co);
}
