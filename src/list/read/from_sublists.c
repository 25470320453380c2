/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/from_sublists.h"

#include <stdio.h>

#include "list/content/content.h"
#include "list/content/members.h"
#include "list/core/answer.h"
#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/core/scan.h"
#include "list/read/pick.h"
#include "list/read/touch.h"

/* A read meets a missing sublist when a merge was faster; so many merges do not happen during one
 * read. */
#define TRIES_MAX 10
/* First pause while a damaged list is cleared (on_damaged = miss); doubles each time: half a second
 * in all. */
#define CLEAR_POLL_US 500u

/* Sublists of which lstat looks whether they are cached or stored: more than any list of a cache
 * has. */
#define STAT_LOOKS_MAX 100000u
/* Of these looks, requests to servers under way at a time. */
#define STAT_WINDOW 8

enum { TAG_GET = 1 };

struct op_read {
    struct op op;
    struct list_call *call;
    struct head *head;
    unsigned tries;
    struct name_range missed; /* by the attempt before, if any */
    struct scan scan;
    struct members members;
    struct content content;
    bool content_ready;
    struct pick pick;
    bool counted_by_head; /* no sublist was read for the number of items */
    size_t look_run;      /* lstat: the place in the runs up to which it has looked */
    uint32_t look_number;
    uint64_t looks;
    bool answered;
    char damage[LIST_ERROR_MAX]; /* on_damaged = miss: what is being cleared, or "" */
};

static void answer(struct engine *e, struct op_read *r, enum list_status status)
{
    r->answered = true;
    answer_call(e, r->op.list, r->call, r->head, status);
}

static void fail(struct engine *e, struct op_read *r, const char *text)
{
    r->answered = true;
    call_fail(e, r->op.list, r->call, "%s", text);
}

/* The list cannot be read, whatever its servers do. */
static void fail_unreadable(struct engine *e, struct op_read *r, const char *text)
{
    if (r->call->inner != NULL) {
        r->call->inner->unreadable = true;
    }
    fail(e, r, text);
}

/* The scan ended on a missing sublist or an error. True when the read is over with that. */
static bool scan_failed(struct engine *e, struct op_read *r)
{
    if (r->scan.state == SCAN_ERROR) {
        fail(e, r, r->scan.error);
        return true;
    }
    if (r->scan.state == SCAN_MISSING) {
        /* The head was read again after the first time and still names it: it is really gone. */
        if (name_equal(&r->missed.name, &r->scan.missing.name)) {
            list_report_damage(e, r->op.list, &r->scan.missing, r->damage);
            if (r->op.list->policy->on_damaged == ON_DAMAGED_ERROR) {
                fail_unreadable(e, r, r->damage);
                return true;
            }
            /* A miss is answered when the head says so: then what a client puts in the list's place
             * stays. */
            return false;
        }
        r->missed = r->scan.missing;
        r->op.list->suspect = r->missed.name;
    }
    return false;
}

static void answer_members(struct engine *e, struct list *list, struct list_call *call,
                           const struct head *head, const struct members *members)
{
    if (call->verb == LIST_TTL) {
        answer_item_time(e, list, call, head, members_has(members, 0), members->until_s);
        return;
    }
    if (call->inner != NULL) {
        memcpy(call->inner->members->verdict, members->verdict, members->count);
    }
    for (size_t i = 0; call->inner == NULL && i < members->count; i++) {
        if (members_has(members, i)) {
            answer_member(list, call, call->items[i]);
        }
    }
    answer_call(e, list, call, head, call->number > 0 ? LIST_OK : LIST_MISSING);
}

/* lhas, and lttl of an item. */
static bool asks_for_items(const struct list_call *call)
{
    return call->verb == LIST_HAS || (call->verb == LIST_TTL && call->item_count > 0);
}

