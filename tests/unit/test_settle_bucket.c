/* SPDX-License-Identifier: BSD-3-Clause */
/* Intents that are not decided, in a pool of type couchbase: nodes may show what was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_intents.h"

/* The primary, and the list itself; the decision is awaited there as well. */
static void expect_looks(struct script *s, enum be_status status, const char *primary)
{
    script_expect(s, BE_GET, "first#", status, primary);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
}

static void expect_old(struct script *s, enum be_status status, const char *primary)
{
    read_list(s, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", status, primary);
}

/* A node that was failed over shows the primary as it was, without the intent. */
static void test_a_primary_in_a_bucket_may_be_an_old_one(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].pool_type = POOL_COUCHBASE;
    s->rig.config->transaction_patience_ms = 0;
    expect_old(s, BE_HIT, "^1\n+1:a");
    expect_append(s, "first#", ABORTS(T), BE_LOST);
    expect_looks(s, BE_HIT, "^1\n+1:a");
    expect_append(s, "first#", ABORTS(T), BE_STORED);
    expect_looks(s, BE_HIT, "^1\n+1:a" FIRST(T) COMMITS(T) ABORTS(T));
    expect_append(s, "k#", COMMITS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) COMMITS(T));
    expect_count(s, 2);
    /* It is not there. */
    expect_old(s, BE_HIT, "^1\n+1:a");
    expect_append(s, "first#", ABORTS(T), BE_STORED);
    expect_looks(s, BE_HIT, "^1\n+1:a" ABORTS(T));
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    expect_count(s, 1);
}

/* The node has no list to append to, and is asked to make one. */
static void expect_none(struct script *s, const char *made, enum be_status status)
{
    expect_old(s, BE_MISS, NULL);
    expect_append(s, "first#", ABORTS(T), BE_NOT_STORED);
    expect_looks(s, BE_MISS, NULL);
    expect_change(s, BE_ADD, "first#", made, status);
}

static void expect_aborted(struct script *s)
{
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    expect_count(s, 1);
}

static void test_a_primary_that_is_missing_is_made(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].pool_type = POOL_COUCHBASE;
    s->rig.config->transaction_patience_ms = 0;
    expect_none(s, "^1\n", BE_STORED);
    expect_looks(s, BE_HIT, "^1\n");
    expect_aborted(s);
    /* Another client was faster: that list is pushed. */
    expect_none(s, "^1\n", BE_NOT_STORED);
    expect_looks(s, BE_HIT, "^1\n+1:z");
    expect_cas(s, "first#", "^1\n+1:z", BE_STORED);
    expect_looks(s, BE_HIT, "^1\n+1:z");
    expect_aborted(s);
    /* The node cannot: it may be an old one. */
    expect_none(s, "^1\n", BE_REFUSED);
    expect_error(s, "backend refused the change");
}

static void test_a_missing_primary_that_is_not_to_be_made(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].pool_type = POOL_COUCHBASE;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    s->rig.config->transaction_patience_ms = 0;
    expect_none(s, "^1 ?0.0\n", BE_STORED);
    expect_looks(s, BE_HIT, "^1 ?0.0\n");
    expect_aborted(s);
}

/* Another client has put its own value there: it is not changed, and the intent is over. */
static void test_a_stranger_in_a_primarys_place(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].pool_type = POOL_COUCHBASE;
    s->rig.config->transaction_patience_ms = 0;
    expect_old(s, BE_HIT, "hello");
    expect_aborted(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_primary_in_a_bucket_may_be_an_old_one),
        script_test(test_a_primary_that_is_missing_is_made),
        script_test(test_a_missing_primary_that_is_not_to_be_made),
        script_test(test_a_stranger_in_a_primarys_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
