/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call is answered by its deadline, and what is said then is true ever after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "list/core/op.h"
#include "support_engine.h"

#define CALLS 3
#define TIME_US 1000000u
#define RUN "aaaaaaaaaaaaa"

struct test {
    struct rig rig;
    struct list_session sessions[CALLS];
    struct list_call calls[CALLS];
    char text[CALLS][8]; /* of the items: wiped when the call is the submitter's again */
    struct slice items[CALLS];
};

static int setup(void **state)
{
    static struct test t;
    t = (struct test){0};
    rig_init(&t.rig);
    for (size_t i = 0; i < CALLS; i++) {
        chain_init(&t.calls[i].answer);
    }
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    rig_fini(&t->rig);
    for (size_t i = 0; i < CALLS; i++) {
        chain_fini(&t->calls[i].answer);
    }
    return 0;
}

/* Each call is of a session of its own, and has the item "xN". */
static struct list_call *submit(struct test *t, size_t number, enum list_verb verb)
{
    struct list_call *call = &t->calls[number];
    bool takes = verb == LIST_ADD || verb == LIST_ADDX || verb == LIST_HAS;
    int len = snprintf(t->text[number], sizeof t->text[number], "x%zu", number);
    t->items[number] = slice_make(t->text[number], (size_t)len);
    call->verb = verb;
    call->key = SLICE_LIT("k");
    call->policy = &t->rig.config->lists[0];
    call->session = &t->sessions[number];
    call->items = &t->items[number];
    call->item_count = takes;
    call->deadline_us = t->rig.now.mono_us + TIME_US;
    engine_submit(t->rig.engine, call, t->rig.now);
    return call;
}

static void answer(struct test *t, struct list_request *request, enum be_status status,
                   const char *value)
{
    rig_answer(&t->rig, request, status, value, -1);
}

/* The list is not known yet: it is looked for before it is appended to. */
static void look(struct test *t)
{
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1\n+1:a");
}

/* The call is answered now, and its items' memory is not looked at any more. */
static void expect_done(struct test *t, struct list_call *call, const char *error)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_ptr_equal(engine_take_done(t->rig.engine), call);
    if (error == NULL) {
        assert_int_equal(call->status, LIST_OK);
    } else {
        assert_int_equal(call->status, LIST_SERVER_ERROR);
        assert_string_equal(call->error, error);
    }
    memset(t->text[call - t->calls], '?', sizeof t->text[0]);
    call->key = SLICE_NONE;
}

/* The engine's own clock says when; a moment before, nothing happens. */
static void let_time_pass(struct test *t, const struct list_call *call)
{
    uint64_t next_us = engine_run(t->rig.engine, t->rig.now);
    assert_true(next_us <= call->deadline_us);
    t->rig.now.mono_us = call->deadline_us - 1;
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_null(engine_take_done(t->rig.engine));
    t->rig.now.mono_us = call->deadline_us;
}

static void expect_rest(struct test *t)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_null(engine_take_request(t->rig.engine));
    assert_null(engine_take_done(t->rig.engine));
    assert_false(engine_busy(t->rig.engine));
}

/* What goes on in the background fails. */
static void fail_the_rest(struct test *t)
{
    while (engine_busy(t->rig.engine)) {
        uint64_t next_us = engine_run(t->rig.engine, t->rig.now);
        struct list_request *request = engine_take_request(t->rig.engine);
        if (request != NULL) {
            answer(t, request, BE_DOWN, NULL);
        } else if (next_us != UINT64_MAX && next_us > t->rig.now.mono_us) {
            t->rig.now.mono_us = next_us;
        }
    }
    expect_rest(t);
}

static void test_a_change_that_waits_is_not_done(void **state)
{
    struct test *t = *state;
    struct list_call *first = submit(t, 0, LIST_ADD);
    look(t);
    struct list_request *append = rig_take(&t->rig, BE_APPEND, "k#");
    t->rig.now.mono_us += 10;
    struct list_call *second = submit(t, 1, LIST_ADD);
    let_time_pass(t, first);
    expect_done(t, first, "deadline over, outcome unknown");
    let_time_pass(t, second);
    expect_done(t, second, "deadline over, nothing done: earlier requests took too long");
    assert_true(append->op->told_unknown); /* so that nothing counts it again */
    answer(t, append, BE_STORED, NULL);
    expect_rest(t);
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_deadlines_over), 2);
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_list_timeouts), 1);
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_outcomes_unknown), 1);
}

