/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/put_op.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/number.h"
#include "list/change/capped.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"
#include "list/format/fold.h"
#include "list/format/layout.h"

/* First pause after a conflict; doubles up to 2^6 times that: 6 ms. */
#define BACKOFF_US 100u
/* Names under which it tries to write: each is lost to a sweep, or with its head. */
#define NAMES_MAX 8
/* Looks at a list that lacks a sublist: it may have been compacted meanwhile. */
#define LOOKS_MAX 3
/* ADDs that found a head which was not there for the look before: or no memory. */
#define ADDS_MAX 8
/* Looks at a list that gets a time to live, and is the primary of a transaction that is not done.
 */
#define WAITS_MAX 32
/* Times that content is computed from lists of which one is the one to be replaced. */
#define COMPUTED_MAX 32

void put_finish(struct engine *e, struct op_put *p, enum list_status status)
{
    struct list_call *call = p->call;
    p->call = NULL;
    call_finish(e, p->op.list, call, status);
}

void put_fail(struct engine *e, struct op_put *p, const char *text)
{
    struct list_call *call = p->call;
    p->call = NULL;
    if (call != NULL) {
        call_fail(e, p->op.list, call, "%s", text);
    }
}

/* Is it an lcopy? */
static bool put_copies(const struct op_put *p)
{
    return p->copy.stream.from != NULL;
}

/* ---- the content ---- */

void put_count_memory(struct op_put *p)
{
    size_t bytes = fold_bytes(&p->items);
    memory_give(p->memory_bytes);
    memory_take(bytes);
    p->memory_bytes = bytes;
    if (p->call != NULL) {
        session_charge(p->call, bytes + joint_bytes(&p->joint));
    }
}

/* Takes some of the call's items. False when more are left. */
static bool take_items(struct engine *e, struct op_put *p)
{
    const struct list_call *call = p->call;
    uint64_t limit = p->op.list->policy->fold_memory_bytes;
    for (unsigned n = 0; n < WRITE_SLICE_ITEMS && p->taken < call->item_count; n++) {
        struct slice item = call->items[p->taken++];
        p->item_bytes += fold_outcome(&p->items, item) == 0 ? entry_bytes(item.len) : 0;
        fold_apply(&p->items, list_call_adds(call), item);
        p->beyond = p->beyond || (p->items.cap.refuses && fold_outcome(&p->items, item) == 0);
        fold_trim_often(&p->items);
    }
    put_count_memory(p);
    if (p->memory_bytes > limit) {
        char text[LIST_ERROR_MAX];
        snprintf(text, sizeof text,
                 "the items need more than fold_memory_bytes (%llu), nothing done: raise it",
                 (unsigned long long)limit);
        put_fail(e, p, text);
        return true;
    }
    return p->taken == call->item_count;
}

static void append_items(const struct op_put *p, struct block **b)
{
    uint32_t at = 0;
    struct entry entry;
    while (fold_next_entry(&p->items, true, ENTRY_NEVER_OVER, &at, &entry)) {
        entry_put(b, &entry);
    }
}

/* ---- looking ---- */

/* Does the head that was read last say that the list is missing? Where a missing list is an empty
 * one, it is that. */
static bool put_is_absent(const struct op_put *p)
{
    return p->head != NULL && head_is_absent(p->head) &&
           p->op.list->policy->on_missing == ON_MISSING_REFUSE;
}

bool put_is_left(const struct op_put *p)
{
    return p->left != NULL && slice_equal(p->head->value, slice_make(p->left->data, p->left->used));
}

/* Is the head of the version that the client has seen, but for the announcement? */
static bool is_expected(const struct op_put *p)
{
    return put_is_left(p) || head_version(p->head->cas, p->head->value) == p->call->expected;
}

/* Does the condition ask whether the list holds items, and does the head not tell? */
static bool must_count(const struct op_put *p)
{
    enum list_condition condition = p->call->condition;
    bool counts = condition == LIST_IF_MISSING || condition == LIST_IF_PRESENT ||
                  (condition == LIST_IF_VERSION && !is_expected(p));
    return counts && p->op.list->policy->on_missing == ON_MISSING_CREATE &&
           !head_has_items(p->head);
}

