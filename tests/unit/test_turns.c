/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes and looks in turns: which calls travel together, and who waits for whom.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "list/core/engine_state.h"
#include "support_engine.h"

#define CALLS_MAX 16

struct turns {
    struct rig rig;
    struct list_session session, other;
    struct list_call calls[CALLS_MAX];
    struct slice items[CALLS_MAX];
    size_t count;
};

static int setup(void **state)
{
    static struct turns t;
    t = (struct turns){0};
    rig_init(&t.rig);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct turns *t = *state;
    rig_fini(&t->rig);
    for (size_t i = 0; i < t->count; i++) {
        chain_fini(&t->calls[i].answer);
    }
    return 0;
}

static void submit(struct turns *t, struct list_session *session, enum list_verb verb,
                   const char *item)
{
    struct list_call *call = &t->calls[t->count];
    chain_init(&call->answer);
    t->items[t->count] = slice_of(item);
    call->verb = verb;
    call->key = SLICE_LIT("k");
    call->policy = &t->rig.config->lists[0];
    call->session = session;
    call->items = &t->items[t->count];
    call->item_count = item[0] != '\0';
    t->count++;
    engine_submit(t->rig.engine, call, t->rig.now);
}

/* Adds c and deletes a, in one step. */
static void submit_mixed(struct turns *t)
{
    static const struct slice items[] = {{"c", 1}, {"a", 1}};
    struct list_call *call = &t->calls[t->count];
    call->ops = "+-";
    submit(t, &t->session, LIST_ADD, "");
    call->items = items;
    call->item_count = 2;
}

static void submit_turns(struct turns *t, const char *first, const char *second)
{
    submit(t, &t->session, LIST_ADD, first);
    submit(t, &t->session, LIST_HAS, first);
    submit(t, &t->session, LIST_ADD, second);
}

static void take_done(struct turns *t)
{
    while (engine_take_done(t->rig.engine) != NULL) {
    }
}

static struct list_request *expect_request(struct turns *t, enum be_verb verb, const char *value)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    take_done(t);
    struct list_request *request = engine_take_request(t->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->be.verb, verb);
    if (value != NULL) {
        assert_int_equal(request->be.value.len, strlen(value));
        assert_memory_equal(request->be.value.p, value, strlen(value));
    }
    return request;
}

static void answer(struct turns *t, struct list_request *request, enum be_status status,
                   const char *value, int64_t ttl_s)
{
    rig_answer(&t->rig, request, status, value, ttl_s);
}

static void next_round(struct turns *t, const char *change, const char *head)
{
    struct list_request *append = expect_request(t, BE_APPEND, change);
    struct list_request *get = engine_take_request(t->rig.engine);
    assert_non_null(get);
    assert_int_equal(get->be.verb, BE_GET);
    answer(t, append, BE_STORED, NULL, -1);
    answer(t, get, BE_HIT, head, -1);
}

/* The first round of a session, which is also how the list is known, and to have no runs. */
static void first_round(struct turns *t, const char *change, const char *head)
{
    answer(t, expect_request(t, BE_GET, NULL), BE_HIT, "^1\n", -1);
    next_round(t, change, head);
}

static void test_a_call_adds_and_deletes_in_one_append(void **state)
{
    struct turns *t = *state;
    submit_mixed(t);
    submit(t, &t->other, LIST_GET, "");
    first_round(t, "+1:c-1:a", "^1\n+1:b+1:c-1:a");
}

static void test_a_call_adds_and_deletes_in_its_turn(void **state)
{
    struct turns *t = *state;
    submit_turns(t, "a", "b");
    submit(t, &t->session, LIST_HAS, "b");
    submit_mixed(t);
    first_round(t, "+1:a", "^1\n+1:a");
    answer(t, expect_request(t, BE_GET, NULL), BE_HIT, "^1\n+1:a", -1);
    answer(t, expect_request(t, BE_CAS, "^1\n+1:a+1:b+1:c-1:a"), BE_STORED, NULL, -1);
}

