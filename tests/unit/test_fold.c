/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_list.h"

static void assert_folds_to(const char *log, const char *entries)
{
    struct block *b = fold_entries(slice_of(log), false, NULL);
    assert_int_equal(b->used, strlen(entries));
    assert_memory_equal(b->data, entries, b->used);
    block_unref(&b);
}

static void test_an_item_is_added_deleted_or_added_anew(void **state)
{
    (void)state;
    assert_folds_to("", "");
    assert_folds_to("+1:a", "+1:a");
    assert_folds_to("-1:a", "-1:a");
    assert_folds_to("=1:a", "=1:a");
    assert_folds_to("+1:a+1:a", "+1:a");
    assert_folds_to("+1:a-1:a", "-1:a");
    assert_folds_to("-1:a+1:a", "=1:a");
    assert_folds_to("-1:a+1:a+1:a", "=1:a");
    assert_folds_to("-1:a+1:a-1:a", "-1:a");
    assert_folds_to("=1:a+1:a", "=1:a");
    assert_folds_to("+1:a=1:a", "=1:a");
    assert_folds_to("=1:a-1:a", "-1:a");
}

static void test_a_time_holds_until_another_word_on_the_item(void **state)
{
    (void)state;
    assert_folds_to("@3:9:a", "@3:9:a");
    assert_folds_to("@3:9:a@3:8:a", "@3:8:a");
    assert_folds_to("+1:a@3:9:a", "@3:9:a");
    assert_folds_to("-1:a@3:9:a", "@3:9:a");
    assert_folds_to("@3:9:a+1:a", "=1:a");
    assert_folds_to("@3:9:a=1:a", "=1:a");
    assert_folds_to("@3:9:a-1:a", "-1:a");
    assert_folds_to("@3:9:a-1:a+1:a", "=1:a");
    assert_folds_to("@3:9:a+1:a+1:b+1:a", "=1:a+1:b");
    assert_folds_to("@3:9:a+1:b@3:7:a", "+1:b@3:7:a");
}

static void test_what_is_over_counts_as_deleted(void **state)
{
    (void)state;
    struct fold fold;
    struct entry entry;
    uint32_t at = 0;
    fold_init(&fold);
    assert_true(fold_apply_entries(&fold, SLICE_LIT("@3:8:a@3:9:b")));
    assert_true(fold_next_entry(&fold, false, 8, &at, &entry));
    assert_true(entry.op == ENTRY_DEL && entry.until_s == 0);
    assert_true(fold_next_entry(&fold, false, 8, &at, &entry));
    assert_true(entry.op == ENTRY_TIMED && entry.until_s == 9);
    at = 0;
    assert_true(fold_next_entry(&fold, true, 8, &at, &entry));
    assert_true(slice_equal(entry.bytes, SLICE_LIT("b")));
    assert_false(fold_next_entry(&fold, true, 8, &at, &entry));
    /* The place below does not hold, over or not. */
    assert_int_equal(fold_over(&fold, ENTRY_ADD, SLICE_LIT("a")), 0);
    fold_fini(&fold);
    fold_init(&fold);
    assert_true(fold_apply_entries(&fold, SLICE_LIT("+1:a")));
    assert_int_equal(fold_over(&fold, ENTRY_TIMED, SLICE_LIT("a")), 0);
    assert_int_equal(fold_outcome(&fold, SLICE_LIT("a")), ENTRY_READD);
    fold_fini(&fold);
}

static void test_places_are_those_of_the_last_absence(void **state)
{
    (void)state;
    assert_folds_to("+1:a+1:b+1:a", "+1:a+1:b");
    assert_folds_to("+1:a+1:b-1:a+1:a", "+1:b=1:a");
    assert_folds_to("+1:a+1:b=1:a", "+1:b=1:a");
    assert_folds_to("+1:a+1:b-1:a+1:c+1:a-1:b+1:b", "+1:c=1:a=1:b");
}

static void test_clearing_forgets_all_that_was_before(void **state)
{
    (void)state;
    bool cleared = false;
    struct block *b = fold_entries(SLICE_LIT("+1:a-1:b!0:+1:b+1:c-1:b+1:b-1:x"), false, &cleared);
    assert_true(cleared);
    assert_true(slice_equal(block_slice(b), SLICE_LIT("+1:c+1:b")));
    block_unref(&b);
    b = fold_entries(SLICE_LIT("+1:a!0:"), false, &cleared);
    assert_true(cleared);
    assert_int_equal(b->used, 0);
    block_unref(&b);
    b = fold_entries(SLICE_LIT("+1:a"), false, &cleared);
    assert_false(cleared);
    block_unref(&b);
}

