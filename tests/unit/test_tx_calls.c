/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ltx, lmove and lpopto: conditions, lists that are missing or of another kind, deadlines, and what
 * they answer. The order of requests: test_tx.
 */
#include "tx_party.h"

#include <stdio.h>

#include "base/memory.h"
#include "list/core/engine_state.h"
#include "list/core/inner.h"

static char text[512];

static const char *answer_text(struct party *p)
{
    size_t n = 0;
    const struct chain *answer = &p->call.answer;
    for (size_t i = answer->first; i < answer->first + answer->count; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", (int)answer->segs[i].len,
                              answer->segs[i].p);
    }
    text[n] = '\0';
    chain_clear(&p->call.answer);
    return text;
}

static bool is_there(struct tx_test *t, const char *key)
{
    return store_find(&t->store, slice_of(key), t->tx.rig.now.wall_s) != NULL;
}

/* ---- conditions ---- */

static void submit_conditions(struct party *p, enum tx_op op, const struct slice *item,
                              const char *on)
{
    bool first = on[0] == 'a';
    tx_name_list(p, 0, "a");
    tx_also(p, first ? op : TX_OP_ADD, first ? item : &tx_x, 1);
    tx_name_list(p, 1, "b");
    tx_also(p, first ? TX_OP_ADD : op, first ? &tx_x : item, 1);
    tx_submit(p, LIST_TX);
}

/* x joins "a", if the item is in "b", or is not. */
static void submit_condition(struct party *p, enum tx_op op, const struct slice *item)
{
    submit_conditions(p, op, item, "b");
}

static void test_conditions(void **state)
{
    static const struct slice p = {"p", 1}, q = {"q", 1};
    static const struct {
        enum tx_op op;
        const struct slice *item;
        enum list_status status;
    } cases[] = {{TX_OP_REQUIRE, &q, LIST_OK},
                 {TX_OP_REQUIRE, &p, LIST_NOT_STORED},
                 {TX_OP_REFUSE, &q, LIST_NOT_STORED},
                 {TX_OP_REFUSE, &p, LIST_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int of_primary = 0; of_primary < 2; of_primary++) {
            struct tx_test *t = *state;
            const char *on = of_primary ? "a" : "b", *changed = of_primary ? "b" : "a";
            assert_int_equal(tx_write_raw(t, BE_ADD, of_primary ? "a#" : "b#", "^1\n+1:q"),
                             BE_STORED);
            submit_conditions(&t->tx, cases[i].op, cases[i].item, on);
            tx_run(t, &t->tx);
            assert_int_equal(t->tx.call.status, cases[i].status);
            assert_int_equal(tx_has(t, changed, tx_x), cases[i].status == LIST_OK);
            assert_int_equal(t->reader.steps, 1); /* nothing is left to settle */
            tx_begin_anew(state);
        }
    }
}

/* Both stand before the changes of the same transaction. */
static void test_conditions_come_first(void **state)
{
    struct tx_test *t = *state;
    tx_make_lists(t);
    tx_name_list(&t->tx, 0, "a");
    tx_also(&t->tx, TX_OP_ADD, &tx_x, 1);
    tx_also(&t->tx, TX_OP_REFUSE, &tx_x, 1);
    tx_submit(&t->tx, LIST_TX);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    assert_true(tx_has(t, "a", tx_x));
}

static void move_to_disk(struct tx_test *t)
{
    store_find(&t->store, SLICE_LIT("a#"), t->tx.rig.now.wall_s)->on_disk = true;
    store_find(&t->store, SLICE_LIT("b#"), t->tx.rig.now.wall_s)->on_disk = true;
}

/* Their server takes no appends to them then, at whatever step. */
static void test_lists_that_move_to_disk(void **state)
{
    for (unsigned at = 0; at < 11; at++) {
        struct tx_test *t = *state;
        tx_run_two(t, at, move_to_disk);
        assert_int_equal(t->tx.call.status, LIST_OK);
        tx_assert_as_told(t, false);
        tx_begin_anew(state);
    }
}

