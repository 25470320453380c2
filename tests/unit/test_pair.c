/* SPDX-License-Identifier: BSD-3-Clause */
/* What two texts say together, and what they are folded to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dialect/paired/pair.h"

#define M1 "@5d0c81f2a4b69e37"
#define M2 "@0123456789abcdef"

static struct pair pair_of(const char *adds, const char *deletes)
{
    struct pair pair;
    pair_read(&pair, slice_of(adds), slice_of(deletes), ',');
    return pair;
}

/* The items that count, each followed by a blank. */
static void holds_until(const struct pair *pair, size_t until, const char *expected)
{
    struct fold fold;
    struct block *text = block_new(64);
    uint32_t at = 0;
    struct slice item;
    fold_init(&fold);
    pair_fold(pair, until, &fold);
    while (fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item)) {
        text_append(&text, item, ' ');
    }
    block_append(&text, "", 1);
    assert_string_equal(text->data, expected);
    block_unref(&text);
    fold_fini(&fold);
}

static void holds(const char *adds, const char *deletes, const char *expected)
{
    struct pair pair = pair_of(adds, deletes);
    holds_until(&pair, SIZE_MAX, expected);
}

static void folds_to(const char *adds, const char *deletes, const char *mark, const char *expected)
{
    struct pair pair = pair_of(adds, deletes);
    size_t until = *mark == '\0' ? 0 : pair_find(&pair, slice_of(mark));
    struct fold fold;
    fold_init(&fold);
    assert_true(until != SIZE_MAX);
    pair_fold(&pair, until, &fold);
    struct block *text = pair_folded(&pair, &fold, until, slice_of(mark));
    block_append(&text, "", 1);
    assert_string_equal(text->data, expected);
    block_unref(&text);
    fold_fini(&fold);
}

static void test_without_marks_items_are_counted(void **state)
{
    (void)state;
    holds("", "", "");
    holds("a,b,a,", "", "a b ");
    holds("a,b,a,", "a,", "b a ");
    holds("a,b", "b", "a ");
    holds(",,a,,b,", "a,a,", "b ");
    holds("a,", "b,", "a ");
}

static void test_deletions_before_the_mark_do_not_count(void **state)
{
    (void)state;
    holds("a," M1 ",b,", "b," M1 ",", "a b ");
    holds("a,b," M1 ",", "b," M1 ",a,", "b ");
    holds("a,b," M1 ",", M1 ",", "a b ");
    /* Not cut off, and a later one is being prepared. */
    holds("a,b," M1 ",", "b," M1 ",a,," M2 ",b,", "");
    /* A mark that arrives late stands there twice. */
    holds("a,b," M1 ",", "x," M1 ",a," M1 ",", "b ");
}

static void test_copies_before_the_mark_are_one(void **state)
{
    (void)state;
    holds("a,a,a,b," M1 ",", "a,a," M1 ",", "a b ");
    holds("a,a,a,b," M1 ",", "a,a," M1 ",a,", "b ");
    /* What was added since is counted. */
    holds("a,a,b," M1 ",a,", "a," M1 ",a,", "b a ");
    /* Without a mark copies are additions. */
    holds("a,a,", "a,", "a ");
}

static void test_marks_without_their_like(void **state)
{
    (void)state;
    holds("a,b,", M1 ",b,", "a ");
    holds("a,b,", "b,a," M1 ",", "");
    holds("a,b," M1 ",", "b,", "a ");
    holds("a,b," M1 ",", "", "a b ");
    holds("a,b," M1 ",", M2 ",b,", "a ");
    /* The last one of the additions is theirs. */
    holds("a," M1 ",b," M2 ",c,", "a," M1 ",b," M2 ",c,", "a b ");
}

