/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/lease.h"

#include "list/core/engine_state.h"
#include "list/format/absent.h"
#include "list/format/layout.h"

#define TRIES_MAX 16
/* First pause after a conflict; doubles up to 2^8 times that: 50 ms. */
#define BACKOFF_US 200u
/* So much longer than a lease its head is kept: proxies' clocks may be behind the server's by a
 * minute, and the lease must not go before it is over. Until then a late fill is good, too, if no
 * other client has asked for the lease. */
#define KEEP_S 60u

enum { TAG_GET = 1, TAG_WRITE };

struct op_lease {
    struct op op;
    struct call_queue calls; /* the first is to have it */
    struct head *head;       /* that says the list is missing, or NULL */
    uint64_t token;          /* of the last write */
    bool sent;               /* a write is on its way, or may have been done */
    unsigned tries;
    char error[LIST_ERROR_MAX];
};

const char *lease_refusal(const struct list_policy *policy)
{
    if (policy->dialect != DIALECT_NATIVE || policy->migrate != MIGRATE_NO) {
        return "llease works on lists of dialect native only, and those need on_missing = refuse";
    }
    if (policy->on_missing != ON_MISSING_REFUSE) {
        return "llease needs on_missing = refuse: with create a missing list is an empty one";
    }
    return NULL;
}

void lease_emit_end(struct engine *e, struct op *op, const struct head *absent, uint64_t tag)
{
    struct life ever = life_given(0);
    struct carry carry = {.now_s = e->now.wall_s,
                          .grace_s = op->list->policy->announcement_grace_s,
                          .keep_ops = false};
    struct layout layout;
    layout_init(&layout, absent);
    layout_make_absent(&layout);
    size_t swept = layout_carry(&layout, absent->announcements, &carry);
    metric_add(e->metrics, METRIC_list_sweeps, swept);
    if (layout.garbage_count == 0 && layout.log->used == 0 && layout.residue == NULL) {
        emit_cas_delete(e, op, absent, tag);
    } else {
        struct block *value = layout_value(&layout);
        emit_cas_for(e, op, absent, &ever, value, tag);
        block_unref(&value);
    }
    layout_fini(&layout);
}

static void finish_all(struct engine *e, struct op_lease *l, enum list_status status)
{
    while (!TAILQ_EMPTY(&l->calls)) {
        struct list_call *call = TAILQ_FIRST(&l->calls);
        TAILQ_REMOVE(&l->calls, call, link);
        metric_add(e->metrics, METRIC_list_leases_refused, status == LIST_NOT_STORED);
        call_finish(e, l->op.list, call, status);
    }
}

/* Takes the head's reply; true when the calls are settled by it. */
static bool head_settled(struct engine *e, struct op_lease *l, const struct op_event *event)
{
    enum head_result got = op_take_head(e, &l->op, event, &l->head, l->error);
    if (got == GOT_ERROR) {
        calls_fail(e, l->op.list, &l->calls, l->error);
    } else if (got == GOT_HEAD) {
        finish_all(e, l, LIST_EXISTS);
    } else if (got == GOT_ABSENT && !lease_is_over(&l->head->marks, e->now.wall_s)) {
        finish_all(e, l, LIST_NOT_STORED);
    }
    return TAILQ_EMPTY(&l->calls);
}

/* Gives the lease to the first call. */
static void emit_lease(struct engine *e, struct op_lease *l)
{
    uint32_t seconds = (uint32_t)TAILQ_FIRST(&l->calls)->seconds;
    struct head nothing = {0};
    const struct head *head = l->head != NULL ? l->head : &nothing;
    struct layout layout;
    layout_init(&layout, head);
    layout_make_absent(&layout);
    l->token = version_of_hash(rng_unique(e->rng)); /* so that every client can give it back */
    layout.marks.lease = l->token;
    /* The second that has begun does not count. */
    layout.marks.lease_until_s = e->now.wall_s + seconds + 1;
    block_append(&layout.log, head->log.p, head->log.len);
    struct block *value = layout_value(&layout);
    bool names = head->garbage_count > 0 || head->announcements.len > 0 || head->residue != NULL;
    struct life life = life_given(names ? 0 : seconds + KEEP_S);
    if (l->head == NULL) {
        emit_add_head_for(e, &l->op, &life, value, TAG_WRITE);
    } else {
        emit_cas_for(e, &l->op, head, &life, value, TAG_WRITE);
    }
    block_unref(&value);
    layout_fini(&layout);
}

