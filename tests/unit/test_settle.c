/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heads with intents that are not decided there: what the engine asks and appends before anything
 * is answered from such a head, or written over it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_intents.h"

static void test_a_read_asks_the_primary(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) COMMITS(T));
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T) "+1:c");
    expect_count(s, 3);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_intents_settled), 1);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_intents_pushed), 0);
    /* Decided there: nothing is asked. */
    read_list(s, "^1\n+1:a" INTENT(T) COMMITS(T));
    expect_count(s, 2);
    read_list(s, "^1\n+1:a" INTENT(T) ABORTS(T));
    expect_count(s, 1);
}

static void test_what_the_primary_does_not_hold_is_aborted(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    static const struct {
        enum be_status status;
        const char *value;
    } rows[] = {
        {BE_MISS, NULL},
        {BE_HIT, "^1\n+1:a"},
        {BE_HIT, "^1\n" COMMITS(T)},
        {BE_HIT, "^1\n" FIRST(U) COMMITS(T)},
        {BE_HIT, "^1\n" FIRST(T) ABORTS(T) COMMITS(T)},
        {BE_HIT, "^1\n" FIRST(T) "+1:b" COMMITS(T)}, /* crossed */
        {BE_HIT, "^1\n" FIRST(T) "!0:"},
        {BE_HIT, "<html>"}, /* its head has gone */
        {BE_HIT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        read_list(s, "^1\n+1:a" INTENT(T));
        script_expect(s, BE_GET, "first#", rows[i].status, rows[i].value);
        expect_append(s, "k#", ABORTS(T), BE_STORED);
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
        expect_count(s, 1);
    }
}

/* The next one, once its time has come. */
static struct list_request *next_request(struct script *s)
{
    struct list_request *r = engine_take_request(s->rig.engine);
    while (r == NULL) {
        uint64_t next_us = engine_run(s->rig.engine, s->rig.now);
        r = engine_take_request(s->rig.engine);
        if (r == NULL) {
            assert_true(next_us != UINT64_MAX);
            s->rig.now.mono_us = next_us;
        }
    }
    return r;
}

static void expect_later(struct script *s, const char *key, enum be_status status, const char *head)
{
    struct list_request *r = next_request(s);
    assert_int_equal(r->be.verb, BE_GET);
    assert_true(slice_equal(r->be.key, slice_of(key)));
    rig_answer(&s->rig, r, status, head, -1);
}

/* Its primary was lost, or is looked for in another place than its coordinator does: as long as
 * that one may be at work, what it tells the list counts. */
static void test_a_coordinator_may_know_more_than_its_primary(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_later(s, "first#", BE_MISS, NULL);
    expect_later(s, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    expect_later(s, "first#", BE_HIT, "^1\n+1:z");
    expect_later(s, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    expect_count(s, 2);
    /* It has been folded by now: then all is known. */
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_later(s, "first#", BE_MISS, NULL);
    expect_later(s, "k#", BE_HIT, "^1\n+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    expect_count(s, 2);
}

/* None is at work any more. */
static void test_a_primary_that_stays_away_is_an_abort(void **state)
{
    struct script *s = *state;
    uint64_t began_us = s->rig.now.mono_us;
    unsigned looks = 0;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    while (s->rig.now.mono_us < began_us + s->rig.config->transaction_patience_ms * 1000) {
        expect_later(s, "first#", BE_MISS, NULL);
        expect_later(s, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
        looks++;
    }
    assert_true(looks >= 3 && looks < 40);
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    expect_count(s, 1);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_intents_pushed), 0);
}

static void test_a_primary_that_cannot_be_read_is_no_abort(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^2\n+1:a");
    expect_error(s, "first#, which decides a change of several lists, holds no list that this "
                    "version can read");
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) "$1:a");
    expect_error(s, "first#, which decides a change of several lists, holds no list that this "
                    "version can read");
    static const enum be_status down[] = {BE_DOWN, BE_LOST, BE_REFUSED};
    for (size_t i = 0; i < sizeof down / sizeof down[0]; i++) {
        read_list(s, "^1\n+1:a" INTENT(T));
        script_expect(s, BE_GET, "first#", down[i], NULL);
        expect_error(s, "first#, which decides a change of several lists, was not read: backend "
                        "refused to read the list");
    }
    read_list(s, "^1\n+1:a" OWN_INTENT(T));
    script_expect(s, BE_GET, "k#", BE_DOWN, NULL);
    expect_error(s, "backend refused to read the list");
}

/* Looks at key until the engine gives up waiting, and sends the abort; the last look is answered by
 * the caller. */
static struct list_request *wait_for_push(struct script *s, const char *key, const char *head)
{
    uint64_t began_us = s->rig.now.mono_us;
    for (unsigned looks = 0;; looks++) {
        struct list_request *r = next_request(s);
        assert_true(slice_equal(r->be.key, slice_of(key)));
        if (r->be.verb == BE_APPEND) {
            assert_true(looks >= 3 && looks < 40);
            assert_int_equal(s->rig.now.mono_us - began_us,
                             s->rig.config->transaction_patience_ms * 1000);
            return r;
        }
        assert_int_equal(r->be.verb, BE_GET);
        rig_answer(&s->rig, r, BE_HIT, head, -1);
    }
}

static void expect_push(struct script *s, const char *key, const char *head, enum be_status status)
{
    struct list_request *r = wait_for_push(s, key, head);
    assert_true(slice_equal(r->be.value, SLICE_LIT(ABORTS(T))));
    rig_answer(&s->rig, r, status, NULL, -1);
}

static void test_an_undecided_one_is_waited_for_and_pushed(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" INTENT(T));
    expect_push(s, "first#", "^1\n" FIRST(T), BE_STORED);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) ABORTS(T));
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    expect_count(s, 1);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_intents_pushed), 1);
    /* Its coordinator was faster. */
    read_list(s, "^1\n+1:a" INTENT(T));
    expect_push(s, "first#", "^1\n" FIRST(T), BE_STORED);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) COMMITS(T) ABORTS(T));
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    expect_count(s, 2);
}

