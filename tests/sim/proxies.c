/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proxies and their connections. Each connection is first in, first out; when it breaks, what has
 * not arrived is lost from some point on, no reply comes any more, and the proxy notices later.
 * What it had not sent yet goes over the next one, in front of all that is asked for meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "list/core/expiry.h"
#include "tags.h"
#include "world.h"

static uint64_t delay(const struct sim_world *w, struct connection *c)
{
    uint64_t us = 5 + rng_below(&c->rng, w->p.delay_us);
    return w->p.way_us + (c->far || rng_below(&c->rng, 64) == 0 ? us * 20 : us);
}

static void message_release(struct message *m)
{
    if (--m->holds == 0) {
        free(m->purpose.calls);
        flight_free(&m->flight);
    }
}

static void plan_message(struct sim_world *w, uint64_t at_us, int kind, struct message *m)
{
    m->holds++;
    events_plan(&w->events, at_us, kind, m, 0);
}

void sim_proxy_pause(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    p->pause_due = false;
    /* Now and then longer than announcements live. */
    uint64_t most_us = rng_below(&w->rng, 3) == 0 ? w->p.pause_us : 30000;
    p->paused_until_us = w->base.now_us + 1 + rng_below(&w->rng, most_us);
    trace(&w->base, "p%u pauses until %.6f", p->number, (double)p->paused_until_us / 1e6);
    if (w->p.faults[FAULT_CRASH] > 0 && rng_below(&w->rng, 2) == 0) {
        /* A supervisor finds it hanging: it goes on for a moment, and is killed. */
        uint64_t left_us = 1 + rng_below(&w->rng, 4 * w->p.delay_us);
        events_plan(&w->events, p->paused_until_us + left_us, EVENT_CRASH, p, p->life);
    }
}

/* ---- sending ---- */

/* Not sent: the answer comes from the proxy's own pool. */
static void answer_locally(struct sim_world *w, struct message *m, enum be_status status,
                           const char *text)
{
    m->flight.reply.status = status;
    m->flight.reply.text = text;
    plan_message(w, w->base.now_us + 1, EVENT_DELIVER, m);
}

void message_send(struct sim_world *w, struct message *m)
{
    struct connection *c = &m->proxy->connections[m->flight.server];
    m->flight.epoch = m->proxy->base.epochs[m->flight.server];
    m->waits = !c->up && c->waits;
    if (m->waits) {
        return; /* for connection_up */
    }
    if (!c->up) {
        answer_locally(w, m, BE_DOWN, "backend s down");
    } else if (flight_is_stale(&m->flight)) {
        answer_locally(w, m, BE_EXISTS, NULL);
    } else {
        m->connected = true;
        m->dropped = c->broken;
        m->incarnation = w->base.stores[m->flight.server].incarnation;
        uint64_t at_us = w->base.now_us + delay(w, c);
        c->last_arrival_us = at_us > c->last_arrival_us ? at_us : c->last_arrival_us + 1;
        if (c->last_arrival_us > m->proxy->last_arrival_us) {
            m->proxy->last_arrival_us = c->last_arrival_us;
        }
        plan_message(w, c->last_arrival_us, EVENT_ARRIVE, m);
    }
}

static int list_of(const struct sim_world *w, const struct list_request *r)
{
    uint64_t list = 0;
    if (clock_key_is(r->be.key) || tags_is_plain(&w->p, r)) {
        return -1;
    }
    if (w->p.dialect != DIALECT_NATIVE) {
        enum format_part part;
        int found = format_list(&w->format, r->be.key, &part, &list);
        CHECK(found >= 0 && r->placement_len == r->be.key.len);
        return found;
    }
    const char *end = memchr(r->key, '#', r->be.key.len);
    CHECK(r->key[0] == 'L' && end != NULL &&
          slice_to_u64(slice_make(r->key + 1, (size_t)(end - r->key) - 1), &list));
    return (int)list;
}

/* ---- lists that move ---- */

