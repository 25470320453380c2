/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/op.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "list/core/damage.h"
#include "list/core/engine_state.h"
#include "list/core/finish.h"
#include "list/format/absent.h"

/* A burnt name outlives every paused proxy that might still write to it. */
#define BURNT_TTL_S (60 * 60 * 24)

void *op_create(struct engine *e, struct list *list, size_t size, op_step *step, op_fini *fini)
{
    struct op *op = calloc(1, size);
    CHECK(op != NULL);
    memory_take(size);
    op->size_bytes = size;
    op->co.waiting = "";
    op->step = step;
    op->fini = fini;
    op->list = op->reads = list;
    op->timer.owner = op;
    op->timer.kind = TIMER_OP;
    TAILQ_INSERT_TAIL(&e->all_ops, op, all);
    list->ops++;
    return op;
}

void op_leave(struct op *op)
{
    if (op->place != NULL) {
        CHECK(*op->place == op);
        *op->place = NULL;
        op->place = NULL;
    }
}

void op_enter(struct op *op, struct op **place)
{
    op_leave(op);
    CHECK(*place == NULL);
    *place = op;
    op->place = place;
}

static void op_free(struct engine *e, struct op *op)
{
    TAILQ_REMOVE(&e->all_ops, op, all);
    memory_give(op->size_bytes);
    free(op);
}

void op_wake(struct engine *e, struct op *op)
{
    if (!op->runnable) {
        op->runnable = true;
        TAILQ_INSERT_TAIL(&e->runnable, op, run);
    }
}

void op_stop_waking(struct op *op, struct engine *e)
{
    if (op->runnable) {
        op->runnable = false;
        TAILQ_REMOVE(&e->runnable, op, run);
    }
}

void op_check_quiet(struct engine *e, struct list *list)
{
    struct op *const waiters[] = {list->compaction, list->merge, list->put, list->forget};
    for (size_t i = 0; i < sizeof waiters / sizeof waiters[0]; i++) {
        if (waiters[i] != NULL && waiters[i]->waits_quiet) {
            op_wake(e, waiters[i]);
        }
    }
    lists_mark_ready(&e->lists, list);
}

bool op_become_publisher(struct op *op)
{
    struct list *list = op->list;
    if (list->publisher == NULL) {
        list->publisher = op;
    }
    op->waits_quiet = list->publisher != op || list_writing(list);
    return !op->waits_quiet;
}

void op_stop_publishing(struct engine *e, struct op *op)
{
    struct list *list = op->list;
    op->waits_quiet = false;
    if (list->publisher == op) {
        list->publisher = NULL;
    }
    op_check_quiet(e, list);
}

uint64_t op_backoff_end_us(struct engine *e, uint64_t unit_us, unsigned conflicts)
{
    return e->now.mono_us + 1 + rng_below(e->rng, unit_us << u64_least(conflicts, 8));
}

static void op_leave_queues(struct engine *e, struct op *op)
{
    op_stop_waking(op, e);
    timer_stop(&e->timers, &op->timer);
}

static void op_finish(struct engine *e, struct op *op)
{
    struct list *list = op->list;
    op->fini(e, op);
    list->round_writes = list->round_writes && list->round != op;
    op_leave(op);
    CHECK(list->publisher != op);
    list->ops--;
    op->finished = true;
    op_check_quiet(e, list);
    if (op->outstanding == 0) {
        op_free(e, op);
    }
}

void op_abort(struct engine *e, struct op *op)
{
    op_leave_queues(e, op);
    op_finish(e, op);
}

static void op_step_once(struct engine *e, struct op *op, const struct op_event *event)
{
    op_leave_queues(e, op);
    enum progress progress = op->step(e, op, event);
    if (progress == PROGRESS_DONE) {
        op_leave_queues(e, op); /* an inner call may have woken it meanwhile */
        op_finish(e, op);
    } else if (progress == PROGRESS_YIELD) {
        op_wake(e, op);
    } else if (progress == PROGRESS_SLEEPING) {
        timer_set(&e->timers, &op->timer, op->wake_us);
    }
}

void op_start(struct engine *e, struct op *op)
{
    op_step_once(e, op, NULL);
}

void op_resume(struct engine *e, struct op *op)
{
    op_step_once(e, op, NULL);
}

void op_deliver(struct engine *e, struct op *op, const struct op_event *event)
{
    CHECK(op->outstanding > 0);
    op->outstanding--;
    if ((event->tag & TAG_SCAN) == 0) {
        op->due--;
    }
    if (op->finished) {
        if (op->outstanding == 0) {
            op_free(e, op);
        }
        return;
    }
    if ((event->tag & TAG_SCAN) != 0 && (uint32_t)(event->tag >> 8) != op->scan_generation) {
        return;
    }
    op_step_once(e, op, event);
}