static void test_a_decision_that_comes_in_time_is_taken(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) "+1:c" COMMITS(T));
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    expect_count(s, 2);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_intents_pushed), 0);
}

static void test_a_primary_is_settled_by_its_own_log(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" OWN_INTENT(T));
    expect_push(s, "k#", "^1\n+1:a" OWN_INTENT(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) ABORTS(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) ABORTS(T));
    expect_count(s, 1);
    /* Gone with its head, which is another one now. */
    read_list(s, "^1\n+1:a" OWN_INTENT(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n");
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
    /* No patience. */
    s->rig.config->transaction_patience_ms = 0;
    read_list(s, "^1\n+1:a" OWN_INTENT(T));
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) COMMITS(T) ABORTS(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) COMMITS(T) ABORTS(T));
    expect_count(s, 2);
}

/* Whether an append was done shows a look. */
static void test_lost_answers_are_looked_at(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_append(s, "first#", ABORTS(T), BE_LOST);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_append(s, "first#", ABORTS(T), BE_LOST);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) ABORTS(T));
    expect_append(s, "k#", ABORTS(T), BE_LOST);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) ABORTS(T));
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    expect_count(s, 1);
    /* The head has gone meanwhile. */
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_NOT_STORED);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
}

/* The list is read, and the primary of its intent takes no append of an abort. */
static void push_by_cas(struct script *s)
{
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_append(s, "first#", ABORTS(T), BE_NOT_STORED);
}

/* Servers that have moved an item to disk refuse to append to it. */
static void test_a_head_that_takes_no_appends_is_written_anew(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    push_by_cas(s);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_cas(s, "first#", "^1\n", BE_EXISTS);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) "+1:z");
    expect_cas(s, "first#", "^1\n+1:z", BE_STORED);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n+1:z");
    expect_append(s, "k#", ABORTS(T), BE_NOT_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    expect_cas(s, "k#", "^1\n+1:a", BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    expect_count(s, 1);
    /* Both are gone when they are to be written. */
    push_by_cas(s);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_cas(s, "first#", "^1\n", BE_NOT_FOUND);
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_NOT_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    expect_cas(s, "k#", "^1\n+1:a", BE_NOT_FOUND);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
}

/* An item that is full takes what is shorter: a commit stands in its list as what it changes. */
static void test_a_full_head_is_told_of_a_commit(void **state)
{
    struct script *s = *state;
    static const char full[] = "^1\n+1:a" INTENT(T) "-1:a" INTENT(U) "+1:c";
    read_list(s, full);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) FIRST(U) COMMITS(U) COMMITS(T));
    expect_append(s, "k#", COMMITS(T) COMMITS(U), BE_TOO_LARGE);
    script_expect(s, BE_GET, "k#", BE_HIT, full);
    expect_cas(s, "k#", "^1\n+1:a+1:b-1:a+1:b+1:c", BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b-1:a+1:b+1:c");
    expect_count(s, 2);
}

