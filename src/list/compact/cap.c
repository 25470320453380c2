/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cap of a list is set, changed or taken away. ONE CAS: the header says the new cap, the log
 * holds all content, of runs as well, resolved under the old cap and cut to the new one; the runs
 * become garbage. That CAS is the instant of the change, so a list never holds what an older cap
 * has dropped.
 *
 * A compaction does it where this proxy's file says otherwise than the head. A cap that refuses
 * cuts nothing: the list is given its length instead, and later ones lower that as far as the list
 * has become shorter. What cannot have the cap stays as it is, and the compaction goes on: a list
 * with items that have a time of their own, or one that is too long for its head and refuses to be
 * cut.
 */
#include "base/number.h"
#include "list/compact/compact.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"
#include "list/format/layout.h"

/* How often a compaction tries: each reads all of the list. */
#define TRIES 3
/* When it lost them to others, a change may ask for the cap again after so long. */
#define AGAIN_US 1000000u

/* What the file says, for a list of so many items. */
static struct cap wanted(const struct op_compact *c, uint64_t items)
{
    struct cap cap = list_policy_cap(c->op.list->policy);
    if (cap.refuses && items > cap.max) {
        cap.max = (uint32_t)u64_least(items, UINT32_MAX);
    }
    return cap;
}

/* The content of runs counts by their bytes: what they void goes when they are merged. */
static bool is_too_long(const struct op_compact *c)
{
    uint64_t most = list_log_hard_limit(c->op.list) / 2;
    return list_policy_cap(c->op.list->policy).refuses && head_run_bytes(c->head) > most;
}

static bool is_due(struct op_compact *c)
{
    const struct head *head = c->head;
    bool timed = head->marks.cap.max == 0 && head_is_timed(head);
    bool refuses = list_policy_cap(c->op.list->policy).refuses;
    return !head_is_absent(head) && !timed && !is_too_long(c) &&
           !cap_equal(head->marks.cap,
                      wanted(c, refuses ? fold_items(compact_log(c), ENTRY_NEVER_OVER) : 0));
}

void cap_choose(struct op_compact *c)
{
    if ((c->goal == COMPACT_AUTO || c->goal == COMPACT_FULL) && c->cap_tries < TRIES &&
        c->plan.kind != PLAN_COLLECT_FIRST && !c->head->is_cut && is_due(c)) {
        c->plan.kind = PLAN_CAP;
    }
}

void cap_note_size(struct op_compact *c)
{
    struct list *list = c->op.list;
    const struct fold *log = compact_log(c);
    struct entry entry;
    uint32_t at = 0;
    list->folded_bytes = 0;
    while (c->head->marks.cap.max != 0 &&
           fold_next_entry(log, true, ENTRY_NEVER_OVER, &at, &entry)) {
        list->folded_bytes += entry_size(&entry);
    }
}

/* ---- the content ---- */

static void begin(struct op_compact *c)
{
    fold_fini(&c->capped);
    fold_init(&c->capped);
    /* A cap that refuses is raised to what is there. */
    fold_set_cap(&c->capped, wanted(c, CAP_ITEMS_MAX));
    c->capped_count = 0;
    c->capped_cas = c->head->cas;
    c->capped_epoch = c->head->epoch;
}

static void take_item(struct op_compact *c, struct slice item)
{
    fold_apply(&c->capped, ENTRY_ADD, item);
    c->capped_count++;
    fold_trim_often(&c->capped);
}

static void take_rest(struct op_compact *c, const struct fold *fold)
{
    uint32_t at = 0;
    struct slice item;
    while (fold_next_item(fold, c->head->read_s, &at, &item)) {
        take_item(c, item);
    }
}

static enum visited visit_base(void *arg, struct sublist *s)
{
    struct op_compact *c = arg;
    for (uint32_t i = 0; i < s->count; i++) {
        content_expect(&c->content, s, i);
        struct slice item = sublist_item(s, i);
        char op = fold_over(&c->content.overlay, s->ops[i], item);
        if (entry_is_in(op, sublist_until(s, i), c->head->read_s)) {
            take_item(c, item);
        }
    }
    return true;
}

