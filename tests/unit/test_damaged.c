/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads that need no sublist for their answer, of lists that have lost one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dialect/dialects.h"
#include "support_engine.h"

#define FIRST_RUN "aaaaaaaaaaaaa"
#define SECOND_RUN "bbbbbbbbbbbbb"
#define HEAD "^1 " FIRST_RUN ".2:52:6\n"
#define DAMAGED "list damaged: sublist k#" FIRST_RUN ".1 missing"

static void submit(struct script *s, enum list_verb verb)
{
    s->call.number = 0;
    script_submit(s, verb, s->call.items, s->call.item_count);
}

/* The second of two sublists is lost. */
static void expect_reading(struct script *s)
{
    script_expect(s, BE_GET, "k#" FIRST_RUN ".0", BE_HIT, "^1 0000000003\n+1:a+1:b+1:c");
    script_expect(s, BE_GET, "k#" FIRST_RUN ".1", BE_MISS, NULL);
}

static void expect_done(struct script *s, enum list_status status, const char *error)
{
    script_expect_done(s, status);
    if (error != NULL) {
        assert_string_equal(s->call.error, error);
    }
    assert_false(engine_busy(s->rig.engine));
}

/* It is missing, and still is when the head was read again. */
static void expect_damage(struct script *s)
{
    expect_reading(s);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(s);
    expect_done(s, LIST_SERVER_ERROR, DAMAGED);
}

/* The engine's own, since its limits are read when it is made. */
static void without_views(struct script *s)
{
    s->rig.config->view_bytes = 0;
    engine_destroy(&s->rig.engine);
    s->rig.engine =
        engine_create(s->rig.config, &s->rig.cache, &dialects, &s->rig.rng, &s->rig.metrics);
}

/* What a read has found missing is not counted by the head right afterwards. */
static void test_llen_that_meets_the_loss_says_so(void **state)
{
    struct script *s = *state;
    submit(s, LIST_LEN);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(s);
    expect_damage(s);
}

/* Without a look at sublists the head's number is the answer, until a read finds one missing. A
 * head that does not name that run any more is believed again. */
static void test_llen_knows_what_was_found(void **state)
{
    struct script *s = *state;
    without_views(s);
    submit(s, LIST_LEN);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.number, 6);
    submit(s, LIST_GET);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_damage(s);
    submit(s, LIST_LEN);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_damage(s);
    submit(s, LIST_LEN);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n");
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.number, 3);
    submit(s, LIST_LEN); /* what was cleared does not matter */
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".2:52:6\n!0:+1:x");
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.number, 1);
}

static void test_empty_lrange_reads_what_it_does_not_show(void **state)
{
    struct script *s = *state;
    without_views(s);
    s->call.from = 10;
    s->call.to = -1;
    submit(s, LIST_RANGE);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_damage(s);
    submit(s, LIST_RANGE);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n");
    script_expect(s, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000003\n+1:a+1:b+1:c");
    expect_done(s, LIST_MISSING, NULL);
}

/* It begins at the other end: an answer that is complete before the loss is met is one. */
static void test_lrevrange_reads_from_the_last_sublist_on(void **state)
{
    struct script *s = *state;
    without_views(s);
    s->call.from = 0;
    s->call.to = 1;
    submit(s, LIST_REVRANGE);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    script_expect(s, BE_GET, "k#" FIRST_RUN ".1", BE_HIT, "^1 0000000003\n+1:d+1:e+1:f");
    script_expect(s, BE_GET, "k#" FIRST_RUN ".0", BE_MISS, NULL);
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.number, 2);
    assert_memory_equal(s->call.answer.segs[s->call.answer.first].p, "f,e", 3);
}

/* What the log adds stands behind the run only if the run does not have it. */
static void test_lrevrange_looks_for_the_places_of_what_the_log_adds(void **state)
{
    struct script *s = *state;
    without_views(s);
    s->call.from = 0;
    s->call.to = 1;
    submit(s, LIST_REVRANGE);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n+1:x+1:b");
    for (int pass = 0; pass < 2; pass++) {
        script_expect(s, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000003\n+1:a+1:b+1:c");
    }
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.number, 2);
    assert_memory_equal(s->call.answer.segs[s->call.answer.first].p, "x,c", 3);
}

