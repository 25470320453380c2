/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lpurge of a native list. The backend is the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_engine.h"

#define HEAD "^1\n+1:a+1:b+1:c"

/* The plain items a, b and c are deleted, the last one with that outcome, and the names are taken
 * off by that write. */
static void purge(struct script *s, enum be_status last, const char *value)
{
    script_submit(s, LIST_PURGE, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    script_expect(s, BE_DELETE, "a", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "b", BE_NOT_FOUND, NULL);
    script_expect(s, BE_DELETE, "c", last, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, HEAD);
    struct be_request *write = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(write->value, slice_of(value)));
    rig_answer(&s->rig, write, BE_STORED, NULL, -1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(one_entry_clears_a_list_of_which_all_go),
        script_test(a_name_that_stays_is_not_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
