/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of several lists in one step: behind each run another proxy reads the lists, and what it
 * finds must be what the client was told.
 */
#include "tx_party.h"

/* ---- tests ---- */

static void test_two_lists(void **state)
{
    struct tx_test *t = *state;
    tx_make_lists(t);
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    tx_assert_as_told(t, false);
    assert_true(tx_has(t, "a", SLICE_LIT("p")));
}

/* Its intents, then the commits, the primary first: nine requests behind the two looks. */
static void test_order_of_requests(void **state)
{
    static const struct {
        enum be_verb verb;
        const char *key;
    } expected[] = {{BE_GET, "a#"},    {BE_GET, "b#"}, {BE_APPEND, "a#"}, {BE_GET, "a#"},
                    {BE_APPEND, "b#"}, {BE_GET, "b#"}, {BE_APPEND, "a#"}, {BE_GET, "a#"},
                    {BE_APPEND, "b#"}, {BE_GET, "b#"}, {BE_APPEND, "a#"}};
    struct tx_test *t = *state;
    tx_make_lists(t);
    tx_submit_two(&t->tx);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct list_request *r = rig_take(&t->tx.rig, expected[i].verb, expected[i].key);
        bool last = i + 1 == sizeof expected / sizeof expected[0];
        assert_int_equal(engine_take_done(t->tx.rig.engine) != NULL, last);
        tx_answer(t, &t->tx, r, FAULT_NONE);
    }
    (void)engine_run(t->tx.rig.engine, t->tx.rig.now);
    assert_null(engine_take_request(t->tx.rig.engine));
    assert_false(engine_busy(t->tx.rig.engine));
    assert_int_equal(t->tx.call.status, LIST_OK);
}

static void evict_a(struct tx_test *t)
{
    store_evict(&t->store, SLICE_LIT("a#"));
}

/* Right behind the commit, which no reader of b has seen: nothing tells whether it was there. */
static void test_the_primary_is_lost_when_it_is_decided(void **state)
{
    struct tx_test *t = *state;
    tx_run_two(t, 7, evict_a);
    assert_int_equal(t->tx.call.status, LIST_SERVER_ERROR);
    assert_string_equal(
        t->tx.call.error,
        "outcome unknown: the first list was lost, or another proxy or a sweep settled it");
    assert_false(tx_has(t, "b", tx_y));
}

static void finish_and_fold(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_SET, "a#", "^1\n+1:p+1:x"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_SET, "b#", "^1\n+1:q+1:y"), BE_STORED);
}

/* Neither list was lost, and no answer may say so. */
static void test_others_finish_it_and_fold_it_away(void **state)
{
    struct tx_test *t = *state;
    tx_run_two(t, 8, finish_and_fold);
    assert_int_equal(t->tx.call.status, LIST_SERVER_ERROR);
    assert_string_equal(t->tx.call.error,
                        "outcome unknown: committed, and a list was lost, or another proxy or a "
                        "sweep finished it");
}

typedef void scenario(struct party *p);

static unsigned count_steps(void **state, scenario *submit_it, bool lists)
{
    struct tx_test *t = *state;
    if (lists) {
        tx_make_lists(t);
    }
    submit_it(&t->tx);
    tx_run(t, &t->tx);
    unsigned steps = t->tx.steps;
    tx_begin_anew(state);
    return steps;
}

/* Every answer lost, every request lost or late, refused or not sent: one, or some in a row. After
 * a single fault the outcome is known. */
static void each_fault(void **state, scenario *submit_it, bool three, bool lists)
{
    unsigned steps = count_steps(state, submit_it, lists);
    for (unsigned n = 0; n < steps * FAULT_COUNT * 3; n++) {
        struct tx_test *t = *state;
        if (lists) {
            tx_make_lists(t);
        }
        t->fault_at = n / FAULT_COUNT % steps;
        t->fault = n % FAULT_COUNT;
        t->fault_count = 1 + n / FAULT_COUNT / steps;
        submit_it(&t->tx);
        tx_run(t, &t->tx);
        assert_true(t->fault_count > 1 || tx_outcome(&t->tx) != UNKNOWN);
        tx_assert_as_told(t, three);
        tx_late_ones_arrive(t);
        tx_assert_as_told(t, three);
        tx_begin_anew(state);
    }
}

