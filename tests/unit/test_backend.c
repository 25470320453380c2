/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_fake_server.h"

/* What came back for a request. */
struct outcome {
    bool done;
    struct be_reply reply;
    char value[64];
    char text[200];
};

/* Exchanges of one test. */
#define EXCHANGES_MAX 4

struct bench {
    struct fake_world world;
    struct exchange exchanges[EXCHANGES_MAX]; /* made by the test */
    size_t exchange_count;
};

static void on_done(struct exchange *x, const struct be_reply *reply)
{
    struct outcome *o = x->owner;
    assert_false(o->done);
    o->done = true;
    o->reply = *reply;
    snprintf(o->value, sizeof o->value, "%.*s", SLICE_ARGS(reply->value));
    snprintf(o->text, sizeof o->text, "%s", reply->text != NULL ? reply->text : "");
}

static int setup(void **state)
{
    static struct bench b;
    b.exchange_count = 0;
    fake_world_init(&b.world);
    fake_pool_create(&b.world);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    fake_world_fini(&b->world);
    return 0;
}

/* As the list engine's are. */
static struct exchange *make(struct bench *b, enum be_verb verb)
{
    assert_true(b->exchange_count < EXCHANGES_MAX);
    struct exchange *x = &b->exchanges[b->exchange_count++];
    *x = (struct exchange){
        .op = {.verb = verb, .key = SLICE_LIT("fruit"), .time_optional = true},
        .needs_cas = true,
        .done = on_done,
    };
    return x;
}

static void submit(struct bench *b, struct exchange *x, struct outcome *o)
{
    *o = (struct outcome){0};
    x->owner = o;
    pool_submit(b->world.pool, x->op.key, x);
}

/* Sends the operation, sees that it arrives as sent, answers, and waits for the outcome. */
static void converse(struct bench *b, struct exchange *x, const char *sent, const char *answer,
                     struct outcome *o)
{
    struct fake_world *w = &b->world;
    submit(b, x, o);
    fake_until_got(w, strlen(sent));
    assert_string_equal(w->server.got, sent);
    fake_forget(&w->server);
    fake_say(&w->server, answer);
    fake_until(w, &o->done);
}

static void a_head_is_read_and_replaced(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *get = make(b, BE_GET);
    converse(b, get, "mg fruit k v f c t\r\n", "VA 4 kfruit f9 c77 t-1\r\npear\r\n", &o);
    assert_int_equal(o.reply.status, BE_HIT);
    assert_string_equal(o.value, "pear");
    assert_true(o.reply.flags == 9 && o.reply.cas == 77 && o.reply.ttl_s == -1);
    assert_true(o.reply.epoch != 0);
    assert_int_equal(o.reply.caps->item_size_max, 1048576);
    assert_true(o.reply.caps->cas_enabled);
    assert_string_equal(o.reply.caps->server_name, "fake");

    struct exchange *cas = make(b, BE_CAS);
    cas->op.cas = o.reply.cas;
    cas->op.epoch = o.reply.epoch;
    cas->op.block = block_new(5);
    memcpy(cas->op.block->data, "apple", 5);
    cas->op.block->used = 5;
    cas->op.value = slice_make(cas->op.block->data, 5);
    converse(b, cas, "cas fruit 0 0 5 77\r\napple\r\n", "STORED\r\n", &o);
    assert_int_equal(o.reply.status, BE_STORED);
    block_unref(&cas->op.block);

    struct exchange *remove = make(b, BE_CAS_DELETE);
    remove->op.cas = 78;
    remove->op.epoch = cas->op.epoch;
    converse(b, remove, "cas fruit 0 -1 0 78\r\n\r\n", "EXISTS\r\n", &o);
    assert_int_equal(o.reply.status, BE_EXISTS);
}

static void an_empty_append_still_has_its_line_end(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *append = make(b, BE_APPEND);
    converse(b, append, "append fruit 0 0 0\r\n\r\n", "NOT_STORED\r\n", &o);
    assert_int_equal(o.reply.status, BE_NOT_STORED);
}

static void a_cas_number_of_an_old_connection_counts_as_changed(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *get = make(b, BE_GET);
    converse(b, get, "mg fruit k v f c t\r\n", "VA 1 kfruit f0 c1 t-1\r\nx\r\n", &o);
    struct exchange *cas = make(b, BE_CAS);
    cas->op.cas = o.reply.cas;
    cas->op.epoch = o.reply.epoch;
    fake_hang_up(&b->world.server);
    fake_for_ms(&b->world, 20);
    submit(b, cas, &o);
    fake_until(&b->world, &o.done);
    assert_int_equal(o.reply.status, BE_EXISTS);
}