/* The same: ends with the call answered, or with scan.state = SCAN_MISSING. */
static enum progress has_step(struct engine *e, struct op_read *r, const struct op_event *event)
{
    struct co *co = &r->op.co;
    CO_BEGIN(co);
    members_init(&r->members, r->call->items, r->call->item_count, r->head->read_s);
    members_feed_log(&r->members, r->head->log, r->head->marks.cap);
    r->scan.state = SCAN_END;
    if (r->members.unknown > 0) {
        scan_start(&r->op, &r->scan, r->head->runs, r->head->run_count, true, true,
                   members_feed_sublist, &r->members);
        SCAN_RUN(co, e, &r->op, &r->scan, "reading sublists");
        scan_stop(&r->op, &r->scan);
    }
    if (r->scan.state == SCAN_END) {
        r->answered = true;
        answer_members(e, r->op.list, r->call, r->head, &r->members);
    }
    members_fini(&r->members);
    CO_END(co);
}

/* One pass over the oldest run and what follows it; backwards the other way round. */
static enum progress pass_step(struct engine *e, struct op_read *r, const struct op_event *event)
{
    struct co *co = &r->op.co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    output_rewind(&r->content.output);
    if (r->content.backwards) {
        content_rest(&r->content);
    }
    runs = content_base_run(&r->content, &count);
    count = output_satisfied(&r->content.output) ? 0 : count;
    scan_start(&r->op, &r->scan, runs, count, false, true, content_base_visit, &r->content);
    r->scan.backwards = r->content.backwards;
    SCAN_RUN(co, e, &r->op, &r->scan, "reading the oldest run");
    scan_stop(&r->op, &r->scan);
    if (r->scan.state == SCAN_END && !r->content.backwards) {
        content_rest(&r->content);
    }
    CO_END(co);
}

/* Those that the read has met undecided, and those that this list has to keep as their primary. */
static void fill_transactions(struct engine *e, struct list_stat *stat, const struct head *head)
{
    int64_t oldest_s = head->met.oldest_s;
    stat->transactions_waiting = head->met.waiting;
    stat->transactions_pending = head->met.pending;
    for (size_t i = 0; i < head->intent_count; i++) {
        const struct head_intent *intent = &head->intents[i];
        if (intent->state == INTENT_COMMITTED && intent->primary && !intent->done) {
            stat->transactions_committed++;
            oldest_s = oldest_s == 0 || intent->created_s < oldest_s ? intent->created_s : oldest_s;
        }
    }
    bool past = oldest_s != 0 && oldest_s < e->now.wall_s;
    stat->transaction_age_s = past ? e->now.wall_s - oldest_s : 0;
}

static void fill_stat(struct engine *e, struct op_read *r)
{
    struct list_stat *stat = &r->call->stat;
    const struct head *head = r->head;
    struct slice log = head_raw_log(head);
    struct entry entry;
    fill_transactions(e, stat, head);
    while (entry_next(&log, &entry) == ENTRY_OK) {
        stat->log_entries++;
        stat->announcements += entry.op == ENTRY_ANNOUNCE;
    }
    stat->items = r->call->number;
    stat->log_bytes = head->raw_log_bytes;
    stat->runs = head->run_count;
    stat->sublists = head_sublists(head);
    stat->sublist_bytes = head_run_bytes(head);
    for (size_t i = 0; i < head->garbage_count; i++) {
        stat->garbage_names += head->garbage[i].count;
    }
    stat->timed = head_is_timed(head);
    stat->head_cas = head->cas;
    stat->ttl_s = head->ttl_s;
    stat->head_server = r->op.list->head_server;
    /* A header of some kilobytes may name billions. */
    uint64_t looks = 0;
    for (size_t i = 0; i < head->run_count; i++) {
        for (uint32_t n = 0; n < head->runs[i].range.count && looks < STAT_LOOKS_MAX;
             n++, looks++) {
            char key[KEY_BYTES_MAX];
            uint8_t len = sublist_key(key, list_key(r->op.list), &head->runs[i].range.name, n);
            stat->cached += cache_has(engine_cache(e, r->op.list), slice_make(key, len));
        }
    }
}