/* Not even that: the server takes less than it did. */
static void test_a_full_head_that_stays_as_it_is(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    push_by_cas(s);
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_cas(s, "first#", "^1\n", BE_TOO_LARGE);
    expect_error(s, "backend out of memory");
}

static void test_decisions_that_cannot_be_written_are_errors(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_append(s, "first#", ABORTS(T), BE_NO_MEMORY);
    expect_error(s, "backend out of memory");
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_NO_MEMORY);
    expect_error(s, "backend out of memory");
    /* A head that others change all the time. */
    push_by_cas(s);
    for (unsigned i = 0; i < 3; i++) {
        script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
        expect_cas(s, "first#", "^1\n", BE_EXISTS);
    }
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T));
    expect_error(s, "busy: changes of several lists are under way on this list");
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_busy), 1);
}

/* Each of several has its own primary; those that share one are asked for together. */
static void test_several_intents_are_settled_together(void **state)
{
    struct script *s = *state;
    static const char both[] = "^1\n" INTENT(T) INTENT(
        U) "?39:vvvvvvvvvvvvv.1700000000 2 other k +1:c?35:wwwwwwwwwwwww.1700000000 2 k z +1:d";
    read_list(s, both);
    struct list_request *first = rig_take(&s->rig, BE_GET, "first#");
    struct list_request *other = rig_take(&s->rig, BE_GET, "other#");
    struct list_request *own = rig_take(&s->rig, BE_GET, "k#");
    assert_null(engine_take_request(s->rig.engine));
    rig_answer(&s->rig, other, BE_HIT,
               "^1\n?39:vvvvvvvvvvvvv.1700000000 2 other k -1:c&15:vvvvvvvvvvvvv a", -1);
    rig_answer(&s->rig, own, BE_HIT, both, -1);
    rig_answer(&s->rig, first, BE_HIT, "^1\n" FIRST(T) FIRST(U) COMMITS(U) ABORTS(T), -1);
    /* What is known is not asked for again. */
    char head[512];
    snprintf(head, sizeof head, "%s%s", both, "&15:wwwwwwwwwwwww c");
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    expect_append(s, "k#", ABORTS(T) COMMITS(U) "&15:vvvvvvvvvvvvv a", BE_STORED);
    char after[1024];
    snprintf(after, sizeof after, "%s%s", head, ABORTS(T) COMMITS(U) "&15:vvvvvvvvvvvvv a");
    script_expect(s, BE_GET, "k#", BE_HIT, after);
    expect_count(s, 2);
}

static void test_ever_new_intents_end_in_busy(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    read_list(s, "^1\n" INTENT(T));
    for (unsigned i = 0; i < 16; i++) {
        script_expect(s, BE_GET, "first#", BE_MISS, NULL);
        expect_append(s, "k#", ABORTS(T), BE_STORED);
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" INTENT(T));
    }
    expect_error(s, "busy: changes of several lists are under way on this list");
}

/* The CAS keeps the decided intent: only what resolves it differs. */
static void test_an_exact_change_is_written_over_a_settled_head(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    struct slice item = SLICE_LIT("x");
    script_submit(s, LIST_ADDX, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(cas->be.value, SLICE_LIT("^1\n+1:a" INTENT(T) ABORTS(T) "+1:x")));
    rig_answer(&s->rig, cas, BE_STORED, NULL, -1);
    expect_count(s, 1);
}

/* Blind changes know nothing of all that; also where the worker has to look first whether it is a
 * list. */
