/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/cache.h"

#include <stdlib.h>

#include "base/check.h"

static void ref(void *sublist)
{
    (void)sublist_ref(sublist);
}

static void drop(void *thing)
{
    struct sublist *sublist = thing;
    sublist_unkeep(sublist);
    sublist_unref(&sublist);
}

struct cache *cache_create(uint64_t limit_bytes)
{
    struct cache *c = malloc(sizeof *c);
    CHECK(c != NULL);
    lru_init(&c->lru, limit_bytes, ref, drop);
    return c;
}

void cache_destroy(struct cache **slot)
{
    if (*slot != NULL) {
        lru_fini(&(*slot)->lru);
        free(*slot);
        *slot = NULL;
    }
}

size_t cache_put(struct cache *c, struct slice key, struct sublist *sublist)
{
    size_t bytes = sublist_memory_bytes(sublist);
    /* One sublist must not empty the whole cache for itself. */
    if (bytes > c->lru.limit_bytes / 4) {
        return 0;
    }
    sublist_keep(sublist);
    return lru_put(&c->lru, key, sublist, bytes);
}
