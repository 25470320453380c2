/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/core/run_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_list.h"

#define PER_SUBLIST 100u

static const struct slice list = {"users", 5};

static struct slice item_of(char out[24], unsigned number)
{
    return slice_make(out, (size_t)snprintf(out, 24, "user-%u", number));
}

/* Items first, first + 1, ... in sublists of PER_SUBLIST. */
static void feed(struct run_index_build *build, unsigned first, unsigned count)
{
    char text[24];
    for (unsigned i = 0; i < count; i++) {
        run_index_add(build, ENTRY_ADD, item_of(text, first + i));
        if (i % PER_SUBLIST == PER_SUBLIST - 1) {
            assert_true(run_index_end_sublist(build));
        }
    }
}

static struct locator *make(struct run_indexes *x, char letter, unsigned first, unsigned count)
{
    struct name name = test_name(letter);
    struct run_index_build *build =
        run_index_begin(x, list, &name, count / PER_SUBLIST, count / 2); /* a wrong guess */
    assert_non_null(build);
    feed(build, first, count);
    while (!run_index_sort(build)) {
    }
    return run_index_end(&build);
}

static bool has(struct run_indexes *x, char letter)
{
    struct name name = test_name(letter);
    struct locator *locator = run_indexes_get(x, list, &name);
    bool is_there = locator != NULL;
    locator_unref(&locator);
    return is_there;
}

static bool finds(const struct locator *l, unsigned number, uint32_t sublist)
{
    char text[24];
    struct locator_walk walk = locator_seek(l, locator_hash(item_of(text, number)));
    uint32_t part;
    while (locator_next(l, &walk, &part)) {
        if (part == sublist) {
            return true;
        }
    }
    return false;
}

/* So many that they are sorted in several steps. */
static void test_each_item_is_found_in_its_sublist(void **state)
{
    enum { COUNT = 200000 };
    (void)state;
    struct run_indexes *x = run_indexes_create(1 << 26, LOCATOR_CHECK_BITS);
    struct locator *l = make(x, 'a', 0, COUNT);
    assert_int_equal(l->entries, COUNT);
    assert_int_equal(l->sublists, COUNT / PER_SUBLIST);
    assert_true(l->all_add);
    unsigned wrong = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(finds(l, i, i / PER_SUBLIST));
        wrong += finds(l, COUNT + i, i / PER_SUBLIST);
    }
    for (uint32_t n = 0; n < l->sublists; n++) {
        assert_int_equal(l->counts[n], PER_SUBLIST);
    }
    assert_true(wrong < COUNT / 10000);
    assert_true(locator_bytes(l) < COUNT * 44 / 10);
    locator_unref(&l);
    run_indexes_destroy(&x);
}

static void test_what_is_kept_belongs_to_its_list(void **state)
{
    (void)state;
    struct run_indexes *x = run_indexes_create(1 << 20, LOCATOR_CHECK_BITS);
    struct locator *l = make(x, 'a', 0, PER_SUBLIST);
    locator_unref(&l);
    struct name name = test_name('a');
    assert_true(has(x, 'a'));
    assert_false(has(x, 'b'));
    assert_null(run_indexes_get(x, SLICE_LIT("user"), &name));
    run_indexes_drop(x, SLICE_LIT("user"), &name);
    assert_true(has(x, 'a'));
    run_indexes_drop(x, list, &name);
    assert_false(has(x, 'a'));
    run_indexes_destroy(&x);
    assert_null(x);
}

