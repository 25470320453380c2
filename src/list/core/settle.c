/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/settle.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/format/intent.h"

/* First pause between two looks at a primary; doubles up to 2^4 times that: 4 ms. */
#define LOOK_PAUSE_US 250u
/* Aborts sent to a primary before it counts as one that takes none. Answers may be lost. */
#define PUSHES_MAX 4
/* Writes of the list's own head by CAS, where it takes no appends and others change it. */
#define REWRITES_MAX 8
/* For how long a head stays that says that its list is missing. */
#define ABSENT_S (60 * 60)

/* The rest of a tag is a target's number, or that it is about the list itself. */
#define TAG_SETTLE (1ULL << 62)
#define TAG_OWN (TAG_SETTLE | SETTLE_MAX)

const char settle_busy[] = "busy: changes of several lists are under way on this list";

/* ---- targets ---- */

void settle_init(struct settle *s, struct op *op, struct list *list)
{
    s->op = op;
    s->list = list;
    s->count = 0;
    s->head = NULL;
    s->gave_up = false;
    s->state = SETTLE_OK;
    s->error[0] = '\0';
}

void settle_fini(struct settle *s)
{
    while (s->count > 0) {
        struct settle_target *target = &s->targets[--s->count];
        head_unref(&target->taken);
        target->primary->ops--;
    }
    head_unref(&s->head);
}

static void fail(struct settle *s, const char *text)
{
    s->state = SETTLE_FAILED;
    snprintf(s->error, sizeof s->error, "%s", text);
}

/* The list under whose log the intent is decided. It stays as long as the target. */
static struct list *primary_of(struct engine *e, struct settle *s, const struct intent *intent)
{
    struct slice key = intent->keys[0];
    if (slice_equal(key, list_key(s->list))) {
        return s->list;
    }
    return lists_get(&e->lists, key, config_list_policy(e->config, key));
}

bool settle_add(struct engine *e, struct settle *s, const struct head_intent *known)
{
    struct intent intent;
    bool whole = intent_parse(known->bytes, &intent);
    CHECK(whole);
    if (s->count == SETTLE_MAX) {
        return false;
    }
    struct list *primary = primary_of(e, s, &intent);
    primary->ops++;
    s->targets[s->count++] = (struct settle_target){
        .name = intent.name, .primary = primary, .own = primary == s->list, .found = INTENT_OPEN};
    return true;
}

void settle_add_open(struct engine *e, struct settle *s, const struct head *head)
{
    for (size_t i = 0; i < head->intent_count; i++) {
        if (head->intents[i].state == INTENT_OPEN && !settle_add(e, s, &head->intents[i])) {
            return;
        }
    }
}

/* The first target of those that share target i's primary and are open: one request does for all of
 * them. */
static bool is_first_open(const struct settle *s, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (s->targets[k].found == INTENT_OPEN && s->targets[k].primary == s->targets[i].primary) {
            return false;
        }
    }
    return s->targets[i].found == INTENT_OPEN;
}

static size_t count_open(const struct settle *s)
{
    size_t open = 0;
    for (size_t i = 0; i < s->count; i++) {
        open += s->targets[i].found == INTENT_OPEN;
    }
    return open;
}

/* ---- looking at primaries ---- */

/* The clients ask for another list: the error is to say why that one matters. */
static void fail_unreadable(struct settle *s, const struct list *primary, const char *why)
{
    char key[128];
    s->state = SETTLE_FAILED;
    snprintf(s->error, sizeof s->error, "%s#, which decides a change of several lists, %.100s",
             slice_escape(list_key(primary), key, sizeof key), why);
}

static void fail_unread(struct settle *s, const struct list *primary, const struct op_event *event)
{
    char why[96];
    const char *text = event->text != NULL ? event->text : "backend refused to read the list";
    snprintf(why, sizeof why, "was not read: %.80s", text);
    if (primary == s->list) {
        fail(s, text);
    } else {
        fail_unreadable(s, primary, why);
    }
}

static enum intent_state state_in(const struct head *head, const struct name *name)
{
    return head != NULL ? head_intent_state(head, name) : INTENT_GONE;
}

static void take_look(struct settle *s, const struct op_event *event)
{
    struct list *primary = s->targets[event->tag & ~TAG_SETTLE].primary;
    if (event->status != BE_HIT && event->status != BE_MISS) {
        fail_unread(s, primary, event);
        return;
    }
    if (event->head == NULL && !op_head_has_gone(event)) {
        fail_unreadable(s, primary, "holds no list that this version can read");
        return;
    }
    struct settle_target *asked = &s->targets[event->tag & ~TAG_SETTLE];
    head_unref(&asked->taken);
    asked->taken = asked->refused && event->head != NULL ? head_ref(event->head) : NULL;
    for (size_t i = 0; i < s->count; i++) {
        struct settle_target *target = &s->targets[i];
        if (target->primary == primary && target->found == INTENT_OPEN) {
            enum intent_state state = state_in(event->head, &target->name);
            target->is_current |= asked->is_current;
            target->is_foreign = event->status == BE_HIT && event->head == NULL;
            target->gone = state == INTENT_GONE && !target->own;
            state = state == INTENT_GONE && target->own ? INTENT_ABORTED : state;
            target->found = target->gone ? INTENT_OPEN : state;
            if (state == INTENT_OPEN && head_intent_is_crossed(event->head, &target->name)) {
                s->until_us = 0; /* its coordinator cannot commit it any more */
            }
        }
    }
}

