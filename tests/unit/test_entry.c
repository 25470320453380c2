/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_list.h"

static void test_entries_survive_the_round_trip(void **state)
{
    (void)state;
    static const char ops[] = "+-=!~";
    struct block *b = block_new(1);
    for (unsigned i = 0; i < ITEMS_MAX; i++) {
        size_t before = b->used;
        entry_append(&b, (enum entry_op)ops[i % 5], test_item(i));
        assert_int_equal(b->used - before, entry_bytes(test_item(i).len));
    }
    struct slice rest = block_slice(b);
    struct entry entry = {0};
    for (unsigned i = 0; i < ITEMS_MAX; i++) {
        assert_int_equal(entry_next(&rest, &entry), ENTRY_OK);
        assert_int_equal(entry.op, ops[i % 5]);
        assert_true(slice_equal(entry.bytes, test_item(i)));
    }
    assert_int_equal(entry_next(&rest, &entry), ENTRY_END);
    assert_int_equal(entry_next(&rest, &entry), ENTRY_END);
    block_unref(&b);
}

static void test_entries_look_as_documented(void **state)
{
    (void)state;
    struct block *b = block_new(1);
    entry_append(&b, ENTRY_ADD, SLICE_LIT("user-1234"));
    entry_append(&b, ENTRY_DEL, SLICE_LIT("a:+1"));
    entry_append(&b, ENTRY_CLEAR, SLICE_NONE);
    assert_true(slice_equal(block_slice(b), SLICE_LIT("+9:user-1234-4:a:+1!0:")));
    block_unref(&b);
}

static void test_sizes_are_right_at_each_power_of_ten(void **state)
{
    (void)state;
    assert_int_equal(entry_bytes(0), 3);
    assert_int_equal(entry_bytes(9), 12);
    assert_int_equal(entry_bytes(10), 14);
    assert_int_equal(entry_bytes(99), 103);
    assert_int_equal(entry_bytes(100), 105);
    assert_int_equal(entry_bytes(1000000), 1000009);
}

/* What is taken at once is what is taken by the long way: any two bytes behind the op, with enough
 * behind them for whatever they might be read as. */
static void test_short_entries_are_taken_as_all_others(void **state)
{
    (void)state;
    char text[160];
    memset(text, ':', sizeof text);
    for (unsigned i = 0; i < 5u << 16; i++) {
        text[0] = "+-=!@"[i >> 16];
        text[1] = (char)(i >> 8);
        text[2] = (char)i;
        for (size_t len = 1; len <= sizeof text; len += len < 8 ? 1 : 38) {
            struct slice a = slice_make(text, len), b = a;
            struct entry one = {0}, other = {0};
            assert_int_equal(entry_next(&a, &one), entry_next_any(&b, &other));
            assert_ptr_equal(a.p, b.p);
            assert_int_equal(a.len, b.len);
            assert_int_equal(one.op, other.op);
            assert_ptr_equal(one.bytes.p, other.bytes.p);
            assert_int_equal(one.bytes.len, other.bytes.len);
        }
    }
}

static void test_what_is_no_entry_is_malformed(void **state)
{
    (void)state;
    static const struct slice bad[] = {
        SLICE_LIT("+"),           SLICE_LIT("+1"),         SLICE_LIT("+:"),
        SLICE_LIT("+:a"),         SLICE_LIT("+1:"),        SLICE_LIT("+2:a"),
        SLICE_LIT("1:a"),         SLICE_LIT("+ 1:a"),      SLICE_LIT("+1 :a"),
        SLICE_LIT("+-1:a"),       SLICE_LIT("+1;a"),       SLICE_LIT("+0x1:a"),
        SLICE_LIT("*1:a"),        SLICE_LIT("%1:a"),       SLICE_LIT("\0"),
        SLICE_LIT("^1\n"),        SLICE_LIT("\n+1:a"),     SLICE_LIT("+00000001:a"),
        SLICE_LIT("+99999999:a"), SLICE_LIT("+9999999:a"), SLICE_LIT("+18446744073709551616:a"),
        SLICE_LIT("+1/a"),        SLICE_LIT("+\xff:a"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *exact = malloc(bad[i].len);
        memcpy(exact, bad[i].p, bad[i].len);
        struct slice rest = slice_make(exact, bad[i].len);
        struct entry entry;
        assert_int_equal(entry_next(&rest, &entry), ENTRY_MALFORMED);
        assert_ptr_equal(rest.p, exact);
        assert_int_equal(rest.len, bad[i].len);
        free(exact);
    }
}

static void test_every_op_byte_is_known_or_malformed(void **state)
{
    (void)state;
    for (unsigned op = 0; op < 256; op++) {
        char text[] = {(char)op, '1', ':', 'a'};
        struct slice rest = slice_make(text, sizeof text);
        struct entry entry;
        bool known = op != 0 && strchr("+-=!~?&.", (int)op) != NULL;
        assert_int_equal(entry_next(&rest, &entry), known ? ENTRY_OK : ENTRY_MALFORMED);
    }
}

/* A length of seven digits with that many bytes behind it is fine. */
static void test_the_longest_length_is_accepted(void **state)
{
    (void)state;
    enum { LEN = 9999999 };
    char *bytes = calloc(LEN, 1);
    assert_non_null(bytes);
    struct block *b = block_new(16);
    entry_append(&b, ENTRY_ADD, slice_make(bytes, LEN));
    struct slice rest = block_slice(b);
    struct entry entry;
    assert_int_equal(entry_next(&rest, &entry), ENTRY_OK);
    assert_int_equal(entry.bytes.len, LEN);
    assert_int_equal(rest.len, 0);
    rest = slice_make(b->data, b->used - 1);
    assert_int_equal(entry_next(&rest, &entry), ENTRY_MALFORMED);
    block_unref(&b);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_survive_the_round_trip),
        cmocka_unit_test(test_entries_look_as_documented),
        cmocka_unit_test(test_sizes_are_right_at_each_power_of_ten),
        cmocka_unit_test(test_short_entries_are_taken_as_all_others),
        cmocka_unit_test(test_what_is_no_entry_is_malformed),
        cmocka_unit_test(test_every_op_byte_is_known_or_malformed),
        cmocka_unit_test(test_the_longest_length_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
