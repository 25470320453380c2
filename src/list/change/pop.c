/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/pop.h"

#include "base/number.h"
#include "list/change/renew.h"
#include "list/content/ends.h"
#include "list/core/answer.h"
#include "list/core/backoff.h"
#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/core/scan.h"
#include "list/read/touch.h"

#define TRIES_MAX 16
/* First pause after a conflict; doubles up to 2^8 times that: 50 ms. */
#define BACKOFF_US 200u
/* Looking a few items up in a sublist takes as long as reading so many. */
#define LOOKUP_ITEMS 64u

enum { TAG_GET = 1, TAG_WRITE };

struct op_pop {
    struct op op;
    struct call_queue calls; /* all want the same end */
    bool back;
    struct head *head;
    struct walk walk;
    struct scan scan;
    struct block *entries; /* the deletions */
    bool sent;             /* they are on their way, or may have been done */
    unsigned tries;
    bool missed_any;
    struct name missed; /* the run of which a sublist was missing last time */
    bool unsure;        /* reading failed: look at the head again */
    char error[LIST_ERROR_MAX];
};

static uint64_t wanted_by(const struct list_call *call)
{
    return call->count < 0 ? 0 - (uint64_t)call->count : (uint64_t)call->count;
}

static void forget_decisions(struct op_pop *p)
{
    struct list_call *call;
    p->entries->used = 0;
    TAILQ_FOREACH(call, &p->calls, link)
    {
        chain_clear(&call->answer);
        call->number = 0;
    }
}

static void fail_all(struct engine *e, struct op_pop *p, const char *text)
{
    struct list_call *call;
    TAILQ_FOREACH(call, &p->calls, link)
    {
        chain_clear(&call->answer);
    }
    calls_fail(e, p->op.list, &p->calls, text);
}

static void finish_all(struct engine *e, struct op_pop *p)
{
    while (!TAILQ_EMPTY(&p->calls)) {
        struct list_call *call = TAILQ_FIRST(&p->calls);
        TAILQ_REMOVE(&p->calls, call, link);
        call_finish(e, p->op.list, call, LIST_OK);
    }
}

/* ---- finding the items ---- */

static uint64_t entries_bytes_most(const struct op_pop *p)
{
    return list_log_hard_limit(p->op.list) / 2;
}

static void begin_walk(struct engine *e, struct op_pop *p)
{
    struct list_call *call;
    uint64_t wanted = 0;
    TAILQ_FOREACH(call, &p->calls, link)
    {
        wanted = u64_sum(wanted, wanted_by(call));
    }
    struct ends *ends = lists_get_ends(&e->lists, p->op.list);
    walk_begin(&p->walk, ends, p->head, p->back, wanted, entries_bytes_most(p));
    p->scan.state = SCAN_END;
}

/* Shows the walk the sublists that decide about what it has gathered. Ends with scan.state. */
static enum progress decide_step(struct engine *e, struct op_pop *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    runs = walk_newer(&p->walk, &count);
    if (count > 0) {
        scan_start(&p->op, &p->scan, runs, count, true, true, walk_kill, &p->walk);
        p->scan.visit_items = LOOKUP_ITEMS + (uint32_t)p->walk.open / 4;
        SCAN_RUN(co, e, &p->op, &p->scan, "looking for deletions in newer runs");
        scan_stop(&p->op, &p->scan);
    }
    runs = walk_older(&p->walk, &count);
    if (p->scan.state == SCAN_END && count > 0) {
        scan_start(&p->op, &p->scan, runs, count, true, true, walk_seek, &p->walk);
        p->scan.visit_items = LOOKUP_ITEMS + (uint32_t)p->walk.open / 4;
        SCAN_RUN(co, e, &p->op, &p->scan, "looking for items in older runs");
        scan_stop(&p->op, &p->scan);
    }
    if (p->scan.state == SCAN_END) {
        walk_decide(&p->walk);
    }
    CO_END(co);
}

