/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients ask for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pops.h"
#include "joint.h"
#include "tags.h"
#include "txs.h"
#include "world.h"

/* What is refused wherever lists are not one item is hardly asked for there. */
static enum list_verb choose_blind(struct client *client)
{
    const struct params *p = &client->proxy->world->p;
    uint64_t n = rng_below(&client->rng, 1000);
    if (n < 3) {
        static const enum list_verb refused[] = {LIST_ADDX, LIST_DELX, LIST_CREATE};
        return refused[n];
    }
    uint64_t sets = p->drops > 1 ? 100 : 8, drops = p->drops > 1 ? 100 : 2;
    if (n < sets + drops && p->drops > 0) {
        return n < sets ? LIST_SET : LIST_DROP;
    }
    if (p->dialect == DIALECT_RING || rng_below(&client->rng, 100) < p->growth) {
        return LIST_ADD;
    }
    return n % 2 == 0 ? LIST_ADD : LIST_DEL;
}

static enum list_verb choose_change(struct client *client)
{
    uint64_t n = rng_below(&client->rng, 100);
    if (!params_one_item(&client->proxy->world->p)) {
        return choose_blind(client);
    }
    if (rng_below(&client->rng, 100) < client->proxy->world->p.growth) {
        return n < 85 ? LIST_ADD : LIST_ADDX;
    }
    return n < 35   ? LIST_ADD
           : n < 65 ? LIST_DEL
           : n < 77 ? LIST_ADDX
           : n < 89 ? LIST_DELX
           : n < 91 ? LIST_SET
           : n < 96 ? LIST_PUT
           : n < 98 ? LIST_CREATE
                    : LIST_DROP;
}

static enum list_verb choose_verb(struct client *client)
{
    static const enum list_verb reads[] = {LIST_GET, LIST_GET,   LIST_HAS,      LIST_HAS,
                                           LIST_LEN, LIST_RANGE, LIST_REVRANGE, LIST_STAT};
    uint64_t n = rng_below(&client->rng, 100);
    if (client->proxy->world->p.only_adds) {
        return LIST_ADD;
    }
    if (client->proxy->world->p.in_turns && n < 75) {
        return n < 25 ? LIST_ADD : n < 45 ? LIST_DEL : LIST_HAS;
    }
    if (n < 60) {
        return choose_change(client);
    }
    return n == 60 ? LIST_COMPACT : reads[rng_below(&client->rng, sizeof reads / sizeof reads[0])];
}

/* In worlds where lists are missing, and clients fill them. */
static enum list_verb choose_lease(struct client *client, enum list_verb verb)
{
    static const enum list_verb verbs[] = {LIST_LEASE, LIST_LEASE, LIST_PUT,
                                           LIST_PUT,   LIST_DROP,  LIST_CREATE};
    if (!client->proxy->world->p.leases || rng_below(&client->rng, 6) != 0) {
        return verb;
    }
    return verbs[rng_below(&client->rng, sizeof verbs / sizeof verbs[0])];
}

/* In worlds where lists have times of life. */
static enum list_verb choose_life(struct client *client, enum list_verb verb)
{
    if (client->proxy->world->p.touches == 0 || rng_below(&client->rng, 16) != 0) {
        return verb;
    }
    return rng_below(&client->rng, 2) == 0 ? LIST_TOUCH : LIST_TTL;
}

/* In worlds where items have times of their own: by an own draw, so that all else stays. */
static enum list_verb choose_timed(struct client *client, struct rng *rng, enum list_verb verb)
{
    rng_init_seed(rng, client->proxy->world->p.seed * 104395301 +
                           client->proxy->world->calls_made * 31 + client->number);
    if (!client->proxy->world->p.timed) {
        return verb;
    }
    if (verb == LIST_ADD && rng_below(rng, 2) == 0) {
        return LIST_ADDT;
    }
    return verb == LIST_HAS && rng_below(rng, 4) == 0 ? LIST_TTL : verb;
}

/* Most are over soon; some never while the world lasts. */
static int64_t choose_seconds(struct rng *rng)
{
    static const int64_t seconds[] = {1, 1, 2, 3, 60, 100, 1000000};
    return seconds[rng_below(rng, sizeof seconds / sizeof seconds[0])];
}

