/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/client/verb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_every_row_is_found_by_its_text(void **state)
{
    (void)state;
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        const struct verb_info *info = verb_info((enum verb)v);
        assert_int_equal(info->verb, v);
        assert_true(info->text.len >= 2);
        assert_ptr_equal(verb_find(info->text), info);
    }
}

static void test_rows_hold_what_the_table_says(void **state)
{
    (void)state;
    assert_int_equal(verb_info(VERB_GET)->shape, SHAPE_KEYS);
    assert_int_equal(verb_info(VERB_ladd)->shape, SHAPE_LIST_ITEMS);
    assert_int_equal(verb_info(VERB_lset)->shape, SHAPE_LIST_CONTENT);
    assert_int_equal(verb_info(VERB_lstat)->shape, SHAPE_LIST_KEY);
    assert_int_equal(verb_info(VERB_SLABS)->shape, SHAPE_REFUSED);
}

/* Everything one byte away from a verb is no verb, unless the table has it. */
static void test_neighbours_are_not_found(void **state)
{
    (void)state;
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        struct slice text = verb_info((enum verb)v)->text;
        char word[32];
        assert_true(text.len + 1 < sizeof word);
        for (size_t at = 0; at <= text.len; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                memcpy(word, text.p, text.len);
                word[at] = (char)byte;
                struct slice changed = {word, at == text.len ? text.len + 1 : text.len};
                const struct verb_info *found = verb_find(changed);
                assert_true(found == NULL || slice_equal(found->text, changed));
            }
        }
        assert_ptr_not_equal(verb_find(slice_make(text.p, text.len - 1)), verb_info((enum verb)v));
    }
}

static void test_words_with_leading_zero_bytes_are_not_found(void **state)
{
    (void)state;
    assert_null(verb_find(SLICE_LIT("\0get")));
    assert_null(verb_find(SLICE_LIT("\0\0mg")));
    assert_null(verb_find(SLICE_LIT("\0touch")));
    assert_null(verb_find(SLICE_LIT("")));
    assert_null(verb_find(SLICE_LIT("GET")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_is_found_by_its_text),
        cmocka_unit_test(test_rows_hold_what_the_table_says),
        cmocka_unit_test(test_neighbours_are_not_found),
        cmocka_unit_test(test_words_with_leading_zero_bytes_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