/* Nothing that means anything, up to the last bytes of what the server takes. */
static void fill_list(struct tx_test *t, const char *key)
{
    static const char nothing[] = "&15:fffffffffffff a";
    const struct item *item = store_find(&t->store, slice_of(key), t->tx.rig.now.wall_s);
    while (store_takes(&t->store, item->value->used + strlen(nothing))) {
        assert_int_equal(tx_write_raw(t, BE_APPEND, key, nothing), BE_STORED);
    }
}

static void fill_both(struct tx_test *t)
{
    t->store.small_max = 4064;
    fill_list(t, "a#");
    fill_list(t, "b#");
}

/* What was begun then is done or not, as it is said, and no list is stuck. */
static void test_lists_that_are_full(void **state)
{
    for (unsigned at = 0; at < 11; at++) {
        struct tx_test *t = *state;
        tx_run_two(t, at, fill_both);
        tx_assert_as_told(t, false);
        assert_int_not_equal(tx_outcome(&t->tx), UNKNOWN);
        tx_begin_anew(state);
    }
}

static void delete_q(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "b#", "-1:q"), BE_STORED);
}

/* The condition holds as of the transaction, or the transaction is not: whenever q goes. */
static void test_a_condition_that_ends(void **state)
{
    static const struct slice q = {"q", 1};
    for (unsigned at = 0; at < 11; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        t->hook_at = at;
        t->hook = delete_q;
        submit_condition(&t->tx, TX_OP_REQUIRE, &q);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, at <= 5 ? LIST_NOT_STORED : LIST_OK);
        assert_int_equal(tx_has(t, "a", tx_x), at > 5);
        tx_begin_anew(state);
    }
}

#define OTHER_INTENT(entries) "?37:aaaaaaaaaaaaa.1700000000 3 c a b " entries

static void commit_other(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "c#", "&15:aaaaaaaaaaaaa c"), BE_STORED);
}

/* Another transaction that is not decided yet stands in front, and adds q: it commits meanwhile. */
static void test_a_condition_behind_another_transaction(void **state)
{
    static const struct slice q = {"q", 1};
    for (int present = 0; present < 2; present++) {
        struct tx_test *t = *state;
        assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n"), BE_STORED);
        assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1\n" OTHER_INTENT("+1:q")), BE_STORED);
        assert_int_equal(tx_write_raw(t, BE_ADD, "c#", "^1\n" OTHER_INTENT("+1:s")), BE_STORED);
        t->hook_at = 7; /* behind the first look at "c" */
        t->hook = commit_other;
        submit_condition(&t->tx, present ? TX_OP_REQUIRE : TX_OP_REFUSE, &q);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, present ? LIST_OK : LIST_NOT_STORED);
        assert_int_equal(tx_has(t, "a", tx_x), present);
        assert_true(tx_has(t, "b", q));
        tx_begin_anew(state);
    }
}

/* Its coordinator is gone: it is aborted. */
static void test_a_dead_transaction_in_front(void **state)
{
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n" OTHER_INTENT("+1:x")), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1\n" OTHER_INTENT("+1:y")), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "c#", "^1\n" OTHER_INTENT("+1:s")), BE_STORED);
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    tx_assert_as_told(t, false);
    assert_false(tx_has(t, "c", SLICE_LIT("s")));
}

static void ten_seconds_pass(struct tx_test *t)
{
    t->tx.rig.now.wall_s += 10;
}

/* It is over before the commit: the condition does not hold any more. */
static void test_a_condition_on_an_item_with_a_time(void **state)
{
    for (unsigned at = 1; at <= 5; at++) {
        struct tx_test *t = *state;
        assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n@12:1700000005:x"), BE_STORED);
        assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1\n"), BE_STORED);
        t->hook_at = at;
        t->hook = ten_seconds_pass;
        submit_conditions(&t->tx, TX_OP_REQUIRE, &tx_x, "a");
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_NOT_STORED);
        tx_begin_anew(state);
    }
}

