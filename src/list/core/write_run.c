/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/write_run.h"

#include "list/core/engine_state.h"
#include "list/core/run_index.h"

/* A second may end between a look at the clock and a write; servers' seconds end at any time. */
#define SLACK_S 2
/* What the clocks of nodes of a cluster may differ by. */
#define CLUSTER_SKEW_S (60 * 60)

void writer_live(struct run_writer *w, int64_t now_s, int64_t until_s)
{
    int64_t left_s = until_s - now_s + SLACK_S;
    w->until_s = until_s;
    if (until_s == 0) {
        w->exptime = 0;
    } else if (w->op->list->policy->pool_type == POOL_COUCHBASE) {
        w->exptime = (int32_t)(until_s + CLUSTER_SKEW_S); /* the clock was not the node's */
    } else if (left_s <= EXPTIME_RELATIVE_MAX_S) {
        w->exptime = (int32_t)(left_s < SUBLISTS_STEP_MIN_S ? SUBLISTS_STEP_MIN_S : left_s);
    } else {
        w->exptime = (int32_t)(until_s + SERVER_SKEW_S);
    }
}

void writer_init(struct engine *e, struct run_writer *w, struct op *op, uint64_t bytes_max,
                 char error[LIST_ERROR_MAX])
{
    uint64_t limit = list_sublist_limit(op->list);
    writer_fini(w);
    *w = (struct run_writer){
        .op = op, .error = error, .limit_bytes = limit, .times = RUN_TIMES_NONE};
    name_fresh(&w->announcement.range.name, e->rng);
    /* An entry that does not fit closes a sublist: any two neighbours hold more than one limit
     * together. */
    uint64_t most = 2 * bytes_max / (limit - SUBLIST_HEADER_BYTES) + 2;
    w->announcement.range.count = most > SUBLISTS_MAX ? SUBLISTS_MAX : (uint32_t)most;
    w->announcement.created_s = e->now.wall_s;
    w->run.range.name = w->announcement.range.name;
}

void writer_fini(struct run_writer *w)
{
    block_unref(&w->sublist);
    run_index_give_up(&w->index);
}

void writer_make_index(struct engine *e, struct run_writer *w, uint64_t list_bytes)
{
    if (e->indexes != NULL && !lists_view_fits(&e->lists, list_bytes, 0)) {
        w->index = run_index_begin(e->indexes, list_key(w->op->list), &w->run.range.name,
                                   w->announcement.range.count, list_bytes / ENTRY_BYTES_TYPICAL);
    }
}

enum progress writer_index_step(struct engine *e, struct run_writer *w)
{
    struct co *co = &w->op->co;
    CO_BEGIN(co);
    while (w->index != NULL && w->run.range.count > 0 && !writer_failed(w) &&
           !run_index_sort(w->index)) {
        CO_PAUSE(co, "sorting the index of what was written", PROGRESS_YIELD);
    }
    if (w->index != NULL && w->run.range.count > 0 && !writer_failed(w)) {
        struct locator *locator = run_index_end(&w->index);
        locator_unref(&locator);
        metric_inc(e->metrics, METRIC_run_indexes);
    }
    run_index_give_up(&w->index);
    CO_END(co);
}

static void emit_announcement(struct engine *e, struct run_writer *w)
{
    struct block *b = block_new(64);
    announcement_append(&b, &w->announcement);
    emit_append(e, w->op, b, TAG_ANNOUNCE);
    block_unref(&b);
}

/* The same by CAS of the head as it was read. */
static void emit_announcing_cas(struct engine *e, struct run_writer *w, const struct head *head)
{
    struct block *b = block_new(head->value.len + 64);
    block_append(&b, head->value.p, head->value.len);
    announcement_append(&b, &w->announcement);
    emit_cas(e, w->op, head, b, TAG_ANNOUNCE);
    block_unref(&b);
}

static void take_announced(struct engine *e, struct run_writer *w, struct head **head,
                           const struct op_event *event)
{
    bool gone = write_was_refused(event->status);
    if (event->tag == TAG_HEAD) {
        head_unref(head);
        (void)op_take_head(e, w->op, event, head, w->error);
    } else if (event->status == BE_STORED) {
        w->announced = true;
    } else {
        w->refused = true;
        w->conflict = gone;
        w->no_memory = op_found_no_memory(event);
        w->is_full = event->status == BE_TOO_LARGE;
        if (!gone) {
            op_error_text(event, w->error);
        }
    }
}

