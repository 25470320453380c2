/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/joint/read.h"

#include <stdio.h>

#include "list/core/answer.h"
#include "list/core/engine_state.h"
#include "list/core/plugin.h"
#include "list/joint/combine.h"

struct op_joint_read {
    struct op op;
    struct list_call *call; /* NULL: it was answered, or its time is over */
    struct joint joint;
    struct combine combine;
    size_t at; /* lgetx: the list that is being read */
    char error[LIST_ERROR_MAX];
};

const char *joint_read_refusal(const struct engine *e, const struct list_call *call,
                               char text[LIST_ERROR_MAX])
{
    const char *word = list_verb_word(call->verb);
    if (list_verb_has(call->verb, LIST_STORES) && call->policy->dialect != DIALECT_NATIVE) {
        snprintf(text, LIST_ERROR_MAX, "%s: the list that is made must be native", word);
        return text;
    }
    for (size_t i = 0; i < call->list_count; i++) {
        const struct call_list *list = &call->lists[i];
        const char *why = NULL;
        if (list->key.len == 0 || list->key.len > LIST_KEY_BYTES_MAX) {
            why = "a key has 1 to 220 bytes";
        } else if (list->policy->dialect != DIALECT_NATIVE) {
            why = e->plugin->joint_refusal(list->policy, list->key);
        } else if (call->verb == LIST_GETX && list->policy->delimiter < 0) {
            why = "one of the lists has no delimiter: use lgetb, list by list";
        }
        if (why != NULL) {
            snprintf(text, LIST_ERROR_MAX, "%s: %s", word, why);
            return text;
        }
    }
    return NULL;
}

/* ---- lgetx ---- */

static void too_large(struct op_joint_read *o, uint64_t limit_bytes)
{
    snprintf(o->error, sizeof o->error,
             "answer is larger than max_answer_bytes (%llu): ask for fewer lists",
             (unsigned long long)limit_bytes);
    o->joint.state = JOINT_FAILED;
}

static void write_items(struct op_joint_read *o, const struct source *s, struct call_list *to)
{
    uint32_t at = 0;
    struct slice item;
    const struct list_policy *policy = s->list->policy;
    struct output output = {.to = UINT64_MAX,
                            .out = &to->answer,
                            .delimiter = policy->delimiter,
                            .items_form = o->call->form == LIST_FORM_ITEMS,
                            .key = to->key,
                            .limit_bytes = policy->max_answer_bytes};
    while (!output.too_large && source_next(s, &at, &item)) {
        output_item(&output, item);
        if (output.delimiter >= 0 && memchr(item.p, output.delimiter, item.len) != NULL) {
            snprintf(o->error, sizeof o->error,
                     "an item of this list holds the delimiter: ask for lgetb, which keeps them "
                     "apart");
            o->joint.state = JOINT_FAILED;
        }
    }
    to->number = output.written;
    if (output.too_large) {
        too_large(o, output.limit_bytes);
    }
}

static void take_list(struct op_joint_read *o)
{
    struct source *s = joint_arg(&o->joint, o->at);
    struct call_list *to = &o->call->lists[o->at];
    to->is_there = !s->missing;
    chain_begin_small(&to->answer);
    if (s->kind == SOURCE_ITEMS) {
        write_items(o, s, to);
    } else {
        joint_take_read(&o->joint, s);
        chain_move(&to->answer, &s->read->call.answer);
        to->number = s->read->call.number;
    }
    bool keeps_empty = s->list->policy->on_missing == ON_MISSING_REFUSE;
    to->is_there = to->is_there && (keeps_empty || to->number > 0);
    uint64_t bytes = 0, room = 0;
    for (size_t i = 0; i <= o->at; i++) {
        const struct chain *answer = &o->call->lists[i].answer;
        bytes += answer->bytes;
        room += answer->tail != NULL ? block_room(answer->tail) : 0;
    }
    session_charge(o->call, joint_bytes(&o->joint) + bytes + room);
    if (o->joint.state == JOINT_OK && bytes > o->call->policy->max_answer_bytes) {
        too_large(o, o->call->policy->max_answer_bytes);
    }
}

