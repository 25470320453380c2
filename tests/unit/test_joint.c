/* SPDX-License-Identifier: BSD-3-Clause */
/* Several lists at one instant: which requests prove it, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "list/core/inner.h"
#include "support_engine.h"

#define LISTS_MAX 3
#define EMPTY "^1\n"
#define RUN "aaaaaaaaaaaaa"

struct joint_test {
    struct rig rig;
    struct list_session session;
    struct list_call call;
    struct call_list lists[LISTS_MAX];
};

static int setup(void **state)
{
    static struct joint_test t;
    t = (struct joint_test){0};
    rig_init(&t.rig);
    chain_init(&t.call.answer);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct joint_test *t = *state;
    rig_fini(&t->rig);
    chain_fini(&t->call.answer);
    for (size_t i = 0; i < LISTS_MAX; i++) {
        chain_fini(&t->lists[i].answer);
    }
    return 0;
}

static void submit(struct joint_test *t, enum list_verb verb, size_t count)
{
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < count; i++) {
        t->lists[i].key = slice_of(keys[i]);
        t->lists[i].policy = &t->rig.config->lists[0];
        chain_init(&t->lists[i].answer);
    }
    t->call.verb = verb;
    t->call.key = t->lists[0].key;
    t->call.policy = t->lists[0].policy;
    t->call.session = &t->session;
    t->call.lists = t->lists;
    t->call.list_count = count;
    engine_submit(t->rig.engine, &t->call, t->rig.now);
}

static void expect(struct joint_test *t, enum be_verb verb, const char *key, enum be_status status,
                   const char *value, uint64_t cas, uint64_t epoch)
{
    struct list_request *request = rig_take(&t->rig, verb, key);
    struct be_reply reply = {.status = status, .cas = cas, .epoch = epoch, .ttl_s = -1};
    if (value != NULL) {
        reply.block = block_new(strlen(value));
        block_append(&reply.block, value, strlen(value));
        reply.value = slice_make(reply.block->data, reply.block->used);
        reply.size_bytes = reply.value.len;
    }
    engine_reply(t->rig.engine, request, &reply, t->rig.now);
    block_unref(&reply.block);
}

static void expect_done(struct joint_test *t, enum list_status status, uint64_t number)
{
    struct list_call *done = engine_take_done(t->rig.engine);
    for (int i = 0; i < 20 && done == NULL; i++) {
        (void)engine_run(t->rig.engine, t->rig.now);
        done = engine_take_done(t->rig.engine);
    }
    assert_ptr_equal(done, &t->call);
    assert_int_equal(t->call.status, status);
    assert_int_equal(t->call.number, number);
}

static void expect_rest(struct joint_test *t)
{
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_null(engine_take_request(t->rig.engine));
    assert_false(engine_busy(t->rig.engine));
}

static void test_probes_behind_all_reads(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_INTERLEN, 2);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x+1:y", 7, 1);
    expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:y", 9, 1);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 9, 1);
    expect_done(t, LIST_OK, 1);
    expect_rest(t);
}

/* A list that has changed meanwhile; the number of another connection, which says nothing; a list
 * that has gone. */
static void test_begins_anew(void **state)
{
    struct joint_test *t = *state;
    static const struct {
        enum be_status status;
        uint64_t cas, epoch;
    } probes[] = {{BE_HIT, 10, 1}, {BE_HIT, 9, 2}, {BE_MISS, 0, 1}};
    submit(t, LIST_INTERLEN, 2);
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x+1:y", 7, 1);
        expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:x+1:y", 9, 1);
        expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
        expect(t, BE_SIZE, "b#", probes[i].status, NULL, probes[i].cas, probes[i].epoch);
    }
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:y", 8, 1);
    expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:y", 9, 2);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 8, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 9, 2);
    expect_done(t, LIST_OK, 1);
    expect_rest(t);
}

static void test_one_list_needs_no_probe(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_UNIONLEN, 1);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x+1:y", 7, 1);
    expect_done(t, LIST_OK, 2);
    expect_rest(t);
}

