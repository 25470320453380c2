/* SPDX-License-Identifier: BSD-3-Clause */
/* What a dead coordinator has left is finished: in which order, whatever is lost, by one worker or
 * by two at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support_engine.h"

#define NAME "abcdefghijklm"
#define OLD "1600000000"
#define YOUNG "1699999990" /* the rig's clock says 1700000000, and announcement_grace_s is 300 */
/* The same transaction in all lists: an x to each. */
#define INTENT_AT(second) "?37:" NAME "." second " 3 a b c +1:x"
#define INTENT INTENT_AT(OLD)
#define RESIDUE "?33:" NAME "." OLD " 3 a b c "
#define COMMIT "&15:" NAME " c"
#define ABORT "&15:" NAME " a"
#define DONE "&15:" NAME " d"
#define EMPTY "^1\n"

#define WORKERS 2
#define KEYS 3
#define REQUESTS_MAX 400

/* Three lists on one server, and workers that use them. */
struct world {
    struct rig rigs[WORKERS];
    size_t rig_count;
    struct list_session sessions[WORKERS];
    struct list_call calls[WORKERS];
    bool called[WORKERS];
    char heads[KEYS][512]; /* "": none */
    uint64_t cas[KEYS];
    unsigned requests; /* that were carried out, or lost */
    unsigned lost;     /* the number of the request that is lost; 0: none */
    bool lost_is_done; /* only its reply is lost */
    bool full;         /* no head takes more bytes than it has */
};

static void world_init(struct world *w, size_t workers, const char *a, const char *b, const char *c)
{
    const char *heads[] = {a, b, c};
    *w = (struct world){.rig_count = workers};
    for (size_t i = 0; i < workers; i++) {
        rig_init(&w->rigs[i]);
        chain_init(&w->calls[i].answer);
    }
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(w->heads[i], sizeof w->heads[i], "%s", heads[i]);
        w->cas[i] = 1;
    }
}

static void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->rig_count; i++) {
        rig_fini(&w->rigs[i]);
        chain_fini(&w->calls[i].answer);
    }
}

static void ask(struct world *w, size_t worker, enum list_verb verb, const char *key)
{
    struct list_call *call = &w->calls[worker];
    call->verb = verb;
    call->key = slice_of(key);
    call->policy = &w->rigs[worker].config->lists[0];
    call->session = &w->sessions[worker];
    w->called[worker] = false;
    engine_submit(w->rigs[worker].engine, call, w->rigs[worker].now);
}

/* What the server makes of a request. */
static void carry_out(struct world *w, const struct list_request *request, struct be_reply *reply)
{
    assert_int_equal(request->be.key.len, 2);
    size_t i = (size_t)(request->key[0] - 'a');
    assert_true(i < KEYS && request->key[1] == '#');
    char *head = w->heads[i];
    bool there = head[0] != '\0';
    size_t len = request->be.value.len;
    *reply = (struct be_reply){.epoch = 1, .ttl_s = -1, .cas = w->cas[i]};
    switch (request->be.verb) {
    case BE_GET:
    case BE_SIZE:
        reply->status = there ? BE_HIT : BE_MISS;
        if (there && request->be.verb == BE_GET) {
            reply->block = block_new(strlen(head));
            block_append(&reply->block, head, strlen(head));
            reply->value = slice_make(reply->block->data, reply->block->used);
        }
        reply->size_bytes = strlen(head);
        return;
    case BE_ADD:
        reply->status = there ? BE_NOT_STORED : BE_STORED;
        if (!there) {
            snprintf(head, sizeof w->heads[i], "%.*s", (int)len, request->be.value.p);
            w->cas[i]++;
        }
        return;
    case BE_APPEND:
        reply->status = there && !w->full ? BE_STORED : BE_NOT_STORED;
        if (reply->status == BE_STORED) {
            snprintf(head + strlen(head), sizeof w->heads[i] - strlen(head), "%.*s", (int)len,
                     request->be.value.p);
            w->cas[i]++;
        }
        return;
    case BE_CAS:
    case BE_CAS_DELETE:
        reply->status = !there                          ? BE_NOT_FOUND
                        : w->full && len > strlen(head) ? BE_TOO_LARGE
                        : request->be.cas == w->cas[i]  ? BE_STORED
                                                        : BE_EXISTS;
        if (reply->status == BE_STORED) {
            len = request->be.verb == BE_CAS ? len : 0;
            snprintf(head, sizeof w->heads[i], "%.*s", (int)len,
                     len > 0 ? request->be.value.p : "");
            w->cas[i]++;
        }
        return;
    default:
        fail_msg("the engine sends a request that no test is about: %d", request->be.verb);
    }
}