static void finish_content(struct engine *e, struct op_read *r)
{
    struct list_call *call = r->call;
    r->answered = true;
    if (list_verb_has(call->verb, LIST_PICKS)) {
        pick_finish(e, &r->pick, r->head);
        return;
    }
    if (list_verb_has(call->verb, LIST_GIVES_ITEMS)) {
        answer_content(e, r->op.list, call, r->head, &r->content.output);
        return;
    }
    call->number = r->content.output.position;
    if (call->verb == LIST_STAT) {
        fill_stat(e, r);
    } else if (call->verb == LIST_TTL) {
        call->stat.ttl_s = r->head->ttl_s;
    }
    answer_call(e, r->op.list, call, r->head, LIST_OK);
}

/* Is the number of items needed before the pass that answers? */
static bool needs_count(const struct list_call *call)
{
    return list_verb_has(call->verb, LIST_COUNTS) ||
           (list_verb_has(call->verb, LIST_RANGES) && (call->from < 0 || call->to < 0));
}

/* The newest items are those of the overlay that have no older place. */
static bool needs_places(const struct op_read *r)
{
    return list_verb_has(r->call->verb, LIST_FROM_NEWEST | LIST_AHEAD) &&
           content_needs_places(&r->content);
}

/* Asks for the next sublists that are not cached; true while answers are to come. */
static bool look_more(struct engine *e, struct op_read *r)
{
    const struct content *c = &r->content;
    while (r->scan.state == SCAN_END && r->look_run < c->run_count && r->looks < STAT_LOOKS_MAX &&
           r->op.due < STAT_WINDOW) {
        const struct name_range *range = &c->runs[r->look_run].range;
        if (r->look_number == range->count) {
            r->look_run++;
            r->look_number = 0;
            continue;
        }
        char key[KEY_BYTES_MAX];
        uint8_t len = sublist_key(key, list_key(r->op.list), &range->name, r->look_number);
        if (!cache_has(engine_cache(e, r->op.list), slice_make(key, len))) {
            emit_probe_sublist(e, &r->op, &range->name, r->look_number,
                               (uint64_t)r->look_run << 32 | r->look_number);
        }
        r->look_number++;
        r->looks++;
    }
    return r->op.due > 0;
}

static void take_look(struct op_read *r, const struct op_event *event)
{
    if (event->status == BE_HIT || r->scan.state != SCAN_END) {
        return;
    }
    if (event->status == BE_MISS) {
        const struct run *run = &r->content.runs[event->tag >> 32];
        r->scan.state = SCAN_MISSING;
        r->scan.missing = (struct name_range){run->range.name, (uint32_t)event->tag};
        return;
    }
    r->scan.state = SCAN_ERROR;
    snprintf(r->scan.error, sizeof r->scan.error, "%s",
             event->text != NULL ? event->text : "backend refused a read");
}

/* lstat that was counted by the head: are its sublists there? Ends with scan.state. */
static enum progress look_step(struct engine *e, struct op_read *r, const struct op_event *event)
{
    struct co *co = &r->op.co;
    CO_BEGIN(co);
    r->scan.state = SCAN_END;
    r->look_run = 0;
    r->look_number = 0;
    r->looks = 0;
    while (look_more(e, r)) {
        CO_AWAIT(co, "looking for sublists");
        take_look(r, event);
    }
    CO_END(co);
}

/* Was one of its sublists missing lately? Then the head is not believed without a look. */
static bool is_suspect(const struct op_read *r)
{
    for (size_t i = 0; i < r->content.run_count; i++) {
        if (name_equal(&r->content.runs[i].range.name, &r->op.list->suspect)) {
            return true;
        }
    }
    return false;
}

/* Counts the items when the answer needs that, by the head alone if it says enough, and finds out
 * which of them stand behind the oldest run. Ends with scan.state. */
