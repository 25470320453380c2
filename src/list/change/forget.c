/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/forget.h"

#include <stdio.h>

#include "base/memory.h"
#include "list/change/stream.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/core/plain.h"
#include "list/format/fold.h"

/* Names that are held at once, and their bytes; a sublist more. */
#define NAMES_MAX ((size_t)16384)
#define NAMES_BYTES_MAX ((size_t)1 << 20)
/* How often a piece is tried. */
#define TRIES_MAX 16
/* How often a compaction by this worker is waited for. */
#define CALMS_MAX 8
/* First pause after a conflict; doubles up to 2^8 times that: 50 ms. */
#define BACKOFF_US 200u

struct op_forget {
    struct op op;
    struct list_call *call; /* NULL: it was answered, or its time is over */
    struct stream stream;
    struct plain_batch batch;
    size_t memory_bytes; /* counted for the batch */
    bool any;            /* the list held a name */
    bool has_timed;      /* some of the names have a time of their own in the list */
    bool is_all;         /* the batch is all that the list holds, by the head that was read last */
    size_t from, to;     /* the piece of it that is at work */
    struct head *before; /* read before the piece's items were deleted; NULL: to be read */
    struct head *now;    /* read behind that */
    bool marked;         /* mark was appended before */
    struct name mark;
    struct block *entries; /* that take names off */
    size_t off;            /* how many these are */
    bool gone;             /* there is no list any more */
    bool settled;          /* the piece's names are off the list, or stay for good */
    bool sent;             /* the CAS is on its way */
    uint64_t done;         /* names that are off */
    unsigned tries, conflicts;
    char error[LIST_ERROR_MAX];
};

/* ---- answers ---- */

static bool goes_on(const struct op_forget *f)
{
    return f->call != NULL;
}

static void stop(struct op_forget *f)
{
    f->call = NULL;
    f->stream.over = true;
    f->batch.over = true;
}

/* What is known of the names, behind how many are off. */
static void describe(const struct op_forget *f, bool unknown, char text[LIST_ERROR_MAX])
{
    int n = snprintf(text, LIST_ERROR_MAX, "%llu names purged", (unsigned long long)f->done);
    if (unknown) {
        n += snprintf(text + n, LIST_ERROR_MAX - (size_t)n,
                      ", of %zu more it is unknown whether they are in the list", f->off);
    }
    snprintf(text + n, LIST_ERROR_MAX - (size_t)n, ", the others stay in the list");
}

static void fail(struct engine *e, struct op_forget *f, bool unknown, const char *why)
{
    char known[LIST_ERROR_MAX];
    struct list_call *call = f->call;
    if (call != NULL) {
        describe(f, unknown, known);
        stop(f);
        call_fail(e, f->op.list, call, "lpurge: %.120s: %.120s", known, why);
    }
}

static void answer(struct engine *e, struct op_forget *f)
{
    struct list_call *call = f->call;
    bool refuse = f->op.list->policy->on_missing == ON_MISSING_REFUSE;
    bool must_be = call->condition == LIST_IF_PRESENT;
    if (f->stream.state == STREAM_FAILED) {
        fail(e, f, false, f->error);
        return;
    }
    stop(f);
    call->number = f->done;
    if (f->batch.kept > 0) {
        metric_add(e->metrics, METRIC_list_purge_failures, f->batch.kept);
        plain_tell(&f->batch, f->done, f->error);
        call_fail(e, f->op.list, call, "%s", f->error);
    } else if (f->stream.state == STREAM_MISSING && refuse && f->done == 0) {
        call_finish(e, f->op.list, call, LIST_MISSING);
    } else if (must_be && !f->any) {
        call_finish(e, f->op.list, call, LIST_NOT_STORED);
    } else {
        call_finish(e, f->op.list, call, LIST_OK);
    }
}

/* ---- reading ---- */

static void count_memory(struct op_forget *f)
{
    size_t bytes = plain_bytes(&f->batch);
    memory_give(f->memory_bytes);
    memory_take(bytes);
    f->memory_bytes = bytes;
    if (f->call != NULL) {
        session_charge(f->call, bytes);
    }
}

/* Waits for an answer to a request of its own: what was read ahead of the list is taken along. */
#define FORGET_AWAIT(co, f, name) \
    do { \
        CO_AWAIT(co, name); \
    } while (stream_take(&(f)->stream, event))

static void note_head(struct engine *e, struct op_forget *f, const struct op_event *event,
                      struct head **head)
{
    enum head_result got = op_take_head(e, &f->op, event, head, f->error);
    if (got == GOT_ERROR) {
        fail(e, f, false, f->error);
    } else if (got != GOT_HEAD) {
        head_unref(head);
        f->gone = true;
    }
}

