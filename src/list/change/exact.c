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
#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

#define TRIES_MAX 16
/* First pause after a conflict; doubles up to 2^8 times that: 50 ms. */
#define BACKOFF_US 200u

/* How often an ltouch waits for a compaction that gives the list's sublists more time. */
#define WAITS_MAX 8

enum { TAG_GET = 1, TAG_WRITE, TAG_CLOCK };

static void fail_all(struct engine *e, struct op_exact *x, const char *text)
{
    calls_fail(e, x->op.list, &x->calls, text);
}

static struct list_call *only_create(const struct op_exact *x)
{
    struct list_call *call = TAILQ_FIRST(&x->calls);
    return call != NULL && call->verb == LIST_CREATE ? call : NULL;
}

static struct list_call *only_touch(const struct op_exact *x)
{
    struct list_call *call = TAILQ_FIRST(&x->calls);
    return call != NULL && call->verb == LIST_TOUCH ? call : NULL;
}

static void finish_only(struct engine *e, struct op_exact *x, enum list_status status)
{
    struct list_call *call = TAILQ_FIRST(&x->calls);
    TAILQ_REMOVE(&x->calls, call, link);
    call_finish(e, x->op.list, call, status);
}

static void finish_all(struct engine *e, struct op_exact *x)
{
    while (!TAILQ_EMPTY(&x->calls)) {
        struct list_call *call = TAILQ_FIRST(&x->calls);
        TAILQ_REMOVE(&x->calls, call, link);
        call_finish(e, x->op.list, call, call->refused ? LIST_NOT_STORED : LIST_OK);
    }
}

/* on_missing = refuse and there is no list. */
static void refuse_all(struct engine *e, struct op_exact *x)
{
    while (!TAILQ_EMPTY(&x->calls)) {
        struct list_call *call = TAILQ_FIRST(&x->calls);
        TAILQ_REMOVE(&x->calls, call, link);
        call_finish(e, x->op.list, call, exact_adds(call) ? LIST_NOT_STORED : LIST_MISSING);
    }
}

/* at: of its first item. */
static void decide_call(struct op_exact *x, struct list_call *call, size_t at, struct fold *changes)
{
    call->refused = false; /* an earlier try may have met a cap */
    call->number = 0;
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
            entry_append(&x->entries, op, call->items[i]);
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
    struct co *co = &x->op.co;
    CO_BEGIN(co);
    members_fini(&x->members);
    members_init(&x->members, x->items, x->item_count,
                 x->head != NULL ? x->head->read_s : ENTRY_NEVER_OVER);
    x->presence.scan.state = SCAN_END;
    if (x->head != NULL && exact_cap(x).max == 0) {
        members_feed_log(&x->members, x->head->log, x->head->marks.cap);
        if (x->members.unknown > 0) {
            scan_start(&x->op, &x->presence.scan, x->head->runs, x->head->run_count, true, true,
                       members_feed_sublist, &x->members);
            SCAN_RUN(co, e, &x->op, &x->presence.scan, "reading sublists");
            scan_stop(&x->op, &x->presence.scan);
        }
    }
    CO_END(co);
}

/* Looks whether a list that exists holds an item. Ends with presence.scan.state and presence_found.
 * For an ltouch nothing is read where the head alone tells. */
static enum progress count_step(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    struct co *co = &x->op.co;
    CO_BEGIN(co);
    x->head_tells = only_touch(x) != NULL && head_has_items(x->head);
    if (x->head_tells) {
        x->presence.scan.state = SCAN_END;
        CO_RETURN(co);
    }
    CO_CALL(co, presence_step(e, &x->op, &x->presence, x->op.list, x->head, event));
    CO_END(co);
}

