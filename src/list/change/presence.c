/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/presence.h"

#include "list/core/engine_state.h"

enum progress presence_step(struct engine *e, struct op *op, struct presence *p, struct list *list,
                            const struct head *head, const struct op_event *event)
{
    struct co *co = &op->co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    if (p->content_ready) {
        content_fini(&p->content);
    }
    content_init(&p->content, head, list->policy);
    p->content_ready = true;
    p->content.output.to = 0;
    p->reads = op->reads; /* an lcopy reads another list besides */
    op->reads = list;
    runs = content_overlay_runs(&p->content, &count);
    scan_start(op, &p->scan, runs, count, false, true, content_fold_visit, &p->content);
    SCAN_RUN(co, e, op, &p->scan, "reading newer runs");
    scan_stop(op, &p->scan);
    if (p->scan.state == SCAN_END && !p->content.too_large) {
        content_fold_log(&p->content, head->log);
        runs = content_base_run(&p->content, &count);
        scan_start(op, &p->scan, runs, count, false, true, content_base_visit, &p->content);
        SCAN_RUN(co, e, op, &p->scan, "reading the oldest run");
        scan_stop(op, &p->scan);
    }
    if (p->scan.state == SCAN_END && !p->content.too_large) {
        content_rest(&p->content);
    }
    op->reads = p->reads;
    CO_END(co);
}

void presence_fini(struct op *op, struct presence *p)
{
    scan_stop(op, &p->scan);
    if (p->content_ready) {
        content_fini(&p->content);
    }
    p->content_ready = false;
}