static void emit_mark(struct engine *e, struct op_forget *f)
{
    struct block *value = block_new(64);
    f->mark = mark_append(&value, e->rng, e->now.wall_s);
    emit_append(e, &f->op, value, FORGET_TAG_MARK);
    block_unref(&value);
}

/* This worker is about to write the head anew, and what is read now would soon be void: waits for
 * that, a moment at most. */
static enum progress calm_step(struct engine *e, struct op_forget *f, const struct op_event *event)
{
    struct co *co = &f->op.co;
    const struct list *list = f->op.list;
    CO_BEGIN(co);
    for (f->conflicts = 0;
         f->conflicts < CALMS_MAX && goes_on(f) &&
         (list->compaction != NULL || list->merge != NULL || list->wish != WISH_NONE);
         f->conflicts++) {
        CO_SLEEP(&f->op, co, "waiting for a compaction",
                 op_backoff_end_us(e, BACKOFF_US, f->conflicts));
        (void)stream_take(&f->stream, event);
    }
    CO_END(co);
}

/* Reads the head from which on additions are to be seen. The first time without a mark: mostly
 * there is none. */
static enum progress before_step(struct engine *e, struct op_forget *f,
                                 const struct op_event *event)
{
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    CO_CALL(co, calm_step(e, f, event));
    f->marked = f->tries > 0;
    if (f->marked) {
        emit_mark(e, f);
        FORGET_AWAIT(co, f, "marking the list");
    }
    emit_get(e, &f->op, FORGET_TAG_HEAD);
    FORGET_AWAIT(co, f, "reading the head before items are deleted");
    note_head(e, f, event, &f->before);
    CO_END(co);
}

/* Does the head that was read now show all additions since before? Then *since is what was
 * appended, from the mark on: a node of a cluster may lose what came behind the mark, and a client
 * add the same once more. */
static bool shows_additions(const struct op_forget *f, struct slice *since)
{
    const struct head *before = f->before, *now = f->now;
    *since = SLICE_NONE;
    if (now->cas == before->cas && now->epoch == before->epoch) {
        return true;
    }
    return f->marked && log_has_withdrawal(before->log, &f->mark) &&
           slice_starts_with(now->value, before->value) &&
           log_since_mark(now->log, &f->mark, since);
}

/* ---- deciding ---- */

/* Does the list hold nothing but names that go? Then one entry clears it. Were those that stay
 * written behind that, another lpurge would take them for added again, and leave them. */
static bool all_go(const struct op_forget *f, struct slice since)
{
    for (size_t i = f->from; i < f->to; i++) {
        if (f->batch.items[i].state != PLAIN_DELETED) {
            return false;
        }
    }
    return f->is_all && !f->has_timed && since.len == 0 && f->from < f->to;
}

/* What takes the piece's names off, as far as they were deleted, and not added since. */
static void decide(struct op_forget *f, struct slice since)
{
    struct fold fold;
    bool clears = all_go(f, since);
    f->entries->used = 0;
    f->off = 0;
    fold_init(&fold);
    CHECK(fold_apply_entries(&fold, since)); /* a head that was read */
    for (size_t i = f->from; i < f->to; i++) {
        struct plain_item *item = &f->batch.items[i];
        if (item->state != PLAIN_DELETED) {
            continue;
        }
        char outcome = fold_outcome(&fold, item->name);
        if (outcome != 0 && outcome != ENTRY_DEL) {
            item->state = PLAIN_OPEN;
            continue;
        }
        f->off++;
        if (!clears && outcome == 0 && !fold.cleared) {
            entry_append(&f->entries, ENTRY_DEL, item->name);
        }
    }
    fold_fini(&fold);
    if (clears) {
        entry_append(&f->entries, ENTRY_CLEAR, SLICE_NONE);
    }
}

/* A decision that was not carried out. */
static void forget_decision(struct op_forget *f)
{
    f->off = 0;
    for (size_t i = f->from; i < f->to; i++) {
        if (f->batch.items[i].state == PLAIN_OPEN) {
            f->batch.items[i].state = PLAIN_DELETED;
        }
    }
}

static void note_off(struct op_forget *f)
{
    f->settled = true;
    f->done += f->off;
    f->off = 0;
}

/* The list is gone: so are the names. */
static void note_gone(struct op_forget *f)
{
    f->settled = true;
    for (size_t i = f->from; i < f->to; i++) {
        f->done += f->batch.items[i].state == PLAIN_DELETED;
    }
}

/* ---- taking off ---- */

