/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a worker compacts, and when it keeps its changes back: near servers, far servers, heads that
 * are full. The test is the list's only worker, and plays the others by what it says of the log.
 */
#include "list/core/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "list/core/engine_state.h"
#include "support_engine.h"

#define LIMIT 1000
#define HARD_LIMIT 10000
/* Of a far server: what a log may have before all fall silent. */
#define SILENCE (2 * LIMIT)
#define FAR_TRIP_US 10000

struct test {
    struct rig rig;
    struct list *list;
    bool instead; /* the last compaction that was asked for is another worker's, really */
};

static int setup(void **state)
{
    static struct test t;
    t = (struct test){0};
    rig_init(&t.rig);
    struct list_policy *policy = &t.rig.config->lists[0];
    policy->log_limit_bytes = LIMIT;
    policy->log_hard_limit_bytes = HARD_LIMIT;
    t.list = lists_get(&t.rig.engine->lists, SLICE_LIT("k"), policy);
    (void)engine_run(t.rig.engine, t.rig.now);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    rig_fini(&t->rig);
    return 0;
}

static void pass_us(struct test *t, uint64_t us)
{
    t->rig.now.mono_us += us;
    (void)engine_run(t->rig.engine, t->rig.now);
}

/* The log is seen to have grown so far. True when that asks for a compaction. */
static bool compacts(struct test *t, uint64_t before, uint64_t log)
{
    list_note_size(t->list, log);
    list_consider_compaction(t->rig.engine, t->list, before);
    bool wished = t->list->wish == WISH_COMPACT || t->list->wish == WISH_COMPACT_INSTEAD;
    t->instead = t->list->wish == WISH_COMPACT_INSTEAD;
    t->list->wish = WISH_NONE;
    return wished;
}

static void test_short_trips_count_and_long_ones_hardly(void **state)
{
    struct test *t = *state;
    assert_false(list_is_far(t->list));
    list_note_trip(t->list, 8000);
    assert_int_equal(t->list->trip_us, 8000);
    assert_true(list_is_far(t->list));
    list_note_trip(t->list, 800);
    assert_int_equal(t->list->trip_us, 800);
    list_note_trip(t->list, 1600);
    assert_int_equal(t->list->trip_us, 900);
    /* A server that has stalled for a minute counts as one that took a second. */
    list_note_trip(t->list, 60000000);
    assert_int_equal(t->list->trip_us, 900 + (1000000 - 900) / 8);
}

static void test_near_who_crosses_the_line_compacts(void **state)
{
    struct test *t = *state;
    list_note_trip(t->list, 100);
    assert_false(compacts(t, 0, LIMIT - 1));
    assert_true(compacts(t, LIMIT - 1, LIMIT));
    assert_false(compacts(t, LIMIT, LIMIT + 1));
    assert_false(compacts(t, LIMIT, 2 * LIMIT - 1));
    /* No worker seems to. */
    assert_true(compacts(t, LIMIT, 2 * LIMIT));
    assert_false(timer_is_set(&t->list->append_backoff));
}

/* A worker whose own compaction failed a moment ago gives way to those of others, for the longer
 * the further the log is over the line. */
static void test_near_a_worker_that_may_not_compact_holds_back(void **state)
{
    static const struct {
        uint64_t log, delay_us;
    } cases[] = {{2 * LIMIT, 4 * 300}, {5 * LIMIT, 25 * 300}, {10 * LIMIT, 30000}};
    struct test *t = *state;
    struct timer *timer = &t->list->append_backoff;
    list_note_trip(t->list, 100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t->list->compact_after_us = UINT64_MAX;
        assert_false(compacts(t, LIMIT, LIMIT + 1));
        assert_false(timer_is_set(timer));
        assert_false(compacts(t, LIMIT, cases[i].log));
        assert_true(timer_is_set(timer));
        assert_int_equal(timer->at_us, t->rig.now.mono_us + cases[i].delay_us);
        /* What comes in the meantime does not put it off. */
        pass_us(t, 1);
        assert_false(compacts(t, LIMIT, cases[i].log));
        assert_int_equal(timer->at_us, t->rig.now.mono_us - 1 + cases[i].delay_us);
        pass_us(t, cases[i].delay_us);
        assert_false(timer_is_set(timer));
    }
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_list_holdbacks), 3);
}