/* What was appended to the absent head stands behind the items. */
static void emit_fill(struct engine *e, struct op_exact *x)
{
    struct layout layout;
    layout_init(&layout, x->head);
    layout_fill(&layout);
    struct slice entries = slice_make(x->entries->data, x->entries->used);
    layout.marks.cap = list_policy_cap(x->op.list->policy);
    if (layout.marks.cap.max != 0) {
        struct carry carry = {.grace_s = INT64_MAX};
        (void)layout_carry(&layout, x->head->announcements, &carry);
        capped_fill(&layout.log, layout.marks.cap, entries, x->head->log);
    } else {
        block_append(&layout.log, entries.p, entries.len);
        block_append(&layout.log, x->head->log.p, x->head->log.len);
    }
    struct block *value = layout_value(&layout);
    emit_cas_new(e, &x->op, x->head, value, TAG_WRITE);
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
    struct block *value = block_new(x->entries->used + (x->head != NULL ? x->head->value.len : 32));
    if (x->head == NULL) {
        struct head_marks marks = {.cap = exact_cap(x)};
        head_append_header(&value, &marks, NULL, 0, NULL, 0);
    } else {
        block_append(&value, x->head->value.p, x->head->value.len);
    }
    block_append(&value, x->entries->data, x->entries->used);
    struct list_call *touch = only_touch(x);
    struct life life = touch != NULL ? life_given(x->exptime) : (struct life){0};
    if (x->head == NULL) {
        emit_add_head(e, &x->op, value, TAG_WRITE);
    } else if (touch != NULL) {
        emit_cas_for(e, &x->op, x->head, &life, value, TAG_WRITE);
    } else {
        emit_cas(e, &x->op, x->head, value, TAG_WRITE);
    }
    block_unref(&value);
}

/* The scan ended early. True when all is over with that; else the head is to be read again. */
static bool scan_failed(struct engine *e, struct op_exact *x)
{
    if (x->presence.content.too_large) {
        fail_all(e, x,
                 "list needs more than fold_memory_bytes to be read: compact it with lcompact");
        return true;
    }
    if (x->presence.scan.state == SCAN_ERROR) {
        fail_all(e, x, x->presence.scan.error);
        return true;
    }
    /* The head was read again after that and still names the run: names never return, so it is
     * really gone. */
    if (x->missed_any && name_equal(&x->missed, &x->presence.scan.missing.name)) {
        list_report_damage(e, x->op.list, &x->presence.scan.missing, x->error);
        if (x->op.list->policy->on_damaged == ON_DAMAGED_MISS && x->tries + 1 < TRIES_MAX) {
            return false; /* it is being cleared */
        }
        fail_all(e, x, x->error);
        return true;
    }
    x->missed_any = true;
    x->missed = x->presence.scan.missing.name;
    return false;
}

/* lcreate on a list that exists. True when that settles it. */
static bool create_settled(struct engine *e, struct op_exact *x)
{
    if (!has_items(x)) {
        entry_append(&x->entries, ENTRY_CLEAR, SLICE_NONE);
        return false;
    }
    finish_only(e, x, LIST_NOT_STORED);
    return true;
}

static void append_created_items(struct op_exact *x)
{
    const struct list_call *call = only_create(x);
    for (size_t i = 0; i < call->item_count; i++) {
        entry_append(&x->entries, list_call_adds(call), call->items[i]);
    }
}

/* True when the write's reply settles the calls; else another writer was faster. */
static bool write_settled(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    x->sent = false;
    if (event->status == BE_STORED) {
        if (x->head == NULL || x->fills) {
            metric_inc(e->metrics, METRIC_list_creates);
            x->op.list->has_head = true;
            x->op.list->cap = list_policy_cap(x->op.list->policy);
        }
        if (x->ends_lease) {
            refuse_all(e, x);
            return true;
        }
        list_note_size(x->op.list, (x->head == NULL ? 0 : x->head->value.len) + x->entries->used);
        if (only_touch(x) != NULL && x->head->run_count > 0 &&
            x->head->marks.sublists_until_s == 0) {
            struct life life = life_given(x->exptime);
            list_wish_for_end(e, x->op.list, &life);
        }
        finish_all(e, x);
        return true;
    }
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND ||
        (event->status == BE_NOT_STORED && x->tries < TRIES_MAX / 2)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    if (event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE ||
        event->status == BE_NOT_STORED) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        fail_all(e, x, "backend out of memory, nothing done");
        return true;
    }
    op_error_text(event, x->error);
    fail_all(e, x, x->error);
    return true;
}

/* True when the changes find no room behind the head: then the calls wait in the queue for a
 * compaction, until their time is over. */