static void emit_off(struct engine *e, struct op_forget *f)
{
    struct block *value = head_with_entries(f->now, slice_make(f->entries->data, f->entries->used));
    f->sent = true;
    emit_cas(e, &f->op, f->now, value, FORGET_TAG_WRITE);
    block_unref(&value);
}

/* False: another writer was faster. */
static bool take_off_settled(struct engine *e, struct op_forget *f, const struct op_event *event)
{
    struct list *list = f->op.list;
    f->sent = false;
    if (event->status == BE_STORED) {
        list_note_size(list, f->now->value.len + f->entries->used);
        note_off(f);
        if (f->now->run_count > 0 && f->entries->data[0] == ENTRY_CLEAR) {
            lists_wish(&e->lists, list, WISH_COMPACT, NULL); /* they are garbage now */
        }
        list_consider_compaction(e, list, 0);
        return true;
    }
    if (write_was_refused(event->status)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        forget_decision(f);
        return false;
    }
    bool unknown = event->status == BE_LOST;
    metric_add(e->metrics, METRIC_list_out_of_memory, op_found_no_memory(event));
    op_error_text(event, f->error);
    fail(e, f, unknown, f->error);
    return true;
}

/* Decides by the head that was read now. True when something is to be written; else it is settled,
 * or the items are to be deleted again, from a newer head on. */
static bool must_write(struct engine *e, struct op_forget *f)
{
    struct slice since;
    if (!goes_on(f) || !shows_additions(f, &since)) {
        return false;
    }
    decide(f, since);
    if (f->entries->used == 0) {
        note_off(f);
        return false;
    }
    if (!list_has_room(f->op.list, f->now, f->entries->used)) {
        lists_wish(&e->lists, f->op.list, WISH_COMPACT, NULL);
        forget_decision(f);
        return false;
    }
    return true;
}

/* Ends with settled, or without the call, or with neither: the items are to be deleted again. */
static enum progress take_off_step(struct engine *e, struct op_forget *f,
                                   const struct op_event *event)
{
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    for (f->conflicts = 0; f->conflicts < TRIES_MAX && goes_on(f); f->conflicts++) {
        if (f->conflicts > 0) {
            CO_SLEEP(&f->op, co, "backing off before taking names off again",
                     op_backoff_end_us(e, BACKOFF_US, f->conflicts));
            (void)stream_take(&f->stream, event);
        }
        while (goes_on(f) && !op_become_publisher(&f->op)) {
            CO_AWAIT(co, "waiting for own changes");
            (void)stream_take(&f->stream, event);
        }
        if (!goes_on(f)) {
            break;
        }
        head_unref(&f->now);
        emit_get(e, &f->op, FORGET_TAG_HEAD);
        FORGET_AWAIT(co, f, "reading the head behind the deletions");
        note_head(e, f, event, &f->now);
        if (f->gone && goes_on(f)) {
            note_gone(f);
            break;
        }
        if (!must_write(e, f)) {
            break;
        }
        emit_off(e, f);
        FORGET_AWAIT(co, f, "taking names off the list");
        if (take_off_settled(e, f, event)) {
            break;
        }
        op_stop_publishing(e, &f->op);
    }
    op_stop_publishing(e, &f->op);
    CO_END(co);
}

/* ---- pieces ---- */

/* Where the piece ends that begins at from: its entries fit the log of a list that is compacted,
 * beside those of others. */
static size_t piece_end(const struct op_forget *f)
{
    size_t bytes = 0, to = f->from, most = list_log_hard_limit(f->op.list) / 4;
    while (to < f->batch.count && (to == f->from || bytes < most)) {
        bytes += entry_bytes(f->batch.items[to++].name.len);
    }
    return to;
}

/* Once more, from a newer head on, and in smaller pieces. */
static void begin_again(struct op_forget *f)
{
    head_unref(&f->before);
    plain_reopen(&f->batch, f->from, f->to);
    f->is_all = false;
    f->to = piece_end(f);
}