/* Reads what the head's runs hold, and its log. Ends with scan.state. */
static enum progress gather_step(struct engine *e, struct op_compact *c,
                                 const struct op_event *event)
{
    struct co *co = &c->op.co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    begin(c);
    if (c->content_ready) {
        content_fini(&c->content);
    }
    content_init(&c->content, c->head, c->op.list->policy);
    c->content_ready = true;
    runs = content_overlay_runs(&c->content, &count);
    scan_start(&c->op, &c->scan, runs, count, false, true, content_fold_visit, &c->content);
    SCAN_RUN(co, e, &c->op, &c->scan, "reading newer runs for a cap");
    scan_stop(&c->op, &c->scan);
    if (c->scan.state != SCAN_END || c->content.too_large) {
        CO_RETURN(co);
    }
    content_fold_log(&c->content, c->head->log);
    runs = content_base_run(&c->content, &count);
    scan_start(&c->op, &c->scan, runs, count, false, true, visit_base, c);
    SCAN_RUN(co, e, &c->op, &c->scan, "reading the oldest run for a cap");
    scan_stop(&c->op, &c->scan);
    if (c->scan.state == SCAN_END) {
        take_rest(c, &c->content.overlay);
    }
    CO_END(co);
}

/* ---- publishing ---- */

static bool fits(const struct op_compact *c)
{
    return !c->capped.cap.refuses || c->capped_count <= CAP_ITEMS_MAX;
}

static struct block *build_capped(struct engine *e, struct op_compact *c)
{
    const struct head *head = c->head;
    bool same = head->cas == c->capped_cas && head->epoch == c->capped_epoch;
    if (!is_due(c) || (!same && head->run_count > 0)) {
        return NULL;
    }
    if (!same) {
        begin(c);
        take_rest(c, compact_log(c));
    }
    if (!fits(c)) {
        return NULL;
    }
    struct carry carry = {
        .now_s = e->now.wall_s,
        .grace_s = c->op.list->policy->announcement_grace_s,
        .keep_ops = false,
    };
    struct layout layout;
    layout_init(&layout, head);
    layout_drop_runs(&layout, 0, layout.run_count);
    layout_fill(&layout);
    layout.marks.cap = wanted(c, c->capped_count);
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, head->announcements, &carry));
    fold_append_items(&c->capped, &layout.log);
    return compact_value(c, &layout);
}

/* A sublist was missing: damage, if the head names it still. */
static void look_for_damage(struct engine *e, struct op_compact *c)
{
    if (c->head == NULL || !head_names_run(c->head, &c->scan.missing.name)) {
        return;
    }
    c->result = STEP_FAILED;
    compact_note_damage(e, c);
}

/* Where others wrote meanwhile, it looks again; after some tries the compaction goes on without,
 * and a later change asks for the cap. Whatever else stopped it would stop it again. */
static void note_try(struct engine *e, struct op_compact *c)
{
    c->cap_tries = c->result == STEP_CONFLICT ? c->cap_tries + 1 : TRIES;
    if (c->result == STEP_DONE) {
        c->op.list->cap = wanted(c, c->capped_count);
        metric_inc(e->metrics, METRIC_list_caps);
    } else if (c->result == STEP_CONFLICT) {
        c->op.list->cap_after_us = e->now.mono_us + AGAIN_US;
        if (c->cap_tries == TRIES) {
            c->result = STEP_FAILED;
            c->conflicts = 0; /* those of what follows count anew */
        }
    }
}

enum progress cap_step(struct engine *e, struct op_compact *c, const struct op_event *event)
{
    struct co *co = &c->op.co;
    CO_BEGIN(co);
    c->op.takes_cut = false; /* all of the log is resolved */
    OP_BECOME_PUBLISHER(co, &c->op);
    emit_get(e, &c->op, TAG_HEAD);
    CO_AWAIT(co, "reading head to set its cap");
    c->result = STEP_CONFLICT;
    if (compact_take_head(e, c, event)) {
        CO_CALL(co, gather_step(e, c, event));
        if (c->scan.state == SCAN_END && !c->content.too_large && fits(c)) {
            CO_CALL(co, publish_step(e, c, event, build_capped));
        } else if (c->scan.state == SCAN_MISSING) {
            emit_get(e, &c->op, TAG_HEAD);
            CO_AWAIT(co, "reading head again");
            (void)compact_take_head(e, c, event);
            look_for_damage(e, c);
        } else {
            c->result = STEP_FAILED;
        }
    }
    note_try(e, c);
    op_stop_publishing(e, &c->op);
    CO_END(co);
}