static bool log_full(struct engine *e, struct op_exact *x)
{
    struct list_call *call;
    if (x->head == NULL || list_has_room(x->op.list, x->head, x->entries->used)) {
        return false;
    }
    if (x->op.list->head_full) {
        metric_inc(e->metrics, METRIC_list_log_full);
        fail_all(e, x, "list log full, nothing done: compaction is behind, try again");
        return true;
    }
    TAILQ_FOREACH(call, &x->calls, link)
    {
        call->room_bytes = x->entries->used;
    }
    calls_give_back(e, x->op.list, &x->calls);
    return true;
}

/* Takes the head's reply; true when the calls are settled by it. */
static bool head_settled(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    enum head_result got = op_take_head(e, &x->op, event, &x->head, x->error);
    if (got == GOT_ERROR) {
        fail_all(e, x, x->error);
        return true;
    }
    bool missing = got == GOT_NOTHING || got == GOT_ABSENT;
    x->fills = got == GOT_ABSENT && only_create(x) != NULL;
    x->ends_lease = false;
    if (missing && only_touch(x) != NULL) {
        finish_only(e, x, LIST_MISSING);
        return true;
    }
    if (missing && x->op.list->policy->on_missing == ON_MISSING_REFUSE && only_create(x) == NULL) {
        x->ends_lease = got == GOT_ABSENT && x->head->marks.lease != 0;
        if (!x->ends_lease) {
            refuse_all(e, x);
        }
        return !x->ends_lease;
    }
    if (got == GOT_HEAD && only_create(x) != NULL &&
        x->op.list->policy->on_missing == ON_MISSING_REFUSE) {
        finish_only(e, x, LIST_NOT_STORED);
        return true;
    }
    return exact_awaits_cap(e, x);
}

/* Decides what is to be written. True when that is nothing: then the calls are answered. */
static bool decided(struct engine *e, struct op_exact *x)
{
    bool refuse = x->op.list->policy->on_missing == ON_MISSING_REFUSE;
    if (TAILQ_EMPTY(&x->calls)) {
        return true;
    }
    if (only_touch(x) != NULL) {
        bool empty = !has_items(x) && !refuse;
        if (empty) {
            finish_only(e, x, LIST_MISSING);
        }
        return empty;
    }
    if (only_create(x) == NULL) {
        decide_changes(x);
    } else if (x->head != NULL && !x->fills && create_settled(e, x)) {
        return true;
    } else {
        append_created_items(x);
    }
    /* With on_missing = refuse an lcreate without items makes a list, too. */
    bool makes_empty = (x->head == NULL || x->fills) && only_create(x) != NULL && refuse;
    if (x->entries->used == 0 && !makes_empty) {
        finish_all(e, x);
        return true;
    }
    return false;
}

/* The ltouch waits in the queue until the sublists live so long: a compaction writes them anew. */
static void wait_for_sublists(struct engine *e, struct op_exact *x, int64_t until_s)
{
    struct list *list = x->op.list;
    struct list_call *call = only_touch(x);
    if (call->number++ == WAITS_MAX) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail_all(e, x, "busy, nothing done: the list's sublists could not be given more time");
        return;
    }
    list->wanted_until_s = until_s;
    list->wanted_by_us = call->deadline_us != 0 ? call->deadline_us : UINT64_MAX;
    calls_give_back(e, list, &x->calls);
    lists_wish(&e->lists, list, WISH_COMPACT, NULL);
}

/* Turns the EXPTIME of an ltouch into a second of the server's clock that the sublists reach. */
static void take_clock(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    if (TAILQ_EMPTY(&x->calls)) {
        return;
    }
    if (event->status != BE_HIT && event->status != BE_MISS) {
        op_error_text(event, x->error);
        fail_all(e, x, x->error);
        return;
    }
    int64_t now_s = (int64_t)event->reply->number;
    x->exptime += x->exptime <= EXPTIME_RELATIVE_MAX_S ? now_s : 0;
    if (x->exptime > x->head->marks.sublists_until_s) {
        wait_for_sublists(e, x, x->exptime);
    }
}

/* The end of its transaction takes a round trip as a rule. */
static bool must_wait(struct op_exact *x)
{
    struct life life = life_given(x->exptime);
    x->is_primary = life_must_wait(&life, x->head);
    return x->is_primary;
}

/* An ltouch: a list whose sublists end does not outlive them. Ends without calls when it has to
 * wait for that, with is_primary, or with x->exptime. */