/* A list that has its items in sublists: what it holds is found there. */
static void make_runs(struct tx_test *t, const char *key)
{
    static char items[100][4];
    static struct slice slices[100];
    struct party *p = &t->other;
    for (size_t i = 0; i < 100; i++) {
        slices[i] = slice_make(items[i], (size_t)snprintf(items[i], sizeof items[i], "%zu", i));
    }
    tx_policy(p)->log_limit_bytes = 256;
    tx_policy(p)->sublist_limit_bytes = 256;
    for (int round = 0; round < 2; round++) {
        p->call = (struct list_call){.items = slices, .item_count = 100};
        tx_name_list(p, 0, key);
        tx_submit(p, round == 0 ? LIST_ADD : LIST_COMPACT);
        tx_run(t, p);
        assert_int_equal(p->call.status, LIST_OK);
    }
    p->call = (struct list_call){0};
    struct item *head = store_find(&t->store, SLICE_LIT("b#"), t->tx.rig.now.wall_s);
    assert_true(head != NULL && memchr(head->value->data, ':', 40) != NULL);
}

static void test_conditions_on_runs(void **state)
{
    static const struct slice in = {"42", 2}, out = {"142", 3};
    static const struct {
        enum tx_op op;
        const struct slice *item;
        enum list_status status;
    } cases[] = {{TX_OP_REQUIRE, &in, LIST_OK},
                 {TX_OP_REQUIRE, &out, LIST_NOT_STORED},
                 {TX_OP_REFUSE, &in, LIST_NOT_STORED},
                 {TX_OP_REFUSE, &out, LIST_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tx_test *t = *state;
        make_runs(t, "b");
        submit_condition(&t->tx, cases[i].op, cases[i].item);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, cases[i].status);
        assert_int_equal(tx_has(t, "a", tx_x), cases[i].status == LIST_OK);
        tx_begin_anew(state);
    }
}

/* ---- lists that are missing, end, or are none ---- */

static void test_refuses_a_missing_list(void **state)
{
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p"), BE_STORED);
    tx_policy(&t->tx)->on_missing = ON_MISSING_REFUSE;
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_MISSING);
    assert_false(is_there(t, "b#"));
    tx_assert_head(t, "a#", "^1\n+1:p");
}

/* What is asked of lists that are missing leaves no heads, whether it holds or not. */
static void test_conditions_leave_no_heads(void **state)
{
    for (int holds = 0; holds < 2; holds++) {
        for (int round = 0; round < 3; round++) {
            struct tx_test *t = *state;
            submit_conditions(&t->tx, holds ? TX_OP_REFUSE : TX_OP_REQUIRE, &tx_y, "b");
            tx_run(t, &t->tx);
            assert_int_equal(t->tx.call.status, holds ? LIST_OK : LIST_NOT_STORED);
            assert_false(is_there(t, "b#"));
            assert_int_equal(is_there(t, "a#"), holds);
        }
        tx_begin_anew(state);
    }
}

/* Nor do changes that add nothing to them, whichever list decides. */
static void test_deletions_leave_no_heads(void **state)
{
    static const enum tx_op first[] = {TX_OP_DEL, TX_OP_SET, TX_OP_ADD,
                                       TX_OP_ADD, TX_OP_DEL, TX_OP_SET},
                            second[] = {TX_OP_ADD, TX_OP_ADD, TX_OP_DEL,
                                        TX_OP_SET, TX_OP_SET, TX_OP_DEL};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        struct tx_test *t = *state;
        tx_name_list(&t->tx, 0, "a");
        tx_also(&t->tx, first[i], &tx_x, first[i] == TX_OP_SET ? 0 : 1);
        tx_name_list(&t->tx, 1, "b");
        tx_also(&t->tx, second[i], &tx_x, second[i] == TX_OP_SET ? 0 : 1);
        tx_submit(&t->tx, LIST_TX);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_OK);
        assert_int_equal(is_there(t, "a#"), first[i] == TX_OP_ADD);
        assert_int_equal(is_there(t, "b#"), second[i] == TX_OP_ADD);
        tx_begin_anew(state);
    }
}

static void add_to_b(struct tx_test *t)
{
    (void)tx_write_raw(t, BE_APPEND, "b#", "+1:q");
}

/* What others add to it meanwhile stays. */
static void test_a_list_that_is_asked_for_and_filled_stays(void **state)
{
    for (unsigned at = 0; at < 28; at++) {
        struct tx_test *t = *state;
        t->hook_at = at / 2;
        t->hook = add_to_b;
        submit_conditions(&t->tx, at % 2 == 0 ? TX_OP_REFUSE : TX_OP_DEL, &tx_y, "b");
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_OK);
        struct item *head = store_find(&t->store, SLICE_LIT("b#"), t->tx.rig.now.wall_s);
        assert_true(head == NULL || tx_has(t, "b", SLICE_LIT("q")));
        tx_begin_anew(state);
    }
}

