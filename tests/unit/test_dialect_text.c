/* SPDX-License-Identifier: BSD-3-Clause */
#include "dialect/shared/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_list.h"

static const struct signs plus_minus = {'+', '-'};

static void append_item(struct block **b, struct slice item)
{
    block_append(b, "[", 1);
    block_append(b, item.p, item.len);
    block_append(b, "]", 1);
}

static void assert_holds(struct block **b, const char *expected)
{
    assert_true(slice_equal(block_slice(*b), slice_of(expected)));
    block_unref(b);
}

/* ---- delimited ---- */

static void assert_items(const char *text, const char *expected)
{
    struct block *input = block_of(slice_of(text)), *found = block_new(64);
    struct slice rest = block_slice(input), item;
    while (text_next(&rest, ',', &item)) {
        assert_true(item.len > 0);
        append_item(&found, item);
    }
    assert_int_equal(rest.len, 0);
    assert_false(text_next(&rest, ',', &item));
    assert_holds(&found, expected);
    block_unref(&input);
}

static void test_delimited_text(void **state)
{
    (void)state;
    assert_items("user-1234,user-222,user-987,", "[user-1234][user-222][user-987]");
    assert_items("user-1234,user-222", "[user-1234][user-222]");
    assert_items("a", "[a]");
    assert_items("", "");
    assert_items(",", "");
    assert_items(",,,", "");
    assert_items(",a,,b,,", "[a][b]");
    assert_items("a,a,", "[a][a]");
    assert_items("+1|x\r\n,y", "[+1|x\r\n][y]");
}

static void test_delimiters_are_any_byte(void **state)
{
    struct slice rest = slice_make("a\0bc\0\0d", 7), item;
    (void)state;
    assert_true(text_next(&rest, '\0', &item) && slice_equal(item, SLICE_LIT("a")));
    assert_true(text_next(&rest, '\0', &item) && slice_equal(item, SLICE_LIT("bc")));
    assert_true(text_next(&rest, '\0', &item) && slice_equal(item, SLICE_LIT("d")));
    assert_false(text_next(&rest, '\0', &item));
    rest = SLICE_LIT("a\xff"
                     "b\xff");
    assert_true(text_next(&rest, (char)0xff, &item) && slice_equal(item, SLICE_LIT("a")));
    assert_true(text_next(&rest, (char)0xff, &item) && slice_equal(item, SLICE_LIT("b")));
    assert_false(text_next(&rest, (char)0xff, &item));
}

static void test_what_is_appended_is_read(void **state)
{
    struct block *b = block_new(1);
    struct slice rest, item;
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        char digits[24];
        int len = snprintf(digits, sizeof digits, "item-%u", i);
        text_append(&b, slice_make(digits, (size_t)len), ';');
    }
    rest = block_slice(b);
    for (unsigned i = 0; i < 1000; i++) {
        char digits[24];
        snprintf(digits, sizeof digits, "item-%u", i);
        assert_true(text_next(&rest, ';', &item));
        assert_true(slice_equal(item, slice_of(digits)));
    }
    assert_false(text_next(&rest, ';', &item));
    block_unref(&b);
}

/* ---- signed ---- */

static void assert_entries(const char *text, const char *expected)
{
    struct block *input = block_of(slice_of(text)), *found = block_new(64);
    struct slice rest = block_slice(input), item;
    enum entry_op op;
    while (signed_next(&rest, plus_minus, &op, &item)) {
        assert_true(item.len > 0);
        assert_true(op == ENTRY_ADD || op == ENTRY_DEL);
        block_append(&found, op == ENTRY_ADD ? "+" : "-", 1);
        append_item(&found, item);
    }
    assert_int_equal(rest.len, 0);
    assert_holds(&found, expected);
    block_unref(&input);
}

static void test_signed_text(void **state)
{
    (void)state;
    assert_entries("+1234+222+987-222", "+[1234]+[222]+[987]-[222]");
    assert_entries("+a", "+[a]");
    assert_entries("-a", "-[a]");
    assert_entries("", "");
    assert_entries("+", "");
    assert_entries("+-+-", "");
    assert_entries("++a--b+", "+[a]-[b]");
    assert_entries("+-a", "-[a]");
    assert_entries("no sign", "");
    assert_entries("what stands before+a", "+[a]");
    assert_entries("+a,b -c\r\n", "+[a,b ]-[c\r\n]");
}

