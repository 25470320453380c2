/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/tx/tx_op.h"

#include "list/core/engine_state.h"

/* Tags: the number of the part, and what was asked of it. */
enum { ASKED_WRITE, ASKED_READ, ASKED_STATE, ASKED_KINDS };

static uint64_t tag_of(const struct tx_part *part, unsigned asked)
{
    return (uint64_t)(part - part->tx->parts) * ASKED_KINDS + asked;
}

bool tx_was_refused(const struct tx_part *part)
{
    return write_was_refused(part->wrote);
}

void tx_send_write(struct engine *e, struct tx_part *part, struct block *value)
{
    struct op *op = &part->tx->op;
    uint64_t tag = tag_of(part, ASKED_WRITE);
    part->rewrites = tx_was_refused(part) && part->head != NULL;
    if (part->rewrites) {
        struct slice entries = slice_make(value->data, value->used);
        emit_cas_appending(e, op, part->list, part->head, entries, tag);
    } else {
        emit_append_to(e, op, part->list, value, tag);
    }
}

void tx_send_new(struct engine *e, struct tx_part *part, struct block *value)
{
    struct life life = life_new(part->list->policy);
    emit_add_head_to(e, &part->tx->op, part->list, &life, value, tag_of(part, ASKED_WRITE));
}

void tx_send_read(struct engine *e, struct tx_part *part)
{
    emit_get_raw_of(e, &part->tx->op, part->list, tag_of(part, ASKED_READ));
}

void tx_send_read_state(struct engine *e, struct tx_part *part)
{
    emit_get_unread_of(e, &part->tx->op, part->list, tag_of(part, ASKED_STATE));
}

void tx_send_decision(struct engine *e, struct tx_part *part, enum decision decision)
{
    struct block *value = block_new(64);
    decision_append(&value, &part->tx->name, decision);
    tx_send_write(e, part, value);
    block_unref(&value);
}

static void take_write(struct op_tx *o, struct tx_part *part, const struct op_event *event)
{
    part->wrote = event->status;
    if (event->status != BE_STORED) {
        op_error_text(event, o->error);
    }
}

static void take_read(struct engine *e, struct op_tx *o, struct tx_part *part,
                      const struct op_event *event)
{
    part->got = op_take_head_of(e, part->list, event, &part->head, o->error);
    part->lost = part->got == GOT_ERROR && op_head_has_gone(event);
    part->is_missing = part->got == GOT_NOTHING || part->got == GOT_ABSENT;
    part->ends = part->head != NULL && part->head->ttl_s >= 0;
    if (part->head != NULL) {
        part->state = head_intent_state(part->head, &o->name);
    }
}

/* Where the write in front of it was refused, the next one is a CAS, which needs the head. */
static void take_state(struct engine *e, struct op_tx *o, struct tx_part *part,
                       const struct op_event *event)
{
    struct slice key = list_key(part->list);
    struct op_event read = *event;
    struct head *head = NULL;
    bool is_hit = event->status == BE_HIT && event->reply->flags == 0;
    if (is_hit && !tx_was_refused(part) &&
        head_read_state(event->reply, key, &o->name, &part->state) == HEAD_OK) {
        list_note_seen(part->list, event->reply->value.len, event->appended_bytes);
        part->got = GOT_HEAD;
        part->is_late = part->state == INTENT_GONE && head_commit_came_late(event->reply, &o->name);
    } else {
        read.head = is_hit && head_read(event->reply, key, &head) == HEAD_OK ? head : NULL;
        take_read(e, o, part, &read);
        head_unref(&head);
    }
}

static void take(struct engine *e, struct op_tx *o, const struct op_event *event)
{
    struct tx_part *part = &o->parts[event->tag / ASKED_KINDS];
    unsigned asked = event->tag % ASKED_KINDS;
    if (asked == ASKED_WRITE) {
        take_write(o, part, event);
        return;
    }
    head_unref(&part->head);
    part->state = INTENT_GONE;
    part->lost = part->is_late = false;
    (asked == ASKED_READ ? take_read : take_state)(e, o, part, event);
}

enum progress tx_await_step(struct engine *e, struct op_tx *o, const struct op_event *event,
                            const char *waiting)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    while (o->op.due > 0) {
        CO_AWAIT(co, waiting);
        if (event != NULL) {
            take(e, o, event);
        }
    }
    CO_END(co);
}
