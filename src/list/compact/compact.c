/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/compact/compact.h"

#include <stdlib.h>

#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/core/finish.h"
#include "list/format/absent.h"

/* Steps of one compaction: more only happen when others undo its work as fast as it does it. */
#define STEPS_MAX 64
/* Conflicts that an automatic one accepts before it leaves the work to others or to later. */
#define AUTO_CONFLICTS_MAX 3
/* First pause after a conflict; doubles each time. */
#define BACKOFF_US 100u
/* A flip to a server that is far takes half a second; and announcements tell whole seconds. */
#define ANNOUNCED_LATELY_S 2
/* How often it looks whether the place it needs is free. */
#define PLACE_POLL_US 1000u

/* ---- memory ---- */

/* The head, what its log amounts to, and what is written of that. */
static uint64_t expected_bytes(const struct list *list)
{
    uint64_t bytes = list->header_bytes + list_log_bytes(list);
    return 2 * bytes + plan_fold_bytes(bytes);
}

static uint64_t held_bytes(const struct op_compact *c)
{
    return 2 * c->head->value.len + fold_bytes(&c->log.fold);
}

static void count_bytes(struct engine *e, struct op_compact *c, uint64_t bytes)
{
    e->lists.compacting_bytes += bytes - c->counted_bytes;
    c->counted_bytes = bytes;
    struct list *next = TAILQ_FIRST(&e->lists.waiting);
    if (next != NULL && !e->is_dropped) {
        lists_mark_ready(&e->lists, next);
    }
}

bool compact_has_room(const struct engine *e, const struct list *list)
{
    const struct list *first = TAILQ_FIRST(&e->lists.waiting);
    uint64_t others = e->lists.compacting_bytes;
    bool turn = first == NULL || first == list;
    return turn &&
           (others == 0 || others + expected_bytes(list) <= list->policy->fold_memory_bytes);
}

/* Takes the list's place for merges and leaves the one for short steps. False while the former is
 * taken. */
static bool enter_merge(struct op_compact *c)
{
    struct list *list = c->op.list;
    if (list->merge != NULL) {
        return false;
    }
    op_enter(&c->op, &list->merge);
    return true;
}

static void leave_place(struct engine *e, struct op_compact *c)
{
    struct list *list = c->op.list;
    if (list->compaction == &c->op) {
        op_leave(&c->op);
        lists_mark_ready(&e->lists, list);
    }
}

/* Takes the place for short steps back when no merge is under way; false while that is not so. */
static bool take_place(struct op_compact *c)
{
    struct list *list = c->op.list;
    if (list->merge != NULL || list->compaction != NULL) {
        return false;
    }
    op_enter(&c->op, &list->compaction);
    return true;
}

/* Leaves the place for merges at once, since the compaction in the place for short steps may wait
 * for it. Then takes the place for short steps; false while it is taken. */
static bool leave_merge(struct op_compact *c)
{
    struct list *list = c->op.list;
    op_leave(&c->op);
    if (list->compaction != NULL) {
        return false;
    }
    op_enter(&c->op, &list->compaction);
    return true;
}

/* May it go on after a step that did not get through? */
static bool may_go_on(const struct engine *e, const struct op_compact *c)
{
    if (c->result == STEP_UNKNOWN || c->steps >= STEPS_MAX || compact_over(e, c) || c->withdrawn) {
        return false;
    }
    if (c->result == STEP_FAILED) {
        /* The log must not fill up because some garbage, or a run, lies on a server that is down.
         */
        bool with_fewer = c->plan.kind == PLAN_MERGE && c->plan.count > c->inputs_max;
        return c->plan.kind == PLAN_COLLECT_FIRST || c->plan.kind == PLAN_CAP || with_fewer;
    }
    if (c->result == STEP_DONE) {
        return true;
    }
    /* Where the server is far, others have compacted meanwhile, or will: not so if only the
     * sublists' time is at stake. */
    bool leaves = list_is_far(c->op.list) && !c->extends;
    return c->call != NULL || (c->conflicts < AUTO_CONFLICTS_MAX && !leaves);
}

static void finish_call(struct engine *e, struct op_compact *c, bool finished)
{
    struct list_call *call = c->call;
    c->call = NULL;
    if (call == NULL) {
        return;
    }
    bool refuse = c->op.list->policy->on_missing == ON_MISSING_REFUSE;
    if (c->was_missing || (finished && compact_is_absent(c) && !c->dropped)) {
        call_finish(e, c->op.list, call, refuse ? LIST_MISSING : LIST_OK);
    } else if (finished || (c->goal == COMPACT_DROP && c->dropped && !c->foreign)) {
        /* A dropped list is empty from the append on; what is left of it is tidied up sooner or
         * later. */
        call_finish(e, c->op.list, call, LIST_OK);
    } else if (c->result == STEP_CONFLICT || c->error[0] == '\0') {
        metric_inc(e->metrics, METRIC_list_busy);
        call_fail(e, c->op.list, call, "busy");
    } else {
        call_fail(e, c->op.list, call, "%s", c->error);
    }
}

