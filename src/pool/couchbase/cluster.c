/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/couchbase/cluster.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "pool/couchbase/cluster_collection.h"
#include "pool/couchbase/cluster_waits.h"
#include "pool/locate/shard.h"
#include "proto/server/binary.h"

/* Pauses before a request is sent again, as Couchbase's own clients make them; the last one holds
 * for all that follow. */
static const uint16_t pauses_ms[] = {1, 10, 50, 100, 500, 1000};
/* The longest pause, give or take half of it, while another client's durable change of the key is
 * under way: a few times what such a change takes between nodes that are near. */
#define TURN_PAUSE_MAX_MS 5
/* The longest time that a node takes for a durable change. */
#define DURABILITY_MS_MAX 65534
#define PAUSES (sizeof pauses_ms / sizeof pauses_ms[0])

bool cluster_withdraw(struct exchange *x)
{
    if (x->failure == FAILURE_NONE) {
        x->failure = FAILURE_WITHDRAWN;
    }
    return true;
}

/* --- requests that wait --------------------------------------------------------------------------
 */

static struct exchange *first_of(const struct hold *hold)
{
    return TAILQ_EMPTY(&hold->back) ? TAILQ_FIRST(&hold->fresh) : TAILQ_FIRST(&hold->back);
}

static struct hold *hold_of(struct cluster *c, uint16_t vbucket)
{
    struct vbucket *vb = &c->vbuckets[vbucket];
    if (vb->hold == NULL) {
        vb->hold = calloc(1, sizeof *vb->hold);
        CHECK(vb->hold != NULL);
        vb->hold->vbucket = vbucket;
        TAILQ_INIT(&vb->hold->back);
        TAILQ_INIT(&vb->hold->fresh);
        TAILQ_INSERT_TAIL(&c->holds, vb->hold, link);
    }
    return vb->hold;
}

static void end_hold(struct cluster *c, struct hold *hold)
{
    c->vbuckets[hold->vbucket].hold = NULL;
    TAILQ_REMOVE(&c->holds, hold, link);
    free(hold);
}

static void end_held(struct cluster *c, struct hold *hold, enum exchange_failure failure)
{
    while (first_of(hold) != NULL) {
        struct exchange_list *list = TAILQ_EMPTY(&hold->back) ? &hold->fresh : &hold->back;
        cluster_end(c, cluster_take_waiting(c, list), failure);
    }
    end_hold(c, hold);
}

/* What is held for a newer map, if there is one. Of another number of vBuckets than the one before:
 * what is held was for the bucket as it was, and ends. */
static void heed_map(struct cluster *c)
{
    struct hold *hold;
    if (LIKELY(!c->map_is_new)) {
        return;
    }
    c->map_is_new = false;
    while (c->is_other_bucket && !TAILQ_EMPTY(&c->holds)) {
        end_held(c, TAILQ_FIRST(&c->holds), FAILURE_TIMEOUT);
    }
    c->is_other_bucket = false;
    TAILQ_FOREACH(hold, &c->holds, link)
    {
        if (hold->wants_map && hold->due_us > cluster_now_us(c)) {
            const struct node *owner = cluster_owner(c, hold->vbucket, false);
            bool helps = owner == NULL || &owner->server != hold->server;
            hold->due_us = helps ? cluster_now_us(c) : hold->due_us;
        }
    }
    cluster_set_timer(c, 0);
}

/* --- sending -------------------------------------------------------------------------------------
 */

static void send_to(struct cluster *c, struct node *node, struct exchange *x)
{
    c->vbuckets[x->op.vbucket].in_flight++;
    x->op.durability = cluster_durability(c, &x->op);
    x->op.without_time = node->no_times && x->op.time_optional;
    x->op.durability_ms = c->durability_ms;
    x->op.collection = c->collection.id;
    x->op.opaque = ++c->opaque;
    x->server = &node->server;
    x->failure = FAILURE_NONE;
    upstream_submit(connections_of_key(&node->server, x->op.key), x);
}

