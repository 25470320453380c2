/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring, whose changes do not look at what stands in a slot: what a worker has seen of other
 * clients' values it does not write over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_engine.h"

static struct slice item = SLICE_LIT("x");

static struct list_policy *make_ring(struct script *s)
{
    struct list_policy *policy = &s->rig.config->lists[0];
    policy->migrate = MIGRATE_NO;
    policy->dialect = DIALECT_RING;
    policy->capacity = 2;
    return policy;
}

/* The two slots behind a ring of that capacity are looked at, and are missing. */
static void expect_nothing_behind(struct script *s, unsigned capacity)
{
    char name[16];
    for (unsigned n = capacity; n < capacity + 2; n++) {
        (void)snprintf(name, sizeof name, "k.%u", n);
        script_expect(s, BE_GET, name, BE_MISS, NULL);
    }
}

static void expect_numbers(struct script *s, uint64_t last)
{
    struct be_reply number = {.status = BE_STORED, .number = last};
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
}

static void expect_written(struct script *s, const char *slot)
{
    script_expect(s, BE_SET, slot, BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
}

/* An addition by a worker that knows the ring: without a look. */
static void add_blindly(struct script *s, uint64_t number, const char *slot)
{
    script_submit(s, LIST_ADD, &item, 1);
    expect_numbers(s, number);
    expect_written(s, slot);
}

/* What it has to meet is foreign, and nothing is written. */
static void expect_refusal(struct script *s)
{
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_null(engine_take_request(s->rig.engine));
}

/* A read has met such a value before it failed for another reason: the worker does not know the
 * ring any more. */
static void test_a_failed_read_has_met_something_else(void **state)
{
    struct script *s = *state;
    (void)make_ring(s);
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2");
    script_expect(s, BE_GET, "k.0", BE_HIT, "2 b");
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    expect_nothing_behind(s, 2);
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2");
    script_expect(s, BE_GET, "k.0", BE_HIT, "[5,1]");
    script_expect(s, BE_GET, "k.1", BE_REFUSED, NULL);
    expect_nothing_behind(s, 2);
    script_expect_answer(s, LIST_SERVER_ERROR);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2"); /* not incremented blindly */
    script_expect(s, BE_GET, "k.0", BE_HIT, "[5,1]");
    expect_nothing_behind(s, 2);
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    expect_refusal(s);
}

/* A counter that is to be set back, and has flags by then: the value of a client that serialises.
 */
static void test_a_counter_that_became_something_else_is_not_set_back(void **state)
{
    struct script *s = *state;
    struct list_policy *policy = make_ring(s);
    struct be_reply foreign = {
        .status = BE_HIT, .cas = 7, .epoch = 1, .flags = 4, .value = SLICE_LIT("7"), .ttl_s = -1};
    policy->counter_wraps = true;
    (void)snprintf(policy->slot, sizeof policy->slot, "%%v");
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "1");
    script_expect(s, BE_GET, "k.1", BE_HIT, "a");
    expect_nothing_behind(s, 2);
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    expect_numbers(s, 2);
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_GET, "k.seq"), &foreign, s->rig.now);
    script_expect(s, BE_SET, "k.0", BE_STORED, NULL); /* no CAS before it */
    script_expect_answer(s, LIST_OK);
}

/* A read of some slots tells nothing of those that a worker is about to write. */
static void test_a_read_of_a_part_is_no_look_at_the_ring(void **state)
{
    struct script *s = *state;
    make_ring(s)->capacity = 4;
    script_submit(s, LIST_RANGE, NULL, 0); /* from 0 to 0 */
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2");
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2"); /* not incremented blindly */
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    expect_nothing_behind(s, 4);
    script_expect(s, BE_GET, "k.3", BE_HIT, "[5,1]");
    expect_refusal(s);
}

/* The newest entry is missing, and while the worker looks at all of them another client takes the
 * number that it had looked for. It looks at the slot of its own number, too. */
static void test_numbers_taken_during_the_look_at_a_gap(void **state)
{
    struct script *s = *state;
    make_ring(s)->capacity = 8;
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "1");
    script_expect(s, BE_GET, "k.1", BE_MISS, NULL);
    expect_nothing_behind(s, 8);
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2");
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    script_expect(s, BE_GET, "k.1", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    expect_nothing_behind(s, 8);
    expect_numbers(s, 3);
    expect_nothing_behind(s, 8);
    script_expect(s, BE_GET, "k.3", BE_HIT, "[5,1]");
    expect_refusal(s);
}

/* The clients' ring has more slots than this proxy believes. A read of all that it knows tells,
 * also where the first slot behind them is missing. */
