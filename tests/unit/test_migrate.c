/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of a dialect that are converted to native ones: what other clients do in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_engine.h"

static const char moved[] = "\1mclistd moved 1 11 0\n^1\n+1:a+1:b";

/* Up to where the proxy has read what it converts, for the first time. */
static void convert(struct script *s, const char *value)
{
    s->rig.config->lists[0].dialect = DIALECT_SIMPLE;
    s->rig.config->lists[0].migrate = MIGRATE_NATIVE;
    script_submit(s, LIST_CONVERT, NULL, 0);
    script_expect(s, BE_GET, "k", BE_HIT, value);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k", BE_HIT, value);
    script_expect(s, BE_GET, "k", BE_HIT, value);
}

/* The list was changed while the record was to be written: the next one says this. */
static void expect_difference(struct script *s, const char *before, const char *after,
                              const char *record)
{
    convert(s, before);
    script_expect(s, BE_CAS, "k", BE_EXISTS, NULL);
    script_expect(s, BE_GET, "k", BE_HIT, after);
    struct list_request *r = rig_take(&s->rig, BE_CAS, "k");
    assert_true(slice_equal(r->be.value, slice_of(record)));
    rig_answer(&s->rig, r, BE_LOST, NULL, -1);
}

/* The items' order is that of the list: one that was deleted and added again is the newest. */
static void test_an_item_that_was_added_again_stands_last(void **state)
{
    expect_difference(*state, "a,b,c,", "b,c,a,", "\1mclistd moved 1 19 0\n^1\n+1:a+1:b+1:c=1:a");
}

static void test_new_items_keep_their_order_among_those_added_again(void **state)
{
    expect_difference(*state, "a,b,c,", "c,x,a,y,",
                      "\1mclistd moved 1 31 0\n^1\n+1:a+1:b+1:c-1:b+1:x=1:a+1:y");
}

static void test_what_keeps_its_order_is_not_written_again(void **state)
{
    expect_difference(*state, "a,b,c,", "a,c,d,",
                      "\1mclistd moved 1 23 0\n^1\n+1:a+1:b+1:c-1:b+1:d");
}

/* The proxy stands still between its look at the record, which it has written, and the answer. */
static void stand_still_before_the_record(struct script *s)
{
    convert(s, "a,b,");
    script_expect(s, BE_CAS, "k", BE_STORED, NULL);
    struct list_request *look = rig_take(&s->rig, BE_GET, "k");
    s->rig.now.mono_us += 3200000;
    rig_answer(&s->rig, look, BE_HIT, moved, -1);
}

/* Meanwhile another proxy has carried the record out, and the list's time was over: its items must
 * not come back. */
static void test_a_record_that_was_seen_long_ago_is_looked_at_again(void **state)
{
    struct script *s = *state;
    stand_still_before_the_record(s);
    script_expect(s, BE_GET, "k", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    /* The call goes on with a list that is not there. */
    script_expect(s, BE_GET, "k", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
}

/* It stands still, as it was seen: nothing of it was done. */
static void test_a_record_that_still_stands_is_carried_out(void **state)
{
    struct script *s = *state;
    stand_still_before_the_record(s);
    script_expect(s, BE_GET, "k", BE_HIT, moved);
    struct list_request *add = rig_take(&s->rig, BE_ADD, "k#");
    assert_true(slice_equal(add->be.value, SLICE_LIT("^1\n+1:a+1:b")));
    rig_answer(&s->rig, add, BE_STORED, NULL, -1);
    script_expect(s, BE_DELETE, "k", BE_DELETED, NULL);
}

/* Another list was stored by hand under the key, and has a record of its own. */
static void test_another_record_is_not_carried_out_as_the_first(void **state)
{
    struct script *s = *state;
    stand_still_before_the_record(s);
    struct list_request *look = rig_take(&s->rig, BE_GET, "k");
    rig_answer_cas(&s->rig, look, BE_HIT, "\1mclistd moved 1 7 0\n^1\n+1:x", -1, 9);
    struct list_request *add = rig_take(&s->rig, BE_ADD, "k#");
    assert_true(slice_equal(add->be.value, SLICE_LIT("^1\n+1:x")));
    rig_answer(&s->rig, add, BE_STORED, NULL, -1);
    script_expect(s, BE_DELETE, "k", BE_DELETED, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_an_item_that_was_added_again_stands_last),
        script_test(test_new_items_keep_their_order_among_those_added_again),
        script_test(test_what_keeps_its_order_is_not_written_again),
        script_test(test_a_record_that_was_seen_long_ago_is_looked_at_again),
        script_test(test_a_record_that_still_stands_is_carried_out),
        script_test(test_another_record_is_not_carried_out_as_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
