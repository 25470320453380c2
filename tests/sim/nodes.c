/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"

#include <stdlib.h>

#include "rollback.h"
#include "world.h"

/* Pauses before a request is sent again, and for how long: as src/pool/couchbase/cluster.c. */
static const uint64_t pauses_us[] = {1000, 10000, 50000, 100000, 500000, 1000000};
#define PAUSES (sizeof pauses_us / sizeof pauses_us[0])
#define POOL_TIMEOUT_US 1000000
/* For how long a vBucket that moves takes nothing. */
#define MOVE_US_MAX 20000

void nodes_start(struct sim_world *w)
{
    struct nodes *n = &w->nodes;
    rng_init_seed(&n->rng, w->p.seed * 334214467);
    TAILQ_INIT(&n->services);
    for (unsigned s = 0; s < w->p.servers; s++) {
        journal_create(&w->base.stores[s], rollback_forget);
        w->base.stores[s].caps.rolls_back = w->p.couchbase == COUCHBASE_BLIND;
    }
}

static void service_end(struct nodes *n, struct service *s)
{
    TAILQ_REMOVE(&n->services, s, link);
    free(s);
}

void nodes_proxy_started(struct sim_proxy *p)
{
    for (unsigned s = 0; s < SERVERS_MAX; s++) {
        for (unsigned vb = 0; vb < STORE_VBUCKETS; vb++) {
            struct hold *h = &p->holds[s][vb];
            TAILQ_INIT(&h->back);
            TAILQ_INIT(&h->fresh);
            h->in_flight = 0;
        }
    }
}

/* ---- the pool of a proxy ---- */

static struct hold *hold_of(const struct message *m)
{
    return &m->proxy->holds[m->flight.server][m->vbucket];
}

static bool is_held(const struct hold *h)
{
    return !TAILQ_EMPTY(&h->back) || !TAILQ_EMPTY(&h->fresh);
}

static void plan_release(struct sim_world *w, const struct message *m, uint64_t at_us)
{
    struct sim_proxy *p = m->proxy;
    uint64_t which = (p->life << 8 | m->flight.server) << 8 | m->vbucket;
    events_plan(&w->events, at_us > w->base.now_us ? at_us : w->base.now_us + 1, EVENT_RELEASE, p,
                which);
}

/* It is sent no more. Nothing was done. */
static void end(struct sim_world *w, struct message *m)
{
    m->is_ended = true;
    m->connected = false;
    m->flight.reply = (struct be_reply){
        .status = BE_REFUSED, .text = "pool world: temporary failure (0x86), nothing done"};
    m->holds++;
    events_plan(&w->events, w->base.now_us + 1, EVENT_DELIVER, m, 0);
}

static bool is_over(const struct sim_world *w, const struct message *m)
{
    return w->base.now_us >= m->first_us + POOL_TIMEOUT_US;
}

void nodes_submit(struct sim_world *w, struct message *m)
{
    m->vbucket = store_vbucket(flight_key(&m->flight));
    m->first_us = w->base.now_us;
    m->order = ++w->nodes.order;
    m->flight.request.be.durable |= w->p.couchbase == COUCHBASE_DURABLE;
    struct hold *h = hold_of(m);
    if (is_held(h)) {
        TAILQ_INSERT_TAIL(&h->fresh, m, queued);
    } else {
        h->in_flight++;
        message_send(w, m);
    }
}

static bool is_same_key(const struct message *a, const struct message *b)
{
    return slice_equal(flight_key(&a->flight), flight_key(&b->flight));
}

/* Does an older change of the same key wait? Then what a read has found came too early. */
static bool came_too_early(const struct hold *h, const struct message *m)
{
    const struct message *old;
    TAILQ_FOREACH(old, &h->back, queued)
    {
        if (flight_is_change(&old->flight) && old->order < m->order && is_same_key(old, m)) {
            return !flight_is_change(&m->flight);
        }
    }
    return false;
}

/* A request has its answer: older ones of the same key that wait would come too late. */
static void end_overtaken(struct sim_world *w, struct hold *h, const struct message *m)
{
    bool changes = flight_is_change(&m->flight);
    struct message *old, *next;
    for (old = TAILQ_FIRST(&h->back); old != NULL; old = next) {
        next = TAILQ_NEXT(old, queued);
        if (old->order < m->order && (changes || flight_is_change(&old->flight)) &&
            is_same_key(old, m)) {
            TAILQ_REMOVE(&h->back, old, queued);
            end(w, old);
        }
    }
}

static void hold_back(struct sim_world *w, struct hold *h, struct message *m)
{
    if (TAILQ_EMPTY(&h->back)) {
        unsigned n = m->attempts < PAUSES ? m->attempts : PAUSES - 1;
        h->due_us = w->base.now_us + pauses_us[n];
    }
    m->attempts++;
    m->refused = m->is_served = m->was_held = m->connected = m->flight.executed = false;
    block_unref(&m->flight.reply.block);
    m->flight.reply = (struct be_reply){0};
    TAILQ_INSERT_TAIL(&h->back, m, queued);
}

