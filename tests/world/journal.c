/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include <stdlib.h>

#include "base/check.h"

/* So many changes the replicas are behind at most. */
#define JOURNAL_MAX 32
/* The low bits of a time in nanoseconds that count changes. */
#define CAS_CLOCK_BITS 16

/* A change that is not durable, as the replicas may have it undone. */
struct undo {
    TAILQ_ENTRY(undo) link;
    struct item before; /* without a value: there was none */
    uint64_t last_cas;  /* of the vBucket, before */
    void *note;         /* the driver's */
};

struct vbucket {
    TAILQ_HEAD(undos, undo) undos; /* the newest first */
    unsigned count;
    uint64_t last_cas;
};

unsigned store_vbucket(struct slice key)
{
    return (unsigned)(hash_bytes(key.p, key.len, 11) % STORE_VBUCKETS);
}

static struct vbucket *vbucket_of(const struct store *store, struct slice key)
{
    return &store->vbuckets[store_vbucket(key)];
}

void journal_create(struct store *store, void (*forget)(void *note))
{
    store->forget = forget;
    store->vbuckets = calloc(STORE_VBUCKETS, sizeof *store->vbuckets);
    CHECK(store->vbuckets != NULL);
    for (unsigned i = 0; i < STORE_VBUCKETS; i++) {
        TAILQ_INIT(&store->vbuckets[i].undos);
    }
}

static void undo_free(struct store *store, struct undo *undo)
{
    if (undo->note != NULL) {
        store->forget(undo->note);
    }
    block_unref(&undo->before.value);
    free(undo);
}

static struct undo *take(struct vbucket *vb, struct undo *undo)
{
    TAILQ_REMOVE(&vb->undos, undo, link);
    vb->count--;
    return undo;
}

static void clear(struct store *store, struct vbucket *vb)
{
    while (!TAILQ_EMPTY(&vb->undos)) {
        undo_free(store, take(vb, TAILQ_FIRST(&vb->undos)));
    }
}

void journal_fini(struct store *store)
{
    for (unsigned i = 0; store->vbuckets != NULL && i < STORE_VBUCKETS; i++) {
        clear(store, &store->vbuckets[i]);
    }
    free(store->vbuckets);
    store->vbuckets = NULL;
}

struct undo *journal_begin(struct store *store, struct slice key, const struct item *item)
{
    struct undo *undo = calloc(1, sizeof *undo);
    CHECK(undo != NULL);
    if (item != NULL) {
        undo->before = *item;
        undo->before.value = block_ref(item->value);
    } else {
        undo->before.key_len = (uint8_t)key.len;
        memcpy(undo->before.key, key.p, key.len);
    }
    undo->last_cas = vbucket_of(store, key)->last_cas;
    return undo;
}

void journal_end(struct store *store, struct undo *undo, bool changed, bool durable)
{
    struct vbucket *vb = vbucket_of(store, item_key(&undo->before));
    if (changed && durable) {
        clear(store, vb);
    }
    if (!changed || durable) {
        undo_free(store, undo);
        return;
    }
    TAILQ_INSERT_HEAD(&vb->undos, undo, link);
    if (++vb->count > JOURNAL_MAX) {
        undo_free(store, take(vb, TAILQ_LAST(&vb->undos, undos)));
    }
}

uint64_t journal_next_cas(struct store *store, struct slice key, int64_t clock_s)
{
    struct vbucket *vb = vbucket_of(store, key);
    uint64_t now = (uint64_t)clock_s * 1000000000 >> CAS_CLOCK_BITS << CAS_CLOCK_BITS;
    vb->last_cas = now > vb->last_cas ? now : vb->last_cas + 1;
    return vb->last_cas;
}

void journal_note(struct store *store, struct slice key, void *note)
{
    struct undo *undo = TAILQ_FIRST(&vbucket_of(store, key)->undos);
    CHECK(undo != NULL && undo->note == NULL && slice_equal(item_key(&undo->before), key));
    undo->note = note;
}

void journal_fail_over(struct store *store, struct rng *rng, bool is_behind,
                       void (*undone)(void *arg, struct slice key, void *note), void *arg)
{
    for (unsigned i = 0; i < STORE_VBUCKETS; i++) {
        struct vbucket *vb = &store->vbuckets[i];
        uint64_t lost = rng_below(rng, 2) == 0 ? 0 : rng_below(rng, vb->count + 1);
        for (; lost > 0; lost--) {
            struct undo *undo = take(vb, TAILQ_FIRST(&vb->undos));
            void *note = undo->note;
            undo->note = NULL;
            store_put_back(store, &undo->before);
            vb->last_cas = is_behind ? undo->last_cas : vb->last_cas;
            undone(arg, item_key(&undo->before), note);
            undo_free(store, undo);
        }
        clear(store, vb);
    }
    store->incarnation++;
}
