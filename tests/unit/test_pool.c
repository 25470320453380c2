/* SPDX-License-Identifier: BSD-3-Clause */
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_probe.h"

static void requests_travel_together_and_answers_come_in_order(void **state)
{
    struct fake_world *w = *state;
    static const char answers[] = "STORED\r\nVA 3 f0\r\na\r\n\r\nNOT_FOUND\r\n";
    struct probe p[3] = {0};
    fake_pool_create(w);
    p[0].x.op.value = SLICE_LIT("body\r\n");
    submit(w, &p[0], "set key 0 0 4\r\n");
    submit(w, &p[1], "mg key v f\r\n");
    submit(w, &p[2], "delete key\r\n");
    fake_until_got(w, 45);
    assert_string_equal(w->server.got, "set key 0 0 4\r\nbody\r\nmg key v f\r\ndelete key\r\n");
    for (size_t i = 0; i < sizeof answers - 1; i++) {
        fake_say_bytes(&w->server, answers + i, 1);
        fake_turn(w);
    }
    expect_answer(w, &p[0], "STORED");
    expect_answer(w, &p[1], "VA 3 f0");
    expect_answer(w, &p[2], "NOT_FOUND");
    assert_true(p[0].turn < p[1].turn && p[1].turn < p[2].turn);
    assert_true(slice_equal(p[1].value, SLICE_LIT("a\r\n")));
    block_unref(&p[1].block);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_requests), 3);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_connects), 1);
}

/* Values of many sizes across the ends of input blocks; all are kept, so that a block that is
 * filled twice shows. */
static void values_are_handed_on_whole(void **state)
{
    struct fake_world *w = *state;
    static const size_t sizes[] = {0, 1, 5000, 16380, 7, 300000, 16384, 3, 100000, 9000, 9000};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    struct probe p[COUNT] = {0};
    static char text[500000];
    size_t len = 0;
    fake_pool_create(w);
    for (size_t i = 0; i < COUNT; i++) {
        submit(w, &p[i], "mg key v\r\n");
        len += (size_t)snprintf(text + len, 40, "VA %zu\r\n", sizes[i]);
        memset(text + len, 'a' + (int)i, sizes[i]);
        len += sizes[i];
        memcpy(text + len, "\r\n", 2);
        len += 2;
    }
    fake_until_got(w, COUNT * 10);
    for (size_t at = 0; at < len;) {
        size_t n = len - at < 10007 ? len - at : 10007;
        fake_say_bytes(&w->server, text + at, n);
        at += n;
        fake_turn(w);
    }
    for (size_t i = 0; i < COUNT; i++) {
        fake_until(w, &p[i].done);
        assert_int_equal(p[i].value.len, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            assert_true(p[i].value.p[j] == (char)('a' + (int)i));
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        block_unref(&p[i].block);
    }
}

static void a_late_answer_costs_the_connection(void **state)
{
    struct fake_world *w = *state;
    struct probe change = {0};
    struct probe read = {0};
    struct probe younger = {0};
    w->config.timeout_ms = 100;
    fake_pool_create(w);
    uint64_t epoch = warm_up(w);
    submit(w, &change, "delete key\r\n");
    submit(w, &read, "mg key v\r\n");
    fake_for_ms(w, 50);
    submit(w, &younger, "delete key\r\n");
    expect_end(w, &change, BE_LOST, "backend fake: timeout, outcome unknown");
    expect_end(w, &read, BE_LOST, "backend fake: timeout");
    expect_end(w, &younger, BE_LOST, "backend fake: connection lost, outcome unknown");
    assert_int_equal(metric_get(&w->metrics, METRIC_outcomes_unknown), 2);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_timeouts), 2);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_errors), 3);
    assert_true(warm_up(w) != epoch);
}

/* The worker's clock is read between the turns: during a long wait it stands still. */
static void a_timeout_is_seen_at_the_end_of_a_long_wait(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    w->config.timeout_ms = 150;
    fake_pool_create(w);
    warm_up(w);
    submit(w, &p, "delete key\r\n");
    pool_flush(w->pool);
    fake_pass_ms(149);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
    assert_false(p.done);
    fake_pass_ms(2);
    event_base_loop(w->base, EVLOOP_NONBLOCK);
    assert_true(p.done);
    assert_string_equal(p.text, "backend fake: timeout, outcome unknown");
}