struct sim_call *call_new(struct sim_world *w, enum list_verb verb, unsigned list)
{
    struct sim_call *call = calloc(1, sizeof *call);
    CHECK(call != NULL);
    call->number = ++w->calls_made;
    call->list = list;
    if (is_foreign_list((int)list)) {
        snprintf(call->key, sizeof call->key, "L%u", list);
    } else {
        memcpy(call->key, w->oracle.list[list].key, sizeof call->key);
    }
    call->call = (struct list_call){
        .verb = verb,
        .form = LIST_FORM_JOINED,
        .key = slice_of(call->key),
        .items = call->items,
        /* Of a ring, that takes all slots; with max_stale_ms, a look at the server. */
        .wants_version =
            (w->p.dialect != DIALECT_RING && w->p.max_stale_ms == 0) || call->number % 8 == 0,
        .owner = call,
    };
    chain_init(&call->call.answer);
    return call;
}

struct sim_call *call_create(struct sim_world *w, struct client *client, enum list_verb verb,
                             unsigned list)
{
    struct sim_call *call = call_new(w, verb, list);
    call->proxy = client->proxy->number;
    call->session = client->number;
    call->call.policy = &client->proxy->config->lists[0];
    call->cap_max = call->call.policy->max_items;
    call->cap_refuses = call->call.policy->cap == CAP_REFUSE;
    call->recent = call->call.policy->order == ORDER_RECENT;
    call->lead_s = client->proxy->base.clock_skew_s;
    call->call.session = &client->session;
    return call;
}

void call_set_deadline(struct sim_world *w, struct sim_call *call)
{
    enum { LONG_US = 60000000 };
    bool is_long = w->quiet || call->call.verb == LIST_COMPACT;
    call->due_us = w->base.now_us + (is_long ? LONG_US : w->p.deadline_us);
    call->call.deadline_us = call->due_us;
}

void call_choose_items(struct sim_world *w, struct rng *rng, struct sim_call *call)
{
    enum list_verb verb = call->call.verb;
    bool takes = verb == LIST_ADD || verb == LIST_ADDT || verb == LIST_DEL || verb == LIST_SET ||
                 verb == LIST_ADDX || verb == LIST_DELX || verb == LIST_CREATE ||
                 verb == LIST_HAS || verb == LIST_PUT;
    if (!takes) {
        return;
    }
    uint64_t most = verb == LIST_PUT         ? CALL_ITEMS_MAX
                    : verb == LIST_HAS       ? 12
                    : rng_below(rng, 8) == 0 ? 6
                                             : 2;
    bool may_be_none = verb == LIST_SET || verb == LIST_CREATE || verb == LIST_PUT;
    size_t count = rng_below(rng, most) + !may_be_none;
    for (size_t i = 0; i < count; i++) {
        call->ids[i] = (uint16_t)rng_below(rng, w->p.items);
        if (w->p.dialect == DIALECT_RING && verb == LIST_ADD) {
            do {
                call->ids[i] = w->entries_made[call->list]++ % ITEMS_MAX;
            } while (!ring_free(w->oracle.outside, call->list, call->ids[i]));
        }
        call->items[i] = item_text(call->ids[i]);
    }
    call->call.item_count = count;
}

/* Some changes add and delete in one step, as a bridge's append does (bridge = signed). The checker
 * of histories does not know them. */
static void choose_ops(const struct sim_world *w, struct sim_call *call)
{
    const struct params *p = &w->p;
    bool knows = p->dialect == DIALECT_NATIVE || p->dialect == DIALECT_SIGNED;
    bool mixed = knows && !p->history && !p->only_adds;
    if (!mixed || call->call.verb != LIST_ADD || call->number % 8 != 0) {
        return;
    }
    for (size_t i = 0; i < call->call.item_count; i++) {
        call->ops[i] = (call->number / 8 + i) % 2 == 0 ? ENTRY_ADD : ENTRY_DEL;
    }
    call->call.ops = call->ops;
}

/* Most versions are those of the list as it is now, or was lately. */
static void choose_condition(struct client *client, struct sim_call *call)
{
    const struct model_list *l = &client->proxy->world->oracle.list[call->list];
    bool takes_one = call->call.verb == LIST_PUT;
    static const enum list_condition conditions[] = {LIST_ALWAYS, LIST_IF_MISSING, LIST_IF_PRESENT,
                                                     LIST_IF_VERSION, LIST_IF_VERSION};
    enum list_condition condition = conditions[rng_below(&client->rng, 5)];
    call->call.condition = takes_one ? condition : LIST_ALWAYS;
    if (client->tokens[call->list] != 0 && rng_below(&client->rng, 2) == 0) {
        call->call.condition = takes_one ? LIST_IF_LEASED : LIST_ALWAYS;
        call->call.expected = client->tokens[call->list];
        return;
    }
    size_t back = rng_below(&client->rng, 2);
    call->call.expected = l->mark_count > back ? l->marks[l->mark_count - 1 - back].seen : 0;
}

