/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same run once more, seen from outside: what clients asked and were answered, and when, given
 * to the checker of histories, which knows nothing of heads, versions and moments of execution. It
 * is the one that judges real daemons. The order in which the oracle saw changes take effect goes
 * along as hints: an order to be tried first, which must fit all answers by itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../history/history.h"
#include "joint.h"
#include "world.h"

/* Per list, when the hints are of no use; a second or so. More may be needed: such a history is
 * counted as undecided. */
#define CONFIGURATIONS_MAX 100000

static const enum history_verb verbs[] = {
    [LIST_ADD] = HISTORY_LADD,         [LIST_DEL] = HISTORY_LDEL,
    [LIST_SET] = HISTORY_LSET,         [LIST_ADDX] = HISTORY_LADDX,
    [LIST_DELX] = HISTORY_LDELX,       [LIST_CREATE] = HISTORY_LCREATE,
    [LIST_GET] = HISTORY_LGET,         [LIST_HAS] = HISTORY_LHAS,
    [LIST_LEN] = HISTORY_LLEN,         [LIST_RANGE] = HISTORY_LRANGE,
    [LIST_COMPACT] = HISTORY_LCOMPACT, [LIST_DROP] = HISTORY_LDROP,
    [LIST_STAT] = HISTORY_LLEN,        [LIST_REVRANGE] = HISTORY_LRANGE,
};

/* A put is an lset, or an lcreate; one with another condition that does not hold is left out. */
static enum history_verb verb_of(const struct list_call *call)
{
    if (call->verb == LIST_PUT) {
        return call->condition == LIST_IF_MISSING ? HISTORY_LCREATE : HISTORY_LSET;
    }
    return verbs[call->verb];
}

static enum history_outcome outcome_of(const struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    switch (call->call.status) {
    case LIST_OK:
        return HISTORY_OK;
    case LIST_MISSING:
        return verb == LIST_HAS || list_verb_has(verb, LIST_RANGES) ? HISTORY_NONE
                                                                    : HISTORY_MISSING;
    case LIST_NOT_STORED:
        return HISTORY_NOT_STORED;
    case LIST_EXISTS: /* no call of the simulator has such a condition */
    case LIST_CLIENT_ERROR:
    case LIST_SERVER_ERROR:
        break;
    }
    return strstr(call->call.error, "damaged") != NULL ? HISTORY_DAMAGED : HISTORY_ERROR;
}

static void add(struct history *history, const struct history_op *op)
{
    const char *wrong = history_add(history, op);
    if (wrong != NULL) {
        sim_violation("call %llu cannot be recorded: %s", (unsigned long long)op->number, wrong);
    }
}

/* The order in which changes took effect: by the version that they made or, behind that, found; and
 * of those in one order. */
static uint64_t hint_of_version(uint32_t version, bool made, uint64_t order)
{
    return (2 * (uint64_t)version + (made ? 1 : 2)) << 32 | order;
}

static uint64_t hint_applied(const struct sim_call *call)
{
    return hint_of_version(call->applied_version, call->made_version, call->applied_at);
}

static uint64_t hint_of_call(const struct sim_world *w, const struct sim_call *call)
{
    if (w->p.refuse && call->call.verb == LIST_DROP) {
        if (call->removed_version != 0) {
            return hint_of_version(call->removed_version, true, call->applied_at);
        }
    } else if (call->pends) {
        return call->laid_version == 0
                   ? 0
                   : hint_of_version(call->laid_version, false, call->laid_order);
    } else if (call->applied > 0) {
        return hint_applied(call);
    }
    return call_unknown(call) ? 0 : HISTORY_HINT_NOTHING;
}

/* Between the calls that were asked before the loss and those asked behind it, the list ends. */
static uint64_t hint_of_loss(const struct sim_world *w, const struct loss *loss)
{
    const struct model_list *l = &w->oracle.list[loss->list];
    uint32_t before = 0, behind = l->count - 1;
    for (const struct sim_call *call = w->all_calls; call != NULL; call = call->next) {
        if (call->list == loss->list && call->asked < loss->at) {
            before = call->start_version > before ? call->start_version : before;
        } else if (call->list == loss->list) {
            behind = call->start_version < behind ? call->start_version : behind;
        }
    }
    for (uint32_t v = behind; v > before; v--) {
        if (!l->versions[v].exists && l->versions[v - 1].exists) {
            return hint_of_version(v, true, loss->at);
        }
    }
    return 0;
}

