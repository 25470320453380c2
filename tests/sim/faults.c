/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong: connections, processes, servers, and what they store.
 */
#include <stdlib.h>

#include "list/format/intent.h"
#include "world.h"

struct victims {
    struct slice keys[STORE_BUCKETS];
    size_t count;
};

static void collect(void *arg, const struct item *item)
{
    struct victims *v = arg;
    if (v->count < STORE_BUCKETS) {
        v->keys[v->count++] = item_key(item);
    }
}

static bool is_head(struct slice key)
{
    return key.p[key.len - 1] == '#';
}

/* Any item of that server; SLICE_NONE when it has none. */
static struct slice any_key(struct sim_world *w, unsigned server)
{
    static struct victims victims;
    victims.count = 0;
    store_each(&w->base.stores[server], collect, &victims);
    return victims.count == 0 ? SLICE_NONE : victims.keys[rng_below(&w->rng, victims.count)];
}

static void evict(struct sim_world *w, unsigned server)
{
    struct slice key = any_key(w, server);
    /* Sublists far rather than heads. */
    if (key.len == 0 || (is_head(key) && rng_below(&w->rng, 8) != 0)) {
        return;
    }
    trace(&w->base, "s%u evicts %.*s", server, SLICE_ARGS(key));
    store_evict(&w->base.stores[server], key);
    oracle_look(&w->oracle, world_now(&w->base).wall_s);
}

/* As extstore does: an item on disk takes no appends until it is written anew. */
static void move_to_disk(struct sim_world *w, unsigned server, struct slice key)
{
    struct item *item =
        key.len == 0 ? NULL : store_find(&w->base.stores[server], key, world_now(&w->base).wall_s);
    enum format_part part;
    uint64_t number;
    bool counter = w->p.dialect == DIALECT_RING &&
                   format_list(&w->format, key, &part, &number) >= 0 && part == FORMAT_SEQ;
    /* Only what is large goes there: no counters. */
    if (item != NULL && !counter) {
        trace(&w->base, "s%u moves %.*s to disk", server, SLICE_ARGS(key));
        item->on_disk = true;
    }
}

void fault_disk_fills(struct sim_world *w)
{
    static struct victims victims;
    for (unsigned server = 0; server < w->p.servers; server++) {
        victims.count = 0;
        store_each(&w->base.stores[server], collect, &victims);
        for (size_t i = 0; i < victims.count; i++) {
            move_to_disk(w, server, victims.keys[i]);
        }
    }
}

/* Decisions on what is not there, which mean nothing, up to some dozens of bytes before the end of
 * what the server takes. */
static struct block *filling(struct sim_world *w, const struct store *store, size_t used)
{
    size_t left = (size_t)rng_below(&w->rng, 90);
    struct block *b = block_new(64);
    struct name name;
    while (store_takes(store, used + b->used + left)) {
        name_fresh(&name, &w->rng);
        decision_append(&b, &name, DECISION_ABORT);
    }
    return b;
}

bool fault_head_fills(struct sim_world *w, unsigned list)
{
    struct message m = {.list = (int)list, .purpose.kind = PURPOSE_COMPACT};
    struct list_request *r = &m.flight.request;
    struct slice key = slice_of(w->oracle.list[list].head_key);
    struct store *store = cluster_store(&w->base.cluster, key);
    const struct item *item = store_find(store, key, world_now(&w->base).wall_s);
    if (item == NULL || !slice_starts_with(item_value(item), SLICE_LIT("^1")) ||
        slice_starts_with(item_value(item), SLICE_LIT("^1 >"))) {
        return false;
    }
    struct block *value = filling(w, store, item_value(item).len);
    memcpy(r->key, key.p, key.len);
    request_set_key(r, key.len);
    r->be.verb = BE_APPEND;
    r->be.value = slice_make(value->data, value->used);
    m.flight.server = (unsigned)(store - w->base.stores);
    message_before(w, &m);
    flight_execute(&w->base, &m.flight);
    trace(&w->base, "s%u has %.*s filled with %u bytes: %s", m.flight.server, SLICE_ARGS(key),
          (unsigned)value->used, be_status_name(m.flight.reply.status));
    message_executed(w, &m);
    block_unref(&value);
    return m.flight.reply.status == BE_STORED;
}

