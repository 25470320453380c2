/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cap of a list that has another one than the file says: no change waits for it, a compaction
 * sets it behind the change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_engine.h"

static struct slice item = SLICE_LIT("x");

static void cap_is(struct script *s, uint32_t max, enum list_cap cap)
{
    s->rig.config->lists[0].max_items = max;
    s->rig.config->lists[0].cap = cap;
}

static void expect_get(struct script *s, const char *head)
{
    script_expect(s, BE_GET, "k#", BE_HIT, head);
}

static void expect_cas(struct script *s, const char *head)
{
    struct list_request *request = rig_take(&s->rig, BE_CAS, "k#");
    char text[256];
    snprintf(text, sizeof text, "%.*s", SLICE_ARGS(request->be.value));
    assert_string_equal(text, head);
    rig_answer(&s->rig, request, BE_STORED, NULL, -1);
}

/* The compaction reads the head, reads it again as the publisher, writes it, and looks again. */
static void expect_cap_set(struct script *s, const char *before, const char *after)
{
    expect_get(s, before);
    expect_get(s, before);
    expect_cas(s, after);
    expect_get(s, after);
}

static void test_a_blind_change_goes_before_the_cap(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_DROP_OLDEST);
    script_submit(s, LIST_ADD, &item, 1);
    expect_get(s, "^1\n+1:a+1:b");
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    expect_cap_set(s, "^1\n+1:a+1:b+1:x", "^1 #2.drop\n+1:b+1:x");
    assert_null(engine_take_request(s->rig.engine));
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_caps), 1);
}

/* It counts by the cap that the head says. A cap that refuses cuts nothing: it is the list's
 * length, until that is shorter. */
static void test_an_exact_change_goes_before_the_cap(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_REFUSE);
    script_submit(s, LIST_ADDX, &item, 1);
    expect_get(s, "^1\n+1:a+1:b");
    expect_cas(s, "^1\n+1:a+1:b+1:x");
    script_expect_answer(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
    expect_cap_set(s, "^1\n+1:a+1:b+1:x", "^1 #3.refuse\n+1:a+1:b+1:x");
    struct slice other = SLICE_LIT("y");
    script_submit(s, LIST_ADDX, &other, 1);
    expect_get(s, "^1 #3.refuse\n+1:a+1:b+1:x");
    script_expect_done(s, LIST_NOT_STORED);
    script_submit(s, LIST_COMPACT, NULL, 0);
    expect_cap_set(s, "^1 #3.refuse\n+1:a+1:b+1:x-1:a", "^1 #2.refuse\n+1:b+1:x");
    script_expect_done(s, LIST_OK);
}

/* Where the files of two proxies disagree, each sets its cap once in ten seconds. */
static void test_caps_are_not_set_without_end(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_DROP_OLDEST);
    script_submit(s, LIST_ADD, &item, 1);
    expect_get(s, "^1 #3.drop\n+1:a");
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    expect_cap_set(s, "^1 #3.drop\n+1:a+1:x", "^1 #2.drop\n+1:a+1:x");
    script_submit(s, LIST_LEN, NULL, 0);
    expect_get(s, "^1 #3.drop\n+1:a+1:x"); /* another proxy has set its own */
    script_expect_done(s, LIST_OK);
    for (int later = 0; later < 2; later++) {
        script_submit(s, LIST_DEL, &item, 1);
        script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        later == 0 ? script_expect_done(s, LIST_OK) : script_expect_answer(s, LIST_OK);
        s->rig.now.mono_us += 11000000;
    }
    expect_cap_set(s, "^1 #3.drop\n+1:a+1:x-1:x-1:x", "^1 #2.drop\n+1:a");
}

/* A list that cannot have the cap is compacted all the same. */
static void test_what_gets_no_cap_is_compacted(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_REFUSE);
    script_submit(s, LIST_COMPACT, NULL, 0);
    expect_get(s, "^1\n@12:1800000000:t+1:a-1:a");
    expect_get(s, "^1\n@12:1800000000:t+1:a-1:a");
    expect_cas(s, "^1\n@12:1800000000:t");
    expect_get(s, "^1\n@12:1800000000:t");
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_COMPACT, NULL, 0);
    expect_get(s, "^1 aaaaaaaaaaaaa.1:600000:20000 -bbbbbbbbbbbbb.1\n");
    script_expect(s, BE_DELETE, "k#bbbbbbbbbbbbb.0", BE_DELETED, NULL);
    expect_get(s, "^1 aaaaaaaaaaaaa.1:600000:20000 -bbbbbbbbbbbbb.1\n");
    expect_cas(s, "^1 aaaaaaaaaaaaa.1:600000:20000\n");
    expect_get(s, "^1 aaaaaaaaaaaaa.1:600000:20000\n");
    script_expect_done(s, LIST_OK);
}