static void record_call(struct history *history, const struct sim_world *w,
                        const struct sim_call *call)
{
    static struct slice answer[ITEMS_MAX], items[CALL_ITEMS_MAX];
    const struct list_call *c = &call->call;
    bool unknown = call_unknown(call) || call->pends; /* it may count later, or never */
    bool reads = list_verb_reads(c->verb);
    bool back = c->verb == LIST_REVRANGE; /* the same as an lrange, counted from the other end */
    if (c->verb == LIST_LEASE || c->verb == LIST_MIGRATE || is_joint(call)) {
        return; /* and no leases, nor servers, and each call has one list */
    }
    if (c->verb == LIST_TOUCH || c->verb == LIST_TTL) {
        return; /* histories know no times: they are taken where no list expires */
    }
    bool without =
        c->verb == LIST_PUT && c->condition != LIST_IF_MISSING &&
        (c->status == LIST_NOT_STORED || c->status == LIST_EXISTS || c->status == LIST_MISSING);
    if ((unknown && reads) || without || (c->verb == LIST_STAT && c->status != LIST_OK)) {
        return;
    }
    struct history_op op = {
        .number = call->number,
        .process = call->session,
        .verb = verb_of(c),
        .outcome = unknown ? HISTORY_UNKNOWN : outcome_of(call),
        .list = slice_of(w->oracle.list[call->list].key),
        .items = items,
        .item_count = c->item_count,
        .from = back ? -1 - c->to : c->from,
        .to = back ? -1 - c->from : c->to,
        .invoked = (int64_t)call->asked,
        .completed = (int64_t)call->answered,
        .count = c->verb == LIST_STAT ? c->stat.items : c->number,
        .answer = answer,
        .answer_count = call->answer.count,
        .hint = hint_of_call(w, call),
    };
    for (uint32_t i = 0; i < call->answer.count; i++) {
        answer[i] = item_text(call->answer.ids[back ? call->answer.count - 1 - i : i]);
    }
    for (size_t i = 0; i < c->item_count; i++) {
        items[i] = item_text(call->ids[i]);
    }
    add(history, &op);
}

/* A head that was lost: as if a client had dropped the list. */
static void record_losses(struct history *history, const struct sim_world *w)
{
    for (size_t i = 0; i < w->oracle.loss_count; i++) {
        const struct loss *loss = &w->oracle.losses[i];
        struct history_op op = {
            .process = UINT32_MAX,
            .verb = HISTORY_LDROP,
            .outcome = HISTORY_MAYBE,
            .list = slice_of(w->oracle.list[loss->list].key),
            .invoked = (int64_t)loss->at,
            .completed = (int64_t)loss->at,
            .hint = hint_of_loss(w, loss),
        };
        add(history, &op);
    }
}

/* An ldrop with on_missing = refuse that met others goes on until the head is gone, and what was
 * added in between goes with it: docs/guarantees.md. The checker knows one emptying and one
 * removal. */
static bool dropped_repeatedly(const struct sim_world *w)
{
    const struct sim_call *call = w->all_calls;
    while (call != NULL && call->clears <= 1) {
        call = call->next;
    }
    return call != NULL;
}

void sim_check_history(const struct sim_world *w)
{
    if (w->p.refuse && dropped_repeatedly(w)) {
        return;
    }
    struct history_options options = {.refuse = w->p.refuse,
                                      .configurations_max = CONFIGURATIONS_MAX};
    struct history *history = history_create(&options);
    /* The calls are kept newest first. */
    for (const struct sim_call *call = w->all_calls; call != NULL; call = call->next) {
        if (!is_foreign_list((int)call->list)) {
            record_call(history, w, call);
        }
    }
    record_losses(history, w);
    enum history_verdict verdict = history_check(history, stdout, NULL);
    history_destroy(&history);
    if (verdict == HISTORY_VIOLATED) {
        sim_violation("the history of calls is not linearizable");
    }
    if (sim_totals != NULL) {
        struct sim_totals *totals = &sim_totals[w->p.dialect];
        __atomic_fetch_add(&totals->histories, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&totals->undecided, verdict == HISTORY_UNDECIDED, __ATOMIC_RELAXED);
    }
}