static void test_far_only_who_crosses_the_line_compacts(void **state)
{
    struct test *t = *state;
    list_note_trip(t->list, FAR_TRIP_US);
    assert_false(compacts(t, LIMIT - 1, LIMIT));
    assert_false(compacts(t, 0, SILENCE));
    assert_false(list_is_crowded_far(t->list));
    assert_true(compacts(t, SILENCE, SILENCE + 1));
    assert_false(t->instead);
    assert_false(compacts(t, SILENCE + 1, SILENCE + 2));
    assert_true(list_is_crowded_far(t->list));
    assert_false(compacts(t, UINT64_MAX, 4 * SILENCE));
    assert_false(timer_is_set(&t->list->append_backoff));
}

/* Half of the hard limit is a line as well: what is under way must have room behind it. */
static void test_far_the_line_leaves_room_to_append(void **state)
{
    struct test *t = *state;
    t->rig.config->lists[0].log_hard_limit_bytes = 3 * LIMIT;
    list_note_trip(t->list, FAR_TRIP_US);
    assert_true(compacts(t, 3 * LIMIT / 2, 3 * LIMIT / 2 + 1));
}

/* Eight round trips, and up to eight more by chance, are granted to the one that should compact. */
static void test_far_patience_ends(void **state)
{
    struct test *t = *state;
    unsigned waited = 0;
    list_note_trip(t->list, FAR_TRIP_US);
    assert_false(compacts(t, UINT64_MAX, 4 * SILENCE));
    do {
        pass_us(t, FAR_TRIP_US);
        waited++;
    } while (!compacts(t, UINT64_MAX, 4 * SILENCE));
    assert_in_range(waited, 8, 16);
    assert_true(t->instead);
    /* The next one needs as much patience again. */
    pass_us(t, 7 * FAR_TRIP_US);
    assert_false(compacts(t, UINT64_MAX, 4 * SILENCE));
    /* A log that was short in between begins anew. */
    assert_false(compacts(t, UINT64_MAX, 0));
    pass_us(t, 20 * FAR_TRIP_US);
    assert_false(compacts(t, UINT64_MAX, 4 * SILENCE));
}

static bool keeps_back(const struct test *t, uint64_t deadline_us)
{
    const struct list_call call = {.deadline_us = deadline_us};
    return list_awaits_compactor(t->rig.engine, t->list, &call);
}

/* A worker goes on for one round trip, until the compaction is announced; then its changes wait,
 * but for those that would end at their deadlines. */
static void test_far_changes_wait_until_their_last_trips(void **state)
{
    struct test *t = *state;
    uint64_t far_us = t->rig.now.mono_us + 1000 * FAR_TRIP_US;
    list_note_trip(t->list, FAR_TRIP_US);
    assert_false(keeps_back(t, far_us));
    assert_false(compacts(t, UINT64_MAX, 4 * SILENCE));
    assert_false(keeps_back(t, far_us));
    pass_us(t, FAR_TRIP_US - 1);
    assert_false(keeps_back(t, far_us));
    pass_us(t, 1);
    assert_true(keeps_back(t, far_us));
    assert_true(keeps_back(t, t->rig.now.mono_us + 3 * FAR_TRIP_US + 1));
    assert_false(keeps_back(t, t->rig.now.mono_us + 3 * FAR_TRIP_US));
    /* Without a deadline: 40 round trips from when the log was seen over the line. */
    assert_true(keeps_back(t, 0));
    pass_us(t, 36 * FAR_TRIP_US - 1);
    assert_true(keeps_back(t, 0));
    pass_us(t, 1);
    assert_false(keeps_back(t, 0));
    /* The log is short again. */
    assert_true(keeps_back(t, far_us));
    assert_false(compacts(t, UINT64_MAX, SILENCE));
    assert_false(keeps_back(t, far_us));
    /* Near, nothing is kept back in this way. */
    list_note_trip(t->list, 100);
    list_note_size(t->list, 4 * SILENCE);
    assert_false(keeps_back(t, far_us));
}

