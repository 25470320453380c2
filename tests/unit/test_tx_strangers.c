/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions on lists in whose place another client has put a value of its own.
 */
#include "tx_party.h"

static void test_a_foreign_value(void **state)
{
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "hello"), BE_STORED);
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_SERVER_ERROR);
    tx_assert_head(t, "a#", "^1\n+1:p");
    tx_assert_head(t, "b#", "hello");
}

/* What another client has put in the place of a list that is under way. */
static const char *stranger_key;

static void put_a_stranger(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_DELETE, stranger_key, ""), BE_DELETED);
    assert_int_equal(tx_write_raw(t, BE_ADD, stranger_key, "hello"), BE_STORED);
}

/* The entries that were appended to it before a read could show what it is. */
static unsigned count_appended(struct tx_test *t)
{
    const struct item *item = store_find(&t->store, slice_of(stranger_key), 0);
    unsigned count = 0;
    assert_non_null(item);
    struct slice value = item_value(item);
    for (size_t i = 0; i < value.len; i++) {
        count += value.p[i] == '?' || value.p[i] == '&';
    }
    return count;
}

static bool ends_in(struct tx_test *t, const char *key, const char *end)
{
    const struct item *item = store_find(&t->store, slice_of(key), 0);
    assert_non_null(item);
    struct slice value = item_value(item), wanted = slice_of(end);
    assert_true(value.len >= wanted.len);
    return slice_equal(slice_make(value.p + value.len - wanted.len, wanted.len), wanted);
}

/* Once a read has shown that the value is no list, nothing more is appended to it; and the primary
 * does not wait for it. */
static void test_a_stranger_in_a_lists_place(void **state)
{
    static const char *const keys[] = {"a#", "b#"};
    bool came = true;
    for (unsigned at = 0; came; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        stranger_key = keys[at % 2];
        t->hook_at = at / 2;
        t->hook = put_a_stranger;
        tx_submit_two(&t->tx);
        tx_run(t, &t->tx);
        came = t->tx.steps > t->hook_at;
        assert_true(!came || count_appended(t) <= 1);
        if (at % 2 == 1 && tx_has(t, "a", tx_x)) {
            assert_int_equal(t->tx.call.status, LIST_OK);
            assert_true(ends_in(t, "a#", " d"));
        }
        tx_begin_anew(state);
    }
}

static void put_a_stranger_first(struct tx_test *t)
{
    (void)tx_write_raw(t, BE_ADD, stranger_key, "hello");
}

/* Another client is faster to put something in the place of a list that is missing. */
static void test_a_stranger_where_no_list_was(void **state)
{
    static const char *const keys[] = {"a#", "b#"};
    bool came = true;
    for (unsigned at = 0; came; at++) {
        struct tx_test *t = *state;
        stranger_key = keys[at % 2];
        t->hook_at = at / 2;
        t->hook = put_a_stranger_first;
        tx_submit_two(&t->tx);
        tx_run(t, &t->tx);
        came = t->tx.steps > t->hook_at;
        if (t->tx.call.status != LIST_OK) {
            assert_int_equal(t->tx.call.status, LIST_SERVER_ERROR);
            assert_non_null(strstr(t->tx.call.error, "nothing done"));
            tx_assert_head(t, stranger_key, "hello");
        }
        tx_begin_anew(state);
    }
}

/* Between any two steps others change the list that is missing at first. */
static void make_and_change(struct tx_test *t)
{
    (void)tx_write_raw(t, BE_ADD, "b#", "^1\n");
    assert_int_equal(tx_write_raw(t, BE_APPEND, "b#", "+1:q"), BE_STORED);
    t->hook_at++;
}

/* That another client has made the list first says nothing about appends to it: a CAS would lose
 * against such a client again and again. */
static void test_a_busy_list_where_none_was(void **state)
{
    bool came = true;
    for (unsigned at = 0; came; at++) {
        struct tx_test *t = *state;
        assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p"), BE_STORED);
        t->hook_at = at;
        t->hook = make_and_change;
        tx_submit_two(&t->tx);
        tx_run(t, &t->tx);
        came = t->tx.steps > at;
        assert_int_equal(t->tx.call.status, LIST_OK);
        tx_assert_as_told(t, false);
        tx_begin_anew(state);
    }
}

/* What stands in front of an intent cannot be settled: the text says what became of the call. */
static void test_a_primary_in_front_that_cannot_be_read(void **state)
{
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1\n?35:vvvvvvvvvvvvv.1700000000 2 m b +1:y"),
                     BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "m#", "^2\n"), BE_STORED);
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_SERVER_ERROR);
    assert_string_equal(t->tx.call.error,
                        "m#, which decides a change of several lists, holds no list that this "
                        "version can read, nothing done");
    assert_false(tx_has(t, "a", tx_x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        tx_test(test_a_foreign_value),
        tx_test(test_a_stranger_in_a_lists_place),
        tx_test(test_a_stranger_where_no_list_was),
        tx_test(test_a_busy_list_where_none_was),
        tx_test(test_a_primary_in_front_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