/* Those that were used last stay; one that others still read does, too. */
static void test_memory_is_bounded(void **state)
{
    enum { COUNT = 10 * PER_SUBLIST };
    (void)state;
    struct run_indexes *x = run_indexes_create(64 << 10, LOCATOR_CHECK_BITS);
    struct locator *first = make(x, 'a', 0, COUNT);
    for (char letter = 'b'; letter <= 'z'; letter++) {
        struct lru_stats stats;
        struct locator *l = make(x, letter, 0, COUNT);
        locator_unref(&l);
        assert_true(letter > 'h' || has(x, 'b'));
        run_indexes_get_stats(x, &stats);
        assert_in_range(stats.bytes, 1, stats.limit_bytes);
        assert_in_range(stats.entries, 1, 15);
    }
    assert_true(has(x, 'z'));
    assert_false(has(x, 'a'));
    assert_true(finds(first, 7, 0));
    locator_unref(&first);
    run_indexes_destroy(&x);
}

static void test_one_that_does_not_fit_is_given_up(void **state)
{
    (void)state;
    struct run_indexes *x = run_indexes_create(16 << 10, LOCATOR_CHECK_BITS);
    struct lru_stats stats;
    struct name name = test_name('b');
    struct locator *l = make(x, 'a', 0, PER_SUBLIST);
    locator_unref(&l);
    assert_false(run_indexes_would_fit(x, 100000));
    assert_null(run_index_begin(x, list, &name, 10, 100000));
    struct run_index_build *build = run_index_begin(x, list, &name, 100, 100);
    bool fits = true;
    char text[24];
    for (unsigned i = 0; i < 100000 && fits; i++) {
        run_index_add(build, ENTRY_ADD, item_of(text, i));
        fits = (i + 1) % PER_SUBLIST != 0 || run_index_end_sublist(build);
    }
    assert_false(fits);
    run_index_give_up(&build);
    assert_null(build);
    run_index_give_up(&build);
    run_indexes_get_stats(x, &stats);
    assert_int_equal(stats.bytes, 0); /* it took all that there was */
    run_indexes_destroy(&x);

    x = run_indexes_create(0, LOCATOR_CHECK_BITS);
    assert_null(run_index_begin(x, list, &name, 1, 0));
    run_indexes_destroy(&x);
}

static void test_one_worker_makes_it(void **state)
{
    (void)state;
    struct run_indexes *x = run_indexes_create(1 << 20, LOCATOR_CHECK_BITS);
    struct name a = test_name('a'), b = test_name('b');
    struct run_index_build *build = run_index_begin(x, list, &a, 1, 10);
    assert_null(run_index_begin(x, list, &a, 1, 10));
    struct run_index_build *other = run_index_begin(x, list, &b, 1, 10);
    assert_non_null(other);
    run_index_give_up(&build);
    build = run_index_begin(x, list, &a, 1, 10);
    assert_non_null(build);
    run_index_give_up(&build);
    run_index_give_up(&other);
    run_indexes_destroy(&x);
}

/* Without any entries, and with those that make a run more than a list of items. */
static void test_odd_runs(void **state)
{
    (void)state;
    struct run_indexes *x = run_indexes_create(1 << 20, LOCATOR_CHECK_BITS);
    struct name name = test_name('a');
    struct run_index_build *build = run_index_begin(x, list, &name, 3, 0);
    assert_true(run_index_end_sublist(build));
    run_index_add(build, ENTRY_DEL, SLICE_LIT("gone"));
    assert_true(run_index_end_sublist(build));
    while (!run_index_sort(build)) {
    }
    struct locator *l = run_index_end(&build);
    assert_false(l->all_add);
    assert_int_equal(l->sublists, 2);
    assert_int_equal(l->counts[0], 0);
    assert_int_equal(l->counts[1], 1);
    struct locator_walk walk = locator_seek(l, locator_hash(SLICE_LIT("gone")));
    uint32_t part = 0;
    assert_true(locator_next(l, &walk, &part));
    assert_int_equal(part, 1);
    assert_false(locator_next(l, &walk, &part));
    locator_unref(&l);
    run_indexes_destroy(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_item_is_found_in_its_sublist),
        cmocka_unit_test(test_what_is_kept_belongs_to_its_list),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_one_that_does_not_fit_is_given_up),
        cmocka_unit_test(test_one_worker_makes_it),
        cmocka_unit_test(test_odd_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