/* What was answered does not depend on the primary any more. */
static void test_the_primary_is_lost_behind_the_answer(void **state)
{
    unsigned steps = count_steps(state, tx_submit_three, true);
    for (unsigned n = 0; n < steps * FAULT_COUNT; n++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        t->fault_at = n / FAULT_COUNT;
        t->fault = n % FAULT_COUNT;
        t->fault_count = 1;
        tx_submit_three(&t->tx);
        tx_run(t, &t->tx);
        if (tx_outcome(&t->tx) == DONE) {
            store_evict(&t->store, SLICE_LIT("a#"));
            assert_true(tx_has(t, "b", tx_y));
            assert_true(tx_has(t, "c", tx_z));
        }
        tx_begin_anew(state);
    }
}

static void test_faults_two_lists(void **state)
{
    each_fault(state, tx_submit_two, false, true);
}

static void test_faults_three_lists(void **state)
{
    each_fault(state, tx_submit_three, true, true);
}

static void test_faults_missing_lists(void **state)
{
    each_fault(state, tx_submit_two, false, false);
}

/* ---- others in between ---- */

static const char *raw_key, *raw_entries;

static void write_entries(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, raw_key, raw_entries), BE_STORED);
}

static void make_b(struct tx_test *t)
{
    (void)tx_write_raw(t, BE_ADD, "b#", "^1\n+1:q");
}

/* Another writer makes the list that was missing. */
static void test_a_list_that_comes(void **state)
{
    unsigned steps = count_steps(state, tx_submit_two, false);
    for (unsigned at = 0; at < steps; at++) {
        struct tx_test *t = *state;
        t->hook_at = at;
        t->hook = make_b;
        tx_submit_two(&t->tx);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_OK);
        tx_assert_as_told(t, false);
        tx_begin_anew(state);
    }
}

/* A change of others at each moment: of the items of the transaction, of another one, of all. */
static void test_writers_in_between(void **state)
{
    static const char *const keys[] = {"a#", "b#"};
    static const char *const entries[] = {"-1:x", "-1:y", "+1:n", "!0:"};
    unsigned steps = count_steps(state, tx_submit_two, true);
    for (unsigned at = 0; at < steps; at++) {
        for (size_t i = 0; i < 8; i++) {
            struct tx_test *t = *state;
            tx_make_lists(t);
            raw_key = keys[i % 2];
            raw_entries = entries[i / 2];
            t->hook_at = at;
            t->hook = write_entries;
            tx_submit_two(&t->tx);
            tx_run(t, &t->tx);
            /* The change came before the transaction, or behind it: then its item is gone. */
            assert_int_equal(t->tx.call.status, LIST_OK);
            bool a = tx_has(t, "a", tx_x), b = tx_has(t, "b", tx_y);
            bool of_a = i % 2 == 0 && (i / 2 == 0 || i / 2 == 3);
            bool of_b = i % 2 == 1 && (i / 2 == 1 || i / 2 == 3);
            assert_true(a || of_a);
            assert_true(b || of_b);
            tx_begin_anew(state);
        }
    }
}

/* What a deleter of both lists leaves is all or nothing, whenever it comes: where the item is gone
 * from the list that it took first, it is gone from the other one. */
static void delete_both(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "a#", "-1:x"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_APPEND, "b#", "-1:y"), BE_STORED);
}

static void delete_both_back(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "b#", "-1:y"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_APPEND, "a#", "-1:x"), BE_STORED);
}

static void test_a_deleter_of_both(void **state)
{
    unsigned steps = count_steps(state, tx_submit_two, true);
    for (unsigned at = 0; at < 2 * steps; at++) {
        struct tx_test *t = *state;
        tx_run_two(t, at / 2, at % 2 == 0 ? delete_both : delete_both_back);
        assert_int_equal(t->tx.call.status, LIST_OK);
        assert_int_equal(tx_has(t, "a", tx_x), tx_has(t, "b", tx_y));
        tx_begin_anew(state);
    }
}

/* The items of one list each, by the list's number. */
static void delete_x(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "a#", "-1:x"), BE_STORED);
}

