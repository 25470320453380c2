/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/tx/tx_op.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "list/core/engine_state.h"

void tx_fail(struct op_tx *o, enum tx_state state, const char *format, ...)
{
    char text[LIST_ERROR_MAX]; /* an argument may be o->error */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(o->error, text, sizeof text);
    o->state = state;
}

void tx_fail_undone(struct op_tx *o, const char *text)
{
    bool says_it = strstr(text, "nothing done") != NULL;
    tx_fail(o, TX_FAILED, says_it ? "%s" : "%s, nothing done", text);
}

void tx_count_memory(struct op_tx *o)
{
    size_t bytes = o->memory.bytes + o->plan.bytes + o->question.members.count;
    uint64_t elsewhere = o->gather.memory_bytes; /* counted where it is taken */
    for (size_t i = 0; i < o->part_count; i++) {
        const struct tx_part *part = &o->parts[i];
        bytes += part->asked_cap * (sizeof *part->asked + sizeof *part->wanted);
        elsewhere += part->entries->cap;
    }
    memory_count((int64_t)bytes - (int64_t)o->memory_bytes);
    o->memory_bytes = bytes;
    if (o->call != NULL) {
        session_charge(o->call, bytes + elsewhere);
    }
}

enum progress tx_ask_step(struct op_tx *o, const char *waiting)
{
    struct co *co = &o->op.co;
    CO_BEGIN(co);
    tx_count_memory(o);
    CO_CALL(co, question_step(&o->question, &o->op, waiting));
    tx_count_memory(o);
    if (o->gather.full) {
        tx_fail(o, TX_FAILED, "the items take more than fold_memory_bytes (%llu), nothing done",
                (unsigned long long)o->gather.limit_bytes);
    } else if (o->question.state == QUESTION_OLD) {
        o->state = TX_AGAIN; /* it was compacted away meanwhile */
    } else if (o->question.state != QUESTION_ANSWERED) {
        tx_fail_undone(o, question_error(&o->question));
    }
    CO_END(co);
}

void tx_forget_question(struct engine *e, struct op_tx *o)
{
    question_forget(e, &o->question);
    tx_count_memory(o);
}

/* ---- requests to the lists and their replies, which are noted in the parts ---- */

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

/* One that decides a list other than the primary may take the intent out: nothing but that list
 * needs to know. */
static void send_write(struct engine *e, struct tx_part *part, struct block *value, bool decides)
{
    struct op *op = &part->tx->op;
    uint64_t tag = tag_of(part, ASKED_WRITE);
    part->rewrites = tx_was_refused(part) && part->head != NULL;
    if (!part->rewrites) {
        emit_append_to(e, op, part->list, value, tag);
    } else if (decides && part != tx_primary(part->tx)) {
        emit_cas_deciding(e, op, part->list, part->head, value, tag);
    } else {
        emit_cas_appending(e, op, part->list, part->head, value, tag);
    }
}

void tx_send_write(struct engine *e, struct tx_part *part, struct block *value)
{
    send_write(e, part, value, false);
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
    send_write(e, part, value, true);
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
