/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_numbers_survive_the_round_trip(void **state)
{
    (void)state;
    uint64_t values[130];
    size_t n = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        values[n++] = 1ULL << bit;
        values[n++] = (1ULL << bit) - 1;
    }
    values[n++] = UINT64_MAX;
    values[n++] = 10000000000000000000ULL;
    for (size_t i = 0; i < n; i++) {
        char text[20], expected[24];
        size_t len = format_u64(text, values[i]);
        assert_int_equal(
            len, snprintf(expected, sizeof expected, "%llu", (unsigned long long)values[i]));
        assert_memory_equal(text, expected, len);
        uint64_t back = ~values[i];
        assert_true(slice_to_u64(slice_make(text, len), &back));
        assert_true(back == values[i]);
    }
}

static void test_what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "0x1",
        "1a",
        "a",
        "/",
        ":",
        "1.0",
        "18446744073709551616",
        "18446744073709551620",
        "99999999999999999999",
        "000000000000000000001",
        "184467440737095516150",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t value = 4711;
        assert_false(slice_to_u64(slice_of(bad[i]), &value));
        assert_true(value == 4711);
    }
    uint64_t value;
    assert_false(slice_to_u64(SLICE_LIT("12\0"), &value));
    assert_true(slice_to_u64(SLICE_LIT("00000000000000000007"), &value));
    assert_true(value == 7);
    assert_true(slice_to_u64(SLICE_LIT("18446744073709551615"), &value));
    assert_true(value == UINT64_MAX);
}

static void test_slices_compare_by_bytes(void **state)
{
    (void)state;
    assert_true(slice_equal(SLICE_NONE, SLICE_LIT("")));
    assert_true(slice_equal(SLICE_LIT("a\0b"), SLICE_LIT("a\0b")));
    assert_false(slice_equal(SLICE_LIT("a\0b"), SLICE_LIT("a\0c")));
    assert_false(slice_equal(SLICE_LIT("a"), SLICE_LIT("ab")));
    assert_true(slice_starts_with(SLICE_LIT("ab"), SLICE_NONE));
    assert_true(slice_starts_with(SLICE_NONE, SLICE_NONE));
    assert_true(slice_starts_with(SLICE_LIT("ab"), SLICE_LIT("ab")));
    assert_false(slice_starts_with(SLICE_LIT("a"), SLICE_LIT("ab")));
    assert_false(slice_starts_with(SLICE_LIT("ba"), SLICE_LIT("a")));
}

static void test_taking_moves_the_front(void **state)
{
    (void)state;
    struct slice s = SLICE_LIT("abc");
    assert_true(slice_equal(slice_take(&s, 0), SLICE_NONE));
    assert_true(slice_equal(slice_take(&s, 2), SLICE_LIT("ab")));
    assert_true(slice_equal(s, SLICE_LIT("c")));
    assert_true(slice_equal(slice_take(&s, 1), SLICE_LIT("c")));
    assert_int_equal(s.len, 0);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void test_hash_tells_bytes_lengths_and_seeds_apart(void **state)
{
    (void)state;
    enum { LEN = 70 };
    static uint64_t hashes[LEN * 8 + LEN + 1];
    unsigned char bytes[LEN] = {0};
    size_t n = 0;
    for (size_t len = 0; len <= LEN; len++) {
        hashes[n++] = hash_bytes(bytes, len, 1);
    }
    for (size_t at = 0; at < LEN; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] = (unsigned char)(1u << bit);
            hashes[n++] = hash_bytes(bytes, LEN, 1);
        }
        bytes[at] = 0;
        assert_true(hash_bytes(bytes, at, 1) != hash_bytes(bytes, at, 2));
    }
    qsort(hashes, n, sizeof hashes[0], by_value);
    for (size_t i = 1; i < n; i++) {
        assert_true(hashes[i] != hashes[i - 1]);
    }
}