/* The header has grown so long that no change fits any more, and the log is short: the change that
 * finds that has it tidied up, wherever the server is. */
static void test_a_full_head_is_compacted(void **state)
{
    struct test *t = *state;
    const struct head head = {.value = {NULL, 2000}, .log = {NULL, 10}, .raw_log_bytes = 10};
    t->list->item_size_max = 4096;
    for (int far = 0; far <= 1; far++) {
        t->list->trip_us = far ? FAR_TRIP_US : 100;
        assert_true(list_has_room(t->list, &head, 1000));
        assert_false(compacts(t, 10, 10));
        assert_false(list_has_room(t->list, &head, 1073));
        assert_true(compacts(t, 10, 10));
        assert_false(compacts(t, 10, 10));
    }
    /* A log that is full is none of it. */
    assert_false(list_has_room(t->list, &head, HARD_LIMIT));
    assert_false(compacts(t, 10, 10));
}

/* ---- an exact change that finds the log full ---- */

#define FULL_LOG "+4:aaaa+4:bbbb+4:cccc+4:dddd+4:eeee+4:ffff+4:gggg"

/* laddx of an item that the log has no room for; other proxies are to compact the list. Ends behind
 * the look at the head that finds that. */
static void submit_to_full_log(struct test *t, struct list_session *session, struct list_call *call,
                               uint64_t deadline_us)
{
    static const struct slice item = {"an item of 23 bytes ...", 23};
    t->rig.config->lists[0].log_limit_bytes = 32;
    t->rig.config->lists[0].log_hard_limit_bytes = 64;
    t->list->compact_after_us = UINT64_MAX;
    *call = (struct list_call){.verb = LIST_ADDX,
                               .key = SLICE_LIT("k"),
                               .policy = &t->rig.config->lists[0],
                               .session = session,
                               .items = &item,
                               .item_count = 1,
                               .deadline_us = deadline_us};
    chain_init(&call->answer);
    engine_submit(t->rig.engine, call, t->rig.now);
    rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1\n" FULL_LOG, -1);
    assert_null(engine_take_done(t->rig.engine));
}

static void answer_size(struct test *t, const char *head)
{
    rig_answer(&t->rig, rig_take(&t->rig, BE_SIZE, "k#"), BE_HIT, head, -1);
    assert_null(engine_take_done(t->rig.engine));
}

static void test_an_exact_change_waits_for_room_in_the_log(void **state)
{
    struct test *t = *state;
    struct list_session session = {0};
    struct list_call call;
    submit_to_full_log(t, &session, &call, 0);
    answer_size(t, "^1\n" FULL_LOG);
    answer_size(t, "^1\n" FULL_LOG "+1:x");
    answer_size(t, "^1\n+1:x");
    rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1\n+1:x", -1);
    rig_answer(&t->rig, rig_take(&t->rig, BE_CAS, "k#"), BE_STORED, NULL, -1);
    assert_ptr_equal(engine_take_done(t->rig.engine), &call);
    assert_int_equal(call.status, LIST_OK);
    assert_int_equal(call.number, 1);
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_list_log_full), 0);
}

static void test_an_exact_change_waits_for_room_until_its_deadline(void **state)
{
    struct test *t = *state;
    struct list_session session = {0};
    struct list_call call;
    submit_to_full_log(t, &session, &call, t->rig.now.mono_us + 2500);
    answer_size(t, "^1\n" FULL_LOG);
    answer_size(t, "^1\n" FULL_LOG);
    pass_us(t, 2500);
    assert_ptr_equal(engine_take_done(t->rig.engine), &call);
    assert_int_equal(call.status, LIST_SERVER_ERROR);
    assert_string_equal(call.error, "list log full, nothing done: compaction is behind, try again");
    assert_int_equal(metric_get(&t->rig.metrics, METRIC_list_log_full), 1);
}

