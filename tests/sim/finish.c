/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The quiet end: clients and faults are over, every list must compact, and what is stored must be
 * what the lists need, and no more.
 */
#include <stdlib.h>

#include "list/core/expiry.h"
#include "world.h"

struct leftovers {
    struct sim_world *w;
    unsigned server;
    struct slice found;
};

/* May the proxy that removed a head have died, not have reached the server of a sublist, or have
 * had too little time, before it had deleted what the head named? Or one that wrote when no head
 * named that any more, before it had found that out? */
static bool is_left_to_sweep(struct sim_world *w, struct slice list, const struct item *item)
{
    const unsigned *faults = w->p.faults;
    unsigned fatal = faults[FAULT_SHORTAGE] + faults[FAULT_STALL] + faults[FAULT_FAILOVER] +
                     faults[FAULT_MOVE] + faults[FAULT_LOSS] + faults[FAULT_CRASH];
    if (w->p.moving) {
        /* Copies of sublists that were merged away before their list moved; sublists on its old
         * server, of a mover that has died, or of a list that was removed and made anew. */
        return true;
    }
    bool removed = w->p.refuse && model_removed_head_names(&w->base.cluster, list, item_key(item));
    return (fatal > 0 && (removed || item->is_late)) || (w->p.long_ms != 0 && removed);
}

static void check_named(void *arg, const struct item *item)
{
    struct leftovers *l = arg;
    struct slice key = item_key(item);
    const char *end = memchr(key.p, '#', key.len);
    bool over = item->expires_s != 0 && item->expires_s <= l->w->clocks_s[l->server];
    if (over || end == key.p + key.len - 1 || clock_key_is(key)) {
        return;
    }
    struct slice list = slice_make(key.p, (size_t)(end - key.p));
    if (!model_head_names(&l->w->base.cluster, list, world_now(&l->w->base).wall_s, key) &&
        !is_left_to_sweep(l->w, list, item)) {
        sim_violation("%.*s is left over: no head names it", SLICE_ARGS(key));
    }
}

static struct sim_call *ask(struct sim_world *w, struct sim_proxy *p, enum list_verb verb,
                            unsigned list)
{
    struct sim_call *call = call_create(w, &p->clients[0], verb, list);
    call->call.form = LIST_FORM_JOINED;
    call_choose_items(w, &w->rng, call);
    sim_proxy_submit(p, call);
    sim_rest(w, "at the end");
    return call;
}

void sim_let_pass(struct sim_world *w, uint64_t us)
{
    uint64_t until_us = w->base.now_us + us;
    events_plan(&w->events, until_us, EVENT_PLENTY, w, 0);
    while (w->base.now_us < until_us && sim_step(w)) {
    }
}

/* A connection that broke before may be noticed only now: a few tries are granted, and time to
 * connect anew. */
static struct sim_call *ask_again(struct sim_world *w, struct sim_proxy *p, enum list_verb verb,
                                  unsigned list)
{
    struct sim_call *call = NULL;
    for (int tries = 0; tries < 3; tries++) {
        call = ask(w, p, verb, list);
        if (call->call.status == LIST_OK || call->call.status == LIST_MISSING) {
            break;
        }
        sim_let_pass(w, 1000000);
    }
    return call;
}

/* What a proxy with more memory has compacted may be too large for another. */
static struct sim_proxy *choose_compactor(struct sim_world *w)
{
    unsigned first = (unsigned)rng_below(&w->rng, w->p.proxies);
    struct sim_proxy *best = &w->proxies[first];
    for (unsigned i = 1; i < w->p.proxies; i++) {
        struct sim_proxy *p = &w->proxies[(first + i) % w->p.proxies];
        if (p->config->lists[0].fold_memory_bytes > best->config->lists[0].fold_memory_bytes) {
            best = p;
        }
    }
    return best;
}

/* ---- healing ---- */

/* Those of one list that one proxy has in its cache. */
struct sublists {
    struct slice head_key;
    struct cache *cache;
    struct slice keys[STORE_BUCKETS];
    unsigned servers[STORE_BUCKETS];
    unsigned server;
    size_t count;
};

static void collect_sublist(void *arg, const struct item *item)
{
    struct sublists *s = arg;
    struct slice key = item_key(item);
    if (s->count < STORE_BUCKETS && slice_starts_with(key, s->head_key) &&
        cache_has(s->cache, key)) {
        s->servers[s->count] = s->server;
        s->keys[s->count++] = key;
    }
}

