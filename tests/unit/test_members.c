/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_list.h"

static void test_the_log_decides_what_it_mentions(void **state)
{
    (void)state;
    const struct slice items[] = {SLICE_LIT("a"), SLICE_LIT("b"), SLICE_LIT("c"), SLICE_LIT("d"),
                                  SLICE_LIT("a")};
    struct members m;
    members_init(&m, items, 5, ENTRY_NEVER_OVER);
    assert_int_equal(m.unknown, 5);
    members_feed_log(&m, SLICE_LIT("+1:a-1:b~17:aaaaaaaaaaaaa.1.1-1:d=1:d"), (struct cap){0});
    assert_int_equal(m.unknown, 1);
    assert_true(members_has(&m, 0));
    assert_false(members_has(&m, 1));
    assert_int_equal(m.verdict[2], 0);
    assert_true(members_has(&m, 3));
    assert_true(members_has(&m, 4));
    members_fini(&m);
}

static void test_after_a_clear_everything_is_decided(void **state)
{
    (void)state;
    struct slice items[20];
    for (unsigned count = 1; count <= 20; count++) {
        for (unsigned i = 0; i < count; i++) {
            items[i] = test_item(20 + i);
        }
        struct members m;
        members_init(&m, items, count, ENTRY_NEVER_OVER);
        members_feed_log(&m, SLICE_LIT("+7:user-20!0:+7:user-21"), (struct cap){0});
        assert_int_equal(m.unknown, 0);
        for (unsigned i = 0; i < count; i++) {
            assert_int_equal(members_has(&m, i), i == 1);
        }
        members_fini(&m);
    }
}

static void test_the_newest_word_counts_and_the_scan_ends_early(void **state)
{
    (void)state;
    const struct slice items[] = {SLICE_LIT("a"), SLICE_LIT("b")};
    struct test_run newer, older;
    test_run_init(&newer, SLICE_LIT("-1:a+1:x"), 10, ',');
    test_run_init(&older, SLICE_LIT("+1:a+1:b"), 10, ',');
    struct members m;
    members_init(&m, items, 2, ENTRY_NEVER_OVER);
    members_feed_log(&m, SLICE_NONE, (struct cap){0});
    assert_true(members_feed_sublist(&m, newer.sublists[0]));
    assert_int_equal(m.unknown, 1);
    assert_false(members_feed_sublist(&m, older.sublists[0]));
    assert_int_equal(m.unknown, 0);
    assert_false(members_has(&m, 0));
    assert_true(members_has(&m, 1));
    members_fini(&m);
    test_run_fini(&newer);
    test_run_fini(&older);
}

static void test_asking_for_nothing_needs_no_sublist(void **state)
{
    (void)state;
    struct members m;
    members_init(&m, NULL, 0, ENTRY_NEVER_OVER);
    members_feed_log(&m, SLICE_LIT("+1:a"), (struct cap){0});
    assert_int_equal(m.unknown, 0);
    members_fini(&m);
    members_fini(&m);
}

#define RUNS_MAX 4

/* Asks for random items of a list of random runs and compares with the model. */
static void ask_at_random(struct rng *rng)
{
    struct model model = {.count = 0};
    struct test_run runs[RUNS_MAX];
    struct block *logs[RUNS_MAX + 1], *entries[RUNS_MAX];
    size_t run_count = (size_t)rng_below(rng, RUNS_MAX + 1);
    struct log_shape shape = {.items = 40, .entries = 30, .readd = true};
    for (size_t i = 0; i < run_count; i++) {
        logs[i] = random_log(rng, &shape);
        entries[i] = fold_entries(block_slice(logs[i]), rng_below(rng, 2) == 0 && i == 0, NULL);
        model_replay(&model, block_slice(entries[i]));
        test_run_init(&runs[i], block_slice(entries[i]), 1 + (uint32_t)rng_below(rng, 10), ',');
    }
    shape = (struct log_shape){
        .items = 40, .entries = 12, .clear_in = 40, .readd = true, .announcements = true};
    logs[run_count] = random_log(rng, &shape);
    model_replay(&model, block_slice(logs[run_count]));
    struct slice items[20];
    size_t count = 1 + (size_t)rng_below(rng, 20);
    for (size_t i = 0; i < count; i++) {
        items[i] = test_item((unsigned)rng_below(rng, 50));
    }
    struct members m;
    members_init(&m, items, count, ENTRY_NEVER_OVER);
    members_feed_log(&m, block_slice(logs[run_count]), (struct cap){0});
    bool more = m.unknown > 0;
    for (size_t i = run_count; i-- > 0;) {
        for (uint32_t n = 0; more && n < runs[i].run.range.count; n++) {
            more = members_feed_sublist(&m, runs[i].sublists[n]);
            assert_int_equal(more, m.unknown > 0);
        }
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(members_has(&m, i), model_has(&model, items[i]));
    }
    members_fini(&m);
    block_unref(&logs[run_count]);
    for (size_t i = 0; i < run_count; i++) {
        test_run_fini(&runs[i]);
        block_unref(&entries[i]);
        block_unref(&logs[i]);
    }
}

static void test_random_lists_agree_with_the_model(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 8);
    for (int round = 0; round < 3000; round++) {
        ask_at_random(&rng);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_log_decides_what_it_mentions),
        cmocka_unit_test(test_after_a_clear_everything_is_decided),
        cmocka_unit_test(test_the_newest_word_counts_and_the_scan_ends_early),
        cmocka_unit_test(test_asking_for_nothing_needs_no_sublist),
        cmocka_unit_test(test_random_lists_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