/* The call does not wait for what the head named. Where the head was gone already, the proxy that
 * removed it deletes that. */
static enum progress remove_whole_step(struct engine *e, struct op_compact *c,
                                       const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    CO_CALL(co, remove_step(e, c, event));
    if (c->result == STEP_DONE) {
        finish_call(e, c, true);
        if (event->status == BE_STORED) {
            CO_CALL(co, collect_behind_step(e, c, event));
        }
    }
    CO_END(co);
}

typedef enum progress plan_step(struct engine *e, struct op_compact *c,
                                const struct op_event *event);

static plan_step *const plan_steps[] = {
    [PLAN_FOLD] = fold_step,           [PLAN_CLEAR] = fold_step,
    [PLAN_FLIP] = flip_step,           [PLAN_MERGE] = merge_step,
    [PLAN_COLLECT] = collect_step,     [PLAN_COLLECT_FIRST] = collect_step,
    [PLAN_REMOVE] = remove_whole_step, [PLAN_CAP] = cap_step,
};

static void emit_drop(struct engine *e, struct op_compact *c)
{
    struct block *clear = block_new(8);
    entry_append(&clear, ENTRY_CLEAR, SLICE_NONE);
    c->sent = true;
    emit_append(e, &c->op, clear, TAG_DROP);
    block_unref(&clear);
}

static void settle_drop(struct op_compact *c, const struct op_event *event)
{
    c->sent = event->status == BE_LOST;
    if (event->status == BE_STORED) {
        c->dropped = true;
    } else if (event->status == BE_NOT_STORED && !c->withdrawn) {
        /* No head, most likely; if there is one after all (no memory for the append), it is cleared
         * by CAS. */
        c->goal = COMPACT_CLEAR;
    } else {
        op_error_text(event, c->error);
        c->result = STEP_FAILED;
    }
}

/* ldrop empties the list by one append; everything after is tidying up. An item that is no list is
 * not appended to. Ends with STEP_FAILED when the call is settled by that. */
static enum progress drop_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    if (!c->op.list->has_head) {
        emit_get(e, &c->op, TAG_HEAD);
        CO_AWAIT(co, "reading head before dropping it");
        if (!compact_take_head(e, c, event) && event->status != BE_MISS) {
            c->foreign = event->status == BE_HIT;
            c->result = STEP_FAILED;
        }
    }
    if (c->withdrawn) {
        c->result = STEP_FAILED;
    }
    if (c->result != STEP_FAILED) {
        emit_drop(e, c);
        CO_AWAIT(co, "dropping");
        settle_drop(c, event);
    }
    if (c->result == STEP_FAILED) {
        finish_call(e, c, false);
    }
    CO_END(co);
}

static void note_end(struct engine *e, struct op_compact *c, bool finished)
{
    struct list *list = c->op.list;
    bool whole = c->head == NULL || !c->head->is_cut; /* the rest waits for transactions */
    if (finished && whole) {
        list->compact_failures = 0;
        return;
    }
    /* Others are at it, or the backend is in trouble: leave it alone for a while, longer each time.
     */
    unsigned shift = list->compact_failures < 8 ? list->compact_failures : 8;
    list->compact_failures++;
    list->compact_after_us = e->now.mono_us + (2000u << shift) + rng_below(e->rng, 2000);
}

/* Has another proxy announced a run that it may be about to publish? One that was withdrawn, it
 * does not. */
static bool announced_lately(const struct engine *e, const struct head *head)
{
    struct slice rest = head->announcements;
    struct name_set withdrawn = {0};
    struct entry entry;
    bool found = false;
    log_withdrawals(rest, &withdrawn);
    while (!found && entry_next(&rest, &entry) == ENTRY_OK) {
        struct announcement a;
        found = entry.op == ENTRY_ANNOUNCE && announcement_parse(entry.bytes, &a) &&
                !announcement_is_dead(&a, e->now.wall_s, ANNOUNCED_LATELY_S) &&
                !name_set_has(&withdrawn, &a.range.name);
    }
    name_set_fini(&withdrawn);
    return found;
}

struct plan compact_plan(const struct engine *e, struct op_compact *c)
{
    bool about_run = c->goal == COMPACT_HEAL || (c->goal == COMPACT_CLEAR && c->about_run);
    return plan_choose(c->head, compact_log(c), c->op.list->policy, list_log_limit(c->op.list),
                       c->goal, about_run ? &c->about.name : NULL, e->now.wall_s, c->over_s,
                       c->collect_failed);
}