/* Ends with scan.state, and the walk at its end when that is SCAN_END. */
static enum progress walk_step(struct engine *e, struct op_pop *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    begin_walk(e, p);
    while (p->scan.state == SCAN_END && walk_next(&p->walk)) {
        if (!p->walk.in_log) {
            scan_start_one(&p->op, &p->scan, walk_run(&p->walk), walk_number(&p->walk), true,
                           walk_open, &p->walk);
            SCAN_RUN(co, e, &p->op, &p->scan, "reading a sublist at the end of the list");
            scan_stop(&p->op, &p->scan);
        }
        while (p->scan.state == SCAN_END && walk_gather(&p->walk)) {
            CO_CALL(co, decide_step(e, p, event));
        }
    }
    CO_END(co);
}

/* The scan ended early. True when all is over with that; else the head is to be read again. */
static bool scan_failed(struct engine *e, struct op_pop *p)
{
    struct list *list = p->op.list;
    if (p->scan.state == SCAN_ERROR) {
        fail_all(e, p, p->scan.error);
        return true;
    }
    /* The head was read again after that and still names the run: names never return, so it is
     * really gone. */
    if (p->missed_any && name_equal(&p->missed, &p->scan.missing.name)) {
        list_report_damage(e, list, &p->scan.missing, p->error);
        if (list->policy->on_damaged == ON_DAMAGED_MISS && p->tries + 1 < TRIES_MAX) {
            return false; /* it is being cleared */
        }
        fail_all(e, p, p->error);
        return true;
    }
    p->missed_any = true;
    p->missed = p->scan.missing.name;
    p->unsure = true;
    return false;
}

/* ---- taking them ---- */

/* Gives the call its share of what was found, from *at on. */
static void give(struct op_pop *p, struct list_call *call, size_t *at)
{
    const struct list *list = p->op.list;
    uint64_t most = entries_bytes_most(p), wanted = wanted_by(call);
    while (*at < p->walk.count && call->number < wanted) {
        struct slice item = p->walk.items[*at];
        bool fits = p->entries->used + entry_bytes(item.len) <= most;
        uint64_t answer = call->answer.bytes + item.len + call->key.len;
        if ((p->entries->used > 0 && !fits) ||
            (call->number > 0 && answer > list->policy->max_answer_bytes)) {
            break;
        }
        entry_append(&p->entries, ENTRY_DEL, item);
        answer_member(list, call, item);
        (*at)++;
    }
}

/* Decides call by call, in their order. Those for which there is no room go back to the queue. */
static void give_all(struct engine *e, struct op_pop *p)
{
    struct call_queue rest;
    struct list_call *call, *next;
    size_t at = 0;
    TAILQ_INIT(&rest);
    forget_decisions(p);
    for (call = TAILQ_FIRST(&p->calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        give(p, call, &at);
        bool none_left = at == p->walk.count && p->walk.exhausted;
        if (call->number == 0 && !none_left) {
            TAILQ_REMOVE(&p->calls, call, link);
            TAILQ_INSERT_TAIL(&rest, call, link);
        }
    }
    calls_give_back(e, p->op.list, &rest);
}

/* True when the deletions find no room behind the head: then the calls wait in the queue for a
 * compaction, until their time is over. */
static bool log_full(struct engine *e, struct op_pop *p)
{
    struct list *list = p->op.list;
    struct list_call *call;
    size_t bytes = p->entries->used;
    if (list_has_room(list, p->head, bytes)) {
        return false;
    }
    if (list->head_full) {
        metric_inc(e->metrics, METRIC_list_log_full);
        fail_all(e, p, "list log full, nothing done: compaction is behind, try again");
        return true;
    }
    forget_decisions(p);
    TAILQ_FOREACH(call, &p->calls, link)
    {
        call->room_bytes = bytes;
    }
    calls_give_back(e, list, &p->calls);
    return true;
}

static void emit_deletions(struct engine *e, struct op_pop *p)
{
    struct slice value = p->head->value;
    struct block *b = block_new(value.len + p->entries->used);
    block_append(&b, value.p, value.len);
    block_append(&b, p->entries->data, p->entries->used);
    emit_cas(e, &p->op, p->head, b, TAG_WRITE);
    block_unref(&b);
}

/* Takes the head's reply; true when the calls are settled by it. */
static bool head_settled(struct engine *e, struct op_pop *p, const struct op_event *event)
{
    enum head_result got = op_take_head(e, &p->op, event, &p->head, p->error);
    if (got == GOT_ERROR) {
        fail_all(e, p, p->error);
    } else if (got != GOT_HEAD) {
        forget_decisions(p);
        finish_all(e, p); /* a missing list has nothing to take */
    }
    return got != GOT_HEAD;
}

/* True when the write's reply settles the calls; else another writer was faster. */
static bool write_settled(struct engine *e, struct op_pop *p, const struct op_event *event)
{
    p->sent = false;
    if (event->status == BE_STORED) {
        list_note_size(p->op.list, p->head->value.len + p->entries->used);
        finish_all(e, p);
        return true;
    }
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND ||
        (event->status == BE_NOT_STORED && p->tries < TRIES_MAX / 2)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    if (event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE ||
        event->status == BE_NOT_STORED) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        fail_all(e, p, "backend out of memory, nothing done");
        return true;
    }
    op_error_text(event, p->error);
    fail_all(e, p, p->error);
    return true;
}