static void evict_b(struct tx_test *t)
{
    store_evict(&t->store, SLICE_LIT("b#"));
}

/* It goes while the transaction is under way. Behind the commit that is the loss of a list. */
static void test_a_list_that_goes(void **state)
{
    for (unsigned at = 0; at <= 5; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        tx_policy(&t->tx)->on_missing = ON_MISSING_REFUSE;
        t->hook_at = at;
        t->hook = evict_b;
        tx_submit_two(&t->tx);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_MISSING);
        assert_false(is_there(t, "b#"));
        assert_false(tx_has(t, "a", tx_x));
        tx_begin_anew(state);
    }
}

/* Whatever the worker remembers of it, and though a condition does not hold. */
static void test_a_missing_list_counts_first(void **state)
{
    for (int knows = 0; knows < 2; knows++) {
        struct tx_test *t = *state;
        static const struct slice n = {"n", 1};
        tx_make_lists(t);
        tx_policy(&t->tx)->on_missing = ON_MISSING_REFUSE;
        if (knows) {
            tx_submit_two(&t->tx);
            tx_run(t, &t->tx);
            assert_int_equal(t->tx.call.status, LIST_OK);
        }
        evict_b(t);
        submit_conditions(&t->tx, TX_OP_REQUIRE, &n, "a");
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_MISSING);
        tx_begin_anew(state);
    }
}

static void make_mortal(struct tx_test *t, const char *key)
{
    struct item *item = store_find(&t->store, slice_of(key), t->tx.rig.now.wall_s);
    item->expires_s = t->tx.rig.now.wall_s + 1000;
}

/* The record of the transaction is a list that stays. */
static void test_a_list_that_ends_is_no_primary(void **state)
{
    struct tx_test *t = *state;
    tx_make_lists(t);
    make_mortal(t, "a#");
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    tx_assert_as_told(t, false);
    struct slice value = item_value(store_find(&t->store, SLICE_LIT("b#"), 0));
    assert_non_null(memmem(value.p, value.len, " 2 b a ", 7));
}

/* It gets its time to live after it was looked at. */
static void end_a(struct tx_test *t)
{
    make_mortal(t, "a#");
}

static void test_a_primary_that_turns_out_to_end(void **state)
{
    struct tx_test *t = *state;
    tx_run_two(t, 2, end_a);
    assert_int_equal(t->tx.call.status, LIST_OK);
    tx_assert_as_told(t, false);
    struct slice value = item_value(store_find(&t->store, SLICE_LIT("b#"), 0));
    assert_non_null(memmem(value.p, value.len, " 2 b a ", 7));
}

static void test_all_lists_end(void **state)
{
    struct tx_test *t = *state;
    tx_make_lists(t);
    make_mortal(t, "a#");
    make_mortal(t, "b#");
    tx_submit_two(&t->tx);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_CLIENT_ERROR);
    assert_non_null(strstr(t->tx.call.error, "time to live"));
    tx_assert_head(t, "a#", "^1\n+1:p");
    tx_assert_head(t, "b#", "^1\n+1:q");
}

/* ---- room ---- */

static void test_a_long_log_is_compacted_first(void **state)
{
    struct tx_test *t = *state;
    char value[1200] = "^1\n";
    tx_policy(&t->tx)->log_limit_bytes = 256;
    tx_policy(&t->tx)->log_hard_limit_bytes = 1024;
    tx_make_lists(t);
    for (size_t n = 3; n < 1000; n += 4) {
        memcpy(value + n, n % 8 == 3 ? "+1:s" : "-1:s", 5);
    }
    store_evict(&t->store, SLICE_LIT("b#"));
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", value), BE_STORED);
    tx_submit_two(&t->tx);
    while (tx_step(t, &t->tx)) {
        struct item *head = store_find(&t->store, SLICE_LIT("b#"), t->tx.rig.now.wall_s);
        assert_true(head == NULL || item_value(head).len <= 1024);
    }
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    tx_assert_as_told(t, false);
}

