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
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2");
    script_expect(s, BE_GET, "k.0", BE_HIT, "[5,1]");
    script_expect(s, BE_GET, "k.1", BE_REFUSED, NULL);
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect_answer(s, LIST_SERVER_ERROR);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2"); /* not incremented blindly */
    script_expect(s, BE_GET, "k.0", BE_HIT, "[5,1]");
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_null(engine_take_request(s->rig.engine));
}

/* A counter that is to be set back, and has flags by then: the value of a client that serialises.
 */
static void test_a_counter_that_became_something_else_is_not_set_back(void **state)
{
    struct script *s = *state;
    struct list_policy *policy = make_ring(s);
    struct be_reply number = {.status = BE_STORED, .number = 2};
    struct be_reply foreign = {
        .status = BE_HIT, .cas = 7, .epoch = 1, .flags = 4, .value = SLICE_LIT("7"), .ttl_s = -1};
    policy->counter_wraps = true;
    (void)snprintf(policy->slot, sizeof policy->slot, "%%v");
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "1");
    script_expect(s, BE_GET, "k.1", BE_HIT, "a");
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
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
    script_expect(s, BE_GET, "k.4", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.3", BE_HIT, "[5,1]");
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_null(engine_take_request(s->rig.engine));
}

/* The clients' ring has more slots than this proxy believes. A read of all that it knows tells. */
static void test_a_whole_read_finds_a_ring_that_is_larger(void **state)
{
    struct script *s = *state;
    (void)make_ring(s);
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    script_expect_answer(s, LIST_SERVER_ERROR);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "2"); /* not incremented blindly */
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_null(engine_take_request(s->rig.engine));
}

/* As long as the ring is in its first lap, nothing tells. The worker knows it from then. */
static void test_a_ring_turns_out_larger_behind_its_first_lap(void **state)
{
    struct script *s = *state;
    struct be_reply number = {.status = BE_STORED, .number = 1};
    make_ring(s)->capacity = 3;
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "0");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.3", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.1", BE_MISS, NULL);
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_SET, "k.1", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    number.number = 2; /* nothing is overwritten: no look */
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_SET, "k.2", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    number.number = 5; /* others have added 3 and 4 */
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_GET, "k.3", BE_HIT, "3 c");
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 x");
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_null(engine_take_request(s->rig.engine));
}

/* Its clients set the counter back where their ring ends: not where this proxy believes it does. */
static void test_the_counter_of_a_larger_ring_is_not_set_back(void **state)
{
    struct script *s = *state;
    struct list_policy *policy = make_ring(s);
    struct be_reply number = {.status = BE_STORED, .number = 1};
    policy->counter_wraps = true;
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "0");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.1", BE_MISS, NULL);
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_SET, "k.1", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    number.number = 4; /* others have added 2 and 3 */
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_GET, "k.2", BE_HIT, "2 b");
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_null(engine_take_request(s->rig.engine));
}

/* And one that is as this proxy believes costs that look once. */
static void test_the_look_behind_the_first_lap_is_one(void **state)
{
    struct script *s = *state;
    struct be_reply number = {.status = BE_STORED, .number = 2};
    (void)make_ring(s);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k.seq", BE_HIT, "1");
    script_expect(s, BE_GET, "k.1", BE_HIT, "1 a");
    script_expect(s, BE_GET, "k.2", BE_MISS, NULL);
    script_expect(s, BE_GET, "k.0", BE_MISS, NULL);
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_SET, "k.0", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    number.number = 3;
    engine_reply(s->rig.engine, rig_take(&s->rig, BE_INCR, "k.seq"), &number, s->rig.now);
    script_expect(s, BE_SET, "k.1", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_failed_read_has_met_something_else),
        script_test(test_a_counter_that_became_something_else_is_not_set_back),
        script_test(test_a_read_of_a_part_is_no_look_at_the_ring),
        script_test(test_a_whole_read_finds_a_ring_that_is_larger),
        script_test(test_a_ring_turns_out_larger_behind_its_first_lap),
        script_test(test_the_counter_of_a_larger_ring_is_not_set_back),
        script_test(test_the_look_behind_the_first_lap_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
