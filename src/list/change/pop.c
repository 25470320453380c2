/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/pop.h"

#include "base/number.h"
#include "list/change/cas.h"
#include "list/change/renew.h"
#include "list/content/ends.h"
#include "list/core/answer.h"
#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/core/scan.h"
#include "list/read/touch.h"

/* Looking a few items up in a sublist takes as long as reading so many. */
#define LOOKUP_ITEMS 64u

struct op_pop {
    struct op_cas cas; /* its calls want the same end */
    bool back;
    struct walk walk;
    struct scan scan;
    bool missed_any;
    struct name missed; /* the run of which a sublist was missing last time */
};

static uint64_t wanted_by(const struct list_call *call)
{
    return call->count < 0 ? 0 - (uint64_t)call->count : (uint64_t)call->count;
}

/* ---- finding the items ---- */

static uint64_t entries_bytes_most(const struct op_pop *p)
{
    return list_log_hard_limit(p->cas.op.list) / 2;
}

static void begin_walk(struct engine *e, struct op_pop *p)
{
    struct list_call *call;
    uint64_t wanted = 0;
    TAILQ_FOREACH(call, &p->cas.calls, link)
    {
        wanted = u64_sum(wanted, wanted_by(call));
    }
    struct ends *ends = lists_get_ends(&e->lists, p->cas.op.list);
    walk_begin(&p->walk, ends, p->cas.head, p->back, wanted, entries_bytes_most(p));
    p->scan.state = SCAN_END;
}

/* Shows the walk the sublists that decide about what it has gathered. Ends with scan.state. */
static enum progress decide_step(struct engine *e, struct op_pop *p, const struct op_event *event)
{
    struct co *co = &p->cas.op.co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    runs = walk_newer(&p->walk, &count);
    if (count > 0) {
        scan_start(&p->cas.op, &p->scan, runs, count, true, true, walk_kill, &p->walk);
        p->scan.visit_items = LOOKUP_ITEMS + (uint32_t)p->walk.open / 4;
        SCAN_RUN(co, e, &p->cas.op, &p->scan, "looking for deletions in newer runs");
        scan_stop(&p->cas.op, &p->scan);
    }
    runs = walk_older(&p->walk, &count);
    if (p->scan.state == SCAN_END && count > 0) {
        scan_start(&p->cas.op, &p->scan, runs, count, true, true, walk_seek, &p->walk);
        p->scan.visit_items = LOOKUP_ITEMS + (uint32_t)p->walk.open / 4;
        SCAN_RUN(co, e, &p->cas.op, &p->scan, "looking for items in older runs");
        scan_stop(&p->cas.op, &p->scan);
    }
    if (p->scan.state == SCAN_END) {
        walk_decide(&p->walk);
    }
    CO_END(co);
}

/* Ends with scan.state, and the walk at its end when that is SCAN_END. */
static enum progress walk_step(struct engine *e, struct op_pop *p, const struct op_event *event)
{
    struct co *co = &p->cas.op.co;
    CO_BEGIN(co);
    begin_walk(e, p);
    while (p->scan.state == SCAN_END && walk_next(&p->walk)) {
        if (!p->walk.in_log) {
            scan_start_one(&p->cas.op, &p->scan, walk_run(&p->walk), walk_number(&p->walk), true,
                           walk_open, &p->walk);
            SCAN_RUN(co, e, &p->cas.op, &p->scan, "reading a sublist at the end of the list");
            scan_stop(&p->cas.op, &p->scan);
        }
        while (p->scan.state == SCAN_END && walk_gather(&p->walk)) {
            CO_CALL(co, decide_step(e, p, event));
        }
    }
    CO_END(co);
}

/* A sublist that the head names was missing: decides to look again, or the calls fail since the
 * list is damaged. */