static RARE void refuse_for_collection(struct cluster *c, struct exchange *x)
{
    x->code = cluster_collection_code(c);
    cluster_collection_want(c, NULL);
    cluster_end_over(c, x);
}

static void route(struct cluster *c, struct exchange *x)
{
    heed_map(c);
    if (UNLIKELY(cluster_collection_is_missing(c))) {
        refuse_for_collection(c, x);
        return;
    }
    x->op.vbucket = shard_vbucket(x->op.key, c->map->vbucket_count);
    struct vbucket *vb = &c->vbuckets[x->op.vbucket];
    if (UNLIKELY(vb->hold != NULL)) {
        cluster_wait_or_end(c, &vb->hold->fresh, x);
        return;
    }
    struct node *node = cluster_owner(c, x->op.vbucket, false);
    if (LIKELY(node != NULL)) {
        send_to(c, node, x);
        return;
    }
    /* That may last until an operator comes: clients must not wait for it one by one. */
    cluster_end(c, x, FAILURE_NO_NODE);
    cluster_want_map(c);
}

/* Sends those whose turn has come. What is sent may end at once, and end the turn. */
static void send_next(struct cluster *c)
{
    struct exchange *x;
    while ((x = change_turns_next(c)) != NULL) {
        route(c, x);
    }
}

/* Sends it, or lets it wait for its turn. */
static void enter(struct cluster *c, struct exchange *x)
{
    if (!change_turn_waits(c, x)) {
        route(c, x);
    }
}

const struct node *cluster_find(const struct cluster *c, struct slice key, int *vbucket)
{
    *vbucket = -1;
    if (c->map == NULL) {
        return NULL;
    }
    *vbucket = shard_vbucket(key, c->map->vbucket_count);
    return cluster_owner(c, (uint16_t)*vbucket, false);
}

void cluster_submit(struct cluster *c, struct exchange *x)
{
    x->first_us = cluster_now_us(c);
    x->order = c->order++;
    x->code = 0;
    x->attempts = 0;
    x->takes_turn = x->has_turn = false;
    if (UNLIKELY(c->context->closing)) {
        cluster_end(c, x, FAILURE_CLOSING);
    } else if (UNLIKELY(x->op.key.len > c->key_bytes_max)) {
        cluster_end(c, x, FAILURE_KEY_LONG);
    } else if (UNLIKELY(!cluster_is_ready(c) || !TAILQ_EMPTY(&c->early))) {
        cluster_set_timer(c, c->ask_us); /* connects, if that has not begun */
        cluster_wait_or_end(c, &c->early, x);
    } else {
        enter(c, x);
    }
}

/* --- answers -------------------------------------------------------------------------------------
 */

enum verdict {
    VERDICT_FINAL,
    VERDICT_PASSES,    /* not done, for a reason that passes */
    VERDICT_ELSEWHERE, /* not done, and another node may do it */
    VERDICT_RENAMED,   /* not done: the collection has another id, or is not there */
};

static enum verdict judge_code(uint32_t code)
{
    switch (code) {
    case BINARY_STATUS_NOT_MY_VBUCKET:
    case BINARY_STATUS_CONFIG_ONLY:
        return VERDICT_ELSEWHERE;
    /* The connection logs in anew. */
    case BINARY_STATUS_AUTH_STALE:
    case BINARY_STATUS_AUTH_ERROR:
    case BINARY_STATUS_NO_BUCKET:
    case BINARY_STATUS_NOT_INITIALIZED:
    case BINARY_STATUS_THROTTLED:
    case BINARY_STATUS_TEMPORARY:
    case BINARY_STATUS_BUSY:
    case BINARY_STATUS_NO_MEMORY:
    case BINARY_STATUS_LOCKED:
    case BINARY_STATUS_SYNC_WRITE_IN_PROGRESS:
    case BINARY_STATUS_SYNC_WRITE_RECOMMIT:
        return VERDICT_PASSES;
    default:
        return VERDICT_FINAL;
    }
}