static void delete_y(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "b#", "-1:y"), BE_STORED);
}

static void delete_z(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "c#", "-1:z"), BE_STORED);
}

static const struct {
    const char *key;
    const struct slice *item;
    void (*delete_it)(struct tx_test *t);
} of_list[] = {{"a", &tx_x, delete_x}, {"b", &tx_y, delete_y}, {"c", &tx_z, delete_z}};

static bool has_its_item(struct tx_test *t, size_t list)
{
    return tx_has(t, of_list[list].key, *of_list[list].item);
}

/* One deletes first in one list, and later in another: where the first came behind the transaction,
 * so did the second. */
static void deletes_in_turn(void **state, scenario *submit_it, size_t first, size_t second)
{
    unsigned steps = count_steps(state, submit_it, true);
    for (unsigned at = 0; at < steps; at++) {
        for (unsigned later = at; later < steps; later++) {
            struct tx_test *t = *state;
            tx_make_lists(t);
            t->hook_at = at;
            t->hook = of_list[first].delete_it;
            t->second_at = later;
            t->second = of_list[second].delete_it;
            submit_it(&t->tx);
            tx_run(t, &t->tx);
            assert_int_equal(t->tx.call.status, LIST_OK);
            assert_true(has_its_item(t, first) || !has_its_item(t, second));
            tx_begin_anew(state);
        }
    }
}

static void test_a_deleter_of_two_lists(void **state)
{
    deletes_in_turn(state, tx_submit_two, 0, 1);
    deletes_in_turn(state, tx_submit_two, 1, 0);
}

static void test_a_deleter_of_three_lists(void **state)
{
    for (size_t first = 0; first < 3; first++) {
        for (size_t second = 0; second < 3; second++) {
            deletes_in_turn(state, tx_submit_three, first, second);
        }
    }
}

static const char *lost_key;

static void lose_a_list(struct tx_test *t)
{
    store_evict(&t->store, slice_of(lost_key));
}

/* The server evicts one of three lists: the others agree, with each other and with what the client
 * was told. */
static void test_a_list_that_is_lost(void **state)
{
    static const char *const keys[] = {"a#", "b#", "c#"};
    unsigned steps = count_steps(state, tx_submit_three, true);
    for (unsigned at = 0; at <= steps; at++) {
        for (size_t lost = 0; lost < 3; lost++) {
            struct tx_test *t = *state;
            tx_make_lists(t);
            lost_key = keys[lost];
            t->hook_at = at;
            t->hook = lose_a_list;
            tx_submit_three(&t->tx);
            tx_run(t, &t->tx);
            bool one = has_its_item(t, (lost + 1) % 3), other = has_its_item(t, (lost + 2) % 3);
            enum outcome outcome = tx_outcome(&t->tx);
            assert_true(one == other || (lost == 0 && outcome == UNKNOWN));
            assert_true(outcome == UNKNOWN || one == (outcome == DONE));
            tx_begin_anew(state);
        }
    }
}

/* A list that is lost before it was validated has what was announced to it then, or nothing is
 * committed. */
static void test_a_list_that_is_lost_early(void **state)
{
    for (unsigned at = 0; at <= 5; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        lost_key = "b#";
        t->hook_at = at;
        t->hook = lose_a_list;
        tx_submit_two(&t->tx);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_OK);
        tx_assert_as_told(t, false);
        tx_begin_anew(state);
    }
}

/* The primary is lost, and a reader of another list aborts what it finds there. */
static void lose_and_read(struct tx_test *t)
{
    store_evict(&t->store, SLICE_LIT("a#"));
    (void)tx_has(t, "b", tx_y);
}

/* The same, and what it has aborted is compacted away. */
static void lose_and_compact(struct tx_test *t)
{
    struct party *p = &t->other;
    lose_and_read(t);
    p->call = (struct list_call){0};
    tx_name_list(p, 0, "b");
    tx_submit(p, LIST_COMPACT);
    tx_run(t, p);
}

