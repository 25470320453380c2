/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rewriting what expires: the backend is the test, so that its clock shows what the test wants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "list/core/expiry.h"
#include "support_engine.h"

/* What clock items of another proxy say, and what the server's clock shows. */
#define FIRST_VALUE "mclistd-clock 2000000000"
#define SECOND_VALUE "mclistd-clock 2000050000"
#define NOW_S 1800000000
#define FIRST_LEFT_S (2000000000 - NOW_S)
#define SECOND_LEFT_S (2000050000 - NOW_S)
#define HEAD "^1\n+1:a"

static void submit(struct script *s, enum list_verb verb)
{
    static const struct slice item = {"b", 1};
    script_submit(s, verb, &item, verb == LIST_ADDX ? 1 : 0);
}

static struct list_request *expect(struct script *s, enum be_verb verb, const char *key)
{
    return rig_take(&s->rig, verb, key);
}

static void answer(struct script *s, struct list_request *request, enum be_status status,
                   const char *value, int64_t ttl_s)
{
    rig_answer(&s->rig, request, status, value, ttl_s);
}

/* The three questions, which go out together, to where the head is. */
struct look {
    struct list_request *first, *item, *second;
};

static struct look expect_look(struct script *s)
{
    struct look look;
    look.first = expect(s, BE_GET, "mclistd#clock.0");
    look.item = expect(s, BE_TIME, "k#");
    look.second = expect(s, BE_GET, "mclistd#clock.1");
    assert_true(slice_equal(request_placement(look.first), SLICE_LIT("k#")));
    assert_true(slice_equal(request_placement(look.item), SLICE_LIT("k#")));
    assert_true(slice_equal(request_placement(look.second), SLICE_LIT("k#")));
    return look;
}

static void answer_look(struct script *s, struct look look, int64_t first_s, int64_t left_s,
                        int64_t second_s)
{
    answer(s, look.first, BE_HIT, FIRST_VALUE, first_s);
    answer(s, look.item, BE_HIT, NULL, left_s);
    answer(s, look.second, BE_HIT, SECOND_VALUE, second_s);
}

/* An exact change of a list with so many seconds left, up to its write. */
static void change(struct script *s, int64_t left_s)
{
    submit(s, LIST_ADDX);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, HEAD, left_s);
}

static void expect_write(struct script *s, int32_t exptime)
{
    struct list_request *cas = expect(s, BE_CAS, "k#");
    assert_int_equal(cas->be.exptime, exptime);
    assert_true(slice_equal(cas->be.value, SLICE_LIT(HEAD "+1:b")));
    answer(s, cas, BE_STORED, NULL, -1);
}

static void expect_error(struct script *s, const char *text)
{
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, text));
    assert_null(strstr(s->call.error, "unknown"));
}

static void a_list_without_a_time_asks_no_clock(void **state)
{
    struct script *s = *state;
    change(s, -1);
    expect_write(s, 0);
    script_expect_done(s, LIST_OK);
}

/* What was left when the head was read is of no account, nor is the proxy's clock. */
static void the_second_of_the_servers_clock_is_kept(void **state)
{
    struct script *s = *state;
    change(s, 100);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 98, SECOND_LEFT_S);
    expect_write(s, NOW_S + 98);
    script_expect_done(s, LIST_OK);
}

/* Else the moment of a touch would count. */
static void a_time_that_was_taken_off_meanwhile_stays_off(void **state)
{
    struct script *s = *state;
    change(s, 100);
    answer_look(s, expect_look(s), FIRST_LEFT_S, -1, SECOND_LEFT_S);
    expect_write(s, 0);
    script_expect_done(s, LIST_OK);
}

/* memcached reads 32 bits. */
static void no_time_is_beyond_what_memcached_reads(void **state)
{
    struct script *s = *state;
    change(s, 400000000);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 400000000, SECOND_LEFT_S);
    expect_write(s, INT32_MAX);
    script_expect_done(s, LIST_OK);
}

