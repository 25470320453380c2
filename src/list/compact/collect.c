/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The small steps of a compaction.
 *
 * Collecting. Order of writes: DELETE every sublist that the header names as garbage; then ONE CAS
 * that takes off the header those names whose every answer was definite. Names never come back into
 * use, so deleting twice is harmless. Announcements of dead proxies become garbage by the same CAS,
 * to be deleted next time. One that was only paused may write under such a name behind that: it
 * cannot publish, since its announcement has gone, and deletes what it has written. When it dies
 * before, that is left to scripts/sweep.
 *
 * Fold. ONE CAS: the log replaced by what it amounts to. Clear. ONE CAS: all content dropped, runs
 * become garbage. Remove. ONE CAS-guarded delete of the head; then DELETE of what it named. A proxy
 * that dies in between leaves that to scripts/sweep.
 */
#include <stdio.h>
#include <stdlib.h>

#include "list/compact/compact.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

/* Requests under way at a time. */
#define WINDOW 64
/* A name counts as announced or as garbage as far as something may be stored there. A proxy writes
 * a run's sublists in their order, so there is nothing behind a long row of names without an item:
 * long, since memcached may have evicted the first ones. */
#define DELETE_AHEAD 65536u
/* What a removed head named is known to this operation alone: it tries so often, with pauses that
 * begin with this one and grow. */
#define BEHIND_TRIES_MAX 4
#define BEHIND_PAUSE_US 10000u

/* Goes to the garbage at that index. What a compaction does in vain is limited, whatever a head
 * says: what is beyond that stays for another one. */
static void begin_garbage(struct op_compact *c, size_t at)
{
    c->garbage_at = at;
    c->garbage_number = 0;
    c->garbage_end = DELETE_AHEAD;
    if (at < c->garbage_count && c->deleted_none >= DELETE_AHEAD) {
        c->garbage_failed[at] = true;
        c->garbage_end = 0;
        c->garbage_cut = true;
    }
}

static void copy_garbage(struct op_compact *c, const struct name_range *garbage, size_t count)
{
    free(c->garbage);
    free(c->garbage_failed);
    c->garbage_count = count;
    c->garbage = malloc((c->garbage_count + 1) * sizeof *c->garbage);
    c->garbage_failed = calloc(c->garbage_count + 1, sizeof *c->garbage_failed);
    CHECK(c->garbage != NULL && c->garbage_failed != NULL);
    c->garbage_cut = false;
    if (count > 0) {
        memcpy(c->garbage, garbage, count * sizeof *garbage);
    }
    begin_garbage(c, 0);
}

/* Which deletion a request of a collecting step is: in its tag. */
static uint64_t drop_tag(size_t garbage, uint32_t number)
{
    return TAG_DROP + garbage + ((uint64_t)number << 32);
}
_Static_assert(SUBLISTS_MAX <= UINT32_MAX, "a sublist's number fits the tag");

/* Sends deletions up to the window; true while there are more to send or to wait for. */
static bool delete_more(struct engine *e, struct op_compact *c)
{
    while (c->garbage_at < c->garbage_count && c->op.due < WINDOW && !compact_over(e, c)) {
        const struct name_range *g = &c->garbage[c->garbage_at];
        if (c->garbage_number >= c->garbage_end && c->op.due > 0) {
            break; /* an answer under way may say that there is more */
        }
        if (c->garbage_number >= g->count || c->garbage_number >= c->garbage_end) {
            begin_garbage(c, c->garbage_at + 1);
            continue;
        }
        uint32_t number = c->garbage_number++;
        emit_delete_sublist(e, &c->op, &g->name, number, drop_tag(c->garbage_at, number));
    }
    return c->op.due > 0;
}

static void take_dropped(struct op_compact *c, const struct op_event *event)
{
    size_t garbage = (uint32_t)event->tag - TAG_DROP;
    uint32_t number = (uint32_t)(event->tag >> 32);
    if (event->status == BE_NOT_FOUND) {
        c->deleted_none++;
    } else if (event->status == BE_DELETED) {
        /* A writer that got so far may have got further. */
        uint32_t end = number + 1 + DELETE_AHEAD;
        c->garbage_end = garbage == c->garbage_at && end > c->garbage_end ? end : c->garbage_end;
    } else {
        c->garbage_failed[garbage] = true;
        op_error_text(event, c->error);
    }
}

static struct block *build_collected(struct engine *e, struct op_compact *c)
{
    /* Where the list is missing already, what another client has begun to fill stays. */
    bool refuse = c->op.list->policy->on_missing == ON_MISSING_REFUSE;
    bool dropping = c->goal == COMPACT_DROP ||
                    (!refuse && (c->goal == COMPACT_CLEAR || c->goal == COMPACT_TIDY));
    struct carry carry = {
        .now_s = e->now.wall_s,
        .grace_s = dropping ? GRACE_NONE : (int64_t)c->op.list->policy->announcement_grace_s,
        .keep_ops = true,
    };
    struct layout layout;
    layout_init(&layout, c->head);
    for (size_t i = 0; i < c->garbage_count; i++) {
        if (!c->garbage_failed[i] && i < c->garbage_at) {
            (void)layout_remove_garbage(&layout, &c->garbage[i]);
        }
    }
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, c->head->log, &carry));
    return compact_value(c, &layout);
}

static bool any_failed(const struct op_compact *c)
{
    for (size_t i = 0; i < c->garbage_count; i++) {
        if (c->garbage_failed[i]) {
            return true;
        }
    }
    return false;
}

