/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists in two logs: lsets, and changes of a list that is full, while others fold it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support_engine.h"

#define LOG "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y-y"
/* Another proxy's, of the first 42 bytes of LOG. */
#define COPY_IN_THE_MAKING \
    "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+x+@42:8a55951ff349e39d-@42:8a55951ff349e39d"
#define NUMBER "+@0:1111111111111111-@0:1111111111111111"
/* Of a log that is gone. */
#define OLD_COPY \
    "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+x+y+@59:943e53c4bf3be66d-@59:943e53c4bf3be66d"

static void submit(struct script *s, enum list_dialect dialect, enum list_verb verb,
                   const char *text)
{
    static struct slice item;
    item = slice_of(text);
    s->rig.config->lists[0].dialect = dialect;
    s->rig.config->lists[0].key_bytes_max = LIST_KEY_BYTES_MAX;
    script_submit(s, verb, &item, 1);
}

/* Checks what is written, keeps its text, and answers. */
static void take_write(struct script *s, struct list_request *r, enum be_verb verb, const char *key,
                       char text[300], enum be_status status)
{
    assert_int_equal(r->be.verb, verb);
    assert_true(slice_equal(r->be.key, slice_of(key)));
    (void)snprintf(text, 300, "%.*s", SLICE_ARGS(r->be.value));
    rig_answer(&s->rig, r, status, NULL, -1);
}

static void end_there(struct script *s, struct list_request *r)
{
    rig_answer(&s->rig, r, BE_EXISTS, NULL, -1);
}

/* ---- lset over a log that may be active by then ---- */

/* An lset takes k.b for another proxy's copy in the making of k.a. When it has written that over, a
 * look finds that it is active, with this beside it. Returns the next write. */
static struct list_request *set_in_what_is_active(struct script *s, const char *a)
{
    char copy[300];
    submit(s, DIALECT_FLIP, LIST_SET, "v");
    take_write(s, script_next_write(s, LOG, COPY_IN_THE_MAKING, "k.a"), BE_CAS, "k.b", copy,
               BE_STORED);
    return script_next_write(s, a, copy, "k.b");
}

/* Another proxy has made it active behind the lset: it has not taken over what came late yet. */
static void test_a_set_that_another_made_active_is_done(void **state)
{
    struct script *s = *state;
    struct list_request *r = set_in_what_is_active(s, LOG);
    script_expect_answer(s, LIST_OK);
    end_there(s, r);
}

/* Or before that: then it may have copied what the lset was written over, and be about to make k.a
 * active. */
static void test_a_set_in_the_active_log_is_not_done(void **state)
{
    struct script *s = *state;
    struct list_request *r = set_in_what_is_active(s, OLD_COPY);
    assert_null(engine_take_done(s->rig.engine));
    end_there(s, r);
}

/* The same, and it has not copied it yet. The items go where the copy would, and count from then
 * on that k.a is active. */
static void test_a_set_in_the_active_log_goes_into_the_other_one(void **state)
{
    struct script *s = *state;
    struct list_request *r = set_in_what_is_active(s, "");
    assert_int_equal(r->be.verb, BE_CAS);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.a")));
    end_there(s, r);
}

/* The copy may be made active by another proxy, whatever the pool says of the write behind it. */
static void test_a_set_whose_switch_is_not_sent_is_unknown(void **state)
{
    struct script *s = *state;
    struct be_reply reply = {.status = BE_DOWN, .text = "backend fake: timeout, not sent"};
    char copy[300];
    submit(s, DIALECT_FLIP, LIST_SET, "v");
    take_write(s, script_next_write(s, LOG, "", "k.a"), BE_CAS, "k.b", copy, BE_STORED);
    struct list_request *r = script_next_write(s, LOG, copy, "k.a");
    engine_reply(s->rig.engine, r, &reply, s->rig.now);
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error, "backend fake: timeout, outcome unknown");
}

/* ---- a list that is full ---- */

/* Takes the append of a change: it has no room. */
static void refuse_append(struct script *s, const char *a, const char *b)
{
    char text[300];
    take_write(s, script_next_write(s, a, b, "k.a"), BE_APPEND, "k.a", text, BE_TOO_LARGE);
}

/* k.a is active, and what came late to k.b has no room beside what it holds. text: what is written
 * over k.a then, and stored. */