static void test_signed_text_with_other_signs(void **state)
{
    struct signs signs = {'\0', (char)0xfe};
    struct slice rest = slice_make("\0a+b\xfe"
                                   "c-d",
                                   8),
                 item;
    enum entry_op op;
    (void)state;
    assert_true(signed_next(&rest, signs, &op, &item));
    assert_true(op == ENTRY_ADD && slice_equal(item, SLICE_LIT("a+b")));
    assert_true(signed_next(&rest, signs, &op, &item));
    assert_true(op == ENTRY_DEL && slice_equal(item, SLICE_LIT("c-d")));
    assert_false(signed_next(&rest, signs, &op, &item));
}

static void test_entries_are_appended_as_the_manual_has_them(void **state)
{
    struct block *b = block_new(1);
    (void)state;
    signed_append(&b, ENTRY_ADD, SLICE_LIT("1234"), plus_minus);
    signed_append(&b, ENTRY_ADD, SLICE_LIT("222"), plus_minus);
    signed_append(&b, ENTRY_DEL, SLICE_LIT("222"), plus_minus);
    assert_holds(&b, "+1234+222-222");
}

/* ---- folding ---- */

static void assert_content(struct fold *fold, const char *expected)
{
    struct block *found = block_new(64);
    uint32_t at = 0;
    struct slice item;
    while (fold_next_item(fold, ENTRY_NEVER_OVER, &at, &item)) {
        append_item(&found, item);
    }
    assert_holds(&found, expected);
    fold_fini(fold);
}

static void assert_signed(const char *text, const char *expected)
{
    struct fold fold;
    fold_init(&fold);
    signed_fold(&fold, slice_of(text), plus_minus);
    assert_content(&fold, expected);
}

static void test_the_later_sign_wins(void **state)
{
    (void)state;
    assert_signed("", "");
    assert_signed("+1234+222+987-222", "[1234][987]");
    assert_signed("+1234+222+987-222+222", "[1234][987][222]");
    assert_signed("+a+b+a", "[a][b]");
    assert_signed("-a+a", "[a]");
    assert_signed("+a-a", "");
    assert_signed("+a-a-a", "");
    assert_signed("+a+b-a+a-b+b-a", "[b]");
    assert_signed("-nobody", "");
}

static void test_logs_are_folded_one_behind_the_other(void **state)
{
    struct fold fold;
    (void)state;
    fold_init(&fold);
    signed_fold(&fold, SLICE_LIT("+a+b"), plus_minus);
    signed_fold(&fold, SLICE_NONE, plus_minus);
    signed_fold(&fold, SLICE_LIT("-a+c"), plus_minus);
    signed_fold(&fold, SLICE_LIT("+a"), plus_minus);
    assert_content(&fold, "[b][c][a]");
}

static void assert_counted(const char *adds, const char *deletes, const char *expected)
{
    struct fold fold;
    fold_init(&fold);
    counted_fold(&fold, slice_of(adds), slice_of(deletes), ',');
    assert_content(&fold, expected);
}

static void test_items_that_are_counted(void **state)
{
    (void)state;
    assert_counted("user-1234,user-222,user-987,", "user-222,", "[user-1234][user-987]");
    assert_counted("user-1234,user-222,user-987,user-222,", "user-222,",
                   "[user-1234][user-987][user-222]");
    assert_counted("a,", "a,a,", "");
    assert_counted("a,a,", "a,a,", "");
    assert_counted("a,b,a,c,a,", "a,a,", "[b][c][a]");
    assert_counted("a,b,a,", "", "[a][b]");
    assert_counted("a,b,a,c,a,", "a,", "[b][a][c]");
    assert_counted("", "a,", "");
    assert_counted("a", "b", "[a]");
    assert_counted("a,b", "b", "[a]");
    assert_counted(",,", ",,", "");
}

/* ---- counts ---- */