/* Of the list's own head: has it the decision by now? */
static void take_own_look(struct settle *s, const struct op_event *event)
{
    bool answered = event->status == BE_HIT || event->status == BE_MISS;
    for (size_t i = 0; i < s->count && answered; i++) {
        struct settle_target *target = &s->targets[i];
        if (target->gone && target->found == INTENT_OPEN) {
            enum intent_state state = state_in(event->head, &target->name);
            target->found = state == INTENT_GONE ? INTENT_ABORTED : state;
            target->told = target->found != INTENT_OPEN;
        }
    }
}

static bool has_gone(const struct settle *s)
{
    bool gone = false;
    for (size_t i = 0; i < s->count; i++) {
        gone = gone || (s->targets[i].gone && s->targets[i].found == INTENT_OPEN);
    }
    return gone;
}

/* May another node have the primary by now, of which this one does not know? Then it carries out no
 * change that is to be durable. A value of another client is not ours to change. */
static bool may_be_old(const struct settle_target *target)
{
    return target->primary->policy->pool_type == POOL_COUCHBASE && !target->is_current &&
           !target->is_foreign;
}

/* No coordinator has told the list anything else. */
static bool is_aborted(const struct settle_target *target)
{
    return target->gone && target->found == INTENT_OPEN && !may_be_old(target);
}

static void abort_gone(struct settle *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (is_aborted(&s->targets[i])) {
            s->targets[i].found = INTENT_ABORTED;
        }
    }
}

static enum progress look_step(struct engine *e, struct settle *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    for (size_t i = 0; i < s->count; i++) {
        if (is_first_open(s, i)) {
            emit_get_raw_of(e, s->op, s->targets[i].primary, TAG_SETTLE | i);
        }
    }
    if (has_gone(s)) {
        emit_get_raw_of(e, s->op, s->list, TAG_OWN);
    }
    while (s->op->due > 0) {
        CO_AWAIT(co, "reading the list that decides a change of several lists");
        if (event != NULL && event->tag == TAG_OWN) {
            take_own_look(s, event);
        } else if (event != NULL) {
            take_look(s, event);
        }
    }
    s->looks++;
    CO_END(co);
}

/* ---- appending decisions ---- */

/* NOT_STORED: the item is gone, which a look tells, or its server takes no appends to it, so that
 * it is to be written anew. EXISTS, NOT_FOUND: it has changed, or gone, since it was read. */
static void note_append(struct settle *s, const struct op_event *event)
{
    bool is_own = event->tag == TAG_OWN;
    struct settle_target *asked = is_own ? NULL : &s->targets[event->tag & ~TAG_SETTLE];
    bool refused = write_was_refused(event->status);
    bool told_by_look = refused || event->status == BE_STORED || event->status == BE_LOST;
    if (is_own) {
        s->refused = refused;
    } else {
        asked->refused = refused;
        asked->is_current |= event->status == BE_STORED;
    }
    if (!told_by_look) {
        op_error_text(event, s->error);
        s->state = SETTLE_FAILED;
    }
}

/* Where a missing list is not to be made, by a head that says that it is missing, and goes by
 * itself. */
void settle_emit_place(struct engine *e, struct op *op, struct list *list, uint64_t tag)
{
    bool stays_missing = list->policy->on_missing == ON_MISSING_REFUSE;
    struct head_marks marks = {.absent = stays_missing};
    struct life life = stays_missing ? life_given(ABSENT_S) : life_new(list->policy);
    if (!stays_missing) {
        marks.cap = list_policy_cap(list->policy);
    }
    struct block *value = block_new(64);
    head_append_header(&value, &marks, NULL, 0, NULL, 0);
    emit_add_head_to(e, op, list, &life, value, tag);
    block_unref(&value);
}

/* The last append found nothing, and so did the look behind it. */
static bool is_missing(const struct settle_target *target)
{
    return target->gone && target->refused && target->taken == NULL;
}

/* Asks the coordinators no longer: an abort for each that is still open. */
static void emit_aborts(struct engine *e, struct settle *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (!is_first_open(s, i)) {
            continue;
        }
        if (is_missing(&s->targets[i]) && may_be_old(&s->targets[i])) {
            settle_emit_place(e, s->op, s->targets[i].primary, TAG_SETTLE | i);
            continue;
        }
        struct block *aborts = block_new(64);
        for (size_t k = i; k < s->count; k++) {
            const struct settle_target *target = &s->targets[k];
            if (target->found == INTENT_OPEN && target->primary == s->targets[i].primary) {
                decision_append(&aborts, &target->name, DECISION_ABORT);
                metric_inc(e->metrics, METRIC_list_intents_pushed);
            }
        }
        if (s->targets[i].taken != NULL) {
            emit_cas_deciding(e, s->op, s->targets[i].primary, s->targets[i].taken, aborts,
                              TAG_SETTLE | i);
        } else {
            emit_append_to(e, s->op, s->targets[i].primary, aborts, TAG_SETTLE | i);
        }
        block_unref(&aborts);
    }
}