static void restart(struct sim_world *w, unsigned server)
{
    struct store *store = &w->base.stores[server];
    uint64_t last_cas = store->last_cas;
    trace(&w->base, "s%u restarts", server);
    store_restart(store);
    if (rng_below(&w->rng, 2) == 0) {
        /* Other keys have been written meanwhile: a number that a proxy has read comes again. */
        uint64_t back = 1 + rng_below(&w->rng, 1ULL << rng_below(&w->rng, 7));
        store->last_cas = last_cas < back ? 0 : last_cas - back;
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        if (w->proxies[i].base.engine != NULL) {
            connection_break(&w->proxies[i], server, false);
        }
    }
    oracle_look(&w->oracle, world_now(&w->base).wall_s);
}

/* A client flushes the server: its CAS numbers go on, its clock items are gone as well. */
static void flush(struct sim_world *w, unsigned server)
{
    trace(&w->base, "s%u is flushed", server);
    store_clear(&w->base.stores[server]);
    oracle_look(&w->oracle, world_now(&w->base).wall_s);
}

/* A server is gone for good, and all proxies get the file that says so: before the first one works
 * with it, those with the old one refuse lists. What these have sent to others may still arrive. */
static void lose_for_good(struct sim_world *w)
{
    unsigned server = (unsigned)(w->base.cluster.leaving - w->base.stores);
    trace(&w->base, "s%u is gone for good", server);
    store_restart(&w->base.stores[server]);
    for (unsigned i = 0; i < w->p.proxies; i++) {
        if (w->proxies[i].base.engine != NULL) {
            connection_break(&w->proxies[i], server, false);
            sim_proxy_crash(&w->proxies[i]);
        }
    }
    w->base.cluster.left = w->oracle.cluster.left = true;
    oracle_look(&w->oracle, world_now(&w->base).wall_s);
}

static void run_short(struct sim_world *w, unsigned server)
{
    struct store *store = &w->base.stores[server];
    uint64_t n = rng_below(&w->rng, 5);
    if (n < 2) {
        trace(&w->base, "s%u out of memory", server);
        store->out_of_memory = true;
    } else if (n == 2) {
        store->small_max = 128 + rng_below(&w->rng, 1024);
        trace(&w->base, "s%u takes no more than %llu bytes", server,
              (unsigned long long)store->small_max);
    } else {
        trace(&w->base, "s%u refuses now and then", server);
        store->refusing = true;
    }
    events_plan(&w->events, w->base.now_us + 1 + rng_below(&w->rng, 20000), EVENT_PLENTY, w,
                server);
}

static void stall(struct sim_world *w, unsigned server)
{
    uint64_t until_us = w->base.now_us + 1 + rng_below(&w->rng, 4 * w->p.deadline_us);
    trace(&w->base, "s%u stalls until %.6f", server, (double)until_us / 1e6);
    w->stalled_until_us[server] = until_us;
}

/* Is a list marked, and its copy no head yet? Whether it outlives the loss of its mark is open: the
 * next one who looks, or the mover, decides. Worlds know one truth only, so such a loss is left to
 * docs/model/servers. */
static bool any_half_moved(const struct sim_world *w)
{
    for (unsigned list = 0; w->p.moving && list < w->p.lists; list++) {
        struct slice key = slice_of(w->oracle.list[list].head_key);
        const struct item *head = cluster_head(&w->base.cluster, key, world_now(&w->base).wall_s);
        if (head != NULL && slice_starts_with(item_value(head), SLICE_LIT("^1 >"))) {
            return true;
        }
    }
    return false;
}

/* Will that be, or lead to, the making of a list on its old server, though it has moved since?
 * Where the mark were lost, the old server would have another head, which hides the one that has
 * moved. */