static void what_never_left_is_said_not_to_have_left(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    struct probe next = {0};
    w->server.version = NULL; /* hangs in the handshake */
    w->config.timeout_ms = 60;
    w->config.connect_timeout_ms = 200;
    fake_pool_create(w);
    submit(w, &p, "delete key\r\n");
    fake_for_ms(w, 30);
    submit(w, &next, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, "backend fake: timeout, not sent");
    assert_false(next.done);
    expect_end(w, &next, BE_DOWN, "backend fake: timeout, not sent");
    assert_int_equal(metric_get(&w->metrics, METRIC_outcomes_unknown), 0);
    /* Once the attempt has timed out, requests do not wait for the next one. */
    fake_for_ms(w, 160);
    submit(w, &p, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, "backend fake down");
}

/* Those around it are sent, in their order. Once there is a connection, what was submitted may have
 * been sent, and is answered like anything else. */
static void what_is_withdrawn_in_time_is_never_sent(void **state)
{
    struct fake_world *w = *state;
    const char *version = w->server.version;
    struct probe p[4] = {0};
    w->server.version = NULL; /* hangs in the handshake */
    w->config.timeout_ms = w->config.connect_timeout_ms = 60000;
    fake_pool_create(w);
    submit(w, &p[0], "delete first\r\n");
    submit(w, &p[1], "delete withdrawn\r\n");
    submit(w, &p[2], "delete second\r\n");
    fake_for_ms(w, 20);
    assert_true(pool_withdraw(&p[1].x));
    assert_true(pool_withdraw(&p[1].x)); /* as often as its submitter likes */
    assert_false(p[1].done);
    w->server.version = version;
    expect_end(w, &p[1], BE_DOWN, "backend fake: withdrawn, not sent");
    fake_until_got(w, 29);
    assert_string_equal(w->server.got, "delete first\r\ndelete second\r\n");
    submit(w, &p[3], "delete last\r\n");
    for (size_t i = 0; i < 4; i++) {
        assert_true(i == 1 || !pool_withdraw(&p[i].x));
    }
    fake_until_got(w, 42);
    fake_say(&w->server, "DELETED\r\nNOT_FOUND\r\nDELETED\r\n");
    expect_answer(w, &p[0], "DELETED");
    expect_answer(w, &p[2], "NOT_FOUND");
    expect_answer(w, &p[3], "DELETED");
    assert_int_equal(metric_get(&w->metrics, METRIC_outcomes_unknown), 0);
}

/* The loss of its connection leaves it unsent, so it would go out over the next one. */
static void what_a_lost_connection_left_can_be_withdrawn(void **state)
{
    struct fake_world *w = *state;
    struct probe sent = {0}, unsent = {0}, last = {0};
    w->config.timeout_ms = w->config.connect_timeout_ms = 60000;
    fake_pool_create(w);
    warm_up(w);
    const char *version = w->server.version;
    submit(w, &sent, "delete sent\r\n");
    fake_until_got(w, 13);
    submit(w, &unsent, "delete unsent\r\n");
    submit(w, &last, "delete last\r\n");
    w->server.version = NULL;
    fake_hang_up(&w->server);
    fake_events(w);
    assert_false(pool_withdraw(&sent.x));
    assert_true(pool_withdraw(&unsent.x));
    w->server.version = version;
    expect_end(w, &sent, BE_LOST, "backend fake: connection lost, outcome unknown");
    expect_end(w, &unsent, BE_DOWN, "backend fake: withdrawn, not sent");
    fake_until_got(w, 13);
    assert_string_equal(w->server.got, "delete last\r\n");
    fake_say(&w->server, "DELETED\r\n");
    expect_answer(w, &last, "DELETED");
}

static void a_lost_connection_tells_sent_from_unsent(void **state)
{
    struct fake_world *w = *state;
    struct probe sent = {0};
    struct probe unsent = {0};
    fake_pool_create(w);
    uint64_t epoch = warm_up(w);
    submit(w, &sent, "delete sent\r\n");
    fake_until_got(w, 13);
    submit(w, &unsent, "delete unsent\r\n");
    struct probe bound = {.x.op.epoch = epoch};
    submit(w, &bound, "cas key 0 0 0 1\r\n\r\n");
    struct probe last = {0};
    submit(w, &last, "delete last\r\n");
    fake_hang_up(&w->server);
    fake_events(w); /* the end arrives before anything is written */
    expect_end(w, &sent, BE_LOST, "backend fake: connection lost, outcome unknown");
    expect_end(w, &bound, BE_EXISTS, "backend fake: connected anew since");
    fake_until_got(w, 28);
    assert_string_equal(w->server.got, "delete unsent\r\ndelete last\r\n");
    fake_say(&w->server, "DELETED\r\nNOT_FOUND\r\n");
    expect_answer(w, &unsent, "DELETED");
    expect_answer(w, &last, "NOT_FOUND");
    assert_true(unsent.epoch != epoch);
}

