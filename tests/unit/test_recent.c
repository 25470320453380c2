/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists with max_stale_ms: which reads need no request. Two workers of one proxy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "list/content/view.h"
#include "list/core/engine_state.h"
#include "support_engine.h"

#define STALE_MS 100u

struct worker {
    struct rig rig;
    struct list_session session;
    struct list_call call;
};

struct two {
    struct own_changes changes;
    struct worker a, b;
};

static void start(struct worker *w, struct own_changes *changes)
{
    rig_init(&w->rig);
    w->rig.config->lists[0].max_stale_ms = STALE_MS;
    engine_set_own_changes(w->rig.engine, changes);
    chain_init(&w->call.answer);
}

static int setup(void **state)
{
    static struct two t;
    t = (struct two){0};
    start(&t.a, &t.changes);
    start(&t.b, &t.changes);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct two *t = *state;
    chain_fini(&t->a.call.answer);
    chain_fini(&t->b.call.answer);
    rig_fini(&t->a.rig);
    rig_fini(&t->b.rig);
    return 0;
}

static void submit(struct worker *w, enum list_verb verb)
{
    static const struct slice item = {"x", 1};
    bool named = verb == LIST_ADD || verb == LIST_HAS;
    chain_fini(&w->call.answer);
    w->call = (struct list_call){.verb = verb,
                                 .key = SLICE_LIT("k"),
                                 .policy = &w->rig.config->lists[0],
                                 .session = &w->session,
                                 .items = &item,
                                 .item_count = named};
    chain_init(&w->call.answer);
    engine_submit(w->rig.engine, &w->call, w->rig.now);
}

static void expect_done(struct worker *w, uint64_t number)
{
    (void)engine_run(w->rig.engine, w->rig.now);
    assert_ptr_equal(engine_take_done(w->rig.engine), &w->call);
    assert_int_equal(w->call.status, LIST_OK);
    assert_int_equal(w->call.number, number);
}

/* It asks the server, and answers what that says. */
static void expect_asks(struct worker *w, uint64_t number)
{
    rig_answer(&w->rig, rig_take(&w->rig, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", -1);
    expect_done(w, number);
}

static void expect_asks_nothing(struct worker *w, uint64_t number)
{
    expect_done(w, number);
    assert_null(engine_take_request(w->rig.engine));
}

static void look(struct worker *w)
{
    submit(w, LIST_LEN);
    expect_asks(w, 2);
}

static void test_what_was_known_answers_for_so_long_and_no_longer(void **state)
{
    struct worker *w = &((struct two *)*state)->a;
    look(w);
    w->rig.now.mono_us += STALE_MS * 1000;
    submit(w, LIST_LEN);
    expect_asks_nothing(w, 2);
    submit(w, LIST_GET);
    expect_asks_nothing(w, 2);
    w->rig.now.mono_us++;
    look(w);
}

static void test_versions_and_times_are_asked_for(void **state)
{
    struct worker *w = &((struct two *)*state)->a;
    look(w);
    submit(w, LIST_TTL);
    rig_answer(&w->rig, rig_take(&w->rig, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", -1);
    (void)engine_run(w->rig.engine, w->rig.now);
    assert_non_null(engine_take_done(w->rig.engine));
    submit(w, LIST_GET);
    expect_asks_nothing(w, 2);
    chain_fini(&w->call.answer);
    w->call.wants_version = true;
    chain_init(&w->call.answer);
    engine_submit(w->rig.engine, &w->call, w->rig.now);
    expect_asks(w, 2);
}

/* The worker's change; answered: the server has done so. */
static struct list_request *begin_change(struct worker *w)
{
    submit(w, LIST_ADD);
    struct list_request *request = engine_take_request(w->rig.engine);
    while (request == NULL) {
        (void)engine_run(w->rig.engine, w->rig.now);
        request = engine_take_request(w->rig.engine);
    }
    if (request->be.verb == BE_GET) { /* it looks whether it is a list */
        rig_answer(&w->rig, request, BE_HIT, "^1\n+1:a+1:b", -1);
        request = rig_take(&w->rig, BE_APPEND, "k#");
    }
    return request;
}

static void answer_change(struct worker *w, struct list_request *request)
{
    rig_answer(&w->rig, request, BE_STORED, NULL, -1);
    (void)engine_run(w->rig.engine, w->rig.now);
}

static void test_a_change_of_another_worker_ends_it(void **state)
{
    struct two *t = *state;
    look(&t->a);
    struct list_request *change = begin_change(&t->b);
    submit(&t->a, LIST_LEN);
    expect_asks_nothing(&t->a, 2); /* the change is not answered yet */
    answer_change(&t->b, change);
    look(&t->a);
    submit(&t->a, LIST_LEN);
    expect_asks_nothing(&t->a, 2);
}

static void test_a_change_that_is_answered_while_the_head_is_on_its_way(void **state)
{
    struct two *t = *state;
    struct list_request *change = begin_change(&t->b);
    submit(&t->a, LIST_LEN);
    struct list_request *read = rig_take(&t->a.rig, BE_GET, "k#");
    answer_change(&t->b, change);
    rig_answer(&t->a.rig, read, BE_HIT, "^1\n+1:a+1:b", -1); /* of before the change */
    expect_done(&t->a, 2);
    look(&t->a);
}

static void test_a_head_that_no_read_waits_for_makes_no_item_last_longer(void **state)
{
    struct worker *w = &((struct two *)*state)->a;
    char text[64];
    (void)snprintf(text, sizeof text, "^1\n@12:%lld:a+1:b", (long long)w->rig.now.wall_s + 1);
    submit(w, LIST_LEN);
    rig_answer(&w->rig, rig_take(&w->rig, BE_GET, "k#"), BE_HIT, text, -1);
    expect_done(w, 2);
    w->rig.now.wall_s++;
    w->rig.now.mono_us += 1000000;
    submit(w, LIST_LEN);
    w->call.deadline_us = w->rig.now.mono_us + 1;
    struct list_request *late = rig_take(&w->rig, BE_GET, "k#");
    w->rig.now.mono_us++;
    (void)engine_run(w->rig.engine, w->rig.now);
    assert_ptr_equal(engine_take_done(w->rig.engine), &w->call);
    assert_int_equal(w->call.status, LIST_SERVER_ERROR);
    rig_answer(&w->rig, late, BE_HIT, text, -1);
    submit(w, LIST_LEN);
    rig_answer(&w->rig, rig_take(&w->rig, BE_GET, "k#"), BE_HIT, text, -1);
    expect_done(w, 1);
}

static void test_a_short_list_keeps_no_block_of_its_connection(void **state)
{
    struct worker *w = &((struct two *)*state)->a;
    look(w);
    const struct list *list = lists_find(&w->rig.engine->lists, SLICE_LIT("k"));
    assert_true(list->view->log.block->cap < BLOCK_BYTES / 4);
    submit(w, LIST_GET);
    expect_asks_nothing(w, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_known_answers_for_so_long_and_no_longer,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_versions_and_times_are_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_change_of_another_worker_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_change_that_is_answered_while_the_head_is_on_its_way,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_head_that_no_read_waits_for_makes_no_item_last_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_short_list_keeps_no_block_of_its_connection, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
