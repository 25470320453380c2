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

static size_t longest(const struct prefix_name *names, size_t count, bool anywhere,
                      struct slice key)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (names[i].anywhere == anywhere && slice_starts_with(key, names[i].bytes) &&
            names[i].bytes.len > names[best].bytes.len) {
            best = i;
        }
    }
    return best;
}

/* The one that stands leftmost, of several there the longest. Those that begin a key count first.
 */
static size_t find_slowly(const struct prefix_name *names, size_t count, struct slice key)
{
    size_t best = longest(names, count, false, key);
    for (; best == 0 && key.len > 0; (void)slice_take(&key, 1)) {
        best = longest(names, count, true, key);
    }
    return best;
}

#define PREFIX(text) \
    { \
        SLICE_LIT(text), false \
    }
#define PART(text) \
    { \
        SLICE_LIT(text), true \
    }

static void test_the_longest_wins(void **state)
{
    (void)state;
    const struct prefix_name names[] = {PREFIX(""),   PREFIX("a"),     PREFIX("ab"),
                                        PREFIX("b:"), PREFIX("ab:cd"), PREFIX("\xff")};
    struct prefix_map map = {.count = 0};
    prefix_map_make(&map, names, 6);
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

static void test_behind_what_a_client_puts_before(void **state)
{
    (void)state;
    const struct prefix_name names[] = {PREFIX(""), PREFIX("a:"), PART("tag|"), PART("tag|x"),
                                        PART("sub:")};
    struct prefix_map map = {.count = 0};
    prefix_map_make(&map, names, 5);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("")), 0);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("tag")), 0);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("tag|")), 2);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("app:1:tag|7")), 2);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("app:1:tag|xy")), 3);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("a:tag|7")), 1);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("sub:tag|7")), 4);
    assert_int_equal(config_prefix_find(&map, SLICE_LIT("tatag|sub:")), 2);
    prefix_map_fini(&map);
}

static bool crosses(struct prefix_name a, struct prefix_name b)
{
    bool answer = prefix_crosses(&a, &b);
    assert_int_equal(prefix_crosses(&b, &a), answer);
    return answer;
}

static void test_what_may_share_bytes_of_a_key(void **state)
{
    (void)state;
    const struct prefix_name tag = PART("tag|"), longer = PART("tag|x"), sub = PART("sub:"),
                             end = PART("g|s"), level = PART("g|su"), within = PART("ag"),
                             same = PREFIX("tag|"), begins = PREFIX("t"), holds = PREFIX("my-tag|"),
                             cut = PREFIX("my-ta"), other = PREFIX("my-");
    assert_false(crosses(tag, longer));
    assert_false(crosses(tag, sub));
    assert_true(crosses(tag, end));
    assert_true(crosses(tag, level));
    assert_true(crosses(tag, within));
    assert_false(crosses(tag, same));
    assert_true(crosses(tag, begins));
    assert_false(crosses(tag, holds));
    assert_true(crosses(tag, cut));
    assert_false(crosses(tag, other));
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
        struct prefix_name names[PREFIXES_MAX] = {PREFIX("")};
        size_t count = 1, wanted = 1 + rng_below(&rng, PREFIXES_MAX);
        for (size_t tries = 0; tries < 200 && count < wanted; tries++) {
            struct slice one = slice_make(bytes[count], draw(&rng, bytes[count]));
            bool anywhere = round % 2 == 1 && rng_below(&rng, 2) == 0;
            size_t i = 0;
            while (i < count &&
                   !(slice_equal(names[i].bytes, one) && names[i].anywhere == anywhere)) {
                i++;
            }
            if (i == count) {
                names[count++] = (struct prefix_name){one, anywhere};
            }
        }
        prefix_map_make(&map, names, count);
        for (int i = 0; i < 50; i++) {
            struct slice wanted_key = slice_make(key, draw(&rng, key));
            assert_int_equal(config_prefix_find(&map, wanted_key),
                             find_slowly(names, count, wanted_key));
        }
    }
    prefix_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_wins),
        cmocka_unit_test(test_behind_what_a_client_puts_before),
        cmocka_unit_test(test_what_may_share_bytes_of_a_key),
        cmocka_unit_test(test_as_a_look_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
