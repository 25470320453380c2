/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/tx/tx_op.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

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

static bool creates(const struct tx_part *part)
{
    return part->list->policy->on_missing == ON_MISSING_CREATE;
}

void tx_check_part(struct op_tx *o, const struct tx_part *part)
{
    if (part->got == GOT_ERROR) {
        tx_fail_undone(o, o->error);
    } else if (part->is_missing && !creates(part)) {
        o->state = TX_MISSING;
    }
}

struct intent tx_intent(const struct op_tx *o, const struct tx_part *part)
{
    struct intent intent = {.name = o->name,
                            .created_s = o->created_s,
                            .entries = slice_make(part->entries->data, part->entries->used)};
    intent.keys[intent.key_count++] = list_key(o->parts[o->primary].list);
    for (size_t i = 0; i < o->part_count; i++) {
        if (i != o->primary) {
            intent.keys[intent.key_count++] = list_key(o->parts[i].list);
        }
    }
    return intent;
}
