/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <cmocka.h>

#include "support_memory.h"

#include "base/arena.h"
#include "base/block.h"

/* A sanitizer has an allocator of its own, which keeps what is freed. gcc and clang name them
 * differently. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#define HELD(b) (sizeof(struct block) + (b)->cap)

static uint64_t held_exactly(void)
{
    memory_settle();
    return memory_held();
}

static void test_what_is_taken_and_given_adds_up(void **state)
{
    (void)state;
    uint64_t before = held_exactly();
    memory_take(1000);
    memory_take(500);
    assert_int_equal(held_exactly(), before + 1500);
    memory_give(1500);
    assert_int_equal(held_exactly(), before);
}

static void test_small_changes_are_told_later_large_ones_at_once(void **state)
{
    (void)state;
    uint64_t before = held_exactly();
    memory_take(MEMORY_SLACK_BYTES);
    assert_int_equal(memory_held(), before);
    memory_take(1);
    assert_int_equal(memory_held(), before + MEMORY_SLACK_BYTES + 1);
    memory_give(MEMORY_SLACK_BYTES + 1);
    assert_int_equal(memory_held(), before);
}

static void test_blocks_count_from_first_to_last_reference(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, BLOCK_BYTES, BLOCK_BYTES + 1, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        block_drop_spare();
        uint64_t before = held_exactly();
        struct block *b = block_new(sizes[i]);
        struct block *second = block_ref(b);
        uint64_t bytes = HELD(b);
        assert_int_equal(held_exactly(), before + bytes);
        block_unref(&b);
        assert_int_equal(held_exactly(), before + bytes);
        block_unref(&second);
        /* Spare ones count as long as they are kept. */
        block_drop_spare();
        assert_int_equal(held_exactly(), before);
    }
}

static void test_spare_blocks_are_as_many_as_allowed(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    const size_t ordinary = sizeof(struct block) + BLOCK_BYTES, limit = 5 * ordinary;
    const size_t small = sizeof(struct block) + BLOCK_SMALL_BYTES;
    struct block *blocks[2 * COUNT];
    block_drop_spare();
    uint64_t before = held_exactly();
    block_limit_spare(limit);
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = block_new(1);
        blocks[COUNT + i] = block_new_small();
    }
    for (int i = 0; i < 2 * COUNT; i++) {
        block_unref(&blocks[i]);
    }
    uint64_t kept = held_exactly() - before;
    assert_int_equal(kept / ordinary, 4);
    assert_true(kept % ordinary > 10 * small && kept <= limit);
    block_limit_spare((size_t)4 << 20);
    block_drop_spare();
    assert_int_equal(held_exactly(), before);
}

static void *take_here_give_there(void *arg)
{
    struct block **blocks = arg;
    for (int i = 0; i < 100; i++) {
        block_unref(&blocks[i]);
    }
    assert_int_equal(memory_held_here(), 0);
    block_thread_fini();
    return NULL;
}

static void test_what_another_thread_frees_is_given(void **state)
{
    (void)state;
    struct block *blocks[100];
    pthread_t thread;
    block_drop_spare();
    uint64_t before = held_exactly(), here = memory_held_here();
    for (int i = 0; i < 100; i++) {
        blocks[i] = block_new(50000);
    }
    assert_true(memory_held_here() >= here + 100 * 50000);
    assert_int_equal(pthread_create(&thread, NULL, take_here_give_there, blocks), 0);
    pthread_join(thread, NULL);
    assert_int_equal(held_exactly(), before);
    memory_give(0);
}

static size_t resident_bytes(void)
{
    char text[256];
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    return strtoul(strchr(text, ' '), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_a_lot_that_was_freed_is_handed_back(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    static struct block *blocks[COUNT], *between[COUNT];
    memory_trim();
    size_t before = resident_bytes();
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = block_new_exact(20000);
        memset(blocks[i]->data, 'x', 20000);
        /* Without these the allocator would give it back by itself. */
        between[i] = block_new_exact(100);
    }
    assert_false(memory_wants_trim());
    for (int i = 0; i < COUNT; i++) {
        block_unref(&blocks[i]);
    }
    memory_settle();
    assert_true(memory_wants_trim());
    memory_trim();
    assert_false(memory_wants_trim());
#ifndef SANITIZED
    assert_true(resident_bytes() < before + 60 * 1000000);
#else
    (void)before;
#endif
    for (int i = 0; i < COUNT; i++) {
        block_unref(&between[i]);
    }
}

static void test_arenas_are_no_clients_memory_but_are_handed_back(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    memory_trim();
    uint64_t before = held_exactly();
    for (int i = 0; i < 100; i++) {
        (void)arena_alloc(&a, 250000);
    }
    assert_int_equal(held_exactly(), before);
    arena_fini(&a);
    memory_settle();
    assert_true(memory_wants_trim());
    memory_trim();
}

static void test_without_memory_the_process_ends_in_order(void **state)
{
    (void)state;
#ifndef SANITIZED
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {(rlim_t)64 << 20, (rlim_t)64 << 20};
        (void)setrlimit(RLIMIT_AS, &limit);
        for (int i = 0; i < 200; i++) {
            (void)block_new(1000000);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_OSERR);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken_and_given_adds_up),
        cmocka_unit_test(test_small_changes_are_told_later_large_ones_at_once),
        cmocka_unit_test(test_blocks_count_from_first_to_last_reference),
        cmocka_unit_test(test_spare_blocks_are_as_many_as_allowed),
        cmocka_unit_test(test_what_another_thread_frees_is_given),
        cmocka_unit_test(test_a_lot_that_was_freed_is_handed_back),
        cmocka_unit_test(test_arenas_are_no_clients_memory_but_are_handed_back),
        cmocka_unit_test(test_without_memory_the_process_ends_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