static void test_hashes_are_those_of_fnv_1a(void **state)
{
    (void)state;
    assert_true(hash_stable(SLICE_NONE, 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_stable(SLICE_LIT("a"), 0) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_stable(SLICE_LIT("foobar"), 0) == UINT64_C(0x85944171f73967e8));
    uint64_t foo = hash_stable(SLICE_LIT("foo"), 0);
    assert_true(hash_stable(SLICE_LIT("bar"), foo) == UINT64_C(0x85944171f73967e8));
    assert_true(hash_stable(SLICE_LIT("\xff"), 0) == UINT64_C(0xaf64724c8602eb6e));
}

static void test_hash_is_the_same_wherever_the_bytes_stand(void **state)
{
    (void)state;
    char room[80];
    for (size_t len = 0; len <= 40; len++) {
        uint64_t first = 0;
        for (size_t shift = 0; shift < 8; shift++) {
            memset(room, (int)(shift * 31 + 1), sizeof room);
            for (size_t i = 0; i < len; i++) {
                room[shift + i] = (char)(i * 7);
            }
            uint64_t hash = hash_bytes(room + shift, len, 0);
            first = shift == 0 ? hash : first;
            assert_true(hash == first);
        }
    }
}

/* Tables use the low bits: names that differ in their digits only must spread. */
static void test_low_bits_of_the_hash_spread(void **state)
{
    (void)state;
    unsigned buckets[1024] = {0};
    for (unsigned i = 0; i < 16384; i++) {
        char name[24];
        int n = snprintf(name, sizeof name, "user-%u", i);
        buckets[hash_bytes(name, (size_t)n, 0) & 1023]++;
    }
    for (unsigned i = 0; i < 1024; i++) {
        assert_in_range(buckets[i], 1, 48); /* 16 on average */
    }
}

static void test_escaping_leaves_plain_text_and_names_the_rest(void **state)
{
    (void)state;
    char out[64];
    assert_string_equal(slice_escape(SLICE_LIT("user-1#~!"), out, sizeof out), "user-1#~!");
    assert_string_equal(slice_escape(SLICE_LIT("a\0\r\n\x7f\xff\"\\ b"), out, sizeof out),
                        "a\\x00\\x0d\\x0a\\x7f\\xff\\x22\\x5c\\x20b");
    assert_string_equal(slice_escape(SLICE_NONE, out, sizeof out), "");
}

static void test_escaping_never_writes_beyond_its_room(void **state)
{
    (void)state;
    static const struct slice texts[] = {
        SLICE_LIT(""),
        SLICE_LIT("abcdefghijkl"),
        SLICE_LIT("\1\2\3\4\5\6"),
        SLICE_LIT("ab\1cdefghij"),
    };
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        for (size_t cap = 1; cap < 40; cap++) {
            char *out = malloc(cap);
            assert_ptr_equal(slice_escape(texts[t], out, cap), out);
            assert_non_null(memchr(out, '\0', cap));
            char whole[64];
            slice_escape(texts[t], whole, sizeof whole);
            size_t len = strlen(out);
            if (strcmp(out, whole) != 0) {
                size_t dots = len < 3 ? len : 3;
                assert_memory_equal(out + len - dots, "...", dots);
                assert_memory_equal(out, whole, len - dots);
            } else {
                assert_true(len < cap);
            }
            assert_true(strlen(whole) + 4 > cap || strcmp(out, whole) == 0);
            free(out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_survive_the_round_trip),
        cmocka_unit_test(test_what_is_no_number_is_refused),
        cmocka_unit_test(test_slices_compare_by_bytes),
        cmocka_unit_test(test_taking_moves_the_front),
        cmocka_unit_test(test_hash_tells_bytes_lengths_and_seeds_apart),
        cmocka_unit_test(test_hashes_are_those_of_fnv_1a),
        cmocka_unit_test(test_hash_is_the_same_wherever_the_bytes_stand),
        cmocka_unit_test(test_low_bits_of_the_hash_spread),
        cmocka_unit_test(test_escaping_leaves_plain_text_and_names_the_rest),
        cmocka_unit_test(test_escaping_never_writes_beyond_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
