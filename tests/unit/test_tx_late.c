/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions whose commit comes too late: another proxy has aborted them, and nothing is left of
 * that.
 */
#include <stdio.h>

#include "tx_party.h"

#include "list/format/head.h"
#include "list/format/intent.h"
#include "support_intents.h"

/* What a reader has aborted, or found to be done, is compacted away. */
static void read_and_compact(struct tx_test *t)
{
    struct party *p = &t->other;
    (void)tx_has(t, "a", tx_x);
    p->call = (struct list_call){0};
    tx_name_list(p, 0, "a");
    tx_submit(p, LIST_COMPACT);
    tx_run(t, p);
}

static void submit_one(struct party *p)
{
    tx_name_list(p, 0, "a");
    tx_also(p, TX_OP_ADD, &tx_x, 1);
    tx_submit(p, LIST_TX);
}

/* It begins anew. The outcome is unknown only where the compaction comes right behind the commit,
 * which is done then. */
static void test_a_compaction_in_between(void **state)
{
    static void (*const all[])(struct party * p) = {submit_one, tx_submit_two, tx_submit_three};
    for (size_t i = 0; i < 3; i++) {
        unsigned steps = 1;
        for (unsigned at = 0; at < steps; at++) {
            struct tx_test *t = *state;
            tx_make_lists(t);
            t->hook_at = at;
            t->hook = read_and_compact;
            all[i](&t->tx);
            tx_run(t, &t->tx);
            steps = t->tx.steps;
            assert_true(t->tx.call.status == LIST_OK || tx_outcome(&t->tx) == UNKNOWN);
            assert_int_equal(metric_get(&t->tx.rig.metrics, METRIC_outcomes_unknown),
                             tx_outcome(&t->tx) == UNKNOWN);
            assert_true(tx_has(t, "a", tx_x));
            assert_true(i == 0 || tx_has(t, "b", tx_y));
            tx_begin_anew(state);
        }
    }
}

/* Others fill the log beyond its limit. */
static void fill_a(struct tx_test *t)
{
    char entry[220];
    (void)snprintf(entry, sizeof entry, "+200:%0200d", 0);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(tx_write_raw(t, BE_APPEND, "a#", entry), BE_STORED);
    }
}

/* Its intent is refused, and the log has no room by the time at which it is written by CAS: it
 * waits for a compaction. */
static void test_an_intent_that_was_refused_needs_room_again(void **state)
{
    struct tx_test *t = *state;
    tx_make_lists(t);
    tx_policy(&t->tx)->log_limit_bytes = 256;
    tx_policy(&t->tx)->log_hard_limit_bytes = 1024;
    t->fault = FAULT_NOT_STORED;
    t->fault_at = t->hook_at = 2; /* behind two looks */
    t->fault_count = 1;
    t->hook = fill_a;
    tx_submit_two(&t->tx);
    while (tx_step(t, &t->tx)) {
        const struct item *item = store_find(&t->store, SLICE_LIT("a#"), 0);
        bool announced = memchr(item->value->data, '?', item->value->used) != NULL;
        assert_true(!announced || item->value->used < 1024);
    }
    assert_int_equal(t->tx.call.status, LIST_OK);
    assert_true(tx_has(t, "a", tx_x) && tx_has(t, "b", tx_y));
}

/* A fold that comes behind the commit takes away a transaction that is done, and leaves what stands
 * behind an undecided intent. */
static void test_what_a_log_tells_of_a_commit(void **state)
{
#define DONE_TOO COMMITS(T) "&15:" T " d"
    static const struct {
        const char *head;
        bool late;
    } rows[] = {
        {"^1\n+1:a" COMMITS(T) "+1:b", true},
        {"^1\n" INTENT(U) COMMITS(T), true},
        {"^1\n" DONE_TOO, true},
        {"^1\n" COMMITS(T) INTENT(U) "&15:" T " d", true},
        {"^1\n" INTENT(U) DONE_TOO, false},
        {"^1\n", false},
        {"^1\n" ABORTS(T) COMMITS(U), false},
        {"no head", false},
    };
    struct name name;
    enum decision decision;
    assert_true(decision_parse(SLICE_LIT(T " c"), &name, &decision));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct be_reply reply = {.status = BE_HIT, .value = slice_of(rows[i].head)};
        assert_int_equal(head_commit_came_late(&reply, &name), rows[i].late);
    }
    (void)state;
#undef DONE_TOO
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        tx_test(test_a_compaction_in_between),
        tx_test(test_an_intent_that_was_refused_needs_room_again),
        cmocka_unit_test(test_what_a_log_tells_of_a_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