/* Does the condition hold for the head that was read? Otherwise *answer is what the call gets. */
static bool condition_holds(const struct op_put *p, enum list_status *answer)
{
    const struct list_call *call = p->call;
    const struct head *head = p->head;
    *answer = LIST_NOT_STORED;
    if (call->condition == LIST_IF_MISSING || call->condition == LIST_IF_PRESENT) {
        return p->missing == (call->condition == LIST_IF_MISSING);
    }
    if (call->condition == LIST_IF_VERSION) {
        *answer = p->missing ? LIST_MISSING : LIST_EXISTS;
        return !p->missing && is_expected(p);
    }
    if (call->condition == LIST_IF_LEASED) {
        /* A late fill is as good as any, unless another client has the lease by now. */
        *answer = LIST_EXISTS;
        return put_is_absent(p) && call->expected != 0 && head->marks.lease == call->expected;
    }
    return true;
}

static void check_condition(struct engine *e, struct op_put *p)
{
    enum list_status answer;
    if (!condition_holds(p, &answer)) {
        metric_add(e->metrics, METRIC_list_fills_late, p->call->condition == LIST_IF_LEASED);
        put_finish(e, p, answer);
    }
}

/* The counting ended. True when the head is to be read again. */
static bool count_failed(struct engine *e, struct op_put *p)
{
    if (p->question.state == QUESTION_FAILED) {
        put_fail(e, p, question_error(&p->question));
    }
    /* Where it stays unreadable, what it holds cannot be known, but it is not nothing. */
    return p->question.state != QUESTION_FAILED && ++p->looks < LOOKS_MAX;
}

/* Reads the head and decides whether the condition holds: the call is answered if not. */
static enum progress look_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    bool counted = false;
    CO_BEGIN(co);
    p->looks = 0;
    do {
        head_unref(&p->head);
        emit_get(e, &p->op, TAG_HEAD);
        CO_AWAIT(co, "reading head");
        (void)op_take_head(e, &p->op, event, &p->head, p->error);
        if (p->head == NULL && event->status != BE_MISS) {
            put_fail(e, p, p->error);
        }
        p->missing = p->head == NULL || put_is_absent(p);
        if (p->call == NULL || p->missing || !must_count(p)) {
            break;
        }
        question_forget(e, &p->question);
        question_any(e, &p->question, &p->op, p->op.list, p->head);
        CO_CALL(co, question_step(&p->question, &p->op, "looking whether the list holds an item"));
        counted = p->question.state == QUESTION_ANSWERED;
        p->missing = counted && !p->question.any;
    } while (p->call != NULL && !counted && count_failed(e, p));
    if (p->call != NULL) {
        p->again = !put_is_bound(p);
        check_condition(e, p);
    }
    CO_END(co);
}

/* ---- a run for the content, written beforehand ---- */

/* Does the head that was read last hold the announcement? */
static bool put_is_announced(const struct op_put *p)
{
    return p->head != NULL &&
           log_has_announcement(p->head->announcements, &p->writer.announcement.range.name);
}

/* The time to live that the list gets with the content, in place of the head that was read last. */
static struct life put_life(const struct op_put *p)
{
    bool begins = p->head == NULL || p->head->marks.absent;
    return life_of_call(p->call, begins ? NULL : p->head);
}

/* Is the list to be the one that was seen, but for the announcement? */
static bool is_watched(const struct op_put *p)
{
    return p->bound || p->call->condition == LIST_IF_VERSION;
}

/* From here on the list is to be as the head says that is written. */
static void watch(struct engine *e, struct op_put *p, struct block **value)
{
    (void)mark_append(value, e->rng, e->now.wall_s);
    block_unref(&p->left);
    p->left = block_ref(*value);
}

static bool refuses(const struct op_put *p)
{
    return p->op.list->policy->on_missing == ON_MISSING_REFUSE;
}