static void expect_write_over(struct script *s, char text[300])
{
    char late[300];
    take_write(s, script_next_write(s, OLD_COPY, "+late", "k.a"), BE_CAS, "k.b", late, BE_STORED);
    take_write(s, script_next_write(s, OLD_COPY, late, "k.a"), BE_CAS, "k.a", text, BE_TOO_LARGE);
    assert_non_null(strstr(text, "+late"));
    take_write(s, script_next_write(s, OLD_COPY, late, "k.a"), BE_CAS, "k.a", text, BE_STORED);
    script_expect_answer(s, LIST_OK);
    end_there(s, script_next_write(s, text, late, "k.a"));
}

/* What came late is replaced, too: it need not be taken over before. */
static void test_a_set_needs_no_room_for_what_came_late(void **state)
{
    struct script *s = *state;
    char text[300];
    submit(s, DIALECT_FLIP, LIST_SET, "v");
    expect_write_over(s, text);
    assert_non_null(strstr(text, "+v"));
    assert_null(strstr(text, "+x"));
    assert_null(strstr(text, "+late"));
}

static void test_a_deletion_makes_room_for_what_came_late(void **state)
{
    struct script *s = *state;
    char text[300];
    submit(s, DIALECT_FLIP, LIST_DEL, "x");
    refuse_append(s, OLD_COPY, "+late");
    expect_write_over(s, text);
    assert_non_null(strstr(text, "+y+late"));
    assert_null(strstr(text, "+x"));
}

/* A note about a log without a number is about the same entries, too, when they come late once
 * more; and another proxy may be about to give it one. A list that has no room for some writes has
 * it for others. */
static void test_a_log_gets_a_number_before_it_is_replaced(void **state)
{
    struct script *s = *state;
    char text[300];
    submit(s, DIALECT_FLIP, LIST_SET, "v");
    take_write(s, script_next_write(s, OLD_COPY, NUMBER "+late", "k.a"), BE_CAS, "k.a", text,
               BE_TOO_LARGE);
    take_write(s, script_next_write(s, OLD_COPY, "+again", "k.a"), BE_CAS, "k.b", text, BE_STORED);
    assert_int_equal(strncmp(text, "+@0:", 4), 0);
    take_write(s, script_next_write(s, OLD_COPY, text, "k.a"), BE_CAS, "k.a", text, BE_STORED);
    script_expect_answer(s, LIST_OK);
    end_there(s, script_next_write(s, text, NUMBER "+again", "k.a"));
}

/* k.b itself is that full. */
static void test_a_log_without_room_for_a_number_is_replaced_all_the_same(void **state)
{
    struct script *s = *state;
    char text[300];
    submit(s, DIALECT_FLIP, LIST_SET, "v");
    take_write(s, script_next_write(s, OLD_COPY, "+late", "k.a"), BE_CAS, "k.b", text,
               BE_TOO_LARGE);
    take_write(s, script_next_write(s, OLD_COPY, "+late", "k.a"), BE_CAS, "k.a", text,
               BE_TOO_LARGE);
    take_write(s, script_next_write(s, OLD_COPY, "+late", "k.a"), BE_CAS, "k.a", text, BE_STORED);
    script_expect_answer(s, LIST_OK);
    end_there(s, script_next_write(s, text, "+late", "k.a"));
}

/* k.b may have been k.a's copy, which another proxy makes active yet: no lset behind that shows. */
static void test_a_set_is_not_written_over_beside_an_old_copy(void **state)
{
    static const char other[] = NUMBER "+late"
                                       "+@62:2222222222222222-@62:2222222222222222";
    struct script *s = *state;
    char text[300];
    submit(s, DIALECT_FLIP, LIST_SET, "v");
    for (unsigned tries = 0; tries < 2; tries++) {
        take_write(s, script_next_write(s, OLD_COPY, other, "k.a"), BE_CAS, "k.a", text,
                   BE_TOO_LARGE);
        assert_non_null(strstr(text, "+late"));
    }
    script_expect_answer(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error,
                        "backend has no room for this list in one item, nothing done");
}