static void expect_new_clock(struct script *s, enum be_verb verb, const char *key,
                             enum be_status status)
{
    struct list_request *r = expect(s, verb, key);
    assert_true(slice_equal(request_placement(r), SLICE_LIT("k#")));
    assert_true(r->be.exptime > NOW_S);
    assert_int_equal(clock_value_read(r->be.value, r->be.flags), r->be.exptime);
    answer(s, r, status, NULL, -1);
}

static void missing_clock_items_are_made(void **state)
{
    struct script *s = *state;
    change(s, 100);
    struct look look = expect_look(s);
    answer(s, look.first, BE_MISS, NULL, -1);
    answer(s, look.item, BE_HIT, NULL, 100);
    answer(s, look.second, BE_MISS, NULL, -1);
    expect_new_clock(s, BE_ADD, "mclistd#clock.0", BE_STORED);
    expect_new_clock(s, BE_ADD, "mclistd#clock.1", BE_NOT_STORED); /* another proxy was faster */
    answer_look(s, expect_look(s), FIRST_LEFT_S, 99, SECOND_LEFT_S);
    expect_write(s, NOW_S + 99);
    script_expect_done(s, LIST_OK);
}

/* The second ended between the two: which of them the item was read in is not known. */
static void a_second_that_ends_in_between_is_noticed(void **state)
{
    struct script *s = *state;
    change(s, 100);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 100, SECOND_LEFT_S - 1);
    answer_look(s, expect_look(s), FIRST_LEFT_S - 1, 99, SECOND_LEFT_S - 1);
    expect_write(s, NOW_S + 1 + 99);
    script_expect_done(s, LIST_OK);
}

/* Both were given the same time to live, by a program that touches all it finds. */
static void clock_items_that_were_touched_are_written_anew(void **state)
{
    struct script *s = *state;
    change(s, 100);
    answer_look(s, expect_look(s), 3600, 100, 3600);
    answer_look(s, expect_look(s), 3600, 100, 3600);
    expect_new_clock(s, BE_CAS, "mclistd#clock.0", BE_STORED);
    expect_new_clock(s, BE_CAS, "mclistd#clock.1", BE_STORED);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 100, SECOND_LEFT_S);
    expect_write(s, NOW_S + 100);
    script_expect_done(s, LIST_OK);
}

static void a_clock_that_never_agrees_is_given_up(void **state)
{
    struct script *s = *state;
    change(s, 100);
    for (int i = 0; i < 100; i++) {
        (void)engine_run(s->rig.engine, s->rig.now);
        if (s->call.status != LIST_OK) {
            break;
        }
        struct list_request *r;
        while ((r = engine_take_request(s->rig.engine)) != NULL) {
            bool first = r->key[r->be.key.len - 1] == '0';
            enum be_status status = r->be.verb < BE_ADD ? BE_HIT : BE_STORED;
            answer(s, r, status, first ? FIRST_VALUE : SECOND_VALUE, 100);
        }
    }
    expect_error(s, "the server's clock cannot be read, nothing done");
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_clock_errors), 1);
}

static void a_clock_that_begins_in_1970_tells_no_moment(void **state)
{
    enum { TOO_EARLY_S = NOW_S - 60 * 60 * 24 * 30 };
    struct script *s = *state;
    change(s, 100);
    answer_look(s, expect_look(s), FIRST_LEFT_S + TOO_EARLY_S, 100, SECOND_LEFT_S + TOO_EARLY_S);
    expect_error(s, "the server's clock cannot be read, nothing done");
    change(s, 100);
    answer_look(s, expect_look(s), FIRST_LEFT_S + TOO_EARLY_S - 1, 100,
                SECOND_LEFT_S + TOO_EARLY_S - 1);
    expect_write(s, NOW_S - TOO_EARLY_S + 1 + 100);
    script_expect_done(s, LIST_OK);
}

static void foreign_values_are_left_alone(void **state)
{
    struct script *s = *state;
    change(s, 100);
    struct look look = expect_look(s);
    answer(s, look.first, BE_HIT, FIRST_VALUE, FIRST_LEFT_S);
    answer(s, look.item, BE_HIT, NULL, 100);
    answer(s, look.second, BE_HIT, "somebody's", SECOND_LEFT_S);
    expect_error(s, "mclistd#clock.1 is not the server's clock: remove it. Nothing done");
}