/* The instant is that of the second look. */
static void test_looks_again_at_a_missing_list(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_UNIONLEN, 2);
    expect(t, BE_GET, "a#", BE_MISS, NULL, 0, 1);
    expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:y", 9, 1);
    expect(t, BE_GET, "a#", BE_MISS, NULL, 0, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 9, 1);
    expect_done(t, LIST_OK, 1);
    expect_rest(t);
}

static void test_a_missing_list_decides_an_intersection(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_INTER, 3);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:y", 7, 1);
    expect(t, BE_GET, "b#", BE_MISS, NULL, 0, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect_done(t, LIST_MISSING, 0);
    expect_rest(t);
}

static void expect_two_missing(struct joint_test *t)
{
    submit(t, LIST_UNIONLEN, 3);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:y", 7, 1);
    expect(t, BE_GET, "b#", BE_MISS, NULL, 0, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
}

/* One of them gets a head, which goes behind the answer: by its CAS number. */
static void test_two_missing_lists(void **state)
{
    struct joint_test *t = *state;
    expect_two_missing(t);
    expect(t, BE_ADD, "b#", BE_STORED, NULL, 0, 1);
    expect(t, BE_GET, "b#", BE_HIT, EMPTY, 11, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 11, 1);
    struct list_request *removal = rig_take(&t->rig, BE_CAS_DELETE, "b#");
    assert_int_equal(removal->be.cas, 11);
    assert_int_equal(removal->be.epoch, 1);
    expect_done(t, LIST_OK, 1);
    rig_answer(&t->rig, removal, BE_STORED, NULL, -1);
    expect_rest(t);
}

/* The head has the cap of the list: a worker that remembers the list appends to it blindly. */
static void test_a_head_that_is_made_has_the_cap(void **state)
{
    struct joint_test *t = *state;
    t->rig.config->lists[0].max_items = 2;
    expect_two_missing(t);
    struct list_request *made = rig_take(&t->rig, BE_ADD, "b#");
    assert_true(slice_equal(made->be.value, slice_of("^1 #2.drop\n")));
    rig_answer(&t->rig, made, BE_STORED, NULL, -1);
    expect(t, BE_GET, "b#", BE_HIT, "^1 #2.drop\n", 11, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 11, 1);
    expect(t, BE_CAS_DELETE, "b#", BE_STORED, NULL, 0, 1);
    expect_done(t, LIST_OK, 1);
    expect_rest(t);
}

/* Of the missing lists' server it counts whether it tells times, not of that of the list that the
 * call stands in: on one that tells none, no head with a time to live is made. */
static void test_no_head_with_a_time_where_none_is_told(void **state)
{
    struct joint_test *t = *state;
    static const struct be_caps caps = {.server_name = "old", .item_size_max = 1 << 20};
    t->rig.config->lists[0].ttl_s = 100;
    submit(t, LIST_UNIONLEN, 3);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:y", 7, 1);
    for (unsigned i = 0; i < 2; i++) {
        struct be_reply reply = {
            .status = BE_MISS, .epoch = 1, .ttl_s = -1, .no_times = true, .caps = &caps};
        struct list_request *request = rig_take(&t->rig, BE_GET, i == 0 ? "b#" : "c#");
        engine_reply(t->rig.engine, request, &reply, t->rig.now);
    }
    expect(t, BE_GET, "mclistd#clock.0", BE_MISS, NULL, 0, 1);
    expect(t, BE_TIME, "b#", BE_DOWN, NULL, 0, 1);
    expect(t, BE_GET, "mclistd#clock.1", BE_MISS, NULL, 0, 1);
    expect_done(t, LIST_SERVER_ERROR, 0);
}

/* What another client has put into it meanwhile counts, and stays. */
static void test_a_head_that_was_used_stays(void **state)
{
    struct joint_test *t = *state;
    expect_two_missing(t);
    expect(t, BE_ADD, "b#", BE_STORED, NULL, 0, 1);
    expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:z", 12, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 12, 1);
    expect_done(t, LIST_OK, 2);
    expect_rest(t);
}

static void test_a_deadline_leaves_no_head(void **state)
{
    struct joint_test *t = *state;
    t->call.deadline_us = t->rig.now.mono_us + 1000;
    expect_two_missing(t);
    expect(t, BE_ADD, "b#", BE_STORED, NULL, 0, 1);
    struct list_request *look = rig_take(&t->rig, BE_GET, "b#");
    t->rig.now.mono_us += 2000;
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_ptr_equal(engine_take_done(t->rig.engine), &t->call);
    assert_int_equal(t->call.status, LIST_SERVER_ERROR);
    rig_answer(&t->rig, look, BE_HIT, EMPTY, -1);
    expect(t, BE_CAS_DELETE, "b#", BE_STORED, NULL, 0, 1);
    expect_rest(t);
}

/* The comparison stays until its own request has come back; then the head is removed. */
static void test_a_deadline_in_a_comparison_that_made_a_head(void **state)
{
    struct joint_test *t = *state;
    t->call.deadline_us = t->rig.now.mono_us + 1000;
    submit(t, LIST_UNION, 3);
    expect(t, BE_GET, "a#", BE_HIT, "^1 " RUN ".1:26:3\n", 7, 1);
    expect(t, BE_GET, "b#", BE_MISS, NULL, 0, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect(t, BE_ADD, "b#", BE_STORED, NULL, 0, 1);
    expect(t, BE_GET, "b#", BE_HIT, EMPTY, 11, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 11, 1);
    struct list_request *sublist = rig_take(&t->rig, BE_GET, "a#" RUN ".0");
    t->rig.now.mono_us += 2000;
    (void)engine_run(t->rig.engine, t->rig.now);
    assert_ptr_equal(engine_take_done(t->rig.engine), &t->call);
    assert_int_equal(t->call.status, LIST_SERVER_ERROR);
    rig_answer(&t->rig, sublist, BE_HIT, "^1 0000000003\n+1:x+1:y+1:z", -1);
    expect(t, BE_CAS_DELETE, "b#", BE_STORED, NULL, 0, 1);
    expect_rest(t);
}

/* Its client was closed: nothing is read any more, and what it held is free. */
static void test_a_client_that_is_gone(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_UNION, 2);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x", 7, 1);
    assert_ptr_equal(t->session.joint, &t->call);
    t->session.gone = true;
    engine_session_changed(t->rig.engine, &t->session);
    assert_null(t->session.joint);
    expect_done(t, LIST_SERVER_ERROR, 0);
    assert_int_equal(t->session.charged_bytes, 0);
    expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:y", 9, 1);
    expect_rest(t);
}

/* What its looks take is its client's from the first moment: for want of memory the call ends, and
 * no client is closed. */
static void test_looks_are_charged(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_UNION, 3);
    (void)engine_run(t->rig.engine, t->rig.now);
    uint64_t charged = t->session.charged_bytes;
    assert_true(charged > 3 * sizeof(struct inner));
    assert_int_equal(engine_end_largest(t->rig.engine, &t->session, t->rig.now), charged);
    assert_int_equal(t->session.charged_bytes, 0);
    expect_done(t, LIST_SERVER_ERROR, 0);
    assert_string_equal(t->call.error,
                        "out of memory: memory_limit_bytes is reached, nothing done");
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x", 7, 1);
    expect(t, BE_GET, "b#", BE_MISS, NULL, 0, 1);
    expect(t, BE_GET, "c#", BE_MISS, NULL, 0, 1);
    expect_rest(t);
}