/* Evicts any of them. */
static void lose_sublist(struct sim_world *w, unsigned list, struct cache *cache)
{
    static struct sublists s;
    s.head_key = slice_of(w->oracle.list[list].head_key);
    s.cache = cache;
    s.count = 0;
    for (s.server = 0; s.server < w->p.servers; s.server++) {
        store_each(&w->base.stores[s.server], collect_sublist, &s);
    }
    if (s.count > 0) {
        size_t n = rng_below(&w->rng, s.count);
        trace(&w->base, "s%u evicts %.*s", s.servers[n], SLICE_ARGS(s.keys[n]));
        store_evict(&w->base.stores[s.servers[n]], s.keys[n]);
        oracle_look(&w->oracle, world_now(&w->base).wall_s);
    }
}

/* A list outlives the loss of a sublist when a proxy reads it that has the sublist in its cache. */
static void check_healing(struct sim_world *w, unsigned list)
{
    enum { TRIES = 4 };
    struct sim_proxy *p = &w->proxies[rng_below(&w->rng, w->p.proxies)];
    const struct model_list *l = &w->oracle.list[list];
    if (l->damaged || l->cleared || ask_again(w, p, LIST_GET, list)->call.status != LIST_OK) {
        return;
    }
    lose_sublist(w, list, p->base.cache);
    for (int tries = 0; l->damaged; tries++) {
        if (tries == TRIES) {
            sim_violation("%s: p%u has the lost sublist, but has not healed the list", l->key,
                          p->number);
        }
        sim_let_pass(w, (w->p.touch_interval_s + 1) * 1000000ULL);
        (void)ask(w, p, LIST_GET, list);
    }
}

/* ---- renewal ---- */

/* The server that the list is on; lists may move until the run has ended. */
static unsigned server_of(const struct sim_world *w, struct slice head_key)
{
    return (unsigned)(cluster_store(&w->base.cluster, head_key) - w->base.stores);
}

/* Half of its time is over when a list is read: soon it has nearly all of it again. */
static void check_renewal(struct sim_world *w, unsigned list)
{
    enum { LONG_S = 1000, SLACK_S = 10 };
    struct slice key = slice_of(w->oracle.list[list].head_key);
    unsigned server = server_of(w, key);
    struct item *item = store_find(&w->base.stores[server], key, world_now(&w->base).wall_s);
    if (w->p.ttl_renew != TTL_RENEW_READ || w->p.ttl_s < LONG_S || item == NULL ||
        item->expires_s == 0) {
        return;
    }
    if (w->p.ttl_s > 4 * DAY_S && w->p.touches > 0 && list > 0) {
        return; /* a second leap would be beyond what an ltouch has given it: lives_choose() */
    }
    if (w->p.ttl_s > 4 * DAY_S) {
        /* So late that the sublists would end before it when it is renewed. */
        sim_let_pass(w, (uint64_t)w->p.ttl_s / 7 * 1000000);
    } else {
        item->expires_s = w->clocks_s[server] + w->p.ttl_s / 2;
        oracle_note_life(&w->oracle, list, world_now(&w->base).wall_s);
    }
    if (w->p.long_ms > 0) {
        /* The merges that it takes need longer than compactions have which no client waits for. */
        (void)ask_again(w, choose_compactor(w), LIST_COMPACT, list);
    }
    if (w->oracle.list[list].damaged) {
        return; /* it lives as long as what is left of it, or is dropped */
    }
    sim_let_pass(w, (uint64_t)w->p.max_stale_ms * 1000); /* so that it is not answered from memory
                                                          */
    (void)ask_again(w, &w->proxies[rng_below(&w->rng, w->p.proxies)], LIST_LEN, list);
    sim_let_pass(w, 1000000);
    sim_rest(w, "after a renewal");
    server = server_of(w, key);
    item = store_find(&w->base.stores[server], key, world_now(&w->base).wall_s);
    if (item == NULL && (w->p.timed || oracle_now(&w->oracle, list)->items.count == 0)) {
        return; /* it was empty, or its items were over: a proxy that looks at it removes it */
    }
    int64_t left_s = item == NULL ? 0 : item->expires_s - w->clocks_s[server];
    if (left_s < (int64_t)w->p.ttl_s / 8 * 7 - SLACK_S) {
        sim_violation("%s: %lld s are left after a read, of %u", w->oracle.list[list].key,
                      (long long)left_s, w->p.ttl_s);
    }
}

/* ---- missing lists ---- */

/* Its head goes by itself, or with the next look: no lease is under way any more. */
static void check_absence(struct sim_world *w, unsigned list)
{
    const char *key = w->oracle.list[list].key;
    struct ids items = {0};
    struct stored stored;
    (void)ask_again(w, &w->proxies[rng_below(&w->rng, w->p.proxies)], LIST_LEN, list);
    sim_let_pass(w, 1000000);
    sim_rest(w, "after the last look");
    model_decode(&w->base.cluster, slice_of(key), world_now(&w->base).wall_s, &items, &stored);
    if (stored.exists && stored.absent && !sim_loses(w)) {
        sim_violation("%s: it is missing, but its head is still there", key);
    }
    ids_fini(&items);
}

