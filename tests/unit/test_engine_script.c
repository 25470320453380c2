/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scripted conversations of the list engine with a backend: what it sends, what it is answered, how
 * the call ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_engine.h"

#define FIRST_RUN "aaaaaaaaaaaaa"
#define SECOND_RUN "bbbbbbbbbbbbb"

struct script {
    struct rig rig;
    struct list_session session;
    struct list_call call;
};

static int setup(void **state)
{
    static struct script s;
    s = (struct script){0};
    rig_init(&s.rig);
    chain_init(&s.call.answer);
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct script *s = *state;
    rig_fini(&s->rig);
    chain_fini(&s->call.answer);
    return 0;
}

static void submit(struct script *s, enum list_verb verb, const struct slice *items, size_t count)
{
    s->call.verb = verb;
    s->call.key = SLICE_LIT("k");
    s->call.policy = &s->rig.config->lists[0];
    s->call.session = &s->session;
    s->call.items = items;
    s->call.item_count = count;
    engine_submit(s->rig.engine, &s->call, s->rig.now);
}

/* The engine must send this next, for that key. */
static struct be_request *expect_request(struct script *s, enum be_verb verb, const char *key)
{
    struct be_request *request;
    while ((request = engine_take_request(s->rig.engine)) == NULL) {
        uint64_t next_us = engine_run(s->rig.engine, s->rig.now);
        assert_true(next_us != UINT64_MAX ||
                    (request = engine_take_request(s->rig.engine)) != NULL);
        if (request != NULL) {
            break;
        }
        s->rig.now.mono_us = next_us > s->rig.now.mono_us ? next_us : s->rig.now.mono_us;
    }
    assert_int_equal(request->verb, verb);
    assert_true(slice_equal(slice_make(request->key, request->key_len), slice_of(key)));
    return request;
}

/* value: of a hit, or NULL. */
static void answer(struct script *s, struct be_request *request, enum be_status status,
                   const char *value)
{
    rig_answer(&s->rig, request, status, value, -1);
}

static void expect(struct script *s, enum be_verb verb, const char *key, enum be_status status,
                   const char *value)
{
    answer(s, expect_request(s, verb, key), status, value);
}

static void expect_done(struct script *s, enum list_status status)
{
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_null(engine_take_request(s->rig.engine));
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_int_equal(s->call.status, status);
}

/* The append of an ldrop found no head, but there is one after all, so it is cleared by CAS. What
 * others add from there on belongs to a time after the ldrop and stays. */
static void test_drop_clears_only_once(void **state)
{
    struct script *s = *state;
    submit(s, LIST_DROP, NULL, 0);
    expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    expect(s, BE_CAS, "k#", BE_STORED, NULL);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:b");
    expect_done(s, LIST_OK);
}

/* Of two ldrops that meet an empty list, one removes it; the other found nothing. */
static void test_drop_that_was_overtaken_found_nothing(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    submit(s, LIST_DROP, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n");
    expect(s, BE_CAS_DELETE, "k#", BE_NOT_FOUND, NULL);
    expect_done(s, LIST_MISSING);
}

/* The list is empty and still there when the backend goes away: the error must not sound as if
 * nothing had been done. */
static void test_drop_that_came_half_way_says_so(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    submit(s, LIST_DROP, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    expect(s, BE_CAS, "k#", BE_STORED, NULL);
    expect(s, BE_GET, "k#", BE_DOWN, NULL);
    expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "list emptied, then: "));
}

/* The newer run alone outgrows the memory allowed: its deletions are not all known, so nothing may
 * be said about the older one. */
static void test_create_does_not_guess_when_memory_is_short(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    s->rig.config->lists[0].fold_memory_bytes = 1;
    submit(s, LIST_CREATE, &item, 1);
    expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1 " SECOND_RUN ".1:18:0\n");
    expect(s, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000001\n-1:a");
    expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "fold_memory_bytes"));
}

/* Nor is such a list counted as far as it was read. */
static void test_read_does_not_guess_when_memory_is_short(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].fold_memory_bytes = 1;
    submit(s, LIST_STAT, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1 " SECOND_RUN ".1:18:0\n");
    expect(s, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000001\n-1:a");
    expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "fold_memory_bytes"));
}

/* Announcements of crashed proxies fill the log and no change fits any more: they are swept without
 * waiting for a change to fold. */
static void test_log_full_of_dead_announcements_is_swept(void **state)
{
    struct script *s = *state;
    char head[256];
    s->rig.config->lists[0].log_limit_bytes = 32;
    strncpy(head, "^1\n~26:" FIRST_RUN ".1.1600000000~26:" SECOND_RUN ".1.1600000000", sizeof head);
    submit(s, LIST_LEN, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, head);
    expect(s, BE_GET, "k#", BE_HIT, head);
    expect(s, BE_GET, "k#", BE_HIT, head);
    expect(s, BE_CAS, "k#", BE_STORED, NULL);
}

/* By ADD where nothing is, by REPLACE over what is there, and again when that is gone meanwhile.
 * Never by SET: one that finds no memory would take away what another proxy has burnt. */
static void test_names_are_burnt_without_taking_away_what_is_burnt(void **state)
{
    struct script *s = *state;
    const char *head = "^1 *" FIRST_RUN ".2\n+1:a";
    submit(s, LIST_COMPACT, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, head);
    struct be_request *first = expect_request(s, BE_ADD, "k#" FIRST_RUN ".0");
    expect(s, BE_ADD, "k#" FIRST_RUN ".1", BE_STORED, NULL);
    assert_int_equal(first->value.len, 0);
    assert_true(first->exptime > 0);
    answer(s, first, BE_NOT_STORED, NULL);
    expect(s, BE_REPLACE, "k#" FIRST_RUN ".0", BE_NOT_STORED, NULL);
    expect(s, BE_ADD, "k#" FIRST_RUN ".0", BE_STORED, NULL);
    expect(s, BE_GET, "k#", BE_HIT, head);
    struct be_request *cas = expect_request(s, BE_CAS, "k#");
    assert_true(slice_equal(cas->value, SLICE_LIT("^1\n+1:a")));
    answer(s, cas, BE_STORED, NULL);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    expect_done(s, LIST_OK);
}

