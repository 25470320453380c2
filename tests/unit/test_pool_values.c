/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges with any number of values, routes, and bytes that wait to be sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_fake_server.h"

/* An exchange and all that it was told, one line each: "KEY=VALUE", in the end the last line or the
 * text of a failure. */
struct probe {
    struct exchange x;
    bool done;
    int status;
    bool distrusts_values;
    size_t len;
    char told[1000];
};

static void tell(struct probe *p, struct slice s, const char *end)
{
    int n = snprintf(p->told + p->len, sizeof p->told - p->len, "%.*s%s", SLICE_ARGS(s), end);
    p->len += (size_t)n;
    assert_true(p->len < sizeof p->told);
}

static void on_value(struct exchange *x, const struct be_reply *reply)
{
    struct probe *p = x->owner;
    assert_false(p->done);
    assert_int_equal(reply->status, BE_HIT);
    assert_true(reply->has_value);
    assert_memory_equal(reply->value.p + reply->value.len, "\r\n", 2);
    tell(p, reply->line, "=");
    tell(p, reply->value, ";");
    *reply->distrust = p->distrusts_values;
}

static void on_done(struct exchange *x, const struct be_reply *reply)
{
    struct probe *p = x->owner;
    assert_false(p->done);
    p->done = true;
    p->status = (int)reply->status;
    assert_false(reply->status == BE_ANSWERED && reply->has_value);
    tell(p, reply->status == BE_ANSWERED ? reply->line : slice_of(reply->text), "");
}

static void submit(struct fake_world *w, struct probe *p, const char *line)
{
    bool values = slice_starts_with(slice_of(line), SLICE_LIT("get"));
    p->x.op.verb = values ? BE_LINE_GET : line[0] == 'm' ? BE_LINE_READ : BE_LINE;
    p->x.op.line = slice_of(line);
    p->x.op.asks_cas = slice_starts_with(slice_of(line), SLICE_LIT("gets"));
    p->x.op.form = fake_line_form(line);
    p->x.value = values ? on_value : NULL;
    p->x.done = on_done;
    p->x.owner = p;
    pool_submit_on(w->pool, 0, &p->x);
    assert_false(p->done); /* never from within */
}

static void expect(struct fake_world *w, struct probe *p, int status, const char *told)
{
    fake_until(w, &p->done);
    assert_string_equal(p->told, told);
    assert_int_equal(p->status, status);
}

static int setup(void **state)
{
    static struct fake_world w;
    fake_world_init(&w);
    fake_pool_create(&w);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    fake_world_fini(*state);
    return 0;
}

static void values_come_one_by_one_before_the_end(void **state)
{
    struct fake_world *w = *state;
    static const char answers[] = "VALUE a 1 2 6\r\nxy\r\nVALUE c 0 0 77\r\n\r\nEND\r\n"
                                  "END\r\nMN\r\n";
    struct probe p[3] = {0};
    submit(w, &p[0], "gets a b c\r\n");
    submit(w, &p[1], "get d e\r\n");
    submit(w, &p[2], "mn\r\n");
    fake_until_got(w, 25);
    for (size_t i = 0; i < sizeof answers - 1; i++) {
        fake_say_bytes(&w->server, answers + i, 1);
        fake_turn(w);
        if (i == 20) {
            assert_string_equal(p[0].told, "a=xy;");
            assert_false(p[0].done);
        }
    }
    expect(w, &p[0], BE_ANSWERED, "a=xy;c=;END");
    expect(w, &p[1], BE_ANSWERED, "END");
    expect(w, &p[2], BE_ANSWERED, "MN");
}

