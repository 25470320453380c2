/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's virtual memcached, where it answers what a real one does. */
#include "../world/store.h"

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
static struct be_reply ask(struct store *s, struct be_request r, const char *value)
{
    struct be_reply reply = {0};
    r.key_len = 1;
    r.key[0] = 'k';
    r.value = slice_of(value);
    store_execute(s, &r, NOW_S, &reply);
    block_unref(&reply.block);
    return reply;
}

static void set(struct store *s, const char *value)
{
    struct be_reply reply =
        ask(s, (struct be_request){.verb = BE_SET, .flags = 7, .exptime = 60}, value);
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
    return ask(s, (struct be_request){.verb = BE_INCR, .delta = delta}, "");
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
    assert_int_equal(ask(s, (struct be_request){.verb = BE_PREPEND}, "b,").status, BE_NOT_STORED);
    set(s, "|a,");
    uint64_t cas = see_value(s, "|a,", 0);
    assert_int_equal(ask(s, (struct be_request){.verb = BE_PREPEND}, "b,").status, BE_STORED);
    cas = see_value(s, "b,|a,", cas);
    assert_int_equal(ask(s, (struct be_request){.verb = BE_APPEND}, "c,").status, BE_STORED);
    see_value(s, "b,|a,c,", cas);
}

static void what_has_no_room_in_front_stays_as_it_is(void **state)
{
    struct store *s = *state;
    char much[ITEM_MAX];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    set(s, "a,");
    assert_int_equal(ask(s, (struct be_request){.verb = BE_PREPEND}, much).status, BE_NOT_STORED);
    s->out_of_memory = true;
    assert_int_equal(ask(s, (struct be_request){.verb = BE_PREPEND}, "b,").status, BE_NOT_STORED);
    s->out_of_memory = false;
    store_find(s, SLICE_LIT("k"), NOW_S)->on_disk = true;
    assert_int_equal(ask(s, (struct be_request){.verb = BE_PREPEND}, "b,").status, BE_NOT_STORED);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