/* Ends with joint.state. */
static enum progress getx_step(struct engine *e, struct op_joint_read *o,
                               const struct op_event *event)
{
    struct co *co = &o->op.co;
    struct source *s;
    (void)event;
    CO_BEGIN(co);
    for (o->at = 0; o->call != NULL && o->joint.state == JOINT_OK && o->at < o->call->list_count;
         o->at++) {
        s = joint_arg(&o->joint, o->at);
        if (s->kind != SOURCE_ITEMS) {
            session_charge(o->call, o->call->charged_bytes + session_extent(s->look->head).bytes);
            source_read(e, s, &o->op, LIST_GET, o->call->form, 0, NULL);
            while (!joint_arg(&o->joint, o->at)->read->done) {
                CO_AWAIT(co, "reading one of several lists");
            }
        }
        if (o->call != NULL) {
            take_list(o);
        }
    }
    CO_END(co);
}

/* ---- all together ---- */

static void forget_written(struct op_joint_read *o)
{
    if (o->call == NULL) {
        return;
    }
    chain_clear(&o->call->answer);
    for (size_t i = 0; i < o->call->list_count; i++) {
        chain_clear(&o->call->lists[i].answer);
        o->call->lists[i].number = 0;
        o->call->lists[i].is_there = false;
    }
}

static void forget_answer(struct op_joint_read *o)
{
    combine_fini(&o->combine);
    forget_written(o);
}

static void begin_combine(struct op_joint_read *o)
{
    struct list_call *call = o->call;
    struct combine *c = &o->combine;
    combine_init(c, &o->joint, joint_verb(call->verb), call->policy->fold_memory_bytes);
    if (list_verb_has(call->verb, LIST_WHOLE)) {
        c->to = call->policy;
        c->output.to = UINT64_MAX;
        answer_begin(o->op.list, call, &c->output);
    }
}

static void finish(struct engine *e, struct op_joint_read *o)
{
    struct list_call *call = o->call;
    o->call = NULL;
    if (call == NULL) {
        return;
    }
    if (o->joint.state == JOINT_FAILED) {
        call_fail(e, o->op.list, call, "%s", o->error);
        return;
    }
    if (o->joint.state == JOINT_REFUSED) {
        memcpy(call->error, o->error, sizeof o->error);
        call_finish(e, o->op.list, call, LIST_CLIENT_ERROR);
        return;
    }
    call->number = o->combine.number;
    bool missing = o->joint.state == JOINT_MISSING ||
                   (list_verb_has(call->verb, LIST_WHOLE) && call->number == 0 &&
                    call->verb != LIST_GETX && call->policy->on_missing == ON_MISSING_CREATE);
    call_finish(e, o->op.list, call, missing ? LIST_MISSING : LIST_OK);
}

enum progress joint_read_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_joint_read *o = (struct op_joint_read *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    do {
        CO_CALL(co, joint_instant_step(e, &o->joint, event));
        if (o->call == NULL || o->joint.state != JOINT_OK) {
            break;
        }
        forget_answer(o);
        if (o->call->verb == LIST_GETX) {
            CO_CALL(co, getx_step(e, o, event));
        } else {
            begin_combine(o);
            CO_CALL(co, combine_step(e, &o->combine, event));
        }
    } while (o->call != NULL && o->joint.state == JOINT_AGAIN);
    if (o->joint.state != JOINT_OK) {
        uint64_t number = o->combine.number;
        forget_answer(o);
        o->combine.number = o->joint.state == JOINT_OK ? number : 0;
    }
    finish(e, o);
    joint_leave_turn(e, &o->joint);
    CO_CALL(co, joint_tidy_step(e, &o->joint, event));
    CO_END(co);
}

/* Heads that were made are removed all the same. */
static enum list_known joint_read_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_joint_read *o = (struct op_joint_read *)op;
    CHECK(o->call == call);
    forget_written(o); /* the comparison may be under way: joint.over ends it */
    o->call = NULL;
    o->joint.over = true;
    if (!joint_has_made(&o->joint)) {
        op_abort(e, op);
    }
    return KNOWN_NOTHING;
}

static void joint_read_fini(struct engine *e, struct op *op)
{
    struct op_joint_read *o = (struct op_joint_read *)op;
    combine_fini(&o->combine);
    joint_fini(e, &o->joint);
}

void joint_read_start(struct engine *e, struct list *list, struct list_call *call)
{
    struct op_joint_read *o = op_create(e, list, sizeof *o, joint_read_step, joint_read_fini);
    o->op.let_go = joint_read_let_go;
    o->call = call;
    call->op = &o->op;
    joint_init(e, &o->joint, &o->op, call, o->error);
    op_run(e, &o->op);
}