/* The engine asks: what for is found out now, and who knows when it is sent. */
static void on_asked(struct proxy *base, struct list_request *r)
{
    struct sim_proxy *p = (struct sim_proxy *)base;
    struct message *m = calloc(1, sizeof *m);
    CHECK(m != NULL);
    flight_take(&m->flight, r);
    m->flight.original = r;
    m->proxy = p;
    m->list = list_of(p->world, r);
    purpose_find(p->world, m, r);
    m->next_asked = p->asked;
    p->asked = m;
}

static void on_answered(struct proxy *base, struct list_request *r)
{
    struct sim_proxy *p = (struct sim_proxy *)base;
    struct message **at = &p->asked;
    while ((*at)->flight.original != r) {
        at = &(*at)->next_asked;
    }
    struct message *m = *at;
    *at = m->next_asked;
    free(m->purpose.calls);
    free(m);
}

/* What m is about, which is sent now. */
static void find_asked(struct sim_world *w, struct message *m)
{
    struct list_request *r = m->flight.original;
    const struct message *asked = m->proxy->asked;
    if (r->is_own) {
        m->list = -1;
        m->moved_list = list_of(w, r);
        if (is_foreign_list(m->moved_list)) {
            m->moved_list = -1; /* of its content and its times the oracle knows nothing */
        }
        return;
    }
    while (asked->flight.original != r) {
        asked = asked->next_asked;
    }
    m->list = asked->list;
    m->purpose = asked->purpose;
    m->purpose.calls = NULL;
    if (asked->purpose.count > 0) {
        size_t bytes = asked->purpose.count * sizeof *asked->purpose.calls;
        m->purpose.calls = malloc(bytes);
        CHECK(m->purpose.calls != NULL);
        memcpy(m->purpose.calls, asked->purpose.calls, bytes);
    }
}

/* Proxies are in both steps, changed by restarts. Where servers lose what they hold, all take the
 * second one at once: of a list that is made by one in each, while its mark is lost, two would be
 * there (docs/model/README.md, What it leaves out). With the file that says which server is gone
 * they begin anew. In the end all are in it. */
static enum moving_step step_of(const struct sim_proxy *p)
{
    const struct sim_world *w = p->world;
    bool moves = sim_loses(w) ? w->calls_made * 3 > w->p.ops * (1 + w->base.cluster.left)
                              : (p->number + p->life) % 2 == 1;
    return moves || w->quiet ? MOVING_MOVE : MOVING_LEARN;
}

static void take_requests(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    struct message *m;
    p->base.moving_step = step_of(p);
    while ((m = (struct message *)proxy_send(&w->base, &p->base, sizeof *m)) != NULL) {
        m->proxy = p;
        if (w->base.cluster.left && &w->base.stores[m->flight.server] == w->base.cluster.leaving) {
            sim_violation("a server is asked that is gone for good");
        }
        if (p->base.moving != NULL) {
            find_asked(w, m);
        } else {
            m->list = list_of(w, m->flight.original);
            purpose_find(w, m, m->flight.original);
        }
        if (is_foreign_list(m->list)) {
            foreign_sent(w, m);
        }
        m->holds++;
        if (w->p.couchbase != COUCHBASE_NOT) {
            nodes_submit(w, m);
        } else {
            message_send(w, m);
        }
        bool compacts = m->purpose.kind == PURPOSE_COMPACT ||
                        (m->purpose.kind == PURPOSE_WORK && m->flight.request.be.verb != BE_APPEND);
        if (p->pause_due && compacts && !w->quiet) {
            sim_proxy_pause(p);
        }
    }
    purposes_note(p);
}

/* ---- arriving ---- */

static void trace_message(struct sim_world *w, const struct message *m)
{
    char who[16];
    if (trace_mode != TRACE_OFF) {
        snprintf(who, sizeof who, "p%u%c", m->proxy->number,
                 m->flight.original == NULL ? '+' : ' ');
        flight_trace(&w->base, who, &m->flight);
    }
}

