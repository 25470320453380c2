/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtual memcached, or a node of a Couchbase cluster with its replicas: what one server stores,
 * and what it answers. Time and faults come from outside.
 */
#ifndef WORLD_STORE_H
#define WORLD_STORE_H

#include <sys/queue.h>

#include "proto/server/backend.h"

#define STORE_BUCKETS 4096
/* Times of expiry of one item that are remembered between two writes of it. */
#define ITEM_ENDS_MAX 8

struct item {
    struct item *next; /* in the bucket */
    TAILQ_ENTRY(item) link;
    struct block *value;
    uint64_t cas;
    int64_t expires_s; /* by its server's clock; 0 = never */
    uint32_t flags;
    /* All that expires_s was since the item was written last, but for what it is now: where there
     * is no room for more, the oldest are kept. For a driver that gives it other times. */
    unsigned end_count;
    int64_t ends_s[ITEM_ENDS_MAX];
    bool on_disk; /* takes no appends */
    bool is_late; /* a sublist that was written when no head announced it */
    uint8_t key_len;
    char key[KEY_BYTES_MAX];
};

struct vbucket;

struct store {
    struct item *buckets[STORE_BUCKETS];
    TAILQ_HEAD(, item) items; /* all, in the order in which they were made */
    /* Heads that a CAS-guarded delete has removed: by their next. */
    struct item *removed_heads;
    uint64_t last_cas;
    uint64_t incarnation; /* counts restarts */
    struct be_caps caps;
    bool out_of_memory; /* nothing can be allocated for now */
    uint64_t small_max; /* larger items are refused for now, whatever caps say; 0 = none */
    bool refusing;      /* answers errors now and then, for now; the driver does that */
    bool no_times;      /* it does not tell times to live, as memcached before 1.6.10 */
    int64_t lead_s;     /* what its clock shows, less the caller's now_s */
    /* Of a node of a cluster: journal.h. NULL: it is a memcached. */
    struct vbucket *vbuckets;
    void (*forget)(void *note);
};

void store_init(struct store *store, uint64_t item_size_max, const char *name);
void store_fini(struct store *store);
/* Does it take a value of so many bytes? */
bool store_takes(const struct store *store, size_t bytes);
/* Forgets all items; CAS numbers go on. */
void store_clear(struct store *store);
/* Forgets all items; CAS numbers start again. */
void store_restart(struct store *store);

/* Executes one request. reply->block holds a reference, the caller's, when there is a value. */
void store_execute(struct store *store, const struct be_operation *request, int64_t now_s,
                   struct be_reply *reply);

/* What the server's clock shows. */
static inline int64_t store_clock(const struct store *store, int64_t now_s)
{
    return now_s + store->lead_s;
}

/* The next CAS number of that key's item. */
uint64_t store_next_cas(struct store *store, struct slice key, int64_t now_s);
/* Puts an item back as it was: before holds its key, and its value, a reference that stays the
 * caller's; without a value there was none. */
void store_put_back(struct store *store, const struct item *before);

/* The item of that key, or NULL. Valid until the next change. */
struct item *store_find(struct store *store, struct slice key, int64_t now_s);
/* Calls visit for every item, in the order of their hashes; it must change nothing. */
void store_each(struct store *store, void (*visit)(void *arg, const struct item *item), void *arg);
void store_evict(struct store *store, struct slice key);

static inline struct slice item_key(const struct item *item)
{
    return slice_make(item->key, item->key_len);
}

static inline struct slice item_value(const struct item *item)
{
    return slice_make(item->value->data, item->value->used);
}

const char *be_verb_name(enum be_verb verb);
const char *be_status_name(enum be_status status);

#endif
