/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/copy.h"

#include <stdio.h>

#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"

void copy_init(struct engine *e, struct copy *c, struct op *op, const struct list_call *call,
               struct run_writer *writer, struct fold *items, char error[LIST_ERROR_MAX])
{
    *c = (struct copy){.op = op, .writer = writer, .items = items, .error = error};
    c->from = lists_get(&e->lists, call->source, call->source_policy);
    c->from->ops++;
    op->reads = c->from;
}

void copy_fini(struct copy *c)
{
    if (c->from == NULL) {
        return;
    }
    scan_stop(c->op, &c->scan);
    if (c->content_ready) {
        content_fini(&c->content);
    }
    head_unref(&c->head);
    c->from->ops--;
    c->from = NULL;
}

uint64_t copy_bytes(const struct copy *c)
{
    return head_run_bytes(c->head) + c->head->log.len;
}

/* ---- the head ---- */

static void take_head(struct copy *c, const struct op_event *event)
{
    char key[128];
    head_unref(&c->head);
    c->state = COPY_FAILED;
    if (event->status == BE_MISS) {
        c->state = COPY_MISSING;
    } else if (event->status != BE_HIT) {
        op_error_text(event, c->error);
    } else if (event->reply->flags != 0 || head_read(event->reply, &c->head) != HEAD_OK) {
        snprintf(c->error, LIST_ERROR_MAX, "%s# holds no list that this version can read",
                 slice_escape(list_key(c->from), key, sizeof key));
    } else if (head_is_absent(c->head) && c->from->policy->on_missing == ON_MISSING_REFUSE) {
        c->state = COPY_MISSING;
    } else {
        c->state = COPY_OK;
    }
}

static void begin(struct copy *c)
{
    if (c->content_ready) {
        content_fini(&c->content);
    }
    content_init(&c->content, c->head, c->from->policy);
    c->content_ready = true;
    c->count = 0;
    c->rest_at = 0;
}

/* Does the head still name the run of which a sublist was missing? Names never return. */
static bool is_damaged(const struct copy *c)
{
    size_t i = 0;
    while (c->missed_any && i < c->head->run_count &&
           !name_equal(&c->head->runs[i].range.name, &c->missed)) {
        i++;
    }
    return c->missed_any && i < c->head->run_count;
}

enum progress copy_look_step(struct engine *e, struct copy *c, const struct op_event *event)
{
    struct co *co = &c->op->co;
    CO_BEGIN(co);
    emit_get_of(e, c->op, c->from, TAG_HEAD);
    CO_AWAIT(co, "reading the head of the list to be copied");
    take_head(c, event);
    if (c->state == COPY_OK && is_damaged(c)) {
        list_report_damage(e, c->from, &c->scan.missing, c->error);
        c->state = COPY_FAILED;
    }
    if (c->state == COPY_OK) {
        begin(c);
    }
    CO_END(co);
}

/* ---- the items ---- */

static void put_item(struct copy *c, struct slice item)
{
    const struct list_policy *to = c->op->list->policy;
    if (item.len > to->max_item_bytes) {
        snprintf(c->error, LIST_ERROR_MAX,
                 "lcopy: an item is longer than %u bytes (max_item_bytes), nothing done",
                 to->max_item_bytes);
        c->state = COPY_REFUSED;
    } else if (to->delimiter >= 0 && memchr(item.p, to->delimiter, item.len) != NULL) {
        snprintf(
            c->error, LIST_ERROR_MAX,
            "lcopy: an item holds the delimiter of the list that it would be in, nothing done");
        c->state = COPY_REFUSED;
    } else if (c->to_run) {
        writer_put(c->e, c->writer, ENTRY_ADD, item);
    } else {
        fold_apply(c->items, ENTRY_ADD, item);
    }
    c->count++;
}

static bool may_go_on(const struct copy *c)
{
    return c->state == COPY_OK && !c->over && !writer_failed(c->writer);
}

static bool visit_base(void *arg, struct sublist *s)
{
    struct copy *c = arg;
    for (uint32_t i = 0; i < s->count && c->state == COPY_OK; i++) {
        content_expect(&c->content, s, i);
        struct slice item = sublist_item(s, i);
        char op = fold_over(&c->content.overlay, s->ops[i], item);
        if (op != 0 && op != ENTRY_DEL) {
            put_item(c, item);
        }
    }
    return may_go_on(c) && c->op->due < WRITES_MAX;
}