/* A missing list that is no empty one, and whose sublists stay on the server that they are written
 * to: a list that may move is announced, so that it does not leave them behind. */
static bool goes_unannounced(const struct op_put *p)
{
    return p->missing && refuses(p) && !p->op.list->moves;
}

/* A head that holds nothing but the announcement. Where a missing list is not an empty one, it says
 * that the list is missing. */
static void emit_announcing_head(struct engine *e, struct op_put *p)
{
    struct head_marks marks = {.absent = refuses(p)};
    /* An absent one stays as long as it is needed to find what is written. */
    struct life life =
        marks.absent ? (struct life){.kind = LIFE_SECONDS} : life_new(p->op.list->policy);
    struct block *value = block_new(96);
    head_append_header(&value, &marks, NULL, 0, NULL, 0);
    announcement_append(&value, &p->writer.announcement);
    if (is_watched(p)) {
        watch(e, p, &value);
    }
    emit_add_head_for(e, &p->op, &life, value, TAG_ANNOUNCE);
    block_unref(&value);
}

/* The head that was read, with the announcement as of now, in place of one that grows old. An
 * absent head may expire: one that names what must be found again does not. is_seen: what was read
 * is what the list is to be. */
static void emit_announcing_cas(struct engine *e, struct op_put *p, bool is_seen)
{
    struct layout layout;
    struct carry carry = {.own = &p->writer.announcement.range.name,
                          .now_s = e->now.wall_s,
                          .grace_s = p->op.list->policy->announcement_grace_s,
                          .keep_ops = true};
    layout_init(&layout, p->head);
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, p->head->log, &carry));
    p->writer.announcement.created_s = e->now.wall_s;
    announcement_append(&layout.log, &p->writer.announcement);
    block_unref(&p->value);
    p->value = layout_value(&layout);
    layout_fini(&layout);
    if (is_seen) {
        watch(e, p, &p->value);
    }
    struct life ever = life_given(0), kept = life_renewed(p->op.list->policy, p->head->ttl_s);
    kept.until_s = p->head->marks.sublists_until_s; /* those of the old content */
    emit_cas_for(e, &p->op, p->head, p->head->marks.absent ? &ever : &kept, p->value, TAG_ANNOUNCE);
}

static void take_announced(struct op_put *p, const struct op_event *event)
{
    p->writer.announced = event->status == BE_STORED;
    p->writer.conflict = write_was_refused(event->status);
    p->writer.no_memory = op_found_no_memory(event);
    p->writer.is_full = event->status == BE_TOO_LARGE;
    if (!p->writer.announced && !p->writer.conflict) {
        op_error_text(event, p->error);
    }
}

/* Of what is written as a run, at most. */
static uint64_t long_bytes(const struct op_put *p)
{
    return put_copies(p) ? stream_bytes(&p->copy.stream) : p->item_bytes;
}

static bool wants_end(const struct op_put *p)
{
    if (p->call == NULL) {
        return false;
    }
    struct life life = put_life(p);
    return life_ends(&life);
}

/* A head may be missing where nothing is announced in one. */
static void take_end(struct op_put *p, const struct op_event *event)
{
    bool there = event->status == BE_HIT;
    if (event->status == BE_MISS && !p->unannounced) {
        p->lost = true;
    } else if (!there && event->status != BE_MISS) {
        p->writer.refused = true;
        op_error_text(event, p->error);
    } else if (p->call != NULL) {
        int64_t now_s = (int64_t)event->reply->number;
        struct life life = put_life(p);
        life.ttl_s = there ? event->reply->ttl_s : -1;
        int64_t end_s = life_end_s(&life, now_s);
        writer_live(&p->writer, now_s, end_s == 0 ? 0 : sublists_until_s(now_s, end_s));
    }
}

/* Sublists of a list that expires do so, too, behind its head: compact/life.c. */
static enum progress choose_end_step(struct engine *e, struct op_put *p,
                                     const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    if (wants_end(p)) {
        expiry_look(e, &p->op, PUT_TAG_CLOCK);
        CO_AWAIT(co, "reading the server's clock to write a put's sublists");
        take_end(p, event);
    }
    CO_END(co);
}

