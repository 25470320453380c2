/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/cache.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_memory.h"

#include "base/memory.h"
#include "support_list.h"

/* A sublist with one item, the number. */
static struct sublist *make(unsigned number)
{
    char text[24];
    struct block *b = sublist_begin(100);
    entry_append(&b, ENTRY_ADD, slice_make(text, format_u64(text, number)));
    sublist_finish(b, 1);
    struct sublist *s = sublist_decode(block_slice(b), ',');
    block_unref(&b);
    return s;
}

static struct slice key_of(char out[24], unsigned number)
{
    return slice_make(out, (size_t)snprintf(out, 24, "key-%u", number));
}

static size_t put(struct cache *c, unsigned key, unsigned number)
{
    char text[24];
    struct sublist *s = make(number);
    size_t evicted = cache_put(c, key_of(text, key), s);
    sublist_unref(&s);
    return evicted;
}

static bool has(struct cache *c, unsigned key)
{
    char text[24];
    return cache_has(c, key_of(text, key));
}

/* The number stored under the key, or -1. Counts as a use. */
static long get(struct cache *c, unsigned key)
{
    char text[24];
    struct sublist *s = cache_get(c, key_of(text, key));
    if (s == NULL) {
        return -1;
    }
    uint64_t number;
    bool ok = slice_to_u64(sublist_item(s, 0), &number);
    sublist_unref(&s);
    return ok ? (long)number : -2;
}

/* What one such sublist takes in the cache. */
static uint64_t bytes_of_one(void)
{
    struct cache *c = cache_create(1 << 20);
    struct lru_stats stats;
    put(c, 100, 100);
    lru_get_stats(&c->lru, &stats);
    assert_int_equal(stats.entries, 1);
    cache_destroy(&c);
    assert_null(c);
    return stats.bytes;
}

static void test_what_was_put_is_found(void **state)
{
    (void)state;
    struct cache *c = cache_create(1 << 20);
    assert_int_equal(get(c, 1), -1);
    assert_int_equal(put(c, 1, 11), 0);
    assert_int_equal(put(c, 2, 22), 0);
    assert_int_equal(get(c, 1), 11);
    assert_int_equal(get(c, 2), 22);
    struct lru_stats stats;
    lru_get_stats(&c->lru, &stats);
    assert_int_equal(stats.limit_bytes, 1 << 20);
    cache_destroy(&c);
    cache_destroy(&c);
}

static void test_the_least_recently_used_goes_first(void **state)
{
    (void)state;
    struct cache *c = cache_create(5 * bytes_of_one() + 20);
    for (unsigned i = 101; i <= 105; i++) {
        assert_int_equal(put(c, i, i), 0);
    }
    assert_int_equal(get(c, 101), 101);
    assert_true(has(c, 102)); /* a look that counts as no use */
    assert_int_equal(put(c, 106, 106), 1);
    assert_false(has(c, 102));
    assert_int_equal(put(c, 107, 107), 1);
    assert_false(has(c, 103));
    assert_true(has(c, 101));
    assert_int_equal(put(c, 108, 108), 1);
    assert_int_equal(put(c, 109, 109), 1);
    assert_int_equal(put(c, 110, 110), 1);
    assert_false(has(c, 101));
    assert_true(has(c, 106));
    cache_destroy(&c);
}

static void test_putting_again_replaces_and_counts_once(void **state)
{
    (void)state;
    struct cache *c = cache_create(1 << 20);
    put(c, 101, 500);
    struct lru_stats before, after;
    lru_get_stats(&c->lru, &before);
    put(c, 101, 501);
    lru_get_stats(&c->lru, &after);
    assert_int_equal(get(c, 101), 501);
    assert_int_equal(after.entries, 1);
    assert_int_equal(after.bytes, before.bytes);
    cache_destroy(&c);
}

static void test_what_is_too_large_for_the_cache_is_not_kept(void **state)
{
    (void)state;
    struct sublist *s = make(101);
    uint64_t one = sublist_memory_bytes(s);
    sublist_unref(&s);
    struct cache *c = cache_create(one * 4 - 1);
    assert_int_equal(put(c, 101, 101), 0);
    assert_false(has(c, 101));
    cache_destroy(&c);
    c = cache_create(one * 4);
    put(c, 101, 101);
    assert_true(has(c, 101));
    cache_destroy(&c);
    c = cache_create(0);
    put(c, 101, 101);
    assert_false(has(c, 101));
    assert_int_equal(get(c, 101), -1);
    cache_destroy(&c);
}

static void test_a_sublist_outlives_its_place_in_the_cache(void **state)
{
    (void)state;
    struct cache *c = cache_create(1 << 20);
    put(c, 1, 77);
    char text[24];
    struct sublist *s = cache_get(c, key_of(text, 1));
    cache_destroy(&c);
    assert_true(slice_equal(sublist_item(s, 0), SLICE_LIT("77")));
    sublist_unref(&s);
}