static enum progress piece_step(struct engine *e, struct op_forget *f, const struct op_event *event)
{
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    f->settled = false;
    for (f->tries = 0; f->tries < TRIES_MAX && goes_on(f) && !f->settled; f->tries++) {
        if (f->tries > 1) {
            CO_SLEEP(&f->op, co, "backing off before deleting again",
                     op_backoff_end_us(e, BACKOFF_US, f->tries));
            (void)stream_take(&f->stream, event);
        }
        if (f->before == NULL && !f->gone) {
            CO_CALL(co, before_step(e, f, event));
        }
        CO_CALL(co,
                plain_delete_step(e, &f->op, &f->batch, f->from, f->to, &f->stream.scan, event));
        if (f->gone && goes_on(f)) {
            note_gone(f);
        } else if (goes_on(f)) {
            CO_CALL(co, take_off_step(e, f, event));
        }
        if (!f->settled) {
            begin_again(f);
        }
    }
    if (goes_on(f) && !f->settled) {
        metric_inc(e->metrics, METRIC_list_busy);
        fail(e, f, false, "busy: other writers were faster each time");
    }
    /* Those that were added again meanwhile. */
    CO_CALL(co, plain_delete_step(e, &f->op, &f->batch, f->from, f->to, &f->stream.scan, event));
    head_unref(&f->before);
    CO_END(co);
}

static enum progress batch_step(struct engine *e, struct op_forget *f, const struct op_event *event)
{
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    count_memory(f);
    for (f->from = 0; f->from < f->batch.count && goes_on(f); f->from = f->to) {
        f->to = f->is_all ? f->batch.count : piece_end(f);
        CO_CALL(co, piece_step(e, f, event));
    }
    plain_clear(&f->batch);
    CO_END(co);
}

/* ---- the list's names ---- */

static void put_name(struct stream *s, const struct entry *entry)
{
    struct op_forget *f = s->arg;
    plain_add(s->e->config, &f->batch, entry->bytes);
    f->any = true;
    f->has_timed = f->has_timed || entry->op == ENTRY_TIMED;
}

static bool has_room(const struct stream *s)
{
    const struct op_forget *f = s->arg;
    return f->batch.count < NAMES_MAX && f->batch.names.bytes < NAMES_BYTES_MAX;
}

static enum progress make_room(struct engine *e, struct stream *s, const struct op_event *event)
{
    struct op_forget *f = s->arg;
    struct co *co = &f->op.co;
    CO_BEGIN(co);
    f->is_all = false;
    CO_CALL(co, batch_step(e, f, event));
    CO_END(co);
}

static void take_nothing(struct stream *s, const struct op_event *event)
{
    (void)s;
    (void)event;
}

static bool never_fails(const struct stream *s)
{
    (void)s;
    return false;
}

static const struct stream_sink sink = {.put = put_name,
                                        .has_room = has_room,
                                        .make_room = make_room,
                                        .take = take_nothing,
                                        .failed = never_fails};

/* ---- all together ---- */

static void begin(struct op_forget *f)
{
    plain_clear(&f->batch);
    f->batch.kept = 0;
    f->is_all = true;
    f->has_timed = false;
    head_unref(&f->before);
    f->before = f->stream.head != NULL ? head_ref(f->stream.head) : NULL;
    f->marked = false;
    f->gone = false;
}

static enum progress forget_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_forget *f = (struct op_forget *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    do {
        CO_CALL(co, calm_step(e, f, event));
        CO_CALL(co, stream_look_step(e, &f->stream, event));
        begin(f);
        if (f->stream.state == STREAM_OK) {
            CO_CALL(co, stream_step(e, &f->stream, event));
        }
        if (f->stream.state == STREAM_OK) {
            CO_CALL(co, batch_step(e, f, event));
        }
    } while (goes_on(f) && f->stream.state == STREAM_AGAIN);
    if (goes_on(f)) {
        answer(e, f);
    }
    CO_END(co);
}

static enum list_known forget_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_forget *f = (struct op_forget *)op;
    char known[LIST_ERROR_MAX];
    (void)e;
    CHECK(f->call == call);
    describe(f, f->sent, known);
    stop(f); /* it waits for what it has sent */
    snprintf(call->error, sizeof call->error, "lpurge: deadline over: %.200s", known);
    return KNOWN_TOLD;
}

static void forget_fini(struct engine *e, struct op *op)
{
    struct op_forget *f = (struct op_forget *)op;
    (void)e;
    memory_give(f->memory_bytes);
    stream_fini(&f->stream);
    plain_fini(&f->batch);
    head_unref(&f->before);
    head_unref(&f->now);
    block_unref(&f->entries);
}

void forget_start(struct engine *e, struct list *list, struct list_call *call)
{
    struct op_forget *f = op_create(e, list, sizeof *f, forget_step, forget_fini);
    f->op.let_go = forget_let_go;
    f->call = call;
    call->op = &f->op;
    f->entries = block_new(BLOCK_BYTES);
    op_enter(&f->op, &list->forget);
    stream_init(e, &f->stream, &f->op, list_key(list), list->policy, &sink, f, f->error);
    f->stream.with_over = true; /* other proxies' clocks may say otherwise */
    op_run(e, &f->op);
}
