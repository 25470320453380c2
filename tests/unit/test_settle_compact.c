/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compaction, and what writes heads anew, in lists with transactions: what a primary keeps, what is
 * folded while some are under way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support_intents.h"

/* A compaction that a client asks for has the transaction finished first (finish.h), which cannot
 * be done now. */
static void expect_not_finished(struct script *s, const char *head)
{
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "other#", BE_DOWN, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, head); /* there may be others */
}

static void test_a_fold_keeps_what_a_primary_must_keep(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_COMPACT, NULL, 0);
    static const char head[] = "^1\n+1:a" OWN_INTENT(T) COMMITS(T) "-1:a";
    expect_not_finished(s, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    static const char folded[] = "^1\n?35:" T ".1700000000 2 k other " COMMITS(T) "+1:b";
    assert_true(slice_equal(cas->be.value, SLICE_LIT(folded)));
    rig_answer(&s->rig, cas, BE_STORED, NULL, -1);
    script_expect(s, BE_GET, "k#", BE_HIT, folded);
    script_expect_done(s, LIST_OK);
}

/* A primary that went would take the decision away from readers of the other lists. */
static void test_a_primary_gets_no_time_to_live(void **state)
{
    struct script *s = *state;
    s->call.has_exptime = true;
    s->call.exptime = 100;
    script_submit(s, LIST_TOUCH, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a&15:" T " d");
    expect_write(s, BE_CAS, "^1\n" RESIDUE "+1:a&15:" T " d", 100);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_TOUCH, NULL, 0);
    for (unsigned i = 0; i < 16; i++) {
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    }
    expect_error(s, "busy, nothing done: a change of several lists that this list decides is not "
                    "finished");
    /* None does no harm. */
    s->call.exptime = 0;
    script_submit(s, LIST_TOUCH, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    expect_write(s, BE_CAS, "^1\n" RESIDUE "+1:a", 0);
    script_expect_done(s, LIST_OK);
}

static void test_a_content_keeps_what_a_primary_must_keep(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    s->call.condition = LIST_IF_PRESENT;
    script_submit(s, LIST_PUT, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) COMMITS(T) "+1:c");
    expect_write(s, BE_CAS, "^1\n" RESIDUE "+1:x", 0);
    script_expect_done(s, LIST_OK);
    s->call.has_exptime = true;
    s->call.exptime = 100;
    script_submit(s, LIST_PUT, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    expect_write(s, BE_CAS, "^1\n+1:x", 100);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_PUT, &item, 1);
    for (unsigned i = 0; i < 32; i++) {
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    }
    expect_error(s, "busy, nothing done: a change of several lists that this list decides is not "
                    "finished");
}