/* More than the table had buckets at first. */
static void test_many_sublists_are_all_found(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    struct cache *c = cache_create(1ULL << 30);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(put(c, i, i), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(get(c, i), i);
    }
    cache_destroy(&c);
}

#define KEYS 40

/* The plain model: keys in order of use, newest first. */
struct order {
    unsigned keys[KEYS];
    size_t count;
};

static bool order_remove(struct order *o, unsigned key)
{
    for (size_t i = 0; i < o->count; i++) {
        if (o->keys[i] == key) {
            o->count--;
            memmove(&o->keys[i], &o->keys[i + 1], (o->count - i) * sizeof o->keys[0]);
            return true;
        }
    }
    return false;
}

static void order_push(struct order *o, unsigned key)
{
    memmove(&o->keys[1], &o->keys[0], o->count * sizeof o->keys[0]);
    o->keys[0] = key;
    o->count++;
}

static void test_random_use_agrees_with_a_plain_model(void **state)
{
    (void)state;
    enum { ROOM = 10 };
    struct rng rng;
    rng_init_seed(&rng, 31);
    struct cache *c = cache_create(ROOM * bytes_of_one());
    struct order order = {.count = 0};
    for (int step = 0; step < 20000; step++) {
        unsigned key = 100 + (unsigned)rng_below(&rng, KEYS);
        if (rng_below(&rng, 3) == 0) {
            bool was = order_remove(&order, key);
            size_t evicted = !was && order.count == ROOM;
            order.count -= evicted;
            order_push(&order, key);
            assert_int_equal(put(c, key, key), evicted);
        } else {
            bool was = order_remove(&order, key);
            if (was) {
                order_push(&order, key);
            }
            assert_int_equal(get(c, key), was ? (long)key : -1);
        }
        struct lru_stats stats;
        lru_get_stats(&c->lru, &stats);
        assert_int_equal(stats.entries, order.count);
        assert_true(stats.bytes <= stats.limit_bytes);
    }
    cache_destroy(&c);
}

struct hammer {
    struct cache *cache;
    uint64_t seed;
    bool wrong;
};

static void *hammer(void *arg)
{
    struct hammer *h = arg;
    struct rng rng;
    rng_init_seed(&rng, h->seed);
    for (int step = 0; step < 20000; step++) {
        unsigned key = (unsigned)rng_below(&rng, 60);
        char text[24];
        switch (rng_below(&rng, 8)) {
        case 0:
            put(h->cache, key, key);
            break;
        case 1: {
            struct lru_stats stats;
            lru_get_stats(&h->cache->lru, &stats);
            h->wrong = h->wrong || stats.bytes > stats.limit_bytes;
            break;
        }
        default: {
            struct sublist *s = cache_get(h->cache, key_of(text, key));
            if (s != NULL) {
                char number[24];
                struct slice item = slice_make(number, format_u64(number, key));
                h->wrong = h->wrong || sublist_find(s, item) != '+';
                sublist_unref(&s);
            }
        }
        }
    }
    block_thread_fini();
    return NULL;
}

static void test_two_threads_share_one_cache(void **state)
{
    (void)state;
    struct cache *c = cache_create(20 * bytes_of_one());
    struct hammer hammers[2] = {{c, 1, false}, {c, 2, false}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &hammers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_false(hammers[i].wrong);
    }
    cache_destroy(&c);
}

/* Runs last: what caches, views and readers took and gave is even, in whatever order they came and
 * went. */
static void test_memory_of_sublists_adds_up_to_nothing(void **state)
{
    (void)state;
    block_drop_spare();
    memory_settle();
    assert_int_equal(memory_held(), 0);
}

/* What a cache counts itself is not clients' memory; what only readers hold is. */
static void test_a_text_counts_while_no_cache_has_it(void **state)
{
    (void)state;
    struct cache *c = cache_create(20 * bytes_of_one());
    struct sublist *s = make(1);
    memory_settle();
    uint64_t with = memory_held();
    assert_true(with > 0);
    (void)cache_put(c, SLICE_LIT("a"), s);
    (void)cache_put(c, SLICE_LIT("b"), s);
    memory_settle();
    uint64_t without = memory_held();
    assert_int_equal(with - without, sizeof *s->text + s->text->cap);
    struct block *pinned = block_ref(s->text);
    cache_destroy(&c);
    sublist_unref(&s);
    memory_settle();
    assert_int_equal(memory_held(), with);
    block_unref(&pinned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_put_is_found),
        cmocka_unit_test(test_the_least_recently_used_goes_first),
        cmocka_unit_test(test_putting_again_replaces_and_counts_once),
        cmocka_unit_test(test_what_is_too_large_for_the_cache_is_not_kept),
        cmocka_unit_test(test_a_sublist_outlives_its_place_in_the_cache),
        cmocka_unit_test(test_many_sublists_are_all_found),
        cmocka_unit_test(test_random_use_agrees_with_a_plain_model),
        cmocka_unit_test(test_two_threads_share_one_cache),
        cmocka_unit_test(test_a_text_counts_while_no_cache_has_it),
        cmocka_unit_test(test_memory_of_sublists_adds_up_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