static void expect_looks(struct script *s, enum be_status second)
{
    script_expect(s, BE_PROBE, "k#" FIRST_RUN ".0", BE_HIT, NULL);
    script_expect(s, BE_PROBE, "k#" FIRST_RUN ".1", second, NULL);
}

static void test_lstat_looks_whether_sublists_are_there(void **state)
{
    struct script *s = *state;
    submit(s, LIST_STAT);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(s, BE_HIT);
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.stat.items, 6);
    submit(s, LIST_STAT);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(s, BE_MISS);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(s);
    expect_done(s, LIST_SERVER_ERROR, DAMAGED);
}

/* A merge was faster. */
static void test_lstat_of_a_head_that_is_old_looks_again(void **state)
{
    struct script *s = *state;
    submit(s, LIST_STAT);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(s, BE_MISS);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n");
    script_expect(s, BE_PROBE, "k#" SECOND_RUN ".0", BE_HIT, NULL);
    expect_done(s, LIST_OK, NULL);
    assert_int_equal(s->call.stat.items, 3);
}

static void test_lstat_that_gets_no_answer_does_not_guess(void **state)
{
    struct script *s = *state;
    submit(s, LIST_STAT);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(s, BE_DOWN);
    expect_done(s, LIST_SERVER_ERROR, NULL);
}

/* ---- on_damaged = miss ---- */

/* The list is to be cleared for the sake of the second sublist. */
static void expect_wish_to_clear(struct script *s)
{
    s->rig.config->lists[0].on_damaged = ON_DAMAGED_MISS;
    submit(s, LIST_GET);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(s);
    expect_reading(s);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(s);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD); /* to compact it */
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD); /* to rewrite it */
}

static void test_a_damaged_list_is_cleared_behind_a_last_look(void **state)
{
    struct script *s = *state;
    expect_wish_to_clear(s);
    script_expect(s, BE_PROBE, "k#" FIRST_RUN ".1", BE_MISS, NULL);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
}

/* The list has moved to a server that has the sublist. */
static void test_a_list_that_is_whole_again_is_not_cleared(void **state)
{
    struct script *s = *state;
    expect_wish_to_clear(s);
    script_expect(s, BE_PROBE, "k#" FIRST_RUN ".1", BE_HIT, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
}

/* Nor while it is not known. */
static void test_a_list_whose_sublist_cannot_be_asked_for_is_not_cleared(void **state)
{
    struct script *s = *state;
    expect_wish_to_clear(s);
    script_expect(s, BE_PROBE, "k#" FIRST_RUN ".1", BE_DOWN, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
}

/* The clearing waits for changes that are under way. */
static void expect_clearing(struct script *s)
{
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error, DAMAGED);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD); /* to compact it */
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD); /* to rewrite it */
    script_expect(s, BE_PROBE, "k#" FIRST_RUN ".1", BE_MISS, NULL);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
}

static void test_an_exact_change_does_not_hold_back_the_clearing(void **state)
{
    struct script *s = *state;
    const struct slice item = SLICE_LIT("x");
    s->rig.config->lists[0].on_damaged = ON_DAMAGED_MISS;
    script_submit(s, LIST_ADDX, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(s);
    expect_reading(s);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_clearing(s);
}

static void test_an_lpop_does_not_hold_back_the_clearing(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_damaged = ON_DAMAGED_MISS;
    s->call.count = 4;
    submit(s, LIST_POP);
    for (int look = 0; look < 2; look++) {
        script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
        expect_reading(s);
    }
    expect_clearing(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_llen_that_meets_the_loss_says_so),
        script_test(test_llen_knows_what_was_found),
        script_test(test_empty_lrange_reads_what_it_does_not_show),
        script_test(test_lrevrange_reads_from_the_last_sublist_on),
        script_test(test_lrevrange_looks_for_the_places_of_what_the_log_adds),
        script_test(test_lstat_looks_whether_sublists_are_there),
        script_test(test_lstat_of_a_head_that_is_old_looks_again),
        script_test(test_lstat_that_gets_no_answer_does_not_guess),
        script_test(test_a_damaged_list_is_cleared_behind_a_last_look),
        script_test(test_a_list_that_is_whole_again_is_not_cleared),
        script_test(test_a_list_whose_sublist_cannot_be_asked_for_is_not_cleared),
        script_test(test_an_exact_change_does_not_hold_back_the_clearing),
        script_test(test_an_lpop_does_not_hold_back_the_clearing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
