/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/exact_op.h"

#include <stdlib.h>

#include "base/arena.h"
#include "list/change/capped.h"
#include "list/change/lease.h"
#include "list/change/presence.h"
#include "list/change/renew.h"
#include "list/content/members.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

/* How often an ltouch waits for a compaction that gives the list's sublists more time. */
#define WAITS_MAX 8

enum { TAG_CLOCK = TAG_CAS_OWN };

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
        call_finish(e, x->cas.op.list, call, exact_adds(call) ? LIST_NOT_STORED : LIST_MISSING);
    }
}

/* at: of its first item. */
static void decide_call(struct op_exact *x, struct list_call *call, size_t at, struct fold *changes)
{
    for (size_t i = 0; i < call->item_count; i++) {
        bool deletes = call->verb == LIST_DELX || list_call_deletes(call, i);
        enum entry_op op = deletes ? ENTRY_DEL : list_call_adds(call);
        char outcome = fold_outcome(changes, call->items[i]);
        bool in = outcome != 0 ? outcome != ENTRY_DEL : members_has(&x->members, at + i);
        call->number += in == deletes;
        /* One with a time gets none; one that is over here may be in for another proxy. */
        bool timed = outcome == 0 && members_is_timed(&x->members, at + i);
        if (in == deletes || op == ENTRY_READD || timed) {
            fold_apply(changes, op, call->items[i]);
            entry_append(&x->cas.entries, op, call->items[i]);
        }
    }
}

/* Decides call by call, each on top of those before it. */
static void decide_changes(struct op_exact *x)
{
    if (exact_cap(x).max != 0) {
        exact_decide_capped(x);
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

/* Finds out which of the items are in the list. Ends with scan.state. */
static enum progress members_step(struct engine *e, struct op_exact *x,
                                  const struct op_event *event)
{
    struct co *co = &x->cas.op.co;
    CO_BEGIN(co);
    members_fini(&x->members);
    members_init(&x->members, x->items, x->item_count,
                 x->cas.head != NULL ? x->cas.head->read_s : ENTRY_NEVER_OVER);
    x->presence.scan.state = SCAN_END;
    if (x->cas.head != NULL && exact_cap(x).max == 0) {
        members_feed_log(&x->members, x->cas.head->log, x->cas.head->marks.cap);
        if (x->members.unknown > 0) {
            scan_start(&x->cas.op, &x->presence.scan, x->cas.head->runs, x->cas.head->run_count,
                       true, true, members_feed_sublist, &x->members);
            SCAN_RUN(co, e, &x->cas.op, &x->presence.scan, "reading sublists");
            scan_stop(&x->cas.op, &x->presence.scan);
        }
    }
    CO_END(co);
}

/* Looks whether a list that exists holds an item. Ends with presence.scan.state and presence_found.
 * For an ltouch nothing is read where the head alone tells. */
static enum progress count_step(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    struct co *co = &x->cas.op.co;
    CO_BEGIN(co);
    x->head_tells = only_touch(x) != NULL && head_has_items(x->cas.head);
    if (x->head_tells) {
        x->presence.scan.state = SCAN_END;
        CO_RETURN(co);
    }
    CO_CALL(co, presence_step(e, &x->cas.op, &x->presence, x->cas.op.list, x->cas.head, event));
    CO_END(co);
}

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
    return x->head_tells || presence_found(&x->presence);
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
        struct head_marks marks = {.cap = exact_cap(x)};
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

/* The scan ended early. */
static void scan_failed(struct engine *e, struct op_exact *x)
{
    x->cas.decision = CAS_ENDS;
    if (x->presence.content.too_large) {
        cas_fail(e, &x->cas,
                 "list needs more than fold_memory_bytes to be read: compact it with lcompact");
    } else if (x->presence.scan.state == SCAN_ERROR) {
        cas_fail(e, &x->cas, x->presence.scan.error);
    } else {
        cas_miss(e, &x->cas, &x->presence.scan.missing);
    }
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
    return exact_awaits_cap(e, x);
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

/* Reads what the head does not tell. Ends with presence.scan.state, and content.too_large. */
static enum progress look_step(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    struct co *co = &x->cas.op.co;
    CO_BEGIN(co);
    if (only_create(x) == NULL && only_touch(x) == NULL) {
        CO_CALL(co, members_step(e, x, event));
    } else if (x->cas.head != NULL && !x->fills) {
        CO_CALL(co, count_step(e, x, event));
    } else {
        x->presence.scan.state = SCAN_END;
    }
    CO_END(co);
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
    CO_CALL(co, look_step(e, x, event));
    if (x->presence.scan.state != SCAN_END || x->presence.content.too_large) {
        scan_failed(e, x);
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

static enum progress exact_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct co *co = &op->co;
    CO_BEGIN(co);
    CO_CALL(co, cas_step(e, (struct op_cas *)op, event));
    renew_consider(e, op->list, false); /* a CAS has renewed it already */
    list_consider_compaction(e, op->list, 0);
    CO_END(co);
}

static void exact_fini(struct engine *e, struct op_cas *cas)
{
    struct op_exact *x = (struct op_exact *)cas;
    (void)e;
    presence_fini(&cas->op, &x->presence);
    members_fini(&x->members);
    free(x->items);
    free(x->shares);
    arena_fini(&x->kept);
}

static const struct cas_kind exact = {
    .reading = "reading head",
    .pausing = "backing off after a conflict",
    .tries_max = CAS_TRIES_MAX,
    .pause_us = CAS_PAUSE_US,
    .decide = decide,
    .stored = stored,
    .let_go = exact_let_go,
    .fini = exact_fini,
};

struct op_exact *exact_create(struct engine *e, struct list *list)
{
    struct op_exact *x = cas_create(e, list, &list->exact, sizeof *x, &exact, exact_step);
    arena_init(&x->kept);
    return x;
}

void exact_add(struct op_exact *x, struct list_call *call)
{
    cas_add(&x->cas, call);
    x->shares = realloc(x->shares, (x->share_count + 1) * sizeof *x->shares);
    CHECK(x->shares != NULL);
    x->shares[x->share_count++] = (struct share){call, call->item_count};
    x->items = realloc(x->items, (x->item_count + call->item_count + 1) * sizeof *x->items);
    CHECK(x->items != NULL);
    if (call->item_count > 0) {
        memcpy(x->items + x->item_count, call->items, call->item_count * sizeof *x->items);
    }
    x->item_count += call->item_count;
}

void exact_start(struct engine *e, struct op_exact *x)
{
    op_start(e, &x->cas.op);
}