static void choose_range(struct client *client, struct sim_call *call)
{
    uint64_t items = client->proxy->world->p.items;
    call->call.from = (int64_t)rng_below(&client->rng, 2 * items + 1) - (int64_t)items;
    call->call.to = (int64_t)rng_below(&client->rng, 2 * items + 1) - (int64_t)items;
    if (client->proxy->world->p.dialect == DIALECT_RING && call->number % 2 == 0) {
        /* A few of the newest entries, some of which are not written yet. */
        call->call.from = call->call.from < 0 ? 0 : call->call.from % 3;
        call->call.to = call->call.from + (call->call.to < 0 ? -call->call.to : call->call.to) % 6;
    }
}

void client_plan(struct client *client)
{
    struct sim_world *w = client->proxy->world;
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&client->rng, w->p.think_us),
                EVENT_CLIENT, client, client->proxy->life);
}

/* Such a call is asked when nothing else of its client is under way, and until its answer nothing
 * is. */
static void ask_alone(struct client *client)
{
    struct sim_world *w = client->proxy->world;
    bool before = client->alone || client->pending == 0;
    client->alone = true;
    if (!before) {
        client->waits = true;
        return;
    }
    struct sim_call *call = call_create(w, client, client->alone_verb,
                                        (unsigned)rng_below(&client->joint_rng, w->p.lists));
    if (is_tx(call)) {
        txs_choose(client, call);
    } else {
        joint_call_choose(client, call);
    }
    if (ranges_have(&w->p.without_calls, call->number)) {
        client->alone = false;
        free(call->plan);
        free(call);
    } else {
        sim_proxy_submit(client->proxy, call);
    }
    client_plan(client);
}

void client_think(struct client *client)
{
    struct sim_proxy *p = client->proxy;
    struct sim_world *w = p->world;
    if (w->quiet || p->base.engine == NULL || w->calls_made >= w->p.ops) {
        return;
    }
    if (client->pending >= w->p.depth || (client->alone && client->pending > 0)) {
        client->waits = true;
        return;
    }
    if (client->alone || txs_wants(client, &client->alone_verb) ||
        joint_call_wants(client, &client->alone_verb)) {
        ask_alone(client);
        return;
    }
    struct rng timed;
    enum list_verb chosen = choose_lease(client, choose_life(client, choose_verb(client)));
    enum list_verb verb = choose_timed(client, &timed, chosen);
    verb = pops_choose(&w->p, w->calls_made + 1, verb);
    verb = tags_choose(&w->oracle, &w->p, w->calls_made + 1, verb);
    struct sim_call *call =
        call_create(w, client, verb, (unsigned)rng_below(&client->rng, w->p.lists));
    call->call.form = rng_below(&client->rng, 4) == 0 ? LIST_FORM_ITEMS : LIST_FORM_JOINED;
    call_choose_items(w, &client->rng, call);
    choose_ops(w, call);
    choose_range(client, call);
    if (verb == LIST_ADDT) {
        call->call.seconds = choose_seconds(&timed);
    }
    if (verb == LIST_TTL && chosen == LIST_HAS) {
        call->ids[0] = (uint16_t)rng_below(&timed, w->p.items);
        call->items[0] = item_text(call->ids[0]);
        call->call.item_count = 1;
    }
    pops_plan(&w->p, call);
    if (verb == LIST_LEASE) {
        call->call.seconds = 1 + (int64_t)rng_below(&client->rng, 3);
    }
    if (verb == LIST_TOUCH) {
        call->call.has_exptime = true;
        call->call.exptime = lives_choose(w, &client->rng);
    }
    if (verb == LIST_PUT && w->p.touches > 0 && w->p.dialect == DIALECT_NATIVE) {
        int64_t exptime = lives_choose(w, &client->rng);
        call->call.has_exptime = rng_below(&client->rng, 2) == 0;
        call->call.exptime = exptime < 0 ? 1 : exptime;
    }
    choose_condition(client, call);
    if (ranges_have(&w->p.without_calls, call->number)) {
        free(call);
    } else {
        sim_proxy_submit(p, call);
    }
    client_plan(client);
}