enum progress announce_step(struct engine *e, struct run_writer *w, struct head **head,
                            const struct op_event *event, const char *name)
{
    struct op *op = w->op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    emit_announcement(e, w);
    emit_get(e, op, TAG_HEAD);
    while (op->due > 0) {
        CO_AWAIT(co, name);
        take_announced(e, w, head, event);
    }
    if (w->refused && w->conflict && *head != NULL) {
        /* There is a head, but it takes no appends: extstore has it on disk, or there is no memory
         * for a longer one in this moment. */
        w->refused = w->conflict = false;
        emit_announcing_cas(e, w, *head);
        CO_AWAIT(co, name);
        take_announced(e, w, head, event);
        if (w->announced) {
            /* Not before: a CAS that keeps an expiry is sent when the server's clock is known. */
            emit_get(e, op, TAG_HEAD);
            CO_AWAIT(co, name);
            take_announced(e, w, head, event);
        }
    }
    if (w->refused) {
        head_unref(head);
    }
    CO_END(co);
}

void writer_flush(struct engine *e, struct run_writer *w)
{
    if (w->sublist == NULL) {
        return;
    }
    if (w->run.range.count == w->announcement.range.count) {
        /* More than was announced would be beyond the reach of a sweep. */
        w->refused = true;
    } else {
        sublist_finish(w->sublist, w->sublist_entries);
        emit_add_sublist(e, w->op, &w->run.range.name, w->run.range.count, w->exptime, w->sublist,
                         TAG_SUBLIST);
        w->run.bytes += w->sublist->used;
        w->run.range.count++;
    }
    block_unref(&w->sublist);
    w->sublist_entries = 0;
    if (w->index != NULL && !run_index_end_sublist(w->index)) {
        run_index_give_up(&w->index);
    }
}

void writer_put(struct engine *e, struct run_writer *w, const struct entry *entry)
{
    if (w->sublist != NULL && w->sublist->used + entry_size(entry) > w->limit_bytes) {
        writer_flush(e, w);
    }
    if (w->sublist == NULL) {
        w->sublist = sublist_begin(w->limit_bytes);
    }
    entry_put(&w->sublist, entry);
    w->sublist_entries++;
    w->run.items += entry->op != ENTRY_DEL;
    run_times_add(&w->times, entry);
    if (w->index != NULL) {
        run_index_add(w->index, entry->op, entry->bytes);
    }
}

uint64_t writer_bytes(const struct run_writer *w)
{
    if (w->run.range.count > 0 || w->refused) {
        return UINT64_MAX;
    }
    return w->sublist == NULL ? 0 : w->sublist->used;
}

struct slice writer_entries(const struct run_writer *w)
{
    const struct block *s = w->sublist;
    return s == NULL ? SLICE_NONE
                     : slice_make(s->data + SUBLIST_HEADER_BYTES, s->used - SUBLIST_HEADER_BYTES);
}

void writer_take_reply(struct run_writer *w, const struct op_event *event)
{
    if (event == NULL || event->tag != TAG_SUBLIST || event->status == BE_STORED) {
        return;
    }
    /* NOT_STORED: something stands under a name that was drawn here, and is not this proxy's to
     * delete. */
    if (event->status == BE_NOT_STORED) {
        w->unknown = true; /* the call ends with "busy": the backend has made no error */
        return;
    }
    if (event->status == BE_LOST) {
        w->unknown = true;
    } else {
        w->refused = true;
        w->no_memory = w->no_memory || op_found_no_memory(event);
    }
    op_error_text(event, w->error);
}

bool writer_failed(const struct run_writer *w)
{
    return w->refused || w->unknown;
}

int64_t writer_old_s(const struct run_writer *w)
{
    int64_t half_s = w->op->list->policy->announcement_grace_s / 2;
    return w->announcement.created_s + (half_s > 0 ? half_s : 1);
}

bool writer_is_old(const struct engine *e, const struct run_writer *w)
{
    return e->now.wall_s >= writer_old_s(w);
}

/* Nothing of that name is stored: the announcement is taken back by an append, which no other
 * writer can refuse. */
static void emit_withdrawal(struct engine *e, struct run_writer *w)
{
    w->announcement.range.count = 0;
    emit_announcement(e, w);
}

enum progress undo_step(struct engine *e, struct run_writer *w, const struct op_event *event)
{
    enum { WINDOW = 32 };
    struct co *co = &w->op->co;

    CO_BEGIN(co);
    metric_inc(e->metrics, METRIC_list_giveups);
    if (e->indexes != NULL) {
        run_indexes_drop(e->indexes, list_key(w->op->list), &w->run.range.name);
    }
    w->deleted = 0;
    while (w->deleted < w->run.range.count || w->op->due > 0) {
        while (w->deleted < w->run.range.count && w->op->due < WINDOW) {
            emit_delete_sublist(e, w->op, &w->run.range.name, w->deleted++, TAG_DELETE);
        }
        CO_AWAIT(co, "deleting own unpublished sublists");
        if (event->status != BE_DELETED && event->status != BE_NOT_FOUND) {
            w->unknown = true;
        }
    }
    /* What was last seen in the head's place may be no list: then the announcement is gone, too. */
    if (w->announced && !w->unknown && (w->op->list->has_head || w->op->list->is_absent)) {
        emit_withdrawal(e, w);
        CO_AWAIT(co, "withdrawing the announcement");
    }
    CO_END(co);
}
