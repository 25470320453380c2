/* SPDX-License-Identifier: BSD-3-Clause */
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support_probe.h"

#define EJECTED "backend fake down: 2 requests in a row timed out; probing"

/* A connection that held for a second is replaced at once when it is lost. */
#define PROVED_AFTER_MS 1050

/* Lets requests time out until the server is ejected. */
static void make_silent(struct fake_world *w)
{
    struct probe p = {0};
    w->config.timeout_ms = 60;
    w->config.eject_failures = 2;
    w->config.retry_min_ms = w->config.retry_max_ms = 20;
    fake_pool_create(w);
    warm_up(w);
    for (int i = 0; i < 2; i++) {
        submit(w, &p, "delete key\r\n");
        expect_end(w, &p, BE_LOST, "backend fake: timeout, outcome unknown");
    }
    submit(w, &p, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, EJECTED);
}

static const char *state_of(struct fake_world *w)
{
    static struct server_stats stats;
    pool_stats(w->pool, &stats, 1);
    return stats.state;
}

/* It goes on shaking hands. */
static void a_silent_server_gets_no_more_requests(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    make_silent(w);
    fake_until_got(w, 4);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(w->server.got, "mn\r\n"); /* the probe, and nothing else */
        assert_string_equal(state_of(w), "ejected");
        submit(w, &p, "delete key\r\n");
        expect_end(w, &p, BE_DOWN, EJECTED);
    }
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_timeouts), 2);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_ejections), 1);
}

static void an_ejected_server_is_tried_with_one_request(void **state)
{
    struct fake_world *w = *state;
    struct probe first = {0}, other = {0};
    make_silent(w);
    fake_until_got(w, 4);
    fake_say(&w->server, "MN\r\n");
    fake_forget(&w->server);
    fake_for_ms(w, 20);
    submit(w, &first, "delete key\r\n");
    submit(w, &other, "delete key\r\n");
    expect_end(w, &other, BE_DOWN, EJECTED);
    fake_until_got(w, 12);
    fake_say(&w->server, "DELETED\r\n");
    expect_answer(w, &first, "DELETED");
    assert_string_equal(state_of(w), "up");
    fake_forget(&w->server);
    submit(w, &first, "delete key\r\n");
    submit(w, &other, "delete key\r\n");
    fake_until_got(w, 24);
    fake_say(&w->server, "DELETED\r\nNOT_FOUND\r\n");
    expect_answer(w, &first, "DELETED");
    expect_answer(w, &other, "NOT_FOUND");
}

static void a_server_that_answers_probes_only_stays_ejected(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    make_silent(w);
    for (int i = 0; i < 2; i++) {
        fake_until_got(w, 4);
        fake_say(&w->server, "MN\r\n");
        fake_forget(&w->server);
        fake_for_ms(w, 20);
        assert_string_equal(state_of(w), "ejected");
        submit(w, &p, "delete key\r\n");
        expect_end(w, &p, BE_LOST, "backend fake: timeout, outcome unknown");
        submit(w, &p, "delete key\r\n");
        expect_end(w, &p, BE_DOWN, EJECTED);
    }
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_ejections), 3);
}

/* Its connection is lost before the one request came that would have tried it: until the next one
 * has answered the probe, requests do not wait for that. */
static void a_server_that_hangs_up_on_trial_is_ejected_again(void **state)
{
    struct fake_world *w = *state;
    struct probe first = {0}, other = {0};
    make_silent(w);
    fake_until_got(w, 4);
    fake_say(&w->server, "MN\r\n");
    fake_for_ms(w, PROVED_AFTER_MS);
    fake_forget(&w->server);
    fake_hang_up(&w->server);
    fake_until_got(w, 4);
    submit(w, &first, "delete key\r\n");
    submit(w, &other, "delete key\r\n");
    fake_say(&w->server, "MN\r\n");
    expect_end(w, &first, BE_DOWN, EJECTED);
    expect_end(w, &other, BE_DOWN, EJECTED);
    assert_string_equal(w->server.got, "mn\r\n");
}

/* Time-outs between answers are not in a row; neither are those of many requests at once. */
static void a_slow_server_is_not_ejected(void **state)
{
    struct fake_world *w = *state;
    struct probe p[4] = {0};
    w->config.timeout_ms = 60;
    w->config.eject_failures = 2;
    fake_pool_create(w);
    for (int i = 0; i < 3; i++) {
        warm_up(w);
        for (int j = 0; j < 4; j++) {
            submit(w, &p[j], "mg key v\r\n");
        }
        for (int j = 0; j < 4; j++) {
            expect_end(w, &p[j], BE_LOST, "backend fake: timeout");
        }
    }
    warm_up(w);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_ejections), 0);
}

int main(void)
{
#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        POOL_TEST(a_silent_server_gets_no_more_requests),
        POOL_TEST(an_ejected_server_is_tried_with_one_request),
        POOL_TEST(a_server_that_answers_probes_only_stays_ejected),
        POOL_TEST(a_server_that_hangs_up_on_trial_is_ejected_again),
        POOL_TEST(a_slow_server_is_not_ejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
