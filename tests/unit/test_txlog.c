/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's own reader of transactions in logs, by logs written by hand. */
#include "../world/txlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define T "taaaaaaaaaaaa"
#define U "uaaaaaaaaaaaa"

/* Puts an intent, as an entry, behind what the text holds. */
static void put_intent(char *text, size_t cap, const char *name, const char *keys,
                       const char *entries)
{
    char bytes[256];
    int len = snprintf(bytes, sizeof bytes, "%s.1700000000 %s %s", name, keys, entries);
    size_t used = strlen(text);
    assert_true(snprintf(text + used, cap - used, "?%d:%s", len, bytes) < (int)(cap - used));
}

static void put(char *text, size_t cap, const char *entries)
{
    size_t used = strlen(text);
    assert_true(snprintf(text + used, cap - used, "%s", entries) < (int)(cap - used));
}

static enum txlog_state state_in(const char *log, const char *own, bool capped, bool *done)
{
    struct txlog txlog;
    assert_true(txlog_read(&txlog, slice_of(log), slice_of(own), capped));
    const struct txlog_intent *intent = txlog_find(&txlog, slice_of(T));
    enum txlog_state state = intent == NULL ? TXLOG_NONE : intent->state;
    *done = intent != NULL && intent->done;
    txlog_fini(&txlog);
    return state;
}

/* What the log says of T in list own, with an intent for x and a condition on y in front, and then
 * what follows. */
static enum txlog_state state_of(const char *own, const char *behind, bool capped)
{
    char log[512] = "+1:z";
    bool done;
    put_intent(log, sizeof log, T, "2 a b", "+1:x.1:y");
    put(log, sizeof log, behind);
    return state_in(log, own, capped, &done);
}

static void test_first_decision_wins(void **state)
{
    (void)state;
    assert_int_equal(state_of("b", "", false), TXLOG_OPEN);
    assert_int_equal(state_of("b", "&15:" T " c", false), TXLOG_COMMITTED);
    assert_int_equal(state_of("b", "&15:" T " c&15:" T " a", false), TXLOG_COMMITTED);
    assert_int_equal(state_of("b", "&15:" T " a&15:" T " c", false), TXLOG_ABORTED);
    assert_int_equal(state_of("b", "&15:" U " a&15:" T " d", false), TXLOG_OPEN);
}

static void test_decision_without_intent(void **state)
{
    (void)state;
    char log[512] = "&15:" T " c";
    bool done;
    assert_int_equal(state_in(log, "b", false, &done), TXLOG_NONE);
    put_intent(log, sizeof log, T, "2 a b", "+1:x");
    assert_int_equal(state_in(log, "b", false, &done), TXLOG_OPEN);
}

static void test_crossed(void **state)
{
    (void)state;
    assert_int_equal(state_of("a", "+1:z", false), TXLOG_OPEN);
    assert_int_equal(state_of("a", "-1:x&15:" T " c", false), TXLOG_ABORTED);
    assert_int_equal(state_of("a", "=1:y&15:" T " c", false), TXLOG_ABORTED);
    assert_int_equal(state_of("a", "!0:&15:" T " c", false), TXLOG_ABORTED);
    assert_int_equal(state_of("a", "@12:1700000001:x", false), TXLOG_ABORTED);
    assert_int_equal(state_of("a", "&15:" T " c-1:x", false), TXLOG_COMMITTED);
    /* In the primary only. */
    assert_int_equal(state_of("b", "-1:x&15:" T " c", false), TXLOG_COMMITTED);
    assert_int_equal(state_of("a", "+1:w", true), TXLOG_ABORTED);
    assert_int_equal(state_of("a", "~29:raaaaaaaaaaaa.3.1700000000...", true), TXLOG_OPEN);
}

