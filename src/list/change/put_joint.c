/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put whose content is computed: linterstore, lunionstore, ldiffstore. The lists that are read
 * are those of one instant, and the list that is made is replaced later, by a CAS of its own. If it
 * is one of those that are read, this CAS is of the head that was read, and all begins anew when it
 * has changed: so nothing that was added meanwhile is lost.
 */
#include "list/change/put_op.h"
#include "base/number.h"
#include "list/core/engine_state.h"

/* A pause after the list has changed; doubles up to 2^5 times that. */
#define PAUSE_US 100u

static void begin(struct op_put *p)
{
    const struct list_policy *policy = p->op.list->policy;
    combine_fini(&p->combine);
    fold_fini(&p->items);
    fold_init(&p->items);
    fold_set_cap(&p->items, list_policy_cap(policy));
    combine_init(&p->combine, &p->joint, joint_verb(p->call->verb), policy->fold_memory_bytes);
    p->combine.items = &p->items;
    p->combine.to = policy;
}

/* Is the list to be replaced one of those that were read? */
static void bind(struct op_put *p)
{
    p->bound = false;
    for (size_t i = 0; i < p->joint.source_count && p->joint.state == JOINT_OK; i++) {
        const struct source *s = &p->joint.sources[i];
        if (s->list == p->op.list) {
            p->bound = true;
            p->bound_cas = s->look->cas;
            p->bound_epoch = s->look->epoch;
        }
    }
}

bool put_is_bound(const struct op_put *p)
{
    if (!p->bound || (p->head != NULL && put_is_left(p))) {
        return true;
    }
    return p->head == NULL ? p->bound_epoch == 0
                           : p->head->cas == p->bound_cas && p->head->epoch == p->bound_epoch;
}

static void settle(struct engine *e, struct op_put *p)
{
    uint64_t number = p->combine.number;
    p->item_bytes = p->combine.item_bytes;
    combine_fini(&p->combine);
    p->combine.number = number;
    put_count_memory(p);
    if (p->call == NULL || p->joint.state == JOINT_OK) {
        return;
    }
    if (p->joint.state == JOINT_FAILED) {
        put_fail(e, p, p->error);
        return;
    }
    if (p->joint.state == JOINT_REFUSED) {
        memcpy(p->call->error, p->error, sizeof p->error);
    }
    put_finish(e, p, p->joint.state == JOINT_MISSING ? LIST_MISSING : LIST_CLIENT_ERROR);
}

enum progress put_compute_step(struct engine *e, struct op_put *p, const struct op_event *event)
{
    struct co *co = &p->op.co;
    CO_BEGIN(co);
    if (p->computed++ > 0) {
        CO_SLEEP(&p->op, co, "backing off before computing again",
                 op_backoff_end_us(e, PAUSE_US, (unsigned)u64_least(p->computed, 5)));
    }
    block_unref(&p->left);
    p->joint.rounds = 0;
    p->computing = p->computed == 1;
    do {
        CO_CALL(co, joint_instant_step(e, &p->joint, event));
        if (p->call == NULL || p->joint.state != JOINT_OK) {
            break;
        }
        begin(p);
        CO_CALL(co, combine_step(e, &p->combine, event));
    } while (p->call != NULL && p->joint.state == JOINT_AGAIN);
    p->computing = false;
    op_stop_waking(&p->op, e);
    joint_leave_turn(e, &p->joint);
    bind(p);
    settle(e, p);
    CO_END(co);
}
