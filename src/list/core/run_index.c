/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/run_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

/* While an index is made: a collected hash and a slot for each entry, and what chunks of memory
 * leave free. */
#define MAKING_BYTES 13u

struct run_indexes {
    struct lru lru;
    pthread_mutex_t lock; /* of builds */
    LIST_HEAD(, run_index_build) builds;
    unsigned check_bits;
};

struct run_index_build {
    LIST_ENTRY(run_index_build) link;
    struct run_indexes *indexes;
    struct locator_builder builder;
    uint64_t bytes; /* reserved, as far as it was told */
    uint8_t key_len;
    char key[KEY_BYTES_MAX];
};

static void ref(void *locator)
{
    (void)locator_ref(locator);
}

static void unref(void *thing)
{
    struct locator *locator = thing;
    locator_unref(&locator);
}

struct run_indexes *run_indexes_create(uint64_t limit_bytes, unsigned check_bits)
{
    struct run_indexes *x = calloc(1, sizeof *x);
    CHECK(x != NULL);
    lru_init(&x->lru, limit_bytes, ref, unref);
    pthread_mutex_init(&x->lock, NULL);
    LIST_INIT(&x->builds);
    x->check_bits = check_bits;
    return x;
}

void run_indexes_destroy(struct run_indexes **slot)
{
    struct run_indexes *x = *slot;
    *slot = NULL;
    if (x == NULL) {
        return;
    }
    CHECK(LIST_EMPTY(&x->builds));
    lru_fini(&x->lru);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

uint64_t run_indexes_limit_bytes(const struct run_indexes *x)
{
    return x->lru.limit_bytes;
}

void run_indexes_get_stats(struct run_indexes *x, struct lru_stats *out)
{
    lru_get_stats(&x->lru, out);
}

/* A run goes by the key of its first sublist. */
static struct slice run_key(char out[KEY_BYTES_MAX], struct slice list_key, const struct name *name)
{
    return slice_make(out, sublist_key(out, list_key, name, 0));
}

struct locator *run_indexes_get(struct run_indexes *x, struct slice list_key,
                                const struct name *name)
{
    char key[KEY_BYTES_MAX];
    return lru_get(&x->lru, run_key(key, list_key, name));
}

void run_indexes_drop(struct run_indexes *x, struct slice list_key, const struct name *name)
{
    char key[KEY_BYTES_MAX];
    lru_drop(&x->lru, run_key(key, list_key, name));
}

/* ---- making one ---- */

bool run_indexes_would_fit(const struct run_indexes *x, uint64_t entries)
{
    return entries <= x->lru.limit_bytes / MAKING_BYTES;
}

static struct slice build_key(const struct run_index_build *build)
{
    return slice_make(build->key, build->key_len);
}

static bool is_being_made(const struct run_indexes *x, struct slice key)
{
    const struct run_index_build *build;
    LIST_FOREACH(build, &x->builds, link)
    {
        if (slice_equal(build_key(build), key)) {
            return true;
        }
    }
    return false;
}

struct run_index_build *run_index_begin(struct run_indexes *x, struct slice list_key,
                                        const struct name *name, uint32_t sublists_max,
                                        uint64_t entries)
{
    if (run_indexes_limit_bytes(x) == 0 || !run_indexes_would_fit(x, entries)) {
        return NULL;
    }
    struct run_index_build *build = calloc(1, sizeof *build);
    CHECK(build != NULL);
    build->indexes = x;
    build->key_len = (uint8_t)run_key(build->key, list_key, name).len;
    pthread_mutex_lock(&x->lock);
    bool alone = !is_being_made(x, build_key(build));
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
    locator_builder_end_sublist(&build->builder);
    uint64_t bytes = locator_builder_bytes(&build->builder);
    int64_t more = (int64_t)(bytes - build->bytes);
    build->bytes = bytes;
    return lru_reserve(&build->indexes->lru, more);
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
    (void)lru_reserve(&x->lru, -(int64_t)build->bytes);
    if (made != NULL) {
        (void)lru_put(&x->lru, build_key(build), made, locator_bytes(made));
    }
    pthread_mutex_lock(&x->lock); /* not before: who finds it gone finds the index */
    LIST_REMOVE(build, link);
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