const char *op_waiting(const struct engine *e, const struct list *list)
{
    const struct op *op;
    if (list != NULL && list->settler != NULL) {
        return list->settler->co.waiting; /* the others may wait for it */
    }
    TAILQ_FOREACH(op, &e->all_ops, all)
    {
        if (op->list == list && !op->finished) {
            return op->co.waiting;
        }
    }
    return "";
}

struct be_request *request_new(struct engine *e, const struct list *list, enum be_verb verb)
{
    struct op_request *made;
    struct be_request *r = STAILQ_FIRST(&e->spare_requests);
    if (r != NULL) {
        STAILQ_REMOVE_HEAD(&e->spare_requests, link);
        e->spare_request_count--;
        made = op_request_of(r);
    } else {
        made = malloc(sizeof *made + e->request_room);
        CHECK(made != NULL);
        r = &made->be;
    }
    memset(made, 0, offsetof(struct op_request, be.key));
    r->verb = verb;
    r->pool_index = list->policy->pool_index;
    r->durable = be_changes(verb);
    return r;
}

void request_free(struct engine *e, struct be_request **slot)
{
    /* As many as a busy worker has under way; the rest goes back to the allocator. */
    enum { SPARE_MAX = 1024 };
    struct be_request *r = *slot;
    *slot = NULL;
    block_unref(&r->block);
    if (e->spare_request_count < SPARE_MAX) {
        STAILQ_INSERT_HEAD(&e->spare_requests, r, link);
        e->spare_request_count++;
    } else {
        free(op_request_of(r));
    }
}

void request_send(struct engine *e, struct be_request *request)
{
    /* A CAS number belongs to the connection that it came over; without one it was never read. */
    CHECK_SLOW(!be_is_conditional(request->verb) || request->epoch != 0);
    STAILQ_INSERT_TAIL(&e->outbox, request, link);
}

void op_prepare(struct op *op, struct be_request *r, struct block *value, uint64_t tag)
{
    if (value != NULL) {
        r->block = block_ref(value);
        r->value = slice_make(value->data, value->used);
    }
    op_request_of(r)->op = op;
    op_request_of(r)->tag = tag;
    r->told_unknown = &op->told_unknown;
    if (r->verb >= BE_ADD) {
        op->has_written = true;
        op->told_unknown = false;
    }
    op->outstanding++;
    op->due++;
}

void op_send(struct engine *e, struct op *op, struct be_request *r, struct block *value,
             uint64_t tag)
{
    op_prepare(op, r, value, tag);
    request_send(e, r);
}

static struct be_request *head_request_of(struct engine *e, const struct list *list,
                                          enum be_verb verb)
{
    struct be_request *r = request_new(e, list, verb);
    r->key_len = r->placement_len = head_key(r->key, list_key(list));
    op_request_of(r)->appended_bytes = list->appended_total;
    return r;
}

static struct be_request *head_request(struct engine *e, struct op *op, enum be_verb verb)
{
    return head_request_of(e, op->list, verb);
}

static struct be_request *sublist_request(struct engine *e, struct op *op, enum be_verb verb,
                                          const struct name *name, uint32_t number)
{
    struct be_request *r = request_new(e, op->list, verb);
    r->key_len = sublist_key(r->key, list_key(op->list), name, number);
    bool spread = op->list->policy->placement == PLACEMENT_SPREAD;
    r->placement_len = spread ? r->key_len : (uint8_t)(op->list->key_len + 1);
    return r;
}

void emit_get(struct engine *e, struct op *op, uint64_t tag)
{
    emit_get_of(e, op, op->list, tag);
}

static struct be_request *head_read_of(struct engine *e, const struct list *list)
{
    struct be_request *r = head_request_of(e, list, BE_GET);
    metric_inc(e->metrics, METRIC_list_head_reads);
    /* Its operation keeps it until the answer is there. */
    op_request_of(r)->list = (struct list *)list;
    return r;
}

void emit_get_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    op_send(e, op, head_read_of(e, list), NULL, tag);
}

void emit_get_raw_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    struct be_request *r = head_read_of(e, list);
    op_request_of(r)->is_raw = true;
    op_send(e, op, r, NULL, tag);
}

void emit_get_unread_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    metric_inc(e->metrics, METRIC_list_head_reads);
    op_send(e, op, head_request_of(e, list, BE_GET), NULL, tag);
}

void emit_get_again(struct engine *e, struct op *op, const struct list *list, uint64_t tag,
                    uint8_t rounds)
{
    struct be_request *r = head_read_of(e, list);
    op_request_of(r)->rounds = rounds;
    op_prepare(op, r, NULL, tag);
    op->outstanding--; /* as one answer it counts already */
    op->due--;
    request_send(e, r);
}

void emit_size(struct engine *e, struct op *op, uint64_t tag)
{
    emit_size_of(e, op, op->list, tag);
}