static void test_announcements_are_passed_over(void **state)
{
    (void)state;
    assert_folds_to("+1:a~17:aaaaaaaaaaaaa.1.1-1:b", "+1:a-1:b");
}

static void test_malformed_entries_are_reported_and_what_precedes_them_counts(void **state)
{
    (void)state;
    struct fold fold;
    fold_init(&fold);
    assert_false(fold_apply_entries(&fold, SLICE_LIT("+1:a+1:b+5:c")));
    assert_int_equal(fold_outcome(&fold, SLICE_LIT("a")), '+');
    assert_int_equal(fold_outcome(&fold, SLICE_LIT("b")), '+');
    assert_int_equal(fold_outcome(&fold, SLICE_LIT("c")), 0);
    assert_false(fold_apply_entries(&fold, SLICE_LIT("*1:x")));
    fold_fini(&fold);
    fold_fini(&fold);
}

/* The items are in the fold's own memory: the log may go. */
static void test_items_outlive_the_log(void **state)
{
    (void)state;
    struct fold fold;
    fold_init(&fold);
    char log[] = "+4:item";
    assert_true(fold_apply_entries(&fold, slice_make(log, sizeof log - 1)));
    memset(log, 'x', sizeof log);
    assert_int_equal(fold_outcome(&fold, SLICE_LIT("item")), '+');
    fold_fini(&fold);
}

/* What is added after it is copied again. */
static void test_items_of_a_log_that_stays_are_not_copied(void **state)
{
    (void)state;
    struct fold fold;
    fold_init(&fold);
    char run[] = "+5:older", log[] = "+4:item";
    assert_true(fold_apply_held(&fold, slice_make(log, sizeof log - 1)));
    assert_ptr_equal(fold_find(&fold, SLICE_LIT("item"))->item.p, log + 3);
    assert_true(fold_apply_entries(&fold, slice_make(run, sizeof run - 1)));
    assert_ptr_not_equal(fold_find(&fold, SLICE_LIT("older"))->item.p, run + 3);
    fold_fini(&fold);
}

static void test_many_items_keep_their_order(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct fold fold;
    fold_init(&fold);
    char text[20];
    for (uint64_t i = 0; i < MANY; i++) {
        fold_apply(&fold, ENTRY_ADD, slice_make(text, format_u64(text, i)));
    }
    for (uint64_t i = 0; i < MANY; i += 2) {
        fold_apply(&fold, ENTRY_DEL, slice_make(text, format_u64(text, i)));
    }
    for (uint64_t i = 0; i < MANY; i += 4) {
        fold_apply(&fold, ENTRY_ADD, slice_make(text, format_u64(text, i)));
    }
    assert_true(fold_bytes(&fold) >= MANY * sizeof(struct fold_item));
    assert_true(fold_bytes(&fold) <= 40 * MANY * sizeof(struct fold_item));
    uint32_t at = 0;
    struct entry entry;
    struct slice item = SLICE_NONE;
    for (uint64_t i = 1; i < MANY; i += 2) {
        assert_true(fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item));
        assert_true(slice_equal(item, slice_make(text, format_u64(text, i))));
    }
    for (uint64_t i = 0; i < MANY; i += 4) {
        assert_true(fold_next_entry(&fold, true, ENTRY_NEVER_OVER, &at, &entry));
        assert_int_equal(entry.op, '+');
        assert_true(slice_equal(entry.bytes, slice_make(text, format_u64(text, i))));
    }
    assert_false(fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item));
    fold_fini(&fold);
}

static struct log_shape random_shape(struct rng *rng)
{
    struct log_shape shape = {
        .items = 1 + (unsigned)rng_below(rng, rng_below(rng, 3) == 0 ? ITEMS_MAX : 8),
        .entries = (unsigned)rng_below(rng, 60),
        .clear_in = rng_below(rng, 3) == 0 ? 30 : 0,
        .readd = rng_below(rng, 2) == 0,
        .announcements = rng_below(rng, 2) == 0,
    };
    return shape;
}

static struct block *random_block(struct rng *rng)
{
    struct log_shape shape = random_shape(rng);
    return random_log(rng, &shape);
}

/* Whatever a list held before, replaying the fold does what replaying the log does. */
static void test_folding_keeps_content_and_order(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 1);
    for (int round = 0; round < 5000; round++) {
        struct block *before = random_block(&rng), *log = random_block(&rng);
        struct model by_log = {.count = 0}, by_fold = {.count = 0};
        bool oldest = rng_below(&rng, 3) == 0, cleared;
        struct block *folded = fold_entries(block_slice(log), oldest, &cleared);
        if (!oldest) {
            model_replay(&by_log, block_slice(before));
            if (!cleared) {
                model_replay(&by_fold, block_slice(before));
            }
        }
        model_replay(&by_log, block_slice(log));
        model_replay(&by_fold, block_slice(folded));
        assert_same_model(&by_log, &by_fold);
        block_unref(&folded);
        block_unref(&log);
        block_unref(&before);
    }
}

