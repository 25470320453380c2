/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/stream.h"

#include <stdio.h>

#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"

/* Items behind the oldest run that are passed on before others get their turn. */
#define SLICE_ITEMS 4096u

void stream_init(struct engine *e, struct stream *s, struct op *op, struct slice key,
                 const struct list_policy *policy, const struct stream_sink *sink, void *arg,
                 char error[LIST_ERROR_MAX])
{
    *s = (struct stream){.op = op, .sink = sink, .arg = arg, .error = error};
    s->from = lists_get(&e->lists, key, policy);
    s->from->ops++;
    op->reads = s->from;
}

void stream_fini(struct stream *s)
{
    if (s->from == NULL) {
        return;
    }
    scan_stop(s->op, &s->scan);
    if (s->content_ready) {
        content_fini(&s->content);
    }
    head_unref(&s->head);
    s->from->ops--;
    s->from = NULL;
}

uint64_t stream_bytes(const struct stream *s)
{
    return head_run_bytes(s->head) + s->head->log.len;
}

/* ---- the head ---- */

static void take_head(struct engine *e, struct stream *s, const struct op_event *event)
{
    head_unref(&s->head);
    s->state = STREAM_FAILED;
    if (event->status == BE_MISS) {
        s->state = STREAM_MISSING;
    } else if (event->status != BE_HIT) {
        op_error_text(event, s->error);
    } else if (event->head == NULL) {
        list_report_foreign(e, s->from, event->reply, s->error);
    } else {
        CHECK(event->head->open_count == 0);
        s->head = head_ref(event->head);
        bool refuse = s->from->policy->on_missing == ON_MISSING_REFUSE;
        s->head->read_s = s->with_over ? ENTRY_NEVER_OVER : e->now.wall_s;
        s->state = refuse && head_is_absent(s->head) ? STREAM_MISSING : STREAM_OK;
    }
}

static void begin(struct stream *s)
{
    if (s->content_ready) {
        content_fini(&s->content);
    }
    content_init(&s->content, s->head, s->from->policy);
    s->content_ready = true;
    s->count = 0;
    s->rest_at = 0;
}

/* Does the head still name the run of which a sublist was missing? Names never return. */
static bool is_damaged(const struct stream *s)
{
    return s->missed_any && head_names_run(s->head, &s->missed);
}

enum progress stream_look_step(struct engine *e, struct stream *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    CO_BEGIN(co);
    emit_get_of(e, s->op, s->from, TAG_STREAM_HEAD);
    CO_AWAIT(co, "reading the head of a list to go through it");
    take_head(e, s, event);
    if (s->state == STREAM_OK && is_damaged(s)) {
        list_report_damage(e, s->from, &s->scan.missing, s->error);
        s->state = STREAM_FAILED;
    }
    if (s->state == STREAM_OK) {
        begin(s);
    }
    CO_END(co);
}

/* ---- the items ---- */

static void put(struct stream *s, const struct entry *entry)
{
    s->sink->put(s, entry);
    s->count++;
}

static bool may_go_on(const struct stream *s)
{
    return s->state == STREAM_OK && !s->over && !s->sink->failed(s);
}

static enum visited visit_base(void *arg, struct sublist *sublist)
{
    struct stream *s = arg;
    for (uint32_t i = 0; i < sublist->count && s->state == STREAM_OK; i++) {
        content_expect(&s->content, sublist, i);
        struct entry entry = sublist_entry(sublist, i);
        entry.op = fold_over(&s->content.overlay, entry.op, entry.bytes);
        if (entry_is_in(entry.op, entry.until_s, s->content.over_s)) {
            entry.op = entry.op == ENTRY_TIMED ? ENTRY_TIMED : ENTRY_ADD;
            put(s, &entry);
        }
    }
    return may_go_on(s) && s->sink->has_room(s);
}

/* Takes the scan as far as it can go now. True when it is over, well or not. */
static bool base_over(struct engine *e, struct stream *s)
{
    s->e = e;
    s->scan.state = scan_step(e, s->op, &s->scan);
    if (s->scan.visit.index == s->scan.total) {
        s->scan.state = SCAN_END;
        return true;
    }
    return s->scan.state == SCAN_MISSING || s->scan.state == SCAN_ERROR || !may_go_on(s);
}

/* What stands behind the base, some of it. True when that is all. */
static bool put_rest(struct engine *e, struct stream *s)
{
    struct entry entry;
    s->e = e;
    for (unsigned n = 0; n < SLICE_ITEMS && may_go_on(s) && s->sink->has_room(s); n++) {
        if (!fold_next_entry(&s->content.overlay, true, s->content.over_s, &s->rest_at, &entry)) {
            return true;
        }
        put(s, &entry);
    }
    return !may_go_on(s);
}

bool stream_take(struct stream *s, const struct op_event *event)
{
    if (event == NULL || (event->tag & TAG_SCAN) == 0) {
        return false;
    }
    scan_take(&s->scan, event);
    return true;
}

static void take_any(struct stream *s, const struct op_event *event)
{
    if (!stream_take(s, event) && event != NULL) {
        s->sink->take(s, event);
    }
}

/* The scan has ended: what it says of the list. */
static void settle_scan(struct stream *s)
{
    if (s->state != STREAM_OK || s->over) {
        return;
    }
    if (s->content.too_large) {
        s->state = STREAM_FAILED;
        snprintf(s->error, LIST_ERROR_MAX,
                 "list needs more than fold_memory_bytes to be read: compact it with lcompact");
    } else if (s->scan.state == SCAN_MISSING) {
        s->state = STREAM_AGAIN;
        s->missed_any = true;
        s->missed = s->scan.missing.name;
    } else if (s->scan.state == SCAN_ERROR) {
        s->state = STREAM_FAILED;
        snprintf(s->error, LIST_ERROR_MAX, "%s", s->scan.error);
    }
}

/* Newer runs and the log, into memory. */
static enum progress overlay_step(struct engine *e, struct stream *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    runs = content_overlay_runs(&s->content, &count);
    scan_start(s->op, &s->scan, runs, count, false, true, content_fold_visit, &s->content);
    SCAN_RUN(co, e, s->op, &s->scan, "reading newer runs");
    scan_stop(s->op, &s->scan);
    settle_scan(s);
    if (s->state == STREAM_OK) {
        content_fold_log(&s->content, s->head->log);
    }
    CO_END(co);
}

enum progress stream_step(struct engine *e, struct stream *s, const struct op_event *event)
{
    struct co *co = &s->op->co;
    const struct run *runs;
    size_t count;
    CO_BEGIN(co);
    CO_CALL(co, overlay_step(e, s, event));
    if (!may_go_on(s)) {
        CO_RETURN(co);
    }
    runs = content_base_run(&s->content, &count);
    scan_start(s->op, &s->scan, runs, count, false, true, visit_base, s);
    while (!base_over(e, s)) {
        if (s->sink->has_room(s)) {
            CO_PAUSE(co, "reading the oldest run",
                     s->scan.state == SCAN_YIELD ? PROGRESS_YIELD : PROGRESS_WAITING);
            take_any(s, event);
        }
        if (!s->sink->has_room(s)) {
            CO_CALL(co, s->sink->make_room(e, s, event));
        }
    }
    settle_scan(s);
    scan_stop(s->op, &s->scan);
    while (may_go_on(s) && !put_rest(e, s)) {
        if (s->sink->has_room(s)) {
            CO_PAUSE(co, "passing on what stands behind the oldest run", PROGRESS_YIELD);
            take_any(s, event);
        } else {
            CO_CALL(co, s->sink->make_room(e, s, event));
        }
    }
    CO_END(co);
}