/* May sublists be written: is their name announced, as far as it has to be? */
static bool put_may_write(const struct op_put *p)
{
    return p->unannounced || p->writer.announced;
}

/* Announces a run, and decides until when its sublists live. Ends with writer.announced, or with
 * the call answered, or neither: another writer was faster. */
static enum progress put_begin_step(struct engine *e, struct op_put *p,
                                    const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    writer_init(e, &p->writer, &p->op, long_bytes(p), p->error);
    block_unref(&p->left);
    p->at = 0;
    p->whole = false;
    p->unannounced = goes_unannounced(p);
    if (p->unannounced) {
        /* Nothing is sent. */
    } else if (p->head == NULL) {
        emit_announcing_head(e, p);
        CO_AWAIT(co, "making a head to announce in");
        take_announced(p, event);
        p->op.list->has_head = p->op.list->has_head || (p->writer.announced && !refuses(p));
    } else if (put_is_absent(p) || is_watched(p)) {
        emit_announcing_cas(e, p, is_watched(p));
        CO_AWAIT(co, "announcing a put in the head that was read");
        take_announced(p, event);
    } else {
        CO_CALL(co, announce_step(e, &p->writer, &p->head, event, "announcing a put"));
        p->lost = p->writer.announced && (!put_is_announced(p) || put_is_absent(p));
    }
    if (!put_may_write(p) && p->writer.is_full) {
        lists_wish(&e->lists, p->op.list, WISH_COMPACT, NULL); /* the log leaves the head by that */
    } else if (!put_may_write(p) && !p->writer.conflict) {
        metric_add(e->metrics, METRIC_list_out_of_memory, p->writer.no_memory);
        put_fail(e, p, p->error);
    }
    if (put_may_write(p) && !p->lost) {
        writer_make_index(e, &p->writer, long_bytes(p));
        CO_CALL(co, choose_end_step(e, p, event));
    }
    CO_END(co);
}

/* Puts some items into sublists. */
static void write_some(struct engine *e, struct op_put *p)
{
    struct entry entry;
    for (unsigned n = 0; n < WRITE_SLICE_ITEMS && p->op.due < WRITES_MAX; n++) {
        if (!fold_next_entry(&p->items, true, ENTRY_NEVER_OVER, &p->at, &entry)) {
            writer_flush(e, &p->writer);
            p->whole = true;
            return;
        }
        writer_put(e, &p->writer, &entry);
    }
}

static bool writing_over(const struct op_put *p)
{
    return p->whole || p->call == NULL || p->lost || writer_failed(&p->writer);
}

/* Ends the call when a run that is not announced is too old to be named. */
static void put_check_age(struct engine *e, struct op_put *p)
{
    if (p->is_long && p->unannounced && writer_is_old(e, &p->writer)) {
        put_fail(e, p,
                 "nothing done: filling a missing list took longer than half of "
                 "announcement_grace_s");
    }
}

static void take_announced_again(struct engine *e, struct op_put *p, const struct op_event *event)
{
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND) {
        p->writer.announcement.created_s = 0; /* once more */
    } else if (event->status != BE_STORED) {
        op_error_text(event, p->error);
        put_fail(e, p, p->error);
    }
}

static enum progress announce_again_step(struct engine *e, struct op_put *p,
                                         const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    put_check_age(e, p);
    if (p->call == NULL) {
        CO_RETURN(co);
    }
    OP_BECOME_PUBLISHER(co, &p->op);
    emit_get(e, &p->op, TAG_HEAD);
    CO_AWAIT(co, "reading head to announce again");
    head_unref(&p->head);
    (void)op_take_head(e, &p->op, event, &p->head, p->error);
    p->lost = event->status == BE_MISS || (p->head != NULL && !put_is_announced(p));
    if (p->head != NULL && !p->lost) {
        emit_announcing_cas(e, p, put_is_left(p));
        CO_AWAIT(co, "announcing again");
        take_announced_again(e, p, event);
    } else if (!p->lost) {
        put_fail(e, p, p->error);
    }
    op_stop_publishing(e, &p->op);
    CO_END(co);
}