void emit_size_of(struct engine *e, struct op *op, const struct list *list, uint64_t tag)
{
    op_send(e, op, head_request_of(e, list, BE_SIZE), NULL, tag);
}

void emit_append(struct engine *e, struct op *op, struct block *value, uint64_t tag)
{
    emit_append_to(e, op, op->list, value, tag);
}

static void send_append(struct engine *e, struct op *op, struct list *list, bool is_durable,
                        struct block *value, uint64_t tag)
{
    struct be_request *r = head_request_of(e, list, BE_APPEND);
    r->durable = is_durable;
    metric_inc(e->metrics, METRIC_list_appends);
    op_send(e, op, r, value, tag);
    list->appended_bytes += value->used;
    list->appended_total += value->used;
}

void emit_append_blind(struct engine *e, struct op *op, struct block *value, uint64_t tag)
{
    send_append(e, op, op->list, false, value, tag);
}

void emit_append_to(struct engine *e, struct op *op, struct list *list, struct block *value,
                    uint64_t tag)
{
    send_append(e, op, list, true, value, tag);
}

void emit_cas_appending(struct engine *e, struct op *op, struct list *list, const struct head *read,
                        struct slice entries, uint64_t tag)
{
    struct be_request *r = head_request_of(e, list, BE_CAS);
    struct life life = life_kept(read->ttl_s);
    struct block *value = block_new_exact(read->value.len + entries.len);
    block_append(&value, read->value.p, read->value.len);
    block_append(&value, entries.p, entries.len);
    r->cas = read->cas;
    r->epoch = read->epoch;
    r->flags = read->flags;
    expiry_send(e, op, r, &life, SLICE_NONE, value, tag);
    block_unref(&value);
}

/* When an item expires that has so many seconds left; 0: never. */
static uint64_t mono_us_in(const struct engine *e, int64_t ttl_s)
{
    return ttl_s < 0 ? 0 : e->now.mono_us + (uint64_t)ttl_s * 1000000;
}

void emit_add_head_to(struct engine *e, struct op *op, struct list *list, const struct life *life,
                      struct block *value, uint64_t tag)
{
    expiry_send(e, op, head_request_of(e, list, BE_ADD), life, SLICE_NONE, value, tag);
}

/* The list is not looked at again before its first blind change. */
static void note_life(const struct engine *e, struct list *list, const struct life *life)
{
    list->expires_us = mono_us_in(e, life->exptime > 0 ? life->exptime : -1);
}

void emit_add_head(struct engine *e, struct op *op, struct block *value, uint64_t tag)
{
    struct life life = life_new(op->list->policy);
    note_life(e, op->list, &life);
    emit_add_head_for(e, op, &life, value, tag);
}

void emit_cas_for(struct engine *e, struct op *op, const struct head *read, const struct life *life,
                  struct block *value, uint64_t tag)
{
    struct be_request *r = head_request(e, op, BE_CAS);
    r->cas = read->cas;
    r->epoch = read->epoch;
    r->flags = read->flags;
    expiry_send(e, op, r, life, SLICE_NONE, value, tag);
}

void emit_cas(struct engine *e, struct op *op, const struct head *read, struct block *value,
              uint64_t tag)
{
    /* That of a missing list is its lease's. */
    struct life life =
        read->marks.absent ? life_kept(read->ttl_s) : life_renewed(op->list->policy, read->ttl_s);
    life.until_s = read->marks.sublists_until_s;
    if (read->ttl_s >= 0 && read->ttl_s < (int64_t)life.least_s) {
        op->list->expires_us = mono_us_in(e, life.least_s);
    }
    emit_cas_for(e, op, read, &life, value, tag);
}

void emit_cas_new(struct engine *e, struct op *op, const struct head *read, struct block *value,
                  uint64_t tag)
{
    struct life life = life_filling(op->list->policy, read);
    note_life(e, op->list, &life);
    emit_cas_for(e, op, read, &life, value, tag);
}

void emit_cas_delete(struct engine *e, struct op *op, const struct head *read, uint64_t tag)
{
    struct be_request *r = head_request(e, op, BE_CAS_DELETE);
    r->cas = read->cas;
    r->epoch = read->epoch;
    op_send(e, op, r, NULL, tag);
}

void emit_add_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                      int32_t exptime, struct block *value, uint64_t tag)
{
    struct be_request *r = sublist_request(e, op, BE_ADD, name, number);
    r->exptime = exptime;
    op_send(e, op, r, value, tag);
}

void emit_delete_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                         uint64_t tag)
{
    op_send(e, op, sublist_request(e, op, BE_DELETE, name, number), NULL, tag);
}