/* Lists with long logs are compacted one after the other, where together they would take more than
 * fold_memory_bytes. */
static void test_long_logs_are_folded_in_turns(void **state)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct tx_test *t = *state;
    char head[1024] = "^1\n";
    unsigned most = 0;
    tx_policy(&t->tx)->log_limit_bytes = 400;
    tx_policy(&t->tx)->fold_memory_bytes = 12 << 10;
    for (size_t n = strlen(head); n < 900; n += 4) {
        memcpy(head + n, "+1:p", 5);
    }
    for (size_t i = 0; i < 3; i++) {
        char key[3] = {keys[i][0], '#', '\0'};
        assert_int_equal(tx_write_raw(t, BE_SET, key, head), BE_STORED);
    }
    tx_submit_three(&t->tx);
    bool goes_on = true;
    while (goes_on) {
        unsigned under_way = 0;
        goes_on = tx_step(t, &t->tx);
        for (size_t i = 0; i < 3; i++) {
            struct list *list = lists_find(&t->tx.rig.engine->lists, slice_of(keys[i]));
            under_way += list != NULL && list->compaction != NULL;
        }
        most = under_way > most ? under_way : most;
    }
    assert_int_equal(t->tx.call.status, LIST_OK);
    assert_int_equal(most, 2);
    for (size_t i = 0; i < 3; i++) {
        char key[3] = {keys[i][0], '#', '\0'};
        struct item *item = store_find(&t->store, slice_of(key), t->tx.rig.now.wall_s);
        assert_true(item != NULL && item_value(item).len < 200);
    }
    assert_int_equal(t->tx.rig.engine->lists.compacting_bytes, 0);
}

static void test_too_large(void **state)
{
    struct tx_test *t = *state;
    static char bytes[200];
    struct slice item = {bytes, sizeof bytes};
    memset(bytes, 'i', sizeof bytes);
    tx_policy(&t->tx)->log_hard_limit_bytes = 800;
    tx_make_lists(t);
    tx_name_list(&t->tx, 0, "a");
    tx_also(&t->tx, TX_OP_ADD, &item, 1);
    tx_submit(&t->tx, LIST_TX);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_CLIENT_ERROR);
    assert_non_null(strstr(t->tx.call.error, "log_hard_limit_bytes is 200"));
    tx_assert_head(t, "a#", "^1\n+1:p");
}

/* ---- caps ---- */

static void submit_to_capped(struct tx_test *t, enum list_cap cap)
{
    struct party *p = &t->tx;
    tx_policy(p)->max_items = 2;
    tx_policy(p)->cap = cap;
    tx_submit_two(p);
    tx_run(t, p);
}

static void test_a_full_list_refuses(void **state)
{
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1 #2.refuse\n+1:p"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1 #2.refuse\n+1:p+1:q"), BE_STORED);
    submit_to_capped(t, CAP_REFUSE);
    assert_int_equal(t->tx.call.status, LIST_NOT_STORED);
    assert_false(tx_has(t, "a", tx_x));
    assert_false(tx_has(t, "b", tx_y));
}

static void test_a_full_list_drops(void **state)
{
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1 #2.drop\n+1:p"), BE_STORED);
    assert_int_equal(tx_write_raw(t, BE_ADD, "b#", "^1 #2.drop\n+1:p+1:q"), BE_STORED);
    submit_to_capped(t, CAP_DROP_OLDEST);
    assert_int_equal(t->tx.call.status, LIST_OK);
    tx_assert_as_told(t, false);
    assert_false(tx_has(t, "b", SLICE_LIT("p")));
    assert_true(tx_has(t, "b", SLICE_LIT("q")));
}

/* ---- lmove, lpopto ---- */

static void name_two(struct party *p)
{
    tx_name_list(p, 0, "a");
    tx_name_list(p, 1, "b");
}

