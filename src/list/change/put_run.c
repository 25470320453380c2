/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "list/change/put_op.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

/* Is the list to be the one that was seen, but for the announcement? */
static bool is_watched(const struct op_put *p)
{
    return p->bound || p->call->condition == LIST_IF_VERSION;
}

/* From here on the list is to be as the head says that is written. */
static void watch(struct engine *e, struct op_put *p, struct block **value)
{
    (void)mark_append(value, e->rng, e->now.wall_s);
    block_unref(&p->left);
    p->left = block_ref(*value);
}

static bool refuses(const struct op_put *p)
{
    return p->op.list->policy->on_missing == ON_MISSING_REFUSE;
}

/* A missing list that is no empty one, and whose sublists stay on the server that they are written
 * to: a list that may move is announced, so that it does not leave them behind. */
static bool goes_unannounced(const struct op_put *p)
{
    return p->missing && refuses(p) && !p->op.list->moves;
}

/* A head that holds nothing but the announcement. Where a missing list is not an empty one, it says
 * that the list is missing. */
static void emit_announcing_head(struct engine *e, struct op_put *p)
{
    struct head_marks marks = {.absent = refuses(p)};
    /* An absent one stays as long as it is needed to find what is written. */
    struct life life =
        marks.absent ? (struct life){.kind = LIFE_SECONDS} : life_new(p->op.list->policy);
    struct block *value = block_new(96);
    head_append_header(&value, &marks, NULL, 0, NULL, 0);
    announcement_append(&value, &p->writer.announcement);
    if (is_watched(p)) {
        watch(e, p, &value);
    }
    emit_add_head_for(e, &p->op, &life, value, TAG_ANNOUNCE);
    block_unref(&value);
}

/* The head that was read, with the announcement as of now, in place of one that grows old. An
 * absent head may expire: one that names what must be found again does not. is_seen: what was read
 * is what the list is to be. */
static void emit_announcing_cas(struct engine *e, struct op_put *p, bool is_seen)
{
    struct layout layout;
    struct carry carry = {.own = &p->writer.announcement.range.name,
                          .now_s = e->now.wall_s,
                          .grace_s = p->op.list->policy->announcement_grace_s,
                          .keep_ops = true};
    layout_init(&layout, p->head);
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, p->head->log, &carry));
    p->writer.announcement.created_s = e->now.wall_s;
    announcement_append(&layout.log, &p->writer.announcement);
    block_unref(&p->value);
    p->value = layout_value(&layout);
    layout_fini(&layout);
    if (is_seen) {
        watch(e, p, &p->value);
    }
    struct life ever = life_given(0), kept = life_renewed(p->op.list->policy, p->head->ttl_s);
    kept.until_s = p->head->marks.sublists_until_s; /* those of the old content */
    emit_cas_for(e, &p->op, p->head, p->head->marks.absent ? &ever : &kept, p->value, TAG_ANNOUNCE);
}

static void take_announced(struct op_put *p, const struct op_event *event)
{
    p->writer.announced = event->status == BE_STORED;
    p->writer.conflict = write_was_refused(event->status);
    p->writer.no_memory = op_found_no_memory(event);
    if (!p->writer.announced && !p->writer.conflict) {
        op_error_text(event, p->error);
    }
}

/* Of what is written as a run, at most. */
static uint64_t long_bytes(const struct op_put *p)
{
    return put_copies(p) ? stream_bytes(&p->copy.stream) : p->item_bytes;
}

static bool wants_end(const struct op_put *p)
{
    if (p->call == NULL) {
        return false;
    }
    struct life life = put_life(p);
    return life_ends(&life);
}

/* A head may be missing where nothing is announced in one. */
static void take_end(struct op_put *p, const struct op_event *event)
{
    bool there = event->status == BE_HIT;
    if (event->status == BE_MISS && !p->unannounced) {
        p->lost = true;
    } else if (!there && event->status != BE_MISS) {
        p->writer.refused = true;
        op_error_text(event, p->error);
    } else if (p->call != NULL) {
        int64_t now_s = (int64_t)event->reply->number;
        struct life life = put_life(p);
        life.ttl_s = there ? event->reply->ttl_s : -1;
        int64_t end_s = life_end_s(&life, now_s);
        writer_live(&p->writer, now_s, end_s == 0 ? 0 : sublists_until_s(now_s, end_s));
    }
}

/* Sublists of a list that expires do so, too, behind its head: compact/life.c. */
static enum progress choose_end_step(struct engine *e, struct op_put *p,
                                     const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    if (wants_end(p)) {
        expiry_look(e, &p->op, PUT_TAG_CLOCK);
        CO_AWAIT(co, "reading the server's clock to write a put's sublists");
        take_end(p, event);
    }
    CO_END(co);
}

