/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool before a memcached that has no meta commands, or is another one after the next connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_probe.h"

#define OLD "VERSION 1.5.22\r\n"
#define NEW "VERSION 1.6.45\r\n"

/* Submits an operation of that verb on the key "key". */
static void ask(struct fake_world *w, struct probe *p, enum be_verb verb, const char *value)
{
    *p = (struct probe){0};
    submit_operation(w, p, verb, value);
}

static void expect_got(struct fake_world *w, const char *text)
{
    fake_until_got(w, strlen(text));
    assert_string_equal(w->server.got, text);
    fake_forget(&w->server);
}

static void operations_have_their_classic_forms(void **state)
{
    struct fake_world *w = *state;
    struct probe p[6];
    w->server.version = OLD;
    fake_pool_create(w);
    ask(w, &p[0], BE_GET, NULL);
    ask(w, &p[1], BE_APPEND, "value");
    ask(w, &p[2], BE_SIZE, NULL);
    ask(w, &p[3], BE_PROBE, NULL);
    ask(w, &p[4], BE_DELETE, NULL);
    ask(w, &p[5], BE_FETCH, NULL);
    expect_got(w, "gets key\r\nappend key 0 0 5\r\nvalue\r\ngets key\r\nget key\r\ndelete key\r\n"
                  "get key\r\n");
    fake_say(&w->server, "END\r\nNOT_STORED\r\nVALUE key 0 2 8\r\nab\r\nEND\r\n"
                         "VALUE key 0 2\r\nab\r\nEND\r\nDELETED\r\nEND\r\n");
    expect_end(w, &p[0], BE_MISS, "");
    expect_end(w, &p[1], BE_NOT_STORED, "");
    expect_end(w, &p[2], BE_HIT, "");
    expect_end(w, &p[3], BE_HIT, "");
    expect_end(w, &p[4], BE_DELETED, "");
    expect_end(w, &p[5], BE_MISS, "");
    assert_true(p[0].no_times);
}

/* Both where the version is known by then, and where it is not. */
static void what_it_cannot_do_is_refused_and_not_sent(void **state)
{
    struct fake_world *w = *state;
    struct probe p[2];
    w->server.version = "VERSION 1.6.9\r\n";
    fake_pool_create(w);
    for (int i = 0; i < 2; i++) {
        struct probe meta = {.x.op.value = SLICE_LIT("a\r\n")};
        submit(w, &meta, "ms key 1\r\n");
        ask(w, &p[0], BE_TIME, NULL);
        ask(w, &p[1], BE_DELETE, NULL);
        expect_end(w, &meta, BE_REFUSED,
                   "backend fake: memcached before 1.6.10 has no meta commands");
        expect_end(w, &p[0], BE_REFUSED,
                   "backend fake: memcached before 1.6.10 tells no times to live");
        expect_got(w, "delete key\r\n");
        fake_say(&w->server, "DELETED\r\n");
        expect_end(w, &p[1], BE_DELETED, "");
    }
    assert_int_equal(w->server.accepted, 1);
    assert_int_equal(metric_get(&w->metrics, METRIC_backend_errors), 0);
}

/* The connection is lost, and what comes next has another version. */
static void change_version(struct fake_world *w, const char *version)
{
    w->server.version = version;
    fake_hang_up(&w->server);
    fake_events(w);
}

static void what_waits_while_the_version_changes_is_encoded_anew(void **state)
{
    struct fake_world *w = *state;
    struct probe p[4], line = {.x.op.value = SLICE_LIT("abc\r\n")};
    w->server.version = NEW;
    fake_pool_create(w);
    warm_up(w);
    for (int i = 0; i < 4; i++) {
        bool old = i % 2 == 0;
        change_version(w, old ? OLD : NEW);
        line = (struct probe){.x.op.value = SLICE_LIT("abc\r\n")};
        ask(w, &p[0], BE_GET, NULL);
        ask(w, &p[1], BE_APPEND, "value");
        submit(w, &line, "set key 0 0 3\r\n");
        ask(w, &p[2], BE_SIZE, NULL);
        ask(w, &p[3], BE_TIME, NULL);
        expect_got(w, old ? "gets key\r\nappend key 0 0 5\r\nvalue\r\nset key 0 0 3\r\nabc\r\n"
                            "gets key\r\n"
                          : "mg key k v f c t\r\nappend key 0 0 5\r\nvalue\r\n"
                            "set key 0 0 3\r\nabc\r\nmg key k s c\r\nmg key k t c\r\n");
        fake_say(&w->server, old ? "END\r\nSTORED\r\nSTORED\r\nEND\r\n"
                                 : "EN\r\nSTORED\r\nSTORED\r\nEN\r\nEN\r\n");
        expect_end(w, &p[0], BE_MISS, "");
        expect_end(w, &p[1], BE_STORED, "");
        expect_answer(w, &line, "STORED");
        expect_end(w, &p[2], BE_MISS, "");
        fake_until(w, &p[3].done);
        assert_int_equal(p[3].status, old ? BE_REFUSED : BE_MISS);
        assert_int_equal(p[0].no_times, old);
    }
}

static void a_stray_answer_costs_the_connection(void **state)
{
    struct fake_world *w = *state;
    static const char *const answers[] = {
        "VALUE kez 0 1 5\r\na\r\nEND\r\n",
        "STORED\r\n",
        "VALUE key 0 1 5\r\na\r\nSTORED\r\n",
        "SERVER_ERROR out of memory writing get response\r\n",
    };
    w->server.version = OLD;
    fake_pool_create(w);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct probe p, behind;
        ask(w, &p, BE_DELETE, NULL);
        expect_got(w, "delete key\r\n");
        fake_say(&w->server, "DELETED\r\n");
        expect_end(w, &p, BE_DELETED, "");
        ask(w, &p, BE_GET, NULL);
        ask(w, &behind, BE_APPEND, "a");
        expect_got(w, "gets key\r\nappend key 0 0 1\r\na\r\n");
        fake_say(&w->server, answers[i]);
        fake_until(w, &p.done);
        assert_int_equal(p.status, BE_LOST);
        expect_end(w, &behind, BE_LOST, "backend fake: connection lost, outcome unknown");
        assert_int_equal(w->server.accepted, i + 1);
    }
}

/* A refused value was read by the server, and is not run. */
static void a_value_too_large_keeps_the_stream_in_step(void **state)
{
    struct fake_world *w = *state;
    struct probe p[2];
    w->server.version = OLD;
    fake_pool_create(w);
    ask(w, &p[0], BE_ADD, "flush_all");
    ask(w, &p[1], BE_GET, NULL);
    fake_until_got(w, 30);
    fake_say(&w->server, "SERVER_ERROR object too large for cache\r\nEND\r\n");
    expect_end(w, &p[0], BE_TOO_LARGE, "");
    expect_end(w, &p[1], BE_MISS, "");
}

int main(void)
{
#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, probe_setup, probe_teardown)
    const struct CMUnitTest tests[] = {
        POOL_TEST(operations_have_their_classic_forms),
        POOL_TEST(what_it_cannot_do_is_refused_and_not_sent),
        POOL_TEST(what_waits_while_the_version_changes_is_encoded_anew),
        POOL_TEST(a_stray_answer_costs_the_connection),
        POOL_TEST(a_value_too_large_keeps_the_stream_in_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