/* Tells the list's own head what was found. */
static void emit_decisions(struct engine *e, struct settle *s)
{
    struct block *decisions = block_new(64);
    for (size_t i = 0; i < s->count; i++) {
        const struct settle_target *target = &s->targets[i];
        if (!target->own && !target->told) {
            bool committed = target->found == INTENT_COMMITTED;
            decision_append(&decisions, &target->name,
                            committed ? DECISION_COMMIT : DECISION_ABORT);
        }
    }
    if (s->head != NULL) {
        emit_cas_deciding(e, s->op, s->list, s->head, decisions, TAG_OWN);
    } else if (decisions->used > 0) {
        emit_append_to(e, s->op, s->list, decisions, TAG_OWN);
    }
    block_unref(&decisions);
}

static enum progress answers_step(struct settle *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    while (s->op->due > 0) {
        CO_AWAIT(co, "appending what is decided of a change of several lists");
        if (event != NULL) {
            note_append(s, event);
        }
    }
    CO_END(co);
}

/* ---- all together ---- */

/* When to look again: at once after a push. */
static uint64_t next_look_us(struct engine *e, const struct settle *s)
{
    uint64_t pause_us = LOOK_PAUSE_US << u64_least(s->looks, 4);
    uint64_t at_us = e->now.mono_us + pause_us + rng_below(e->rng, pause_us);
    return s->pushes > 0 ? e->now.mono_us : u64_least(at_us, s->until_us);
}

/* The list's own head has been read already. */
static bool all_own(const struct settle *s)
{
    size_t i = 0;
    while (i < s->count && s->targets[i].own) {
        i++;
    }
    return i == s->count;
}

/* A list of a dialect has no head: that there is none says nothing. One that moves to the native
 * layout may have one. */
static void refuse_dialects(struct settle *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct list *primary = s->targets[i].primary;
        const struct list_policy *policy = primary->policy;
        if (policy->dialect != DIALECT_NATIVE && policy->migrate == MIGRATE_NO) {
            fail_unreadable(s, primary, "is of another layout by the proxy's configuration");
        }
    }
}

static enum progress decide_step(struct engine *e, struct settle *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    s->until_us = e->now.mono_us + (uint64_t)e->config->transaction_patience_ms * 1000;
    s->looks = all_own(s) ? 1 : 0;
    s->pushes = 0;
    refuse_dialects(s);
    while (s->state == SETTLE_OK && count_open(s) > 0) {
        if (s->looks > 0 && e->now.mono_us >= s->until_us) {
            abort_gone(s);
            if (count_open(s) == 0 || s->pushes++ == PUSHES_MAX) {
                break;
            }
            emit_aborts(e, s);
            CO_CALL(co, answers_step(s, event));
        }
        s->again_us = s->looks > 0 ? next_look_us(e, s) : e->now.mono_us;
        while (e->now.mono_us < s->again_us) {
            CO_SLEEP(s->op, co, "waiting for a change of several lists", s->again_us);
        }
        if (s->state == SETTLE_OK) {
            CO_CALL(co, look_step(e, s, event));
        }
    }
    if (s->state == SETTLE_OK && count_open(s) > 0) {
        s->gave_up = true;
        fail(s, settle_busy);
    }
    CO_END(co);
}

static enum progress read_own_step(struct engine *e, struct settle *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    emit_get_raw_of(e, s->op, s->list, TAG_OWN);
    while (s->op->due > 0) {
        CO_AWAIT(co, "reading the list to write what is decided into it");
        if (event != NULL) {
            head_unref(&s->head);
            s->head = event->head != NULL ? head_ref(event->head) : NULL;
        }
    }
    CO_END(co);
}

enum progress settle_step(struct engine *e, struct settle *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    s->refused = false;
    CO_CALL(co, decide_step(e, s, event));
    if (s->state == SETTLE_OK) {
        metric_add(e->metrics, METRIC_list_intents_settled, s->count);
        emit_decisions(e, s);
        CO_CALL(co, answers_step(s, event));
    }
    for (s->tries = 0; s->state == SETTLE_OK && s->refused && s->tries < REWRITES_MAX; s->tries++) {
        CO_CALL(co, read_own_step(e, s, event));
        s->refused = s->head != NULL; /* a list that is gone has no use for it */
        if (s->refused) {
            emit_decisions(e, s);
            CO_CALL(co, answers_step(s, event));
        }
    }
    settle_fini(s);
    CO_END(co);
}
