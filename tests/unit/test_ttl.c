/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times to live: what ltouch, ttl_s and ttl_renew make of a head. The backend is the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "list/core/backoff.h"
#include "list/core/engine_state.h"
#include "list/format/head.h"
#include "support_engine.h"

#define HEAD "^1\n+1:a"
#define EMPTIED "^1\n+1:a-1:a"
#define YEAR_S 31536000

static struct list_policy *policy_of(struct script *s)
{
    return &s->rig.config->lists[0];
}

static void submit(struct script *s, enum list_verb verb)
{
    static const struct slice item = {"b", 1};
    bool takes = verb == LIST_ADD || verb == LIST_ADDX;
    script_submit(s, verb, &item, takes ? 1 : 0);
}

static void touch(struct script *s, int64_t exptime)
{
    s->call.has_exptime = true;
    s->call.exptime = exptime;
    submit(s, LIST_TOUCH);
}

static void find_head(struct script *s, const char *value, int64_t ttl_s)
{
    rig_answer(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_HIT, value, ttl_s);
}

static void expect_write(struct script *s, enum be_verb verb, const char *value, int32_t exptime,
                         enum be_status status)
{
    struct list_request *r = rig_take(&s->rig, verb, "k#");
    assert_int_equal(r->be.exptime, exptime);
    assert_true(slice_equal(r->be.value, slice_of(value)));
    rig_answer(&s->rig, r, status, NULL, -1);
}

/* ---- ltouch, lttl ---- */

/* As memcached reads it, and no clock is asked: whatever the list had does not count. */
static void ltouch_writes_the_same_bytes_with_the_time(void **state)
{
    static const int32_t times[] = {0, 1, 2592000, 2592001, 1900000000, -1};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct script *s = *state;
        touch(s, times[i]);
        find_head(s, HEAD, 77);
        expect_write(s, BE_CAS, HEAD, times[i], BE_STORED);
        script_expect_done(s, LIST_OK);
    }
}

/* An append that came in between is kept. */
static void ltouch_looks_again_after_a_conflict(void **state)
{
    struct script *s = *state;
    touch(s, 50);
    find_head(s, HEAD, -1);
    expect_write(s, BE_CAS, HEAD, 50, BE_EXISTS);
    find_head(s, HEAD "+1:b", -1);
    expect_write(s, BE_CAS, HEAD "+1:b", 50, BE_STORED);
    script_expect_done(s, LIST_OK);
}

static void ltouch_makes_no_list(void **state)
{
    struct script *s = *state;
    touch(s, 50);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
    touch(s, 50);
    find_head(s, EMPTIED, -1);
    script_expect_done(s, LIST_MISSING);
}

static void an_empty_list_that_exists_is_touched(void **state)
{
    struct script *s = *state;
    policy_of(s)->on_missing = ON_MISSING_REFUSE;
    touch(s, 50);
    find_head(s, EMPTIED, -1);
    expect_write(s, BE_CAS, EMPTIED, 50, BE_STORED);
    script_expect_done(s, LIST_OK);
}

static void expect_ttl(struct script *s, const char *head, int64_t ttl_s, enum list_status status)
{
    submit(s, LIST_TTL);
    find_head(s, head, ttl_s);
    script_expect_done(s, status);
    if (status == LIST_OK) {
        assert_int_equal(s->call.stat.ttl_s, ttl_s);
    }
}