static enum progress count_step(struct engine *e, struct op_read *r, const struct op_event *event)
{
    struct co *co = &r->op.co;
    struct content *c = &r->content;
    CO_BEGIN(co);
    r->counted_by_head = false;
    if (!needs_count(r->call) && !needs_places(r)) {
        CO_RETURN(co);
    }
    r->counted_by_head = !is_suspect(r) && content_known_count(c, &c->output.position);
    if (!r->counted_by_head) {
        CO_CALL(co, pass_step(e, r, event));
    } else if (r->call->verb == LIST_STAT) {
        CO_CALL(co, look_step(e, r, event));
    }
    CO_END(co);
}

/* llen, lget, lrange, lstat: ends with the call answered, or with scan.state = SCAN_MISSING or
 * SCAN_ERROR. */
static enum progress content_step(struct engine *e, struct op_read *r, const struct op_event *event)
{
    struct co *co = &r->op.co;
    struct content *c = &r->content;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    content_init(c, r->head, r->op.list->policy);
    r->content_ready = true;
    runs = content_overlay_runs(c, &count);
    scan_start(&r->op, &r->scan, runs, count, false, true, content_fold_visit, c);
    SCAN_RUN(co, e, &r->op, &r->scan, "reading newer runs");
    scan_stop(&r->op, &r->scan);
    if (c->too_large) {
        fail_unreadable(
            e, r, "list needs more than fold_memory_bytes to be read: compact it with lcompact");
    } else if (r->scan.state == SCAN_END) {
        content_fold_log(c, r->head->log);
        CO_CALL(co, count_step(e, r, event));
    }
    if (r->answered || r->scan.state != SCAN_END) {
        CO_RETURN(co);
    }
    if (list_verb_has(r->call->verb, LIST_RANGES) && needs_count(r->call)) {
        if (!answer_range(r->call, c->output.position, &c->output)) {
            if (r->counted_by_head) {
                CO_CALL(co, pass_step(e, r, event)); /* nothing is an answer of a whole list too */
                if (r->scan.state != SCAN_END) {
                    CO_RETURN(co);
                }
            }
            c->output.written = 0;
            finish_content(e, r);
            CO_RETURN(co);
        }
    } else if (list_verb_has(r->call->verb, LIST_RANGES)) {
        if (!answer_range(r->call, INT64_MAX, &c->output)) {
            finish_content(e, r);
            CO_RETURN(co);
        }
    }
    if (list_verb_has(r->call->verb, LIST_GIVES_ITEMS)) {
        answer_begin(r->op.list, r->call, &c->output);
        if (list_verb_has(r->call->verb, LIST_PICKS)) {
            pick_begin(&r->pick, r->op.list, r->call, e->rng, &c->output);
        }
        c->backwards = list_verb_has(r->call->verb, LIST_FROM_NEWEST | LIST_AHEAD);
        CO_CALL(co, pass_step(e, r, event));
        if (r->scan.state != SCAN_END) {
            CO_RETURN(co);
        }
    }
    finish_content(e, r);
    CO_END(co);
}

/* Back to the state before anything was read from this head. */
static void forget_attempt(struct op_read *r)
{
    if (r->content_ready) {
        content_fini(&r->content);
        r->content_ready = false;
    }
    chain_clear(&r->call->answer);
    r->call->number = 0;
    head_unref(&r->head);
}

/* Does a change wait for the read that holds back the clearing of a damaged list? */
static bool holds_back_clearing(const struct op_read *r)
{
    return r->call->inner->op == r->op.list->exact;
}

/* A newer head was read for a read that is pinned to an older one: what was missing has been
 * compacted away, or the list is damaged. True when the read is over. */
static bool unpinned(struct engine *e, struct op_read *r)
{
    if (r->head == NULL || !head_names_run(r->head, &r->missed.name)) {
        answer(e, r, LIST_EXISTS);
        return true;
    }
    list_report_damage(e, r->op.list, &r->missed, r->damage);
    if (r->op.list->policy->on_damaged == ON_DAMAGED_ERROR || holds_back_clearing(r)) {
        fail_unreadable(e, r, r->damage);
    }
    return r->answered;
}

