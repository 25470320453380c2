/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The small steps of a compaction.
 *
 * Purge. Order of writes: DELETE (or, for names of dead proxies, burn) every sublist that the
 * header names as garbage; then ONE CAS that takes off the header those names whose every answer
 * was definite. Names never come back into use, so deleting twice is harmless. Announcements of
 * dead proxies become garbage by the same CAS, to be burnt next time.
 *
 * Fold. ONE CAS: the log replaced by what it amounts to. Clear. ONE CAS: all content dropped, runs
 * become garbage. Remove. ONE CAS-guarded delete of the head; then DELETE, or burn, of what it
 * named. A proxy that dies in between leaves that to scripts/sweep.
 */
#include <stdio.h>
#include <stdlib.h>

#include "list/compact/compact.h"
#include "list/core/engine_state.h"
#include "list/format/layout.h"

/* Requests under way at a time. */
#define WINDOW 64
/* A name counts as announced or as garbage as far as something may be stored there. A proxy writes
 * a run's sublists in their order, so there is nothing behind a long row of names without an item.
 *
 * Burning puts an item where nothing was, so it goes no further ahead than writes may be on their
 * way: those of a flip all at once, of a log of at most twice log_hard_limit_bytes at its greatest
 * (900,000), in sublists of at least 512 bytes, of which any two neighbours have more than that. A
 * merge has fewer. Deletions cost no memory: they go on further, since memcached may have evicted
 * the first ones. */
#define BURN_AHEAD 8192u
#define DELETE_AHEAD 65536u
/* What a removed head named is known to this operation alone: it tries so often, with pauses that
 * begin with this one and grow. */
#define BEHIND_TRIES_MAX 4
#define BEHIND_PAUSE_US 10000u
/* A name is found free, and taken, and free again only when others tidy up at the same moment. */
#define BURN_TRIES_MAX 4

/* Deletions first: they make room. */
static void sort_garbage(struct op_compact *c, const struct garbage *garbage)
{
    size_t n = 0;
    for (int burn = 0; burn <= 1; burn++) {
        for (size_t i = 0; i < c->garbage_count; i++) {
            if (garbage[i].burn == (burn == 1)) {
                c->garbage[n++] = garbage[i];
            }
        }
    }
}

/* Goes to the garbage at that index. What a compaction does in vain is limited, whatever a head
 * says: what is beyond that stays for another one. */
static void begin_garbage(struct op_compact *c, size_t at)
{
    c->garbage_at = at;
    c->garbage_number = 0;
    if (at == c->garbage_count) {
        return;
    }
    bool burn = c->garbage[at].burn;
    c->garbage_end = burn ? BURN_AHEAD : DELETE_AHEAD;
    if (burn ? c->burnt_free >= BURN_AHEAD : c->deleted_none >= DELETE_AHEAD) {
        c->garbage_failed[at] = true;
        c->garbage_end = 0;
        c->garbage_cut = true;
    }
}

static void copy_garbage(struct op_compact *c, const struct garbage *garbage, size_t count)
{
    free(c->garbage);
    free(c->garbage_failed);
    c->garbage_count = count;
    c->garbage = malloc((c->garbage_count + 1) * sizeof *c->garbage);
    c->garbage_failed = calloc(c->garbage_count + 1, sizeof *c->garbage_failed);
    CHECK(c->garbage != NULL && c->garbage_failed != NULL);
    c->garbage_cut = false;
    sort_garbage(c, garbage);
    begin_garbage(c, 0);
}

/* What a request of a purge is about: in its tag. */
struct drop {
    size_t garbage;  /* index */
    uint32_t number; /* of the sublist */
    unsigned tries;  /* to burn it, before this one */
};

static uint64_t drop_tag(struct drop drop)
{
    return TAG_DROP + drop.garbage + ((uint64_t)drop.number << 32) + ((uint64_t)drop.tries << 56);
}

static struct drop drop_of(uint64_t tag)
{
    return (struct drop){.garbage = (uint32_t)tag - TAG_DROP,
                         .number = (uint32_t)(tag >> 32 & 0xffffff),
                         .tries = (unsigned)(tag >> 56)};
}
_Static_assert(SUBLISTS_MAX <= 0xffffff, "a sublist's number fits the tag");

/* By ADD and, when something is there, by REPLACE, in turns. */
static void send_drop(struct engine *e, struct op_compact *c, struct drop drop)
{
    const struct garbage *g = &c->garbage[drop.garbage];
    uint64_t tag = drop_tag(drop);
    if (!g->burn) {
        emit_delete_sublist(e, &c->op, &g->range.name, drop.number, tag);
    } else if (drop.tries % 2 == 0) {
        emit_burn_free(e, &c->op, &g->range.name, drop.number, tag);
    } else {
        emit_burn_taken(e, &c->op, &g->range.name, drop.number, tag);
    }
}

