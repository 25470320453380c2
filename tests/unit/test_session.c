/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of whole lists are started as far as the client takes their answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_engine.h"

#define CALLS 4
/* A list whose log has ITEM_COUNT items of ten bytes, and a limit that fits one answer, not two. */
#define ITEM_COUNT 100
#define LIMIT_BYTES 2000

struct test {
    struct rig rig;
    struct list_session session, other;
    struct list_call calls[CALLS];
    struct block *head;
};

static int setup(void **state)
{
    static struct test t;
    t = (struct test){0};
    rig_init(&t.rig);
    t.session.limit_bytes = t.other.limit_bytes = LIMIT_BYTES;
    t.head = block_new(BLOCK_BYTES);
    block_append(&t.head, "^1\n", 3);
    for (int i = 0; i < ITEM_COUNT; i++) {
        char entry[32];
        int len = snprintf(entry, sizeof entry, "+10:item-%05d", i);
        block_append(&t.head, entry, (size_t)len);
    }
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
    block_unref(&t->head);
    return 0;
}

static struct list_call *submit(struct test *t, size_t number, const char *key, enum list_verb verb)
{
    static const struct slice item = {"item-00001", 10};
    struct list_call *call = &t->calls[number];
    call->verb = verb;
    call->key = slice_of(key);
    call->policy = &t->rig.config->lists[0];
    call->session = &t->session;
    call->items = &item;
    call->item_count = verb == LIST_HAS || verb == LIST_ADD;
    engine_submit(t->rig.engine, call, t->rig.now);
    return call;
}

/* Answers what the engine asks for, until it asks for nothing. Returns the number of requests. */
static unsigned serve(struct test *t)
{
    unsigned count = 0;
    struct list_request *request;
    (void)engine_run(t->rig.engine, t->rig.now);
    while ((request = engine_take_request(t->rig.engine)) != NULL) {
        struct be_reply reply = {.status = BE_STORED, .cas = 7, .epoch = 1, .ttl_s = -1};
        if (request->be.verb == BE_GET) {
            reply.status = BE_HIT;
            reply.block = t->head;
            reply.value = slice_make(t->head->data, t->head->used);
            reply.size_bytes = reply.value.len;
        }
        count++;
        engine_reply(t->rig.engine, request, &reply, t->rig.now);
        (void)engine_run(t->rig.engine, t->rig.now);
    }
    return count;
}

static void expect_done(struct test *t, const struct list_call *call, enum list_status status)
{
    assert_ptr_equal(engine_take_done(t->rig.engine), call);
    assert_int_equal(call->status, status);
}

/* As the daemon does: what was answered counts as unread until it is written. */
static void go_on(struct test *t, uint64_t unread_bytes, const struct list_call *first)
{
    t->session.unread_bytes = unread_bytes;
    t->session.first = first;
    engine_session_changed(t->rig.engine, &t->session);
}

static void test_a_second_large_answer_waits_until_the_first_is_taken(void **state)
{
    struct test *t = *state;
    struct list_call *a = submit(t, 0, "k", LIST_GET);
    struct list_call *b = submit(t, 1, "k", LIST_GET);
    assert_int_equal(serve(t), 1);
    expect_done(t, a, LIST_OK);
    assert_null(engine_take_done(t->rig.engine));
    assert_true(session_has_deferred(&t->session));
    go_on(t, a->answer.bytes, NULL);
    assert_int_equal(serve(t), 0);
    go_on(t, 0, NULL);
    assert_int_equal(serve(t), 1);
    expect_done(t, b, LIST_OK);
    assert_int_equal(b->answer.bytes, a->answer.bytes);
    assert_false(session_has_deferred(&t->session));
    assert_false(engine_busy(t->rig.engine));
}

/* The extent is known from the first time, so nothing is asked for in vain. */
static void test_a_list_that_is_known_is_not_asked_for_too_early(void **state)
{
    struct test *t = *state;
    submit(t, 0, "k", LIST_GET);
    serve(t);
    expect_done(t, &t->calls[0], LIST_OK);
    go_on(t, LIMIT_BYTES, NULL);
    submit(t, 1, "k", LIST_GET);
    assert_int_equal(serve(t), 0);
    submit(t, 2, "k", LIST_LEN);
    assert_int_equal(serve(t), 0);
    go_on(t, 0, NULL);
    assert_int_equal(serve(t), 1);
    expect_done(t, &t->calls[1], LIST_OK);
    expect_done(t, &t->calls[2], LIST_OK);
}

static void test_the_first_of_all_goes_however_much_is_unread(void **state)
{
    struct test *t = *state;
    struct list_call *a = submit(t, 0, "k", LIST_GET);
    go_on(t, LIMIT_BYTES, NULL);
    assert_int_equal(serve(t), 1);
    assert_null(engine_take_done(t->rig.engine));
    go_on(t, LIMIT_BYTES, a);
    assert_int_equal(serve(t), 1);
    expect_done(t, a, LIST_OK);
}

