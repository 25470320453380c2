/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/block.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support_memory.h"

static void test_a_block_has_at_least_the_room_asked_for(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct block *b = block_new(sizes[i]);
        assert_int_equal(b->used, 0);
        assert_true(block_room(b) >= sizes[i]);
        memset(b->data, 'x', b->cap);
        block_unref(&b);
        assert_null(b);
    }
    struct block *none = NULL;
    block_unref(&none);
}

static void test_an_exact_block_has_no_more_room_than_asked_for(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, BLOCK_BYTES, BLOCK_BYTES + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct block *b = block_new_exact(sizes[i]);
        assert_int_equal(b->used, 0);
        assert_int_equal(block_room(b), sizes[i]);
        memset(b->data, 'x', b->cap);
        block_unref(&b);
        /* Small ones must not come back as ordinary ones. */
        b = block_new(BLOCK_BYTES);
        assert_true(block_room(b) >= BLOCK_BYTES);
        memset(b->data, 'x', b->cap);
        block_unref(&b);
    }
    struct block *b = block_new_exact(3);
    block_append(&b, "abc", 3);
    assert_int_equal(block_room(b), 0);
    block_append(&b, "defg", 4);
    assert_memory_equal(b->data, "abcdefg", 7);
    block_unref(&b);
}

static void test_a_block_lives_as_long_as_somebody_holds_it(void **state)
{
    (void)state;
    struct block *a = block_new(10);
    block_append(&a, "hello", 5);
    struct block *b = block_ref(a);
    assert_ptr_equal(a, b);
    block_unref(&a);
    assert_null(a);
    assert_memory_equal(b->data, "hello", 5);
    block_unref(&b);
}

static void test_ordinary_blocks_are_used_again_and_come_back_empty(void **state)
{
    (void)state;
    struct block *a = block_new(1);
    block_append(&a, "old", 3);
    struct block *was = a;
    block_unref(&a);
    a = block_new(BLOCK_BYTES);
    assert_ptr_equal(a, was);
    assert_int_equal(a->used, 0);
    assert_int_equal(a->refs, 1);
    block_unref(&a);
    a = block_new_small();
    block_append(&a, "old", 3);
    was = a;
    block_unref(&a);
    a = block_new_small();
    assert_ptr_equal(a, was);
    assert_int_equal(block_room(a), BLOCK_SMALL_BYTES);
    block_unref(&a);
}

static void test_no_more_than_4_mb_of_spare_blocks_are_kept(void **state)
{
    (void)state;
    enum { MANY = 600 };
    static struct block *blocks[MANY];
    for (int i = 0; i < MANY; i++) {
        blocks[i] = block_new(1);
    }
    for (int i = 0; i < MANY; i++) {
        block_unref(&blocks[i]);
    }
    /* The leak check of the sanitizer build sees whether the rest was freed. */
    block_thread_fini();
    struct block *b = block_new(1);
    block_unref(&b);
}

static void test_appending_moves_to_a_larger_block_and_keeps_the_bytes(void **state)
{
    (void)state;
    struct block *b = block_new(1);
    for (uint32_t i = 0; i < 100000; i++) {
        block_append(&b, &i, sizeof i);
    }
    assert_int_equal(b->used, 400000);
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t value;
        memcpy(&value, b->data + i * sizeof value, sizeof value);
        assert_int_equal(value, i);
    }
    static char large[3000000];
    block_append(&b, large, sizeof large);
    assert_int_equal(b->used, 3400000);
    block_append(&b, NULL, 0);
    assert_int_equal(b->used, 3400000);
    block_unref(&b);
}

static void *drop_references(void *arg)
{
    struct block **refs = arg;
    for (int i = 0; i < 1000; i++) {
        block_unref(&refs[i]);
    }
    block_thread_fini();
    return NULL;
}

static void test_references_may_be_dropped_in_any_thread(void **state)
{
    (void)state;
    static struct block *refs[2][1000];
    struct block *b = block_new(1);
    for (int i = 0; i < 2000; i++) {
        refs[i & 1][i / 2] = block_ref(b);
    }
    block_unref(&b);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, drop_references, refs[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_has_at_least_the_room_asked_for),
        cmocka_unit_test(test_an_exact_block_has_no_more_room_than_asked_for),
        cmocka_unit_test(test_a_block_lives_as_long_as_somebody_holds_it),
        cmocka_unit_test(test_ordinary_blocks_are_used_again_and_come_back_empty),
        cmocka_unit_test(test_no_more_than_4_mb_of_spare_blocks_are_kept),
        cmocka_unit_test(test_appending_moves_to_a_larger_block_and_keeps_the_bytes),
        cmocka_unit_test(test_references_may_be_dropped_in_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
