/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/change/renew.h"

#include "list/change/cas.h"
#include "list/core/backoff.h"
#include "list/core/engine_state.h"

/* Renewals under way at a time, per worker; what comes while there are so many is left to the next
 * use of its list. */
#define RENEWALS_MAX 256
/* CAS attempts: a list that changes that fast is tried again at one of its next changes. */
#define TRIES_MAX 4
/* Between two renewals of a list, whatever they came to. */
#define PAUSE_US 100000u

static enum progress decide(struct engine *e, struct op_cas *cas, const struct op_event *event)
{
    bool due = cas->got == GOT_HEAD && life_is_due(cas->op.list->policy, cas->head->ttl_s);
    (void)event;
    cas->decision = due ? CAS_WRITES : CAS_ENDS;
    if (due) {
        cas->writing = "renewing the time to live";
        cas_emit_entries(e, cas);
    }
    return PROGRESS_DONE;
}

static void stored(struct engine *e, struct op_cas *cas)
{
    (void)cas;
    metric_inc(e->metrics, METRIC_list_renewals);
}

static void renew_fini(struct engine *e, struct op_cas *cas)
{
    (void)cas;
    e->renewals--;
}

static const struct cas_kind renewal = {
    .reading = "reading head to renew its time to live",
    .pausing = "backing off before renewing the time to live",
    .tries_max = TRIES_MAX,
    .pause_us = CAS_PAUSE_US,
    .carries_none = true,
    .decide = decide,
    .stored = stored,
    .fini = renew_fini,
};

enum progress renew_cas_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct co *co = &op->co;
    CO_BEGIN(co);
    CO_CALL(co, cas_step(e, (struct op_cas *)op, event));
    renew_consider(e, op->list, false); /* a CAS has renewed it already */
    list_consider_compaction(e, op->list, 0);
    CO_END(co);
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
    struct op_cas *cas = cas_create(e, list, &list->renewal, sizeof *cas, &renewal, NULL);
    list->renew_after_us = now_us + PAUSE_US;
    e->renewals++;
    op_run(e, &cas->op);
}