/* What the session asks of that list afterwards waits too, in its order; others do not. */
static void test_order_is_kept_behind_a_held_read(void **state)
{
    struct test *t = *state;
    struct list_call *get = submit(t, 0, "k", LIST_GET);
    struct list_call *has = submit(t, 1, "k", LIST_HAS);
    go_on(t, LIMIT_BYTES, NULL);
    assert_int_equal(serve(t), 1);
    struct list_call *add = submit(t, 2, "k", LIST_ADD);
    struct list_call *len = submit(t, 3, "other", LIST_LEN);
    assert_int_equal(serve(t), 1);
    expect_done(t, len, LIST_OK);
    assert_null(engine_take_done(t->rig.engine));
    go_on(t, 0, NULL);
    serve(t);
    expect_done(t, get, LIST_OK);
    expect_done(t, has, LIST_OK);
    expect_done(t, add, LIST_OK);
}

static void test_another_session_is_not_held_back(void **state)
{
    struct test *t = *state;
    submit(t, 0, "k", LIST_GET);
    go_on(t, LIMIT_BYTES, NULL);
    serve(t);
    t->calls[1].session = &t->other;
    struct list_call *call = &t->calls[1];
    call->verb = LIST_GET;
    call->key = SLICE_LIT("k");
    call->policy = &t->rig.config->lists[0];
    engine_submit(t->rig.engine, call, t->rig.now);
    assert_int_equal(serve(t), 1);
    expect_done(t, call, LIST_OK);
}

/* A client may take its time: its calls do not run out of theirs meanwhile. */
static void test_waiting_for_the_client_is_no_timeout(void **state)
{
    struct test *t = *state;
    struct list_call *get = submit(t, 0, "k", LIST_GET);
    struct list_call *add = submit(t, 1, "k", LIST_ADD);
    go_on(t, LIMIT_BYTES, NULL);
    serve(t);
    t->rig.now.mono_us += 3600u * 1000000u;
    go_on(t, 0, NULL);
    serve(t);
    expect_done(t, get, LIST_OK);
    expect_done(t, add, LIST_OK);
}

static void test_reads_of_a_client_that_is_gone_end(void **state)
{
    struct test *t = *state;
    struct list_call *get = submit(t, 0, "k", LIST_GET);
    struct list_call *add = submit(t, 1, "k", LIST_ADD);
    go_on(t, LIMIT_BYTES, NULL);
    serve(t);
    t->session.gone = true;
    engine_session_changed(t->rig.engine, &t->session);
    assert_int_equal(serve(t), 1);
    expect_done(t, get, LIST_SERVER_ERROR);
    expect_done(t, add, LIST_OK);
    assert_false(engine_busy(t->rig.engine));
}

/* A page of a long list is a short answer. */
static void test_a_page_is_counted_by_its_items(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].max_item_bytes = 10;
    for (size_t i = 0; i < CALLS; i++) {
        t->calls[i].from = (int64_t)i;
        t->calls[i].to = (int64_t)i + 10;
        submit(t, i, "k", LIST_RANGE);
    }
    assert_int_equal(serve(t), 1);
    for (size_t i = 0; i < CALLS; i++) {
        expect_done(t, &t->calls[i], LIST_OK);
        assert_int_equal(t->calls[i].number, 11);
    }
}

/* Those that the client needs soonest are started first. */
static void test_held_reads_go_on_in_their_order(void **state)
{
    static const char *const keys[] = {"k0", "k1", "k2", "k3"};
    struct test *t = *state;
    go_on(t, LIMIT_BYTES, NULL);
    for (size_t i = 0; i < CALLS; i++) {
        submit(t, i, keys[i], LIST_GET);
    }
    serve(t);
    assert_null(engine_take_done(t->rig.engine));
    for (size_t i = 0; i < CALLS; i++) {
        go_on(t, 0, NULL);
        assert_int_equal(serve(t), 1);
        expect_done(t, &t->calls[i], LIST_OK);
    }
}

/* For want of memory: its operation lets go of it, and the session is charged with nothing. */
static void test_the_call_that_holds_most_ends(void **state)
{
    static const struct slice item = {"item-00001", 10};
    struct test *t = *state;
    struct list_call *put = &t->calls[0];
    put->verb = LIST_PUT;
    put->condition = LIST_IF_MISSING;
    put->key = SLICE_LIT("k");
    put->policy = &t->rig.config->lists[0];
    put->session = &t->session;
    put->items = &item;
    put->item_count = 1;
    engine_submit(t->rig.engine, put, t->rig.now);
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_true(t->session.charged_bytes > 0);
    assert_int_equal(engine_end_largest(t->rig.engine, &t->other, t->rig.now), 0);
    uint64_t charged = t->session.charged_bytes;
    assert_int_equal(engine_end_largest(t->rig.engine, &t->session, t->rig.now), charged);
    assert_int_equal(t->session.charged_bytes, 0);
    assert_int_equal(engine_end_largest(t->rig.engine, &t->session, t->rig.now), 0);
    expect_done(t, put, LIST_SERVER_ERROR);
    assert_string_equal(put->error, "out of memory: memory_limit_bytes is reached, nothing done");
    (void)serve(t);
    assert_false(engine_busy(t->rig.engine));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_second_large_answer_waits_until_the_first_is_taken,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_list_that_is_known_is_not_asked_for_too_early, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_first_of_all_goes_however_much_is_unread, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_order_is_kept_behind_a_held_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_session_is_not_held_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting_for_the_client_is_no_timeout, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reads_of_a_client_that_is_gone_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_reads_go_on_in_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_page_is_counted_by_its_items, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_call_that_holds_most_ends, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
