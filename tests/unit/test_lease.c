/* SPDX-License-Identifier: BSD-3-Clause */
/* llease: which client may fill a missing list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "list/format/absent.h"
#include "support_absent.h"

static void test_lease_of_nothing(void **state)
{
    struct script *s = *state;
    char value[64];
    ask_lease(s, 10);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    struct list_request *request = rig_take(&s->rig, BE_ADD, "k#");
    snprintf(value, sizeof value, "%.*s", SLICE_ARGS(request->be.value));
    assert_int_equal(request->be.exptime, 70);
    rig_answer(&s->rig, request, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
    char expected[64];
    snprintf(expected, sizeof expected, "^1 ?%llu.1700000011\n",
             (unsigned long long)s->call.number);
    assert_string_equal(value, expected);
    assert_int_not_equal(s->call.number, 0);
    /* Clients whose numbers are doubles can give it back. */
    assert_int_equal(s->call.number >> VERSION_BITS, 0);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_leases), 1);
}

/* What no head can name would make one that no proxy can read. */
static void test_lease_of_a_proxy_whose_clock_is_wrong(void **state)
{
    struct script *s = *state;
    char value[64];
    s->rig.now.wall_s = INT64_C(99999999999);
    ask_lease(s, 10);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    struct list_request *request = rig_take(&s->rig, BE_ADD, "k#");
    snprintf(value, sizeof value, "%.*s", SLICE_ARGS(request->be.value));
    rig_answer(&s->rig, request, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
    assert_non_null(strstr(value, ".9999999999\n"));
}

static void test_lease_that_another_client_has(void **state)
{
    struct script *s = *state;
    ask_lease(s, 10);
    show_head(s, LEASED, 90);
    script_expect_done(s, LIST_NOT_STORED);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_leases_refused), 1);
    /* Others were faster between look and write. */
    ask_lease(s, 10);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_ADD, "k#", BE_NOT_STORED, NULL);
    show_head(s, LEASED, 90);
    script_expect_done(s, LIST_NOT_STORED);
    ask_lease(s, 10);
    show_head(s, "^1\n", -1);
    script_expect_done(s, LIST_EXISTS);
}

/* The next client has another token; what was appended stays. */
static void test_lease_that_is_over(void **state)
{
    struct script *s = *state;
    char expected[64];
    ask_lease(s, 10);
    show_head(s, OVER "+1:y", 20);
    struct list_request *request = rig_take(&s->rig, BE_CAS, "k#");
    char value[64];
    snprintf(value, sizeof value, "%.*s", SLICE_ARGS(request->be.value));
    assert_int_equal(request->be.exptime, 70);
    rig_answer(&s->rig, request, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
    assert_int_not_equal(s->call.number, 77);
    snprintf(expected, sizeof expected, "^1 ?%llu.1700000011\n+1:y",
             (unsigned long long)s->call.number);
    assert_string_equal(value, expected);
}

/* What names are to be found again does not expire. */
static void test_lease_beside_names_does_not_expire(void **state)
{
    struct script *s = *state;
    ask_lease(s, 10);
    show_head(s, OVER YOUNG, -1);
    struct list_request *request = rig_take(&s->rig, BE_CAS, "k#");
    assert_int_equal(request->be.exptime, 0);
    rig_answer(&s->rig, request, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
}

/* Those that wait together ask once. */
static void test_leases_travel_together(void **state)
{
    enum { CALLS = 20 };
    struct script *s = *state;
    struct list_call calls[CALLS];
    struct list_session sessions[CALLS];
    memset(sessions, 0, sizeof sessions);
    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = (struct list_call){.verb = LIST_LEASE,
                                      .key = SLICE_LIT("k"),
                                      .policy = &s->rig.config->lists[0],
                                      .session = &sessions[i],
                                      .seconds = 10};
        engine_submit(s->rig.engine, &calls[i], s->rig.now);
    }
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_ADD, "k#", BE_STORED, NULL);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_null(engine_take_request(s->rig.engine));
    for (size_t i = 0; i < CALLS; i++) {
        assert_ptr_equal(engine_take_done(s->rig.engine), &calls[i]);
        assert_int_equal(calls[i].status, i == 0 ? LIST_OK : LIST_NOT_STORED);
    }
}

static void test_lease_is_refused_by_name(void **state)
{
    struct script *s = *state;
    struct list_policy *policy = &s->rig.config->lists[0];
    const int64_t seconds[] = {0, -1, 3601, INT64_MAX};
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        ask_lease(s, seconds[i]);
        script_expect_done(s, LIST_CLIENT_ERROR);
        assert_string_equal(s->call.error, "llease: SECONDS must be 1 to 3600 (lease_max_s)");
    }
    policy->dialect = DIALECT_SIMPLE;
    ask_lease(s, 10);
    script_expect_done(s, LIST_CLIENT_ERROR);
    assert_non_null(strstr(s->call.error, "dialect native only"));
    policy->dialect = DIALECT_NATIVE;
    policy->on_missing = ON_MISSING_CREATE;
    ask_lease(s, 10);
    script_expect_done(s, LIST_CLIENT_ERROR);
    assert_non_null(strstr(s->call.error, "on_missing = refuse"));
}

/* A clock that was wrong does not keep the list from being filled for years. */
static void test_lease_from_the_future_is_over(void **state)
{
    (void)state;
    struct head_marks marks = {.absent = true, .lease = 77, .lease_until_s = 1000};
    assert_false(lease_is_over(&marks, 999));
    assert_true(lease_is_over(&marks, 1000));
    assert_false(lease_is_over(&marks, 1000 - LEASE_MAX_S));
    assert_true(lease_is_over(&marks, -1000 - LEASE_MAX_S));
    marks.lease = 0;
    assert_true(lease_is_over(&marks, 999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        refuse_test(test_lease_of_nothing),
        refuse_test(test_lease_of_a_proxy_whose_clock_is_wrong),
        refuse_test(test_lease_that_another_client_has),
        refuse_test(test_lease_that_is_over),
        refuse_test(test_lease_beside_names_does_not_expire),
        refuse_test(test_leases_travel_together),
        refuse_test(test_lease_is_refused_by_name),
        cmocka_unit_test(test_lease_from_the_future_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
