/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/exact.h"

#include <stdlib.h>

#include "base/arena.h"
#include "list/change/capped.h"
#include "list/change/cas.h"
#include "list/change/lease.h"
#include "list/change/renew.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"
#include "list/format/layout.h"
#include "list/read/question.h"

/* How often an ltouch waits for a compaction that gives the list's sublists more time. */
#define WAITS_MAX 8

enum { TAG_CLOCK = TAG_CAS_OWN };

/* A call's share of the items. */
struct share {
    struct list_call *call; /* NULL: its time was over */
    size_t items;           /* of the question */
};

struct op_exact {
    struct op_cas cas;
    struct share *shares; /* of all that were added, in their order */
    size_t share_count;
    struct slice *items; /* the question's, where several calls were added */
    struct arena kept;   /* those of calls whose time was over meanwhile */
    bool fills;          /* an lcreate, and the head says that the list is missing */
    /* It says so, and a client has the lease. Changes are refused, since nothing is known of the
     * list; but what that client has read to fill it may be older than they are, and must not come
     * to stand for them. So its lease ends before they are refused. */
    bool ends_lease;
    struct question question; /* which of the items it holds; of an lcreate or ltouch, whether any
                               */
    bool head_tells;          /* that the list holds items */
    int64_t exptime;          /* of an ltouch, to be sent */
    bool is_primary;          /* of a transaction that is not done: it gets no time to live yet */
};

/* Does the call add items? */
static bool adds(const struct list_call *call)
{
    return call->verb == LIST_ADDX || call->verb == LIST_ADD;
}

static struct list_call *only_create(const struct op_exact *x)
{
    struct list_call *call = TAILQ_FIRST(&x->cas.calls);
    return call != NULL && call->verb == LIST_CREATE ? call : NULL;
}

static struct list_call *only_touch(const struct op_exact *x)
{
    struct list_call *call = TAILQ_FIRST(&x->cas.calls);
    return call != NULL && call->verb == LIST_TOUCH ? call : NULL;
}

static void finish_all(struct engine *e, struct op_exact *x)
{
    while (!TAILQ_EMPTY(&x->cas.calls)) {
        struct list_call *call = TAILQ_FIRST(&x->cas.calls);
        TAILQ_REMOVE(&x->cas.calls, call, link);
        call_finish(e, x->cas.op.list, call, call->refused ? LIST_NOT_STORED : LIST_OK);
    }
}

/* on_missing = refuse and there is no list. */
static void refuse_all(struct engine *e, struct op_exact *x)
{
    while (!TAILQ_EMPTY(&x->cas.calls)) {
        struct list_call *call = TAILQ_FIRST(&x->cas.calls);
        TAILQ_REMOVE(&x->cas.calls, call, link);
        call_finish(e, x->cas.op.list, call, adds(call) ? LIST_NOT_STORED : LIST_MISSING);
    }
}

/* ---- lists with a cap ---- */

/* The cap of the list; of a missing one, what it begins with. */
static struct cap cap_of(const struct op_exact *x)
{
    return x->cas.head != NULL ? x->cas.head->marks.cap : list_policy_cap(x->cas.op.list->policy);
}

/* Decides call by call what is done to such a list, which is all in its log. */
static void decide_capped(struct op_exact *x)
{
    struct fold content;
    fold_init(&content);
    fold_set_cap(&content, cap_of(x));
    bool whole = x->cas.head == NULL || fold_apply_entries(&content, x->cas.head->log);
    CHECK(whole); /* head_read checked it */
    for (size_t n = 0; n < x->share_count; n++) {
        struct list_call *call = x->shares[n].call;
        if (call != NULL) {
            call->refused = !capped_decide(&content, call, &x->cas.entries);
        }
    }
    fold_fini(&content);
}

/* The call is over. A question that was asked for others, too, goes on with its items: they are
 * kept. */
static void let_go(struct op_cas *cas, struct list_call *call)
{
    struct op_exact *x = (struct op_exact *)cas;
    size_t n = 0, at = 0;
    while (x->shares[n].call != call) {
        at += x->shares[n++].items;
    }
    bool goes_on = x->question.read != NULL && x->share_count > 1;
    for (size_t i = at; goes_on && i < at + x->shares[n].items; i++) {
        x->items[i] = arena_copy(&x->kept, x->items[i]);
    }
    x->shares[n].call = NULL;
}

/* ---- what is in the list ---- */