static void test_a_whole_read_finds_a_ring_that_is_larger(void **state)
{
    struct script *s = *state;
    (void)make_ring(s);
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "3");
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.3", BE_HIT, "3 c");
    script_expect_answer(s, LIST_SERVER_ERROR);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "3"); /* not incremented blindly */
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.3", BE_HIT, "3 c");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    expect_refusal(s);
}

/* The first addition to an empty ring. */
static void begin_ring(struct script *s, unsigned capacity)
{
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "0");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    expect_nothing_behind(s, capacity);
    script_expect(s, BE_GET, "k.1", BE_MISS, NULL);
    expect_numbers(s, 1);
    expect_written(s, "k.1");
}

/* As long as the ring is in its first lap, nothing tells. The worker knows it from then. */
static void test_a_ring_turns_out_larger_behind_its_first_lap(void **state)
{
    struct script *s = *state;
    make_ring(s)->capacity = 3;
    begin_ring(s, 3);
    add_blindly(s, 2, "k.2"); /* nothing is overwritten: no look */
    script_submit(s, LIST_ADD, &item, 1);
    expect_numbers(s, 5); /* others have added 3 and 4 */
    script_expect(s, BE_GET, "k.3", BE_HIT, "3 c");
    script_expect(s, BE_GET, "k.4", BE_HIT, "4 d");
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 x");
    expect_refusal(s);
}

/* Its clients set the counter back where their ring ends: not where this proxy believes it does. */
static void test_the_counter_of_a_larger_ring_is_not_set_back(void **state)
{
    struct script *s = *state;
    make_ring(s)->counter_wraps = true;
    begin_ring(s, 2);
    script_submit(s, LIST_ADD, &item, 1);
    expect_numbers(s, 4); /* others have added 2 and 3 */
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    script_expect(s, BE_GET, "k.3", BE_HIT, "3 c");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    expect_refusal(s);
}

/* One that is as this proxy believes costs one look in each lap. */
static void test_a_look_is_made_once_in_a_lap(void **state)
{
    struct script *s = *state;
    make_ring(s)->capacity = 3;
    begin_ring(s, 3);
    add_blindly(s, 2, "k.2");
    for (unsigned lap = 1; lap < 3; lap++) {
        script_submit(s, LIST_ADD, &item, 1);
        expect_numbers(s, lap * 3);
        expect_nothing_behind(s, 3);
        script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
        expect_written(s, "k.0");
        add_blindly(s, lap * 3 + 1, "k.1");
        add_blindly(s, lap * 3 + 2, "k.2");
    }
}

/* Others have set the counter back meanwhile: that is a lap, too. */
static void test_a_counter_that_was_set_back_begins_a_lap(void **state)
{
    struct script *s = *state;
    make_ring(s)->counter_wraps = true;
    s->rig.config->lists[0].capacity = 8;
    begin_ring(s, 8);
    add_blindly(s, 4, "k.4");
    script_submit(s, LIST_ADD, &item, 1);
    expect_numbers(s, 2);
    script_expect(s, BE_GET, "k.8", BE_HIT, "8 h");
    script_expect(s, BE_GET, "k.9", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    expect_refusal(s);
}

/* Clients may begin the ring anew with another capacity: the documents say how. */
static void test_an_ldrop_is_no_look_at_the_ring(void **state)
{
    static const char *const slots[] = {"k.4", "k.3", "k.2", "k.0", "k.1"};
    struct script *s = *state;
    make_ring(s)->capacity = 3;
    begin_ring(s, 3);
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "1");
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 x");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    expect_nothing_behind(s, 3);
    for (size_t n = 0; n < 5; n++) {
        script_expect(s, BE_DELETE, slots[n], BE_DELETED, NULL);
    }
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "9"); /* not incremented blindly */
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.3", BE_HIT, "3 c");
    script_expect(s, BE_GET, "k.4", BE_HIT, "4 d");
    script_expect(s, BE_GET, "k.1", BE_MISS, NULL);
    expect_refusal(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_failed_read_has_met_something_else),
        script_test(test_a_counter_that_became_something_else_is_not_set_back),
        script_test(test_a_read_of_a_part_is_no_look_at_the_ring),
        script_test(test_numbers_taken_during_the_look_at_a_gap),
        script_test(test_a_whole_read_finds_a_ring_that_is_larger),
        script_test(test_a_ring_turns_out_larger_behind_its_first_lap),
        script_test(test_the_counter_of_a_larger_ring_is_not_set_back),
        script_test(test_a_look_is_made_once_in_a_lap),
        script_test(test_a_counter_that_was_set_back_begins_a_lap),
        script_test(test_an_ldrop_is_no_look_at_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
