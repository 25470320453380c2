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

struct test {
    struct rig rig;
    struct list_session session;
    struct list_call call;
};

static int setup(void **state)
{
    static struct test t;
    t = (struct test){0};
    rig_init(&t.rig);
    chain_init(&t.call.answer);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    rig_fini(&t->rig);
    chain_fini(&t->call.answer);
    return 0;
}

static void submit(struct test *t, enum list_verb verb)
{
    t->call.verb = verb;
    t->call.key = SLICE_LIT("k");
    t->call.policy = &t->rig.config->lists[0];
    t->call.session = &t->session;
    t->call.number = 0;
    engine_submit(t->rig.engine, &t->call, t->rig.now);
}

static void expect(struct test *t, enum be_verb verb, const char *key, enum be_status status,
                   const char *value)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    struct be_request *request = engine_take_request(t->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->verb, verb);
    assert_true(slice_equal(slice_make(request->key, request->key_len), slice_of(key)));
    rig_answer(&t->rig, request, status, value, -1);
}

/* The second of two sublists is lost. */
static void expect_reading(struct test *t)
{
    expect(t, BE_GET, "k#" FIRST_RUN ".0", BE_HIT, "^1 0000000003\n+1:a+1:b+1:c");
    expect(t, BE_GET, "k#" FIRST_RUN ".1", BE_MISS, NULL);
}

static void expect_done(struct test *t, enum list_status status, const char *error)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_null(engine_take_request(t->rig.engine));
    assert_ptr_equal(engine_take_done(t->rig.engine), &t->call);
    assert_int_equal(t->call.status, status);
    if (error != NULL) {
        assert_string_equal(t->call.error, error);
    }
    assert_false(engine_busy(t->rig.engine));
}

/* It is missing, and still is when the head was read again. */
static void expect_damage(struct test *t)
{
    expect_reading(t);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(t);
    expect_done(t, LIST_SERVER_ERROR, DAMAGED);
}

/* The engine's own, since its limits are read when it is made. */
static void without_views(struct test *t)
{
    t->rig.config->view_bytes = 0;
    engine_destroy(&t->rig.engine);
    t->rig.engine =
        engine_create(t->rig.config, &t->rig.cache, &dialects, &t->rig.rng, &t->rig.metrics);
}

/* What a read has found missing is not counted by the head right afterwards. */
static void test_llen_that_meets_the_loss_says_so(void **state)
{
    struct test *t = *state;
    submit(t, LIST_LEN);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(t);
    expect_damage(t);
}

/* Without a look at sublists the head's number is the answer, until somebody finds one missing. A
 * head that does not name that run any more is believed again. */
static void test_llen_knows_what_was_found(void **state)
{
    struct test *t = *state;
    without_views(t);
    submit(t, LIST_LEN);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_done(t, LIST_OK, NULL);
    assert_int_equal(t->call.number, 6);
    submit(t, LIST_GET);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_damage(t);
    submit(t, LIST_LEN);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_damage(t);
    submit(t, LIST_LEN);
    expect(t, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n");
    expect_done(t, LIST_OK, NULL);
    assert_int_equal(t->call.number, 3);
    submit(t, LIST_LEN); /* what was cleared does not matter */
    expect(t, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".2:52:6\n!0:+1:x");
    expect_done(t, LIST_OK, NULL);
    assert_int_equal(t->call.number, 1);
}

static void test_empty_lrange_reads_what_it_does_not_show(void **state)
{
    struct test *t = *state;
    without_views(t);
    t->call.from = 10;
    t->call.to = -1;
    submit(t, LIST_RANGE);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_damage(t);
    submit(t, LIST_RANGE);
    expect(t, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n");
    expect(t, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000003\n+1:a+1:b+1:c");
    expect_done(t, LIST_MISSING, NULL);
}

static void expect_looks(struct test *t, enum be_status second)
{
    expect(t, BE_PROBE, "k#" FIRST_RUN ".0", BE_HIT, NULL);
    expect(t, BE_PROBE, "k#" FIRST_RUN ".1", second, NULL);
}

static void test_lstat_looks_whether_sublists_are_there(void **state)
{
    struct test *t = *state;
    submit(t, LIST_STAT);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(t, BE_HIT);
    expect_done(t, LIST_OK, NULL);
    assert_int_equal(t->call.stat.items, 6);
    submit(t, LIST_STAT);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(t, BE_MISS);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_reading(t);
    expect_done(t, LIST_SERVER_ERROR, DAMAGED);
}

/* A merge was faster. */
static void test_lstat_of_a_head_that_is_old_looks_again(void **state)
{
    struct test *t = *state;
    submit(t, LIST_STAT);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(t, BE_MISS);
    expect(t, BE_GET, "k#", BE_HIT, "^1 " SECOND_RUN ".1:26:3\n");
    expect(t, BE_PROBE, "k#" SECOND_RUN ".0", BE_HIT, NULL);
    expect_done(t, LIST_OK, NULL);
    assert_int_equal(t->call.stat.items, 3);
}

static void test_lstat_that_gets_no_answer_does_not_guess(void **state)
{
    struct test *t = *state;
    submit(t, LIST_STAT);
    expect(t, BE_GET, "k#", BE_HIT, HEAD);
    expect_looks(t, BE_DOWN);
    expect_done(t, LIST_SERVER_ERROR, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_llen_that_meets_the_loss_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_llen_knows_what_was_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_lrange_reads_what_it_does_not_show, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lstat_looks_whether_sublists_are_there, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lstat_of_a_head_that_is_old_looks_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lstat_that_gets_no_answer_does_not_guess, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
