/* SPDX-License-Identifier: BSD-3-Clause */
/* The longest prefix of a key, against a look at all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "config/prefix.h"

#define PREFIXES_MAX 40

static size_t find_slowly(const struct slice *prefixes, size_t count, struct slice key)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (slice_starts_with(key, prefixes[i]) && prefixes[i].len > prefixes[best].len) {
            best = i;
        }
    }
    return best;
}

static void test_the_longest_wins(void **state)
{
    (void)state;
    const struct slice prefixes[] = {SLICE_LIT(""),   SLICE_LIT("a"),     SLICE_LIT("ab"),
                                     SLICE_LIT("b:"), SLICE_LIT("ab:cd"), SLICE_LIT("\xff")};
    struct prefix_map map = {.count = 0};
    prefix_map_make(&map, prefixes, 6);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("")), 0);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("c")), 0);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("a")), 1);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("azz")), 1);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("ab:ce")), 2);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("ab:cdz")), 4);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("b")), 0);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("b:")), 3);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("\xff\x80")), 5);
    assert_int_equal(config_prefix_find(&map, slice_make("ab:\0", 4)), 2);
    prefix_map_fini(&map);
}

static size_t draw(struct rng *rng, char out[8])
{
    static const char letters[] = "ab\xfe";
    size_t len = 1 + rng_below(rng, 6);
    for (size_t i = 0; i < len; i++) {
        out[i] = letters[rng_below(rng, 3)];
    }
    return len;
}

static void test_as_a_look_at_all(void **state)
{
    (void)state;
    struct rng rng;
    struct prefix_map map = {.count = 0};
    rng_init_seed(&rng, 7);
    for (int round = 0; round < 500; round++) {
        char bytes[PREFIXES_MAX][8], key[8];
        struct slice prefixes[PREFIXES_MAX] = {SLICE_LIT("")};
        size_t count = 1, wanted = 1 + rng_below(&rng, PREFIXES_MAX);
        for (size_t tries = 0; tries < 200 && count < wanted; tries++) {
            struct slice one = slice_make(bytes[count], draw(&rng, bytes[count]));
            size_t i = 0;
            while (i < count && !slice_equal(prefixes[i], one)) {
                i++;
            }
            if (i == count) {
                prefixes[count++] = one;
            }
        }
        prefix_map_make(&map, prefixes, count);
        for (int i = 0; i < 50; i++) {
            struct slice wanted_key = slice_make(key, draw(&rng, key));
            assert_int_equal(config_prefix_find(&map, wanted_key),
                             find_slowly(prefixes, count, wanted_key));
        }
    }
    prefix_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_wins),
        cmocka_unit_test(test_as_a_look_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
