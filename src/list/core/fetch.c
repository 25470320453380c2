/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/fetch.h"

#include <stdlib.h>

#include "list/core/engine_state.h"

struct fetch_waiter {
    struct fetch_waiter *next;
    struct op *op;
    uint64_t tag;
};

struct fetch {
    struct fetch *next; /* in the bucket */
    TAILQ_ENTRY(fetch) waiting;
    struct list_request *request; /* until it is sent */
    struct fetch_waiter *waiters; /* in any order */
    const struct list_policy *policy;
    uint64_t hash;
    bool keep;
    uint8_t key_len;
    char key[KEY_BYTES_MAX];
};

void fetches_init(struct fetches *fetches)
{
    *fetches = (struct fetches){0};
    TAILQ_INIT(&fetches->waiting);
}

static void free_waiters(struct fetch *fetch)
{
    while (fetch->waiters != NULL) {
        struct fetch_waiter *waiter = fetch->waiters;
        fetch->waiters = waiter->next;
        free(waiter);
    }
}

void fetches_fini(struct engine *e)
{
    for (size_t i = 0; i < FETCH_BUCKETS; i++) {
        while (e->fetches.buckets[i] != NULL) {
            struct fetch *fetch = e->fetches.buckets[i];
            e->fetches.buckets[i] = fetch->next;
            if (fetch->request != NULL) {
                request_free(e, &fetch->request);
            }
            free_waiters(fetch);
            free(fetch);
        }
    }
}

static struct fetch **find(struct fetches *fetches, struct slice key, uint64_t hash)
{
    struct fetch **at = &fetches->buckets[hash % FETCH_BUCKETS];
    while (*at != NULL &&
           !((*at)->hash == hash && slice_equal(slice_make((*at)->key, (*at)->key_len), key))) {
        at = &(*at)->next;
    }
    return at;
}

static void send_waiting(struct engine *e)
{
    struct fetch *fetch;
    while (e->fetches.inflight < FETCH_INFLIGHT_MAX &&
           (fetch = TAILQ_FIRST(&e->fetches.waiting)) != NULL) {
        TAILQ_REMOVE(&e->fetches.waiting, fetch, waiting);
        e->fetches.inflight++;
        metric_inc(e->metrics, METRIC_sublist_fetches);
        request_send(e, fetch->request);
        fetch->request = NULL;
    }
}

static struct fetch *create(struct engine *e, struct op *op, struct slice key, uint64_t hash,
                            uint8_t placement_len)
{
    struct fetch *fetch = calloc(1, sizeof *fetch);
    CHECK(fetch != NULL);
    fetch->policy = op->reads->policy;
    fetch->hash = hash;
    fetch->key_len = (uint8_t)key.len;
    memcpy(fetch->key, key.p, key.len);
    fetch->request = request_new(e, op->reads, BE_GET);
    request_set_key(fetch->request, fetch->key_len);
    fetch->request->placement_len = placement_len;
    fetch->request->tag = (uint64_t)(uintptr_t)fetch;
    memcpy(fetch->request->key, key.p, key.len);
    struct fetch **bucket = &e->fetches.buckets[hash % FETCH_BUCKETS];
    fetch->next = *bucket;
    *bucket = fetch;
    TAILQ_INSERT_TAIL(&e->fetches.waiting, fetch, waiting);
    return fetch;
}

struct sublist *fetch_sublist(struct engine *e, struct op *op, const struct name *name,
                              uint32_t number, bool keep, uint64_t tag)
{
    char text[KEY_BYTES_MAX];
    struct slice key = slice_make(text, sublist_key(text, list_key(op->reads), name, number));
    struct sublist *cached = cache_get(engine_cache(e, op->reads), key);
    if (cached != NULL) {
        metric_inc(e->metrics, METRIC_cache_hits);
        return cached;
    }
    metric_inc(e->metrics, METRIC_cache_misses);
    uint64_t hash = hash_bytes(key.p, key.len, 0);
    struct fetch *fetch = *find(&e->fetches, key, hash);
    if (fetch == NULL) {
        bool spread = op->reads->policy->placement == PLACEMENT_SPREAD;
        fetch =
            create(e, op, key, hash, spread ? (uint8_t)key.len : (uint8_t)(op->reads->key_len + 1));
    } else {
        metric_inc(e->metrics, METRIC_sublist_fetches_combined);
    }
    struct fetch_waiter *waiter = malloc(sizeof *waiter);
    CHECK(waiter != NULL);
    *waiter = (struct fetch_waiter){fetch->waiters, op, tag};
    fetch->waiters = waiter;
    fetch->keep = fetch->keep || keep;
    op->outstanding++;
    send_waiting(e);
    return NULL;
}

void fetch_reply(struct engine *e, const struct list_request *request, const struct be_reply *reply)
{
    struct fetch *fetch = (struct fetch *)(uintptr_t)request->tag;
    struct slice key = slice_make(fetch->key, fetch->key_len);
    struct fetch **at = find(&e->fetches, key, fetch->hash);
    CHECK(*at == fetch);
    *at = fetch->next;
    e->fetches.inflight--;

    struct op_event event = {.status = reply->status, .text = reply->text};
    if (reply->status == BE_HIT) {
        event.sublist =
            reply->flags == 0 ? sublist_decode(reply->value, fetch->policy->delimiter) : NULL;
        /* Bytes that are no sublist, and flags, which none has, are as good as nothing. */
        event.status = event.sublist == NULL ? BE_MISS : BE_HIT;
    }
    if (event.sublist != NULL && fetch->keep) {
        size_t evicted = cache_put(e->caches[fetch->policy->index], key, event.sublist);
        metric_add(e->metrics, METRIC_cache_evictions, evicted);
    }
    while (fetch->waiters != NULL) {
        struct fetch_waiter *waiter = fetch->waiters;
        fetch->waiters = waiter->next;
        event.tag = waiter->tag;
        op_deliver(e, waiter->op, &event);
        free(waiter);
    }
    sublist_unref(&event.sublist);
    free(fetch);
    send_waiting(e);
}