/* ---- dialects ---- */

static void check_part(void *arg, const struct item *item)
{
    struct leftovers *l = arg;
    struct slice key = item_key(item);
    enum format_part part;
    uint64_t number;
    if (!clock_key_is(key) && format_list(&l->w->format, key, &part, &number) < 0) {
        sim_violation("%.*s is left over: no list has such a part", SLICE_ARGS(key));
    }
}

/* Nothing goes on any more: what is stored is what every proxy reads. */
static void check_agreement(struct sim_world *w, unsigned list, struct sim_call *call)
{
    struct decoded *content = &w->oracle.content;
    format_decode(&w->format, list, world_now(&w->base).wall_s, content);
    bool same = ids_equal(&content->items, &call->answer);
    if (!same && w->p.dialect != DIALECT_SUBLISTS && content->parts > 1) {
        /* The order of two logs that could not be folded is not defined. */
        same = content->items.count == call->answer.count;
        for (uint32_t i = 0; same && i < content->items.count; i++) {
            same = ids_has(&call->answer, content->items.ids[i]);
        }
    }
    if (!same) {
        outside_wrong(w->oracle.outside, list, call, &content->items,
                      "or others: the answer differs from what is stored", 0);
    }
}

/* What is left over, once a quiet list is compact. */
static void check_compact(struct sim_world *w, unsigned list)
{
    struct decoded *content = &w->oracle.content;
    int64_t now_s = world_now(&w->base).wall_s;
    format_decode(&w->format, list, now_s, content);
    bool logs = w->p.dialect == DIALECT_FLIP || w->p.dialect == DIALECT_MARKER;
    if (logs && content->parts > 1) {
        sim_violation("L%u: both logs are there after lcompact", list);
    }
    if (w->p.dialect != DIALECT_RING &&
        (content->adds.count != content->items.count || content->deletes.count != 0)) {
        sim_violation("L%u: %u additions and %u deletions for %u items after lcompact", list,
                      content->adds.count, content->deletes.count, content->items.count);
    }
}

static void finish_from_outside(struct sim_world *w, unsigned list)
{
    w->oracle.outside->quiet = true;
    struct sim_proxy *p = &w->proxies[rng_below(&w->rng, w->p.proxies)];
    /* The first may have finished what another proxy had begun long ago. */
    struct sim_call *call = ask_again(w, p, LIST_COMPACT, list);
    call = call->call.status == LIST_OK ? ask_again(w, p, LIST_COMPACT, list) : call;
    bool no_room = strstr(call->call.error, "no room") != NULL;
    if (call->call.status == LIST_SERVER_ERROR && !no_room) {
        sim_violation("lcompact of a quiet list: %s", call->call.error);
    }
    if (!no_room) {
        check_compact(w, list);
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        call = ask_again(w, &w->proxies[i], LIST_GET, list);
        bool too_long = strstr(call->call.error, "max_answer_bytes") != NULL;
        if (call->call.status == LIST_SERVER_ERROR && !too_long) {
            sim_violation("lget of a quiet list: %s", call->call.error);
        } else if (!too_long) {
            check_agreement(w, list, call);
        }
    }
}

static void finish_dialect(struct sim_world *w)
{
    struct leftovers leftovers = {.w = w};
    for (unsigned s = 0; s < w->p.servers; s++) {
        store_each(&w->base.stores[s], check_part, &leftovers);
    }
}

/* Heads that fill up take changes again, whatever comes first. */
static void check_change(struct sim_world *w, unsigned list)
{
    static const enum list_verb verbs[] = {LIST_ADD, LIST_DEL, LIST_SET, LIST_DROP};
    if (w->p.faults[FAULT_FULL] == 0 || rng_below(&w->rng, 2) == 0 || !fault_head_fills(w, list)) {
        return;
    }
    struct sim_proxy *p = &w->proxies[rng_below(&w->rng, w->p.proxies)];
    enum list_verb verb = verbs[rng_below(&w->rng, w->p.only_adds ? 1 : 4)];
    struct sim_call *call = ask_again(w, p, verb, list);
    if (call->call.status == LIST_SERVER_ERROR && !oracle_was_damaged(&w->oracle, call)) {
        sim_violation("a change of a quiet list: %s", call->call.error);
    }
}