/* Folded once, each item stands there once, with the outcome that fold_outcome names. */
static void test_each_item_is_yielded_once_with_its_outcome(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 2);
    for (int round = 0; round < 500; round++) {
        struct block *log = random_block(&rng);
        struct fold fold;
        fold_init(&fold);
        assert_true(fold_apply_entries(&fold, block_slice(log)));
        bool seen[ITEMS_MAX] = {false};
        uint32_t at = 0;
        struct entry entry;
        while (fold_next_entry(&fold, false, ENTRY_NEVER_OVER, &at, &entry)) {
            assert_int_equal(entry.op, fold_outcome(&fold, entry.bytes));
            unsigned n = 0;
            while (!slice_equal(test_item(n), entry.bytes)) {
                n++;
            }
            assert_false(seen[n]);
            seen[n] = true;
        }
        for (unsigned i = 0; i < ITEMS_MAX; i++) {
            assert_int_equal(seen[i], fold_outcome(&fold, test_item(i)) != 0);
        }
        fold_fini(&fold);
        block_unref(&log);
    }
}

static int by_text(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = len == 0 ? 0 : memcmp(x->p, y->p, len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* Splits entries: those that add as they come, the deleted items sorted. Returns their number. */
static size_t split(struct slice entries, struct block **adds, struct slice deleted[ITEMS_MAX])
{
    struct entry entry;
    size_t count = 0;
    while (entry_next(&entries, &entry) == ENTRY_OK) {
        if (entry.op == ENTRY_DEL) {
            assert_true(count < ITEMS_MAX);
            deleted[count++] = entry.bytes;
        } else {
            entry_append(adds, (enum entry_op)entry.op, entry.bytes);
        }
    }
    qsort(deleted, count, sizeof deleted[0], by_text);
    return count;
}

/* The same entries; only where a '-' stands does not matter. */
static void assert_same_entries(struct slice a, struct slice b)
{
    struct block *adds[2] = {block_new(1), block_new(1)};
    struct slice deleted[2][ITEMS_MAX];
    size_t count = split(a, &adds[0], deleted[0]);
    assert_int_equal(split(b, &adds[1], deleted[1]), count);
    assert_true(slice_equal(block_slice(adds[0]), block_slice(adds[1])));
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_equal(deleted[0][i], deleted[1][i]));
    }
    block_unref(&adds[0]);
    block_unref(&adds[1]);
}

/* fold(A then B) is fold(B) laid over fold(A), whether something lies below A or not. */
static void test_folds_compose(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 3);
    for (int round = 0; round < 5000; round++) {
        bool oldest = rng_below(&rng, 2) == 0, a_cleared;
        struct block *a = random_block(&rng), *b = random_block(&rng);
        struct block *both = block_of(block_slice(a));
        block_append(&both, b->data, b->used);
        struct block *base = fold_entries(block_slice(a), oldest, &a_cleared);
        struct block *laid = merge_entries(block_slice(base), block_slice(b), oldest || a_cleared);
        struct block *once = fold_entries(block_slice(both), oldest, NULL);
        assert_same_entries(block_slice(laid), block_slice(once));
        block_unref(&once);
        block_unref(&laid);
        block_unref(&base);
        block_unref(&both);
        block_unref(&b);
        block_unref(&a);
    }
}

/* A read may go over the base twice, first to count. */
static void test_a_second_pass_over_the_base_gives_the_same(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 4);
    for (int round = 0; round < 500; round++) {
        struct block *a = random_block(&rng), *b = random_block(&rng);
        struct block *base = fold_entries(block_slice(a), false, NULL);
        struct fold fold;
        fold_init(&fold);
        assert_true(fold_apply_entries(&fold, block_slice(b)));
        struct block *passes[2] = {block_new(1), block_new(1)};
        for (int pass = 0; pass < 2; pass++) {
            struct slice rest = block_slice(base);
            struct entry entry;
            uint32_t at = 0;
            while (entry_next(&rest, &entry) == ENTRY_OK) {
                char op = fold_over(&fold, entry.op, entry.bytes);
                if (op != 0) {
                    entry_append(&passes[pass], (enum entry_op)op, entry.bytes);
                }
            }
            while (fold_next_entry(&fold, false, ENTRY_NEVER_OVER, &at, &entry)) {
                entry_append(&passes[pass], (enum entry_op)entry.op, entry.bytes);
            }
        }
        assert_true(slice_equal(block_slice(passes[0]), block_slice(passes[1])));
        block_unref(&passes[0]);
        block_unref(&passes[1]);
        fold_fini(&fold);
        block_unref(&base);
        block_unref(&b);
        block_unref(&a);
    }
}

