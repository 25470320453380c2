/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpopto beside transactions that add: which items stand at the end of a list depends on each one
 * in front, whatever its items are, where an addition moves an item that is there already.
 */
#include "tx_party.h"

static bool was_first; /* the other transaction, to be decided */

/* What the head of one of the lists holds. */
static bool holds(struct tx_test *t, const char *key, const char *text)
{
    const struct item *item = store_find(&t->store, slice_of(key), t->tx.rig.now.wall_s);
    return memmem(item_value(item).p, item_value(item).len, text, strlen(text)) != NULL;
}

static void commit_other(struct tx_test *t)
{
    was_first = !holds(t, "a#", "&15:");
    tx_run(t, &t->other);
}

/* y is to join "b", when q is added to that once more. "a" is the primary of both. */
static void announce_other(struct tx_test *t)
{
    static const struct slice n = {"n", 1};
    tx_name_list(&t->other, 0, "a");
    tx_also(&t->other, TX_OP_ADD, &n, 1);
    tx_name_list(&t->other, 1, "b");
    tx_also(&t->other, TX_OP_ADD, &tx_y, 1);
    tx_submit(&t->other, LIST_TX);
    while (!holds(t, "b#", "=1:y")) {
        assert_true(tx_step(t, &t->other));
    }
    assert_int_equal(tx_write_raw(t, BE_APPEND, "b#", "=1:q"), BE_STORED);
}

/* The oldest of "b" is moved to "a". Returns whether the other transaction was done before. */
static bool pop_beside(struct tx_test *t, unsigned announced_at, unsigned committed_at)
{
    tx_policy(&t->tx)->order = ORDER_RECENT;
    tx_policy(&t->other)->order = ORDER_RECENT;
    tx_make_lists(t);
    was_first = false;
    t->hook_at = announced_at;
    t->hook = announce_other;
    t->second_at = committed_at;
    t->second = commit_other;
    t->tx.call.count = 1;
    tx_name_list(&t->tx, 0, "b");
    tx_name_list(&t->tx, 1, "a");
    tx_submit(&t->tx, LIST_POPTO);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.number, 1);
    assert_true(!was_first || tx_has(t, "a", tx_y));
    return was_first;
}

static void test_lpopto_the_oldest_behind_an_addition(void **state)
{
    unsigned behind = 0;
    for (unsigned announced_at = 0; announced_at < 8; announced_at++) {
        for (unsigned committed_at = announced_at + 1; committed_at < 12; committed_at++) {
            behind += pop_beside(*state, announced_at, committed_at);
            tx_begin_anew(state);
        }
    }
    assert_true(behind > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {tx_test(test_lpopto_the_oldest_behind_an_addition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
