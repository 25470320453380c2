/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/sublist.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_memory.h"

#include "support_list.h"

/* A stored sublist with these entries behind a header that counts them, for the caller to drop. */
static struct block *stored(struct slice entries, uint32_t count)
{
    struct block *b = sublist_begin(100);
    block_append(&b, entries.p, entries.len);
    sublist_finish(b, count);
    return b;
}

static struct sublist *decode(struct slice entries, uint32_t count, int delimiter)
{
    struct block *b = stored(entries, count);
    struct sublist *s = decode_exact(block_slice(b), delimiter);
    block_unref(&b);
    return s;
}

static void test_items_are_joined_by_the_delimiter(void **state)
{
    (void)state;
    struct sublist *s = decode(SLICE_LIT("+9:user-1234+8:user-987"), 2, ',');
    assert_non_null(s);
    assert_int_equal(s->count, 2);
    assert_true(s->all_add);
    assert_true(slice_equal(sublist_item(s, 0), SLICE_LIT("user-1234")));
    assert_true(slice_equal(sublist_item(s, 1), SLICE_LIT("user-987")));
    assert_int_equal(s->starts[2], 19);
    assert_memory_equal(s->text->data, "user-1234,user-987", 18);
    /* A cache may hold a great many small ones. */
    assert_true(sublist_memory_bytes(s) < 400);
    sublist_unref(&s);
    assert_null(s);
    sublist_unref(&s);
    s = decode(SLICE_LIT("+1:a+1:b"), 2, 0);
    assert_memory_equal(s->text->data, "a\0b", 3);
    sublist_unref(&s);
    s = decode(SLICE_LIT("+1:a+1:b"), 2, 255);
    assert_memory_equal(s->text->data,
                        "a\xff"
                        "b",
                        3);
    sublist_unref(&s);
    s = decode(SLICE_LIT("+1:a+1:b"), 2, -1);
    assert_true(slice_equal(sublist_item(s, 1), SLICE_LIT("b")));
    sublist_unref(&s);
}

static void test_the_stored_form_is_as_documented(void **state)
{
    (void)state;
    struct block *b = stored(SLICE_LIT("+1:a"), 1234);
    assert_true(slice_equal(block_slice(b), SLICE_LIT("^1 0000001234\n+1:a")));
    block_unref(&b);
}

static void test_deletions_and_new_places_are_kept_apart(void **state)
{
    (void)state;
    struct sublist *s = decode(SLICE_LIT("+1:a-1:b=1:c"), 3, ',');
    assert_non_null(s);
    assert_false(s->all_add);
    assert_int_equal(sublist_find(s, SLICE_LIT("a")), '+');
    assert_int_equal(sublist_find(s, SLICE_LIT("b")), '-');
    assert_int_equal(sublist_find(s, SLICE_LIT("c")), '=');
    assert_int_equal(sublist_find(s, SLICE_LIT("d")), 0);
    assert_int_equal(sublist_find(s, SLICE_NONE), 0);
    sublist_unref(&s);
}

static void test_a_sublist_cut_short_is_refused(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 4);
    struct log_shape shape = {.items = ITEMS_MAX, .entries = 60, .readd = true};
    struct block *log = random_log(&rng, &shape);
    struct block *entries = fold_entries(block_slice(log), false, NULL);
    struct slice rest = block_slice(entries);
    struct entry entry;
    uint32_t count = 0;
    while (entry_next(&rest, &entry) == ENTRY_OK) {
        count++;
    }
    struct block *whole = stored(block_slice(entries), count);
    for (size_t len = 0; len <= whole->used; len++) {
        struct sublist *s = decode_exact(slice_make(whole->data, len), ',');
        assert_int_equal(s != NULL, len == whole->used);
        sublist_unref(&s);
    }
    block_append(&whole, "+", 1);
    assert_null(decode_exact(block_slice(whole), ','));
    block_unref(&whole);
    block_unref(&entries);
    block_unref(&log);
}

static void test_what_is_no_sublist_is_refused(void **state)
{
    (void)state;
    static const struct slice bad[] = {
        SLICE_LIT(""),
        SLICE_LIT("^1\n"),
        SLICE_LIT("^1 1\n+1:a"),
        SLICE_LIT("^2 0000000001\n+1:a"),
        SLICE_LIT("^1 0000000000\n+1:a"),
        SLICE_LIT("^1 0000000002\n+1:a"),
        SLICE_LIT("^1 9999999999\n+1:a"),
        SLICE_LIT("^1 000000000x\n+1:a"),
        SLICE_LIT("^1 0000000001+1:a"),
        SLICE_LIT("^1 0000000001 +1:a"),
        SLICE_LIT("^1 0000000001\n!0:"),
        SLICE_LIT("^1 0000000001\n?1:a"),
        SLICE_LIT("^1 0000000001\n+1:a+"),
        SLICE_LIT("^1 0000000001\n~17:aaaaaaaaaaaaa.1.1"),
        SLICE_LIT("^1 0000000001\n?20:aaaaaaaaaaaaa.1 1 a "),
        SLICE_LIT("^1 0000000001\n&15:aaaaaaaaaaaaa c"),
        SLICE_LIT("^1 0000000001\n.1:a"),
        SLICE_LIT("^1 0000000001\n+9999999:a"),
        SLICE_LIT("^1 -000000001\n+1:a"),
        SLICE_LIT("^1 4294967297\n+1:a"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(decode_exact(bad[i], ','));
    }
    assert_null(sublist_decode(SLICE_NONE, ','));
}

static void test_damaged_bytes_are_survived(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 23);
    struct block *b = stored(SLICE_LIT("+9:user-1234-8:user-987=0:+12:abcdefghijkl+1:x"), 5);
    unsigned accepted = 0;
    for (int round = 0; round < 20000; round++) {
        struct block *copy = block_of(block_slice(b));
        for (uint64_t n = 1 + rng_below(&rng, 2); n > 0; n--) {
            copy->data[rng_below(&rng, copy->used)] = rng_below(&rng, 2) == 0
                                                          ? (char)rng_next(&rng)
                                                          : "0123456789+-=:"[rng_below(&rng, 14)];
        }
        struct sublist *s = decode_exact(block_slice(copy), ',');
        if (s != NULL) {
            accepted++;
            assert_int_equal(s->count, 5);
            for (uint32_t i = 0; i < s->count; i++) {
                assert_true(sublist_item(s, i).len < copy->used);
                assert_int_not_equal(sublist_find(s, sublist_item(s, i)), 0);
            }
        }
        sublist_unref(&s);
        block_unref(&copy);
    }
    assert_true(accepted > 100);
    block_unref(&b);
}

