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
/* Rounds of one read: each time there were new intents, or decisions that were not stored. */
#define ROUNDS_MAX 16

/* The rest of a tag is a target's number, or that it is about the list itself. */
#define TAG_SETTLE (1ULL << 62)
#define TAG_OWN (TAG_SETTLE | SETTLE_MAX)

static const char busy[] = "busy: changes of several lists are under way on this list";

/* ---- targets ---- */

void settle_init(struct settle *s, struct op *op, struct list *list)
{
    s->op = op;
    s->list = list;
    s->count = 0;
    s->head = NULL;
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

/* No coordinator has told the list anything else. Another node may have the primary by now: an
 * append shows that none has; where there is nothing to append to, the refusal has to do. */
static bool is_aborted(const struct settle_target *target)
{
    bool may_be_old = target->primary->policy->pool_type == POOL_COUCHBASE && !target->is_current;
    return target->gone && target->found == INTENT_OPEN && !may_be_old;
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
    bool refused = write_was_refused(event->status);
    bool told_by_look = refused || event->status == BE_STORED || event->status == BE_LOST;
    if (event->tag == TAG_OWN) {
        s->refused = refused;
    } else {
        struct settle_target *asked = &s->targets[event->tag & ~TAG_SETTLE];
        asked->refused = refused;
        asked->is_current |= event->status == BE_STORED || event->status == BE_NOT_STORED;
    }
    if (!told_by_look) {
        op_error_text(event, s->error);
        s->state = SETTLE_FAILED;
    }
}

/* Asks the coordinators no longer: an abort for each that is still open. */
static void emit_aborts(struct engine *e, struct settle *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (!is_first_open(s, i)) {
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
            struct slice entries = slice_make(aborts->data, aborts->used);
            emit_cas_appending(e, s->op, s->targets[i].primary, s->targets[i].taken, entries,
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
        struct slice entries = slice_make(decisions->data, decisions->used);
        emit_cas_appending(e, s->op, s->list, s->head, entries, TAG_OWN);
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
        fail(s, busy);
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

/* ---- reads that are held ---- */

struct held {
    TAILQ_ENTRY(held) link;
    struct op *op; /* stays: the answer is outstanding */
    struct list *list;
    uint64_t tag;
    uint8_t rounds;
};
TAILQ_HEAD(held_queue, held);

struct op_settle {
    struct op op;
    struct settle settle;
    struct held_queue held;
};

static void hold(struct op_settle *o, const struct be_request *request)
{
    struct held *held = malloc(sizeof *held);
    CHECK(held != NULL);
    *held = (struct held){.op = request->op,
                          .list = request->list,
                          .tag = request->tag,
                          .rounds = (uint8_t)(request->rounds + 1)};
    TAILQ_INSERT_TAIL(&o->held, held, link);
}

/* The operation waits for the settler. Blind changes of its list do not. */
static void let_changes_pass(struct engine *e, struct op *op)
{
    struct list *list = op->list;
    op->is_held = true;
    if (list->round == op && !list->round_writes) {
        list->round = NULL;
        list->held_round = op;
    }
    lists_mark_ready(&e->lists, list);
}

/* May that read bring a head that is cut? */
static bool takes_part(const struct op *op, const struct list *list)
{
    return op->takes_cut && list == op->list;
}

/* Where the intents could not be settled, a compaction goes on with what is decided in front. */
static void let_go(struct engine *e, struct op_settle *o, struct held *held)
{
    struct op_event event = {
        .tag = held->tag, .status = BE_REFUSED, .text = o->settle.error, .was_held = true};
    held->op->is_held = false;
    bool fails = o->settle.state == SETTLE_FAILED && !takes_part(held->op, held->list);
    if (held->op->finished || fails) {
        op_deliver(e, held->op, &event);
    } else {
        emit_get_again(e, held->op, held->list, held->tag, held->rounds);
    }
}

static enum progress settler_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_settle *o = (struct op_settle *)op;
    struct co *co = &op->co;
    struct held *held;
    CO_BEGIN(co);
    CO_CALL(co, settle_step(e, &o->settle, event));
    op->list->settler = NULL;
    metric_add(e->metrics, METRIC_list_busy,
               o->settle.state == SETTLE_FAILED && o->settle.pushes > PUSHES_MAX);
    while ((held = TAILQ_FIRST(&o->held)) != NULL) {
        TAILQ_REMOVE(&o->held, held, link);
        let_go(e, o, held);
        free(held);
    }
    list_consider_compaction(e, op->list, list_log_bytes(op->list));
    CO_END(co);
}

static void settler_fini(struct engine *e, struct op *op)
{
    struct op_settle *o = (struct op_settle *)op;
    struct held *held;
    (void)e;
    settle_fini(&o->settle);
    while ((held = TAILQ_FIRST(&o->held)) != NULL) {
        TAILQ_REMOVE(&o->held, held, link);
        free(held);
    }
}

/* For lstat: what a read has met, and not only what it has found in the end. */
static void note_met(struct list *list, const struct head *head, bool again)
{
    list->met = again ? list->met : (struct head_open){0};
    for (size_t i = 0; i < head->intent_count; i++) {
        const struct head_intent *intent = &head->intents[i];
        if (intent->state == INTENT_OPEN) {
            list->met.waiting += !intent->primary;
            list->met.pending += intent->primary;
            list->met.oldest_s = list->met.oldest_s == 0 || intent->created_s < list->met.oldest_s
                                     ? intent->created_s
                                     : list->met.oldest_s;
        }
    }
}

static void hold_for_settling(struct engine *e, struct be_request *request, const struct head *head)
{
    struct list *list = request->list;
    bool first = list->settler == NULL;
    if (first) {
        list->settler = op_create(e, list, sizeof(struct op_settle), settler_step, settler_fini);
        struct op_settle *o = (struct op_settle *)list->settler;
        TAILQ_INIT(&o->held);
        settle_init(&o->settle, &o->op, list);
        settle_add_open(e, &o->settle, head);
        note_met(list, head, request->rounds > 0);
    }
    hold((struct op_settle *)list->settler, request);
    let_changes_pass(e, request->op);
    if (first) {
        op_start(e, list->settler);
    }
}

/* Has its coordinator died, as it seems? By the wall clock: what is done then is right in any case.
 * One that seems to come from the future counts as well, or it would stay until then. */
static bool is_left(const struct engine *e, const struct head_intent *intent)
{
    enum { AT_WORK_S = 2 };
    int64_t age_s = e->now.wall_s - intent->created_s;
    return intent->state == INTENT_OPEN && (age_s > AT_WORK_S || age_s < -AT_WORK_S);
}

/* A compaction of a list whose coordinators are at work goes on with what is decided, unless what
 * has been added behind the first of them is about to fill the log. */
static bool takes_cut(const struct engine *e, const struct be_request *request,
                      const struct head *head)
{
    const struct list *list = request->list;
    bool left = false;
    size_t tail_bytes = 0;
    for (size_t i = head->intent_count; i-- > 0;) {
        const struct head_intent *intent = &head->intents[i];
        left = left || is_left(e, intent);
        tail_bytes = intent->state == INTENT_OPEN ? head->raw_log_bytes - intent->at : tail_bytes;
    }
    bool goes_on = !left && tail_bytes <= list_log_hard_limit(list) / 2;
    return takes_part(request->op, list) && (goes_on || request->rounds > 0);
}

void settle_reply(struct engine *e, struct be_request *request, const struct be_reply *reply)
{
    struct op_event event = {.tag = request->tag,
                             .reply = reply,
                             .status = reply->status,
                             .text = reply->text,
                             .appended_bytes = request->appended_bytes,
                             .was_held = request->rounds > 0};
    struct head *head = NULL;
    if (!request->op->finished && reply->status == BE_HIT && reply->flags == 0 &&
        head_read(reply, list_key(request->list), &head) == HEAD_OK) {
        bool holds = head->open_count > 0 && !request->is_raw;
        if (holds && takes_cut(e, request, head)) {
            struct head *whole = head;
            head = head_cut(whole);
            head_unref(&whole);
        } else if (holds && request->rounds < ROUNDS_MAX) {
            hold_for_settling(e, request, head);
            head_unref(&head);
            return;
        } else if (holds) {
            metric_inc(e->metrics, METRIC_list_busy);
            event.reply = NULL;
            event.status = BE_REFUSED;
            event.text = busy;
            head_unref(&head);
        } else if (request->rounds > 0) {
            head->met = request->list->met;
        }
    }
    event.head = head;
    op_deliver(e, request->op, &event);
    head_unref(&head);
}
