/* SPDX-License-Identifier: BSD-3-Clause */
/* Filling with content that becomes a run: on condition that the list is still of a version, where
 * the announcement is no change of the list; and of lists that expire, with their sublists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "list/format/head.h"
#include "support_engine.h"

#define OLD "^1\n+1:a"
#define ITEMS 20
#define ITEM_BYTES 1000

/* More than half of the log's limit takes. */
static void submit(struct script *s)
{
    static char texts[ITEMS][ITEM_BYTES];
    static struct slice items[ITEMS];
    for (size_t i = 0; i < ITEMS; i++) {
        memset(texts[i], 'a' + (char)i, ITEM_BYTES);
        items[i] = slice_make(texts[i], ITEM_BYTES);
    }
    s->call.condition = LIST_IF_VERSION;
    s->call.expected = head_version(7, SLICE_LIT(OLD));
    script_submit(s, LIST_PUT, items, ITEMS);
}

static struct list_request *next_request(struct script *s)
{
    struct list_request *r = engine_take_request(s->rig.engine);
    while (r == NULL) {
        (void)engine_run(s->rig.engine, s->rig.now);
        r = engine_take_request(s->rig.engine);
    }
    return r;
}

/* The announcement takes the place of the head that was read. head, of 200 bytes, is what the
 * list's head is then. Returns the request that writes the run. */
static struct list_request *announce(struct script *s, char *head)
{
    script_expect(s, BE_GET, "k#", BE_HIT, OLD);
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    (void)snprintf(head, 200, "%.*s", SLICE_ARGS(cas->be.value));
    assert_true(strncmp(head, OLD "~", sizeof OLD) == 0);
    rig_answer(&s->rig, cas, BE_STORED, NULL, -1);
    struct list_request *add = next_request(s);
    assert_int_equal(add->be.verb, BE_ADD);
    return add;
}

static void write_run(struct script *s, char *head)
{
    rig_answer(&s->rig, announce(s, head), BE_STORED, NULL, -1);
}

static void expect_exists(struct script *s)
{
    script_expect_answer(s, LIST_EXISTS);
}

static void test_the_announcement_is_no_change(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    write_run(s, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

static void test_what_others_append_before_it_is_one(void **state)
{
    struct script *s = *state;
    submit(s);
    script_expect(s, BE_GET, "k#", BE_HIT, OLD);
    script_expect(s, BE_CAS, "k#", BE_EXISTS, NULL);
    s->rig.now.mono_us += 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    script_expect(s, BE_GET, "k#", BE_HIT, OLD "+1:b");
    expect_exists(s);
}

static void test_what_others_append_behind_it_is_one(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    write_run(s, head);
    (void)strncat(head, "+1:b", sizeof head - strlen(head) - 1);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    expect_exists(s);
}

/* The content is what it was, and so is the announcement: a fold has made all of it anew. */
static void test_a_change_that_was_undone_is_one(void **state)
{
    struct script *s = *state;
    char head[200], again[200];
    struct announcement own;
    submit(s);
    write_run(s, head);
    struct slice rest = slice_of(head + sizeof OLD - 1);
    struct entry entry;
    assert_int_equal(entry_next(&rest, &entry), ENTRY_OK);
    assert_true(announcement_parse(entry.bytes, &own) && own.range.count > 0);
    (void)snprintf(again, sizeof again, OLD "~%zu:%.*s", entry.bytes.len, SLICE_ARGS(entry.bytes));
    script_expect(s, BE_GET, "k#", BE_HIT, again);
    expect_exists(s);
}

static void test_a_server_without_room_is_called_that(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    rig_answer(&s->rig, announce(s, head), BE_NO_MEMORY, NULL, -1);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_string_equal(s->call.error, "backend out of memory");
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_out_of_memory), 1);
}