void message_executed(struct sim_world *w, struct message *m)
{
    enum be_status status = m->flight.reply.status;
    int64_t now_s = world_now(&w->base).wall_s;
    struct slice key = flight_key(&m->flight);
    bool head = key.p[key.len - 1] == '#';
    bool changes = flight_has_changed(&m->flight);
    bool refused_set =
        m->flight.request.be.verb == BE_SET && (status == BE_NO_MEMORY || status == BE_TOO_LARGE);
    if (m->list < 0 && tags_is_plain(&w->p, &m->flight.request)) {
        tags_executed(&w->oracle, &m->flight.request, status);
    }
    if (m->flight.request.is_own && changes && m->moved_list >= 0) {
        oracle_note_mark(&w->oracle, (unsigned)m->moved_list, now_s);
        oracle_note_life(&w->oracle, (unsigned)m->moved_list, now_s);
        lives_check_moved(w, m);
        if (w->oracle.may_lose) {
            oracle_look(&w->oracle, now_s); /* sublists that were copied may have gone since */
        }
    }
    if (m->list < 0) {
        return;
    }
    if (is_foreign_list(m->list)) {
        foreign_executed(w, m);
        return;
    }
    head = head || w->p.dialect != DIALECT_NATIVE;
    if (head && changes) {
        lives_check(w, m);
    }
    if (w->oracle.outside != NULL && (changes || refused_set)) {
        outside_executed(w->oracle.outside, (unsigned)m->list, &m->flight.request, changes, now_s);
        return;
    }
    if (!changes) {
        return;
    }
    if (head) {
        oracle_head_changed(&w->oracle, (unsigned)m->list, &m->purpose, &m->flight.request, now_s);
        oracle_note_life(&w->oracle, (unsigned)m->list, now_s);
    } else if (m->flight.request.be.verb != BE_ADD) {
        oracle_sublist_changed(&w->oracle, (unsigned)m->list, key, now_s);
    }
}

/* What the server answers if it is in trouble, or true. A change that drew an error of an unknown
 * kind is of unknown outcome: what answers may be another proxy. */
static bool is_willing(struct store *store, struct message *m, struct rng *rng, bool *executes)
{
    bool changes = flight_is_change(&m->flight);
    *executes = true;
    if (!store->refusing || rng_below(rng, 3) != 0) {
        return true;
    }
    *executes = false;
    m->flight.reply.status = BE_REFUSED;
    m->flight.reply.text = "s said SERVER_ERROR out of memory writing get response";
    if (changes && rng_below(rng, 2) == 0) {
        m->flight.reply.status = BE_LOST;
        m->flight.reply.text = "s said SERVER_ERROR try again, outcome unknown";
        *executes = rng_below(rng, 2) == 0;
    }
    return false;
}

void message_execute(struct sim_world *w, struct message *m)
{
    struct store *store = &w->base.stores[m->flight.server];
    struct be_reply error;
    bool executes;
    void *saved = NULL;
    bool willing = is_willing(store, m, &m->proxy->connections[m->flight.server].rng, &executes);
    error = m->flight.reply;
    if (executes) {
        message_before(w, m);
        saved = nodes_before(w, m);
        flight_execute(&w->base, &m->flight);
    }
    m->flight.reply.epoch = m->flight.epoch;
    trace_message(w, m);
    if (executes) {
        nodes_executed(w, m, saved);
        message_executed(w, m);
    }
    if (!willing) {
        block_unref(&m->flight.reply.block);
        m->flight.reply = error;
        m->flight.reply.epoch = m->flight.epoch;
    }
}

void sim_arrives_late(struct sim_proxy *p, uint64_t at_us)
{
    struct sim_world *w = p->world;
    if (p->last_arrival_us < at_us) {
        p->last_arrival_us = at_us;
    }
    /* It may be of a call that has ended by now. */
    struct sim_call *call, **place = &w->unsettled_calls;
    while ((call = *place) != NULL) {
        if (call->settled_us < w->base.now_us && (call->done || call->abandoned)) {
            *place = call->next_unsettled;
            continue;
        }
        if (call->proxy == p->number && call->settled_us >= w->base.now_us &&
            call->settled_us < at_us) {
            call->settled_us = at_us;
        }
        place = &call->next_unsettled;
    }
}

