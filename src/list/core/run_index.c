/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/run_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#define BUCKETS_MIN ((size_t)256)
/* While an index is made: a collected hash and a slot for each entry, and what chunks of memory
 * leave free. */
#define MAKING_BYTES 13u

struct run_key {
    struct name name;
    uint8_t list_len;
    char list[LIST_KEY_BYTES_MAX];
};

struct entry_of_run {
    TAILQ_ENTRY(entry_of_run) lru; /* most recently used first */
    struct entry_of_run *next;     /* in the bucket */
    struct locator *locator;
    size_t bytes;
    uint64_t hash;
    struct run_key key;
};

struct run_indexes {
    pthread_mutex_t lock;
    TAILQ_HEAD(run_indexes_lru, entry_of_run) lru;
    LIST_HEAD(, run_index_build) builds;
    struct entry_of_run **buckets;
    size_t bucket_count; /* a power of two */
    size_t entries;
    uint64_t bytes, making_bytes, limit_bytes;
    unsigned check_bits;
};

struct run_index_build {
    LIST_ENTRY(run_index_build) link;
    struct run_indexes *indexes;
    struct locator_builder builder;
    uint64_t bytes; /* of making_bytes */
    struct run_key key;
};

struct run_indexes *run_indexes_create(uint64_t limit_bytes, unsigned check_bits)
{
    struct run_indexes *x = calloc(1, sizeof *x);
    CHECK(x != NULL);
    pthread_mutex_init(&x->lock, NULL);
    TAILQ_INIT(&x->lru);
    LIST_INIT(&x->builds);
    x->bucket_count = BUCKETS_MIN;
    x->buckets = calloc(x->bucket_count, sizeof(struct entry_of_run *));
    CHECK(x->buckets != NULL);
    x->limit_bytes = limit_bytes;
    x->check_bits = check_bits;
    return x;
}

uint64_t run_indexes_limit_bytes(const struct run_indexes *x)
{
    return x->limit_bytes;
}

static struct run_key key_of(struct slice list_key, const struct name *name)
{
    struct run_key key = {.name = *name, .list_len = (uint8_t)list_key.len};
    CHECK(list_key.len <= sizeof key.list);
    memcpy(key.list, list_key.p, list_key.len);
    return key;
}

static bool key_equal(const struct run_key *a, const struct run_key *b)
{
    return name_equal(&a->name, &b->name) &&
           slice_equal(slice_make(a->list, a->list_len), slice_make(b->list, b->list_len));
}

static uint64_t key_hash(const struct run_key *key)
{
    uint64_t hash = hash_bytes(key->list, key->list_len, 0);
    return hash_bytes(key->name.text, sizeof key->name.text, hash);
}

static struct entry_of_run **find(struct run_indexes *x, const struct run_key *key, uint64_t hash)
{
    struct entry_of_run **at = &x->buckets[hash & (x->bucket_count - 1)];
    while (*at != NULL && !((*at)->hash == hash && key_equal(&(*at)->key, key))) {
        at = &(*at)->next;
    }
    return at;
}

static void remove_entry(struct run_indexes *x, struct entry_of_run **at)
{
    struct entry_of_run *entry = *at;
    *at = entry->next;
    TAILQ_REMOVE(&x->lru, entry, lru);
    x->bytes -= entry->bytes;
    x->entries--;
    locator_unref(&entry->locator);
    free(entry);
}

static void make_room(struct run_indexes *x)
{
    while (x->bytes + x->making_bytes > x->limit_bytes && !TAILQ_EMPTY(&x->lru)) {
        struct entry_of_run *last = TAILQ_LAST(&x->lru, run_indexes_lru);
        remove_entry(x, find(x, &last->key, last->hash));
    }
}