static void test_a_reader_behind_a_loss(void **state)
{
    unsigned steps = count_steps(state, tx_submit_three, true);
    for (unsigned at = 0; at <= 2 * steps; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        t->hook_at = at / 2;
        t->hook = at % 2 == 0 ? lose_and_read : lose_and_compact;
        tx_submit_three(&t->tx);
        tx_run(t, &t->tx);
        bool b = has_its_item(t, 1), c = has_its_item(t, 2);
        enum outcome outcome = tx_outcome(&t->tx);
        assert_true(outcome == UNKNOWN || (b == (outcome == DONE) && c == b));
        tx_begin_anew(state);
    }
}

static void read_both(struct tx_test *t)
{
    bool a = tx_has(t, "a", tx_x), b = tx_has(t, "b", tx_y);
    assert_true(!a || b); /* it may commit in between */
}

/* A reader at each moment sees all or nothing; at most it has the transaction begin anew. */
static void test_a_reader_in_between(void **state)
{
    unsigned steps = count_steps(state, tx_submit_two, true);
    for (unsigned at = 0; at < steps; at++) {
        struct tx_test *t = *state;
        tx_run_two(t, at, read_both);
        assert_int_equal(t->tx.call.status, LIST_OK);
        tx_assert_as_told(t, false);
        tx_begin_anew(state);
    }
}

/* The other way round: x leaves "a" and y leaves "b", whole, at each moment of the first. */
static void run_other(struct tx_test *t)
{
    struct party *p = &t->other;
    tx_name_list(p, 0, "b");
    tx_also(p, TX_OP_DEL, &tx_y, 1);
    tx_name_list(p, 1, "a");
    tx_also(p, TX_OP_DEL, &tx_x, 1);
    tx_submit(p, LIST_TX);
    tx_run(t, p);
    assert_int_equal(p->call.status, LIST_OK);
}

static void test_a_transaction_in_between(void **state)
{
    unsigned steps = count_steps(state, tx_submit_two, true);
    for (unsigned at = 0; at < steps; at++) {
        struct tx_test *t = *state;
        tx_run_two(t, at, run_other);
        assert_int_equal(t->tx.call.status, LIST_OK);
        assert_int_equal(tx_has(t, "a", tx_x), tx_has(t, "b", tx_y));
        tx_begin_anew(state);
    }
}

/* Two proxies take steps in turns, in all sorts of order. */
static void test_crossing(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct tx_test *t = *state;
        struct party *p = &t->other;
        struct rng rng;
        rng_init_seed(&rng, seed);
        tx_make_lists(t);
        tx_submit_two(&t->tx);
        tx_name_list(p, 0, "b");
        tx_also(p, TX_OP_DEL, &tx_y, 1);
        tx_name_list(p, 1, "a");
        tx_also(p, TX_OP_DEL, &tx_x, 1);
        tx_submit(p, LIST_TX);
        bool mine = true, others = true;
        while (mine || others) {
            bool first = others ? rng_below(&rng, 2) == 0 && mine : true;
            if (first) {
                mine = tx_step(t, &t->tx);
            } else {
                others = tx_step(t, p);
            }
            uint64_t now_us = t->tx.rig.now.mono_us > p->rig.now.mono_us ? t->tx.rig.now.mono_us
                                                                         : p->rig.now.mono_us;
            t->tx.rig.now.mono_us = p->rig.now.mono_us = now_us;
        }
        tx_run(t, &t->tx);
        tx_run(t, p);
        assert_int_equal(t->tx.call.status, LIST_OK);
        assert_int_equal(p->call.status, LIST_OK);
        assert_int_equal(tx_has(t, "a", tx_x), tx_has(t, "b", tx_y));
        tx_begin_anew(state);
    }
}

/* Two of one worker on the same items: the second waits for the first, and neither is in the
 * other's way. */
static void test_the_line_of_a_worker(void **state)
{
    struct tx_test *t = *state;
    struct party *p = &t->tx;
    static struct list_call second;
    static struct call_list lists[2];
    static struct list_session session;
    tx_make_lists(t);
    tx_submit_two(p);
    lists[0] = p->lists[0];
    lists[1] = p->lists[1];
    second = (struct list_call){.verb = LIST_TX,
                                .key = lists[0].key,
                                .policy = tx_policy(p),
                                .session = &session,
                                .lists = lists,
                                .list_count = 2};
    engine_submit(p->rig.engine, &second, p->rig.now);
    while (tx_step(t, p)) {
    }
    assert_int_equal(p->call.status, LIST_OK);
    assert_int_equal(second.status, LIST_OK);
    assert_int_equal(metric_get(&p->rig.metrics, METRIC_list_transactions), 2);
    assert_int_equal(metric_get(&p->rig.metrics, METRIC_list_transactions_aborted), 0);
    assert_int_equal(metric_get(&p->rig.metrics, METRIC_list_intents_settled), 0);
}