static enum progress read_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_read *r = (struct op_read *)op;
    struct co *co = &op->co;
    enum head_result got;
    char error[LIST_ERROR_MAX];

    CO_BEGIN(co);
    for (r->tries = 0; r->tries < TRIES_MAX; r->tries++) {
        if (r->damage[0] != '\0') {
            CO_SLEEP(op, co, "waiting for a damaged list to be cleared",
                     e->now.mono_us + (CLEAR_POLL_US << r->tries));
        }
        if (r->tries > 0) {
            forget_attempt(r);
            emit_get(e, op, TAG_GET);
            CO_AWAIT(co, "reading head again");
            got = op_take_head(e, op, event, &r->head, error);
            if (got == GOT_ERROR) {
                fail(e, r, error);
                CO_RETURN(co);
            }
            if (got == GOT_ABSENT) {
                head_unref(&r->head);
            }
            if (inner_is_pinned(r->call)) {
                if (unpinned(e, r)) {
                    CO_RETURN(co);
                }
                continue;
            }
        }
        if (r->head == NULL) {
            answer(e, r, LIST_MISSING);
            CO_RETURN(co);
        }
        if (asks_for_items(r->call)) {
            CO_CALL(co, has_step(e, r, event));
        } else {
            CO_CALL(co, content_step(e, r, event));
        }
        if (r->answered || scan_failed(e, r)) {
            break;
        }
    }
    if (!r->answered && r->damage[0] != '\0') {
        fail_unreadable(e, r, r->damage);
    } else if (!r->answered) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail(e, r, "busy: the list's runs change faster than they can be read");
    }
    if (r->head != NULL && r->scan.all_cached) {
        touch_consider(e, op->list, r->head);
    }
    CO_END(co);
}

static enum list_known read_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    (void)call;
    op_abort(e, op);
    return KNOWN_NOTHING;
}

static void read_fini(struct engine *e, struct op *op)
{
    struct op_read *r = (struct op_read *)op;
    (void)e;
    scan_stop(op, &r->scan);
    pick_fini(&r->pick);
    members_fini(&r->members);
    if (r->content_ready) {
        content_fini(&r->content);
    }
    head_unref(&r->head);
}

/* The head says it all: no operation is needed. */
static void has_at_once(struct engine *e, struct list *list, struct list_call *call,
                        const struct head *head)
{
    struct members members;
    members_init(&members, call->items, call->item_count, head->read_s);
    members_feed_log(&members, head->log, head->marks.cap);
    answer_members(e, list, call, head, &members);
    members_fini(&members);
}

void read_start(struct engine *e, struct list *list, struct list_call *call, struct head *head)
{
    if (head == NULL) {
        answer_call(e, list, call, NULL, LIST_MISSING);
        return;
    }
    if (call->verb == LIST_TTL && call->item_count == 0 &&
        (list->policy->on_missing == ON_MISSING_REFUSE || head_has_items(head))) {
        call->stat.ttl_s = head->ttl_s;
        call->number = 1;
        answer_call(e, list, call, head, LIST_OK);
        return;
    }
    if (asks_for_items(call) && head->run_count == 0) {
        has_at_once(e, list, call, head);
        return;
    }
    struct op_read *r = op_create(e, list, sizeof *r, read_step, read_fini);
    r->op.let_go = read_let_go;
    r->call = call;
    call->op = &r->op;
    r->head = head_ref(head);
    op_run(e, &r->op);
}

struct head *reads_take(struct call_queue *calls, struct list_call *call)
{
    struct head *head = call->head;
    TAILQ_REMOVE(calls, call, link);
    call->head = NULL;
    return head;
}

void reads_drop(struct call_queue *calls, struct list_call *call)
{
    struct head *head = reads_take(calls, call);
    head_unref(&head);
}

void reads_start(struct engine *e, struct list *list, struct call_queue *calls)
{
    while (!TAILQ_EMPTY(calls)) {
        struct list_call *call = TAILQ_FIRST(calls);
        struct head *head = reads_take(calls, call);
        read_start(e, list, call, head);
        head_unref(&head);
    }
}
