/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/entry.h"

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

static void test_what_is_no_entry_is_malformed(void **state)
{
    (void)state;
    static const struct slice bad[] = {
        SLICE_LIT("+"),           SLICE_LIT("+1"),         SLICE_LIT("+:"),
        SLICE_LIT("+:a"),         SLICE_LIT("+1:"),        SLICE_LIT("+2:a"),
        SLICE_LIT("1:a"),         SLICE_LIT("+ 1:a"),      SLICE_LIT("+1 :a"),
        SLICE_LIT("+-1:a"),       SLICE_LIT("+1;a"),       SLICE_LIT("+0x1:a"),
        SLICE_LIT("*1:a"),        SLICE_LIT("?1:a"),       SLICE_LIT("\0"),
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
        bool known = op != 0 && strchr("+-=!~", (int)op) != NULL;
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
        cmocka_unit_test(test_what_is_no_entry_is_malformed),
        cmocka_unit_test(test_every_op_byte_is_known_or_malformed),
        cmocka_unit_test(test_the_longest_length_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