void run_indexes_destroy(struct run_indexes **slot)
{
    struct run_indexes *x = *slot;
    *slot = NULL;
    if (x == NULL) {
        return;
    }
    CHECK(LIST_EMPTY(&x->builds));
    x->limit_bytes = 0;
    make_room(x);
    CHECK(x->entries == 0);
    free(x->buckets);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static void grow(struct run_indexes *x)
{
    struct entry_of_run *entry;
    free(x->buckets);
    x->bucket_count *= 2;
    x->buckets = calloc(x->bucket_count, sizeof(struct entry_of_run *));
    CHECK(x->buckets != NULL);
    TAILQ_FOREACH(entry, &x->lru, lru)
    {
        struct entry_of_run **bucket = &x->buckets[entry->hash & (x->bucket_count - 1)];
        entry->next = *bucket;
        *bucket = entry;
    }
}

struct locator *run_indexes_get(struct run_indexes *x, struct slice list_key,
                                const struct name *name)
{
    struct run_key key = key_of(list_key, name);
    uint64_t hash = key_hash(&key);
    struct locator *found = NULL;
    pthread_mutex_lock(&x->lock);
    struct entry_of_run *entry = *find(x, &key, hash);
    if (entry != NULL) {
        found = locator_ref(entry->locator);
        TAILQ_REMOVE(&x->lru, entry, lru);
        TAILQ_INSERT_HEAD(&x->lru, entry, lru);
    }
    pthread_mutex_unlock(&x->lock);
    return found;
}

void run_indexes_drop(struct run_indexes *x, struct slice list_key, const struct name *name)
{
    struct run_key key = key_of(list_key, name);
    pthread_mutex_lock(&x->lock);
    struct entry_of_run **at = find(x, &key, key_hash(&key));
    if (*at != NULL) {
        remove_entry(x, at);
    }
    pthread_mutex_unlock(&x->lock);
}

static void put(struct run_indexes *x, const struct run_key *key, struct locator *locator)
{
    uint64_t hash = key_hash(key);
    struct entry_of_run *entry = malloc(sizeof *entry);
    CHECK(entry != NULL);
    *entry = (struct entry_of_run){.locator = locator_ref(locator),
                                   .bytes = sizeof *entry + locator_bytes(locator),
                                   .hash = hash,
                                   .key = *key};
    struct entry_of_run **at = find(x, key, hash);
    if (*at != NULL) {
        remove_entry(x, at);
    }
    if (x->entries >= x->bucket_count) {
        grow(x);
    }
    struct entry_of_run **bucket = &x->buckets[hash & (x->bucket_count - 1)];
    entry->next = *bucket;
    *bucket = entry;
    TAILQ_INSERT_HEAD(&x->lru, entry, lru);
    x->bytes += entry->bytes;
    x->entries++;
    make_room(x);
}

void run_indexes_get_stats(struct run_indexes *x, struct run_indexes_stats *out)
{
    pthread_mutex_lock(&x->lock);
    *out = (struct run_indexes_stats){
        .bytes = x->bytes + x->making_bytes, .limit_bytes = x->limit_bytes, .runs = x->entries};
    pthread_mutex_unlock(&x->lock);
}

/* ---- making one ---- */

bool run_indexes_would_fit(const struct run_indexes *x, uint64_t entries)
{
    return entries <= x->limit_bytes / MAKING_BYTES;
}

static bool is_being_made(const struct run_indexes *x, const struct run_key *key)
{
    const struct run_index_build *build;
    LIST_FOREACH(build, &x->builds, link)
    {
        if (key_equal(&build->key, key)) {
            return true;
        }
    }
    return false;
}

struct run_index_build *run_index_begin(struct run_indexes *x, struct slice list_key,
                                        const struct name *name, uint32_t sublists_max,
                                        uint64_t entries)
{
    if (x->limit_bytes == 0 || !run_indexes_would_fit(x, entries)) {
        return NULL;
    }
    struct run_index_build *build = calloc(1, sizeof *build);
    CHECK(build != NULL);
    build->indexes = x;
    build->key = key_of(list_key, name);
    pthread_mutex_lock(&x->lock);
    bool alone = !is_being_made(x, &build->key);
    if (alone) {
        LIST_INSERT_HEAD(&x->builds, build, link);
    }
    pthread_mutex_unlock(&x->lock);
    if (!alone) {
        free(build);
        return NULL;
    }
    locator_builder_init(&build->builder, sublists_max, entries, x->check_bits);
    return build;
}

void run_index_add(struct run_index_build *build, char op, struct slice item)
{
    locator_builder_add(&build->builder, op, item);
}

bool run_index_end_sublist(struct run_index_build *build)
{
    struct run_indexes *x = build->indexes;
    locator_builder_end_sublist(&build->builder);
    uint64_t bytes = locator_builder_bytes(&build->builder);
    pthread_mutex_lock(&x->lock);
    x->making_bytes += bytes - build->bytes;
    build->bytes = bytes;
    make_room(x);
    bool fits = x->making_bytes <= x->limit_bytes;
    pthread_mutex_unlock(&x->lock);
    return fits;
}

bool run_index_sort(struct run_index_build *build)
{
    enum { STEPS = 8 };
    bool ready = false;
    for (unsigned n = 0; n < STEPS && !ready; n++) {
        ready = locator_builder_sort(&build->builder);
    }
    return ready;
}

static void end(struct run_index_build **slot, struct locator *made)
{
    struct run_index_build *build = *slot;
    struct run_indexes *x = build->indexes;
    *slot = NULL;
    locator_builder_fini(&build->builder);
    pthread_mutex_lock(&x->lock);
    LIST_REMOVE(build, link);
    x->making_bytes -= build->bytes;
    if (made != NULL) {
        put(x, &build->key, made);
    }
    pthread_mutex_unlock(&x->lock);
    free(build);
}

struct locator *run_index_end(struct run_index_build **build)
{
    struct locator *made = locator_builder_take(&(*build)->builder);
    end(build, made);
    return made;
}

void run_index_give_up(struct run_index_build **build)
{
    if (*build != NULL) {
        end(build, NULL);
    }
}