static void choose(struct engine *e, struct op_compact *c)
{
    cap_note_size(c);
    c->plan = compact_plan(e, c);
    count_bytes(e, c, held_bytes(c));
    if (c->instead && c->steps == 0 && announced_lately(e, c->head)) {
        c->plan.kind = PLAN_NOTHING;
    }
    life_choose(e, c);
    cap_choose(c);
    if (c->plan.kind == PLAN_MERGE && c->plan.count > c->inputs_max) {
        c->plan.count = c->inputs_max;
    }
    if (c->goal == COMPACT_HEAL && c->plan.kind == PLAN_MERGE) {
        c->about.name = (struct name){{0}}; /* once */
    }
}

/* An ldrop or lcompact of a primary: its transactions are finished first, once, or the head would
 * have to stay as it is. */
static bool should_finish(const struct op_compact *c)
{
    return c->call != NULL && c->head->residue != NULL && !c->asked_to_finish;
}

static enum progress let_finish_step(struct engine *e, struct op_compact *c)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    c->asked_to_finish = true;
    finish_wish(e, c->op.list);
    do {
        CO_SLEEP(&c->op, co, "waiting for transactions to be finished",
                 e->now.mono_us + PLACE_POLL_US);
    } while (finish_is_pending(c->op.list) && !compact_over(e, c));
    CO_END(co);
}

/* Its head stays, and says that the list is missing; the head read last says whether it was before.
 * What is left is for later. */
static void note_missing(struct engine *e, struct op_compact *c)
{
    struct list_call *call = c->call;
    c->call = NULL;
    c->goal = COMPACT_TIDY;
    c->op.list->has_head = false;
    if (call != NULL) {
        call_finish(e, c->op.list, call, compact_is_absent(c) ? LIST_MISSING : LIST_OK);
    }
}

/* A list is cleared once: what is added from here on stays. */
static void note_cleared(struct engine *e, struct op_compact *c)
{
    if (c->plan.kind != PLAN_CLEAR || c->result != STEP_DONE) {
        return;
    }
    c->sent = false;
    c->dropped = true;
    if (c->empties) {
        note_missing(e, c);
    } else {
        c->goal = c->drops && !c->withdrawn ? COMPACT_DROP : COMPACT_TIDY;
    }
}

static void note_step(struct engine *e, struct op_compact *c)
{
    bool failed = c->result == STEP_FAILED;
    c->steps++;
    if (c->result == STEP_DONE && (c->plan.kind == PLAN_FLIP || c->plan.kind == PLAN_MERGE)) {
        life_note(c);
    }
    c->did_something = c->did_something || c->result == STEP_DONE;
    c->collect_failed = c->collect_failed || (failed && c->plan.kind == PLAN_COLLECT_FIRST);
    note_cleared(e, c);
    c->conflicts += c->result == STEP_CONFLICT;
}

/* Does the plan say that nothing is left to do, or only what has failed? Then result says which. */
static bool nothing_left(struct op_compact *c)
{
    bool again = c->collect_failed && c->plan.kind == PLAN_COLLECT;
    if (again || c->plan.kind == PLAN_NOTHING) {
        c->result = again ? STEP_FAILED : STEP_DONE;
        return true;
    }
    return false;
}

/* May the part of the log that is decided be folded alone? An lcompact folds all of it. */
static bool takes_part(const struct op_compact *c)
{
    return c->goal == COMPACT_AUTO || c->goal == COMPACT_HEAL;
}