/* Writes the content's sublists under the announced name. Ends with whole when all went well. */
static enum progress put_write_step(struct engine *e, struct op_put *p,
                                    const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    while (!writing_over(p)) {
        if (writer_is_old(e, &p->writer) && p->op.due == 0) {
            CO_CALL(co, announce_again_step(e, p, event));
            continue;
        }
        if (!writer_is_old(e, &p->writer)) {
            write_some(e, p);
        }
        if (p->op.due >= WRITES_MAX || writer_is_old(e, &p->writer)) {
            CO_AWAIT(co, "writing sublists");
            writer_take_reply(&p->writer, event);
        } else if (!p->whole) {
            CO_PAUSE(co, "writing sublists", PROGRESS_YIELD);
            writer_take_reply(&p->writer, event);
        }
    }
    while (p->op.due > 0) {
        CO_AWAIT(co, "writing the last sublists");
        writer_take_reply(&p->writer, event);
    }
    CO_END(co);
}

/* ---- publishing ---- */

/* The head that was read, or a new one, with the content in place of its own. What proxies have
 * appended to a list that is missing stands behind the content, unless that is to be all. */
static struct block *filled_head(struct engine *e, struct op_put *p)
{
    struct head nothing = {0};
    const struct head *head = p->head != NULL ? p->head : &nothing;
    struct layout layout;
    struct carry carry = {.own = p->is_long ? &p->writer.announcement.range.name : NULL,
                          .now_s = e->now.wall_s,
                          .grace_s = p->op.list->policy->announcement_grace_s,
                          .keep_ops = put_is_absent(p) && p->call->condition != LIST_ALWAYS};
    layout_init(&layout, head);
    layout_drop_runs(&layout, 0, layout.run_count);
    layout_fill(&layout);
    layout.marks.cap = p->items.cap;
    if (p->is_long && p->writer.run.range.count > 0) {
        layout_publish_run(&layout, 0, &p->writer.run, &p->writer.times);
        layout.marks.sublists_until_s = p->writer.until_s;
    } else if (!p->is_long && layout.marks.cap.max != 0 && carry.keep_ops) {
        struct block *entries = block_new(p->item_bytes);
        append_items(p, &entries);
        capped_fill(&layout.log, layout.marks.cap, slice_make(entries->data, entries->used),
                    head->log);
        block_unref(&entries);
        carry.keep_ops = false;
    } else if (!p->is_long) {
        append_items(p, &layout.log);
    }
    metric_add(e->metrics, METRIC_list_sweeps, layout_carry(&layout, head->log, &carry));
    struct block *value = layout_value(&layout);
    layout_fini(&layout);
    return value;
}

/* May the run be named by what takes the place of the head that was read last? */
static bool may_publish(const struct op_put *p)
{
    return p->unannounced ? p->missing : put_is_announced(p);
}

/* Is the list to live longer than what was written for it? It has been given more time meanwhile,
 * or the writing took long: the last CAS was refused, and the head is still the same. */
static bool outlives_run(const struct op_put *p)
{
    uint64_t cas = p->head != NULL ? p->head->cas : 0, epoch = p->head != NULL ? p->head->epoch : 0;
    return p->is_long && p->writer.until_s != 0 && p->refusal == BE_EXISTS && cas == p->sent_cas &&
           epoch == p->sent_epoch;
}