/* The time is over while request `at` is under way: what the client is told then is so in the end.
 */
static void test_deadlines(void **state)
{
    for (unsigned at = 0; at < 10; at++) {
        struct tx_test *t = *state;
        struct party *p = &t->tx;
        tx_make_lists(t);
        p->call.deadline_us = p->rig.now.mono_us + 1000000;
        tx_submit_two(p);
        for (unsigned i = 0; i < at; i++) {
            assert_true(tx_step(t, p));
        }
        (void)engine_run(p->rig.engine, p->rig.now);
        struct list_request *r = engine_take_request(p->rig.engine);
        p->rig.now.mono_us += 2000000;
        (void)engine_run(p->rig.engine, p->rig.now);
        assert_ptr_equal(engine_take_done(p->rig.engine), &p->call);
        assert_int_equal(p->call.status, LIST_SERVER_ERROR);
        assert_int_equal(tx_outcome(p), at < 6 ? NOTHING_DONE : UNKNOWN);
        tx_answer(t, p, r, FAULT_NONE);
        p->done = true;
        tx_run(t, p);
        tx_assert_as_told(t, false);
        tx_begin_anew(state);
    }
}

/* ---- what `stats` shows ---- */

/* While it is under way it is in one phase, and its age is known; each phase is passed through. */
static void test_levels(void **state)
{
    static const unsigned levels[] = {METRIC_transactions_waiting, METRIC_transactions_pending,
                                      METRIC_transactions_committed};
    struct tx_test *t = *state;
    const struct metrics *metrics = &t->tx.rig.metrics;
    uint64_t steps[3] = {0};
    tx_make_lists(t);
    tx_name_list(&t->tx, 0, "a");
    tx_also(&t->tx, TX_OP_ADD, &tx_x, 1);
    tx_name_list(&t->tx, 1, "b");
    tx_also(&t->tx, TX_OP_ADD, &tx_x, 1);
    tx_submit(&t->tx, LIST_TX);
    do {
        uint64_t sum = 0;
        for (size_t i = 0; i < 3; i++) {
            uint64_t level = metric_get(metrics, levels[i]);
            sum += level;
            steps[i] += level;
        }
        assert_true(sum <= 1);
        assert_int_equal(metric_get(metrics, METRIC_transaction_age),
                         sum * (uint64_t)t->tx.rig.now.wall_s);
    } while (tx_step(t, &t->tx));
    for (size_t i = 0; i < 3; i++) {
        assert_true(steps[i] > 0);
        assert_int_equal(metric_get(metrics, levels[i]), 0);
    }
    assert_int_equal(metric_get(metrics, METRIC_transaction_age), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        tx_test(test_two_lists),
        tx_test(test_order_of_requests),
        tx_test(test_the_primary_is_lost_when_it_is_decided),
        tx_test(test_others_finish_it_and_fold_it_away),
        tx_test(test_faults_two_lists),
        tx_test(test_faults_three_lists),
        tx_test(test_faults_missing_lists),
        tx_test(test_the_primary_is_lost_behind_the_answer),
        tx_test(test_a_list_that_comes),
        tx_test(test_writers_in_between),
        tx_test(test_a_deleter_of_both),
        tx_test(test_a_deleter_of_two_lists),
        tx_test(test_a_deleter_of_three_lists),
        tx_test(test_a_list_that_is_lost),
        tx_test(test_a_list_that_is_lost_early),
        tx_test(test_a_reader_behind_a_loss),
        tx_test(test_a_reader_in_between),
        tx_test(test_a_transaction_in_between),
        tx_test(test_crossing),
        tx_test(test_the_line_of_a_worker),
        tx_test(test_deadlines),
        tx_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