static void test_what_is_a_mark(void **state)
{
    static const char *const others[] = {"",
                                         "@",
                                         "@5d0c81f2a4b69e3",
                                         "@5d0c81f2a4b69e370",
                                         "@5d0c81f2a4b69e3G",
                                         "@5D0C81F2A4B69E37",
                                         "x5d0c81f2a4b69e37",
                                         "~5d0c81f2a4b69e37"};
    char mark[TEXT_MARK_BYTES];
    (void)state;
    assert_true(text_is_mark(slice_of(M1), ','));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(text_is_mark(slice_of(others[i]), ','));
    }
    text_make_mark(mark, 0x5d0c81f2a4b69e37, ',');
    assert_memory_equal(mark, M1, sizeof mark);
    text_make_mark(mark, 0, '@');
    assert_true(text_is_mark(slice_make(mark, sizeof mark), '@'));
    holds("x" M1 ",a," M1 "x,", "", "x" M1 " a " M1 "x ");
    holds(M1, M1, "");
}

static void test_what_may_have_been_read_at_two_moments(void **state)
{
    (void)state;
    assert_false(pair_is_torn(&(struct pair){0}));
    struct pair pair = pair_of("a,", "a,");
    assert_false(pair_is_torn(&pair));
    pair = pair_of("a,", "a," M1 ",");
    assert_false(pair_is_torn(&pair)); /* not cut off yet */
    pair = pair_of("a,", M1 ",");
    assert_true(pair_is_torn(&pair)); /* the additions are older than the cut */
    pair = pair_of("a," M1 ",", "x," M1 "," M2 ",");
    assert_false(pair_is_torn(&pair));
    pair = pair_of("a," M1 ",", M2 ",x,");
    assert_true(pair_is_torn(&pair));
    pair = pair_of("a," M1 ",", "");
    assert_true(pair_is_torn(&pair));
}

static void test_what_is_to_be_done(void **state)
{
    (void)state;
    struct pair pair = pair_of("a," M1 ",", "bb,c," M1 ",dd,e,," M2 ",");
    assert_int_equal(pair.cut, 5);
    assert_int_equal(pair.pending_bytes, 5);
    assert_int_equal(pair.strays, 1);
    assert_true(slice_equal(pair.last, slice_of(M2)));
    pair = pair_of("a," M1 ",", M1 ",x," M2 ",y,");
    assert_int_equal(pair.cut, 0);
    assert_int_equal(pair.last.len, 0);
    assert_int_equal(pair_find(&pair, slice_of(M2)), 20);
    assert_int_equal(pair_find(&pair, slice_of(M1)), 0);
    assert_true(pair_find(&pair, SLICE_LIT("@ffffffffffffffff")) == SIZE_MAX);
    /* What the last release has left at rest is at rest. */
    pair = pair_of("a,", M1 ",");
    assert_int_equal(pair.cut + pair.pending_bytes + pair.strays, 0);
    pair = pair_of("a," M2 ",", M1 ",");
    assert_int_equal(pair.cut + pair.pending_bytes + pair.strays + pair.last.len, 0);
}

static void test_folding(void **state)
{
    (void)state;
    folds_to("a,b,a,", "", "", "a,b,");
    folds_to("a,b,c,", "b," M1 ",", M1, "a,c," M1 ",");
    /* Deletions behind the mark are not for this folding. */
    folds_to("a,b,c,", "b," M1 ",c,", M1, "a,c," M1 ",");
    /* Copies for those that subtract all deletions. */
    folds_to("a,b,c,b,", "b," M1 ",", M1, "a,c,b,b," M1 ",");
    folds_to("a,c,b,b," M1 ",", M1 ",", M1, "a,c,b," M1 ",");
    folds_to("a,b," M1 ",b,", "x," M1 ",b,y," M2 ",", M2, "a,b,b," M2 ",");
    folds_to("", "b," M1 ",", M1, M1 ",");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_marks_items_are_counted),
        cmocka_unit_test(test_deletions_before_the_mark_do_not_count),
        cmocka_unit_test(test_copies_before_the_mark_are_one),
        cmocka_unit_test(test_marks_without_their_like),
        cmocka_unit_test(test_what_is_a_mark),
        cmocka_unit_test(test_what_may_have_been_read_at_two_moments),
        cmocka_unit_test(test_what_is_to_be_done),
        cmocka_unit_test(test_folding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