static void lttl_says_what_is_left(void **state)
{
    struct script *s = *state;
    expect_ttl(s, HEAD, -1, LIST_OK);
    expect_ttl(s, HEAD, 0, LIST_OK);
    expect_ttl(s, HEAD, 12345, LIST_OK);
    expect_ttl(s, EMPTIED, 5, LIST_MISSING);
    expect_ttl(s, "^1\n+1:a+1:b-1:a", 5, LIST_OK); /* counted */
    submit(s, LIST_TTL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
    policy_of(s)->on_missing = ON_MISSING_REFUSE;
    expect_ttl(s, EMPTIED, 5, LIST_OK);
}

/* No sublist is read where the head tells. */
static void a_head_tells_whether_the_list_may_be_empty(void **state)
{
    static const struct {
        const char *value;
        bool has_items;
    } cases[] = {
        {"^1\n", false},
        {"^1\n+1:a", true},
        {"^1\n+1:a-1:a", false},
        {"^1\n-1:a=1:b", true},
        {"^1\n+1:a~26:aaaaaaaaaaaaa.2.1800000000", true},
        {"^1\n+1:a!0:", false},
        {"^1 aaaaaaaaaaaaa.1:30:2\n-1:a", true},
        {"^1 aaaaaaaaaaaaa.1:30:2\n-1:a-1:b", false},
        {"^1 aaaaaaaaaaaaa.1:30:2 bbbbbbbbbbbbb.1:30:0\n", false},
        {"^1 aaaaaaaaaaaaa.1:30:2\n!0:", false},
        /* Their time was over when the head was read. */
        {"^1\n+1:a@12:1000000000:a", false},
        {"^1 aaaaaaaaaaaaa.1:30:1\n@12:1000000000:a", false},
        {"^1 aaaaaaaaaaaaa.1:30:2\n@12:1000000000:a", true},
        {"^1 aaaaaaaaaaaaa.1:30:1\n@12:2000000000:a", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct be_reply reply = {.status = BE_HIT, .value = slice_of(cases[i].value)};
        struct head *head = NULL;
        reply.block = block_new(1);
        assert_int_equal(head_read(&reply, SLICE_LIT("list"), &head), HEAD_OK);
        head->read_s = 1500000000;
        assert_int_equal(head_has_items(head), cases[i].has_items);
        head_unref(&head);
        block_unref(&reply.block);
    }
}

/* ---- ttl_s ---- */

static void a_list_begins_with_the_prefixs_time(void **state)
{
    struct script *s = *state;
    policy_of(s)->ttl_s = 600;
    submit(s, LIST_ADD);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_write(s, BE_ADD, "^1\n+1:b", 600, BE_STORED);
    script_expect_done(s, LIST_OK);
    submit(s, LIST_ADDX);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_write(s, BE_ADD, "^1\n+1:b", 600, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* memcached would take the seconds for a moment. */
static void more_than_a_month_is_sent_as_a_moment(void **state)
{
    struct script *s = *state;
    policy_of(s)->ttl_s = YEAR_S;
    submit(s, LIST_ADD);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    rig_answer_clock(&s->rig, BE_MISS, -1, 1800000000);
    expect_write(s, BE_ADD, "^1\n+1:b", 1800000000 + YEAR_S, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* ---- ttl_renew ---- */

static void renew(struct script *s, uint32_t ttl_s, enum ttl_renew when)
{
    policy_of(s)->ttl_s = ttl_s;
    policy_of(s)->ttl_renew = when;
}

static void expect_change(struct script *s, int64_t left_s, int32_t exptime)
{
    submit(s, LIST_ADDX);
    find_head(s, HEAD, left_s);
    expect_write(s, BE_CAS, HEAD "+1:b", exptime, BE_STORED);
    script_expect_done(s, LIST_OK);
}

static void a_cas_renews_what_has_less(void **state)
{
    struct script *s = *state;
    renew(s, 600, TTL_RENEW_CHANGE);
    expect_change(s, 599, 600);
    expect_change(s, 0, 600);
    expect_change(s, -1, 0); /* for ever */
    submit(s, LIST_ADDX);
    find_head(s, HEAD, 601);
    rig_answer_clock(&s->rig, BE_HIT, 601, 1800000000);
    expect_write(s, BE_CAS, HEAD "+1:b", 1800000601, BE_STORED);
    script_expect_done(s, LIST_OK);
}

static void a_cas_renews_by_more_than_a_month(void **state)
{
    struct script *s = *state;
    renew(s, YEAR_S, TTL_RENEW_READ);
    submit(s, LIST_ADDX);
    find_head(s, HEAD, 10);
    rig_answer_clock(&s->rig, BE_HIT, 9, 1800000000);
    expect_write(s, BE_CAS, HEAD "+1:b", 1800000000 + YEAR_S, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* A blind change, whose answer does not wait for the renewal behind it. */
static void add(struct script *s)
{
    submit(s, LIST_ADD);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
}

static void a_blind_change_is_followed_by_a_renewal(void **state)
{
    struct script *s = *state;
    renew(s, 800, TTL_RENEW_CHANGE);
    submit(s, LIST_ADD);
    find_head(s, HEAD, 699);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    find_head(s, HEAD "+1:b", 699);
    expect_write(s, BE_CAS, HEAD "+1:b", 800, BE_EXISTS);
    find_head(s, HEAD "+1:b+1:c", 698);
    expect_write(s, BE_CAS, HEAD "+1:b+1:c", 800, BE_STORED);
    add(s); /* enough is left now */
    script_expect_done(s, LIST_OK);
}

static void nothing_is_renewed_before_an_eighth_is_over(void **state)
{
    struct script *s = *state;
    renew(s, 800, TTL_RENEW_READ);
    expect_ttl(s, HEAD, 700, LIST_OK);
    expect_ttl(s, HEAD, -1, LIST_OK);
}

static void a_read_renews_where_reads_do(void **state)
{
    struct script *s = *state;
    renew(s, 800, TTL_RENEW_CHANGE);
    expect_ttl(s, HEAD, 10, LIST_OK);
    renew(s, 800, TTL_RENEW_READ);
    submit(s, LIST_TTL);
    find_head(s, HEAD, 10);
    find_head(s, HEAD, 10);
    expect_write(s, BE_CAS, HEAD, 800, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* A read renews the list as far as its sublists live, and has these written anew. The head is on
 * disk, so that each of the two is a CAS: the one is in the way of the other, which does not leave
 * that to other workers, however far the server is. */
static void a_renewal_beyond_the_sublists_is_not_given_up_at_a_conflict(void **state)
{
#define LASTING "^1 @1700000100 aaaaaaaaaaaaa.1:275:13\n"
    struct script *s = *state;
    renew(s, 50000, TTL_RENEW_READ);
    submit(s, LIST_TTL);
    (void)engine_run(s->rig.engine, s->rig.now);
    list_note_trip(lists_find(&s->rig.engine->lists, SLICE_LIT("k")), 10000);
    find_head(s, LASTING, 50);
    find_head(s, LASTING, 50);
    rig_answer_clock(&s->rig, BE_HIT, 50, 1700000000);
    (void)engine_run(s->rig.engine, s->rig.now);
    struct list_request *renewal = rig_take(&s->rig, BE_CAS, "k#");
    find_head(s, LASTING, 50);
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    find_head(s, LASTING, 50);
    rig_answer(&s->rig, renewal, BE_STORED, NULL, -1);
    rig_answer_clock(&s->rig, BE_HIT, 100, 1700000000);
    rig_answer(&s->rig, rig_take(&s->rig, BE_CAS, "k#"), BE_EXISTS, NULL, -1);
    find_head(s, LASTING, 100);
    script_expect(s, BE_APPEND, "k#", BE_DOWN, NULL); /* once more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(ltouch_writes_the_same_bytes_with_the_time),
        script_test(ltouch_looks_again_after_a_conflict),
        script_test(ltouch_makes_no_list),
        script_test(an_empty_list_that_exists_is_touched),
        script_test(lttl_says_what_is_left),
        cmocka_unit_test(a_head_tells_whether_the_list_may_be_empty),
        script_test(a_list_begins_with_the_prefixs_time),
        script_test(more_than_a_month_is_sent_as_a_moment),
        script_test(a_cas_renews_what_has_less),
        script_test(a_cas_renews_by_more_than_a_month),
        script_test(a_blind_change_is_followed_by_a_renewal),
        script_test(nothing_is_renewed_before_an_eighth_is_over),
        script_test(a_read_renews_where_reads_do),
        script_test(a_renewal_beyond_the_sublists_is_not_given_up_at_a_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