/* at: of its first item. */
static void decide_call(struct op_exact *x, struct list_call *call, size_t at, struct fold *changes)
{
    const struct members *there = &x->question.members;
    bool is_there = x->cas.head != NULL;
    for (size_t i = 0; i < call->item_count; i++) {
        bool deletes = call->verb == LIST_DELX || list_call_deletes(call, i);
        enum entry_op op = deletes ? ENTRY_DEL : list_call_adds(call);
        char outcome = fold_outcome(changes, call->items[i]);
        bool in = outcome != 0 ? outcome != ENTRY_DEL : is_there && members_has(there, at + i);
        call->number += in == deletes;
        /* One with a time gets none; one that is over here may be in for another proxy. */
        bool timed = outcome == 0 && is_there && members_is_timed(there, at + i);
        if (in == deletes || op == ENTRY_READD || timed) {
            fold_apply(changes, op, call->items[i]);
            entry_append(&x->cas.entries, op, call->items[i]);
        }
    }
}

/* Decides call by call, each on top of those before it. */
static void decide_changes(struct op_exact *x)
{
    if (cap_of(x).max != 0) {
        decide_capped(x);
        return;
    }
    struct fold changes;
    size_t at = 0;
    fold_init(&changes);
    for (size_t n = 0; n < x->share_count; at += x->shares[n++].items) {
        struct list_call *call = x->shares[n].call;
        if (call != NULL) {
            decide_call(x, call, at, &changes);
        }
    }
    fold_fini(&changes);
}

/* The items of all calls, one after the other. */
static const struct slice *items_of(struct op_exact *x, size_t *count)
{
    const struct list_call *only = x->share_count == 1 ? x->shares[0].call : NULL;
    *count = 0;
    for (size_t n = 0; n < x->share_count; n++) {
        struct share *share = &x->shares[n];
        share->items = share->call != NULL ? share->call->item_count : 0;
        *count += share->items;
    }
    if (only != NULL) {
        return only->items;
    }
    x->items = realloc(x->items, (*count + 1) * sizeof *x->items);
    CHECK(x->items != NULL);
    size_t at = 0;
    for (size_t n = 0; n < x->share_count; at += x->shares[n++].items) {
        if (x->shares[n].items > 0) {
            memcpy(x->items + at, x->shares[n].call->items, x->shares[n].items * sizeof *x->items);
        }
    }
    return x->items;
}

/* What the head does not tell. */
static void ask(struct engine *e, struct op_exact *x)
{
    struct op_cas *cas = &x->cas;
    bool whole = only_create(x) != NULL || only_touch(x) != NULL;
    question_forget(e, &x->question);
    x->head_tells = false;
    if (cas->head == NULL || x->fills) {
        return;
    }
    if (only_touch(x) != NULL && head_has_items(cas->head)) {
        x->head_tells = true;
    } else if (whole) {
        question_any(e, &x->question, &cas->op, cas->op.list, cas->head);
    } else if (cap_of(x).max == 0) {
        size_t count;
        const struct slice *items = items_of(x, &count);
        question_items(e, &x->question, &cas->op, cas->op.list, cas->head, items, count);
    }
}

/* ---- writing ---- */

/* What was appended to the absent head stands behind the items. */
static void emit_fill(struct engine *e, struct op_exact *x)
{
    struct layout layout;
    layout_init(&layout, x->cas.head);
    layout_fill(&layout);
    struct slice entries = slice_make(x->cas.entries->data, x->cas.entries->used);
    layout.marks.cap = list_policy_cap(x->cas.op.list->policy);
    if (layout.marks.cap.max != 0) {
        struct carry carry = {.grace_s = INT64_MAX};
        (void)layout_carry(&layout, x->cas.head->announcements, &carry);
        capped_fill(&layout.log, layout.marks.cap, entries, x->cas.head->log);
    } else {
        block_append(&layout.log, entries.p, entries.len);
        block_append(&layout.log, x->cas.head->log.p, x->cas.head->log.len);
    }
    struct block *value = layout_value(&layout);
    emit_cas_new(e, &x->cas.op, x->cas.head, value, TAG_CAS_WRITE);
    block_unref(&value);
    layout_fini(&layout);
}

static bool has_items(const struct op_exact *x)
{
    return x->head_tells || x->question.any;
}

static void emit_change(struct engine *e, struct op_exact *x)
{
    if (x->fills) {
        emit_fill(e, x);
        return;
    }
    struct block *value =
        block_new(x->cas.entries->used + (x->cas.head != NULL ? x->cas.head->value.len : 32));
    if (x->cas.head == NULL) {
        struct head_marks marks = {.cap = cap_of(x)};
        head_append_header(&value, &marks, NULL, 0, NULL, 0);
    } else {
        block_append(&value, x->cas.head->value.p, x->cas.head->value.len);
    }
    block_append(&value, x->cas.entries->data, x->cas.entries->used);
    struct list_call *touch = only_touch(x);
    struct life life = touch != NULL ? life_given(x->exptime) : (struct life){0};
    if (x->cas.head == NULL) {
        emit_add_head(e, &x->cas.op, value, TAG_CAS_WRITE);
    } else if (touch != NULL) {
        emit_cas_for(e, &x->cas.op, x->cas.head, &life, value, TAG_CAS_WRITE);
    } else {
        emit_cas(e, &x->cas.op, x->cas.head, value, TAG_CAS_WRITE);
    }
    block_unref(&value);
}