/* The common end of all small steps: reads the head and publishes what build makes of it. */
static enum progress rewrite_step(struct engine *e, struct op_compact *c,
                                  const struct op_event *event, publish_build *build)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    OP_BECOME_PUBLISHER(co, &c->op);
    emit_get(e, &c->op, TAG_HEAD);
    CO_AWAIT(co, "reading head to rewrite it");
    c->result = STEP_CONFLICT;
    if (compact_take_head(e, c, event)) {
        CO_CALL(co, publish_step(e, c, event, build));
    }
    op_stop_publishing(e, &c->op);
    CO_END(co);
}

enum progress collect_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    copy_garbage(c, c->head->garbage, c->head->garbage_count);
    while (delete_more(e, c)) {
        CO_AWAIT(co, "deleting old sublists");
        take_dropped(c, event);
    }
    metric_add(e->metrics, METRIC_list_purges_cut, c->garbage_cut);
    CO_CALL(co, rewrite_step(e, c, event, build_collected));
    if (c->result == STEP_DONE && any_failed(c)) {
        c->result = STEP_FAILED;
    }
    if (c->result == STEP_FAILED && c->error[0] == '\0') {
        snprintf(c->error, sizeof c->error,
                 "the head names more garbage than can exist: the rest is left for later");
    }
    CO_END(co);
}

static struct block *build_folded(struct engine *e, struct op_compact *c)
{
    /* A damaged list may have been filled anew since, and what a primary had to keep may be done: a
     * head that nothing needs any more is removed. */
    if (c->plan.kind == PLAN_CLEAR && (c->withdrawn || compact_plan(e, c).kind != PLAN_CLEAR)) {
        return NULL;
    }
    const struct list_policy *policy = c->op.list->policy;
    struct carry carry = {
        .now_s = e->now.wall_s,
        .grace_s = policy->announcement_grace_s,
        .keep_ops = false,
    };
    struct layout layout;
    size_t swept;
    layout_init(&layout, c->head);
    if (c->plan.kind == PLAN_CLEAR) {
        layout_drop_runs(&layout, 0, layout.run_count);
        if (policy->on_missing == ON_MISSING_REFUSE) {
            /* Empty would be a list that is there. Nothing that was begun before is to fill it. */
            layout_make_absent(&layout);
            carry.grace_s = GRACE_NONE;
        }
        swept = layout_carry(&layout, c->head->announcements, &carry);
    } else {
        if (head_is_over(c->head, c->over_s)) {
            layout_drop_runs(&layout, 0, layout.run_count);
        }
        swept = layout_fold_log(&layout, c->head, compact_log(c), &carry);
    }
    metric_add(e->metrics, METRIC_list_sweeps, swept);
    return compact_value(c, &layout);
}

enum progress fold_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    enum progress progress = rewrite_step(e, c, event, build_folded);
    if (progress == PROGRESS_DONE && c->result == STEP_DONE) {
        metric_inc(e->metrics, METRIC_list_folds);
    }
    return progress;
}

enum progress remove_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    OP_BECOME_PUBLISHER(co, &c->op);
    if (c->withdrawn) {
        op_stop_publishing(e, &c->op);
        c->result = STEP_CONFLICT;
        CO_RETURN(co);
    }
    c->sent = c->drops;
    emit_cas_delete(e, &c->op, c->head, TAG_CAS);
    CO_AWAIT(co, "removing the head");
    c->result = event->status == BE_LOST ? STEP_UNKNOWN : STEP_FAILED;
    c->sent = c->drops && event->status == BE_LOST;
    if (event->status == BE_STORED || event->status == BE_NOT_FOUND) {
        metric_inc(e->metrics, METRIC_list_removes);
        list_note_size(c->op.list, 0);
        c->op.list->has_head = false;
        /* Another proxy removed it: an ldrop that did nothing itself found nothing. */
        c->was_missing = event->status == BE_NOT_FOUND && compact_found_nothing(c);
        c->result = STEP_DONE;
    } else if (event->status == BE_EXISTS) {
        c->result = STEP_CONFLICT;
    } else {
        op_error_text(event, c->error);
    }
    op_stop_publishing(e, &c->op);
    CO_END(co);
}

/* All that the head names. */
static void copy_names(struct engine *e, struct op_compact *c)
{
    struct carry carry = {.now_s = e->now.wall_s, .grace_s = GRACE_NONE};
    struct layout layout;
    layout_init(&layout, c->head);
    layout_drop_runs(&layout, 0, layout.run_count);
    metric_add(e->metrics, METRIC_list_sweeps,
               layout_carry(&layout, c->head->announcements, &carry));
    copy_garbage(c, layout.garbage, layout.garbage_count);
    layout_fini(&layout);
}

/* Takes away what was deleted. False: nothing is left. */
static bool keep_failed(struct op_compact *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->garbage_count; i++) {
        if (c->garbage_failed[i] || i >= c->garbage_at) {
            c->garbage_failed[n] = false;
            c->garbage[n++] = c->garbage[i];
        }
    }
    c->garbage_count = n;
    begin_garbage(c, 0);
    return n > 0;
}

enum progress collect_behind_step(struct engine *e, struct op_compact *c,
                                  const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    copy_names(e, c);
    c->until_us = e->now.mono_us + (uint64_t)e->config->long_timeout_ms * 1000;
    for (c->tries = 0; c->tries < BEHIND_TRIES_MAX; c->tries++) {
        while (delete_more(e, c)) {
            CO_AWAIT(co, "deleting the sublists of a list that is gone");
            take_dropped(c, event);
        }
        if (!keep_failed(c)) {
            break;
        }
        CO_SLEEP(&c->op, co, "waiting before sublists are deleted again",
                 op_backoff_end_us(e, BEHIND_PAUSE_US, c->tries));
    }
    CO_END(co);
}