/* A thousand of them may be in one answer. */
static void test_answers_of_short_lists_take_little(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_GETX, 2);
    expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x+1:y", 7, 1);
    expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:y", 9, 1);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 9, 1);
    expect_done(t, LIST_OK, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_in_range(t->lists[i].answer.tail->cap, 1, 1024);
    }
    expect_rest(t);
}

/* Two calls share a head, and the second one reads its other list a second later. Items that are
 * over by then are still in all lists of the first call. */
static void test_calls_that_share_a_head_have_seconds_of_their_own(void **state)
{
    struct joint_test *t = *state;
    int64_t over_s = t->rig.now.wall_s + 1;
    char log[64], sublist[64], head[64];
    struct call_list lists[2] = {{.key = SLICE_LIT("a")}, {.key = SLICE_LIT("c")}};
    struct list_session session = {0};
    struct list_call second = {.verb = LIST_UNIONLEN, .key = lists[0].key, .session = &session};
    (void)snprintf(log, sizeof log, "^1\n@12:%jd:x", (intmax_t)over_s);
    (void)snprintf(sublist, sizeof sublist, "^1 0000000002\n@12:%jd:y+1:z", (intmax_t)over_s);
    (void)snprintf(head, sizeof head, "^1 %%%jd.0 " RUN ".1:%zu:2\n", (intmax_t)over_s,
                   strlen(sublist));
    submit(t, LIST_UNIONLEN, 2);
    for (size_t i = 0; i < 2; i++) {
        lists[i].policy = t->lists[0].policy;
        chain_init(&lists[i].answer);
    }
    second.policy = t->lists[0].policy;
    second.lists = lists;
    second.list_count = 2;
    chain_init(&second.answer);
    engine_submit(t->rig.engine, &second, t->rig.now);
    expect(t, BE_GET, "a#", BE_HIT, head, 7, 1);
    expect(t, BE_GET, "b#", BE_HIT, log, 8, 1);
    struct list_request *late = rig_take(&t->rig, BE_GET, "c#");
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "b#", BE_HIT, NULL, 8, 1);
    struct list_request *fetch = rig_take(&t->rig, BE_GET, "a#" RUN ".0");
    t->rig.now.wall_s++;
    rig_answer_cas(&t->rig, late, BE_HIT, "^1\n+1:z", -1, 9);
    expect(t, BE_SIZE, "a#", BE_HIT, NULL, 7, 1);
    expect(t, BE_SIZE, "c#", BE_HIT, NULL, 9, 1);
    int done = 0;
    for (int i = 0; i < 20 && done < 2; i++) { /* each view of the list is of one second */
        if (fetch != NULL) {
            rig_answer(&t->rig, fetch, BE_HIT, sublist, -1);
        }
        uint64_t next_us = engine_run(t->rig.engine, t->rig.now);
        fetch = engine_take_request(t->rig.engine);
        if (fetch == NULL && next_us != UINT64_MAX && next_us > t->rig.now.mono_us) {
            t->rig.now.mono_us = next_us;
        }
        done += engine_take_done(t->rig.engine) != NULL;
    }
    assert_int_equal(done, 2);
    assert_int_equal(t->call.number, 3);
    assert_int_equal(second.number, 1);
    chain_fini(&second.answer);
    expect_rest(t);
}