static void emit_content(struct engine *e, struct op_put *p)
{
    struct life life = put_life(p);
    if (p->is_long && p->writer.run.range.count > 0 && p->writer.until_s != 0) {
        life.until_s = p->writer.until_s;
        life.strict = true;
    }
    life.before_s = p->is_long && p->unannounced ? writer_old_s(&p->writer) : 0;
    block_unref(&p->value);
    p->value = filled_head(e, p);
    p->sent = true;
    p->sent_cas = p->head != NULL ? p->head->cas : 0;
    p->sent_epoch = p->head != NULL ? p->head->epoch : 0;
    if (p->head == NULL) {
        emit_add_head_for(e, &p->op, &life, p->value, PUT_TAG_PUBLISH);
    } else {
        emit_cas_for(e, &p->op, p->head, &life, p->value, PUT_TAG_PUBLISH);
    }
}

/* Where a missing list is an empty one no head is needed for that: a compaction removes it. */
static bool leaves_nothing(const struct op_put *p)
{
    return !p->is_long && p->items.count == 0 &&
           p->op.list->policy->on_missing == ON_MISSING_CREATE;
}

static void note_published(struct engine *e, struct op_put *p)
{
    struct list *list = p->op.list;
    p->done = true;
    metric_inc(e->metrics, METRIC_list_puts);
    list_note_size(list, p->value->used);
    list->has_head = true;
    list->is_absent = false;
    list->cap = p->items.cap;
    if ((p->head != NULL && p->head->run_count > 0) || leaves_nothing(p)) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL); /* what is there is garbage now */
    }
    if (p->call != NULL) {
        uint64_t number = p->computes ? p->combine.number : p->copy.stream.count;
        p->call->number = p->items.cap.max != 0 ? p->items.live : number;
        put_finish(e, p, LIST_OK);
    }
}

/* Settles the answer to the publishing. False: another writer was faster. */
static bool published(struct engine *e, struct op_put *p, const struct op_event *event)
{
    p->sent = false;
    p->refusal = event->status;
    if (event->status == BE_STORED) {
        note_published(e, p);
        return true;
    }
    p->adds += event->status == BE_NOT_STORED;
    if (event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE || p->adds == ADDS_MAX) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        put_fail(e, p, "backend out of memory, nothing done");
        return true;
    }
    if (write_was_refused(event->status)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    p->unknown = event->status == BE_LOST;
    op_error_text(event, p->error);
    put_fail(e, p, p->error);
    return true;
}

/* True when the list cannot get its time to live now. The call ends when that is so too often. */
static bool must_wait(struct engine *e, struct op_put *p)
{
    struct life life = put_life(p);
    if (!life_must_wait(&life, p->head)) {
        return false;
    }
    if (++p->waits == WAITS_MAX) {
        metric_inc(e->metrics, METRIC_list_busy);
        put_fail(e, p, LIFE_BUSY_TEXT);
    }
    return true;
}

/* Ends when the call is answered, or with lost. */
static enum progress publish_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    p->refusal = BE_STORED;
    for (p->tries = 0; p->call != NULL; p->tries++) {
        if (p->tries > 0) {
            CO_SLEEP(&p->op, co, "backing off before publishing again",
                     op_backoff_end_us(e, BACKOFF_US, (unsigned)u64_least(p->tries, 6)));
        }
        OP_BECOME_PUBLISHER(co, &p->op);
        if (p->call == NULL) {
            break;
        }
        CO_CALL(co, look_step(e, p, event));
        put_check_age(e, p);
        p->lost = p->is_long && (!may_publish(p) || outlives_run(p));
        if (p->call == NULL || p->lost || p->again) {
            break;
        }
        if (!must_wait(e, p)) {
            emit_content(e, p);
            CO_AWAIT(co, "publishing");
            if (published(e, p, event)) {
                break;
            }
        }
        op_stop_publishing(e, &p->op);
    }
    op_stop_publishing(e, &p->op);
    CO_END(co);
}

/* ---- all together ---- */

/* Does content of so many bytes need a run? That of a list with a cap is cut to what fits. */
static bool is_too_long(const struct op_put *p, uint64_t bytes)
{
    return p->items.cap.max == 0 && bytes > list_log_limit(p->op.list) / 2;
}

static bool copied_beyond(const struct op_put *p)
{
    uint64_t count = p->computes ? p->combine.number : put_copies(p) ? p->copy.stream.count : 0;
    return p->items.cap.refuses && count > p->items.cap.max;
}