static enum progress pop_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_pop *p = (struct op_pop *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    for (p->tries = 0; p->tries < TRIES_MAX && !TAILQ_EMPTY(&p->calls); p->tries++) {
        if (p->tries > 0 && !p->unsure) {
            CO_SLEEP(op, co, "backing off after a conflict",
                     op_backoff_end_us(e, BACKOFF_US, p->tries));
        }
        walk_fini(&p->walk);
        head_unref(&p->head);
        p->unsure = false;
        emit_get(e, op, TAG_GET);
        CO_AWAIT(co, "reading head");
        if (head_settled(e, p, event)) {
            break;
        }
        CO_CALL(co, walk_step(e, p, event));
        if (p->scan.state != SCAN_END) {
            if (scan_failed(e, p)) {
                break;
            }
            continue;
        }
        give_all(e, p);
        if (p->entries->used == 0) {
            finish_all(e, p); /* the answer holds as of the head's reading */
            break;
        }
        if (log_full(e, p)) {
            break;
        }
        p->sent = true;
        emit_deletions(e, p);
        CO_AWAIT(co, "taking items off");
        if (write_settled(e, p, event)) {
            touch_consider(e, op->list, p->head);
            break;
        }
    }
    if (!TAILQ_EMPTY(&p->calls)) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail_all(e, p, "busy, nothing done: other writers were faster each time");
    }
    renew_consider(e, op->list, false); /* a CAS has renewed it already */
    list_consider_compaction(e, op->list, 0);
    CO_END(co);
}

static enum list_known pop_late(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_pop *p = (struct op_pop *)op;
    TAILQ_REMOVE(&p->calls, call, link);
    if (p->sent) {
        return KNOWN_UNKNOWN;
    }
    if (TAILQ_EMPTY(&p->calls)) {
        op_abort(e, op);
    }
    return KNOWN_NOTHING;
}

static void pop_fini(struct engine *e, struct op *op)
{
    struct op_pop *p = (struct op_pop *)op;
    (void)e;
    scan_stop(op, &p->scan);
    walk_fini(&p->walk);
    head_unref(&p->head);
    block_unref(&p->entries);
}

struct op_pop *pop_create(struct engine *e, struct list *list)
{
    struct op_pop *p = op_create(e, list, sizeof *p, pop_step, pop_fini);
    p->op.late = pop_late;
    TAILQ_INIT(&p->calls);
    p->entries = block_new(BLOCK_BYTES);
    list->exact = &p->op;
    return p;
}

bool pop_takes(const struct op_pop *p, const struct list_call *call)
{
    return TAILQ_EMPTY(&p->calls) || p->back == (call->count < 0);
}

void pop_add(struct op_pop *p, struct list_call *call)
{
    p->back = call->count < 0;
    call_enter(&p->op, &p->calls, call);
}

void pop_start(struct engine *e, struct op_pop *p)
{
    op_start(e, &p->op);
}