static void a_server_that_goes_away_has_done_nothing(void **state)
{
    struct script *s = *state;
    change(s, 100);
    struct look look = expect_look(s);
    answer(s, look.first, BE_LOST, NULL, -1);
    answer(s, look.item, BE_LOST, NULL, -1);
    answer(s, look.second, BE_LOST, NULL, -1);
    expect_error(s, "nothing done");
}

static void no_memory_for_clock_items_is_said(void **state)
{
    struct script *s = *state;
    change(s, 100);
    struct look look = expect_look(s);
    answer(s, look.first, BE_MISS, NULL, -1);
    answer(s, look.item, BE_HIT, NULL, 100);
    answer(s, look.second, BE_HIT, SECOND_VALUE, SECOND_LEFT_S);
    expect_new_clock(s, BE_ADD, "mclistd#clock.0", BE_NO_MEMORY);
    look = expect_look(s);
    answer(s, look.first, BE_MISS, NULL, -1);
    answer(s, look.item, BE_HIT, NULL, 100);
    answer(s, look.second, BE_HIT, SECOND_VALUE, SECOND_LEFT_S);
    expect_error(s, "backend out of memory, nothing done");
}

/* Another's write came between, or the list has expired: a conflict, as for the CAS itself, which
 * need not be sent. */
static void a_list_that_has_gone_meanwhile_is_not_written(void **state)
{
    struct script *s = *state;
    change(s, 1);
    struct look look = expect_look(s);
    answer(s, look.first, BE_HIT, FIRST_VALUE, FIRST_LEFT_S);
    answer(s, look.item, BE_MISS, NULL, -1);
    answer(s, look.second, BE_HIT, SECOND_VALUE, SECOND_LEFT_S);
    answer(s, expect(s, BE_GET, "k#"), BE_MISS, NULL, -1);
    struct list_request *add = expect(s, BE_ADD, "k#");
    assert_int_equal(add->be.exptime, 0);
    answer(s, add, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
}

/* A head takes over the expiry of the item that stands in its place. */
static void a_list_that_moves_takes_its_time_along(void **state)
{
    struct script *s = *state;
    const char *moved = "\1mclistd moved 1 7 0\n^1\n+1:a";
    s->rig.config->lists[0].dialect = DIALECT_SIMPLE;
    s->rig.config->lists[0].migrate = MIGRATE_NATIVE;
    submit(s, LIST_GET);
    answer(s, expect(s, BE_GET, "k"), BE_HIT, moved, 100);
    struct list_request *first = expect(s, BE_GET, "mclistd#clock.0");
    struct list_request *item = expect(s, BE_TIME, "k");
    struct list_request *second = expect(s, BE_GET, "mclistd#clock.1");
    assert_true(slice_equal(request_placement(first), SLICE_LIT("k")));
    answer_look(s, (struct look){first, item, second}, FIRST_LEFT_S, 97, SECOND_LEFT_S);
    struct list_request *add = expect(s, BE_ADD, "k#");
    assert_int_equal(add->be.exptime, NOW_S + 97);
    answer(s, add, BE_STORED, NULL, -1);
}

static void values_of_clock_items_are_exact(void **state)
{
    (void)state;
    assert_int_equal(clock_value_read(SLICE_LIT(FIRST_VALUE), 0), 2000000000);
    assert_int_equal(clock_value_read(SLICE_LIT(FIRST_VALUE), 1), 0);
    assert_int_equal(clock_value_read(SLICE_LIT(FIRST_VALUE " "), 0), 0);
    assert_int_equal(clock_value_read(SLICE_LIT("mclistd-clock "), 0), 0);
    assert_int_equal(clock_value_read(SLICE_LIT("mclistd-clock 2147483648"), 0), 0);
    assert_int_equal(clock_value_read(SLICE_LIT("2000000000"), 0), 0);
    assert_int_equal(clock_value_read(SLICE_NONE, 0), 0);
    assert_true(clock_key_is(SLICE_LIT("mclistd#clock.1")));
    assert_false(clock_key_is(SLICE_LIT("mclistd#clock.2")));
    assert_false(clock_key_is(SLICE_LIT("mclistd#clock.")));
    assert_false(clock_key_is(SLICE_LIT("mclistd#")));
}

/* A flip of a head that takes no appends is announced by CAS. The head is read behind that, not
 * behind the moment at which the CAS began to wait for the clock: the announcement would be
 * missing in it, and stay in the list though no proxy wrote anything under its name. */
static void a_flip_sees_the_announcement_that_waited_for_the_clock(void **state)
{
    struct script *s = *state;
    char head[160];
    s->rig.config->lists[0].log_limit_bytes = 4;
    submit(s, LIST_COMPACT);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", 7);
    answer(s, expect(s, BE_APPEND, "k#"), BE_NOT_STORED, NULL, -1);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", 7);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 7, SECOND_LEFT_S);
    struct list_request *cas = expect(s, BE_CAS, "k#");
    snprintf(head, sizeof head, "%.*s", SLICE_ARGS(cas->be.value));
    answer(s, cas, BE_STORED, NULL, -1);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, head, 7);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 7, SECOND_LEFT_S);
    struct list_request *sublist = engine_take_request(s->rig.engine);
    assert_non_null(sublist);
    assert_int_equal(sublist->be.verb, BE_ADD);
    answer(s, sublist, BE_STORED, NULL, -1);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 7, SECOND_LEFT_S);
    cas = expect(s, BE_CAS, "k#");
    assert_null(memchr(cas->be.value.p, '~', cas->be.value.len));
    answer(s, cas, BE_STORED, NULL, -1);
    answer(s, expect(s, BE_GET, "k#"), BE_MISS, NULL, -1);
    script_expect_done(s, LIST_OK);
}