static void test_a_dropped_primary_keeps_its_head(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) COMMITS(T));
    expect_append(s, "k#", "!0:", BE_STORED);
    expect_not_finished(s, "^1\n+1:a" OWN_INTENT(T) COMMITS(T) "!0:");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) COMMITS(T) "!0:");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" OWN_INTENT(T) COMMITS(T) "!0:");
    expect_write(s, BE_CAS, "^1\n" RESIDUE, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE);
    script_expect_done(s, LIST_OK);
    /* Where a missing list is no empty one, it is missing. */
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    script_submit(s, LIST_DROP, NULL, 0);
    expect_not_finished(s, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    expect_write(s, BE_CAS, "^1 ?0.0\n" RESIDUE, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?0.0\n" RESIDUE);
    script_expect_done(s, LIST_OK);
    /* A lease lets it live on. */
    s->call.seconds = 10;
    script_submit(s, LIST_LEASE, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?0.0\n" RESIDUE);
    expect_write(s, BE_CAS, NULL, 0);
    script_expect_done(s, LIST_OK);
    /* And a refused change that ends the lease. */
    struct slice item = SLICE_LIT("x");
    script_submit(s, LIST_ADDX, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?7.1700000010\n" RESIDUE);
    expect_write(s, BE_CAS, "^1 ?0.0\n" RESIDUE, 0);
    script_expect_done(s, LIST_NOT_STORED);
}

/* What it had to keep is done before the head is written anew: the head is not left empty. */
static void test_a_dropped_primary_that_is_done_is_removed(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    script_submit(s, LIST_DROP, NULL, 0);
    expect_not_finished(s, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a&15:" T " d");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" RESIDUE "+1:a&15:" T " d");
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* A worker that reads a list and finds its log over the limit compacts it, of its own accord. */
static void begin_compaction(struct script *s, unsigned log_limit_bytes)
{
    s->rig.config->lists[0].log_limit_bytes = log_limit_bytes;
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b+1:c+1:d+1:e+1:f+1:g+1:h+1:i+1:j");
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
}

static void expect_end(struct script *s)
{
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_null(engine_take_request(s->rig.engine));
    assert_false(engine_busy(s->rig.engine));
}

/* While coordinators are at work, a compaction goes on with what is decided. */
static void test_a_compaction_folds_what_is_decided(void **state)
{
    struct script *s = *state;
    static const char head[] = "^1\n+1:a-1:a+1:d" INTENT(U) COMMITS(U) INTENT(T) "-1:d" COMMITS(U);
    static const char folded[] = "^1\n+1:d+1:b" INTENT(T) "-1:d" COMMITS(U);
    begin_compaction(s, 16);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    expect_write(s, BE_CAS, folded, 0);
    /* Though nothing stands in front of the cut any more, the head is not removed. */
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n" INTENT(T));
    expect_end(s);
}

/* The compaction meets this head, settles its intent, and folds it. */
static void expect_settled(struct script *s, const char *head)
{
    char settled[256];
    snprintf(settled, sizeof settled, "%s%s", head, ABORTS(T));
    s->rig.config->transaction_patience_ms = 0;
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, settled);
    script_expect(s, BE_GET, "k#", BE_HIT, settled);
    expect_write(s, BE_CAS, "^1\n+1:a", 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    expect_end(s);
}

static void test_a_compaction_settles_what_was_left(void **state)
{
    struct script *s = *state;
    begin_compaction(s, 16);
    expect_settled(s, "^1\n+1:a?39:" T ".1699999000 2 first k +1:b");
    /* By a proxy whose clock was wrong. */
    begin_compaction(s, 16);
    expect_settled(s, "^1\n+1:a?39:" T ".1700009000 2 first k +1:b");
}

/* Clocks differ, and writers may be fast: what stands behind an intent must not fill the log. */
static void test_a_compaction_settles_what_fills_the_log(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].log_hard_limit_bytes = 128;
    begin_compaction(s, 16);
    expect_settled(s, "^1\n+1:a" INTENT(T) "-8:12345678-8:12345678");
}

/* The rest stays as it is, and is not looked at again at once. */
static void test_a_compaction_folds_what_stands_before_a_primary_that_is_down(void **state)
{
    struct script *s = *state;
#define LEFT "?39:" T ".1699999000 2 first k +1:b-1:d"
    static const char before[] = "^1\n+1:a-1:a+1:d+1:d+1:d" LEFT;
    static const char folded[] = "^1\n+1:d" LEFT;
    begin_compaction(s, 16);
    for (unsigned i = 0; i < 3; i++) {
        script_expect(s, BE_GET, "k#", BE_HIT, i < 2 ? before : folded);
        script_expect(s, BE_GET, "first#", BE_DOWN, NULL);
        script_expect(s, BE_GET, "k#", BE_HIT, i < 2 ? before : folded);
        if (i == 1) {
            expect_write(s, BE_CAS, folded, 0);
        }
    }
    struct slice item = SLICE_LIT("x");
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    struct list_request *size = rig_take(&s->rig, BE_SIZE, "k#");
    rig_answer(&s->rig, size, BE_HIT, "^1\n+1:d" LEFT "+1:x", -1);
    script_expect_done(s, LIST_OK);
#undef LEFT
}

/* An ldrop takes all of the log, so it waits. */
static void test_a_drop_takes_no_part(void **state)
{
    struct script *s = *state;
    s->rig.config->transaction_patience_ms = 0;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T));
    script_expect(s, BE_GET, "first#", BE_MISS, NULL);
    expect_append(s, "k#", ABORTS(T), BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a" INTENT(T) ABORTS(T));
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* A flip whose announcement stands behind an intent that is not decided: it is found there, and
 * taken off there. An intent that is decided meanwhile is in the tail. */
static void test_a_flip_takes_its_announcement_off_the_tail(void **state)
{
    struct script *s = *state;
    static const char ten[] = "^1\n+1:a+1:b+1:c+1:d+1:e+1:f+1:g+1:h+1:i+1:j";
    char head[512], run[32], want[512];
    begin_compaction(s, 32);
    snprintf(head, sizeof head, "%s%s+1:x", ten, INTENT(T));
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    char announced[64];
    snprintf(announced, sizeof announced, "%.*s", (int)append->be.value.len, append->be.value.p);
    snprintf(run, sizeof run, "k#%.13s.0", strchr(announced, ':') + 1);
    rig_answer(&s->rig, append, BE_STORED, NULL, -1);
    snprintf(head, sizeof head, "%s%s+1:x%s+1:y", ten, INTENT(T), announced);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_ADD, run, BE_STORED, NULL);
    snprintf(want, sizeof want, "^1 %.13s.1:54:10\n%s+1:x+1:y", run + 2, INTENT(T));
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    if (!slice_equal(cas->be.value, slice_of(want))) {
        print_error("written: %.*s\nwanted: %s\n", SLICE_ARGS(cas->be.value), want);
    }
    assert_true(slice_equal(cas->be.value, slice_of(want)));
    rig_answer(&s->rig, cas, BE_EXISTS, NULL, -1);
    /* It is tried again on a newer head, in which the intent is decided, and another one is not. */
    char newer[768];
    snprintf(newer, sizeof newer, "%s%s%s", head, COMMITS(T), INTENT(U));
    script_expect(s, BE_GET, "k#", BE_HIT, newer);
    snprintf(want, sizeof want, "^1 %.13s.1:54:10\n+1:b+1:x+1:y%s", run + 2, INTENT(U));
    expect_write(s, BE_CAS, want, 0);
    snprintf(head, sizeof head, "^1 %.13s.1:54:10\n%s", run + 2, INTENT(U));
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    expect_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_fold_keeps_what_a_primary_must_keep),
        script_test(test_a_primary_gets_no_time_to_live),
        script_test(test_a_content_keeps_what_a_primary_must_keep),
        script_test(test_a_dropped_primary_keeps_its_head),
        script_test(test_a_dropped_primary_that_is_done_is_removed),
        script_test(test_a_compaction_folds_what_is_decided),
        script_test(test_a_compaction_settles_what_was_left),
        script_test(test_a_compaction_settles_what_fills_the_log),
        script_test(test_a_compaction_folds_what_stands_before_a_primary_that_is_down),
        script_test(test_a_drop_takes_no_part),
        script_test(test_a_flip_takes_its_announcement_off_the_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