/* Larger than the buffers of the sockets. */
#define LARGE_BYTES ((size_t)12 << 20)

/* The server of a new pool reads none of it until w->server.reads is true. */
static void submit_large(struct fake_world *w, struct probe *large)
{
    struct block *block = block_new(LARGE_BYTES + 2);
    memset(block->data, 'x', LARGE_BYTES);
    memcpy(block->data + LARGE_BYTES, "\r\n", 2);
    block->used = LARGE_BYTES + 2;
    fake_pool_create(w);
    warm_up(w);
    w->server.reads = false;
    large->x.op.value = slice_make(block->data, block->used);
    large->x.op.block = block;
    submit(w, large, "set key 0 0 12582912\r\n");
    block_unref(&block); /* the pool holds its own */
}

/* A large body is under way when the connection ends. */
static void the_rest_of_a_broken_request_is_never_sent(void **state)
{
    struct fake_world *w = *state;
    struct probe large = {0};
    struct probe next = {0};
    submit_large(w, &large);
    submit(w, &next, "delete key\r\n");
    fake_for_ms(w, 30);
    w->server.reads = true;
    fake_hang_up(&w->server);
    expect_end(w, &large, BE_LOST, "backend fake: connection lost, outcome unknown");
    fake_until_got(w, 12);
    assert_string_equal(w->server.got, "delete key\r\n");
    fake_say(&w->server, "DELETED\r\n");
    expect_answer(w, &next, "DELETED");
}

/* memcached refuses a large body before it has all of it; the rest still has to go out. */
static void an_early_refusal_keeps_the_stream_in_step(void **state)
{
    struct fake_world *w = *state;
    struct probe large = {0};
    struct probe next = {0};
    submit_large(w, &large);
    fake_turn(w);
    fake_say(&w->server, "SERVER_ERROR object too large for cache\r\n");
    expect_answer(w, &large, "SERVER_ERROR object too large for cache");
    submit(w, &next, "delete key\r\n");
    w->server.reads = true;
    fake_until_got(w, 22 + LARGE_BYTES + 2 + 12);
    assert_string_equal(w->server.got + 22 + LARGE_BYTES, "\r\ndelete key\r\n");
    fake_say(&w->server, "DELETED\r\n");
    expect_answer(w, &next, "DELETED");
}

static void the_first_request_after_a_restart_works(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    w->config.retry_min_ms = w->config.retry_max_ms = 60000;
    fake_pool_create(w);
    warm_up(w);
    fake_stop(&w->server);
    fake_for_ms(w, 30); /* the end is noticed, a new attempt refused */
    submit(w, &p, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, "backend fake down");
    /* Right after an attempt there is none. */
    uint64_t failures = metric_get(&w->metrics, METRIC_backend_connect_failures);
    submit(w, &p, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, "backend fake down");
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_connect_failures), failures);
    fake_start(&w->server);
    fake_for_ms(w, 25);
    assert_int_equal(w->server.accepted, 1);
    warm_up(w);
    assert_int_equal(w->server.accepted, 2);
}

static void a_server_that_is_down_is_tried_in_the_background(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    struct server_stats stats;
    w->config.retry_min_ms = 20;
    w->config.retry_max_ms = 80;
    fake_pool_create(w);
    assert_int_equal(pool_stats(w->pool, &stats, 1), 1);
    assert_string_equal(stats.state, "idle");
    fake_stop(&w->server);
    submit(w, &p, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, "backend fake down");
    fake_for_ms(w, 500);
    /* 20 + 40 + 80 + 80 ... ms, a quarter more or less */
    uint64_t failures = metric_get(&w->metrics, METRIC_backend_connect_failures);
    assert_in_range(failures, 4, 10);
    pool_stats(w->pool, &stats, 1);
    assert_string_equal(stats.state, "down");
    assert_int_equal(stats.connect_failures, failures);
    assert_int_equal(stats.errors, 1);
    fake_start(&w->server);
    fake_for_ms(w, 150);
    assert_int_equal(w->server.accepted, 1);
    pool_stats(w->pool, &stats, 1);
    assert_string_equal(stats.state, "up");
    assert_string_equal(stats.version, "1.6.18");
    assert_string_equal(stats.name, "fake");
}