/* A request of a bucket that was made anew since then, with another number of vBuckets, is not. */
static bool may_be_sent_again(const struct cluster *c, const struct exchange *x)
{
    return x->failure != FAILURE_WITHDRAWN && !c->context->closing &&
           cluster_deadline_us(c, x) > cluster_now_us(c) &&
           x->op.vbucket == shard_vbucket(x->op.key, c->map->vbucket_count);
}

/* Is there no answer since the node cannot be reached? */
static bool is_cut_off(const struct exchange *x)
{
    return x->failure == FAILURE_DOWN || x->failure == FAILURE_UNFIT ||
           x->failure == FAILURE_LOST_READ;
}

static enum verdict judge(struct cluster *c, const struct exchange *x, const struct be_reply *reply)
{
    if (!may_be_sent_again(c, x)) {
        return VERDICT_FINAL;
    }
    switch (reply->status) {
    case BE_REFUSED:
        return reply->code == BINARY_STATUS_UNKNOWN_COLLECTION && x->op.collection != 0
                   ? VERDICT_RENAMED
                   : judge_code(reply->code);
    case BE_NO_MEMORY:
        return judge_code(reply->code);
    case BE_LOST:
        /* Of what was sent, only reads. */
        if (x->changes) {
            return VERDICT_FINAL;
        }
        break;
    case BE_DOWN:
        break;
    default:
        return VERDICT_FINAL;
    }
    /* There was no answer. Where the map has another node for it now, or may have one as soon as it
     * is asked for, that one is asked. */
    const struct node *owner = cluster_owner(c, x->op.vbucket, false);
    bool moved = owner != NULL && &owner->server != x->server;
    return moved || (is_cut_off(x) && cluster_may_leave(c, x->server)) ? VERDICT_ELSEWHERE
                                                                       : VERDICT_FINAL;
}

/* Does an older change of the same key wait? Then an answer that does not show it came too early.
 */
static const struct exchange *find_older_change(const struct hold *hold, const struct exchange *x)
{
    const struct exchange *old;
    TAILQ_FOREACH(old, &hold->back, link)
    {
        if (old->changes && old->order < x->order && slice_equal(old->op.key, x->op.key)) {
            return old;
        }
    }
    return NULL;
}

/* A request has its answer. Older ones of the same key that wait would come too late. */
static void end_overtaken(struct cluster *c, struct hold *hold, const struct exchange *x)
{
    struct exchange *old, *next;
    for (old = TAILQ_FIRST(&hold->back); old != NULL; old = next) {
        next = TAILQ_NEXT(old, link);
        if (old->order < x->order && (old->changes || x->changes) &&
            slice_equal(old->op.key, x->op.key)) {
            cluster_remove_waiting(c, &hold->back, old);
            cluster_end(c, old, FAILURE_TIMEOUT);
        }
    }
}

/* Before it is sent again. Other clients' durable changes of the key take milliseconds, and follow
 * one another: the gaps between them are short, and longer and longer pauses would meet none. */
static uint64_t pause_us(struct cluster *c, const struct exchange *x)
{
    if (x->code == BINARY_STATUS_SYNC_WRITE_IN_PROGRESS) {
        uint64_t us =
            x->attempts < TURN_PAUSE_MAX_MS ? (x->attempts + 1) * 1000 : TURN_PAUSE_MAX_MS * 1000;
        return us / 2 + rng_below(&c->context->rng, us);
    }
    return (uint64_t)pauses_ms[x->attempts < PAUSES ? x->attempts : PAUSES - 1] * 1000;
}

/* Is nothing else known of its collection than what it was sent with? */
static bool is_in_doubt(const struct cluster *c, const struct exchange *x)
{
    return !cluster_collection_is_missing(c) && x->op.collection == c->collection.id;
}

