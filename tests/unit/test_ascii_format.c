/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/server/ascii_format.h"

static void expect(struct be_operation op, const char *wanted)
{
    char line[ASCII_LINE_MAX + 1];
    op.key = SLICE_LIT("fruit");
    line[ascii_format(&op, line)] = '\0';
    assert_string_equal(line, wanted);
}

static void reads_ask_by_mg(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_GET}, "mg fruit k v f c t\r\n");
    expect((struct be_operation){.verb = BE_SIZE}, "mg fruit k s c\r\n");
    expect((struct be_operation){.verb = BE_PROBE}, "mg fruit k\r\n");
    expect((struct be_operation){.verb = BE_TIME}, "mg fruit k t c\r\n");
}

static void changes_are_classic(void **state)
{
    (void)state;
    const struct slice value = SLICE_LIT("0123456789");
    expect((struct be_operation){.verb = BE_ADD, .flags = 7, .exptime = 60, .value = value},
           "add fruit 7 60 10\r\n");
    expect((struct be_operation){.verb = BE_REPLACE, .exptime = 86400},
           "replace fruit 0 86400 0\r\n");
    expect((struct be_operation){.verb = BE_SET, .flags = 4294967295u, .value = value},
           "set fruit 4294967295 0 10\r\n");
    expect((struct be_operation){.verb = BE_SET, .exptime = -5, .value = value},
           "set fruit 0 -1 10\r\n");
    expect((struct be_operation){.verb = BE_APPEND, .value = value}, "append fruit 0 0 10\r\n");
    expect((struct be_operation){.verb = BE_APPEND}, "append fruit 0 0 0\r\n");
    expect((struct be_operation){.verb = BE_PREPEND, .value = value}, "prepend fruit 0 0 10\r\n");
    expect(
        (struct be_operation){
            .verb = BE_CAS, .flags = 1, .exptime = INT32_MAX, .cas = UINT64_MAX, .value = value},
        "cas fruit 1 2147483647 10 18446744073709551615\r\n");
    expect((struct be_operation){.verb = BE_DELETE}, "delete fruit\r\n");
}

static void an_incr_carries_what_it_adds(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_INCR, .delta = 3}, "incr fruit 3\r\n");
    expect((struct be_operation){.verb = BE_INCR, .delta = UINT64_MAX, .flags = 1, .exptime = 2},
           "incr fruit 18446744073709551615\r\n");
    expect((struct be_operation){.verb = BE_DECR, .delta = 3}, "decr fruit 3\r\n");
}

static void plain_reads_and_times(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_FETCH}, "mg fruit k v f\r\n");
    expect((struct be_operation){.verb = BE_FETCH, .asks_cas = true}, "mg fruit k v f c\r\n");
    expect((struct be_operation){.verb = BE_GAT, .exptime = 60, .asks_cas = true},
           "mg fruit k v f c T60\r\n");
    expect((struct be_operation){.verb = BE_GAT, .exptime = -7}, "mg fruit k v f T-1\r\n");
    expect((struct be_operation){.verb = BE_TOUCH, .exptime = 0}, "touch fruit 0\r\n");
}

static void changes_that_tell_a_cas_number_are_meta_commands(void **state)
{
    (void)state;
    struct be_operation op = {
        .verb = BE_SET, .asks_cas = true, .flags = 7, .exptime = 60, .value = SLICE_LIT("0123")};
    expect(op, "ms fruit 4 MS F7 T60 c\r\n");
    op.verb = BE_ADD;
    expect(op, "ms fruit 4 ME F7 T60 c\r\n");
    op.verb = BE_APPEND;
    expect(op, "ms fruit 4 MA c\r\n");
    op.with_cas = true;
    op.cas = 9;
    expect(op, "ms fruit 4 MA C9 c\r\n");
    op.verb = BE_CAS;
    expect(op, "ms fruit 4 MS F7 T60 C9 c\r\n");
    op.verb = BE_CAS_DELETE;
    expect(op, "md fruit C9\r\n");
    op.verb = BE_DELETE;
    expect(op, "md fruit\r\n");
    op.verb = BE_TOUCH;
    expect(op, "mg fruit k f c T60\r\n");
    op = (struct be_operation){.verb = BE_INCR, .asks_cas = true, .delta = 3};
    expect(op, "ma fruit v D3 c\r\n");
    op.verb = BE_DECR;
    op.creates = op.with_cas = true;
    op.initial = 5;
    op.exptime = -1;
    /* Of 0, which would mean any, one that no item has. */
    expect(op, "ma fruit v MD D3 N-1 J5 C18446744073709551614 c\r\n");
}

static void keys_that_no_line_can_hold_are_in_base64(void **state)
{
    (void)state;
    static const enum be_verb verbs[] = {BE_FETCH, BE_GAT, BE_SET, BE_DELETE, BE_TOUCH, BE_INCR};
    static const char *const lines[] = {
        "mg YSBiDQo= b v f c\r\n", "mg YSBiDQo= b v f c T0\r\n", "ms YSBiDQo= 0 MS b F0 T0 c\r\n",
        "md YSBiDQo= b\r\n",       "mg YSBiDQo= b f c T0\r\n",   "ma YSBiDQo= b v D0 c\r\n"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char line[ASCII_LINE_MAX + 1];
        struct be_operation op = {.verb = verbs[i], .asks_cas = true, .odd_key = true};
        op.key = SLICE_LIT("a b\r\n");
        line[ascii_format(&op, line)] = '\0';
        assert_string_equal(line, lines[i]);
    }
}

static void a_conditional_delete_is_a_cas_that_is_over_at_once(void **state)
{
    (void)state;
    expect((struct be_operation){.verb = BE_CAS_DELETE, .cas = 9, .flags = 3, .exptime = 100},
           "cas fruit 0 -1 0 9\r\n\r\n");
}

static void the_longest_line_has_room(void **state)
{
    (void)state;
    char line[ASCII_LINE_MAX], key[KEY_BYTES_MAX];
    memset(key, 'k', sizeof key);
    struct be_operation op = {.verb = BE_CAS,
                              .key = {key, sizeof key},
                              .flags = UINT32_MAX,
                              .exptime = INT32_MAX,
                              .cas = UINT64_MAX};
    op.value.len = SIZE_MAX;
    assert_true(ascii_format(&op, line) <= sizeof line);
}

static void a_value_follows_what_stores_one(void **state)
{
    (void)state;
    assert_true(be_has_value(BE_ADD) && be_has_value(BE_SET) && be_has_value(BE_REPLACE));
    assert_true(be_has_value(BE_APPEND) && be_has_value(BE_PREPEND) && be_has_value(BE_CAS));
    assert_false(be_has_value(BE_GET) || be_has_value(BE_SIZE));
    assert_false(be_has_value(BE_TIME));
    assert_false(be_has_value(BE_PROBE) || be_has_value(BE_DELETE));
    assert_false(be_has_value(BE_CAS_DELETE) || be_has_value(BE_INCR));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ask_by_mg),
        cmocka_unit_test(changes_are_classic),
        cmocka_unit_test(an_incr_carries_what_it_adds),
        cmocka_unit_test(plain_reads_and_times),
        cmocka_unit_test(changes_that_tell_a_cas_number_are_meta_commands),
        cmocka_unit_test(keys_that_no_line_can_hold_are_in_base64),
        cmocka_unit_test(a_conditional_delete_is_a_cas_that_is_over_at_once),
        cmocka_unit_test(the_longest_line_has_room),
        cmocka_unit_test(a_value_follows_what_stores_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