static bool step(struct world *w, size_t worker)
{
    struct rig *rig = &w->rigs[worker];
    uint64_t next_us = engine_run(rig->engine, rig->now);
    struct list_request *request = engine_take_request(rig->engine);
    w->called[worker] = w->called[worker] || engine_take_done(rig->engine) != NULL;
    if (request == NULL) {
        if (!engine_busy(rig->engine) || next_us == UINT64_MAX) {
            return false;
        }
        rig->now.mono_us = next_us > rig->now.mono_us ? next_us : rig->now.mono_us;
        return true;
    }
    struct be_reply reply = {0};
    assert_true(++w->requests < REQUESTS_MAX);
    bool lost = w->requests == w->lost;
    if (!lost || w->lost_is_done) {
        carry_out(w, request, &reply);
    }
    if (lost) {
        block_unref(&reply.block);
        reply = (struct be_reply){.status = BE_LOST, .text = "timeout"};
    }
    engine_reply(rig->engine, request, &reply, rig->now);
    block_unref(&reply.block);
    return true;
}

/* Until no worker has anything to do; turns: whose turn it is, as bits, over and over. */
static void run(struct world *w, uint32_t turns)
{
    bool going[WORKERS] = {true, w->rig_count > 1};
    for (unsigned i = 0; going[0] || going[1]; i++) {
        size_t worker = (turns >> (i % 32)) & 1;
        worker = going[worker] ? worker : 1 - worker;
        going[worker] = step(w, worker);
    }
}

static void expect_heads(const struct world *w, const char *a, const char *b, const char *c)
{
    const char *heads[] = {a, b, c};
    for (size_t i = 0; i < KEYS; i++) {
        assert_string_equal(w->heads[i], heads[i]);
    }
}

/* ---- by one worker ---- */

static void test_a_read_finishes_what_is_old(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY RESIDUE COMMIT, EMPTY INTENT, EMPTY INTENT COMMIT);
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    assert_true(w.called[0]);
    expect_heads(&w, EMPTY RESIDUE COMMIT DONE, EMPTY INTENT COMMIT, EMPTY INTENT COMMIT);
    assert_int_equal(metric_get(&w.rigs[0].metrics, METRIC_list_transactions_finished), 1);
    world_fini(&w);
}

/* Then the primary keeps what the transaction has done, and not that it was one. */
static void test_full_heads_are_told_as_well(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY RESIDUE COMMIT "+1:p", EMPTY INTENT, EMPTY INTENT COMMIT);
    w.full = true;
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    assert_true(w.called[0]);
    expect_heads(&w, EMPTY "+1:p", EMPTY "+1:x", EMPTY INTENT COMMIT);
    assert_int_equal(metric_get(&w.rigs[0].metrics, METRIC_list_transactions_finished), 1);
    world_fini(&w);
}

static void test_a_list_that_is_gone_needs_no_telling(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT COMMIT, "", EMPTY);
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    expect_heads(&w, EMPTY INTENT COMMIT DONE, "", EMPTY);
    world_fini(&w);
}

static void test_what_is_no_list_is_left_alone(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT COMMIT, "^2 newer\n", EMPTY INTENT);
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    expect_heads(&w, EMPTY INTENT COMMIT, "^2 newer\n", EMPTY INTENT COMMIT);
    world_fini(&w);
}

