/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"

#include <stdalign.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

static void test_memory_is_aligned_and_never_shared(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static struct {
        unsigned char *p;
        size_t len;
    } got[MANY];
    struct rng rng;
    rng_init_seed(&rng, 11);
    struct arena a;
    arena_init(&a);
    size_t sum = 0;
    for (size_t i = 0; i < MANY; i++) {
        got[i].len = (size_t)rng_below(&rng, i % 100 == 0 ? 9000 : 60);
        if (i % 3 == 0) {
            char bytes[9000] = {0};
            got[i].p = (unsigned char *)arena_copy(&a, slice_make(bytes, got[i].len)).p;
        } else {
            got[i].p = arena_alloc(&a, got[i].len);
            assert_int_equal((uintptr_t)got[i].p % alignof(max_align_t), 0);
        }
        memset(got[i].p, (int)(i & 0xff), got[i].len);
        sum += got[i].len;
    }
    for (size_t i = 0; i < MANY; i++) {
        for (size_t k = 0; k < got[i].len; k++) {
            assert_int_equal(got[i].p[k], i & 0xff);
        }
    }
    assert_true(a.bytes >= sum);
    assert_true(a.bytes <= 4 * sum);
    arena_fini(&a);
    assert_int_equal(a.bytes, 0);
}

static void test_copies_do_not_depend_on_the_original(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    char text[] = "text";
    struct slice copy = arena_copy(&a, slice_make(text, 4));
    memset(text, 'x', 4);
    assert_true(slice_equal(copy, SLICE_LIT("text")));
    struct slice none = arena_copy(&a, SLICE_NONE);
    assert_int_equal(none.len, 0);
    assert_non_null(none.p);
    arena_fini(&a);
}

static void test_one_piece_may_be_larger_than_any_page(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    assert_non_null(arena_alloc(&a, 0));
    memset(arena_alloc(&a, 3000000), 1, 3000000);
    memset(arena_alloc(&a, 10), 1, 10);
    assert_true(a.bytes >= 3000010);
    arena_fini(&a);
}

static void test_it_may_be_used_again_after_giving_everything_back(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    for (int i = 0; i < 5; i++) {
        memset(arena_alloc(&a, 5000), 1, 5000);
        arena_fini(&a);
        assert_int_equal(a.bytes, 0);
    }
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_aligned_and_never_shared),
        cmocka_unit_test(test_copies_do_not_depend_on_the_original),
        cmocka_unit_test(test_one_piece_may_be_larger_than_any_page),
        cmocka_unit_test(test_it_may_be_used_again_after_giving_everything_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