static void garbage_ends_the_connection(void **state)
{
    struct fake_world *w = *state;
    static const char *const garbage[] = {"VA x\r\n", "VA 1\r\nabc\r\n", "\n", "VA 1048577\r\n"};
    fake_pool_create(w);
    uint64_t epoch = warm_up(w);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        struct probe p[2] = {0};
        submit(w, &p[0], "mg key v\r\n");
        submit(w, &p[1], "delete key\r\n");
        fake_until_got(w, 22);
        fake_say(&w->server, garbage[i]);
        expect_end(w, &p[0], BE_LOST, "backend fake: connection lost");
        expect_end(w, &p[1], BE_LOST, "backend fake: connection lost, outcome unknown");
        uint64_t next = warm_up(w);
        assert_true(next != epoch);
        epoch = next;
    }
    /* So does an answer without a request. */
    fake_say(&w->server, "STORED\r\n");
    fake_for_ms(w, 20);
    assert_true(warm_up(w) != epoch);
}

static void an_answer_that_does_not_fit_ends_the_connection(void **state)
{
    struct fake_world *w = *state;
    struct probe odd = {0}, next = {0};
    fake_pool_create(w);
    warm_up(w);
    submit(w, &odd, "delete key\r\n");
    submit(w, &next, "mg key v\r\n");
    fake_until_got(w, 22);
    fake_say(&w->server, "STORED\r\nEN\r\n");
    expect_end(w, &odd, BE_LOST, "backend fake: unexpected answer, outcome unknown");
    expect_end(w, &next, BE_LOST, "backend fake: connection lost");
}

static void an_epoch_is_over_with_its_connection(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    fake_pool_create(w);
    uint64_t epoch = warm_up(w);
    p.x.op.epoch = epoch;
    submit(w, &p, "cas key 0 0 0 1\r\n\r\n");
    fake_until_got(w, 19);
    fake_say(&w->server, "EXISTS\r\n");
    expect_answer(w, &p, "EXISTS");
    assert_true(p.epoch == epoch);
    fake_hang_up(&w->server);
    fake_for_ms(w, 20);
    fake_forget(&w->server);
    submit(w, &p, "cas key 0 0 0 1\r\n\r\n");
    expect_end(w, &p, BE_EXISTS, "backend fake: connected anew since");
    assert_int_equal(w->server.got_len, 0);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_errors), 0);
}

static void without_cas_only_what_does_not_need_it_is_sent(void **state)
{
    struct fake_world *w = *state;
    struct probe first = {.x.needs_cas = true};
    struct probe plain = {0};
    struct probe later = {.x.needs_cas = true};
    w->server.settings = "STAT cas_enabled no\r\nEND\r\n";
    fake_pool_create(w);
    submit(w, &first, "mg list v c\r\n"); /* before the settings are known */
    submit(w, &plain, "mg key v\r\n");
    expect_end(w, &first, BE_DOWN, "backend fake: runs without CAS (-C): start it without -C");
    submit(w, &later, "mg list v c\r\n");
    expect_end(w, &later, BE_DOWN, "backend fake: runs without CAS (-C): start it without -C");
    fake_until_got(w, 10);
    assert_string_equal(w->server.got, "mg key v\r\n");
    fake_say(&w->server, "EN\r\n");
    expect_answer(w, &plain, "EN");
}

static void the_queue_has_a_limit(void **state)
{
    struct fake_world *w = *state;
    struct probe p[3] = {0};
    w->config.max_pending = 2;
    fake_pool_create(w);
    warm_up(w);
    for (size_t i = 0; i < 3; i++) {
        submit(w, &p[i], "mg key v\r\n");
    }
    expect_end(w, &p[2], BE_DOWN, "backend fake: queue full");
    fake_until_got(w, 20);
    fake_say(&w->server, "EN\r\nEN\r\n");
    expect_answer(w, &p[0], "EN");
    expect_answer(w, &p[1], "EN");
}