/* What is looked up under a full log waits for nothing. */
static void test_an_exact_change_that_changes_nothing_needs_no_room(void **state)
{
    struct test *t = *state;
    struct list_session session = {0};
    struct list_call call;
    struct slice there = SLICE_LIT("gggg");
    submit_to_full_log(t, &session, &call, 0);
    struct list_session other = {0};
    struct list_call second = call;
    second.session = &other;
    second.items = &there;
    engine_submit(t->rig.engine, &second, t->rig.now);
    rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, "^1\n" FULL_LOG, -1);
    assert_ptr_equal(engine_take_done(t->rig.engine), &second);
    assert_int_equal(second.status, LIST_OK);
    assert_int_equal(second.number, 0);
}

/* Together they would take more than a log has that was just compacted. */
static void test_exact_changes_go_together_as_far_as_a_log_has_room(void **state)
{
    struct test *t = *state;
    static const struct slice items[] = {{"aaaaaaaaaaaaaaaaaaaa", 20}, {"b", 1}, {"cccccc", 6}};
    struct list_session sessions[3] = {{0}};
    struct list_call calls[3];
    t->rig.config->lists[0].log_limit_bytes = 32;
    t->rig.config->lists[0].log_hard_limit_bytes = 64;
    for (size_t i = 0; i < 3; i++) {
        calls[i] = (struct list_call){.verb = LIST_ADDX,
                                      .key = SLICE_LIT("k"),
                                      .policy = &t->rig.config->lists[0],
                                      .session = &sessions[i],
                                      .items = &items[i],
                                      .item_count = 1};
        engine_submit(t->rig.engine, &calls[i], t->rig.now);
    }
    rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "k#"), BE_MISS, NULL, -1);
    rig_answer(&t->rig, rig_take(&t->rig, BE_ADD, "k#"), BE_STORED, NULL, -1);
    assert_ptr_equal(engine_take_done(t->rig.engine), &calls[0]);
    assert_ptr_equal(engine_take_done(t->rig.engine), &calls[1]);
    assert_null(engine_take_done(t->rig.engine));
}

/* Else the log would be thought shorter than it is, and overfilled. */
static void test_a_look_from_before_an_append_does_not_hide_it(void **state)
{
    struct test *t = *state;
    const struct slice item = {"0123456789", 10};
    struct list_session sessions[2] = {{0}};
    struct list_call compact = {.verb = LIST_COMPACT,
                                .key = SLICE_LIT("k"),
                                .policy = &t->rig.config->lists[0],
                                .session = &sessions[0]};
    struct list_call add = compact;
    add.verb = LIST_ADD;
    add.session = &sessions[1];
    add.items = &item;
    add.item_count = 1;
    t->list->has_head = true;
    engine_submit(t->rig.engine, &compact, t->rig.now);
    struct list_request *get = rig_take(&t->rig, BE_GET, "k#");
    engine_submit(t->rig.engine, &add, t->rig.now);
    struct list_request *append = rig_take(&t->rig, BE_APPEND, "k#");
    struct list_request *size = rig_take(&t->rig, BE_SIZE, "k#");
    rig_answer(&t->rig, get, BE_HIT, "^1\n+1:a", -1);
    assert_int_equal(list_log_bytes(t->list), 4 + 14);
    rig_answer(&t->rig, append, BE_STORED, NULL, -1);
    rig_answer(&t->rig, size, BE_HIT, "^1\n+1:a+10:0123456789", -1);
    assert_int_equal(list_log_bytes(t->list), 4 + 14);
}

/* ---- blind changes and what others append ---- */

enum { ENTRY = 14, CHANGES = 100 };

/* Others have carried the log to so many bytes meanwhile. */
static void answer_append(struct test *t, struct list_request *append, size_t log)
{
    static char value[HARD_LIMIT + 1];
    memset(value, 'x', log);
    value[log] = '\0';
    struct list_request *size = rig_take(&t->rig, BE_SIZE, "k#");
    rig_answer(&t->rig, append, BE_STORED, NULL, -1);
    rig_answer(&t->rig, size, BE_HIT, value, -1);
    pass_us(t, 30000); /* it has kept its appends back for the sake of others' flips */
}