static void test_blind_changes_do_not_wait(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    for (unsigned i = 0; i < 2; i++) {
        script_submit(s, LIST_ADD, &item, 1);
        if (i == 0) {
            script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
        }
        script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        script_expect_done(s, LIST_OK);
    }
}

/* But for a list that a head says is missing: what is to be done is told by all of it. */
static void test_a_blind_change_of_a_missing_list_waits(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    struct slice item = SLICE_LIT("x");
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?0.0\n" INTENT(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?0.0\n" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?0.0\n" INTENT(T) ABORTS(T));
    script_expect_answer(s, LIST_NOT_STORED);
}

struct pair {
    struct rig *rig;
    struct list_session sessions[2];
    struct list_call calls[2];
};

static void submit_pair(struct pair *p, struct rig *rig, enum list_verb first,
                        enum list_verb second, const struct slice *item)
{
    *p = (struct pair){.rig = rig};
    for (size_t i = 0; i < 2; i++) {
        struct list_call *call = &p->calls[i];
        call->verb = i == 0 ? first : second;
        call->key = SLICE_LIT("k");
        call->policy = &rig->config->lists[0];
        call->session = &p->sessions[i];
        call->items = item;
        call->item_count = call->verb != LIST_LEN;
        chain_init(&call->answer);
        call->deadline_us = rig->now.mono_us + 1000000;
        engine_submit(rig->engine, call, rig->now);
    }
}

/* A reader and a writer meet the same intent: it is settled once, and both read anew. */
static void test_operations_wait_for_one_settler(void **state)
{
    struct script *s = *state;
    struct pair p;
    struct slice item = SLICE_LIT("x");
    submit_pair(&p, &s->rig, LIST_LEN, LIST_ADDX, &item);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) COMMITS(T));
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    assert_ptr_equal(engine_take_done(s->rig.engine), &p.calls[0]);
    assert_int_equal(p.calls[0].number, 2);
    assert_ptr_equal(engine_take_done(s->rig.engine), &p.calls[1]);
    assert_int_equal(p.calls[1].number, 1);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_false(engine_busy(s->rig.engine));
}

static void expect_done(struct pair *p, size_t number)
{
    (void)engine_run(p->rig->engine, p->rig->now);
    assert_ptr_equal(engine_take_done(p->rig->engine), &p->calls[number]);
    assert_int_equal(p->calls[number].status, LIST_OK);
}

/* A reader or an exact change waits for a primary whose server does not answer. Blind changes of
 * the same worker go on, also the one whose request the read has shared. */
static void test_blind_changes_pass_what_waits(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    struct pair p;
    struct slice item = SLICE_LIT("x");
    read_list(s, "^1\n+1:a");
    expect_count(s, 1);
    for (unsigned exact = 0; exact < 2; exact++) {
        submit_pair(&p, &s->rig, exact ? LIST_ADDX : LIST_LEN, LIST_ADD, &item);
        if (!exact) {
            script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        }
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
        struct list_request *look = rig_take(&s->rig, BE_GET, "first#");
        if (exact) {
            script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        }
        expect_done(&p, 1);
        engine_submit(s->rig.engine, &p.calls[1], s->rig.now);
        script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        expect_done(&p, 1);
        /* Another reader waits as well. */
        p.calls[1].verb = LIST_LEN;
        p.calls[1].item_count = 0;
        engine_submit(s->rig.engine, &p.calls[1], s->rig.now);
        (void)engine_run(s->rig.engine, s->rig.now);
        if (exact) {
            script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) "+1:x");
        }
        assert_null(engine_take_request(s->rig.engine));
        rig_answer(&s->rig, look, BE_MISS, NULL, -1);
        expect_append(s, "k#", ABORTS(T), BE_STORED);
        static const char settled[] = "^1\n+1:a" INTENT(T) "+1:x" ABORTS(T);
        script_expect(s, BE_GET, "k#", BE_HIT, settled);
        expect_done(&p, 0);
        script_expect(s, BE_GET, "k#", BE_HIT, settled);
        expect_done(&p, 1);
        assert_int_equal(p.calls[1].number, 2);
    }
}

