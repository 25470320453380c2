/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpurge of a native list. The backend is the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_engine.h"

#define HEAD "^1\n+1:a+1:b+1:c"

static void delete_items(struct script *s, enum be_status last)
{
    script_expect(s, BE_DELETE, "a", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "b", BE_NOT_FOUND, NULL);
    script_expect(s, BE_DELETE, "c", last, NULL);
}

static void expect_write(struct script *s, const char *value)
{
    struct list_request *write = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(write->be.value, slice_of(value)));
    rig_answer(&s->rig, write, BE_STORED, NULL, -1);
}

/* The plain items a, b and c are deleted, the last one with that outcome, and the names are taken
 * off by that write. */
static void purge(struct script *s, enum be_status last, const char *value)
{
    script_submit(s, LIST_PURGE, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    delete_items(s, last);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    expect_write(s, value);
}

static void one_entry_clears_a_list_of_which_all_go(void **state)
{
    struct script *s = *state;
    purge(s, BE_DELETED, HEAD "!0:");
    script_expect_answer(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
}

/* Another lpurge under way must not see it added. */
static void a_name_that_stays_is_not_written_again(void **state)
{
    struct script *s = *state;
    purge(s, BE_LOST, HEAD "-1:a-1:b");
    script_expect_answer(s, LIST_SERVER_ERROR);
}

static void find_head(struct script *s, const char *value, uint64_t cas)
{
    rig_answer_cas(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_HIT, value, -1, cas);
}

/* The proxy sets a mark behind that log; found: with what comes behind the mark, from another one.
 */
static void take_mark(struct script *s, const char *log, const char *behind, char marked[128],
                      char found[160])
{
    struct list_request *mark = rig_take(&s->rig, BE_APPEND, "k#");
    snprintf(marked, 128, "%s%.*s", log, SLICE_ARGS(mark->be.value));
    snprintf(found, 160, "%s%s", marked, behind);
    rig_answer(&s->rig, mark, BE_STORED, NULL, -1);
}

/* The head is read anew, behind a mark of the proxy's, behind which others append `came`; once the
 * items are deleted it is read with that CAS number, and these names are taken off. */
static void purge_behind_a_mark(struct script *s, const char *came, uint64_t cas, const char *off)
{
    char marked[128], found[160], written[200];
    script_submit(s, LIST_PURGE, NULL, 0);
    find_head(s, HEAD, 1);
    delete_items(s, BE_DELETED);
    find_head(s, HEAD "+1:d", 2);
    take_mark(s, HEAD "+1:d", came, marked, found);
    find_head(s, found, 3);
    delete_items(s, BE_DELETED);
    find_head(s, found, cas);
    (void)snprintf(written, sizeof written, "%s%s", found, off);
    expect_write(s, written);
}

/* A log that begins as before may be another one: a fold in place, or a list made anew. So what was
 * added meanwhile is known only behind a mark. */
static void a_log_that_begins_as_before_is_not_the_same(void **state)
{
    struct script *s = *state;
    purge_behind_a_mark(s, "", 3, "-1:a-1:b-1:c");
    script_expect_answer(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
}

/* A node of a cluster may lose what came behind the mark, and a client add the same once more. */
static void what_is_added_behind_the_mark_stays(void **state)
{
    struct script *s = *state;
    purge_behind_a_mark(s, "+1:a", 4, "-1:b-1:c");
    script_expect(s, BE_DELETE, "a", BE_DELETED, NULL);
    script_expect_answer(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* As a delete asks for it: whether there was a name is another matter than how many are off. */
static void a_list_that_has_to_be_there(void **state)
{
    struct script *s = *state;
    s->call.condition = LIST_IF_PRESENT;
    script_submit(s, LIST_PURGE, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_answer(s, LIST_NOT_STORED);
    script_submit(s, LIST_PURGE, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a-1:a");
    script_expect_answer(s, LIST_NOT_STORED);
    script_submit(s, LIST_PURGE, NULL, 0);
    find_head(s, HEAD, 1);
    delete_items(s, BE_DELETED);
    find_head(s, HEAD, 1);
    expect_write(s, HEAD "!0:");
    script_expect_answer(s, LIST_OK);
    /* All of them are added again meanwhile, and stay. */
    script_submit(s, LIST_PURGE, NULL, 0);
    find_head(s, HEAD, 2);
    delete_items(s, BE_DELETED);
    find_head(s, HEAD "+1:a+1:b+1:c", 3);
    char marked[128], again[160];
    take_mark(s, HEAD, "+1:a+1:b+1:c", marked, again);
    find_head(s, marked, 4);
    delete_items(s, BE_DELETED);
    find_head(s, again, 5);
    delete_items(s, BE_DELETED);
    script_expect_answer(s, LIST_OK);
    assert_int_equal(s->call.number, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(one_entry_clears_a_list_of_which_all_go),
        script_test(a_name_that_stays_is_not_written_again),
        script_test(a_log_that_begins_as_before_is_not_the_same),
        script_test(what_is_added_behind_the_mark_stays),
        script_test(a_list_that_has_to_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