void sim_add_call(struct sim_world *w, struct sim_call *call)
{
    call->next = w->all_calls;
    w->all_calls = call;
    call->next_unsettled = w->unsettled_calls;
    w->unsettled_calls = call;
}

/* Does it wait for a server that is stalled, or behind what does? */
static bool held_up(struct sim_world *w, struct message *m)
{
    struct connection *c = &m->proxy->connections[m->flight.server];
    uint64_t until_us = w->stalled_until_us[m->flight.server];
    if (m->was_held || (until_us <= w->base.now_us && c->held_us < w->base.now_us)) {
        return false;
    }
    m->was_held = true;
    c->held_us = until_us > c->held_us ? until_us : c->held_us + 1;
    sim_arrives_late(m->proxy, c->held_us);
    events_plan(&w->events, c->held_us, EVENT_ARRIVE, m, 0);
    return true;
}

void message_arrive(struct sim_world *w, struct message *m)
{
    struct store *store = &w->base.stores[m->flight.server];
    struct connection *c = &m->proxy->connections[m->flight.server];
    /* Also where the node stalls: what is at work is ahead of it. */
    if (w->p.couchbase != COUCHBASE_NOT && nodes_waits(w, m)) {
        return;
    }
    if (held_up(w, m)) {
        return;
    }
    if (m->dropped || store->incarnation != m->incarnation) {
        message_release(m);
        return;
    }
    if (w->p.couchbase != COUCHBASE_NOT && nodes_arrive(w, m)) {
        return;
    }
    if (!m->refused && !m->flight.executed) {
        message_execute(w, m);
    }
    if (m->flight.original != NULL && !c->broken &&
        m->proxy->base.epochs[m->flight.server] == m->flight.epoch) {
        uint64_t at_us = w->base.now_us + delay(w, c);
        c->last_reply_us = at_us > c->last_reply_us ? at_us : c->last_reply_us + 1;
        plan_message(w, c->last_reply_us, EVENT_DELIVER, m);
    }
    message_release(m);
}

static void give_back(struct message *m)
{
    struct sim_proxy *p = m->proxy;
    if (p->world->p.couchbase != COUCHBASE_NOT && nodes_keep(p->world, m)) {
        return;
    }
    flight_answer(&p->world->base, &p->base, &m->flight);
    message_release(m);
    /* Before calls end at their deadlines: what is sent carries those that are there now. */
    take_requests(p);
}

void message_deliver(struct sim_world *w, struct message *m)
{
    struct sim_proxy *p = m->proxy;
    struct connection *c = &p->connections[m->flight.server];
    bool lost = m->connected && (c->broken || p->base.epochs[m->flight.server] != m->flight.epoch);
    if (m->flight.original == NULL || lost) {
        message_release(m);
        return;
    }
    if (p->paused_until_us > w->base.now_us) {
        events_plan(&w->events, p->paused_until_us, EVENT_DELIVER, m, 0);
        return;
    }
    give_back(m);
    message_release(m);
    sim_proxy_turn(p);
}

/* ---- breaking ---- */

/* What is in flight to that server arrives up to some point only. all: nothing of it does. */
static void drop_some(struct sim_proxy *p, unsigned server, bool all)
{
    struct flight *f;
    bool drop = all;
    TAILQ_FOREACH(f, &p->base.flights, link)
    {
        struct message *m = (struct message *)f;
        if (f->server == server && !m->waits) {
            drop = drop || rng_below(&p->connections[server].rng, 3) == 0;
            m->dropped = m->dropped || drop;
        }
    }
}

void connection_break(struct sim_proxy *p, unsigned server, bool may_arrive)
{
    struct sim_world *w = p->world;
    struct connection *c = &p->connections[server];
    drop_some(p, server, !may_arrive);
    if (!c->up || c->broken) {
        return;
    }
    trace(&w->base, "p%u s%u connection breaks", p->number, server);
    c->broken = true;
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&c->rng, 3 * w->p.delay_us), EVENT_LOST,
                p, server | p->life << 8);
}