/* A run that no announcement tells of is named within half of announcement_grace_s, or not at all:
 * a proxy that sleeps while it waits for the clock may find it swept. */
static void an_unannounced_run_is_not_named_too_late(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].log_limit_bytes = 4;
    submit(s, LIST_COMPACT);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", 7);
    answer(s, expect(s, BE_APPEND, "k#"), BE_NOT_STORED, NULL, -1);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", 7);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 7, SECOND_LEFT_S);
    answer(s, expect(s, BE_CAS, "k#"), BE_TOO_LARGE, NULL, -1);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", 7);
    answer_look(s, expect_look(s), FIRST_LEFT_S, 7, SECOND_LEFT_S);
    struct list_request *sublist = engine_take_request(s->rig.engine);
    assert_non_null(sublist);
    assert_int_equal(sublist->be.verb, BE_ADD);
    answer(s, sublist, BE_STORED, NULL, -1);
    s->rig.now.wall_s += s->rig.config->lists[0].announcement_grace_s / 2;
    answer_look(s, expect_look(s), FIRST_LEFT_S, 7, SECOND_LEFT_S);
    answer(s, expect(s, BE_GET, "k#"), BE_HIT, "^1\n+1:a+1:b", 7);
    struct list_request *undo = rig_next(&s->rig);
    assert_int_equal(undo->be.verb, BE_DELETE);
    answer(s, undo, BE_DELETED, NULL, -1);
    answer(s, expect(s, BE_GET, "k#"), BE_MISS, NULL, -1);
    script_expect_done(s, LIST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(a_list_without_a_time_asks_no_clock),
        script_test(the_second_of_the_servers_clock_is_kept),
        script_test(a_time_that_was_taken_off_meanwhile_stays_off),
        script_test(no_time_is_beyond_what_memcached_reads),
        script_test(missing_clock_items_are_made),
        script_test(a_second_that_ends_in_between_is_noticed),
        script_test(clock_items_that_were_touched_are_written_anew),
        script_test(a_clock_that_never_agrees_is_given_up),
        script_test(a_clock_that_begins_in_1970_tells_no_moment),
        script_test(foreign_values_are_left_alone),
        script_test(a_server_that_goes_away_has_done_nothing),
        script_test(no_memory_for_clock_items_is_said),
        script_test(a_list_that_has_gone_meanwhile_is_not_written),
        script_test(a_list_that_moves_takes_its_time_along),
        script_test(a_flip_sees_the_announcement_that_waited_for_the_clock),
        script_test(an_unannounced_run_is_not_named_too_late),
        script_test(values_of_clock_items_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