/* True when the write's reply settles the calls; else another writer was faster. */
static bool write_settled(struct engine *e, struct op_lease *l, const struct op_event *event)
{
    struct list_call *call = TAILQ_FIRST(&l->calls);
    l->sent = false;
    if (event->status == BE_STORED) {
        if (call != NULL) {
            metric_inc(e->metrics, METRIC_list_leases);
            TAILQ_REMOVE(&l->calls, call, link);
            call->number = l->token;
            call_finish(e, l->op.list, call, LIST_OK);
        }
        finish_all(e, l, LIST_NOT_STORED);
        return true;
    }
    if (event->status == BE_EXISTS || event->status == BE_NOT_FOUND ||
        (event->status == BE_NOT_STORED && l->tries < TRIES_MAX / 2)) {
        metric_inc(e->metrics, METRIC_list_conflicts);
        return false;
    }
    if (event->status == BE_NO_MEMORY || event->status == BE_TOO_LARGE ||
        event->status == BE_NOT_STORED) {
        metric_inc(e->metrics, METRIC_list_out_of_memory);
        calls_fail(e, l->op.list, &l->calls, "backend out of memory, nothing done");
        return true;
    }
    op_error_text(event, l->error);
    calls_fail(e, l->op.list, &l->calls, l->error);
    return true;
}

static enum progress lease_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_lease *l = (struct op_lease *)op;
    struct co *co = &op->co;

    CO_BEGIN(co);
    for (l->tries = 0; l->tries < TRIES_MAX && !TAILQ_EMPTY(&l->calls); l->tries++) {
        if (l->tries > 0) {
            CO_SLEEP(op, co, "backing off after a conflict",
                     op_backoff_end_us(e, BACKOFF_US, l->tries));
        }
        head_unref(&l->head);
        emit_get(e, op, TAG_GET);
        CO_AWAIT(co, "reading head");
        if (head_settled(e, l, event)) {
            break;
        }
        l->sent = true;
        emit_lease(e, l);
        CO_AWAIT(co, "writing a lease");
        if (write_settled(e, l, event)) {
            break;
        }
    }
    if (!TAILQ_EMPTY(&l->calls)) {
        metric_inc(e->metrics, METRIC_list_busy);
        calls_fail(e, op->list, &l->calls,
                   "busy, nothing done: other writers were faster each time");
    }
    CO_END(co);
}

/* When the first call goes while the lease is being written, the next one may have it. */
static enum list_known lease_late(struct engine *e, struct op *op, struct list_call *call)
{
    struct op_lease *l = (struct op_lease *)op;
    TAILQ_REMOVE(&l->calls, call, link);
    if (l->sent) {
        return KNOWN_UNKNOWN;
    }
    if (TAILQ_EMPTY(&l->calls)) {
        op_abort(e, op);
    }
    return KNOWN_NOTHING;
}

static void lease_fini(struct engine *e, struct op *op)
{
    (void)e;
    head_unref(&((struct op_lease *)op)->head);
}

struct op_lease *lease_create(struct engine *e, struct list *list)
{
    struct op_lease *l = op_create(e, list, sizeof *l, lease_step, lease_fini);
    l->op.late = lease_late;
    TAILQ_INIT(&l->calls);
    list->exact = &l->op;
    return l;
}

void lease_add(struct op_lease *lease, struct list_call *call)
{
    call_enter(&lease->op, &lease->calls, call);
}

void lease_start(struct engine *e, struct op_lease *lease)
{
    op_start(e, &lease->op);
}
