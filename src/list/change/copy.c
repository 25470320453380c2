/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/copy.h"

#include <stdio.h>

#include "list/core/engine_state.h"

static void put_item(struct stream *s, const struct entry *entry)
{
    struct copy *c = s->arg;
    struct slice item = entry->bytes;
    const struct list_policy *to = s->op->list->policy;
    if (item.len > to->max_item_bytes) {
        snprintf(s->error, LIST_ERROR_MAX,
                 "lcopy: an item is longer than %u bytes (max_item_bytes), nothing done",
                 to->max_item_bytes);
        s->state = STREAM_REFUSED;
    } else if (to->delimiter >= 0 && memchr(item.p, to->delimiter, item.len) != NULL) {
        snprintf(
            s->error, LIST_ERROR_MAX,
            "lcopy: an item holds the delimiter of the list that it would be in, nothing done");
        s->state = STREAM_REFUSED;
    } else if (entry->op == ENTRY_TIMED && to->max_items != 0) {
        snprintf(s->error, LIST_ERROR_MAX,
                 "lcopy: an item has a time of its own, and the list that it would be in has "
                 "max_items, nothing done");
        s->state = STREAM_REFUSED;
    } else if (c->to_run) {
        writer_put(s->e, c->writer, entry);
    } else {
        fold_apply_entry(c->items, entry);
        fold_trim_often(c->items);
    }
}

static bool has_room(const struct stream *s)
{
    return s->op->due < WRITES_MAX;
}

static void take(struct stream *s, const struct op_event *event)
{
    const struct copy *c = s->arg;
    writer_take_reply(c->writer, event);
}

static bool failed(const struct stream *s)
{
    const struct copy *c = s->arg;
    return writer_failed(c->writer);
}

static enum progress make_room(struct engine *e, struct stream *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    (void)e;
    CO_BEGIN(co);
    while (!has_room(s)) {
        CO_AWAIT(co, "writing copied sublists");
        if (!stream_take(s, event)) {
            take(s, event);
        }
    }
    CO_END(co);
}

static const struct stream_sink sink = {
    .put = put_item, .has_room = has_room, .make_room = make_room, .take = take, .failed = failed};

void copy_init(struct engine *e, struct copy *c, struct op *op, const struct list_call *call,
               struct run_writer *writer, struct fold *items, char error[LIST_ERROR_MAX])
{
    *c = (struct copy){.writer = writer, .items = items};
    stream_init(e, &c->stream, op, call->source, call->source_policy, &sink, c, error);
}

void copy_fini(struct copy *c)
{
    stream_fini(&c->stream);
}

enum progress copy_stream_step(struct engine *e, struct copy *c, const struct op_event *event)
{
    struct stream *s = &c->stream;
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    CO_CALL(co, stream_step(e, s, event));
    if (s->state == STREAM_OK && !s->over && !failed(s) && c->to_run) {
        writer_flush(e, c->writer);
    }
    while (s->op->due > 0) {
        CO_AWAIT(co, "writing the last copied sublists");
        if (!stream_take(s, event)) {
            take(s, event);
        }
    }
    if (s->state == STREAM_OK && !s->over && !failed(s) && s->count == 0 &&
        s->from->policy->on_missing == ON_MISSING_CREATE) {
        s->state = STREAM_MISSING;
    }
    CO_END(co);
}