static void note_missing(struct engine *e, struct op_pop *p)
{
    struct op_cas *cas = &p->cas;
    const struct name_range *missing = &p->scan.missing;
    bool again = p->missed_any && name_equal(&p->missed, &missing->name);
    cas->decision = CAS_AT_ONCE;
    p->missed_any = true;
    p->missed = missing->name;
    if (!again) {
        return;
    }
    /* The head was read again after that and still names the run: names never return, so it is
     * really gone. Where the list is to be cleared, that waits for this operation. */
    list_report_damage(e, cas->op.list, missing, cas->error);
    cas->decision = CAS_ENDS;
    cas_fail(e, cas, cas->error);
}

/* ---- taking them ---- */

/* Gives the call its share of what was found, from *at on. */
static void give(struct op_pop *p, struct list_call *call, size_t *at)
{
    const struct list *list = p->cas.op.list;
    uint64_t most = entries_bytes_most(p), wanted = wanted_by(call);
    while (*at < p->walk.count && call->number < wanted) {
        struct slice item = p->walk.items[*at];
        bool fits = p->cas.entries->used + entry_bytes(item.len) <= most;
        uint64_t answer = call->answer.bytes + item.len + call->key.len;
        if ((p->cas.entries->used > 0 && !fits) ||
            (call->number > 0 && answer > list->policy->max_answer_bytes)) {
            break;
        }
        entry_append(&p->cas.entries, ENTRY_DEL, item);
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
    for (call = TAILQ_FIRST(&p->cas.calls); call != NULL; call = next) {
        next = TAILQ_NEXT(call, link);
        give(p, call, &at);
        bool none_left = at == p->walk.count && p->walk.exhausted;
        if (call->number == 0 && !none_left) {
            TAILQ_REMOVE(&p->cas.calls, call, link);
            TAILQ_INSERT_TAIL(&rest, call, link);
        }
    }
    calls_give_back(e, p->cas.op.list, &rest);
}

static void stored(struct engine *e, struct op_cas *cas)
{
    list_note_size(cas->op.list, cas->head->value.len + cas->entries->used);
    cas_finish(e, cas, LIST_OK);
    touch_consider(e, cas->op.list, cas->head);
}

static enum progress decide(struct engine *e, struct op_cas *cas, const struct op_event *event)
{
    struct op_pop *p = (struct op_pop *)cas;
    struct co *co = &cas->op.co;
    CO_BEGIN(co);
    cas->decision = CAS_ENDS;
    if (cas->got != GOT_HEAD) {
        cas_finish(e, cas, LIST_OK); /* a missing list has nothing to take */
        CO_RETURN(co);
    }
    CO_CALL(co, walk_step(e, p, event));
    if (p->scan.state == SCAN_MISSING) {
        note_missing(e, p);
        CO_RETURN(co);
    }
    if (p->scan.state == SCAN_ERROR) {
        cas_fail(e, cas, p->scan.error);
        CO_RETURN(co);
    }
    give_all(e, p);
    if (cas->entries->used == 0) {
        cas_finish(e, cas, LIST_OK); /* the answer holds as of the head's reading */
    } else if (cas_has_room(e, cas)) {
        cas->decision = CAS_WRITES;
        cas->writing = "taking items off";
        cas_emit_entries(e, cas);
    }
    CO_END(co);
}

static void pop_fini(struct engine *e, struct op_cas *cas)
{
    struct op_pop *p = (struct op_pop *)cas;
    (void)e;
    scan_stop(&cas->op, &p->scan);
    walk_fini(&p->walk);
}

static const struct cas_kind pop = {
    CAS_FOR_CLIENTS,
    .decide = decide,
    .stored = stored,
    .fini = pop_fini,
};

struct op_cas *pop_create(struct engine *e, struct list *list)
{
    return cas_create(e, list, &list->exact, sizeof(struct op_pop), &pop, renew_cas_step);
}

bool pop_takes(const struct op_cas *cas, const struct list_call *call)
{
    const struct op_pop *p = (const struct op_pop *)cas;
    return TAILQ_EMPTY(&cas->calls) || p->back == (call->count < 0);
}

void pop_add(struct op_cas *cas, struct list_call *call)
{
    struct op_pop *p = (struct op_pop *)cas;
    p->back = call->count < 0;
    cas_add(cas, call);
}