static struct list_request *take_append(struct test *t, size_t bytes)
{
    struct list_request *append = rig_take(&t->rig, BE_APPEND, "k#");
    assert_int_equal(append->be.value.len, bytes);
    return append;
}

/* Else workers that know nothing of each other carry the log far beyond its limit. A change that is
 * longer than a worker's part of the room goes all the same, or it might wait for ever. */
static void test_a_batch_leaves_room_for_what_others_append(void **state)
{
    struct test *t = *state;
    const struct slice item = {"0123456789", 10};
    struct list_session sessions[CHANGES] = {{0}};
    struct list_call calls[CHANGES];
    struct list_request *append = NULL;
    t->list->has_head = true;
    t->list->compact_after_us = UINT64_MAX;
    for (size_t i = 0; i < CHANGES; i++) {
        calls[i] = (struct list_call){.verb = LIST_ADD,
                                      .key = SLICE_LIT("k"),
                                      .policy = &t->rig.config->lists[0],
                                      .session = &sessions[i],
                                      .items = &item,
                                      .item_count = 1};
        engine_submit(t->rig.engine, &calls[i], t->rig.now);
        append = append == NULL ? take_append(t, ENTRY) : append;
    }
    answer_append(t, append, HARD_LIMIT - 8 * 10 * ENTRY);
    answer_append(t, take_append(t, 10 * ENTRY), HARD_LIMIT - 3 * ENTRY);
    answer_append(t, take_append(t, ENTRY), HARD_LIMIT);
    for (size_t i = 0; i < 12; i++) {
        assert_ptr_equal(engine_take_done(t->rig.engine), &calls[i]);
    }
    assert_null(engine_take_done(t->rig.engine));
}

/* One that finds another's announcement leaves the list to that one, unless it was withdrawn. */
static void test_far_a_withdrawn_flip_is_not_waited_for(void **state)
{
    static const struct {
        const char *withdrawal;
        bool announces;
    } cases[] = {{"", false}, {"~26:aaaaaaaaaaaaa.0.1700000000", true}};
    struct test *t = *state;
    t->rig.now.wall_s = 1700000001;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char head[8 * LIMIT];
        int len = snprintf(head, sizeof head, "^1\n~26:aaaaaaaaaaaaa.1.1700000000");
        while (len < 5 * LIMIT) {
            len += snprintf(head + len, sizeof head - (size_t)len, "+9:item %04d", len);
        }
        (void)snprintf(head + len, sizeof head - (size_t)len, "%s", cases[i].withdrawal);
        lists_wish(&t->rig.engine->lists, t->list, WISH_COMPACT_INSTEAD, NULL);
        pass_us(t, 1);
        rig_answer(&t->rig, rig_take(&t->rig, BE_GET, "k#"), BE_HIT, head, -1);
        pass_us(t, 1);
        assert_int_equal(t->list->compaction != NULL, cases[i].announces);
    }
    rig_answer(&t->rig, rig_take(&t->rig, BE_APPEND, "k#"), BE_STORED, NULL, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_short_trips_count_and_long_ones_hardly),
        TEST(test_near_who_crosses_the_line_compacts),
        TEST(test_near_a_worker_that_may_not_compact_holds_back),
        TEST(test_far_only_who_crosses_the_line_compacts),
        TEST(test_far_the_line_leaves_room_to_append),
        TEST(test_far_patience_ends),
        TEST(test_far_a_withdrawn_flip_is_not_waited_for),
        TEST(test_far_changes_wait_until_their_last_trips),
        TEST(test_a_full_head_is_compacted),
        TEST(test_an_exact_change_waits_for_room_in_the_log),
        TEST(test_an_exact_change_waits_for_room_until_its_deadline),
        TEST(test_an_exact_change_that_changes_nothing_needs_no_room),
        TEST(test_exact_changes_go_together_as_far_as_a_log_has_room),
        TEST(test_a_look_from_before_an_append_does_not_hide_it),
        TEST(test_a_batch_leaves_room_for_what_others_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
