/* SPDX-License-Identifier: BSD-3-Clause */
/* What the steps of a compaction have in common: the head, and how it is written anew. */
#include "list/compact/compact.h"
#include "list/core/backoff.h"
#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"

/* CAS attempts of one publication. */
#define PUBLISH_TRIES_MAX 8
/* The same where the server is far: the worker's own changes wait two round trips for each. */
#define PUBLISH_TRIES_FAR 3
/* First pause after a conflict; doubles each time. */
#define BACKOFF_US 100u

bool compact_over(const struct engine *e, const struct op_compact *c)
{
    return e->now.mono_us >= c->until_us;
}

bool compact_take_head(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    head_unref(&c->head);
    enum head_result got = op_take_head(e, &c->op, event, &c->head, c->error);
    return got == GOT_HEAD || got == GOT_ABSENT;
}

bool compact_is_absent(const struct op_compact *c)
{
    return c->head != NULL && c->op.list->policy->on_missing == ON_MISSING_REFUSE &&
           head_is_absent(c->head);
}

void compact_note_damage(struct engine *e, struct op_compact *c)
{
    list_report_damage(e, c->op.list, &c->scan.missing, c->error);
    if (c->op.list->policy->on_damaged == ON_DAMAGED_MISS) {
        c->goal = COMPACT_CLEAR;
        c->about = c->scan.missing;
        c->about_run = true;
        c->result = STEP_CONFLICT;
    }
}

struct block *compact_value(struct op_compact *c, struct layout *layout)
{
    if (c->op.list->policy->on_missing == ON_MISSING_CREATE) {
        layout_fill(layout); /* a missing list is an empty one */
    }
    c->fills = c->head->marks.absent && !layout->marks.absent;
    c->empties = layout->marks.absent && c->plan.kind == PLAN_CLEAR;
    struct block *value = life_settle(c, layout) ? layout_value(layout) : NULL;
    layout_fini(layout);
    return value;
}

bool compact_found_nothing(const struct op_compact *c)
{
    return !c->dropped && (c->goal != COMPACT_FULL || !c->did_something);
}

const struct fold *compact_log(struct op_compact *c)
{
    (void)log_fold_take(&c->log, c->head);
    return &c->log.fold;
}

static void settle_cas(struct engine *e, struct op_compact *c, const struct op_event *event,
                       struct block *value)
{
    if (event->status == BE_STORED) {
        list_note_size(c->op.list, value->used);
        c->result = STEP_DONE;
    } else if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        c->result = STEP_CONFLICT;
        c->sent = false;
    } else {
        op_error_text(event, c->error);
        c->result = event->status == BE_LOST ? STEP_UNKNOWN : STEP_FAILED;
    }
}

static unsigned publish_tries(const struct op_compact *c)
{
    bool few = list_is_far(c->op.list) && c->call == NULL;
    return few ? PUBLISH_TRIES_FAR : PUBLISH_TRIES_MAX;
}

static void emit_head(struct engine *e, struct op_compact *c)
{
    struct life life = life_then(c, c->head->ttl_s, c->fills);
    life.until_s = c->until_s;
    life.strict = c->new_until;
    life.before_s = c->plan.kind == PLAN_FLIP && c->writer.is_full ? writer_old_s(&c->writer) : 0;
    emit_cas_for(e, &c->op, c->head, &life, c->value, TAG_CAS);
}

/* What was missing may be there: a list that moves can have lost it on its old server, behind the
 * copy. Then the compaction goes on as any other. */
static bool is_still_missing(struct op_compact *c, const struct op_event *event)
{
    if (event->status == BE_MISS) {
        return true;
    }
    if (event->status == BE_HIT) {
        c->goal = c->call != NULL ? COMPACT_FULL : COMPACT_AUTO;
        c->about_run = false;
        c->result = STEP_CONFLICT;
    } else {
        op_error_text(event, c->error);
        c->result = STEP_FAILED;
    }
    return false;
}

enum progress publish_step(struct engine *e, struct op_compact *c, const struct op_event *event,
                           publish_build *build)
{
    struct co *co = &c->op.co;
    struct op *op = &c->op;

    CO_BEGIN(co);
    for (c->tries = 0; c->tries < publish_tries(c); c->tries++) {
        if (c->tries > 0) {
            CO_SLEEP(&c->op, co, "backing off before publishing again",
                     op_backoff_end_us(e, BACKOFF_US, c->tries));
            emit_get(e, op, TAG_HEAD);
            CO_AWAIT(co, "reading head to publish again");
            if (!compact_take_head(e, c, event)) {
                c->foreign = event->status == BE_HIT;
                break;
            }
        }
        if (c->plan.kind == PLAN_CLEAR && c->about_run) {
            emit_probe_sublist(e, op, &c->about.name, c->about.count, TAG_PROBE);
            CO_AWAIT(co, "looking once more for the missing sublist");
            if (!is_still_missing(c, event)) {
                break;
            }
        }
        block_unref(&c->value);
        c->value = build(e, c);
        if (c->value == NULL) {
            c->result = STEP_CONFLICT;
            break;
        }
        c->sent = c->sent || (c->drops && c->plan.kind == PLAN_CLEAR);
        emit_head(e, c);
        CO_AWAIT(co, "publishing");
        settle_cas(e, c, event, c->value);
        if (c->result != STEP_CONFLICT) {
            break;
        }
    }
    CO_END(co);
}