/* Sends deletions up to the window; true while there are more to send or to wait for. */
static bool delete_more(struct engine *e, struct op_compact *c)
{
    while (c->garbage_at < c->garbage_count && c->op.due < WINDOW && !compact_over(e, c)) {
        const struct garbage *g = &c->garbage[c->garbage_at];
        if (c->garbage_number >= c->garbage_end && c->op.due > 0) {
            break; /* an answer under way may say that there is more */
        }
        if (c->garbage_number >= g->range.count || c->garbage_number >= c->garbage_end) {
            begin_garbage(c, c->garbage_at + 1);
            continue;
        }
        send_drop(e, c, (struct drop){c->garbage_at, c->garbage_number++, 0});
    }
    return c->op.due > 0;
}

/* Was there anything under that name? Names are written in their order, so a writer that got so far
 * may have got further. */
static void note_found(struct op_compact *c, struct drop drop, bool found)
{
    bool burn = c->garbage[drop.garbage].burn;
    if (!found) {
        c->burnt_free += burn;
        c->deleted_none += !burn;
    } else if (drop.garbage == c->garbage_at) {
        uint32_t end = drop.number + 1 + (burn ? BURN_AHEAD : DELETE_AHEAD);
        c->garbage_end = end > c->garbage_end ? end : c->garbage_end;
    }
}

static void take_dropped(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct drop drop = drop_of(event->tag);
    bool burns = c->garbage[drop.garbage].burn;
    bool stored = event->status == BE_STORED, there = event->status == BE_NOT_STORED;
    if (burns ? drop.tries == 0 && (stored || there)
              : event->status == BE_DELETED || event->status == BE_NOT_FOUND) {
        note_found(c, drop, burns ? there : event->status == BE_DELETED);
    }
    if (burns && event->status == BE_NOT_STORED && drop.tries < BURN_TRIES_MAX) {
        drop.tries++;
        send_drop(e, c, drop);
        return;
    }
    bool definite =
        event->status == BE_DELETED || event->status == BE_NOT_FOUND || event->status == BE_STORED;
    if (!definite) {
        c->garbage_failed[drop.garbage] = true;
        op_error_text(event, c->error);
    }
}

static struct block *build_purged(struct engine *e, struct op_compact *c)
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

enum progress purge_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    copy_garbage(c, c->head->garbage, c->head->garbage_count);
    while (delete_more(e, c)) {
        CO_AWAIT(co, "deleting old sublists");
        take_dropped(e, c, event);
    }
    metric_add(e->metrics, METRIC_list_purges_cut, c->garbage_cut);
    CO_CALL(co, rewrite_step(e, c, event, build_purged));
    if (c->result == STEP_DONE && any_failed(c)) {
        c->result = STEP_FAILED;
    }
    if (c->result == STEP_FAILED && c->error[0] == '\0') {
        snprintf(c->error, sizeof c->error,
                 "the head names more garbage than can exist: the rest is left for later");
    }
    CO_END(co);
}

/* A damaged list is cleared only while it is damaged: a client may have filled it anew since. */
static bool still_damaged(struct op_compact *c)
{
    return plan_choose(c->head, compact_log(c), c->op.list->policy, list_log_limit(c->op.list),
                       COMPACT_CLEAR, &c->run, 0, c->over_s, false)
               .kind == PLAN_CLEAR;
}

static struct block *build_folded(struct engine *e, struct op_compact *c)
{
    if (c->plan.kind == PLAN_CLEAR && (c->withdrawn || (c->about_run && !still_damaged(c)))) {
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

enum progress purge_behind_step(struct engine *e, struct op_compact *c,
                                const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    copy_names(e, c);
    c->until_us = e->now.mono_us + (uint64_t)e->config->long_timeout_ms * 1000;
    for (c->tries = 0; c->tries < BEHIND_TRIES_MAX; c->tries++) {
        while (delete_more(e, c)) {
            CO_AWAIT(co, "deleting the sublists of a list that is gone");
            take_dropped(e, c, event);
        }
        if (!keep_failed(c)) {
            break;
        }
        CO_SLEEP(&c->op, co, "waiting before sublists are deleted again",
                 op_backoff_end_us(e, BEHIND_PAUSE_US, c->tries));
    }
    CO_END(co);
}
