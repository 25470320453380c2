/* SPDX-License-Identifier: BSD-3-Clause */
/* Filling on condition that the list is still of a version, with content that becomes a run: the
 * announcement is no change of the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "list/format/head.h"
#include "support_engine.h"

#define OLD "^1\n+1:a"
#define ITEMS 20
#define ITEM_BYTES 1000

/* More than half of the log's limit takes. */
static void submit(struct script *s)
{
    static char texts[ITEMS][ITEM_BYTES];
    static struct slice items[ITEMS];
    for (size_t i = 0; i < ITEMS; i++) {
        memset(texts[i], 'a' + (char)i, ITEM_BYTES);
        items[i] = slice_make(texts[i], ITEM_BYTES);
    }
    s->call.condition = LIST_IF_VERSION;
    s->call.expected = head_version(7, SLICE_LIT(OLD));
    script_submit(s, LIST_PUT, items, ITEMS);
}

/* The announcement comes behind the old content and what others have appended since. head, of 200
 * bytes, is what the list's head is then. Returns the request that writes the run. */
static struct be_request *announce(struct script *s, const char *others, char *head)
{
    script_expect(s, BE_GET, "k#", BE_HIT, OLD);
    struct be_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    (void)snprintf(head, 200, OLD "%s%.*s", others, SLICE_ARGS(append->value));
    rig_answer(&s->rig, append, BE_STORED, NULL, -1);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct be_request *add = engine_take_request(s->rig.engine);
    while (add == NULL) {
        (void)engine_run(s->rig.engine, s->rig.now);
        add = engine_take_request(s->rig.engine);
    }
    assert_int_equal(add->verb, BE_ADD);
    return add;
}

static void write_run(struct script *s, const char *others, char *head)
{
    rig_answer(&s->rig, announce(s, others, head), BE_STORED, NULL, -1);
}

static void test_the_announcement_is_no_change(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    write_run(s, "", head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

static void test_what_others_append_before_it_is_one(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    write_run(s, "+1:b", head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_int_equal(s->call.status, LIST_EXISTS);
}

static void test_what_others_append_behind_it_is_one(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    write_run(s, "", head);
    (void)strncat(head, "+1:b", sizeof head - strlen(head) - 1);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_int_equal(s->call.status, LIST_EXISTS);
}

static void test_a_server_without_room_is_called_that(void **state)
{
    struct script *s = *state;
    char head[200];
    submit(s);
    rig_answer(&s->rig, announce(s, "", head), BE_NO_MEMORY, NULL, -1);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_string_equal(s->call.error, "backend out of memory");
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_out_of_memory), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_the_announcement_is_no_change),
        script_test(test_what_others_append_before_it_is_one),
        script_test(test_what_others_append_behind_it_is_one),
        script_test(test_a_server_without_room_is_called_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