bool nodes_keep(struct sim_world *w, struct message *m)
{
    struct hold *h = hold_of(m);
    enum be_status status = m->flight.reply.status;
    bool passes = m->refused || status == BE_NO_MEMORY || came_too_early(h, m);
    if (m->is_ended) {
        return false;
    }
    h->in_flight--;
    passes = passes && status != BE_LOST && !is_over(w, m);
    if (passes) {
        hold_back(w, h, m);
    } else {
        end_overtaken(w, h, m);
    }
    if (h->in_flight == 0 && is_held(h)) {
        plan_release(w, m, h->due_us);
    }
    return passes;
}

void nodes_release(struct sim_proxy *p, uint64_t which)
{
    struct sim_world *w = p->world;
    struct hold *h = &p->holds[which >> 8 & 0xff][which & 0xff];
    struct messages all = TAILQ_HEAD_INITIALIZER(all);
    struct message *m;
    if (h->in_flight > 0 || h->due_us > w->base.now_us) {
        return; /* what is under way will plan it again, or another one is planned */
    }
    TAILQ_CONCAT(&all, &h->back, queued);
    TAILQ_CONCAT(&all, &h->fresh, queued);
    while ((m = TAILQ_FIRST(&all)) != NULL) {
        TAILQ_REMOVE(&all, m, queued);
        if (is_over(w, m)) {
            end(w, m);
        } else {
            h->in_flight++;
            message_send(w, m);
        }
    }
}

/* ---- a node ---- */

static struct service *service_of(const struct nodes *n, const struct message *m)
{
    struct service *s;
    TAILQ_FOREACH(s, &n->services, link)
    {
        if (s->epoch == m->flight.epoch) {
            return s;
        }
    }
    return NULL;
}

bool nodes_at_work(const struct sim_world *w, const struct message *m)
{
    const struct service *s = service_of(&w->nodes, m);
    return s != NULL && s->at_work == m;
}

static bool is_durable_change(const struct message *m)
{
    return flight_is_change(&m->flight) && m->flight.request.be.durable;
}

/* Is a durable change of that key under way? */
static bool collides(const struct nodes *n, const struct message *m)
{
    const struct service *s;
    TAILQ_FOREACH(s, &n->services, link)
    {
        const struct message *other = s->at_work;
        if (other != NULL && other != m && is_durable_change(other) &&
            other->flight.server == m->flight.server &&
            slice_equal(flight_key(&other->flight), flight_key(&m->flight))) {
            return true;
        }
    }
    return false;
}

static bool is_refused(const struct sim_world *w, const struct message *m)
{
    const struct nodes *n = &w->nodes;
    return n->moved_us[m->flight.server][m->vbucket] > w->base.now_us ||
           (flight_is_change(&m->flight) && collides(n, m));
}

static void serve(struct sim_world *w, struct message *m)
{
    struct nodes *n = &w->nodes;
    struct service *s = service_of(n, m);
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        CHECK(s != NULL);
        s->epoch = m->flight.epoch;
        TAILQ_INIT(&s->waiting);
        TAILQ_INSERT_TAIL(&n->services, s, link);
    }
    s->at_work = m;
    uint64_t at_us = w->base.now_us + 1 + rng_below(&n->rng, 4 * w->p.delay_us);
    sim_arrives_late(m->proxy, at_us);
    events_plan(&w->events, at_us, EVENT_SERVED, m, 0);
}

bool nodes_waits(struct sim_world *w, struct message *m)
{
    struct service *s = service_of(&w->nodes, m);
    if (m->is_served || s == NULL || s->at_work == NULL) {
        return false;
    }
    TAILQ_INSERT_TAIL(&s->waiting, m, queued);
    return true;
}

bool nodes_arrive(struct sim_world *w, struct message *m)
{
    struct nodes *n = &w->nodes;
    if (m->is_served) {
        return false;
    }
    if (is_refused(w, m)) {
        trace(&w->base, "p%u s%u refuses %.*s for now", m->proxy->number, m->flight.server,
              SLICE_ARGS(flight_key(&m->flight)));
        m->refused = true;
        m->flight.reply =
            (struct be_reply){.status = BE_REFUSED, .text = "backend s: temporary failure (0x86)"};
        return false;
    }
    bool slow_read = m->flight.request.be.verb == BE_GET && rng_below(&n->rng, 8) == 0;
    if (slow_read) {
        message_execute(w, m);
    }
    if (slow_read || is_durable_change(m)) {
        serve(w, m);
        return true;
    }
    return false;
}

/* The second part of a BE_GET: the time to live is that of what is there now. */
static void read_time(struct sim_world *w, struct message *m)
{
    const struct item *item = store_find(&w->base.stores[m->flight.server], flight_key(&m->flight),
                                         world_now(&w->base).wall_s);
    if (m->flight.reply.status == BE_HIT && item != NULL) {
        m->flight.reply.expires_s = (uint32_t)item->expires_s;
        m->flight.reply.ttl_s = -1;
    }
}