/* lcreate on a list that exists. True when that settles it. */
static bool create_settled(struct engine *e, struct op_exact *x)
{
    if (!has_items(x)) {
        entry_append(&x->cas.entries, ENTRY_CLEAR, SLICE_NONE);
        return false;
    }
    cas_finish(e, &x->cas, LIST_NOT_STORED);
    return true;
}

static void append_created_items(struct op_exact *x)
{
    const struct list_call *call = only_create(x);
    for (size_t i = 0; i < call->item_count; i++) {
        entry_append(&x->cas.entries, list_call_adds(call), call->items[i]);
    }
}

static void stored(struct engine *e, struct op_cas *cas)
{
    struct op_exact *x = (struct op_exact *)cas;
    struct list *list = cas->op.list;
    if (cas->head == NULL || x->fills) {
        metric_inc(e->metrics, METRIC_list_creates);
        list->has_head = true;
        list->cap = list_policy_cap(list->policy);
    }
    if (x->ends_lease) {
        refuse_all(e, x);
        return;
    }
    list_note_size(list, (cas->head == NULL ? 0 : cas->head->value.len) + cas->entries->used);
    list_consider_cap(e, list);
    if (only_touch(x) != NULL && cas->head->run_count > 0 &&
        cas->head->marks.sublists_until_s == 0) {
        struct life life = life_given(x->exptime);
        list_wish_for_end(e, list, &life);
    }
    finish_all(e, x);
}

/* True when the calls are settled by the head alone. */
static bool head_settled(struct engine *e, struct op_exact *x)
{
    enum head_result got = x->cas.got;
    bool missing = got == GOT_NOTHING || got == GOT_ABSENT;
    x->fills = got == GOT_ABSENT && only_create(x) != NULL;
    x->ends_lease = false;
    if (missing && only_touch(x) != NULL) {
        cas_finish(e, &x->cas, LIST_MISSING);
        return true;
    }
    if (missing && x->cas.op.list->policy->on_missing == ON_MISSING_REFUSE &&
        only_create(x) == NULL) {
        x->ends_lease = got == GOT_ABSENT && x->cas.head->marks.lease != 0;
        if (!x->ends_lease) {
            refuse_all(e, x);
        }
        return !x->ends_lease;
    }
    if (got == GOT_HEAD && only_create(x) != NULL &&
        x->cas.op.list->policy->on_missing == ON_MISSING_REFUSE) {
        cas_finish(e, &x->cas, LIST_NOT_STORED);
        return true;
    }
    return false;
}

/* Decides what is to be written. True when that is nothing: then the calls are answered. */
static bool decided(struct engine *e, struct op_exact *x)
{
    bool refuse = x->cas.op.list->policy->on_missing == ON_MISSING_REFUSE;
    if (TAILQ_EMPTY(&x->cas.calls)) {
        return true;
    }
    if (only_touch(x) != NULL) {
        bool empty = !has_items(x) && !refuse;
        if (empty) {
            cas_finish(e, &x->cas, LIST_MISSING);
        }
        return empty;
    }
    if (only_create(x) == NULL) {
        decide_changes(x);
    } else if (x->cas.head != NULL && !x->fills && create_settled(e, x)) {
        return true;
    } else {
        append_created_items(x);
    }
    /* With on_missing = refuse an lcreate without items makes a list, too. */
    bool makes_empty = (x->cas.head == NULL || x->fills) && only_create(x) != NULL && refuse;
    if (x->cas.entries->used == 0 && !makes_empty) {
        finish_all(e, x);
        return true;
    }
    return false;
}

/* The ltouch waits in the queue until the sublists live so long: a compaction writes them anew. */
static void wait_for_sublists(struct engine *e, struct op_exact *x, int64_t until_s)
{
    struct list *list = x->cas.op.list;
    struct list_call *call = only_touch(x);
    if (call->waits++ == WAITS_MAX) {
        metric_inc(e->metrics, METRIC_list_busy);
        cas_fail(e, &x->cas,
                 "busy, nothing done: the list's sublists could not be given more time");
        return;
    }
    list->wanted_until_s = until_s;
    list->wanted_by_us = call->deadline_us != 0 ? call->deadline_us : UINT64_MAX;
    cas_give_back(e, &x->cas);
    lists_wish(&e->lists, list, WISH_COMPACT, NULL);
}