static void a_connection_that_ends_between_values_keeps_what_came(void **state)
{
    struct fake_world *w = *state;
    struct probe p[3] = {0};
    submit(w, &p[0], "get a b c\r\n");
    submit(w, &p[1], "get d e\r\n");
    fake_until_got(w, 20);
    submit(w, &p[2], "get f g\r\n"); /* not sent yet */
    fake_say(&w->server, "VALUE a 0 1\r\nx\r\nVALUE b 0 5\r\nx");
    fake_hang_up(&w->server);
    fake_forget(&w->server);
    expect(w, &p[0], BE_LOST, "a=x;backend fake: connection lost");
    expect(w, &p[1], BE_LOST, "backend fake: connection lost");
    fake_until_got(w, 9);
    fake_say(&w->server, "END\r\n");
    expect(w, &p[2], BE_ANSWERED, "END");
    assert_int_equal(metric_get(&w->metrics, METRIC_outcomes_unknown), 0);
}

static void errors_in_place_of_the_rest_leave_the_connection_in_step(void **state)
{
    struct fake_world *w = *state;
    struct probe p[2] = {0};
    submit(w, &p[0], "get a b c\r\n");
    submit(w, &p[1], "get d e\r\n");
    fake_until_got(w, 20);
    fake_say(&w->server, "VALUE a 0 1\r\nx\r\nSERVER_ERROR out of memory writing get response\r\n"
                         "VALUE e 0 1\r\ny\r\nEND\r\n");
    expect(w, &p[0], BE_ANSWERED, "a=x;SERVER_ERROR out of memory writing get response");
    expect(w, &p[1], BE_ANSWERED, "e=y;END");
    assert_int_equal(w->server.accepted, 1);
}

static void garbage_between_values_ends_the_connection(void **state)
{
    struct fake_world *w = *state;
    static const char *const garbage[] = {
        "VA 1 f0\r\nx\r\n",         "VALUE b 0\r\n",         "VALUE b 0 x\r\n\r\n",
        "VALUE b x 1\r\nx\r\n",     "VALUE  0 1\r\nx\r\n",   "VALUE b 0 1048577\r\n",
        "VALUE b 0 1 2 3\r\nx\r\n", "VALUE b 0 1\r\nxy\r\n",
    };
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        struct probe p = {0};
        fake_forget(&w->server);
        submit(w, &p, "get a b c\r\n");
        fake_until_got(w, 11);
        fake_say(&w->server, "VALUE a 0 1\r\nx\r\n");
        fake_say(&w->server, garbage[i]);
        expect(w, &p, BE_LOST, "a=x;backend fake: connection lost");
    }
}

static void a_value_that_does_not_fit_ends_the_connection(void **state)
{
    struct fake_world *w = *state;
    struct probe p = {.distrusts_values = true};
    submit(w, &p, "get a b c\r\n");
    fake_until_got(w, 11);
    fake_say(&w->server, "VALUE x 0 1\r\nx\r\nVALUE b 0 1\r\nx\r\nEND\r\n");
    expect(w, &p, BE_LOST, "x=x;backend fake: connection lost");
}

/* What memcached does when it cannot build the answer to a get of many keys: answers that it has
 * not sent yet are gone, and its error stands where the first of them was expected. */
static void answers_dropped_for_want_of_memory_are_not_guessed(void **state)
{
    struct fake_world *w = *state;
    struct probe p[4] = {0};
    submit(w, &p[0], "delete a\r\n");
    submit(w, &p[1], "delete b\r\n");
    submit(w, &p[2], "get c d\r\n");
    submit(w, &p[3], "get e f\r\n");
    fake_until_got(w, 38);
    fake_say(&w->server, "DELETED\r\nSERVER_ERROR out of memory writing get response\r\nEND\r\n");
    expect(w, &p[0], BE_ANSWERED, "DELETED");
    expect(w, &p[1], BE_LOST, "backend fake: connection lost, outcome unknown");
    expect(w, &p[2], BE_LOST, "backend fake: connection lost");
    expect(w, &p[3], BE_LOST, "backend fake: connection lost");
    assert_int_equal(metric_get(&w->metrics, METRIC_outcomes_unknown), 1);
}

