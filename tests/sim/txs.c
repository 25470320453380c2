/* SPDX-License-Identifier: BSD-3-Clause */
#include "txs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tags.h"
#include "world.h"

/* ---- what clients ask ---- */

bool txs_wants(struct client *client, enum list_verb *verb)
{
    static const enum list_verb verbs[] = {LIST_TX, LIST_TX,   LIST_TX,
                                           LIST_TX, LIST_MOVE, LIST_POPTO};
    struct rng *rng = &client->tx_rng;
    const struct params *p = &client->proxy->world->p;
    if (p->txs == 0 || rng_below(rng, 100) >= p->txs) {
        return false;
    }
    *verb = p->lists < 2 ? LIST_TX : verbs[rng_below(rng, sizeof verbs / sizeof verbs[0])];
    return true;
}

static enum tx_op choose_op(struct rng *rng)
{
    uint64_t n = rng_below(rng, 20);
    return n < 8     ? TX_OP_ADD
           : n < 13  ? TX_OP_DEL
           : n == 13 ? TX_OP_SET
           : n < 17  ? TX_OP_REQUIRE
                     : TX_OP_REFUSE;
}

static void choose_changes(const struct sim_world *w, struct rng *rng, struct sim_call *call,
                           unsigned at)
{
    struct tx_plan *plan = call->plan;
    struct call_list *list = &call->several[at];
    list->changes = plan->changes[at];
    list->change_count = 1 + rng_below(rng, rng_below(rng, 3) == 0 ? TX_CHANGES_MAX : 1);
    for (size_t n = 0; n < list->change_count; n++) {
        struct tx_change *change = &plan->changes[at][n];
        change->op = choose_op(rng);
        change->items = plan->items[at][n];
        change->item_count = 1 + rng_below(rng, rng_below(rng, 4) == 0 ? TX_ITEMS_MAX : 1);
        for (size_t i = 0; i < change->item_count; i++) {
            plan->ids[at][n][i] = (uint16_t)rng_below(rng, w->p.items);
            plan->items[at][n][i] = item_text(plan->ids[at][n][i]);
        }
    }
}

static void choose_moved(const struct sim_world *w, struct rng *rng, struct sim_call *call)
{
    if (call->call.verb == LIST_POPTO) {
        call->call.count = 1 + (int64_t)rng_below(rng, 3);
        call->call.count = rng_below(rng, 3) == 0 ? -call->call.count : call->call.count;
        return;
    }
    call->call.item_count = 1 + rng_below(rng, 3);
    for (size_t i = 0; i < call->call.item_count; i++) {
        call->ids[i] = (uint16_t)rng_below(rng, w->p.items);
        call->items[i] = item_text(call->ids[i]);
    }
}

/* Lists that are not chosen yet, from the call's own on. */
static void choose_lists(const struct sim_world *w, struct rng *rng, struct sim_call *call)
{
    unsigned most = w->p.lists < JOINT_LISTS_MAX ? w->p.lists : JOINT_LISTS_MAX;
    unsigned wanted = 2 + (unsigned)rng_below(rng, rng_below(rng, 2) == 0 ? 3 : 1);
    wanted = rng_below(rng, 16) == 0 ? 1 : wanted;
    wanted = call->call.verb != LIST_TX ? 2 : wanted;
    wanted = wanted < most ? wanted : most;
    call->lists[0] = call->list;
    call->list_count = 1;
    while (call->list_count < wanted) {
        unsigned list = (unsigned)rng_below(rng, w->p.lists), i = 0;
        while (i < call->list_count && call->lists[i] != list) {
            i++;
        }
        if (i == call->list_count) {
            call->lists[call->list_count++] = list;
        }
    }
}

void txs_choose(struct client *client, struct sim_call *call)
{
    struct sim_world *w = client->proxy->world;
    struct rng *rng = &client->tx_rng;
    call->plan = calloc(1, sizeof *call->plan);
    CHECK(call->plan != NULL);
    choose_lists(w, rng, call);
    for (unsigned i = 0; i < call->list_count; i++) {
        call->several[i].key = slice_of(w->oracle.list[call->lists[i]].key);
        call->several[i].policy = call->call.policy;
        chain_init(&call->several[i].answer);
        if (call->call.verb == LIST_TX) {
            choose_changes(w, rng, call, i);
        }
    }
    if (call->call.verb != LIST_TX) {
        choose_moved(w, rng, call);
    }
    call->call.lists = call->several;
    call->call.list_count = call->list_count;
}

void txs_forget_items(struct sim_call *call)
{
    for (unsigned i = 0; call->plan != NULL && i < call->list_count; i++) {
        for (size_t n = 0; n < TX_CHANGES_MAX; n++) {
            for (size_t k = 0; k < TX_ITEMS_MAX; k++) {
                call->plan->items[i][n][k] = SLICE_LIT("not-an-item");
            }
        }
    }
}

size_t txs_describe(const struct sim_call *call, char *out, size_t cap)
{
    static const char *const signs[] = {"+", "-", "=", "has ", "no "};
    size_t n = 0;
    for (unsigned i = 0; i < call->list_count && n < cap; i++) {
        n += (size_t)snprintf(out + n, cap - n, "%s L%u", i == 0 ? "" : ",", call->lists[i]);
        for (size_t c = 0; c < call->several[i].change_count && n < cap; c++) {
            const struct tx_change *change = &call->several[i].changes[c];
            for (size_t k = 0; k < change->item_count && n < cap; k++) {
                n += (size_t)snprintf(out + n, cap - n, " %s%u", signs[change->op],
                                      (unsigned)call->plan->ids[i][c][k]);
            }
        }
    }
    return n < cap ? n : cap - 1;
}

