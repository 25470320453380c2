/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "list/engine.h"
#include "support_list.h"

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, NAME_BYTES);
}

static void test_fresh_names_differ_and_can_be_read_back(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    static struct name names[MANY];
    struct rng rng;
    rng_init_system(&rng);
    for (int i = 0; i < MANY; i++) {
        name_fresh(&names[i], &rng);
        char text[NAME_BYTES + 11];
        struct name_range range = {names[i], (uint32_t)i}, back;
        size_t n = name_range_format(text, &range);
        assert_true(n <= sizeof text);
        struct slice rest = slice_make(text, n);
        assert_true(name_range_take(&rest, &back));
        assert_int_equal(rest.len, 0);
        assert_int_equal(back.count, i);
        assert_true(name_equal(&back.name, &names[i]));
    }
    qsort(names, MANY, sizeof names[0], by_bytes);
    for (int i = 1; i < MANY; i++) {
        assert_false(name_equal(&names[i], &names[i - 1]));
    }
}

/* All 64 bits count: a name drawn with any one bit changed is another name. */
static void test_every_bit_of_the_draw_is_in_the_name(void **state)
{
    (void)state;
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rng rng, again;
        rng_init_seed(&rng, seed);
        again = rng;
        struct name name;
        name_fresh(&name, &rng);
        uint64_t bits = 0;
        for (size_t i = NAME_BYTES; i-- > 0;) {
            const char *at = strchr(alphabet, name.text[i]);
            assert_non_null(at);
            bits = bits << 5 | (uint64_t)(at - alphabet);
        }
        assert_true(bits == rng_unique(&again));
    }
}

static void test_keys_are_made_of_list_name_and_number(void **state)
{
    (void)state;
    char key[KEY_BYTES_MAX];
    struct name name = test_name('q');
    uint8_t n = head_key(key, SLICE_LIT("topic-X"));
    assert_true(slice_equal(slice_make(key, n), SLICE_LIT("topic-X#")));
    n = sublist_key(key, SLICE_LIT("topic-X"), &name, 0);
    assert_true(slice_equal(slice_make(key, n), SLICE_LIT("topic-X#qqqqqqqqqqqqq.0")));
    n = sublist_key(key, SLICE_LIT("t"), &name, SUBLISTS_MAX);
    assert_true(slice_equal(slice_make(key, n), SLICE_LIT("t#qqqqqqqqqqqqq.9999999")));
}

static void test_the_longest_list_key_leaves_room_for_the_longest_sublist_key(void **state)
{
    (void)state;
    char list_key[LIST_KEY_BYTES_MAX], key[KEY_BYTES_MAX];
    memset(list_key, 'k', sizeof list_key);
    struct name name = test_name('q');
    struct slice s = slice_make(list_key, sizeof list_key);
    assert_int_equal(sublist_key(key, s, &name, SUBLISTS_MAX),
                     LIST_KEY_BYTES_MAX + 1 + NAME_BYTES + 1 + 7);
    assert_int_equal(head_key(key, s), LIST_KEY_BYTES_MAX + 1);
}

static void test_malformed_ranges_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "aaaaaaaaaaaaa",
        "aaaaaaaaaaaaa.",
        "aaaaaaaaaaaaa.x",
        "aaaaaaaaaaaa.1",
        "aaaaaaaaaaaaaa.1",
        "aaaaaaaaaaaaA.1",
        "aaaaaaaaaaaa1.1",
        "aaaaaaaaaaaa8.1",
        "aaaaaaaaaaaa .1",
        "aaaaaaaaaaaaa:1",
        "aaaaaaaaaaaaa.10000000",
        "aaaaaaaaaaaaa.4294967297",
        "aaaaaaaaaaaaa.-1",
        "aaaaaaaaaaaaa.000000000000000000001",
        "aaaaaaaaaaaaa.18446744073709551617",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t len = strlen(bad[i]);
        char *exact = malloc(len + 1);
        memcpy(exact + 1, bad[i], len);
        struct slice rest = slice_make(exact + 1, len);
        struct name_range range;
        assert_false(name_range_take(&rest, &range));
        free(exact);
    }
    struct slice rest = SLICE_LIT("abcxyz2345672.9999999:tail");
    struct name_range range;
    assert_true(name_range_take(&rest, &range));
    assert_int_equal(range.count, SUBLISTS_MAX);
    assert_true(slice_equal(rest, SLICE_LIT(":tail")));
}

static void test_numbers_are_taken_up_to_the_first_other_byte(void **state)
{
    (void)state;
    struct slice rest = SLICE_LIT("12:34");
    uint64_t value;
    assert_true(number_take(&rest, &value));
    assert_int_equal(value, 12);
    assert_true(slice_equal(rest, SLICE_LIT(":34")));
    assert_false(number_take(&rest, &value));
    rest = SLICE_NONE;
    assert_false(number_take(&rest, &value));
    rest = SLICE_LIT("18446744073709551615");
    assert_true(number_take(&rest, &value));
    assert_true(value == UINT64_MAX && rest.len == 0);
}

static void test_keys_of_items_of_lists_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *key, *list; /* NULL: none */
        bool head;
    } cases[] = {
        {"l#", "l", true},
        {"l##", "l#", true},
        {"l#abcdefg234567.0", "l", false},
        {"l#x#abcdefg234567.9999999", "l#x", false},
        {"#", NULL, true},
        {"", NULL, false},
        {"l", NULL, false},
        {"7", NULL, false},
        {"1234567890", NULL, false},
        {"user:1234.5", NULL, false},
        {"l#abcdefg234567.", NULL, false},
        {"l#abcdefg234567.01", NULL, false},
        {"l#abcdefg234567.10000000", NULL, false},
        {"l#abcdefg234567.99999999999999999999999", NULL, false},
        {"l#abcdefg234567.-1", NULL, false},
        {"l#abcdefg23456.0", NULL, false},
        {"l#abcdefg2345678.0", NULL, false},
        {"l#abcdefg234568.0", NULL, false},
        {"l#Abcdefg234567.0", NULL, false},
        {"l.abcdefg234567.0", NULL, false},
        {"#abcdefg234567.0", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slice list;
        bool head, is = list_item_key(slice_of(cases[i].key), &list, &head);
        if (is != (cases[i].list != NULL)) {
            print_error("wrong: %s\n", cases[i].key);
        }
        assert_int_equal(is, cases[i].list != NULL);
        if (is) {
            assert_true(slice_equal(list, slice_of(cases[i].list)));
            assert_int_equal(head, cases[i].head);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_items_of_lists_are_told),
        cmocka_unit_test(test_fresh_names_differ_and_can_be_read_back),
        cmocka_unit_test(test_every_bit_of_the_draw_is_in_the_name),
        cmocka_unit_test(test_keys_are_made_of_list_name_and_number),
        cmocka_unit_test(test_the_longest_list_key_leaves_room_for_the_longest_sublist_key),
        cmocka_unit_test(test_malformed_ranges_are_refused),
        cmocka_unit_test(test_numbers_are_taken_up_to_the_first_other_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
