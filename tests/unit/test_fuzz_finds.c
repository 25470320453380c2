/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fuzzing has found (tests/fuzz): servers that say what no memcached says, heads that no proxy
 * writes, configuration files that are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "support_engine.h"
#include "support_list.h"

#define FIRST_RUN "aaaaaaaaaaaaa"

/* What the server said of itself. */
static struct be_caps caps;

static int setup(void **state)
{
    caps = (struct be_caps){.item_size_max = 1 << 20, .cas_enabled = true, .server_name = "test"};
    return script_setup(state);
}

/* Answers a read with that value. */
static void answer_value(struct script *s, struct list_request *request, struct slice value)
{
    struct be_reply reply = {.status = BE_HIT, .cas = 7, .epoch = 1, .ttl_s = -1, .caps = &caps};
    reply.block = block_of(value);
    reply.value = slice_make(reply.block->data, reply.block->used);
    reply.size_bytes = value.len;
    engine_reply(s->rig.engine, request, &reply, s->rig.now);
    block_unref(&reply.block);
}

/* Answers a read of the head with value, all else with STORED; there are no sublists. */
static void answer(struct script *s, struct list_request *request, struct slice value)
{
    bool head = request->key[request->be.key.len - 1] == '#';
    if (request->be.verb == BE_GET && head) {
        answer_value(s, request, value);
        return;
    }
    struct be_reply reply = {.status = request->be.verb == BE_GET ? BE_MISS : BE_STORED,
                             .cas = 7,
                             .epoch = 1,
                             .caps = &caps};
    engine_reply(s->rig.engine, request, &reply, s->rig.now);
}

/* The same until nothing is asked any more. */
static void answer_all(struct script *s, struct slice value)
{
    struct list_request *request;
    for (int i = 0; i < 1000; i++) {
        (void)engine_run(s->rig.engine, s->rig.now);
        if ((request = engine_take_request(s->rig.engine)) == NULL) {
            return;
        }
        answer(s, request, value);
    }
}

/* The server is down: no request is sent, until nothing is asked any more. */
static void answer_down(struct script *s)
{
    struct list_request *request;
    (void)engine_run(s->rig.engine, s->rig.now);
    while ((request = engine_take_request(s->rig.engine)) != NULL) {
        struct be_reply down = {.status = BE_DOWN, .text = "down, nothing done"};
        engine_reply(s->rig.engine, request, &down, s->rig.now);
        (void)engine_run(s->rig.engine, s->rig.now);
    }
}

/* memcached takes no -I below 1k. A server that claims less must not make the proxy divide by
 * nothing: 28 bytes are twice a sublist's header. */
static void test_server_that_claims_tiny_items(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].log_limit_bytes = 4;
    for (caps.item_size_max = 1; caps.item_size_max < 64; caps.item_size_max++) {
        script_submit(s, LIST_COMPACT, NULL, 0);
        for (int i = 0; i < 1000 && engine_take_done(s->rig.engine) == NULL; i++) {
            answer_all(s, SLICE_LIT("^1\n+1:a+1:b"));
            s->rig.now.mono_us += 10000;
        }
        assert_false(engine_busy(s->rig.engine));
    }
}

/* The change waits for a delay only, no operation is under way: that is busy all the same. */
static void test_engine_is_busy_while_a_change_is_held_back(void **state)
{
    struct script *s = *state;
    struct list_call read = {.verb = LIST_LEN};
    struct slice item = SLICE_LIT("x");
    s->rig.config->lists[0].log_limit_bytes = 4;
    s->rig.config->lists[0].log_hard_limit_bytes = 16;
    read.key = SLICE_LIT("k");
    read.policy = &s->rig.config->lists[0];
    read.session = &s->session;
    chain_init(&read.answer);
    engine_submit(s->rig.engine, &read, s->rig.now);
    (void)engine_run(s->rig.engine, s->rig.now);
    answer(s, engine_take_request(s->rig.engine), SLICE_LIT("^1\n+2:ab+2:ab+2:ab"));
    answer_down(s); /* a compaction */
    assert_ptr_equal(engine_take_done(s->rig.engine), &read);

    /* No room in the log: the head's size is looked at, and after a pause again. */
    script_submit(s, LIST_ADD, &item, 1);
    (void)engine_run(s->rig.engine, s->rig.now);
    answer_down(s);
    assert_null(engine_take_done(s->rig.engine));
    assert_true(engine_busy(s->rig.engine));
}

/* A header of some kilobytes may name billions of sublists. lstat looks which are in the cache, but
 * the other clients of the worker must not wait for minutes. */
static void test_lstat_of_billions_of_sublists_ends(void **state)
{
    struct script *s = *state;
    struct block *head = block_new(64 << 10);
    block_append(&head, "^1", 2);
    for (int i = 0; i < 1000; i++) {
        block_append(&head, " " FIRST_RUN ".9999999:169999983:1", 14 + 20);
    }
    block_append(&head, "\n!0:", 4);
    script_submit(s, LIST_STAT, NULL, 0);
    alarm(30); /* ends the program */
    answer_all(s, slice_make(head->data, head->used));
    alarm(0);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_int_equal(s->call.status, LIST_OK);
    assert_int_equal(s->call.stat.sublists, 9999999000);
    block_unref(&head);
}

/* A head that names a run twice, side by side, is none that a view can be made of. It is read in
 * the other way. */
static void test_run_named_twice_is_read(void **state)
{
    struct script *s = *state;
    struct list_request *request;
    script_submit(s, LIST_LEN, NULL, 0);
    alarm(10); /* ends the program */
    for (int i = 0; i < 100 && engine_take_done(s->rig.engine) == NULL; i++) {
        (void)engine_run(s->rig.engine, s->rig.now);
        while ((request = engine_take_request(s->rig.engine)) != NULL) {
            bool head = request->key[request->be.key.len - 1] == '#';
            answer_value(s, request,
                         head ? SLICE_LIT("^1 " FIRST_RUN ".1:18:1 " FIRST_RUN ".1:18:1\n")
                              : SLICE_LIT("^1 0000000001\n+1:a"));
        }
    }
    alarm(0);
    assert_int_equal(s->call.status, LIST_OK);
    assert_int_equal(s->call.number, 1);
}

/* Writes bytes to a file in memory and loads it; the error must be printable. */
static void assert_printable_error(struct slice bytes)
{
    char path[64], error[CONFIG_ERROR_MAX];
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.p, bytes.len), bytes.len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct config *config = config_create();
    if (config_load(config, path, error) == 0) {
        assert_int_equal(config_finish(config, error), -1);
    }
    for (const char *p = error; *p != '\0'; p++) {
        assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
    }
    config_destroy(&config);
    close(fd);
}

/* What a file holds may be repeated in an error, but not as it is: terminals obey some bytes. */
static void test_config_errors_hold_no_control_bytes(void **state)
{
    (void)state;
    assert_printable_error(SLICE_LIT("a\x1b"
                                     "b = 1\n"));
    assert_printable_error(SLICE_LIT("[proxy]\npool = a\x1b"
                                     "b\n"));
    assert_printable_error(SLICE_LIT("[proxy]\nlisten = unix:/a\x1b, unix:/a\x1b\n"));
    assert_printable_error(SLICE_LIT("[pool p]\nservers = unix:/a\x1b, unix:/a\x1b\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_server_that_claims_tiny_items, setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_engine_is_busy_while_a_change_is_held_back, setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_lstat_of_billions_of_sublists_ends, setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_run_named_twice_is_read, setup, script_teardown),
        cmocka_unit_test(test_config_errors_hold_no_control_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