static void test_lmove(void **state)
{
    static const struct slice items[] = {{"p", 1}, {"n", 1}, {"p", 1}, {"s", 1}};
    struct tx_test *t = *state;
    assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p+1:s+1:t"), BE_STORED);
    t->tx.call.items = items;
    t->tx.call.item_count = 4;
    name_two(&t->tx);
    tx_submit(&t->tx, LIST_MOVE);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    assert_int_equal(t->tx.call.number, 2);
    assert_false(tx_has(t, "a", SLICE_LIT("p")));
    assert_true(tx_has(t, "a", SLICE_LIT("t")));
    assert_true(tx_has(t, "b", SLICE_LIT("p")));
    assert_true(tx_has(t, "b", SLICE_LIT("s")));
    assert_false(tx_has(t, "b", SLICE_LIT("n")));
}

/* Many items are one question, and what they take is the client's. */
static void test_lmove_of_many_items(void **state)
{
    static char bytes[400][4];
    static struct slice items[400];
    struct tx_test *t = *state;
    uint64_t most = 0, before, charged = 0;
    for (size_t i = 0; i < 400; i++) {
        items[i] = slice_make(bytes[i], (size_t)snprintf(bytes[i], sizeof bytes[i], "%zu", i));
    }
    make_runs(t, "b");
    memory_settle();
    before = memory_held();
    t->tx.call = (struct list_call){.items = items, .item_count = 400};
    tx_name_list(&t->tx, 0, "b");
    tx_name_list(&t->tx, 1, "a");
    tx_submit(&t->tx, LIST_MOVE);
    while (tx_step(t, &t->tx)) {
        memory_settle();
        most = memory_held() > most ? memory_held() : most;
        charged = t->tx.session.charged_bytes > charged ? t->tx.session.charged_bytes : charged;
    }
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    assert_int_equal(t->tx.call.number, 100);
    assert_true(tx_has(t, "a", SLICE_LIT("99")));
    assert_false(tx_has(t, "b", SLICE_LIT("99")));
    assert_true(charged > sizeof items);
    assert_in_range(most - before, sizeof items, 400 * sizeof(struct inner) / 2);
    assert_int_equal(t->tx.session.charged_bytes, 0);
}

/* It is refused before anything is asked. */
static void test_lmove_too_large(void **state)
{
    static struct slice items[100];
    struct tx_test *t = *state;
    for (size_t i = 0; i < 100; i++) {
        items[i] = SLICE_LIT("item");
    }
    tx_policy(&t->tx)->log_hard_limit_bytes = 2048;
    tx_make_lists(t);
    t->tx.call.items = items;
    t->tx.call.item_count = 100;
    name_two(&t->tx);
    tx_submit(&t->tx, LIST_MOVE);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_CLIENT_ERROR);
    assert_non_null(strstr(t->tx.call.error, "lmove: what it does to one list takes 700 bytes"));
    assert_int_equal(t->tx.steps, 0);
}

static void test_lmove_of_nothing(void **state)
{
    static const struct slice items[] = {{"n", 1}};
    struct tx_test *t = *state;
    tx_make_lists(t);
    t->tx.call.items = items;
    t->tx.call.item_count = 1;
    name_two(&t->tx);
    tx_submit(&t->tx, LIST_MOVE);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
    assert_int_equal(t->tx.call.number, 0);
    assert_int_equal(t->tx.steps, 1);
    tx_assert_head(t, "b#", "^1\n+1:q");
}

static void add_n(struct tx_test *t)
{
    assert_int_equal(tx_write_raw(t, BE_APPEND, "a#", "+1:n"), BE_STORED);
}

/* An item that comes or goes meanwhile: what is counted is what has moved. */
static void test_lmove_counts(void **state)
{
    static const struct slice items[] = {{"p", 1}, {"n", 1}};
    for (unsigned at = 0; at < 12; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        t->tx.call.items = items;
        t->tx.call.item_count = 2;
        t->hook_at = at;
        t->hook = add_n;
        name_two(&t->tx);
        tx_submit(&t->tx, LIST_MOVE);
        tx_run(t, &t->tx);
        assert_int_equal(t->tx.call.status, LIST_OK);
        bool moved = tx_has(t, "b", SLICE_LIT("n"));
        assert_true(tx_has(t, "b", SLICE_LIT("p")));
        assert_int_equal(t->tx.call.number, 1 + moved);
        tx_begin_anew(state);
    }
}

static void pop_to(struct tx_test *t, int64_t count)
{
    t->tx.call.count = count;
    name_two(&t->tx);
    tx_submit(&t->tx, LIST_POPTO);
    tx_run(t, &t->tx);
    assert_int_equal(t->tx.call.status, LIST_OK);
}