/* The time of calls is over while their reads are held: they end, and what was begun goes on. */
static void test_calls_end_at_their_deadlines(void **state)
{
    struct script *s = *state;
    struct pair p;
    struct slice item = SLICE_LIT("x");
    s->rig.config->transaction_patience_ms = 5000;
    submit_pair(&p, &s->rig, LIST_LEN, LIST_ADDX, &item);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    struct list_request *look = rig_take(&s->rig, BE_GET, "first#");
    s->rig.now.mono_us += 1000000;
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &p.calls[0]);
    assert_string_equal(p.calls[0].error, "deadline over: the list was not read in time");
    assert_ptr_equal(engine_take_done(s->rig.engine), &p.calls[1]);
    assert_string_equal(p.calls[1].error, "deadline over, nothing done");
    rig_answer(&s->rig, look, BE_HIT, "^1\n" FIRST(T) COMMITS(T), -1);
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    (void)engine_run(s->rig.engine, s->rig.now);
    struct list_request *again;
    while ((again = engine_take_request(s->rig.engine)) != NULL) {
        assert_int_equal(again->be.verb, BE_GET);
        rig_answer(&s->rig, again, BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T), -1);
        (void)engine_run(s->rig.engine, s->rig.now);
    }
    assert_false(engine_busy(s->rig.engine));
}

/* The engine is dropped in the middle, as in a crash. */
static void test_nothing_is_lost_when_all_is_dropped(void **state)
{
    struct script *s = *state;
    read_list(s, "^1\n+1:a" INTENT(T) OWN_INTENT(U));
    struct list_request *r = rig_take(&s->rig, BE_GET, "first#");
    rig_answer(&s->rig, r, BE_HIT, "^1\n" FIRST(T), -1);
    (void)engine_run(s->rig.engine, s->rig.now);
}

/* The list that is copied. */
static void test_a_copy_waits_for_its_source(void **state)
{
    struct script *s = *state;
    s->call.source = SLICE_LIT("k");
    s->call.source_policy = &s->rig.config->lists[0];
    s->call.verb = LIST_COPY;
    s->call.key = SLICE_LIT("copy");
    s->call.policy = &s->rig.config->lists[0];
    s->call.session = &s->session;
    engine_submit(s->rig.engine, &s->call, s->rig.now);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_HIT, "^1\n" FIRST(T) COMMITS(T));
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    script_expect(s, BE_GET, "copy#", BE_MISS, NULL);
    struct list_request *add = rig_take(&s->rig, BE_ADD, "copy#");
    assert_true(slice_equal(add->be.value, SLICE_LIT("^1\n+1:a+1:b")));
    rig_answer(&s->rig, add, BE_STORED, NULL, -1);
    expect_count(s, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_read_asks_the_primary),
        script_test(test_what_the_primary_does_not_hold_is_aborted),
        script_test(test_a_coordinator_may_know_more_than_its_primary),
        script_test(test_a_primary_that_stays_away_is_an_abort),
        script_test(test_a_primary_that_cannot_be_read_is_no_abort),
        script_test(test_an_undecided_one_is_waited_for_and_pushed),
        script_test(test_a_decision_that_comes_in_time_is_taken),
        script_test(test_a_primary_is_settled_by_its_own_log),
        script_test(test_lost_answers_are_looked_at),
        script_test(test_a_head_that_takes_no_appends_is_written_anew),
        script_test(test_a_full_head_is_told_of_a_commit),
        script_test(test_a_full_head_that_stays_as_it_is),
        script_test(test_decisions_that_cannot_be_written_are_errors),
        script_test(test_several_intents_are_settled_together),
        script_test(test_ever_new_intents_end_in_busy),
        script_test(test_an_exact_change_is_written_over_a_settled_head),
        script_test(test_blind_changes_do_not_wait),
        script_test(test_a_blind_change_of_a_missing_list_waits),
        script_test(test_blind_changes_pass_what_waits),
        script_test(test_operations_wait_for_one_settler),
        script_test(test_calls_end_at_their_deadlines),
        script_test(test_nothing_is_lost_when_all_is_dropped),
        script_test(test_a_copy_waits_for_its_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
