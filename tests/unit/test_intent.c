/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/intent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_list.h"

#define T "ttttttttttttt"

/* Parses bytes behind which nothing may be read. */
static bool parses(const char *text, struct intent *intent)
{
    size_t len = strlen(text);
    char *exact = malloc(len + (len == 0));
    memcpy(exact, text, len);
    bool ok = intent_parse(slice_make(exact, len), intent);
    free(exact);
    return ok;
}

static struct intent intent_of(const char *entries)
{
    return (struct intent){.name = test_name('t'),
                           .created_s = 1795229331,
                           .keys = {SLICE_LIT("alice"), SLICE_LIT("bob")},
                           .key_count = 2,
                           .entries = slice_of(entries)};
}

static void test_intents_look_as_documented(void **state)
{
    (void)state;
    struct block *b = block_new(1);
    struct intent intent = intent_of("+3:bob");
    intent_append(&b, &intent);
    assert_true(slice_equal(block_slice(b), SLICE_LIT("?43:" T ".1795229331 2 alice bob +3:bob")));
    assert_int_equal(intent_size(&intent), b->used);
    block_unref(&b);
    b = block_new(1);
    decision_append(&b, &intent.name, DECISION_COMMIT);
    decision_append(&b, &intent.name, DECISION_ABORT);
    decision_append(&b, &intent.name, DECISION_DONE);
    assert_true(slice_equal(block_slice(b), SLICE_LIT("&15:" T " c&15:" T " a&15:" T " d")));
    block_unref(&b);
}

static void test_intents_survive_the_round_trip(void **state)
{
    (void)state;
    static const char *const entries[] = {"", "+3:bob", "!0:=1:a-1:b.1:c", "+3:a b.0:", "+0:"};
    char longest[LIST_KEY_BYTES_MAX];
    memset(longest, 'k', sizeof longest);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        for (size_t keys = 1; keys <= INTENT_KEYS_MAX; keys++) {
            struct intent intent = intent_of(entries[i]), read;
            intent.created_s = i == 0 ? 0 : INT64_MAX;
            intent.key_count = keys;
            for (size_t k = 0; k < keys; k++) {
                intent.keys[k] = slice_make(longest, sizeof longest - k);
            }
            struct block *b = block_new(1);
            intent_append(&b, &intent);
            struct slice rest = block_slice(b);
            struct entry entry;
            assert_int_equal(entry_next(&rest, &entry), ENTRY_OK);
            assert_int_equal(entry.op, ENTRY_INTENT);
            assert_int_equal(rest.len, 0);
            assert_true(intent_parse(entry.bytes, &read));
            assert_true(name_equal(&read.name, &intent.name));
            assert_true(read.created_s == intent.created_s);
            assert_int_equal(read.key_count, keys);
            for (size_t k = 0; k < keys; k++) {
                assert_true(slice_equal(read.keys[k], intent.keys[k]));
            }
            assert_true(slice_equal(read.entries, intent.entries));
            assert_int_equal(intent_size(&intent), b->used);
            block_unref(&b);
        }
    }
}

static void test_what_is_no_intent_is_malformed(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        T,
        T ".1",
        T ".1 1",
        T ".1 1 a", /* no blank behind the last key */
        T " 1 a ",  /* no second */
        T ". 1 a ",
        T ".x 1 a ",
        T ".-1 1 a ",
        T ".9223372036854775808 1 a ",
        T ".1 0 a ",
        T ".1 0 ",
        T ".1 2 a ",
        T ".1 17 a b c d e f g h i j k l m n o p q ",
        T ".1 2 a a ", /* each list once */
        T ".1  1 a ",
        T ".1 1  a ",
        T ".1 2 a  b ",
        T ".1 1 a  +1:a",
        T ".1 1 a\tb ",
        T ".1 1 \x7f ",
        T ".1 1 a +1:ab",
        T ".1 1 a +2:a",
        T ".1 1 a x",
        T ".1 1 a ~29:aaaaaaaaaaaaa.1.1",
        T ".1 1 a @12:1795229331:a", /* no time in a transaction */
        T ".1 1 a &15:" T " c",
        T ".1 1 a ?19:" T ".1 1 a ",
        "tttttttttttt.1 1 a ",
        "ttttttttttttT.1 1 a ",
        "tttttttttttt1.1 1 a ",
    };
    struct intent intent;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parses(bad[i], &intent)) {
            print_error("taken for an intent: %s\n", bad[i]);
        }
        assert_false(parses(bad[i], &intent));
    }
    char key[LIST_KEY_BYTES_MAX + 64];
    memcpy(key, T ".1 1 ", NAME_BYTES + 5);
    memset(key + NAME_BYTES + 5, 'k', LIST_KEY_BYTES_MAX + 1);
    memcpy(key + NAME_BYTES + 5 + LIST_KEY_BYTES_MAX, " ", 2);
    assert_true(parses(key, &intent));
    memcpy(key + NAME_BYTES + 5 + LIST_KEY_BYTES_MAX, "k ", 3);
    assert_false(parses(key, &intent));
    assert_true(parses(T ".1 16 a b c d e f g h i j k l m n o p ", &intent));
    assert_int_equal(intent.key_count, INTENT_KEYS_MAX);
}

static void test_decisions_are_three(void **state)
{
    (void)state;
    struct name name, t = test_name('t');
    enum decision decision;
    assert_true(decision_parse(SLICE_LIT(T " c"), &name, &decision));
    assert_true(name_equal(&name, &t));
    assert_int_equal(decision, DECISION_COMMIT);
    assert_true(decision_parse(SLICE_LIT(T " a"), &name, &decision));
    assert_int_equal(decision, DECISION_ABORT);
    assert_true(decision_parse(SLICE_LIT(T " d"), &name, &decision));
    assert_int_equal(decision, DECISION_DONE);
    static const char *const bad[] = {"", T, T " ", T " b", T " cc", T "c", T ".c", T "  c", "t c"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(decision_parse(slice_of(bad[i]), &name, &decision));
    }
}

static bool conflict(const char *a, const char *b)
{
    struct intent_items items;
    intent_items_init(&items, slice_of(a));
    bool meet = intent_items_meet(&items, slice_of(b));
    intent_items_fini(&items);
    return meet;
}

static void test_intents_conflict_by_items_and_by_clearing(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool conflict;
    } rows[] = {
        {"+1:a", "+1:a", true},
        {"+1:a", "+1:b", false},
        {"+1:a", "-1:a", true},
        {"=1:a", "+1:a", true},
        {".1:a", "-1:a", true},
        {"+1:b.1:a", "+1:c.1:b", true},
        {".1:a", ".1:a", true},
        {"!0:", "+1:a", true},
        {"!0:", ".1:a", true},
        {"!0:", "", true},
        {"", "", false},
        {"", "+1:a", false},
        {"+1:a+1:b", "-1:c-1:b", true},
        {"+2:aa", "+1:a", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(conflict(rows[i].a, rows[i].b), rows[i].conflict);
        assert_int_equal(conflict(rows[i].b, rows[i].a), rows[i].conflict);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intents_look_as_documented),
        cmocka_unit_test(test_intents_survive_the_round_trip),
        cmocka_unit_test(test_what_is_no_intent_is_malformed),
        cmocka_unit_test(test_decisions_are_three),
        cmocka_unit_test(test_intents_conflict_by_items_and_by_clearing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