/* Its answer only waited for that of a read beside it. */
static void test_a_change_that_was_stored_is_done(void **state)
{
    struct test *t = *state;
    struct list_call *add = submit(t, 0, LIST_ADD);
    struct list_call *len = submit(t, 1, LIST_LEN);
    look(t);
    answer(t, rig_take(&t->rig, BE_APPEND, "k#"), BE_STORED, NULL);
    struct list_request *get = rig_take(&t->rig, BE_GET, "k#");
    expect_done(t, add, NULL); /* it waits for no read */
    let_time_pass(t, len);
    expect_done(t, len, "deadline over: the list was not read in time");
    answer(t, get, BE_HIT, "^1\n");
    expect_rest(t);
}

/* The append was refused: what is written next is without it. */
static void test_a_change_between_two_tries_is_not_done(void **state)
{
    struct test *t = *state;
    struct list_call *first = submit(t, 0, LIST_ADD);
    t->rig.now.mono_us += 10;
    struct list_call *second = submit(t, 1, LIST_ADD);
    look(t);
    answer(t, rig_take(&t->rig, BE_APPEND, "k#"), BE_NOT_STORED, NULL);
    struct list_request *get = rig_take(&t->rig, BE_GET, "k#");
    let_time_pass(t, first);
    expect_done(t, first, "deadline over, nothing done");
    answer(t, get, BE_MISS, NULL);
    struct list_request *add = rig_take(&t->rig, BE_ADD, "k#");
    assert_true(slice_equal(add->be.value, SLICE_LIT("^1\n+2:x1")));
    answer(t, add, BE_STORED, NULL);
    expect_done(t, second, NULL);
    expect_rest(t);
}

static void test_a_change_ends_with_the_look_before_it(void **state)
{
    struct test *t = *state;
    struct list_call *first = submit(t, 0, LIST_ADD);
    t->rig.now.mono_us += 10;
    struct list_call *second = submit(t, 1, LIST_ADD);
    struct list_request *get = rig_take(&t->rig, BE_GET, "k#");
    let_time_pass(t, first);
    expect_done(t, first, "deadline over, nothing done");
    answer(t, get, BE_HIT, "^1\n");
    struct list_request *append = rig_take(&t->rig, BE_APPEND, "k#");
    assert_true(slice_equal(append->be.value, SLICE_LIT("+2:x1")));
    answer(t, append, BE_STORED, NULL);
    expect_done(t, second, NULL);
    expect_rest(t);
}

static void test_a_read_ends_in_its_second_step(void **state)
{
    struct test *t = *state;
    t->rig.config->view_bytes = 0;
    struct list_call *has = submit(t, 0, LIST_HAS);
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1 " RUN ".1:18:1\n");
    struct list_request *sublist = rig_take(&t->rig, BE_GET, "k#" RUN ".0");
    let_time_pass(t, has);
    expect_done(t, has, "deadline over: the list was not read in time");
    answer(t, sublist, BE_LOST, NULL);
    fail_the_rest(t);
}

/* Exact changes travel together: each has its own deadline. */
static void test_an_exact_change_is_left_out_of_its_batch(void **state)
{
    struct test *t = *state;
    struct list_call *first = submit(t, 0, LIST_ADDX);
    t->rig.now.mono_us += 10;
    struct list_call *second = submit(t, 1, LIST_ADDX);
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1 " RUN ".1:18:1\n");
    struct list_request *sublist = rig_take(&t->rig, BE_GET, "k#" RUN ".0");
    let_time_pass(t, first);
    expect_done(t, first, "deadline over, nothing done");
    answer(t, sublist, BE_HIT, "^1 0000000003\n+2:x7+2:x8+2:x9");
    struct list_request *cas = rig_take(&t->rig, BE_CAS, "k#");
    assert_true(slice_equal(cas->be.value, SLICE_LIT("^1 " RUN ".1:18:1\n+2:x1")));
    answer(t, cas, BE_STORED, NULL);
    expect_done(t, second, NULL);
    assert_int_equal(second->number, 1);
    expect_rest(t);
}

static void test_an_exact_change_alone_ends_with_its_call(void **state)
{
    struct test *t = *state;
    struct list_call *add = submit(t, 0, LIST_ADDX);
    struct list_request *get = rig_take(&t->rig, BE_GET, "k#");
    let_time_pass(t, add);
    expect_done(t, add, "deadline over, nothing done");
    answer(t, get, BE_HIT, "^1\n");
    expect_rest(t);
}

static void test_an_exact_change_under_way_is_unknown_and_not_repeated(void **state)
{
    struct test *t = *state;
    struct list_call *add = submit(t, 0, LIST_ADDX);
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1\n");
    struct list_request *cas = rig_take(&t->rig, BE_CAS, "k#");
    let_time_pass(t, add);
    expect_done(t, add, "deadline over, outcome unknown");
    answer(t, cas, BE_EXISTS, NULL);
    expect_rest(t);
}