/* The list of one cannot be read, for as long as it may be: others do not wait for that. */
static void test_one_that_stays_holds_up_no_other(void **state)
{
#define OTHER "?35:zzzzzzzzzzzzz." OLD " 2 a c +1:y&15:zzzzzzzzzzzzz c"
#define OTHER_DONE "&15:zzzzzzzzzzzzz d"
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT COMMIT OTHER, "^2 newer\n", EMPTY);
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    expect_heads(&w, EMPTY INTENT COMMIT OTHER OTHER_DONE, "^2 newer\n", EMPTY);
    assert_int_equal(metric_get(&w.rigs[0].metrics, METRIC_list_transactions_finished), 1);
    world_fini(&w);
}

/* Another client's value has taken the place of a list: its intents are gone with it. */
static void test_a_stranger_needs_no_telling(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT COMMIT, "hello", EMPTY INTENT);
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    expect_heads(&w, EMPTY INTENT COMMIT DONE, "hello", EMPTY INTENT COMMIT);
    world_fini(&w);
}

/* A node that was failed over, and does not know it, shows a list without the intent, or none: that
 * counts only once it has carried out a change. */
static void test_a_node_of_a_bucket_shows_that_it_is_no_old_one(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost <= 5; lost++) {
        struct world w;
        world_init(&w, 1, EMPTY INTENT COMMIT, "", EMPTY);
        w.rigs[0].config->lists[0].pool_type = POOL_COUCHBASE;
        w.lost = lost == 0 ? 0 : lost + 1; /* behind the first read of a */
        ask(&w, 0, LIST_LEN, "a");
        run(&w, 0);
        bool done = strstr(w.heads[0], DONE) != NULL;
        assert_true(!done ||
                    (strcmp(w.heads[1], EMPTY) == 0 && strcmp(w.heads[2], EMPTY COMMIT) == 0));
        assert_int_equal(done, lost == 0);
        world_fini(&w);
    }
}

static void test_the_young_are_left_to_their_proxy(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT_AT(YOUNG) COMMIT, EMPTY INTENT_AT(YOUNG), EMPTY);
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    expect_heads(&w, EMPTY INTENT_AT(YOUNG) COMMIT, EMPTY INTENT_AT(YOUNG), EMPTY);
    world_fini(&w);
}

static void test_lcompact_finishes_all(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT_AT(YOUNG) COMMIT, EMPTY INTENT_AT(YOUNG), EMPTY);
    ask(&w, 0, LIST_COMPACT, "a");
    run(&w, 0);
    assert_true(w.called[0]);
    assert_int_equal(w.calls[0].status, LIST_OK);
    assert_string_equal(w.heads[1], EMPTY INTENT_AT(YOUNG) COMMIT);
    assert_null(strstr(w.heads[0], "?33:"));
    assert_int_equal(metric_get(&w.rigs[0].metrics, METRIC_list_transactions_finished), 1);
    world_fini(&w);
}

static void test_ldrop_finishes_all_and_removes_the_head(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 1, EMPTY INTENT_AT(YOUNG) COMMIT, EMPTY INTENT_AT(YOUNG), EMPTY);
    ask(&w, 0, LIST_DROP, "a");
    run(&w, 0);
    assert_int_equal(w.calls[0].status, LIST_OK);
    expect_heads(&w, "", EMPTY INTENT_AT(YOUNG) COMMIT, EMPTY);
    world_fini(&w);
}

/* ---- each reply lost, and workers side by side ---- */

/* What must hold at any time: each reader finds x in all lists, and the primary does not say
 * that all know it before they do. */
static void check_promises(const struct world *w)
{
    bool done = strstr(w->heads[0], DONE) != NULL;
    assert_non_null(strstr(w->heads[0], COMMIT));
    for (size_t i = 1; i < KEYS; i++) {
        assert_null(strstr(w->heads[i], ABORT));
        assert_true(!done || strstr(w->heads[i], COMMIT) != NULL);
    }
}