/* Where the list has no room for the sign of a deletion, its copy goes without the item. */
static void test_a_deletion_of_a_full_list_is_made_in_the_copy(void **state)
{
    struct script *s = *state;
    char text[300], pointer[300];
    submit(s, DIALECT_FLIP, LIST_DEL, "x");
    refuse_append(s, OLD_COPY, "");
    take_write(s, script_next_write(s, OLD_COPY, "", "k.a"), BE_CAS, "k.b", text, BE_STORED);
    assert_non_null(strstr(text, "+y"));
    assert_null(strstr(text, "+x"));
    take_write(s, script_next_write(s, OLD_COPY, text, "k.a"), BE_CAS, "k.active", pointer,
               BE_STORED);
    script_expect_answer(s, LIST_OK);
    end_there(s, script_next_write(s, OLD_COPY, text, "k.b"));
}

/* Another operation's copy may be made active, and that operation answered, before this one writes:
 * it is brought to its end first. */
static void test_a_deletion_is_not_made_over_the_copy_of_another(void **state)
{
    struct script *s = *state;
    char text[300], pointer[300];
    submit(s, DIALECT_FLIP, LIST_DEL, "x");
    refuse_append(s, LOG, COPY_IN_THE_MAKING);
    take_write(s, script_next_write(s, LOG, COPY_IN_THE_MAKING, "k.a"), BE_CAS, "k.b", text,
               BE_STORED);
    assert_int_equal(strncmp(text, COPY_IN_THE_MAKING, 43), 0);
    take_write(s, script_next_write(s, LOG, text, "k.a"), BE_CAS, "k.active", pointer, BE_STORED);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_null(engine_take_done(s->rig.engine));
    end_there(s, script_next_write(s, LOG, text, "k.b"));
}

/* Readers see what clients have appended to a place for a copy, and not what the copy holds, until
 * that is active. What was deleted does not come back with it. */
static void test_a_deletion_keeps_what_came_to_the_place(void **state)
{
    struct script *s = *state;
    char place[200], text[300];
    uint64_t hash = hash_stable(SLICE_LIT(LOG), hash_stable(SLICE_LIT(LOG), 0));
    (void)snprintf(place, sizeof place, "^+@%zu::%016" PRIx64 "-@%zu::%016" PRIx64 "+late+x",
                   strlen(LOG), hash, strlen(LOG), hash);
    submit(s, DIALECT_MARKER, LIST_DEL, "x");
    refuse_append(s, LOG, place);
    take_write(s, script_next_write(s, LOG, place, NULL), BE_CAS, "k.b", text, BE_STORED);
    assert_int_equal(strncmp(text, "+@0:", 4), 0);
    assert_null(strstr(text, "+x"));
    assert_string_equal(text + strlen(text) - strlen("+late-x"), "+late-x");
    end_there(s, script_next_write(s, LOG, text, NULL));
}

/* A folding that was slow has closed the only log that is left: the other one is active, and is
 * made for what deletes an item of the closed one. */
static void test_a_deletion_makes_the_log_that_is_missing(void **state)
{
    struct script *s = *state;
    submit(s, DIALECT_MARKER, LIST_DEL, "x");
    struct list_request *r = script_next_write(s, "^" OLD_COPY, NULL, NULL);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    assert_true(slice_equal(r->be.value, SLICE_LIT("-x")));
    for (; r->be.verb == BE_APPEND; r = script_next_write(s, "^" OLD_COPY, NULL, NULL)) {
        rig_answer(&s->rig, r, BE_NOT_STORED, NULL, -1);
    }
    assert_int_equal(r->be.verb, BE_ADD);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_set_that_another_made_active_is_done),
        script_test(test_a_set_in_the_active_log_is_not_done),
        script_test(test_a_set_in_the_active_log_goes_into_the_other_one),
        script_test(test_a_set_whose_switch_is_not_sent_is_unknown),
        script_test(test_a_set_needs_no_room_for_what_came_late),
        script_test(test_a_deletion_makes_room_for_what_came_late),
        script_test(test_a_log_gets_a_number_before_it_is_replaced),
        script_test(test_a_log_without_room_for_a_number_is_replaced_all_the_same),
        script_test(test_a_set_is_not_written_over_beside_an_old_copy),
        script_test(test_a_deletion_of_a_full_list_is_made_in_the_copy),
        script_test(test_a_deletion_is_not_made_over_the_copy_of_another),
        script_test(test_a_deletion_keeps_what_came_to_the_place),
        script_test(test_a_deletion_makes_the_log_that_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