static void finish_list(struct sim_world *w, unsigned list)
{
    check_change(w, list);
    struct sim_call *call = ask_again(w, choose_compactor(w), LIST_COMPACT, list);
    bool damaged = oracle_was_damaged(&w->oracle, call); /* it may have ended since */
    bool full = w->p.dialect == DIALECT_PAIRED && strstr(call->call.error, "no room") != NULL;
    if (call->call.status == LIST_SERVER_ERROR && !damaged && !full) {
        sim_violation("lcompact of a quiet list: %s", call->call.error);
    }
    if (!damaged && !full) {
        oracle_final(&w->oracle, list, world_now(&w->base).wall_s, !sim_loses(w));
    }
    for (unsigned i = 0; i < w->p.proxies; i++) {
        call = ask_again(w, &w->proxies[i], LIST_GET, list);
        bool too_long = strstr(call->call.error, "max_answer_bytes") != NULL;
        if (call->call.status == LIST_SERVER_ERROR && !damaged && !too_long) {
            sim_violation("lget of a quiet list: %s", call->call.error);
        }
    }
}

/* Transactions whose proxies are dead: the first compaction of their primary finishes them, the
 * next one of each list has nothing of them left. */
static void finish_txs(struct sim_world *w)
{
    for (unsigned i = 0; w->p.txs > 0 && i < 2 * w->p.lists; i++) {
        (void)ask_again(w, choose_compactor(w), LIST_COMPACT, i % w->p.lists);
    }
}

static bool begins_with(struct store *store, struct slice key, int64_t now_s, const char *begin)
{
    const struct item *item = store_find(store, key, now_s);
    return item != NULL && slice_starts_with(item_value(item), slice_of(begin));
}

/* Each list goes to its new server, or says why not; then all may forget where it was. */
static void check_moved(struct sim_world *w, unsigned list)
{
    struct sim_call *call = ask_again(w, choose_compactor(w), LIST_MIGRATE, list);
    struct slice key = slice_of(w->oracle.list[list].head_key);
    int64_t now_s = world_now(&w->base).wall_s;
    if (call->call.status == LIST_SERVER_ERROR) {
        bool foreign = strstr(call->call.error, "no list that this release") != NULL;
        /* A compaction may be at work, which finds that out over and over. */
        bool damaged = w->oracle.list[list].damaged ||
                       strstr(call->call.error, "a sublist of it is missing") != NULL;
        if (!foreign && !(damaged && sim_loses(w))) {
            sim_violation("lmigrate of a quiet list: %s", call->call.error);
        }
        return;
    }
    if (begins_with(cluster_place(&w->base.cluster, key, false), key, now_s, "^1") ||
        begins_with(cluster_place(&w->base.cluster, key, true), key, now_s, "^1 >")) {
        sim_violation("lmigrate of %.*s is over, and it has not moved", SLICE_ARGS(key));
    }
}

void sim_finish(struct sim_world *w)
{
    /* Beyond this, announcements belong to dead proxies. */
    sim_let_pass(w, (w->p.grace_s + 2 + 2 * (uint64_t)w->p.clock_skew_s) * 1000000ULL);
    sim_rest(w, "after the grace period");
    foreign_finish(w);
    finish_txs(w);
    for (unsigned list = 0; list < w->p.lists; list++) {
        if (w->p.faults[FAULT_EVICTION] > 0 && w->p.touch_interval_s > 0) {
            check_healing(w, list);
        }
        check_renewal(w, list);
        if (w->p.faults[FAULT_DISK] > 0 && rng_below(&w->rng, 2) == 0) {
            /* What has not been written for long: it must become compact all the same. */
            fault_disk_fills(w);
        }
        if (w->oracle.outside != NULL) {
            finish_from_outside(w, list);
        } else {
            finish_list(w, list);
        }
    }
    if (w->p.dialect != DIALECT_NATIVE) {
        finish_dialect(w);
        return;
    }
    for (unsigned list = 0; w->p.moving && list < w->p.lists; list++) {
        check_moved(w, list);
    }
    /* Only what is not needed any more is forgotten by itself. */
    sim_let_pass(w, 2 * DAY_S * 1000000ULL);
    oracle_look(&w->oracle, world_now(&w->base).wall_s);
    for (unsigned list = 0; w->p.leases && list < w->p.lists; list++) {
        check_absence(w, list);
    }
    if (!sim_loses(w) && (!lives_end(&w->p) || lives_all_end(&w->p))) {
        struct leftovers leftovers = {.w = w};
        for (unsigned s = 0; s < w->p.servers; s++) {
            leftovers.server = s;
            store_each(&w->base.stores[s], check_named, &leftovers);
        }
    }
}