static void test_no_entries_at_all_is_a_sublist_of_nothing(void **state)
{
    (void)state;
    struct sublist *s = decode(SLICE_NONE, 0, ',');
    assert_non_null(s);
    assert_int_equal(s->count, 0);
    assert_int_equal(sublist_find(s, SLICE_LIT("a")), 0);
    sublist_unref(&s);
}

static char find_linear(const struct sublist *s, struct slice item)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (slice_equal(sublist_item(s, i), item)) {
            return s->ops[i];
        }
    }
    return 0;
}

static void test_the_index_finds_what_a_linear_search_finds(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 6);
    for (unsigned round = 0; round < 100; round++) {
        struct log_shape shape = {.items = ITEMS_MAX, .entries = round * 5, .readd = true};
        struct block *log = random_log(&rng, &shape);
        struct block *entries = fold_entries(block_slice(log), false, NULL);
        struct test_run run;
        test_run_init(&run, block_slice(entries), UINT32_MAX, ',');
        for (unsigned i = 0; run.run.range.count > 0 && i < ITEMS_MAX; i++) {
            assert_int_equal(sublist_find(run.sublists[0], test_item(i)),
                             find_linear(run.sublists[0], test_item(i)));
        }
        test_run_fini(&run);
        block_unref(&entries);
        block_unref(&log);
    }
}

#define BIG_COUNT 200000u

static struct sublist *decode_big(size_t *stored_bytes)
{
    struct block *b = sublist_begin(1000);
    for (uint32_t i = 0; i < BIG_COUNT; i++) {
        char text[20];
        entry_append(&b, ENTRY_ADD, slice_make(text, format_u64(text, i)));
    }
    sublist_finish(b, BIG_COUNT);
    *stored_bytes = b->used;
    struct sublist *s = decode_exact(block_slice(b), ',');
    block_unref(&b);
    return s;
}

static void test_a_big_sublist_is_read_and_its_memory_is_counted(void **state)
{
    (void)state;
    size_t bytes;
    struct sublist *s = decode_big(&bytes);
    assert_non_null(s);
    assert_int_equal(s->count, BIG_COUNT);
    size_t memory = sublist_memory_bytes(s);
    for (uint32_t i = 0; i < BIG_COUNT; i++) {
        char text[20];
        assert_int_equal(sublist_find(s, slice_make(text, format_u64(text, i))), '+');
    }
    assert_int_equal(sublist_find(s, SLICE_LIT("200000")), 0);
    /* The index is counted before it is built, so the cache's sum stays true. */
    assert_int_equal(sublist_memory_bytes(s), memory);
    assert_true(memory >= s->text->cap + BIG_COUNT * (4 + 1 + 8));
    assert_true(memory <= bytes + BIG_COUNT * (4 + 1 + 16) + 1000);
    sublist_unref(&s);
}

static void *find_all(void *arg)
{
    struct sublist *s = arg;
    for (uint32_t i = 0; i < s->count; i += 97) {
        if (sublist_find(s, sublist_item(s, i)) != '+') {
            return NULL;
        }
    }
    sublist_unref(&s);
    return arg;
}

static void test_two_threads_may_build_the_index_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        size_t bytes;
        struct sublist *s = decode_big(&bytes);
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, find_all, sublist_ref(s)), 0);
        }
        for (int i = 0; i < 2; i++) {
            void *result;
            pthread_join(threads[i], &result);
            assert_ptr_equal(result, s);
        }
        assert_int_equal(atomic_load(&s->refs), 1);
        sublist_unref(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_joined_by_the_delimiter),
        cmocka_unit_test(test_the_stored_form_is_as_documented),
        cmocka_unit_test(test_deletions_and_new_places_are_kept_apart),
        cmocka_unit_test(test_a_sublist_cut_short_is_refused),
        cmocka_unit_test(test_what_is_no_sublist_is_refused),
        cmocka_unit_test(test_damaged_bytes_are_survived),
        cmocka_unit_test(test_no_entries_at_all_is_a_sublist_of_nothing),
        cmocka_unit_test(test_the_index_finds_what_a_linear_search_finds),
        cmocka_unit_test(test_a_big_sublist_is_read_and_its_memory_is_counted),
        cmocka_unit_test(test_two_threads_may_build_the_index_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