static void hold_back(struct cluster *c, struct exchange *x, enum verdict verdict)
{
    const struct server *server = x->server;
    struct hold *hold = hold_of(c, x->op.vbucket);
    uint64_t us = pause_us(c, x);
    bool first = TAILQ_EMPTY(&hold->back);
    if (verdict == VERDICT_ELSEWHERE && x->attempts == 0) {
        const struct node *owner = cluster_owner(c, x->op.vbucket, false);
        const struct node *next = cluster_owner(c, x->op.vbucket, true);
        bool is_known = (owner != NULL && &owner->server != server) ||
                        (next != NULL && &next->server != server);
        us = is_known ? 0 : us;
    } else if (verdict == VERDICT_RENAMED) {
        /* Until the node has told what it knows of the collection. */
        us = is_in_doubt(c, x) ? (uint64_t)pauses_ms[PAUSES - 1] * 1000 : 0;
    }
    x->attempts += x->attempts < UINT8_MAX;
    if (first) {
        hold->server = server;
        hold->wants_map = verdict == VERDICT_ELSEWHERE;
        hold->wants_collection = verdict == VERDICT_RENAMED;
        hold->due_us = cluster_now_us(c) + us;
    }
    cluster_add_waiting(c, &hold->back, x);
    cluster_set_timer(c, hold->due_us);
}

static RARE bool keeps_back(struct cluster *c, struct exchange *x, const struct be_reply *reply)
{
    struct vbucket *vb = &c->vbuckets[x->op.vbucket];
    if (reply->code == BINARY_STATUS_NOT_MY_VBUCKET && reply->has_value) {
        cluster_take_map(c, x->server, reply->value);
        heed_map(c);
    }
    enum verdict verdict = judge(c, x, reply);
    if (reply->status == BE_DOWN || reply->status == BE_LOST || verdict == VERDICT_ELSEWHERE) {
        cluster_want_map(c);
    }
    if (verdict == VERDICT_RENAMED && is_in_doubt(c, x)) {
        cluster_collection_want(c, (struct node *)x->server);
    }
    if (verdict != VERDICT_FINAL) {
        metric_inc(c->context->metrics, METRIC_cluster_retries);
        x->code = reply->status == BE_REFUSED || reply->status == BE_NO_MEMORY ? reply->code : 0;
        hold_back(c, x, verdict);
        return true;
    }
    if (vb->hold != NULL) {
        const struct exchange *older = find_older_change(vb->hold, x);
        if (older != NULL && !x->changes && may_be_sent_again(c, x)) {
            x->code = older->code;
            hold_back(c, x, VERDICT_PASSES);
            return true;
        }
        end_overtaken(c, vb->hold, x);
        if (vb->in_flight == 0) {
            cluster_set_timer(c, vb->hold->due_us);
        }
    }
    return false;
}

static bool keeps(struct cluster *c, struct exchange *x, const struct be_reply *reply)
{
    struct vbucket *vb = &c->vbuckets[x->op.vbucket];
    vb->in_flight--;
    bool is_plain = reply->status < BE_NO_MEMORY || reply->status == BE_TOO_LARGE;
    if (UNLIKELY(reply->no_times)) {
        ((struct node *)x->server)->no_times = true;
    }
    if (UNLIKELY(!is_plain || vb->hold != NULL) && keeps_back(c, x, reply)) {
        return true;
    }
    change_turn_end(&c->turns, x);
    send_next(c);
    return false;
}

/* --- the timer -----------------------------------------------------------------------------------
 */

/* Of a vBucket that moves, first the node that the map names, then, where that one has refused, the
 * one that it moves to. */
static struct node *choose_node(const struct cluster *c, const struct hold *hold)
{
    struct node *owner = cluster_owner(c, hold->vbucket, false);
    const struct exchange *first = first_of(hold);
    if (owner != NULL && &owner->server == hold->server && hold->wants_map &&
        first->attempts % 2 == 1) {
        return cluster_owner(c, hold->vbucket, true);
    }
    return owner;
}

static void end_each_over(struct cluster *c, struct exchange_list *list)
{
    struct exchange *x, *next;
    for (x = TAILQ_FIRST(list); x != NULL; x = next) {
        next = TAILQ_NEXT(x, link);
        if (cluster_is_over(c, x)) {
            cluster_remove_waiting(c, list, x);
            cluster_end_over(c, x);
        }
    }
}