#define CHAIN_MAX 12

struct runs {
    struct block *entries[CHAIN_MAX];
    size_t count;
};

static void drop_runs(struct runs *runs, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++) {
        block_unref(&runs->entries[i]);
    }
    runs->count -= count;
    memmove(&runs->entries[at], &runs->entries[at + count],
            (runs->count - at) * sizeof runs->entries[0]);
}

/* A flip: the piece of log becomes the newest run; a '!' in it makes all older ones vanish. */
static void flip(struct runs *runs, struct slice log)
{
    bool cleared;
    struct block *b = fold_entries(log, runs->count == 0, &cleared);
    if (cleared) {
        drop_runs(runs, 0, runs->count);
    }
    runs->entries[runs->count++] = b;
}

/* Merges as the engine does: all but the oldest are folded in memory, the oldest passes through. */
static void merge(struct runs *runs, size_t at, size_t count)
{
    struct block *newer = block_new(1);
    for (size_t i = at + 1; i < at + count; i++) {
        block_append(&newer, runs->entries[i]->data, runs->entries[i]->used);
    }
    struct block *merged =
        merge_entries(block_slice(runs->entries[at]), block_slice(newer), at == 0);
    block_unref(&newer);
    drop_runs(runs, at + 1, count - 1);
    block_unref(&runs->entries[at]);
    runs->entries[at] = merged;
}

static void assert_replays_to(const struct runs *runs, const struct model *want)
{
    struct model m = {.count = 0};
    for (size_t i = 0; i < runs->count; i++) {
        model_replay(&m, block_slice(runs->entries[i]));
    }
    assert_same_model(&m, want);
}

static void test_runs_merged_in_any_grouping_replay_to_the_same_list(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 5);
    for (int round = 0; round < 1500; round++) {
        struct model want = {.count = 0};
        struct runs runs = {.count = 0};
        struct block *logs[CHAIN_MAX] = {NULL}; /* the model's items live in them */
        for (uint64_t n = 1 + rng_below(&rng, CHAIN_MAX); n > 0; n--) {
            logs[n - 1] = random_block(&rng);
            model_replay(&want, block_slice(logs[n - 1]));
            flip(&runs, block_slice(logs[n - 1]));
            assert_replays_to(&runs, &want);
            if (rng_below(&rng, 5) == 0) {
                size_t at = (size_t)rng_below(&rng, runs.count);
                merge(&runs, at, 1 + (size_t)rng_below(&rng, runs.count - at));
                assert_replays_to(&runs, &want);
            }
        }
        while (runs.count > 1) {
            size_t at = (size_t)rng_below(&rng, runs.count);
            merge(&runs, at, 1 + (size_t)rng_below(&rng, runs.count - at));
            assert_replays_to(&runs, &want);
        }
        /* One run from the beginning on: nothing but the items. */
        merge(&runs, 0, 1);
        struct slice rest = block_slice(runs.entries[0]);
        struct entry entry = {0};
        for (size_t i = 0; i < want.count; i++) {
            assert_int_equal(entry_next(&rest, &entry), ENTRY_OK);
            assert_int_equal(entry.op, '+');
            assert_true(slice_equal(entry.bytes, want.items[i]));
        }
        assert_int_equal(rest.len, 0);
        drop_runs(&runs, 0, runs.count);
        for (size_t i = 0; i < CHAIN_MAX; i++) {
            block_unref(&logs[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_item_is_added_deleted_or_added_anew),
        cmocka_unit_test(test_places_are_those_of_the_last_absence),
        cmocka_unit_test(test_clearing_forgets_all_that_was_before),
        cmocka_unit_test(test_announcements_are_passed_over),
        cmocka_unit_test(test_malformed_entries_are_reported_and_what_precedes_them_counts),
        cmocka_unit_test(test_items_outlive_the_log),
        cmocka_unit_test(test_items_of_a_log_that_stays_are_not_copied),
        cmocka_unit_test(test_many_items_keep_their_order),
        cmocka_unit_test(test_folding_keeps_content_and_order),
        cmocka_unit_test(test_a_time_holds_until_another_word_on_the_item),
        cmocka_unit_test(test_what_is_over_counts_as_deleted),
        cmocka_unit_test(test_each_item_is_yielded_once_with_its_outcome),
        cmocka_unit_test(test_folds_compose),
        cmocka_unit_test(test_a_second_pass_over_the_base_gives_the_same),
        cmocka_unit_test(test_runs_merged_in_any_grouping_replay_to_the_same_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