static void test_busy(void **state)
{
    struct joint_test *t = *state;
    submit(t, LIST_INTERLEN, 2);
    for (uint64_t i = 0; i < 32; i++) {
        expect(t, BE_GET, "a#", BE_HIT, "^1\n+1:x", 7 + i, 1);
        expect(t, BE_GET, "b#", BE_HIT, "^1\n+1:y", 9, 1);
        expect(t, BE_SIZE, "a#", BE_HIT, NULL, 8 + i, 1);
        expect(t, BE_SIZE, "b#", BE_HIT, NULL, 9, 1);
    }
    expect_done(t, LIST_SERVER_ERROR, 0);
    assert_string_equal(
        t->call.error,
        "busy, nothing done: the lists change faster than they can be read together");
    expect_rest(t);
}

#define joint_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        joint_test(test_probes_behind_all_reads),
        joint_test(test_begins_anew),
        joint_test(test_one_list_needs_no_probe),
        joint_test(test_looks_again_at_a_missing_list),
        joint_test(test_a_missing_list_decides_an_intersection),
        joint_test(test_two_missing_lists),
        joint_test(test_a_head_that_is_made_has_the_cap),
        joint_test(test_no_head_with_a_time_where_none_is_told),
        joint_test(test_a_head_that_was_used_stays),
        joint_test(test_a_deadline_leaves_no_head),
        joint_test(test_a_deadline_in_a_comparison_that_made_a_head),
        joint_test(test_a_client_that_is_gone),
        joint_test(test_looks_are_charged),
        joint_test(test_answers_of_short_lists_take_little),
        joint_test(test_calls_that_share_a_head_have_seconds_of_their_own),
        joint_test(test_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
