/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/renew.h"

#include "list/core/engine_state.h"

/* Renewals under way at a time, per worker; what comes while there are so many is left to the next
 * use of its list. */
#define RENEWALS_MAX 256
/* CAS attempts: a list that changes that fast is tried again at one of its next changes. */
#define TRIES_MAX 4
/* First pause after a conflict; doubles each time. */
#define BACKOFF_US 200u
/* Between two renewals of a list, whatever they came to. */
#define PAUSE_US 100000u

enum { TAG_GET = 1, TAG_CAS };

struct op_renew {
    struct op op;
    struct head *head;
    unsigned tries;
};

/* Takes the head; true when there is nothing to renew. */
static bool settled(struct engine *e, struct op_renew *r, const struct op_event *event)
{
    char error[LIST_ERROR_MAX];
    head_unref(&r->head);
    return op_take_head(e, &r->op, event, &r->head, error) != GOT_HEAD ||
           !life_is_due(r->op.list->policy, r->head->ttl_s);
}

static void emit_same(struct engine *e, struct op_renew *r)
{
    struct block *value = block_new(r->head->value.len);
    block_append(&value, r->head->value.p, r->head->value.len);
    emit_cas(e, &r->op, r->head, value, TAG_CAS);
    block_unref(&value);
}

static enum progress renew_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_renew *r = (struct op_renew *)op;
    struct co *co = &op->co;
    CO_BEGIN(co);
    for (r->tries = 0; r->tries < TRIES_MAX; r->tries++) {
        if (r->tries > 0) {
            CO_SLEEP(op, co, "backing off before renewing the time to live",
                     op_backoff_end_us(e, BACKOFF_US, r->tries));
        }
        emit_get(e, op, TAG_GET);
        CO_AWAIT(co, "reading head to renew its time to live");
        if (settled(e, r, event)) {
            break;
        }
        emit_same(e, r);
        CO_AWAIT(co, "renewing the time to live");
        if (event->status == BE_STORED) {
            metric_inc(e->metrics, METRIC_list_renewals);
        }
        if (event->status != BE_EXISTS) {
            break;
        }
        metric_inc(e->metrics, METRIC_list_conflicts);
    }
    CO_END(co);
}

static void renew_fini(struct engine *e, struct op *op)
{
    struct op_renew *r = (struct op_renew *)op;
    e->renewals--;
    head_unref(&r->head);
}

void renew_consider(struct engine *e, struct list *list, bool changed)
{
    const struct list_policy *policy = list->policy;
    enum ttl_renew needed = changed ? TTL_RENEW_CHANGE : TTL_RENEW_READ;
    uint64_t now_us = e->now.mono_us;
    if (policy->ttl_renew < needed || policy->ttl_s == 0 || list->expires_us == 0 ||
        list->renewal != NULL || now_us < list->renew_after_us || e->renewals >= RENEWALS_MAX) {
        return;
    }
    uint64_t left_us = list->expires_us > now_us ? list->expires_us - now_us : 0;
    if (!life_is_due(policy, (int64_t)(left_us / 1000000))) {
        return;
    }
    struct op_renew *r = op_create(e, list, sizeof *r, renew_step, renew_fini);
    list->renewal = &r->op;
    list->renew_after_us = now_us + PAUSE_US;
    e->renewals++;
    op_start(e, &r->op);
}