/* ---- what they are answered ---- */

typedef bool match_list(const struct oracle *o, const struct sim_call *call, unsigned at,
                        const struct version *v);

/* Was there a version like that of one of the call's first lists, while it was under way? */
static bool matched(const struct oracle *o, const struct sim_call *call, unsigned lists,
                    match_list *match)
{
    for (unsigned i = 0; i < lists; i++) {
        const struct model_list *l = &o->list[call->lists[i]];
        for (uint32_t v = call->start_versions[i]; v < l->count; v++) {
            if (l->versions[v].at < call->answered && match(o, call, i, &l->versions[v])) {
                return true;
            }
        }
    }
    return false;
}

/* Is a condition on that list not met? */
static bool fails(const struct oracle *o, const struct sim_call *call, unsigned at,
                  const struct version *v)
{
    (void)o;
    for (size_t n = 0; n < call->several[at].change_count; n++) {
        const struct tx_change *change = &call->several[at].changes[n];
        for (size_t i = 0; i < change->item_count; i++) {
            bool in = ids_has(&v->items, call->plan->ids[at][n][i]);
            if ((change->op == TX_OP_REQUIRE && !in) || (change->op == TX_OP_REFUSE && in)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_missing(const struct oracle *o, const struct sim_call *call, unsigned at,
                       const struct version *v)
{
    (void)call;
    (void)at;
    return o->refuse && !v->exists;
}

/* Is there nothing to move? */
static bool has_none(const struct oracle *o, const struct sim_call *call, unsigned at,
                     const struct version *v)
{
    (void)o;
    (void)at;
    bool none = call->call.verb == LIST_MOVE || v->items.count == 0;
    for (size_t i = 0; none && i < call->call.item_count; i++) {
        none = !ids_has(&v->items, call->ids[i]);
    }
    return none;
}

/* Has the list a cap that refuses what would not fit? */
static bool is_full(const struct oracle *o, const struct sim_call *call, unsigned at,
                    const struct version *v)
{
    (void)o;
    uint32_t max = v->exists ? v->max : call->cap_max;
    bool refuses = v->exists ? v->refuses : call->cap_refuses;
    uint64_t most = v->items.count;
    most += call->call.verb == LIST_MOVE && at == 1 ? call->call.item_count : 0;
    for (size_t n = 0; n < call->several[at].change_count; n++) {
        const struct tx_change *change = &call->several[at].changes[n];
        most += change->op == TX_OP_ADD || change->op == TX_OP_SET ? change->item_count : 0;
    }
    return max > 0 && refuses && most > max;
}

void txs_each_added(const struct sim_call *call,
                    void (*visit)(void *arg, unsigned list, uint16_t id), void *arg)
{
    for (unsigned i = 0; i < call->list_count; i++) {
        for (size_t n = 0; n < call->several[i].change_count; n++) {
            const struct tx_change *change = &call->several[i].changes[n];
            bool adds = change->op == TX_OP_ADD || change->op == TX_OP_SET;
            for (size_t k = 0; adds && k < change->item_count; k++) {
                visit(arg, call->lists[i], call->plan->ids[i][n][k]);
            }
        }
    }
    const struct ids *moved = txs_moved(call);
    for (uint32_t i = 0; i < moved->count; i++) {
        visit(arg, call->lists[1], moved->ids[i]);
    }
}

struct told {
    struct oracle *oracle;
    const struct sim_call *call;
};

static void tell_tags(void *arg, unsigned list, uint16_t id)
{
    const struct told *told = arg;
    tags_told(told->oracle, told->call, list, id);
}

void txs_answered(struct oracle *o, const struct sim_call *call)
{
    struct told told = {o, call};
    if (is_tx(call) && call->commits > 0 && call->call.status == LIST_OK && !call->abandoned) {
        txs_each_added(call, tell_tags, &told);
    }
}

static const char *judge_committed(const struct oracle *o, struct sim_call *call)
{
    if (call->call.status != LIST_OK) {
        return "committed, but answered otherwise";
    }
    if (call->call.verb == LIST_MOVE && call->call.number != txs_moved(call)->count) {
        return "wrong number";
    }
    if (call->call.verb == LIST_POPTO &&
        (!oracle_parse_answer(o, call, &call->answer) ||
         !ids_equal(&call->answer, txs_moved(call)) || call->call.number != call->answer.count)) {
        return "other items than were moved";
    }
    return txs_is_published(call) ? NULL : "answered before all lists know";
}

const char *txs_judge(const struct oracle *o, struct sim_call *call)
{
    enum list_status status = call->call.status;
    bool moves = call->call.verb != LIST_TX;
    if (call->commits > 0) {
        return judge_committed(o, call);
    }
    if (status == LIST_NOT_STORED) {
        return matched(o, call, moves ? 0 : call->list_count, fails) ||
                       matched(o, call, call->list_count, is_full)
                   ? NULL
                   : "at no moment was a condition not met";
    }
    if (status == LIST_MISSING && matched(o, call, call->list_count, is_missing)) {
        return NULL;
    }
    bool nothing = moves && call->call.number == 0 && call->call.answer.bytes == 0;
    if (nothing && matched(o, call, 1, has_none)) {
        return NULL;
    }
    return "answered, but not committed";
}
