/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's virtual memcached, where it answers what a real one does. */
#include "../world/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW_S 1700000000
#define ITEM_MAX 1024

static int setup(void **state)
{
    static struct store store;
    store_init(&store, ITEM_MAX, "s");
    *state = &store;
    return 0;
}

static int teardown(void **state)
{
    store_fini(*state);
    return 0;
}

/* The answer; its value is not kept. */
static struct be_reply ask(struct store *s, struct be_operation r, const char *value)
{
    struct be_reply reply = {0};
    r.key = SLICE_LIT("k");
    r.value = slice_of(value);
    store_execute(s, &r, NOW_S, &reply);
    block_unref(&reply.block);
    return reply;
}

static void set(struct store *s, const char *value)
{
    struct be_reply reply =
        ask(s, (struct be_operation){.verb = BE_SET, .flags = 7, .exptime = 60}, value);
    assert_int_equal(reply.status, BE_STORED);
}

/* The value stands there, with the flags and the expiry of set(); the CAS number is not `cas`. */
static uint64_t see_value(struct store *s, const char *value, uint64_t cas)
{
    const struct item *item = store_find(s, SLICE_LIT("k"), NOW_S);
    assert_non_null(item);
    assert_true(slice_equal(item_value(item), slice_of(value)));
    assert_int_equal(item->flags, 7);
    assert_int_equal(item->expires_s, NOW_S + 60);
    assert_true(item->cas != cas);
    return item->cas;
}

static struct be_reply incr(struct store *s, uint64_t delta)
{
    return ask(s, (struct be_operation){.verb = BE_INCR, .delta = delta}, "");
}

static void expect_number(struct store *s, uint64_t delta, uint64_t number)
{
    struct be_reply reply = incr(s, delta);
    assert_int_equal(reply.status, BE_STORED);
    assert_true(reply.number == number);
}

static void values_grow_at_either_end(void **state)
{
    struct store *s = *state;
    assert_int_equal(ask(s, (struct be_operation){.verb = BE_PREPEND}, "b,").status, BE_NOT_STORED);
    set(s, "|a,");
    uint64_t cas = see_value(s, "|a,", 0);
    assert_int_equal(ask(s, (struct be_operation){.verb = BE_PREPEND}, "b,").status, BE_STORED);
    cas = see_value(s, "b,|a,", cas);
    assert_int_equal(ask(s, (struct be_operation){.verb = BE_APPEND}, "c,").status, BE_STORED);
    see_value(s, "b,|a,c,", cas);
}

static void what_has_no_room_in_front_stays_as_it_is(void **state)
{
    struct store *s = *state;
    char much[ITEM_MAX];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    set(s, "a,");
    assert_int_equal(ask(s, (struct be_operation){.verb = BE_PREPEND}, much).status, BE_NOT_STORED);
    s->out_of_memory = true;
    assert_int_equal(ask(s, (struct be_operation){.verb = BE_PREPEND}, "b,").status, BE_NOT_STORED);
    s->out_of_memory = false;
    store_find(s, SLICE_LIT("k"), NOW_S)->on_disk = true;
    assert_int_equal(ask(s, (struct be_operation){.verb = BE_PREPEND}, "b,").status, BE_NOT_STORED);
    see_value(s, "a,", 0);
}

static void numbers_are_counted_on(void **state)
{
    struct store *s = *state;
    assert_int_equal(incr(s, 1).status, BE_NOT_FOUND);
    set(s, "8");
    uint64_t cas = see_value(s, "8", 0);
    expect_number(s, 1, 9);
    cas = see_value(s, "9", cas);
    expect_number(s, 90, 99);
    cas = see_value(s, "99", cas);
    expect_number(s, 0, 99);
    see_value(s, "99", cas);
}

/* As the real one: the length stays where it can. */
static void fewer_digits_leave_blanks(void **state)
{
    struct store *s = *state;
    set(s, "18446744073709551615");
    expect_number(s, 7, 6);
    see_value(s, "6                   ", 0);
    expect_number(s, 5, 11);
    see_value(s, "11                  ", 0);
}

static void what_is_no_number_is_not_counted(void **state)
{
    static const char *const values[] = {"", "x", "5x", "-3", "|", "18446744073709551616"};
    struct store *s = *state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        set(s, values[i]);
        struct be_reply reply = incr(s, 1);
        assert_int_equal(reply.status, BE_REFUSED);
        assert_non_null(reply.text);
        see_value(s, values[i], 0);
    }
    set(s, "5");
    store_find(s, SLICE_LIT("k"), NOW_S)->on_disk = true;
    assert_int_equal(incr(s, 1).status, BE_REFUSED);
}

static void counting_needs_memory_only_for_a_further_digit(void **state)
{
    struct store *s = *state;
    set(s, "8");
    s->out_of_memory = true;
    expect_number(s, 1, 9);
    assert_int_equal(incr(s, 1).status, BE_NO_MEMORY);
    see_value(s, "9", 0);
}