static void end_for_collection(struct cluster *c, struct exchange_list *list)
{
    while (UNLIKELY(cluster_collection_is_missing(c)) && !TAILQ_EMPTY(list)) {
        refuse_for_collection(c, cluster_take_waiting(c, list));
    }
}

/* Sends what is held, in its order. */
static void release(struct cluster *c, struct hold *hold)
{
    end_each_over(c, &hold->back);
    end_each_over(c, &hold->fresh);
    end_for_collection(c, &hold->back);
    end_for_collection(c, &hold->fresh);
    if (first_of(hold) == NULL) {
        end_hold(c, hold);
        return;
    }
    struct node *node = choose_node(c, hold);
    struct exchange_list all = TAILQ_HEAD_INITIALIZER(all);
    if (node == NULL) {
        end_held(c, hold, FAILURE_NO_NODE);
        cluster_want_map(c);
        return;
    }
    TAILQ_CONCAT(&all, &hold->back, link);
    TAILQ_CONCAT(&all, &hold->fresh, link);
    end_hold(c, hold);
    while (!TAILQ_EMPTY(&all)) {
        send_to(c, node, cluster_take_waiting(c, &all));
    }
}

/* Returns when to look at it again. The hold may be gone then. */
static uint64_t tend_hold(struct cluster *c, struct hold *hold)
{
    cluster_end_those_over(c, &hold->back);
    if (TAILQ_EMPTY(&hold->back)) {
        cluster_end_those_over(c, &hold->fresh);
    }
    const struct exchange *first = first_of(hold);
    if (first == NULL) {
        end_hold(c, hold);
        return UINT64_MAX;
    }
    uint64_t deadline_us = cluster_deadline_us(c, first);
    if (c->vbuckets[hold->vbucket].in_flight > 0) {
        return deadline_us; /* the last of them sets the timer */
    }
    if (hold->due_us <= cluster_now_us(c)) {
        struct vbucket *vb = &c->vbuckets[hold->vbucket];
        release(c, hold);
        return vb->hold == NULL ? UINT64_MAX : vb->hold->due_us;
    }
    return hold->due_us < deadline_us ? hold->due_us : deadline_us;
}

static uint64_t tend_early(struct cluster *c)
{
    struct exchange_list all = TAILQ_HEAD_INITIALIZER(all);
    cluster_end_those_over(c, &c->early);
    if (TAILQ_EMPTY(&c->early)) {
        return UINT64_MAX;
    }
    if (!cluster_is_ready(c)) {
        return cluster_deadline_us(c, TAILQ_FIRST(&c->early));
    }
    TAILQ_CONCAT(&all, &c->early, link);
    while (!TAILQ_EMPTY(&all)) {
        struct exchange *x = cluster_take_waiting(c, &all);
        if (cluster_is_over(c, x)) {
            cluster_end(c, x, FAILURE_TIMEOUT);
        } else {
            enter(c, x);
        }
    }
    return UINT64_MAX;
}

/* A node was asked for the collection's number, and has answered or not. Where the one that refused
 * the old number knows nothing newer, it has not heard of that yet. */