/* Turns the EXPTIME of an ltouch into a second of the server's clock that the sublists reach. */
static void take_clock(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    if (TAILQ_EMPTY(&x->cas.calls)) {
        return;
    }
    if (event->status != BE_HIT && event->status != BE_MISS) {
        op_error_text(event, x->cas.error);
        cas_fail(e, &x->cas, x->cas.error);
        return;
    }
    int64_t now_s = (int64_t)event->reply->number;
    x->exptime += x->exptime <= EXPTIME_RELATIVE_MAX_S ? now_s : 0;
    if (x->exptime > x->cas.head->marks.sublists_until_s) {
        wait_for_sublists(e, x, x->exptime);
    }
}

/* The end of its transaction takes a round trip as a rule. */
static bool must_wait(struct op_exact *x)
{
    struct life life = life_given(x->exptime);
    x->is_primary = life_must_wait(&life, x->cas.head);
    return x->is_primary;
}

/* An ltouch: a list whose sublists end does not outlive them. Ends without calls when it has to
 * wait for that, with is_primary, or with x->exptime. */
static enum progress reach_step(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    struct co *co = &x->cas.op.co;
    CO_BEGIN(co);
    x->exptime = only_touch(x)->exptime;
    x->cas.op.list->wanted_until_s = 0;
    if (must_wait(x)) {
        CO_RETURN(co);
    }
    if (x->cas.head->marks.sublists_until_s == 0 || x->exptime < 0) {
        CO_RETURN(co);
    }
    if (x->exptime == 0) {
        wait_for_sublists(e, x, INT64_MAX);
        CO_RETURN(co);
    }
    expiry_look(e, &x->cas.op, TAG_CLOCK);
    CO_AWAIT(co, "reading the server's clock for a time to live");
    take_clock(e, x, event);
    CO_END(co);
}

static void note_unanswered(struct engine *e, struct op_exact *x)
{
    if (x->question.state == QUESTION_OLD) {
        x->cas.decision = CAS_AT_ONCE;
    } else {
        cas_fail(e, &x->cas, question_error(&x->question));
    }
}

static enum progress decide(struct engine *e, struct op_cas *cas, const struct op_event *event)
{
    struct op_exact *x = (struct op_exact *)cas;
    struct co *co = &cas->op.co;
    CO_BEGIN(co);
    cas->decision = CAS_ENDS;
    if (head_settled(e, x)) {
        CO_RETURN(co);
    }
    if (x->ends_lease) {
        cas->decision = CAS_WRITES;
        cas->writing = "ending a lease";
        lease_emit_end(e, &cas->op, cas->head, TAG_CAS_WRITE);
        CO_RETURN(co);
    }
    ask(e, x);
    if (x->question.read != NULL) {
        CO_CALL(co, question_step(&x->question, &cas->op, "looking what the list holds"));
    }
    if (x->question.state != QUESTION_ANSWERED) {
        note_unanswered(e, x);
        CO_RETURN(co);
    }
    if (decided(e, x) || !cas_has_room(e, cas)) {
        CO_RETURN(co); /* where nothing changes, the answer holds as of the head's reading */
    }
    if (only_touch(x) != NULL) {
        CO_CALL(co, reach_step(e, x, event));
    }
    if (TAILQ_EMPTY(&cas->calls)) {
        CO_RETURN(co);
    }
    cas->busy = x->is_primary ? LIFE_BUSY_TEXT : cas->busy;
    cas->decision = x->is_primary ? CAS_AGAIN : CAS_WRITES;
    if (!x->is_primary) {
        cas->writing = "writing exact change";
        emit_change(e, x);
    }
    CO_END(co);
}

static void exact_fini(struct engine *e, struct op_cas *cas)
{
    struct op_exact *x = (struct op_exact *)cas;
    question_forget(e, &x->question);
    free(x->items);
    free(x->shares);
    arena_fini(&x->kept);
}

static const struct cas_kind exact = {
    CAS_FOR_CLIENTS, .decide = decide, .stored = stored, .let_go = let_go, .fini = exact_fini,
};

struct op_cas *exact_create(struct engine *e, struct list *list)
{
    struct op_exact *x = cas_create(e, list, &list->exact, sizeof *x, &exact, renew_cas_step);
    arena_init(&x->kept);
    return &x->cas;
}

void exact_add(struct op_cas *cas, struct list_call *call)
{
    struct op_exact *x = (struct op_exact *)cas;
    cas_add(cas, call);
    x->shares = realloc(x->shares, (x->share_count + 1) * sizeof *x->shares);
    CHECK(x->shares != NULL);
    x->shares[x->share_count++] = (struct share){.call = call};
}
