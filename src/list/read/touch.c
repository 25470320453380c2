/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/read/touch.h"

#include "list/core/engine_state.h"

/* Touches under way at a time, per list; one list at a time per worker. */
#define WINDOW 8

struct op_touch {
    struct op op;
    struct head *head;
    size_t run;
    uint32_t number;
    bool gone;
    struct name_range gone_from; /* the first of them */
};

/* A tag tells which run the answer is about. */
static bool touch_more(struct engine *e, struct op_touch *t)
{
    while (!t->gone && t->run < t->head->run_count && t->op.due < WINDOW) {
        const struct run *run = &t->head->runs[t->run];
        if (t->number >= run->range.count) {
            t->run++;
            t->number = 0;
            continue;
        }
        emit_probe_sublist(e, &t->op, &run->range.name, t->number++, t->run);
        metric_inc(e->metrics, METRIC_list_touches);
    }
    return t->op.due > 0;
}

static enum progress touch_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_touch *t = (struct op_touch *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    while (touch_more(e, t)) {
        CO_AWAIT(co, "touching sublists");
        if (event->status == BE_MISS && !t->gone) {
            t->gone = true;
            t->gone_from = (struct name_range){t->head->runs[event->tag].range.name, 0};
        }
    }
    if (t->gone) {
        lists_wish(&e->lists, op->list, WISH_HEAL, &t->gone_from);
    }
    CO_END(co);
}

static void touch_fini(struct engine *e, struct op *op)
{
    struct op_touch *t = (struct op_touch *)op;
    e->touches--;
    head_unref(&t->head);
}

void touch_consider(struct engine *e, struct list *list, struct head *head)
{
    uint64_t interval_us = (uint64_t)list->policy->touch_interval_s * 1000000;
    if (interval_us == 0 || head->run_count == 0 || e->touches > 0 ||
        e->now.mono_us < list->touch_after_us) {
        return;
    }
    bool first = list->touch_after_us == 0;
    list->touch_after_us = e->now.mono_us + interval_us;
    if (first) {
        return;
    }
    struct op_touch *t = op_create(e, list, sizeof *t, touch_step, touch_fini);
    t->head = head_ref(head);
    e->touches++;
    op_run(e, &t->op);
}