static enum progress compact_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_compact *c = (struct op_compact *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    if (c->goal == COMPACT_DROP && op->list->policy->on_missing == ON_MISSING_CREATE) {
        CO_CALL(co, drop_step(e, c, event));
        if (c->result == STEP_FAILED) {
            CO_RETURN(co);
        }
    }
    for (;;) {
        c->error[0] = c->collect_failed ? c->error[0] : '\0';
        op->takes_cut = takes_part(c);
        emit_get(e, op, TAG_HEAD);
        CO_AWAIT(co, "reading head to compact it");
        if (!compact_take_head(e, c, event)) {
            c->foreign = event->status == BE_HIT;
            c->was_missing = event->status == BE_MISS &&
                             (compact_found_nothing(c) || (c->was_absent && !c->dropped));
            c->plan.kind = PLAN_NOTHING;
            c->result = event->status == BE_MISS ? STEP_DONE : STEP_FAILED;
            break;
        }
        c->was_absent = compact_is_absent(c);
        if (should_finish(c)) {
            CO_CALL(co, let_finish_step(e, c));
            continue;
        }
        choose(e, c);
        if (c->withdrawn && !c->dropped) {
            break;
        }
        if (c->plan.kind == PLAN_MERGE && c->call == NULL && op->list->merge != NULL) {
            c->plan.kind = PLAN_NOTHING; /* another operation merges */
        }
        if (nothing_left(c)) {
            break;
        }
        if (c->plan.kind == PLAN_MERGE && !enter_merge(c)) {
            /* Flips must go on meanwhile: the place for them is given up. */
            do {
                leave_place(e, c);
                CO_SLEEP(&c->op, co, "waiting for another merge", e->now.mono_us + PLACE_POLL_US);
            } while (!take_place(c) && !compact_over(e, c));
            if (compact_over(e, c)) {
                c->result = STEP_CONFLICT;
                break;
            }
            continue;
        }
        CO_CALL(co, plan_steps[c->plan.kind](e, c, event));
        while (c->plan.kind == PLAN_MERGE && !leave_merge(c) && !compact_over(e, c)) {
            CO_SLEEP(&c->op, co, "waiting for another compaction", e->now.mono_us + PLACE_POLL_US);
        }
        note_step(e, c);
        if (c->plan.kind == PLAN_REMOVE && c->result == STEP_DONE) {
            c->plan.kind = PLAN_NOTHING;
            break;
        }
        if (!may_go_on(e, c)) {
            break;
        }
        if (c->result == STEP_CONFLICT) {
            CO_SLEEP(&c->op, co, "backing off before looking again",
                     op_backoff_end_us(e, BACKOFF_US, c->conflicts));
        }
    }
    finish_call(e, c, c->plan.kind == PLAN_NOTHING && c->result == STEP_DONE);
    note_end(e, c, c->plan.kind == PLAN_NOTHING && c->result == STEP_DONE);
    CO_END(co);
}

/* An lcompact ends as soon as the list is in order. An ldrop that has emptied the list is tidied up
 * behind; one that has not is not to do it any more. */
static enum list_known compact_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_compact *c = (struct op_compact *)op;
    c->call = NULL;
    if (call->verb == LIST_COMPACT) {
        c->until_us = e->now.mono_us;
        return KNOWN_NOTHING;
    }
    c->withdrawn = !c->dropped;
    return c->dropped ? KNOWN_DONE : c->sent ? KNOWN_UNKNOWN : KNOWN_NOTHING;
}

static void compact_fini(struct engine *e, struct op *op)
{
    struct op_compact *c = (struct op_compact *)op;
    count_bytes(e, c, 0);
    scan_stop(op, &c->scan);
    if (c->content_ready) {
        content_fini(&c->content);
    }
    writer_fini(&c->writer);
    block_unref(&c->value);
    log_fold_fini(&c->log);
    fold_fini(&c->capped);
    head_unref(&c->head);
    head_unref(&c->folded);
    free(c->inputs);
    free(c->lasting);
    free(c->garbage);
    free(c->garbage_failed);
}

static struct op_compact *create(struct engine *e, struct list *list, enum compact_goal goal)
{
    struct op_compact *c = op_create(e, list, sizeof *c, compact_step, compact_fini);
    c->goal = goal;
    c->over_s = e->now.wall_s - CLOCK_SKEW_S;
    c->until_us = e->now.mono_us + (uint64_t)e->config->long_timeout_ms * 1000;
    log_fold_init(&c->log);
    fold_init(&c->capped);
    c->inputs_max = SIZE_MAX;
    op_enter(&c->op, &list->compaction);
    count_bytes(e, c, expected_bytes(list));
    return c;
}

void compact_start(struct engine *e, struct list *list, bool instead)
{
    struct op_compact *c = create(e, list, COMPACT_AUTO);
    c->instead = instead;
    op_run(e, &c->op);
}

void compact_start_on(struct engine *e, struct list *list, enum compact_goal goal,
                      const struct name_range *about)
{
    struct op_compact *c = create(e, list, goal);
    c->about = *about;
    c->about_run = true;
    op_run(e, &c->op);
}

void compact_start_for(struct engine *e, struct list *list, struct list_call *call)
{
    bool drops = call->verb == LIST_DROP;
    struct op_compact *c = create(e, list, drops ? COMPACT_DROP : COMPACT_FULL);
    c->call = call;
    c->drops = drops;
    c->op.let_go = compact_let_go;
    if (call->deadline_us > c->until_us || call->verb == LIST_COMPACT) {
        c->until_us = call->deadline_us != 0 ? call->deadline_us : UINT64_MAX;
    }
    call->op = &c->op;
    op_run(e, &c->op);
}