static bool makes_behind_mark(const struct sim_world *w, const struct flight *f)
{
    struct slice key = flight_key(f);
    enum be_verb verb = f->request.be.verb;
    bool makes = f->executed ? verb == BE_GET && f->reply.status == BE_MISS : verb == BE_ADD;
    if (!makes || key.len == 0 || key.p[key.len - 1] != '#') {
        return false;
    }
    struct store *old = cluster_place(&w->base.cluster, key, false);
    return store_find(old, key, 0) != NULL && cluster_store(&w->base.cluster, key) != old;
}

static bool any_makes_behind_mark(const struct sim_world *w)
{
    for (unsigned i = 0; w->p.moving && i < w->p.proxies; i++) {
        const struct flight *f;
        TAILQ_FOREACH(f, &w->proxies[i].base.flights, link)
        {
            if (makes_behind_mark(w, f)) {
                return true;
            }
        }
    }
    return false;
}

static void harm_store(struct sim_world *w, enum fault fault, unsigned server)
{
    bool loses = fault == FAULT_EVICTION || fault == FAULT_RESTART;
    if (loses && (any_half_moved(w) || any_makes_behind_mark(w))) {
        return;
    }
    if (fault == FAULT_RESTART && w->p.dead && !w->base.cluster.left &&
        rng_below(&w->rng, 4) == 0) {
        lose_for_good(w);
    } else if (fault == FAULT_EVICTION) {
        evict(w, server);
    } else if (fault == FAULT_EXPIRY) {
        lives_touch(w, server, any_key(w, server));
    } else if (fault == FAULT_RESTART && w->p.touches > 0 && rng_below(&w->rng, 2) == 0) {
        flush(w, server);
    } else if (fault == FAULT_RESTART) {
        restart(w, server);
    } else if (fault == FAULT_DISK) {
        move_to_disk(w, server, any_key(w, server));
    } else if (fault == FAULT_FULL) {
        (void)fault_head_fills(w, (unsigned)rng_below(&w->rng, w->p.lists));
    } else if (fault == FAULT_STALL) {
        stall(w, server);
    } else if (fault == FAULT_FAILOVER) {
        nodes_fail_over(w, server);
    } else if (fault == FAULT_MOVE) {
        nodes_move(w, server);
    } else {
        run_short(w, server);
    }
}

static void harm_proxy(struct sim_world *w, enum fault fault, struct sim_proxy *p, unsigned server)
{
    if (p->base.engine == NULL) {
        return;
    }
    if (fault == FAULT_LOSS) {
        connection_break(p, server, true);
    } else if (fault == FAULT_CRASH) {
        sim_proxy_crash(p);
    } else if (p->paused_until_us <= w->base.now_us) {
        /* Some wait for a moment when it matters. */
        p->pause_due = rng_below(&w->rng, 2) == 0;
        if (!p->pause_due) {
            sim_proxy_pause(p);
        }
    }
}

void fault_happen(struct sim_world *w)
{
    const struct params *q = &w->p;
    unsigned sum = 0;
    if (w->quiet) {
        return;
    }
    for (unsigned f = 0; f < FAULT_COUNT; f++) {
        sum += q->faults[f];
    }
    struct sim_proxy *p = &w->proxies[rng_below(&w->rng, q->proxies)];
    unsigned server = (unsigned)rng_below(&w->rng, q->servers);
    unsigned n = (unsigned)rng_below(&w->rng, sum);
    unsigned fault = 0;
    while (n >= q->faults[fault]) {
        n -= q->faults[fault++];
    }
    uint64_t next_us = w->base.now_us + 1 + rng_below(&w->rng, 2 * q->fault_us);
    w->faults_made++;
    if (ranges_have(&q->without_faults, w->faults_made)) {
        /* Left out, to find out whether it matters. */
    } else if (fault < FAULT_LOSS) {
        harm_store(w, fault, server);
    } else {
        harm_proxy(w, fault, p, server);
    }
    events_plan(&w->events, next_us, EVENT_FAULT, w, 0);
}