static void test_a_drop_is_done_once_the_list_is_empty(void **state)
{
    struct test *t = *state;
    struct list_call *drop = submit(t, 0, LIST_DROP);
    look(t);
    answer(t, rig_take(&t->rig, BE_APPEND, "k#"), BE_STORED, NULL);
    struct list_request *get = rig_take(&t->rig, BE_GET, "k#");
    let_time_pass(t, drop);
    expect_done(t, drop, NULL);
    answer(t, get, BE_HIT, "^1\n+1:a!0:");
    fail_the_rest(t); /* it is tidied up behind the answer */
}

/* The second try is not made any more: it would take what others have added since. */
static void test_a_drop_does_not_clear_after_its_deadline(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    struct list_call *drop = submit(t, 0, LIST_DROP);
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1 " RUN ".1:18:1\n+1:a");
    struct list_request *removal = rig_take(&t->rig, BE_CAS_DELETE, "k#");
    let_time_pass(t, drop);
    expect_done(t, drop, "deadline over, outcome unknown");
    answer(t, removal, BE_EXISTS, NULL);
    expect_rest(t);
}

/* The server took its time to remove the head: what that named is deleted all the same. */
static void test_what_a_dropped_list_stored_has_its_own_time(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    t->rig.config->long_timeout_ms = 5000;
    struct list_call *drop = submit(t, 0, LIST_DROP);
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1 " RUN ".1:18:1\n+1:a");
    struct list_request *removal = rig_take(&t->rig, BE_CAS_DELETE, "k#");
    let_time_pass(t, drop);
    expect_done(t, drop, "deadline over, outcome unknown");
    t->rig.now.mono_us += 5000000;
    answer(t, removal, BE_STORED, NULL);
    answer(t, rig_take(&t->rig, BE_DELETE, "k#" RUN ".0"), BE_STORED, NULL);
    fail_the_rest(t);
}

/* No call asked for it, and it does not hang for ever all the same. */
static void test_a_merge_gives_up_after_long_timeout_ms(void **state)
{
    struct test *t = *state;
    t->rig.config->long_timeout_ms = 5000;
    struct list_call *compact = submit(t, 0, LIST_COMPACT);
    char value[256];
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1 " RUN ".1:18:1 bbbbbbbbbbbbb.1:18:1\n");
    struct list_request *announce = rig_take(&t->rig, BE_APPEND, "k#");
    snprintf(value, sizeof value, "^1 " RUN ".1:18:1 bbbbbbbbbbbbb.1:18:1\n%.*s",
             SLICE_ARGS(announce->be.value));
    answer(t, announce, BE_STORED, NULL);
    answer(t, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, value);
    struct list_request *newer = rig_take(&t->rig, BE_GET, "k#bbbbbbbbbbbbb.0");
    let_time_pass(t, compact);
    expect_done(t, compact, "deadline over: the list is not compact yet");
    answer(t, newer, BE_HIT, "^1 0000000001\n+2:x9");
    answer(t, rig_take(&t->rig, BE_APPEND, "k#"), BE_STORED, NULL); /* the announcement is withdrawn
                                                                     */
    expect_rest(t);
}

/* Two changes in one append: the first one's items are written although its call is gone. */
static void test_a_change_of_a_dialect_goes_on_with_its_batch(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].dialect = DIALECT_SIMPLE;
    t->rig.config->lists[0].key_bytes_max = LIST_KEY_BYTES_MAX;
    struct list_call *first = submit(t, 0, LIST_ADD);
    t->rig.now.mono_us += 10;
    struct list_call *second = submit(t, 1, LIST_ADD);
    answer(t, rig_take(&t->rig, BE_GET, "k"), BE_HIT, "a,a,"); /* it is looked at before it is known
                                                                */
    struct list_request *request = rig_take(&t->rig, BE_APPEND, "k");
    let_time_pass(t, first);
    expect_done(t, first, "deadline over, outcome unknown");
    answer(t, request, BE_TOO_LARGE, NULL);
    answer(t, rig_take(&t->rig, BE_GET, "k"), BE_HIT, "a,a,");
    request = rig_take(&t->rig, BE_CAS, "k");
    assert_true(slice_equal(request->be.value, SLICE_LIT("a,x0,x1,")));
    answer(t, request, BE_STORED, NULL);
    expect_done(t, second, NULL);
    expect_rest(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_change_that_waits_is_not_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_change_that_was_stored_is_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_change_between_two_tries_is_not_done, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_change_ends_with_the_look_before_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_read_ends_in_its_second_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_exact_change_is_left_out_of_its_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_exact_change_alone_ends_with_its_call, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_an_exact_change_under_way_is_unknown_and_not_repeated,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_drop_is_done_once_the_list_is_empty, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_drop_does_not_clear_after_its_deadline, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_a_dropped_list_stored_has_its_own_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_merge_gives_up_after_long_timeout_ms, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_change_of_a_dialect_goes_on_with_its_batch, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