static void test_done(void **state)
{
    (void)state;
    char log[512] = "";
    bool done;
    put_intent(log, sizeof log, T, "2 a b", "+1:x");
    put(log, sizeof log, "&15:" T " d");
    (void)state_in(log, "a", false, &done);
    assert_false(done);
    put(log, sizeof log, "&15:" T " c&15:" T " d");
    assert_int_equal(state_in(log, "a", false, &done), TXLOG_COMMITTED);
    assert_true(done);
}

static void test_malformed(void **state)
{
    (void)state;
    static const char *const keys[] = {"1 c", "2 a a", "3 a b", "0 ", "2 b\ta b"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char log[256] = "";
        struct txlog txlog;
        put_intent(log, sizeof log, T, keys[i], "+1:x");
        assert_false(txlog_read(&txlog, slice_of(log), SLICE_LIT("a"), false));
        txlog_fini(&txlog);
    }
    static const char *const bad[] = {"@12:1700000001:x", "~1:x", "+9:x", "&15:" T " c", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char log[256] = "";
        struct txlog txlog;
        put_intent(log, sizeof log, T, "2 a b", bad[i]);
        assert_false(txlog_read(&txlog, slice_of(log), SLICE_LIT("a"), false));
        txlog_fini(&txlog);
    }
    assert_false(txlog_entry_is_valid('&', SLICE_LIT(T " x")));
    assert_false(txlog_entry_is_valid('&', SLICE_LIT(T "c")));
    assert_true(txlog_entry_is_valid('&', SLICE_LIT(T " d")));
}

static void test_same_name_twice(void **state)
{
    (void)state;
    char log[512] = "";
    struct txlog txlog;
    put_intent(log, sizeof log, T, "2 a b", "+1:x");
    put_intent(log, sizeof log, T, "2 a b", "+1:x");
    assert_false(txlog_read(&txlog, slice_of(log), SLICE_LIT("a"), false));
    txlog_fini(&txlog);
}

static void test_conflict(void **state)
{
    (void)state;
    assert_false(txlog_conflict(SLICE_LIT("+1:x.1:y"), SLICE_LIT("+1:z")));
    assert_true(txlog_conflict(SLICE_LIT("+1:x.1:y"), SLICE_LIT("-1:y")));
    assert_true(txlog_conflict(SLICE_LIT("+1:x"), SLICE_LIT("+1:z!0:")));
    assert_true(txlog_conflict(SLICE_LIT("!0:"), SLICE_LIT(".1:z")));
    assert_false(txlog_conflict(SLICE_LIT("!0:"), SLICE_LIT("")));
}

static bool says(void *arg, const struct txlog_intent *intent)
{
    assert_true(slice_equal(intent->name, slice_of(U)));
    return *(const bool *)arg;
}

static void see_resolved(const char *log, bool committed, const char *plain)
{
    struct block *b = txlog_resolve(slice_of(log), SLICE_LIT("b"), false, says, &committed);
    assert_non_null(b);
    assert_true(slice_equal(slice_make(b->data, b->used), slice_of(plain)));
    block_unref(&b);
}

static void test_effects_stand_at_their_intents(void **state)
{
    (void)state;
    char log[512] = "+1:p";
    put_intent(log, sizeof log, T, "2 a b", ".1:y+1:x-1:w");
    put(log, sizeof log, "-1:x");
    put_intent(log, sizeof log, U, "3 a c b", "!0:+1:v");
    put(log, sizeof log, "+1:q&15:" T " c&15:" T " a");
    see_resolved(log, false, "+1:p+1:x-1:w-1:x+1:q");
    see_resolved(log, true, "+1:p+1:x-1:w-1:x!0:+1:v+1:q");
    put(log, sizeof log, "&15:" U " a+1:r");
    see_resolved(log, true, "+1:p+1:x-1:w-1:x+1:q+1:r");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_decision_wins),
        cmocka_unit_test(test_decision_without_intent),
        cmocka_unit_test(test_crossed),
        cmocka_unit_test(test_done),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_same_name_twice),
        cmocka_unit_test(test_conflict),
        cmocka_unit_test(test_effects_stand_at_their_intents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