/* Takes the scan as far as it can go now. True when it is over, well or not. */
static bool base_over(struct engine *e, struct copy *c)
{
    c->e = e;
    c->scan.state = scan_step(e, c->op, &c->scan);
    if (c->scan.visit.index == c->scan.total) {
        c->scan.state = SCAN_END;
        return true;
    }
    return c->scan.state == SCAN_MISSING || c->scan.state == SCAN_ERROR || !may_go_on(c);
}

/* What stands behind the base, some of it. True when that is all. */
static bool put_rest(struct engine *e, struct copy *c)
{
    char op;
    struct slice item;
    c->e = e;
    for (unsigned n = 0; n < WRITE_SLICE_ITEMS && may_go_on(c) && c->op->due < WRITES_MAX; n++) {
        if (!fold_next(&c->content.overlay, true, &c->rest_at, &op, &item)) {
            return true;
        }
        put_item(c, item);
    }
    return !may_go_on(c);
}

static void take_any(struct copy *c, const struct op_event *event)
{
    if (event != NULL && (event->tag & TAG_SCAN) != 0) {
        scan_take(&c->scan, event);
    } else {
        writer_take_reply(c->writer, event);
    }
}

/* The scan has ended: what it says of the list. */
static void settle_scan(struct copy *c)
{
    if (c->state != COPY_OK || c->over) {
        return;
    }
    if (c->content.too_large) {
        c->state = COPY_FAILED;
        snprintf(c->error, LIST_ERROR_MAX,
                 "list needs more than fold_memory_bytes to be read: compact it with lcompact");
    } else if (c->scan.state == SCAN_MISSING) {
        c->state = COPY_AGAIN;
        c->missed_any = true;
        c->missed = c->scan.missing.name;
    } else if (c->scan.state == SCAN_ERROR) {
        c->state = COPY_FAILED;
        snprintf(c->error, LIST_ERROR_MAX, "%s", c->scan.error);
    }
}

/* Newer runs and the log, into memory. */
static enum progress overlay_step(struct engine *e, struct copy *c, const struct op_event *event)
{
    struct co *co = &c->op->co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    runs = content_overlay_runs(&c->content, &count);
    scan_start(c->op, &c->scan, runs, count, false, true, content_fold_visit, &c->content);
    SCAN_RUN(co, e, c->op, &c->scan, "reading newer runs to be copied");
    scan_stop(c->op, &c->scan);
    settle_scan(c);
    if (c->state == COPY_OK) {
        content_fold_log(&c->content, c->head->log);
    }
    CO_END(co);
}

enum progress copy_stream_step(struct engine *e, struct copy *c, const struct op_event *event)
{
    struct co *co = &c->op->co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    CO_CALL(co, overlay_step(e, c, event));
    if (!may_go_on(c)) {
        CO_RETURN(co);
    }
    runs = content_base_run(&c->content, &count);
    scan_start(c->op, &c->scan, runs, count, false, true, visit_base, c);
    while (!base_over(e, c)) {
        CO_PAUSE(co, "reading the oldest run to be copied",
                 c->scan.state == SCAN_YIELD ? PROGRESS_YIELD : PROGRESS_WAITING);
        take_any(c, event);
        while (c->op->due >= WRITES_MAX) {
            CO_AWAIT(co, "writing copied sublists");
            take_any(c, event);
        }
    }
    settle_scan(c);
    scan_stop(c->op, &c->scan);
    while (may_go_on(c) && !put_rest(e, c)) {
        CO_PAUSE(co, "writing copied sublists",
                 c->op->due >= WRITES_MAX ? PROGRESS_WAITING : PROGRESS_YIELD);
        take_any(c, event);
    }
    if (may_go_on(c) && c->to_run) {
        writer_flush(e, c->writer);
    }
    while (c->op->due > 0) {
        CO_AWAIT(co, "writing the last copied sublists");
        take_any(c, event);
    }
    if (may_go_on(c) && c->count == 0 && c->from->policy->on_missing == ON_MISSING_CREATE) {
        c->state = COPY_MISSING;
    }
    CO_END(co);
}