/* What has become of the copying: the call may be answered by that. */
static void settle_copy(struct engine *e, struct op_put *p)
{
    if (p->call == NULL || p->copy.stream.state == STREAM_OK ||
        p->copy.stream.state == STREAM_AGAIN) {
        return;
    }
    if (p->copy.stream.state == STREAM_FAILED) {
        put_fail(e, p, p->error);
        return;
    }
    if (p->copy.stream.state == STREAM_REFUSED) {
        memcpy(p->call->error, p->error, sizeof p->error);
    }
    put_finish(e, p, p->copy.stream.state == STREAM_MISSING ? LIST_MISSING : LIST_CLIENT_ERROR);
}

/* Forgets what an earlier look at the list has copied. */
static void forget_items(struct op_put *p)
{
    struct cap cap = p->items.cap;
    fold_fini(&p->items);
    fold_init(&p->items);
    fold_set_cap(&p->items, cap);
}

/* With `new` as well, a list that is missing is that, whatever stands in the other list's place:
 * where a missing list is an empty one, and the head does not tell, its sublists do. */
static bool must_look_into_source(const struct op_put *p)
{
    const struct stream *from = &p->copy.stream;
    return p->is_long && p->call != NULL && p->call->condition == LIST_IF_MISSING &&
           from->from->policy->on_missing == ON_MISSING_CREATE && !head_has_items(from->head);
}

static void take_source(struct op_put *p)
{
    const struct question *q = &p->question;
    if (q->state == QUESTION_OLD && p->names + 1 < NAMES_MAX) {
        p->copy.stream.state = STREAM_AGAIN; /* its runs are others by now */
    } else if (q->state == QUESTION_ANSWERED && !q->any) {
        p->copy.stream.state = STREAM_MISSING;
    }
}

/* Finds out how long the list is that is copied; one that is short is read as a whole. */
static enum progress copy_begin_step(struct engine *e, struct op_put *p,
                                     const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    p->names = 0;
    do {
        CO_CALL(co, stream_look_step(e, &p->copy.stream, event));
        p->is_long =
            p->copy.stream.state == STREAM_OK && is_too_long(p, stream_bytes(&p->copy.stream));
        p->copy.to_run = p->is_long;
        forget_items(p);
        if (must_look_into_source(p)) {
            question_forget(e, &p->question);
            question_any(e, &p->question, &p->op, p->copy.stream.from, p->copy.stream.head);
            CO_CALL(co, question_step(&p->question, &p->op, "looking whether there is a source"));
            take_source(p);
        }
        if (p->copy.stream.state == STREAM_OK && !p->is_long) {
            CO_CALL(co, copy_stream_step(e, &p->copy, event));
        }
        p->names++;
    } while (p->call != NULL && p->copy.stream.state == STREAM_AGAIN && p->names < NAMES_MAX);
    settle_copy(e, p);
    CO_END(co);
}

/* One name: ends with done, with the call answered, or with neither: the name was lost. */
static enum progress long_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    p->lost = false;
    if (put_copies(p) && p->names > 0) {
        CO_CALL(co, stream_look_step(e, &p->copy.stream, event));
        settle_copy(e, p);
    }
    if (p->call != NULL) {
        CO_CALL(co, look_step(e, p, event));
    }
    if (p->call == NULL || p->copy.stream.state != STREAM_OK || p->again) {
        CO_RETURN(co);
    }
    CO_CALL(co, put_begin_step(e, p, event));
    if (!put_may_write(p)) {
        CO_RETURN(co);
    }
    if (put_copies(p) && !p->lost && !writer_failed(&p->writer)) {
        CO_CALL(co, copy_stream_step(e, &p->copy, event));
        p->whole = p->copy.stream.state == STREAM_OK && p->call != NULL;
    } else {
        CO_CALL(co, put_write_step(e, p, event));
    }
    if (p->writer.refused) {
        metric_add(e->metrics, METRIC_list_out_of_memory, p->writer.no_memory);
        put_fail(e, p, p->error);
    }
    settle_copy(e, p);
    if (p->whole && !p->lost && !writer_failed(&p->writer)) {
        CO_CALL(co, writer_index_step(e, &p->writer));
        CO_CALL(co, publish_step(e, p, event));
    }
    if (!p->done && !p->unknown && !p->writer.unknown) {
        CO_CALL(co, undo_step(e, &p->writer, event));
    }
    CO_END(co);
}