void nodes_served(struct sim_world *w, struct message *m)
{
    struct nodes *n = &w->nodes;
    struct service *s = service_of(n, m);
    m->is_served = true;
    s->at_work = NULL;
    if (m->flight.executed) {
        read_time(w, m);
    }
    message_arrive(w, m);
    while (s->at_work == NULL && (m = TAILQ_FIRST(&s->waiting)) != NULL) {
        TAILQ_REMOVE(&s->waiting, m, queued);
        message_arrive(w, m);
    }
    if (s->at_work == NULL) {
        service_end(n, s);
    }
}

/* ---- what a failover may lose ---- */

void *nodes_before(struct sim_world *w, struct message *m)
{
    bool head = m->list >= 0 && !is_foreign_list(m->list) &&
                slice_equal(flight_key(&m->flight), slice_of(w->oracle.list[m->list].head_key));
    if (w->p.couchbase != COUCHBASE_BLIND || !head || !flight_is_change(&m->flight) ||
        m->flight.request.be.durable) {
        return NULL;
    }
    return rollback_save(&w->oracle, (unsigned)m->list, &m->purpose);
}

void nodes_executed(struct sim_world *w, struct message *m, void *saved)
{
    if (saved == NULL) {
        return;
    }
    if (flight_has_changed(&m->flight)) {
        journal_note(&w->base.stores[m->flight.server], flight_key(&m->flight), saved);
    } else {
        rollback_forget(saved);
    }
}

/* ---- faults ---- */

static void undone(void *arg, struct slice key, void *note)
{
    struct sim_world *w = arg;
    trace(&w->base, "a write to %.*s is lost", SLICE_ARGS(key));
    if (note != NULL) {
        rollback_lose(&w->oracle, note);
    }
}

void nodes_fail_over(struct sim_world *w, unsigned server)
{
    struct nodes *n = &w->nodes;
    struct store *store = &w->base.stores[server];
    struct service *s;
    trace(&w->base, "s%u fails, a replica takes over", server);
    TAILQ_FOREACH(s, &n->services, link)
    {
        struct message *m = s->at_work;
        if (m != NULL && m->flight.server == server && is_durable_change(m) &&
            m->incarnation == store->incarnation && rng_below(&n->rng, 2) == 0) {
            message_execute(w, m);
        }
    }
    journal_fail_over(store, &n->rng, rng_below(&n->rng, 2) == 0, undone, w);
    for (unsigned i = 0; i < w->p.proxies; i++) {
        if (w->proxies[i].base.engine != NULL) {
            connection_break(&w->proxies[i], server, false);
        }
    }
    rollback_end(&w->oracle, world_now(&w->base).wall_s);
    if (w->oracle.outside == NULL) {
        oracle_look(&w->oracle, world_now(&w->base).wall_s);
    }
}

void nodes_move(struct sim_world *w, unsigned server)
{
    struct nodes *n = &w->nodes;
    unsigned vb = (unsigned)rng_below(&n->rng, STORE_VBUCKETS);
    n->moved_us[server][vb] = w->base.now_us + 1 + rng_below(&n->rng, MOVE_US_MAX);
    trace(&w->base, "s%u: vBucket %u moves until %.6f", server, vb,
          (double)n->moved_us[server][vb] / 1e6);
}

/* ---- the mood ---- */

void nodes_mix(struct params *p)
{
    struct rng rng;
    rng_init_seed(&rng, p->seed * 334214459 + p->dialect);
    bool judged = params_linearizable(p);
    bool one_item = p->dialect != DIALECT_PAIRED; /* rollback.c takes changes of one item back */
    p->couchbase =
        judged && one_item && rng_below(&rng, 3) > 0 ? COUCHBASE_BLIND : COUCHBASE_DURABLE;
    p->spread = p->dialect == DIALECT_NATIVE;
    p->touch_interval_s = 0;
    p->clock_skew_s = 0; /* a cluster's clocks are kept together, and the proxies' with them */
    p->wrong_clocks = false;
    p->max_stale_ms = 0; /* a version that a failover has taken back was current for no time */
    /* A touch makes another version of a document: also of one that must not change by itself. */
    p->foreign = p->faults[FAULT_EXPIRY] > 0 ? 0 : p->foreign;
    p->history = p->history && p->couchbase == COUCHBASE_DURABLE;
    /* Nothing is evicted, and nodes that restart have what they had. */
    bool loses = p->faults[FAULT_RESTART] + p->faults[FAULT_EVICTION] > 0;
    p->faults[FAULT_RESTART] = p->faults[FAULT_EVICTION] = p->faults[FAULT_DISK] = 0;
    if (p->fault_us > 0) {
        p->faults[FAULT_FAILOVER] = loses ? 4 : 1 + (unsigned)rng_below(&rng, 2);
        p->faults[FAULT_MOVE] = 2;
    }
}