static void finish_with_a_loss(size_t workers, uint32_t turns, unsigned lost, bool lost_is_done)
{
    struct world w;
    world_init(&w, workers, EMPTY INTENT COMMIT, EMPTY INTENT, EMPTY INTENT);
    w.lost = lost;
    w.lost_is_done = lost_is_done;
    for (size_t i = 0; i < workers; i++) {
        ask(&w, i, LIST_LEN, "a");
    }
    run(&w, turns);
    check_promises(&w);
    /* The next reader finishes it. */
    w.lost = 0;
    w.rigs[0].now.mono_us += 10000000;
    ask(&w, 0, LIST_LEN, "a");
    run(&w, 0);
    check_promises(&w);
    assert_non_null(strstr(w.heads[0], DONE));
    assert_int_equal(w.calls[0].number, 1);
    world_fini(&w);
}

static void test_each_request_lost(void **state)
{
    (void)state;
    for (unsigned lost = 1; lost <= 16; lost++) {
        finish_with_a_loss(1, 0, lost, false);
        finish_with_a_loss(1, 0, lost, true);
    }
}

static void test_two_workers_at_once(void **state)
{
    struct rng rng;
    (void)state;
    rng_init_seed(&rng, 7);
    for (unsigned i = 0; i < 400; i++) {
        uint32_t turns = (uint32_t)rng_next(&rng);
        finish_with_a_loss(2, turns, (unsigned)rng_below(&rng, 40), rng_below(&rng, 2) != 0);
    }
}

/* ---- lstat ---- */

static void expect_stat(const char *a, const char *b, const char *key, uint64_t waiting,
                        uint64_t pending, uint64_t committed, int64_t age_s)
{
    struct world w;
    world_init(&w, 1, a, b, EMPTY);
    ask(&w, 0, LIST_STAT, key);
    run(&w, 0);
    const struct list_stat *stat = &w.calls[0].stat;
    assert_true(w.called[0]);
    assert_int_equal(w.calls[0].status, LIST_OK);
    assert_int_equal(stat->transactions_waiting, waiting);
    assert_int_equal(stat->transactions_pending, pending);
    assert_int_equal(stat->transactions_committed, committed);
    assert_int_equal(stat->transaction_age_s, age_s);
    world_fini(&w);
}

static void test_lstat_tells_of_transactions(void **state)
{
    (void)state;
    expect_stat(EMPTY INTENT, EMPTY INTENT, "a", 0, 1, 0, 100000000);
    expect_stat(EMPTY INTENT, EMPTY INTENT, "b", 1, 0, 0, 100000000);
    expect_stat(EMPTY INTENT COMMIT, EMPTY INTENT, "b", 1, 0, 0, 100000000);
    expect_stat(EMPTY INTENT_AT(YOUNG) COMMIT, EMPTY, "a", 0, 0, 1, 10);
    expect_stat(EMPTY INTENT COMMIT DONE, EMPTY INTENT COMMIT, "a", 0, 0, 0, 0);
    expect_stat(EMPTY INTENT COMMIT DONE, EMPTY INTENT COMMIT, "b", 0, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_read_finishes_what_is_old),
        cmocka_unit_test(test_full_heads_are_told_as_well),
        cmocka_unit_test(test_a_list_that_is_gone_needs_no_telling),
        cmocka_unit_test(test_what_is_no_list_is_left_alone),
        cmocka_unit_test(test_one_that_stays_holds_up_no_other),
        cmocka_unit_test(test_a_stranger_needs_no_telling),
        cmocka_unit_test(test_a_node_of_a_bucket_shows_that_it_is_no_old_one),
        cmocka_unit_test(test_the_young_are_left_to_their_proxy),
        cmocka_unit_test(test_lcompact_finishes_all),
        cmocka_unit_test(test_ldrop_finishes_all_and_removes_the_head),
        cmocka_unit_test(test_each_request_lost),
        cmocka_unit_test(test_two_workers_at_once),
        cmocka_unit_test(test_lstat_tells_of_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