/* Nor does a run that cannot be read stop it. */
static void test_a_cap_that_fails_stops_no_compaction(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_DROP_OLDEST);
    script_submit(s, LIST_COMPACT, NULL, 0);
    expect_get(s, "^1 aaaaaaaaaaaaa.1:18:1 -bbbbbbbbbbbbb.1\n");
    expect_get(s, "^1 aaaaaaaaaaaaa.1:18:1 -bbbbbbbbbbbbb.1\n");
    script_expect(s, BE_GET, "k#aaaaaaaaaaaaa.0", BE_DOWN, NULL);
    expect_get(s, "^1 aaaaaaaaaaaaa.1:18:1 -bbbbbbbbbbbbb.1\n");
    script_expect(s, BE_DELETE, "k#bbbbbbbbbbbbb.0", BE_DELETED, NULL);
    expect_get(s, "^1 aaaaaaaaaaaaa.1:18:1 -bbbbbbbbbbbbb.1\n");
    expect_cas(s, "^1 aaaaaaaaaaaaa.1:18:1\n");
    expect_get(s, "^1 aaaaaaaaaaaaa.1:18:1\n");
    script_expect_done(s, LIST_OK);
}

#define RUNS "^1 aaaaaaaaaaaaa.1:22:2\n"

/* The compaction reads all of the list; another worker appends before its CAS arrives. */
static void expect_try_undone(struct script *s, uint64_t cas)
{
    const char *before = RUNS "+1:c", *behind = RUNS "+1:c+1:d";
    rig_answer_cas(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_HIT, before, -1, cas);
    script_expect(s, BE_GET, "k#aaaaaaaaaaaaa.0", BE_HIT, "^1 0000000002\n+1:a+1:b");
    struct list_request *request = rig_take(&s->rig, BE_CAS, "k#");
    rig_answer(&s->rig, request, BE_EXISTS, NULL, -1);
    rig_answer_cas(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_HIT, behind, -1, cas + 1);
}

/* Others that write meanwhile do not keep the cap from a list: the compaction tries again. */
static void test_a_cap_that_others_undo_is_tried_again(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_DROP_OLDEST);
    script_submit(s, LIST_COMPACT, NULL, 0);
    expect_get(s, RUNS "+1:c");
    expect_try_undone(s, 8);
    expect_get(s, RUNS "+1:c+1:d");
    expect_get(s, RUNS "+1:c+1:d");
    script_expect(s, BE_GET, "k#aaaaaaaaaaaaa.0", BE_HIT, "^1 0000000002\n+1:a+1:b");
    expect_cas(s, "^1 #2.drop -aaaaaaaaaaaaa.1\n+1:c+1:d");
    expect_get(s, "^1 #2.drop\n+1:c+1:d");
    script_expect_done(s, LIST_OK);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_caps), 1);
}

/* But not without end: behind the third time it goes on without. */
static void test_a_cap_that_others_always_undo_is_left(void **state)
{
    struct script *s = *state;
    cap_is(s, 2, CAP_DROP_OLDEST);
    script_submit(s, LIST_COMPACT, NULL, 0);
    for (uint64_t cas = 10; cas < 40; cas += 10) {
        expect_get(s, RUNS "+1:c");
        expect_try_undone(s, cas);
    }
    expect_get(s, "^1 aaaaaaaaaaaaa.1:22:2 -bbbbbbbbbbbbb.1\n");
    script_expect(s, BE_DELETE, "k#bbbbbbbbbbbbb.0", BE_DELETED, NULL);
    expect_get(s, "^1 aaaaaaaaaaaaa.1:22:2 -bbbbbbbbbbbbb.1\n");
    expect_cas(s, RUNS);
    expect_get(s, RUNS);
    script_expect_done(s, LIST_OK);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_caps), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_blind_change_goes_before_the_cap),
        script_test(test_an_exact_change_goes_before_the_cap),
        script_test(test_caps_are_not_set_without_end),
        script_test(test_what_gets_no_cap_is_compacted),
        script_test(test_a_cap_that_fails_stops_no_compaction),
        script_test(test_a_cap_that_others_undo_is_tried_again),
        script_test(test_a_cap_that_others_always_undo_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