static enum progress reach_step(struct engine *e, struct op_exact *x, const struct op_event *event)
{
    struct co *co = &x->op.co;
    CO_BEGIN(co);
    x->exptime = only_touch(x)->exptime;
    x->op.list->wanted_until_s = 0;
    if (must_wait(x)) {
        CO_RETURN(co);
    }
    if (x->head->marks.sublists_until_s == 0 || x->exptime < 0) {
        CO_RETURN(co);
    }
    if (x->exptime == 0) {
        wait_for_sublists(e, x, INT64_MAX);
        CO_RETURN(co);
    }
    expiry_look(e, &x->op, TAG_CLOCK);
    CO_AWAIT(co, "reading the server's clock for a time to live");
    take_clock(e, x, event);
    CO_END(co);
}

static enum progress exact_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_exact *x = (struct op_exact *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    for (x->tries = 0; x->tries < TRIES_MAX && !TAILQ_EMPTY(&x->calls); x->tries++) {
        if (x->tries > 0 && !x->unsure) {
            CO_SLEEP(op, co, "backing off after a conflict",
                     op_backoff_end_us(e, BACKOFF_US, x->tries));
        }
        head_unref(&x->head);
        x->entries->used = 0;
        x->unsure = false;
        emit_get(e, op, TAG_GET);
        CO_AWAIT(co, "reading head");
        if (head_settled(e, x, event)) {
            break;
        }
        if (x->ends_lease) {
            x->sent = true;
            lease_emit_end(e, op, x->head, TAG_WRITE);
            CO_AWAIT(co, "ending a lease");
            if (write_settled(e, x, event)) {
                break;
            }
            continue;
        }
        if (only_create(x) == NULL && only_touch(x) == NULL) {
            CO_CALL(co, members_step(e, x, event));
        } else if (x->head != NULL && !x->fills) {
            CO_CALL(co, count_step(e, x, event));
        } else {
            x->presence.scan.state = SCAN_END;
        }
        if (x->presence.scan.state != SCAN_END || x->presence.content.too_large) {
            if (scan_failed(e, x)) {
                break;
            }
            x->unsure = x->error[0] == '\0';
            continue;
        }
        if (decided(e, x) || log_full(e, x)) {
            break; /* where nothing changes, the answer holds as of the head's reading */
        }
        if (only_touch(x) != NULL) {
            CO_CALL(co, reach_step(e, x, event));
        }
        if (TAILQ_EMPTY(&x->calls)) {
            break;
        }
        if (x->is_primary) {
            continue;
        }
        x->sent = true;
        emit_change(e, x);
        CO_AWAIT(co, "writing exact change");
        if (write_settled(e, x, event)) {
            break;
        }
    }
    if (!TAILQ_EMPTY(&x->calls)) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail_all(e, x,
                 x->is_primary ? LIFE_BUSY_TEXT
                               : "busy, nothing done: other writers were faster each time");
    }
    renew_consider(e, op->list, false); /* a CAS has renewed it already */
    list_consider_compaction(e, op->list, 0);
    CO_END(co);
}

static enum list_known exact_late(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_exact *x = (struct op_exact *)op;
    exact_forget(x, call);
    TAILQ_REMOVE(&x->calls, call, link);
    if (x->sent) {
        return KNOWN_UNKNOWN;
    }
    if (TAILQ_EMPTY(&x->calls)) {
        op_abort(e, op);
    }
    return KNOWN_NOTHING;
}

static void exact_fini(struct engine *e, struct op *op)
{
    struct op_exact *x = (struct op_exact *)op;
    (void)e;
    presence_fini(op, &x->presence);
    members_fini(&x->members);
    head_unref(&x->head);
    block_unref(&x->entries);
    free(x->items);
    free(x->shares);
    arena_fini(&x->kept);
}

struct op_exact *exact_create(struct engine *e, struct list *list)
{
    struct op_exact *x = op_create(e, list, sizeof *x, exact_step, exact_fini);
    x->op.late = exact_late;
    arena_init(&x->kept);
    TAILQ_INIT(&x->calls);
    x->entries = block_new(BLOCK_BYTES);
    list->exact = &x->op;
    return x;
}

void exact_add(struct op_exact *x, struct list_call *call)
{
    call_enter(&x->op, &x->calls, call);
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

void exact_start(struct engine *e, struct op_exact *exact)
{
    op_start(e, &exact->op);
}