void trace_call(struct sim_world *w, const struct sim_call *call)
{
    char text[320];
    if (trace_mode != TRACE_OFF) {
        call_describe(call, text, sizeof text);
        trace(&w->base, "%s", text);
    }
}

/* A call that is held goes on when its client has taken something, and not before. */
static void note_held(const struct sim_world *w, const struct client *client)
{
    struct sim_call *call;
    TAILQ_FOREACH(call, &w->oracle.sessions[client->number].calls, link)
    {
        if (!call->done && call->call.deferred) {
            call->held_us = w->base.now_us;
        }
    }
}

bool client_takes(struct client *client, uint64_t bytes)
{
    struct sim_world *w = client->proxy->world;
    struct list_session *session = &client->session;
    const struct sim_call *first = TAILQ_FIRST(&w->oracle.sessions[client->number].calls);
    if (session->limit_bytes == 0) {
        return false;
    }
    note_held(w, client);
    session->unread_bytes += bytes;
    if (rng_below(&client->rng, 2) == 0) {
        session->unread_bytes = 0;
    }
    session->first = first != NULL ? &first->call : NULL;
    engine_session_changed(client->proxy->base.engine, session);
    return session_has_deferred(session);
}

static void __attribute__((noreturn))
wrong_moment(const struct sim_call *call, uint64_t us, const char *what)
{
    char text[320];
    call_describe(call, text, sizeof text);
    sim_violation("answered %llu us %s: %s", (unsigned long long)us, what, text);
}

/* Nothing but its client, or a pause of its proxy, keeps a call from being answered in time. The
 * time of one that was held for its client begins anew when it goes on. */
static void check_deadline(const struct sim_world *w, const struct sim_call *call)
{
    enum { TURN_US = 2 };
    const struct sim_proxy *p = &w->proxies[call->proxy];
    uint64_t now_us = w->base.now_us, due_us = call->due_us;
    uint64_t anew_us = call->held_us != 0 ? call->held_us + call->call.time_us : 0;
    if ((w->p.session_limit != 0 || call->call.fills) && call->call.deadline_us > due_us) {
        due_us = call->call.deadline_us;
    }
    due_us = due_us > p->paused_until_us ? due_us : p->paused_until_us;
    if (now_us > due_us + TURN_US) {
        wrong_moment(call, now_us - due_us, "after its deadline");
    }
    if (now_us < anew_us && strstr(call->call.error, "deadline over") != NULL) {
        wrong_moment(call, anew_us - now_us, "before its deadline, which began anew");
    }
}

/* Its items are the client's again: the engine must not look at them any more. */
static void forget_items(struct sim_call *call)
{
    for (size_t i = 0; i < call->call.item_count; i++) {
        call->items[i] = SLICE_LIT("not-an-item");
    }
    txs_forget_items(call);
}

/* Where nothing fails, and proxies have to get along with one another only. */
static void check_answered_well(struct sim_world *w, const struct sim_call *call)
{
    if (w->p.no_errors && call->call.status == LIST_SERVER_ERROR) {
        char text[320];
        call_describe(call, text, sizeof text);
        sim_violation("failed, though no server did: %s", text);
    }
}

bool call_done(struct sim_world *w, struct sim_call *call)
{
    struct client *client = &w->proxies[call->proxy].clients[call->session % CLIENTS_MAX];
    if (is_foreign_list((int)call->list)) {
        check_deadline(w, call);
        foreign_done(w, call);
        return false;
    }
    CHECK(!call->done && client->number == call->session);
    client->pending--;
    client->alone = client->alone && !is_joint(call);
    w->calls_pending--;
    w->last_answer_us = w->base.now_us;
    w->statuses[call->call.status]++;
    call->done = true;
    trace_call(w, call);
    forget_items(call);
    check_deadline(w, call);
    check_answered_well(w, call);
    uint64_t bytes = call->call.answer.bytes;
    call->settled_us = w->proxies[call->proxy].last_arrival_us;
    if (strstr(call->call.error, "deadline over, outcome unknown") != NULL) {
        /* It may be in a batch that is not written yet. */
        call->settled_us = UINT64_MAX;
        w->proxies[call->proxy].unsettled++;
    }
    if (call->call.verb == LIST_LEASE && call->call.status == LIST_OK) {
        client->tokens[call->list] = call->call.number;
    }
    oracle_done(&w->oracle, call, world_now(&w->base).wall_s);
    if (client->waits) {
        client->waits = false;
        client_plan(client);
    }
    return client_takes(client, bytes);
}