/* A head that takes no announcement is compacted, and the put begins anew. */
static void test_a_full_head_is_compacted_first(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    script_expect(s, BE_GET, "k#", BE_HIT, OLD);
    script_expect(s, BE_CAS, "k#", BE_TOO_LARGE, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, OLD); /* of the compaction, which finds room by now */
    assert_null(engine_take_done(s->rig.engine));
    s->rig.now.mono_us += 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    write_run(s, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* ---- lists that expire ---- */

#define NOW_S 1800000000
#define HOUR_S 3600

static void find_head(struct script *s, const char *value, int64_t ttl_s)
{
    rig_answer(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_HIT, value, ttl_s);
}

/* The two clock items around the head; they say that now it is that second. */
static void answer_clock(struct script *s, int64_t left_s, int64_t now_s)
{
    rig_answer_clock(&s->rig, BE_HIT, left_s, now_s);
}

/* Announces in a head with that time, and writes the one sublist. Returns its exptime. */
static int32_t write_ending(struct script *s, int64_t left_s, char *head)
{
    find_head(s, OLD, left_s);
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    (void)snprintf(head, 200, OLD "%.*s", SLICE_ARGS(append->be.value));
    rig_answer(&s->rig, append, BE_STORED, NULL, -1);
    find_head(s, head, left_s);
    answer_clock(s, left_s, NOW_S);
    struct list_request *add = next_request(s);
    assert_int_equal(add->be.verb, BE_ADD);
    int32_t exptime = add->be.exptime;
    rig_answer(&s->rig, add, BE_STORED, NULL, -1);
    return exptime;
}

static void expect_published(struct script *s, int32_t exptime, const char *mark)
{
    char value[200];
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    (void)snprintf(value, sizeof value, "%.*s", SLICE_ARGS(cas->be.value));
    assert_int_equal(cas->be.exptime, exptime);
    assert_non_null(strstr(value, mark));
    rig_answer(&s->rig, cas, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
}

static void submit_ending(struct script *s, bool has_exptime, int64_t exptime)
{
    s->call.has_exptime = has_exptime;
    s->call.exptime = exptime;
    submit(s);
    (void)engine_run(s->rig.engine, s->rig.now);
    s->call.condition = LIST_ALWAYS;
}

static void test_sublists_end_behind_a_list_that_keeps_its_time(void **state)
{
    struct script *s = *state;
    char head[200];
    submit_ending(s, false, 0);
    assert_in_range(write_ending(s, 100, head), 100 + HOUR_S, 100 + HOUR_S + 10);
    find_head(s, head, 100);
    answer_clock(s, 99, NOW_S + 1);
    expect_published(s, NOW_S + 100, " @1800003700 "); /* NOW_S + 100 + HOUR_S */
}

/* Its seconds count from the publication. */
static void test_sublists_end_behind_a_list_that_is_given_a_time(void **state)
{
    struct script *s = *state;
    char head[200];
    submit_ending(s, true, 200);
    assert_in_range(write_ending(s, 100, head), 200 + HOUR_S, 200 + HOUR_S + 10);
    find_head(s, head, 100);
    answer_clock(s, 70, NOW_S + 30);
    expect_published(s, NOW_S + 230, " @1800003800 ");
}

/* The list was given more time while the sublists were written: they are written anew. */
static void test_a_list_does_not_outlive_what_is_put_into_it(void **state)
{
    struct script *s = *state;
    char head[200];
    submit_ending(s, false, 0);
    (void)write_ending(s, 100, head);
    find_head(s, head, 90000);
    answer_clock(s, 90000, NOW_S);
    s->rig.now.mono_us += 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    find_head(s, head, 90000);
    struct list_request *gone = next_request(s);
    assert_int_equal(gone->be.verb, BE_DELETE);
    rig_answer(&s->rig, gone, BE_DELETED, NULL, -1);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL); /* withdrawn */
    s->rig.now.mono_us += 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    int32_t exptime = write_ending(s, 90000, head);
    assert_in_range(exptime, 90000 + 24 * HOUR_S, 90000 + 24 * HOUR_S + 10);
    find_head(s, head, 90000);
    answer_clock(s, 90000, NOW_S);
    expect_published(s, NOW_S + 90000, " @1800176400 "); /* and a day */
}

static void test_sublists_of_a_list_without_a_time_have_none(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    struct list_request *add = announce(s, head);
    assert_int_equal(add->be.exptime, 0);
    rig_answer(&s->rig, add, BE_STORED, NULL, -1);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    expect_published(s, 0, "^1 ");
}

/* Where no head is made to announce in, there is none whose time could be read. */
static void test_sublists_end_behind_a_missing_list_that_is_given_a_time(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    submit_ending(s, true, 200);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    rig_answer_clock(&s->rig, BE_MISS, -1, NOW_S);
    struct list_request *add = next_request(s);
    assert_int_equal(add->be.verb, BE_ADD);
    assert_in_range(add->be.exptime, 200 + HOUR_S, 200 + HOUR_S + 10);
    rig_answer(&s->rig, add, BE_STORED, NULL, -1);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    rig_answer_clock(&s->rig, BE_MISS, -1, NOW_S);
    struct list_request *head = rig_take(&s->rig, BE_ADD, "k#");
    assert_int_equal(head->be.exptime, NOW_S + 200);
    rig_answer(&s->rig, head, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_the_announcement_is_no_change),
        script_test(test_what_others_append_before_it_is_one),
        script_test(test_what_others_append_behind_it_is_one),
        script_test(test_a_change_that_was_undone_is_one),
        script_test(test_a_server_without_room_is_called_that),
        script_test(test_a_full_head_is_compacted_first),
        script_test(test_sublists_end_behind_a_list_that_keeps_its_time),
        script_test(test_sublists_end_behind_a_list_that_is_given_a_time),
        script_test(test_a_list_does_not_outlive_what_is_put_into_it),
        script_test(test_sublists_of_a_list_without_a_time_have_none),
        script_test(test_sublists_end_behind_a_missing_list_that_is_given_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
