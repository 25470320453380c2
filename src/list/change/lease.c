/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/lease.h"

#include "list/change/cas.h"
#include "list/core/engine_state.h"
#include "list/format/absent.h"
#include "list/format/layout.h"

/* So much longer than a lease its head is kept: proxies' clocks may be behind the server's by a
 * minute, and the lease must not go before it is over. Until then a late fill is good, too, if no
 * other client has asked for the lease. */
#define KEEP_S 60u

struct op_lease {
    struct op_cas cas; /* the first of its calls is to have the lease */
    uint64_t token;    /* of the last write */
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

static void refuse_all(struct engine *e, struct op_cas *cas)
{
    const struct list_call *call;
    TAILQ_FOREACH(call, &cas->calls, link)
    {
        metric_inc(e->metrics, METRIC_list_leases_refused);
    }
    cas_finish(e, cas, LIST_NOT_STORED);
}

/* Gives the lease to the first call. */
static void emit_lease(struct engine *e, struct op_lease *l)
{
    uint32_t seconds = (uint32_t)TAILQ_FIRST(&l->cas.calls)->seconds;
    struct head nothing = {0};
    const struct head *head = l->cas.head != NULL ? l->cas.head : &nothing;
    struct layout layout;
    layout_init(&layout, head);
    layout_make_absent(&layout);
    l->token = version_of_hash(rng_unique(e->rng)); /* so that every client can give it back */
    layout.marks.lease = l->token;
    /* The second that has begun does not count. Beyond what a head can name, a clock is wrong. */
    int64_t until_s = e->now.wall_s + seconds + 1;
    layout.marks.lease_until_s = until_s < LEASE_UNTIL_MAX_S ? until_s : LEASE_UNTIL_MAX_S;
    block_append(&layout.log, head->log.p, head->log.len);
    struct block *value = layout_value(&layout);
    bool names = head->garbage_count > 0 || head->announcements.len > 0 || head->residue != NULL;
    struct life life = life_given(names ? 0 : seconds + KEEP_S);
    if (l->cas.head == NULL) {
        emit_add_head_for(e, &l->cas.op, &life, value, TAG_CAS_WRITE);
    } else {
        emit_cas_for(e, &l->cas.op, head, &life, value, TAG_CAS_WRITE);
    }
    block_unref(&value);
    layout_fini(&layout);
}

/* When the first call goes while the lease is being written, the next one may have it. */
static void stored(struct engine *e, struct op_cas *cas)
{
    struct list_call *call = TAILQ_FIRST(&cas->calls);
    if (call != NULL) {
        metric_inc(e->metrics, METRIC_list_leases);
        TAILQ_REMOVE(&cas->calls, call, link);
        call->number = ((struct op_lease *)cas)->token;
        call_finish(e, cas->op.list, call, LIST_OK);
    }
    refuse_all(e, cas);
}

static enum progress decide(struct engine *e, struct op_cas *cas, const struct op_event *event)
{
    (void)event;
    cas->decision = CAS_ENDS;
    if (cas->got == GOT_HEAD) {
        cas_finish(e, cas, LIST_EXISTS);
    } else if (cas->got == GOT_ABSENT && !lease_is_over(&cas->head->marks, e->now.wall_s)) {
        refuse_all(e, cas);
    } else {
        cas->decision = CAS_WRITES;
        cas->writing = "writing a lease";
        emit_lease(e, (struct op_lease *)cas);
    }
    return PROGRESS_DONE;
}

static const struct cas_kind lease_kind = {
    CAS_FOR_CLIENTS,
    .decide = decide,
    .stored = stored,
};

struct op_cas *lease_create(struct engine *e, struct list *list)
{
    return cas_create(e, list, &list->exact, sizeof(struct op_lease), &lease_kind, NULL);
}