/* Was it not sent yet? Then it goes over the next connection, as another message: this one is lost,
 * wherever it was thought to be. */
static void keep_for_next(struct sim_proxy *p, struct message *m)
{
    struct message *again = malloc(sizeof *again);
    CHECK(again != NULL);
    *again = *m;
    again->flight.request.be.key.p = again->flight.request.key;
    TAILQ_INSERT_BEFORE(&m->flight, &again->flight, link);
    TAILQ_REMOVE(&p->base.flights, &m->flight, link);
    m->flight.original = NULL;
    m->flight.request.be.block = NULL;
    m->purpose.calls = NULL;
    message_release(m);
    again->holds = 1;
    again->connected = again->dropped = again->was_held = again->is_served = false;
}

/* The last of what is dropped, of which the server can know nothing. A CAS does not go over another
 * connection than the one that has brought its number: it waits to be told so. */
static void keep_unsent(struct sim_proxy *p, unsigned server)
{
    struct flight *f, *next;
    bool unsent = false;
    for (f = TAILQ_FIRST(&p->base.flights); f != NULL; f = next) {
        struct message *m = (struct message *)f;
        next = TAILQ_NEXT(f, link);
        if (f->server != server || !m->connected || !m->dropped || f->executed ||
            nodes_at_work(p->world, m)) {
            continue;
        }
        unsent = unsent || rng_below(&p->connections[server].rng, 2) == 0;
        m->waits = unsent;
        m->refused = m->refused && !unsent;
        if (unsent && f->request.be.epoch == 0) {
            keep_for_next(p, m);
        }
    }
}

void connection_lost(struct sim_proxy *p, unsigned server)
{
    struct sim_world *w = p->world;
    struct connection *c = &p->connections[server];
    struct flight *f, *next;
    uint64_t up_us = w->base.now_us + 1 + rng_below(&c->rng, 3 * w->p.delay_us);
    c->broken = false;
    c->up = false;
    c->waits = rng_below(&c->rng, 2) == 0;
    if (c->waits) {
        keep_unsent(p, server);
        sim_arrives_late(p, up_us);
    }
    for (f = TAILQ_FIRST(&p->base.flights); f != NULL; f = next) {
        struct message *m = (struct message *)f;
        next = TAILQ_NEXT(f, link);
        if (f->server == server && m->connected && f->epoch == p->base.epochs[server]) {
            block_unref(&m->flight.reply.block);
            m->flight.reply =
                m->waits ? (struct be_reply){.status = BE_EXISTS}
                         : (struct be_reply){.status = BE_LOST,
                                             .text = "connection to s lost, outcome unknown"};
            give_back(m);
        }
    }
    events_plan(&w->events, up_us, EVENT_UP, p, server | p->life << 8);
    sim_proxy_turn(p);
}

void connection_late(struct sim_proxy *p, unsigned server, uint64_t at_us)
{
    if (p->connections[server].waits) {
        sim_arrives_late(p, at_us);
    }
}

static void connection_begin(struct sim_proxy *p, unsigned server)
{
    struct connection *c = &p->connections[server];
    c->up = true;
    c->broken = c->waits = false;
    c->last_arrival_us = c->last_reply_us = p->world->base.now_us;
}

void connection_up(struct sim_proxy *p, unsigned server)
{
    struct connection *c = &p->connections[server];
    struct flight *f;
    bool waited = c->waits;
    proxy_connect(&p->world->base, &p->base, server);
    connection_begin(p, server);
    TAILQ_FOREACH(f, &p->base.flights, link)
    {
        struct message *m = (struct message *)f;
        if (f->server == server && m->waits) {
            message_send(p->world, m);
        }
    }
    if (waited) {
        sim_arrives_late(p, c->last_arrival_us);
    }
}

/* ---- proxies ---- */