static void heed_collection(struct cluster *c)
{
    struct hold *hold;
    if (!c->collection.told) {
        return;
    }
    c->collection.told = false;
    TAILQ_FOREACH(hold, &c->holds, link)
    {
        const struct exchange *first = first_of(hold);
        if (hold->wants_collection && first != NULL) {
            hold->due_us = cluster_now_us(c) + (is_in_doubt(c, first) ? pause_us(c, first) : 0);
        }
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct cluster *c = arg;
    (void)fd, (void)what;
    context_woke(c->context);
    c->timer_us = UINT64_MAX;
    uint64_t next_us = cluster_tend_nodes(c);
    heed_map(c);
    heed_collection(c);
    uint64_t at_us = tend_early(c);
    next_us = at_us < next_us ? at_us : next_us;
    at_us = cluster_collection_tend(c);
    next_us = at_us < next_us ? at_us : next_us;
    at_us = change_turns_tend(c);
    next_us = at_us < next_us ? at_us : next_us;
    struct hold *hold, *next;
    for (hold = TAILQ_FIRST(&c->holds); hold != NULL; hold = next) {
        next = TAILQ_NEXT(hold, link);
        at_us = tend_hold(c, hold);
        next_us = at_us < next_us ? at_us : next_us;
    }
    send_next(c);
    (void)cluster_deliver(c);
    cluster_set_timer(c, next_us);
}

/* --- start and end ------------------------------------------------------------------------------
 */

/* What a node has told in its handshake. */
static void learn(struct cluster *c, struct server *from, const struct handshake *hs)
{
    cluster_collection_learn(c, hs);
    cluster_learn(c, from, hs);
}

static const struct cluster_hooks hooks = {
    .keeps = keeps, .learn = learn, .take_map = cluster_take_map, .hear = cluster_hear};

void cluster_take_config(struct cluster *c)
{
    const struct pool_config *config = c->context->config;
    /* A password of no bytes is none that PLAIN could show. */
    c->login.plain = config->plain_login || config->tls || config->password[0] == '\0';
    c->login.password = slice_of(config->password);
    c->scram_cache.filled = false; /* it was made of the password */
    /* The node says that it is not confirmed before the proxy gives the whole connection up. */
    uint64_t ms = (uint64_t)config->durable_timeout_ms * 9 / 10;
    c->durability_ms = (uint16_t)(ms < 1 ? 1 : ms > DURABILITY_MS_MAX ? DURABILITY_MS_MAX : ms);
}

struct cluster *cluster_create(struct pool_context *context, struct resolver *resolver,
                               char error[CONFIG_ERROR_MAX])
{
    const struct pool_config *config = context->config;
    struct cluster *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->context = context;
    c->resolver = resolver;
    c->login = (struct wire_login){.bucket = slice_of(config->bucket),
                                   .user = slice_of(config->username),
                                   .by_certificate = config->tls_cert[0] != '\0',
                                   .durable = config->durability != POOL_DURABILITY_NONE,
                                   .cache = &c->scram_cache};
    cluster_take_config(c);
    /* From calloc, memory for vBuckets that no cluster has costs nothing. */
    c->vbuckets = calloc(CLUSTER_VBUCKETS_MAX, sizeof *c->vbuckets);
    c->timer = evtimer_new(context->base, on_timer, c);
    CHECK(c->vbuckets != NULL && c->timer != NULL);
    CHECK(pthread_mutex_init(&c->lock, NULL) == 0);
    TAILQ_INIT(&c->nodes);
    SLIST_INIT(&c->names);
    TAILQ_INIT(&c->holds);
    TAILQ_INIT(&c->early);
    TAILQ_INIT(&c->ended);
    change_turns_init(&c->turns);
    cluster_collection_init(c);
    c->timer_us = UINT64_MAX;
    context->cluster = c;
    context->hooks = &hooks;
    context->login = &c->login;
    if (cluster_add_seeds(c, error) < 0) {
        context->cluster = NULL;
        cluster_destroy(&c);
        return NULL;
    }
    return c;
}

void cluster_shutdown(struct cluster *c)
{
    struct node *node;
    TAILQ_FOREACH(node, &c->nodes, link)
    {
        connections_shutdown(&node->server);
    }
    cluster_end_those_over(c, &c->early);
    while (!TAILQ_EMPTY(&c->holds)) {
        (void)tend_hold(c, TAILQ_FIRST(&c->holds));
    }
    send_next(c);
}

void cluster_destroy(struct cluster **slot)
{
    struct cluster *c = *slot;
    *slot = NULL;
    if (c == NULL) {
        return;
    }
    CHECK(TAILQ_EMPTY(&c->early) && TAILQ_EMPTY(&c->holds) && TAILQ_EMPTY(&c->ended));
    change_turns_check_free(&c->turns);
    cluster_end_nodes(c);
    cluster_map_destroy(&c->map);
    pthread_mutex_destroy(&c->lock);
    event_free(c->timer);
    free(c->vbuckets);
    free(c);
}