/* ---- nodes of a Couchbase cluster ---- */

static struct be_reply change(struct store *s, enum be_verb verb, bool durable, const char *value)
{
    const struct item *item = store_find(s, SLICE_LIT("k"), NOW_S);
    return ask(s,
               (struct be_operation){
                   .verb = verb, .durable = durable, .cas = item == NULL ? 0 : item->cas},
               value);
}

static void is_lost(void *arg, struct slice key, void *note)
{
    (void)key;
    (void)note;
    ++*(unsigned *)arg;
}

static void a_failover_loses_the_last_changes(void **state)
{
    struct store *s = *state;
    journal_create(s, NULL);
    assert_int_equal(change(s, BE_SET, true, "a").status, BE_STORED);
    uint64_t cas = store_find(s, SLICE_LIT("k"), NOW_S)->cas;
    assert_int_equal(change(s, BE_DELETE, false, "").status, BE_DELETED);
    assert_int_equal(change(s, BE_ADD, false, "b").status, BE_STORED);
    struct rng rng;
    unsigned lost = 0;
    for (uint64_t seed = 0; lost < 2; seed++) {
        lost = 0;
        rng_init_seed(&rng, seed);
        journal_fail_over(s, &rng, true, is_lost, &lost);
        if (lost < 2) {
            (void)change(s, BE_SET, true, "a");
            cas = store_find(s, SLICE_LIT("k"), NOW_S)->cas;
            (void)change(s, BE_DELETE, false, "");
            (void)change(s, BE_ADD, false, "b");
        }
    }
    const struct item *item = store_find(s, SLICE_LIT("k"), NOW_S);
    assert_non_null(item);
    assert_true(slice_equal(item_value(item), SLICE_LIT("a")) && item->cas == cas);
    /* The new node's clock is behind: a number comes again. */
    (void)change(s, BE_APPEND, true, "c");
    assert_true(store_find(s, SLICE_LIT("k"), NOW_S)->cas == cas + 1);
}

static void a_durable_change_takes_all_before_it_along(void **state)
{
    struct store *s = *state;
    unsigned lost = 0;
    struct rng rng;
    journal_create(s, NULL);
    for (uint64_t seed = 0; seed < 50; seed++) {
        rng_init_seed(&rng, seed);
        assert_int_equal(change(s, BE_SET, false, "a").status, BE_STORED);
        assert_int_equal(change(s, BE_APPEND, false, "b").status, BE_STORED);
        assert_int_equal(change(s, BE_CAS, true, "c").status, BE_STORED);
        journal_fail_over(s, &rng, false, is_lost, &lost);
        assert_int_equal(lost, 0);
    }
}

static void a_node_keeps_what_it_cannot_replace(void **state)
{
    struct store *s = *state;
    journal_create(s, NULL);
    char large[ITEM_MAX + 1];
    memset(large, 'x', sizeof large - 1);
    large[ITEM_MAX] = '\0';
    assert_int_equal(change(s, BE_SET, true, "a").status, BE_STORED);
    assert_int_equal(change(s, BE_SET, true, large).status, BE_TOO_LARGE);
    assert_int_equal(change(s, BE_APPEND, true, large).status, BE_TOO_LARGE);
    s->out_of_memory = true;
    assert_int_equal(change(s, BE_SET, true, "b").status, BE_NO_MEMORY);
    assert_int_equal(change(s, BE_APPEND, true, "b").status, BE_NO_MEMORY);
    s->out_of_memory = false;
    assert_true(slice_equal(item_value(store_find(s, SLICE_LIT("k"), NOW_S)), SLICE_LIT("a")));
}

static void a_node_removes_items_a_second_late(void **state)
{
    struct store *s = *state;
    journal_create(s, NULL);
    (void)ask(s, (struct be_operation){.verb = BE_SET, .exptime = 5}, "a");
    assert_non_null(store_find(s, SLICE_LIT("k"), NOW_S + 5));
    assert_null(store_find(s, SLICE_LIT("k"), NOW_S + 6));
}

int main(void)
{
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        STORE_TEST(values_grow_at_either_end),
        STORE_TEST(what_has_no_room_in_front_stays_as_it_is),
        STORE_TEST(numbers_are_counted_on),
        STORE_TEST(fewer_digits_leave_blanks),
        STORE_TEST(what_is_no_number_is_not_counted),
        STORE_TEST(counting_needs_memory_only_for_a_further_digit),
        STORE_TEST(a_failover_loses_the_last_changes),
        STORE_TEST(a_durable_change_takes_all_before_it_along),
        STORE_TEST(a_node_keeps_what_it_cannot_replace),
        STORE_TEST(a_node_removes_items_a_second_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