static void test_turns_are_written_by_one_cas(void **state)
{
    struct turns *t = *state;
    submit_turns(t, "a", "b");
    submit(t, &t->session, LIST_HAS, "b");
    submit(t, &t->session, LIST_DEL, "a");
    first_round(t, "+1:a", "^1\n+1:a");
    answer(t, expect_request(t, BE_GET, NULL), BE_HIT, "^1\n+1:a", -1);
    answer(t, expect_request(t, BE_CAS, "^1\n+1:a+1:b-1:a"), BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    take_done(t);
    assert_false(engine_busy(t->rig.engine));
    /* The number that was read is not that of what was written, where b is. */
    assert_int_equal(t->calls[3].number, 1);
    assert_int_equal(t->calls[3].version, 0);
}

/* Sessions that go on without a pause must not keep an exact change from its turn. */
static void exact_change_gets_through(struct turns *t, enum list_verb verb, enum be_verb sends)
{
    submit_turns(t, "a", "b");
    submit(t, &t->session, LIST_HAS, "b");
    submit(t, &t->session, LIST_ADD, "c");
    first_round(t, "+1:a", "^1\n+1:a");
    struct list_request *get = expect_request(t, BE_GET, NULL);
    submit(t, &t->other, verb, "x");
    submit_turns(t, "d", "e");
    answer(t, get, BE_HIT, "^1\n+1:a", -1);
    answer(t, expect_request(t, BE_CAS, "^1\n+1:a+1:b+1:c"), BE_STORED, NULL, -1);
    struct list_request *next = expect_request(t, sends, NULL);
    if (verb == LIST_ADDX) {
        answer(t, next, BE_HIT, "^1\n+1:a+1:b+1:c", -1);
        answer(t, expect_request(t, BE_CAS, "^1\n+1:a+1:b+1:c+1:x"), BE_STORED, NULL, -1);
    } else {
        assert_true(slice_starts_with(next->be.value, SLICE_LIT("!0:+1:x")));
        answer(t, next, BE_STORED, NULL, -1);
    }
}

static void test_an_exact_change_gets_through(void **state)
{
    exact_change_gets_through(*state, LIST_ADDX, BE_GET);
}

static void test_a_replacement_gets_through(void **state)
{
    exact_change_gets_through(*state, LIST_SET, BE_APPEND);
}

/* A count is no look that turns can answer: change and count go in one round, as without turns. */
static void test_changes_and_counts_go_in_rounds(void **state)
{
    struct turns *t = *state;
    submit(t, &t->session, LIST_ADD, "a");
    submit(t, &t->session, LIST_LEN, "");
    submit(t, &t->session, LIST_ADD, "b");
    submit(t, &t->session, LIST_LEN, "");
    first_round(t, "+1:a", "^1\n+1:a");
    next_round(t, "+1:b", "^1\n+1:a+1:b");
}

/* A CAS sets a time to live anew, an append leaves it alone. */
static void test_a_list_that_expires_is_appended_to(void **state)
{
    struct turns *t = *state;
    submit_turns(t, "a", "b");
    first_round(t, "+1:a", "^1\n+1:a");
    answer(t, expect_request(t, BE_GET, NULL), BE_HIT, "^1\n+1:a", 100);
    answer(t, expect_request(t, BE_APPEND, "+1:b"), BE_STORED, NULL, -1);
}

/* A view that lagged is gone, and with it what it lagged behind: a list that is missing is made by
 * a round, without trying turns again and again. */
static void test_a_view_that_is_gone_does_not_lag(void **state)
{
    struct turns *t = *state;
    submit_turns(t, "a", "b");
    submit(t, &t->session, LIST_HAS, "b");
    submit(t, &t->session, LIST_ADD, "c");
    first_round(t, "+1:a", "^1\n+1:a");
    struct list_request *get = expect_request(t, BE_GET, NULL);
    struct list *list = lists_find(&t->rig.engine->lists, SLICE_LIT("k"));
    (void)lists_get_view(&t->rig.engine->lists, list);
    list->view_lags = true;
    lists_drop_view(&t->rig.engine->lists, list);
    answer(t, get, BE_MISS, NULL, -1);
    answer(t, expect_request(t, BE_GET, NULL), BE_MISS, NULL, -1);
    answer(t, expect_request(t, BE_ADD, "^1\n+1:b"), BE_STORED, NULL, -1);
}

/* A round of changes alone has read nothing, and says nothing of what a view is worth. */
static void test_changes_alone_leave_the_view(void **state)
{
    struct turns *t = *state;
    submit(t, &t->session, LIST_ADD, "a");
    answer(t, expect_request(t, BE_GET, NULL), BE_HIT, "^1\n", -1);
    struct list_request *append = expect_request(t, BE_APPEND, "+1:a");
    struct list *list = lists_find(&t->rig.engine->lists, SLICE_LIT("k"));
    (void)lists_get_view(&t->rig.engine->lists, list);
    assert_null(engine_take_request(t->rig.engine));
    answer(t, append, BE_STORED, NULL, -1);
    (void)engine_run(t->rig.engine, t->rig.now);
    take_done(t);
    assert_false(engine_busy(t->rig.engine));
    assert_non_null(list->view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_call_adds_and_deletes_in_one_append, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_call_adds_and_deletes_in_its_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns_are_written_by_one_cas, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_exact_change_gets_through, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_replacement_gets_through, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_and_counts_go_in_rounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_list_that_expires_is_appended_to, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_view_that_is_gone_does_not_lag, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_alone_leave_the_view, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