static void test_counts_of_many_items(void **state)
{
    enum { ITEMS = 5000 };
    struct block *text = block_new(1);
    struct counts counts;
    char name[24];
    (void)state;
    for (unsigned i = 0; i < ITEMS; i++) {
        for (unsigned times = 0; times < i % 4; times++) {
            int len = snprintf(name, sizeof name, "item%u", (i * 7919) % ITEMS);
            text_append(&text, slice_make(name, (size_t)len), ',');
        }
    }
    counts_init(&counts, block_slice(text), ',');
    for (unsigned i = 0; i < ITEMS; i++) {
        snprintf(name, sizeof name, "item%u", (i * 7919) % ITEMS);
        const uint32_t *count = counts_find(&counts, slice_of(name));
        assert_int_equal(count == NULL ? 0 : *count, i % 4);
    }
    assert_null(counts_find(&counts, SLICE_LIT("item")));
    assert_int_equal(counts.used, ITEMS / 4 * 3);
    counts_fini(&counts);
    assert_null(counts_find(&counts, SLICE_LIT("item1")));
    block_unref(&text);
}

static void test_counts_of_nothing(void **state)
{
    struct counts counts;
    (void)state;
    counts_init(&counts, SLICE_NONE, ',');
    assert_null(counts_find(&counts, SLICE_LIT("a")));
    counts_fini(&counts);
    counts_init(&counts, SLICE_LIT(",,,"), ',');
    assert_null(counts_find(&counts, SLICE_LIT("a")));
    counts_fini(&counts);
}

/* ---- whatever there is ---- */

/* A fold by hand of the same text: the list in which each entry is carried out. */
static void test_random_logs_against_a_plain_list(void **state)
{
    struct rng rng;
    (void)state;
    rng_init_seed(&rng, 7);
    for (unsigned round = 0; round < 500; round++) {
        struct block *text = block_new(64);
        struct model model = {.count = 0};
        struct fold fold;
        static const char names[] = "abcdefgh";
        for (unsigned n = (unsigned)rng_below(&rng, 40); n > 0; n--) {
            struct slice item = slice_make(&names[rng_below(&rng, 8)], 1);
            enum entry_op op = rng_below(&rng, 2) == 0 ? ENTRY_ADD : ENTRY_DEL;
            signed_append(&text, op, item, plus_minus);
            model_apply(&model, (char)op, item);
        }
        fold_init(&fold);
        signed_fold(&fold, block_slice(text), plus_minus);
        struct block *expected = block_new(64);
        for (size_t i = 0; i < model.count; i++) {
            append_item(&expected, model.items[i]);
        }
        block_append(&expected, "", 1);
        assert_content(&fold, expected->data);
        block_unref(&expected);
        block_unref(&text);
    }
}

/* Random bytes: both readers end, and every byte they give comes from the text. */
static void test_random_bytes(void **state)
{
    struct rng rng;
    (void)state;
    rng_init_seed(&rng, 8);
    for (unsigned round = 0; round < 2000; round++) {
        char bytes[64];
        size_t len = (size_t)rng_below(&rng, sizeof bytes + 1);
        for (size_t i = 0; i < len; i++) {
            bytes[i] =
                rng_below(&rng, 3) == 0 ? "+-,"[rng_below(&rng, 3)] : (char)rng_below(&rng, 256);
        }
        struct block *input = block_of(slice_make(bytes, len));
        struct slice rest = block_slice(input), item;
        enum entry_op op;
        size_t taken = 0;
        while (text_next(&rest, ',', &item)) {
            taken += item.len;
        }
        assert_true(taken <= len);
        rest = block_slice(input);
        taken = 0;
        while (signed_next(&rest, plus_minus, &op, &item)) {
            assert_null(memchr(item.p, '+', item.len));
            taken += item.len + 1;
        }
        assert_true(taken <= len);
        block_unref(&input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delimited_text),
        cmocka_unit_test(test_delimiters_are_any_byte),
        cmocka_unit_test(test_what_is_appended_is_read),
        cmocka_unit_test(test_signed_text),
        cmocka_unit_test(test_signed_text_with_other_signs),
        cmocka_unit_test(test_entries_are_appended_as_the_manual_has_them),
        cmocka_unit_test(test_the_later_sign_wins),
        cmocka_unit_test(test_logs_are_folded_one_behind_the_other),
        cmocka_unit_test(test_items_that_are_counted),
        cmocka_unit_test(test_counts_of_many_items),
        cmocka_unit_test(test_counts_of_nothing),
        cmocka_unit_test(test_random_logs_against_a_plain_list),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