enum progress put_begin_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    writer_init(e, &p->writer, &p->op, long_bytes(p), p->error);
    block_unref(&p->left);
    p->at = 0;
    p->whole = false;
    p->unannounced = goes_unannounced(p);
    if (p->unannounced) {
        /* Nothing is sent. */
    } else if (p->head == NULL) {
        emit_announcing_head(e, p);
        CO_AWAIT(co, "making a head to announce in");
        take_announced(p, event);
        p->op.list->has_head = p->op.list->has_head || (p->writer.announced && !refuses(p));
    } else if (put_is_absent(p) || is_watched(p)) {
        emit_announcing_cas(e, p, is_watched(p));
        CO_AWAIT(co, "announcing a put in the head that was read");
        take_announced(p, event);
    } else {
        CO_CALL(co, announce_step(e, &p->writer, &p->head, event, "announcing a put"));
        p->lost = p->writer.announced && (!put_is_announced(p) || put_is_absent(p));
    }
    if (!put_may_write(p) && !p->writer.conflict) {
        metric_add(e->metrics, METRIC_list_out_of_memory, p->writer.no_memory);
        put_fail(e, p, p->error);
    }
    if (put_may_write(p) && !p->lost) {
        writer_make_index(e, &p->writer, long_bytes(p));
        CO_CALL(co, choose_end_step(e, p, event));
    }
    CO_END(co);
}

/* Puts some items into sublists. */
static void write_some(struct engine *e, struct op_put *p)
{
    struct entry entry;
    for (unsigned n = 0; n < WRITE_SLICE_ITEMS && p->op.due < WRITES_MAX; n++) {
        if (!fold_next_entry(&p->items, true, ENTRY_NEVER_OVER, &p->at, &entry)) {
            writer_flush(e, &p->writer);
            p->whole = true;
            return;
        }
        writer_put(e, &p->writer, &entry);
    }
}

static bool writing_over(const struct op_put *p)
{
    return p->whole || p->call == NULL || p->lost || writer_failed(&p->writer);
}

/* Has the run half the age at which others sweep it? */
static bool is_old(const struct engine *e, const struct op_put *p)
{
    int64_t age_s = e->now.wall_s - p->writer.announcement.created_s;
    int64_t grace_s = p->op.list->policy->announcement_grace_s;
    return age_s > 0 && age_s >= grace_s / 2;
}

void put_check_age(struct engine *e, struct op_put *p)
{
    if (p->is_long && p->unannounced && is_old(e, p)) {
        put_fail(e, p,
                 "nothing done: filling a missing list took longer than half of "
                 "announcement_grace_s");
    }
}

static void take_announced_again(struct engine *e, struct op_put *p, const struct op_event *event)
{
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND) {
        p->writer.announcement.created_s = 0; /* once more */
    } else if (event->status != BE_STORED) {
        op_error_text(event, p->error);
        put_fail(e, p, p->error);
    }
}

static enum progress announce_again_step(struct engine *e, struct op_put *p,
                                         const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    put_check_age(e, p);
    if (p->call == NULL) {
        CO_RETURN(co);
    }
    OP_BECOME_PUBLISHER(co, &p->op);
    emit_get(e, &p->op, TAG_HEAD);
    CO_AWAIT(co, "reading head to announce again");
    head_unref(&p->head);
    (void)op_take_head(e, &p->op, event, &p->head, p->error);
    p->lost = event->status == BE_MISS || (p->head != NULL && !put_is_announced(p));
    if (p->head != NULL && !p->lost) {
        emit_announcing_cas(e, p, put_is_left(p));
        CO_AWAIT(co, "announcing again");
        take_announced_again(e, p, event);
    } else if (!p->lost) {
        put_fail(e, p, p->error);
    }
    op_stop_publishing(e, &p->op);
    CO_END(co);
}

enum progress put_write_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    while (!writing_over(p)) {
        if (is_old(e, p) && p->op.due == 0) {
            CO_CALL(co, announce_again_step(e, p, event));
            continue;
        }
        if (!is_old(e, p)) {
            write_some(e, p);
        }
        if (p->op.due >= WRITES_MAX || is_old(e, p)) {
            CO_AWAIT(co, "writing sublists");
            writer_take_reply(&p->writer, event);
        } else if (!p->whole) {
            CO_PAUSE(co, "writing sublists", PROGRESS_YIELD);
            writer_take_reply(&p->writer, event);
        }
    }
    while (p->op.due > 0) {
        CO_AWAIT(co, "writing the last sublists");
        writer_take_reply(&p->writer, event);
    }
    CO_END(co);
}