static void the_same_error_alone_is_an_answer(void **state)
{
    struct fake_world *w = *state;
    struct probe p[2] = {0};
    submit(w, &p[0], "mg a v\r\n");
    fake_until_got(w, 8);
    submit(w, &p[1], "get b c\r\n"); /* cannot have been read before the answer */
    fake_say(&w->server, "SERVER_ERROR out of memory writing get response\r\n");
    fake_events(w);
    expect(w, &p[0], BE_ANSWERED, "SERVER_ERROR out of memory writing get response");
    fake_until_got(w, 17);
    fake_say(&w->server, "END\r\n");
    expect(w, &p[1], BE_ANSWERED, "END");
}

static void a_route_is_the_connection_that_the_key_has(void **state)
{
    struct fake_world *w = *state;
    static struct slice keys[100];
    static char texts[100][8];
    size_t routes[100];
    bool used[3] = {false};
    pool_destroy(&w->pool);
    w->config.connections = 3;
    fake_pool_create(w);
    assert_int_equal(pool_route_count(w->pool), 3);
    for (size_t i = 0; i < 100; i++) {
        int len = snprintf(texts[i], sizeof texts[i], "key%zu", i);
        keys[i] = slice_make(texts[i], (size_t)len);
    }
    pool_routes(w->pool, keys, 100, routes);
    for (size_t i = 0; i < 100; i++) {
        size_t again;
        assert_in_range(routes[i], 0, 2);
        used[routes[i]] = true;
        pool_routes(w->pool, &keys[i], 1, &again);
        assert_int_equal(routes[i], again);
    }
    assert_true(used[0] && used[1] && used[2]);
    /* The fake serves one connection at a time: requests that share it go out in order. */
    struct probe by_key = {0}, by_route = {0};
    by_key.x = (struct exchange){
        .op = {.verb = BE_LINE_READ, .line = SLICE_LIT("mn\r\n"), .form = {.meta = 'n'}},
        .done = on_done,
        .owner = &by_key};
    pool_submit(w->pool, keys[0], &by_key.x);
    by_route.x = by_key.x;
    by_route.x.owner = &by_route;
    pool_submit_on(w->pool, routes[0], &by_route.x);
    fake_until_got(w, 8);
    fake_say(&w->server, "MN\r\nMN\r\n");
    expect(w, &by_key, BE_ANSWERED, "MN");
    expect(w, &by_route, BE_ANSWERED, "MN");
    assert_int_equal(w->server.accepted, 1);
}

/* Bytes count until they are sent; a larger request is taken when no other waits. */
static void the_queue_has_a_limit_in_bytes(void **state)
{
    struct fake_world *w = *state;
    struct probe p[4] = {0};
    struct block *value = block_new(100002);
    memset(value->data, 'x', 100000);
    memcpy(value->data + 100000, "\r\n", 2);
    value->used = 100002;
    w->config.max_pending_bytes = 90000;
    for (size_t i = 0; i < 3; i++) {
        p[i].x.op.value = slice_make(value->data, 100002);
        p[i].x.op.block = value;
        submit(w, &p[i], "set key 0 0 100000\r\n");
    }
    expect(w, &p[1], BE_DOWN, "backend fake: queue full");
    expect(w, &p[2], BE_DOWN, "backend fake: queue full");
    fake_until_got(w, 100022);
    fake_say(&w->server, "STORED\r\n");
    expect(w, &p[0], BE_ANSWERED, "STORED");
    submit(w, &p[3], "mg key v\r\n");
    fake_until_got(w, 100032);
    fake_say(&w->server, "EN\r\n");
    expect(w, &p[3], BE_ANSWERED, "EN");
    block_unref(&value);
}

int main(void)
{
#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        POOL_TEST(values_come_one_by_one_before_the_end),
        POOL_TEST(the_queue_has_a_limit_in_bytes),
        POOL_TEST(a_connection_that_ends_between_values_keeps_what_came),
        POOL_TEST(errors_in_place_of_the_rest_leave_the_connection_in_step),
        POOL_TEST(garbage_between_values_ends_the_connection),
        POOL_TEST(a_value_that_does_not_fit_ends_the_connection),
        POOL_TEST(answers_dropped_for_want_of_memory_are_not_guessed),
        POOL_TEST(the_same_error_alone_is_an_answer),
        POOL_TEST(a_route_is_the_connection_that_the_key_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