static void other_programs_are_not_taken_for_memcached(void **state)
{
    struct fake_world *w = *state;
    static const struct {
        const char *version;
        const char *text;
    } cases[] = {
        {"VERSION 1.2.8\r\n", "backend fake: memcached 1.4 or newer is needed, it is 1.2.8"},
        {"VERSION 1.3\r\n", "backend fake: memcached 1.4 or newer is needed, it is 1.3"},
        {"VERSION 1.6.0-mclistd-0.1.0\r\n",
         "backend fake: a proxy answers there, mclistd, and no memcached"},
        {"-ERR unknown command\r\n",
         "backend fake: no memcached, it answers \"-ERR unknown command\""},
    };
    w->config.retry_min_ms = w->config.retry_max_ms = 10;
    fake_pool_create(w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct probe p = {0};
        w->server.version = cases[i].version;
        fake_for_ms(w, 40); /* an attempt of the background has met it */
        submit(w, &p, "mg key v\r\n");
        expect_end(w, &p, BE_DOWN, cases[i].text);
    }
    w->server.version = "VERSION 1.6.45\r\n";
    w->server.settings = "ERROR\r\n";
    fake_for_ms(w, 60);
    warm_up(w);
}

static void a_dead_connection_is_noticed_before_it_is_used(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    fake_pool_create(w);
    warm_up(w);
    fake_hang_up_heard(&w->server);
    w->now.mono_us += 2000000;
    submit(w, &p, "delete key\r\n"); /* no events have been seen since */
    pool_flush(w->pool);
    fake_until_got(w, 12);
    fake_say(&w->server, "DELETED\r\n");
    expect_answer(w, &p, "DELETED");
    assert_int_equal(w->server.accepted, 2);
}

static void the_end_of_a_pool_ends_everything(void **state)
{
    struct fake_world *w = *state;
    struct probe sent = {0};
    struct probe unsent = {0};
    fake_pool_create(w);
    warm_up(w);
    submit(w, &sent, "delete key\r\n");
    fake_until_got(w, 12);
    submit(w, &unsent, "delete key\r\n");
    pool_destroy(&w->pool);
    assert_true(sent.done && unsent.done);
    assert_int_equal(sent.status, BE_LOST);
    assert_int_equal(unsent.status, BE_DOWN);
    assert_string_equal(unsent.text, "backend fake: shutting down, not sent");
}

static void a_name_that_means_nothing_is_down(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {0};
    snprintf(w->server_config.endpoint.host, 64, "no-such-host.invalid");
    fake_pool_create(w);
    submit(w, &p, "delete key\r\n");
    expect_end(w, &p, BE_DOWN, "backend fake down: name not resolved");
}

/* No client asks for anything. */
static void servers_are_connected_to_at_the_start(void **state)
{
    struct fake_world *w = *state;
    struct server_stats stats;
    fake_pool_create(w);
    pool_connect(w->pool);
    fake_for_ms(w, 30);
    assert_int_equal(pool_stats(w->pool, &stats, 1), 1);
    assert_string_equal(stats.state, "up");
    assert_int_equal(w->server.accepted, 1);
    assert_int_equal(w->server.got_len, 0);
    warm_up(w);
    assert_int_equal(w->server.accepted, 1);
}

int main(void)
{
#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        POOL_TEST(requests_travel_together_and_answers_come_in_order),
        POOL_TEST(values_are_handed_on_whole),
        POOL_TEST(a_late_answer_costs_the_connection),
        POOL_TEST(a_timeout_is_seen_at_the_end_of_a_long_wait),
        POOL_TEST(what_never_left_is_said_not_to_have_left),
        POOL_TEST(what_is_withdrawn_in_time_is_never_sent),
        POOL_TEST(what_a_lost_connection_left_can_be_withdrawn),
        POOL_TEST(a_lost_connection_tells_sent_from_unsent),
        POOL_TEST(the_rest_of_a_broken_request_is_never_sent),
        POOL_TEST(an_early_refusal_keeps_the_stream_in_step),
        POOL_TEST(the_first_request_after_a_restart_works),
        POOL_TEST(a_server_that_is_down_is_tried_in_the_background),
        POOL_TEST(garbage_ends_the_connection),
        POOL_TEST(an_answer_that_does_not_fit_ends_the_connection),
        POOL_TEST(an_epoch_is_over_with_its_connection),
        POOL_TEST(without_cas_only_what_does_not_need_it_is_sent),
        POOL_TEST(the_queue_has_a_limit),
        POOL_TEST(other_programs_are_not_taken_for_memcached),
        POOL_TEST(a_dead_connection_is_noticed_before_it_is_used),
        POOL_TEST(the_end_of_a_pool_ends_everything),
        POOL_TEST(a_name_that_means_nothing_is_down),
        POOL_TEST(servers_are_connected_to_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