static void refusals_carry_the_servers_words(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *delete = make(b, BE_DELETE);
    converse(b, delete, "delete fruit\r\n", "CLIENT_ERROR not today\r\n", &o);
    assert_int_equal(o.reply.status, BE_REFUSED);
    assert_string_equal(o.text, "backend fake: CLIENT_ERROR not today");
    struct exchange *append = make(b, BE_APPEND);
    converse(b, append, "append fruit 0 0 0\r\n\r\n",
             "SERVER_ERROR out of memory storing object\r\n", &o);
    assert_int_equal(o.reply.status, BE_NO_MEMORY);
}

/* The connection stays, and with it the CAS numbers read on it. */
static void where_no_number_stands_nothing_is_counted(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *incr = make(b, BE_INCR);
    incr->op.delta = 2;
    converse(b, incr, "incr fruit 2\r\n", "44\r\n", &o);
    assert_true(o.reply.status == BE_STORED && o.reply.number == 44);
    uint64_t epoch = o.reply.epoch;
    converse(b, incr, "incr fruit 2\r\n",
             "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", &o);
    assert_int_equal(o.reply.status, BE_REFUSED);
    assert_string_equal(o.text, "backend fake: CLIENT_ERROR cannot increment or decrement "
                                "non-numeric value");
    converse(b, incr, "incr fruit 2\r\n", "NOT_FOUND\r\n", &o);
    assert_int_equal(o.reply.status, BE_NOT_FOUND);
    assert_true(o.reply.epoch == epoch);
    assert_int_equal(b->world.server.accepted, 1);
}

static void a_lost_incr_may_have_counted(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *incr = make(b, BE_INCR);
    submit(b, incr, &o);
    fake_until_got(&b->world, strlen("incr fruit 0\r\n"));
    fake_hang_up(&b->world.server);
    fake_until(&b->world, &o.done);
    assert_int_equal(o.reply.status, BE_LOST);
    assert_int_equal(metric_get(&b->world.metrics, METRIC_outcomes_unknown), 1);
}

/* Its client has heard, at its deadline, what the lost answer tells. */
static void what_was_told_already_is_not_counted_again(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    bool told = false;
    struct exchange *incr = make(b, BE_INCR);
    incr->told_there = &told;
    submit(b, incr, &o);
    fake_until_got(&b->world, strlen("incr fruit 0\r\n"));
    told = true;
    fake_hang_up(&b->world.server);
    fake_until(&b->world, &o.done);
    assert_int_equal(o.reply.status, BE_LOST);
    assert_int_equal(metric_get(&b->world.metrics, METRIC_outcomes_unknown), 0);
}

static void an_answer_to_another_question_is_no_answer(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct outcome next;
    struct exchange *delete = make(b, BE_DELETE);
    struct exchange *get = make(b, BE_GET);
    submit(b, delete, &o);
    submit(b, get, &next);
    fake_until_got(&b->world, 32);
    fake_say(&b->world.server, "EN\r\nDELETED\r\n");
    fake_until(&b->world, &next.done);
    assert_int_equal(o.reply.status, BE_LOST);
    assert_string_equal(o.text, "backend fake: unexpected answer, outcome unknown");
    assert_int_equal(next.reply.status, BE_LOST);
    assert_int_equal(metric_get(&b->world.metrics, METRIC_outcomes_unknown), 1);
}

static void a_server_that_is_away_is_down(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *get = make(b, BE_GET);
    fake_stop(&b->world.server);
    submit(b, get, &o);
    assert_false(o.done);
    fake_until(&b->world, &o.done);
    assert_int_equal(o.reply.status, BE_DOWN);
    assert_string_equal(o.text, "backend fake down");
    assert_null(o.reply.caps);
}

static void without_cas_lists_are_refused(void **state)
{
    struct bench *b = *state;
    struct outcome o;
    struct exchange *append = make(b, BE_APPEND);
    b->world.server.settings = "STAT cas_enabled no\r\nEND\r\n";
    submit(b, append, &o);
    fake_until(&b->world, &o.done);
    assert_int_equal(o.reply.status, BE_DOWN);
    assert_string_equal(o.text, "backend fake: runs without CAS (-C): start it without -C");
}

int main(void)
{
#define BACKEND_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        BACKEND_TEST(a_head_is_read_and_replaced),
        BACKEND_TEST(an_empty_append_still_has_its_line_end),
        BACKEND_TEST(a_cas_number_of_an_old_connection_counts_as_changed),
        BACKEND_TEST(refusals_carry_the_servers_words),
        BACKEND_TEST(where_no_number_stands_nothing_is_counted),
        BACKEND_TEST(a_lost_incr_may_have_counted),
        BACKEND_TEST(what_was_told_already_is_not_counted_again),
        BACKEND_TEST(an_answer_to_another_question_is_no_answer),
        BACKEND_TEST(a_server_that_is_away_is_down),
        BACKEND_TEST(without_cas_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