void sim_proxy_start(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    if (w->p.dialect == DIALECT_NATIVE) {
        sim_set_cap(w, &p->config->lists[0], p->number, p->life);
    }
    p->life++;
    proxy_start(&w->base, &p->base, p->config, w->p.cache_bytes, w->p.index_checks,
                rng_next(&w->rng));
    if (w->p.moving) {
        p->base.asked = on_asked;
        p->base.answered = on_answered;
        proxy_move_lists(&w->base, &p->base, step_of(p));
    }
    TAILQ_INIT(&p->waiting);
    p->alarm.at_us = ALARM_OFF;
    for (unsigned s = 0; s < w->p.servers; s++) {
        connection_begin(p, s);
    }
    nodes_proxy_started(p);
    for (unsigned i = 0; i < w->p.clients; i++) {
        struct client *c = &p->clients[i];
        c->session = (struct list_session){.limit_bytes = w->p.session_limit};
        c->pending = 0;
        c->waits = c->alone = false;
        client_plan(c);
    }
    foreign_proxy_started(p);
}

void sim_proxy_settle(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    for (struct sim_call *call = w->all_calls; call != NULL && p->unsettled > 0;
         call = call->next) {
        if (call->proxy == p->number && call->settled_us == UINT64_MAX) {
            call->settled_us = p->last_arrival_us;
            p->unsettled--;
        }
    }
}

void sim_proxy_crash(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    trace(&w->base, "p%u crashes", p->number);
    proxy_stop(&p->base);
    sim_proxy_forget(p);
    for (unsigned s = 0; s < w->p.servers; s++) {
        drop_some(p, s, false);
        p->connections[s].up = false;
    }
    while (!TAILQ_EMPTY(&p->base.flights)) {
        struct flight *f = TAILQ_FIRST(&p->base.flights);
        TAILQ_REMOVE(&p->base.flights, f, link);
        message_release((struct message *)f);
    }
    for (struct sim_call *call = w->all_calls; call != NULL; call = call->next) {
        if (!call->done && call->proxy == p->number) {
            call->abandoned = true;
            /* What the engine had in its place is gone with it. */
            call->call.ops = call->call.ops != NULL ? call->ops : NULL;
            call->settled_us = p->last_arrival_us;
            w->abandoned++;
            w->calls_pending--;
            chain_clear(&call->call.answer);
            if (is_foreign_list((int)call->list)) {
                call->done = true;
            } else {
                oracle_done(&w->oracle, call, world_now(&w->base).wall_s);
            }
        }
    }
    sim_proxy_settle(p);
    p->paused_until_us = 0;
    p->pause_due = false;
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&w->rng, 100000), EVENT_BOOT, p, 0);
}

void proxy_wake_at(struct sim_proxy *p, uint64_t at_us)
{
    alarm_set(&p->alarm, &p->world->events, at_us, EVENT_WAKE, p, p->life);
}

void sim_proxy_turn(struct sim_proxy *p)
{
    struct sim_world *w = p->world;
    uint64_t next_us;
    struct list_call *call;
    bool more;
    do {
        next_us = engine_run(p->base.engine, sim_now(p));
        take_requests(p);
        more = false;
        while ((call = engine_take_done(p->base.engine)) != NULL) {
            more = call_done(w, call->owner) || more;
        }
    } while (more);
    if (p->unsettled > 0 && !engine_busy(p->base.engine)) {
        sim_proxy_settle(p);
    }
    proxy_wake_at(p, next_us <= w->base.now_us ? w->base.now_us + 1 : next_us);
}

void sim_proxy_submit(struct sim_proxy *p, struct sim_call *call)
{
    struct sim_world *w = p->world;
    w->calls_pending++;
    p->clients[call->session % CLIENTS_MAX].pending++;
    sim_add_call(w, call);
    oracle_submitted(&w->oracle, call, world_now(&w->base).wall_s);
    trace_call(w, call);
    (void)client_takes(&p->clients[call->session % CLIENTS_MAX], 0);
    call_set_deadline(w, call);
    engine_submit(p->base.engine, &call->call, sim_now(p));
    sim_proxy_turn(p);
}