static void test_lpopto(void **state)
{
    static const struct {
        int64_t count;
        const char *answer;
    } cases[] = {{1, "p"}, {2, "p,s"}, {9, "p,s,t"}, {-1, "t"}, {-2, "t,s"}, {-9, "t,s,p"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tx_test *t = *state;
        tx_policy(&t->tx)->delimiter = ',';
        assert_int_equal(tx_write_raw(t, BE_ADD, "a#", "^1\n+1:p+1:s+1:t"), BE_STORED);
        pop_to(t, cases[i].count);
        assert_string_equal(answer_text(&t->tx), cases[i].answer);
        assert_int_equal(t->tx.call.number, (strlen(cases[i].answer) + 1) / 2);
        for (const char *at = "pst"; *at != '\0'; at++) {
            struct slice item = {at, 1};
            bool moved = strchr(cases[i].answer, *at) != NULL;
            assert_int_equal(tx_has(t, "a", item), !moved);
            assert_int_equal(tx_has(t, "b", item), moved);
        }
        tx_begin_anew(state);
    }
}

/* A newer item comes while the newest is moved: it is moved, or came behind that. */
static void test_lpopto_the_newest(void **state)
{
    for (unsigned at = 0; at < 14; at++) {
        struct tx_test *t = *state;
        tx_make_lists(t);
        t->hook_at = at;
        t->hook = add_n;
        pop_to(t, -1);
        const char *moved = answer_text(&t->tx);
        assert_true(strcmp(moved, "n") == 0 || (strcmp(moved, "p") == 0 && at > 5));
        assert_int_equal(tx_has(t, "b", SLICE_LIT("n")), strcmp(moved, "n") == 0);
        tx_begin_anew(state);
    }
}

static void test_lpopto_of_nothing(void **state)
{
    struct tx_test *t = *state;
    pop_to(t, 3);
    assert_string_equal(answer_text(&t->tx), "");
    assert_false(is_there(t, "b#"));
}

static void test_lpopto_of_runs(void **state)
{
    struct tx_test *t = *state;
    make_runs(t, "b");
    tx_policy(&t->tx)->delimiter = ',';
    t->tx.call.count = -2;
    tx_name_list(&t->tx, 0, "b");
    tx_name_list(&t->tx, 1, "a");
    tx_submit(&t->tx, LIST_POPTO);
    tx_run(t, &t->tx);
    assert_string_equal(answer_text(&t->tx), "99,98");
    assert_false(tx_has(t, "b", SLICE_LIT("99")));
    assert_true(tx_has(t, "a", SLICE_LIT("98")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        tx_test(test_conditions),
        tx_test(test_conditions_come_first),
        tx_test(test_lists_that_move_to_disk),
        tx_test(test_lists_that_are_full),
        tx_test(test_a_condition_that_ends),
        tx_test(test_a_condition_behind_another_transaction),
        tx_test(test_a_dead_transaction_in_front),
        tx_test(test_a_condition_on_an_item_with_a_time),
        tx_test(test_conditions_on_runs),
        tx_test(test_refuses_a_missing_list),
        tx_test(test_conditions_leave_no_heads),
        tx_test(test_deletions_leave_no_heads),
        tx_test(test_a_list_that_is_asked_for_and_filled_stays),
        tx_test(test_a_list_that_goes),
        tx_test(test_a_missing_list_counts_first),
        tx_test(test_a_list_that_ends_is_no_primary),
        tx_test(test_a_primary_that_turns_out_to_end),
        tx_test(test_all_lists_end),
        tx_test(test_a_long_log_is_compacted_first),
        tx_test(test_long_logs_are_folded_in_turns),
        tx_test(test_too_large),
        tx_test(test_a_full_list_refuses),
        tx_test(test_a_full_list_drops),
        tx_test(test_lmove),
        tx_test(test_lmove_of_many_items),
        tx_test(test_lmove_too_large),
        tx_test(test_lmove_of_nothing),
        tx_test(test_lmove_counts),
        tx_test(test_lpopto),
        tx_test(test_lpopto_the_newest),
        tx_test(test_lpopto_of_nothing),
        tx_test(test_lpopto_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