static void emit_burn(struct engine *e, struct op *op, enum be_verb verb, const struct name *name,
                      uint32_t number, uint64_t tag)
{
    struct be_request *r = sublist_request(e, op, verb, name, number);
    r->exptime = BURNT_TTL_S;
    op_send(e, op, r, NULL, tag);
}

void emit_burn_free(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                    uint64_t tag)
{
    emit_burn(e, op, BE_ADD, name, number, tag);
}

void emit_burn_taken(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                     uint64_t tag)
{
    emit_burn(e, op, BE_REPLACE, name, number, tag);
}

void emit_probe_sublist(struct engine *e, struct op *op, const struct name *name, uint32_t number,
                        uint64_t tag)
{
    op_send(e, op, sublist_request(e, op, BE_PROBE, name, number), NULL, tag);
}

/* A head that says the list is missing is of use as long as a client fills it; changes look before
 * they append. */
static enum head_result head_result_of(struct engine *e, struct list *list, const struct head *head)
{
    const struct list_policy *policy = list->policy;
    list->has_head = true;
    if (!head->marks.absent) {
        return GOT_HEAD;
    }
    bool refuse = policy->on_missing == ON_MISSING_REFUSE;
    list->is_absent = refuse && head_is_absent(head);
    list->has_head = !list->is_absent;
    list->cap_set_us = 0; /* the cap has gone with the list, not by the file of another proxy */
    list->expires_us = list->is_absent ? 0 : list->expires_us;
    if (e->now.mono_us >= list->compact_after_us &&
        (list->has_head || absent_is_idle(head, e->now.wall_s, policy->announcement_grace_s))) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
    return list->has_head ? GOT_HEAD : GOT_ABSENT;
}

/* A list of which all items have been over for a while: its head is removed. */
static void wish_for_removal(struct engine *e, struct list *list, const struct head *head)
{
    if (head_is_timed(head) && e->now.mono_us >= list->compact_after_us && list->merge == NULL &&
        head_is_over(head, head->read_s - CLOCK_SKEW_S)) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
}

/* A list that may outlive its sublists: a client has touched its head in the server, or it has been
 * renewed nearly as far as they live. Or they do not end, though it does. */
static void wish_for_life(struct engine *e, struct list *list, const struct head *head)
{
    if (e->now.mono_us >= list->compact_after_us && list->merge == NULL &&
        list_is_short_lived(e, list, head)) {
        lists_wish(&e->lists, list, WISH_COMPACT, NULL);
    }
}

enum head_result op_take_head_of(struct engine *e, struct list *list, const struct op_event *event,
                                 struct head **head, char error[LIST_ERROR_MAX])
{
    CHECK(*head == NULL);
    if (event->reply != NULL && event->reply->caps != NULL) {
        list->item_size_max = event->reply->caps->item_size_max;
        list->head_server = event->reply->caps->server_name;
        list->no_times = event->reply->no_times;
    }
    bool seen = event->status == BE_HIT || event->status == BE_MISS;
    list->has_head = list->has_head && !seen;
    list->is_absent = list->is_absent && !seen;
    if (event->status == BE_MISS) {
        list_note_seen(list, 0, event->appended_bytes);
        return GOT_NOTHING;
    }
    if (event->status != BE_HIT) {
        snprintf(error, LIST_ERROR_MAX, "%s",
                 event->text != NULL ? event->text : "backend refused to read the list");
        return GOT_ERROR;
    }
    if (event->head == NULL) {
        list_report_foreign(e, list, event->reply, error);
        return GOT_ERROR;
    }
    *head = head_ref(event->head);
    (*head)->read_s = e->now.wall_s;
    list_note_head(list, *head, event->appended_bytes);
    list->expires_us = mono_us_in(e, (*head)->ttl_s);
    return head_result_of(e, list, *head);
}

enum head_result op_take_head(struct engine *e, struct op *op, const struct op_event *event,
                              struct head **head, char error[LIST_ERROR_MAX])
{
    enum head_result got = op_take_head_of(e, op->list, event, head, error);
    if (*head == NULL) {
        return got;
    }
    CHECK((*head)->open_count == 0 || ((*head)->is_cut && op->takes_cut));
    if (got == GOT_HEAD && (*head)->run_count > 0) {
        wish_for_life(e, op->list, *head);
    }
    if (got == GOT_HEAD) {
        wish_for_removal(e, op->list, *head);
    }
    finish_consider(e, op->list, *head);
    return got;
}

bool op_found_no_memory(const struct op_event *event)
{
    return event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE;
}

void op_error_text(const struct op_event *event, char error[LIST_ERROR_MAX])
{
    const char *text = event->text;
    if (op_found_no_memory(event)) {
        text = "backend out of memory";
    } else if (text == NULL) {
        text = event->status == BE_LOST ? "connection to backend lost, outcome unknown"
                                        : "backend refused the change";
    }
    snprintf(error, LIST_ERROR_MAX, "%s", text);
}