/* The list is dropped between the look at it and the announcement of a flip: there is nothing to
 * compact any more. */
static void test_compact_of_a_list_that_is_dropped_meanwhile(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].log_limit_bytes = 4;
    submit(s, LIST_COMPACT, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_done(s, LIST_OK);
}

/* A head that extstore has moved to disk takes no appends: the flip is announced by CAS. */
static void test_compact_of_a_head_on_disk(void **state)
{
    struct script *s = *state;
    char head[256];
    s->rig.config->lists[0].log_limit_bytes = 4;
    submit(s, LIST_COMPACT, NULL, 0);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    struct be_request *request = expect_request(s, BE_CAS, "k#");
    assert_true(slice_starts_with(request->value, SLICE_LIT("^1\n+1:a+1:b~")));
    snprintf(head, sizeof head, "%.*s", SLICE_ARGS(request->value));
    answer(s, request, BE_STORED, NULL);
    expect(s, BE_GET, "k#", BE_HIT, head);
    request = engine_take_request(s->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->verb, BE_ADD);
    answer(s, request, BE_STORED, NULL);
    expect(s, BE_CAS, "k#", BE_STORED, NULL);
    expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_done(s, LIST_OK);
}

/* Moving a long list takes longer than a call may wait for its turn: that is not why it failed. */
static void test_conversion_may_take_long(void **state)
{
    struct script *s = *state;
    const char *moved = "\1mclistd moved 1 11 0\n^1\n+1:a+1:b";
    s->rig.config->lists[0].dialect = DIALECT_SIMPLE;
    s->rig.config->lists[0].migrate = MIGRATE_NATIVE;
    submit(s, LIST_CONVERT, NULL, 0);
    expect(s, BE_GET, "k", BE_HIT, "a,b,");
    expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect(s, BE_GET, "k", BE_HIT, "a,b,");
    expect(s, BE_GET, "k", BE_HIT, "a,b,");
    expect(s, BE_CAS, "k", BE_STORED, NULL);
    expect(s, BE_GET, "k", BE_HIT, moved);
    expect(s, BE_ADD, "k#", BE_STORED, NULL);
    s->rig.now.mono_us += 100000000;
    expect(s, BE_DELETE, "k", BE_DELETED, NULL);
    expect(s, BE_GET, "k", BE_MISS, NULL);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* A change that was written to the old items while the list moved may be in the new one. */
static void test_change_beside_a_conversion_is_in_doubt(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    struct list_policy *policy = &s->rig.config->lists[0];
    policy->dialect = DIALECT_PAIRED;
    policy->migrate = MIGRATE_NATIVE;
    policy->key_bytes_max = LIST_KEY_BYTES_MAX;
    submit(s, LIST_ADD, &item, 1);
    expect(s, BE_GET, "k", BE_MISS, NULL);
    expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect(s, BE_GET, "follow-k", BE_HIT, "a,b,");
    expect(s, BE_GET, "unfollow-k", BE_MISS, NULL);
    expect(s, BE_APPEND, "follow-k", BE_STORED, NULL);
    expect(s, BE_GET, "k", BE_MISS, NULL);
    expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    struct be_request *adds = expect_request(s, BE_DELETE, "follow-k");
    struct be_request *deletes = expect_request(s, BE_DELETE, "unfollow-k");
    answer(s, adds, BE_DELETED, NULL);
    answer(s, deletes, BE_NOT_FOUND, NULL);
    expect(s, BE_GET, "k", BE_DOWN, NULL);
    expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "outcome unknown: the list has moved"));
}

/* There is no room for the record: the sublists that it would have named go again. */
static void test_conversion_without_room_leaves_nothing(void **state)
{
    struct script *s = *state;
    struct list_policy *policy = &s->rig.config->lists[0];
    policy->dialect = DIALECT_SIMPLE;
    policy->migrate = MIGRATE_NATIVE;
    policy->log_limit_bytes = 8;
    submit(s, LIST_CONVERT, NULL, 0);
    expect(s, BE_GET, "k", BE_HIT, "a,b,");
    expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect(s, BE_GET, "k", BE_HIT, "a,b,");
    expect(s, BE_GET, "k", BE_HIT, "a,b,");
    char sublist[KEY_BYTES_MAX + 1] = "";
    struct be_request *request = engine_take_request(s->rig.engine);
    assert_non_null(request);
    memcpy(sublist, request->key, request->key_len);
    assert_int_equal(request->verb, BE_ADD);
    answer(s, request, BE_STORED, NULL);
    expect(s, BE_CAS, "k", BE_NO_MEMORY, NULL);
    expect(s, BE_DELETE, sublist, BE_DELETED, NULL);
    expect_done(s, LIST_SERVER_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_drop_clears_only_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop_that_was_overtaken_found_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_drop_that_came_half_way_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_does_not_guess_when_memory_is_short, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_read_does_not_guess_when_memory_is_short, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_names_are_burnt_without_taking_away_what_is_burnt,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_full_of_dead_announcements_is_swept, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_compact_of_a_list_that_is_dropped_meanwhile, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_compact_of_a_head_on_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_conversion_may_take_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_conversion_without_room_leaves_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_change_beside_a_conversion_is_in_doubt, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
