/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over the queue of a list of a dialect: at most one operation that writes and one that
 * reads are under way. Each carries all calls that may travel in it. A session's read waits for its
 * changes and the other way round.
 */
#include "dialect/shared/dialect.h"
#include "list/core/pass.h"

struct start {
    struct pass pass;
    const struct dialect *dialect;
    struct work *writer, *reader;
    bool writer_waits; /* a change could not start: the ones behind it wait, or it would never start
                        */
};

static work_step *run_of(const struct list *list, enum lane lane, enum list_verb verb)
{
    const struct dialect *dialect = dialect_of(list);
    if (lane == LANE_READ) {
        return dialect_read;
    }
    if (lane == LANE_EXACT) {
        return dialect->exact;
    }
    if (verb == LIST_CONVERT) {
        return migration_of(list)->convert;
    }
    if (lane == LANE_ALONE) {
        return verb == LIST_DROP    ? dialect->drop
               : verb == LIST_SET   ? dialect->set
               : verb == LIST_TOUCH ? dialect->touch
               : verb == LIST_PURGE ? dialect->purge
                                    : dialect->compact;
    }
    return dialect->change;
}

static bool take_read(struct start *start, struct list_call *call)
{
    struct pass *pass = &start->pass;
    struct list *list = pass->list;
    enum phase phase = pass_phase(pass, call);
    if ((list->reader != NULL && start->reader == NULL) ||
        (phase != PHASE_FREE && phase != PHASE_READING)) {
        return false;
    }
    if (!session_admit(call, list->extent)) {
        pass_defer(pass, call);
        return false;
    }
    if (start->reader == NULL) {
        start->reader = work_create(pass->e, list, LANE_READ, dialect_read);
    } else {
        metric_inc(pass->e->metrics, METRIC_list_head_reads_combined);
    }
    pass_activate(pass, call);
    work_add(start->reader, call);
    pass_set_phase(pass, call, PHASE_READING);
    return true;
}

/* May the call travel with those that the writer has? A batch stays far below the size of one item.
 * */
static bool joins(const struct start *start, enum lane lane)
{
    const struct work *writer = start->writer;
    return writer->lane == lane && lane != LANE_ALONE &&
           writer->call_bytes < list_log_hard_limit(start->pass.list) / 2;
}

static bool take_change(struct start *start, struct list_call *call, enum lane lane)
{
    struct pass *pass = &start->pass;
    struct list *list = pass->list;
    enum phase phase = pass_phase(pass, call);
    bool free_place = list->writer == NULL || (start->writer != NULL && joins(start, lane));
    if (start->writer_waits || !free_place || (phase != PHASE_FREE && phase != PHASE_CHANGED)) {
        start->writer_waits = start->writer_waits || phase == PHASE_FREE;
        return false;
    }
    if (start->writer == NULL) {
        start->writer = work_create(pass->e, list, lane, run_of(list, lane, call->verb));
    } else {
        metric_inc(pass->e->metrics, METRIC_list_appends_combined);
    }
    pass_activate(pass, call);
    work_add(start->writer, call);
    pass_set_phase(pass, call, PHASE_CHANGED);
    return true;
}

/* A list in one item that may move is changed by CAS alone; so is one of counted items, unless the
 * file wants blind changes. */
static enum lane lane_of(const struct start *start, const struct list_call *call)
{
    const struct list *list = start->pass.list;
    enum lane lane = dialect_lane(start->dialect, call->verb);
    bool blind = lane == LANE_ADD || lane == LANE_DELETE || lane == LANE_CHANGE;
    bool exact = (start->dialect->one_item && list_migrates(list)) ||
                 (start->dialect->counted && list->policy->changes == CHANGES_EXACT);
    return blind && exact ? LANE_EXACT : lane;
}

static bool take(struct pass *pass, struct list_call *call)
{
    struct start *start = (struct start *)pass;
    enum lane lane = lane_of(start, call);
    return lane == LANE_READ ? take_read(start, call) : take_change(start, call, lane);
}

void dialect_schedule(struct engine *e, struct list *list)
{
    struct start start = {.pass = {.e = e, .list = list, .take = take},
                          .dialect = dialect_of(list)};
    if (list_migrates(list) && known_of(list)->kept == KEPT_UNKNOWN) {
        if (list->writer == NULL && list->reader == NULL && !TAILQ_EMPTY(&list->queue)) {
            op_run(e, &work_create(e, list, LANE_ALONE, migration_of(list)->resolve)->op);
        }
        return;
    }
    if (list->wants_compaction && list->writer == NULL) {
        list->wants_compaction = false;
        start.writer = work_create(e, list, LANE_ALONE, start.dialect->compact);
    }
    if (!TAILQ_EMPTY(&list->queue)) {
        pass_begin(&start.pass);
        pass_queue(&start.pass);
    }
    if (start.writer != NULL) {
        op_run(e, &start.writer->op);
    }
    if (start.reader != NULL) {
        op_run(e, &start.reader->op);
    }
}

void dialect_appended(struct engine *e, struct list *list, uint64_t bytes)
{
    list->appended_bytes += bytes;
    uint64_t known = list->size_known ? list->size_bytes / 2 : 0;
    uint64_t limit = list->policy->log_limit_bytes;
    if (list->appended_bytes >= (known > limit ? known : limit)) {
        list->appended_bytes = 0;
        list->wants_compaction = true;
        lists_mark_ready(&e->lists, list);
    }
}