/* Ends with the call answered, or with again, or with neither: all names were lost. */
static enum progress store_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    p->again = false;
    if (!p->is_long && p->call != NULL) {
        CO_CALL(co, publish_step(e, p, event));
    }
    for (p->names = 0; p->names < NAMES_MAX && p->call != NULL && !p->again; p->names++) {
        if (p->names > 0) {
            CO_SLEEP(&p->op, co, "backing off before another name",
                     op_backoff_end_us(e, BACKOFF_US, p->names));
        }
        CO_CALL(co, long_step(e, p, event));
    }
    CO_END(co);
}

static enum progress put_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_put *p = (struct op_put *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    while (p->call != NULL && !take_items(e, p)) {
        CO_PAUSE(co, "taking items", PROGRESS_YIELD);
    }
    do {
        if (p->computes) {
            CO_CALL(co, put_compute_step(e, p, event));
        }
        p->is_long = is_too_long(p, p->item_bytes);
        if (put_copies(p)) {
            CO_CALL(co, copy_begin_step(e, p, event));
        }
        if (p->call != NULL && (p->beyond || copied_beyond(p))) {
            put_finish(e, p, LIST_NOT_STORED);
        }
        CO_CALL(co, store_step(e, p, event));
    } while (p->call != NULL && p->again && p->computed < COMPUTED_MAX);
    if (p->call != NULL) {
        metric_inc(e->metrics, p->writer.is_full ? METRIC_list_log_full : METRIC_list_busy);
        put_fail(e, p,
                 p->again            ? "busy, nothing done: other writers were faster each time"
                 : p->writer.is_full ? LIST_LOG_FULL
                                     : "busy, nothing done: other proxies swept what was being "
                                       "written");
    }
    if (p->computes) {
        CO_CALL(co, joint_tidy_step(e, &p->joint, event));
    }
    CO_END(co);
}

static enum list_known put_let_go(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_put *p = (struct op_put *)op;
    CHECK(p->call == call);
    p->call = NULL; /* what was written is undone */
    if (p->computing && !joint_has_made(&p->joint)) {
        op_abort(e, op);
        return KNOWN_NOTHING;
    }
    p->copy.stream.over = true;
    p->joint.over = true;
    return p->sent ? KNOWN_UNKNOWN : KNOWN_NOTHING;
}

static void put_fini(struct engine *e, struct op *op)
{
    struct op_put *p = (struct op_put *)op;
    memory_give(p->memory_bytes);
    fold_fini(&p->items);
    question_forget(e, &p->question);
    writer_fini(&p->writer);
    copy_fini(&p->copy);
    combine_fini(&p->combine);
    joint_fini(e, &p->joint);
    head_unref(&p->head);
    block_unref(&p->value);
    block_unref(&p->left);
}

void put_start(struct engine *e, struct list *list, struct list_call *call)
{
    struct op_put *p = op_create(e, list, sizeof *p, put_step, put_fini);
    p->op.let_go = put_let_go;
    p->call = call;
    call->op = &p->op;
    fold_init(&p->items);
    fold_set_cap(&p->items, list_policy_cap(list->policy));
    op_enter(&p->op, &list->put);
    if (call->verb == LIST_COPY) {
        copy_init(e, &p->copy, &p->op, call, &p->writer, &p->items, p->error);
    }
    p->computes = list_verb_has(call->verb, LIST_STORES);
    if (p->computes) {
        joint_init(e, &p->joint, &p->op, call, p->error);
    }
    op_run(e, &p->op);
}
