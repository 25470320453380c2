/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists that are missing though they have a head: what the engine sends, what it answers. Who may
 * fill them: test_lease.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "list/format/absent.h"
#include "support_absent.h"

static struct slice item = SLICE_LIT("x");

static void test_reads_find_nothing(void **state)
{
    struct script *s = *state;
    const enum list_verb verbs[] = {LIST_GET, LIST_LEN, LIST_RANGE, LIST_REVRANGE, LIST_STAT};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        script_submit(s, verbs[i], NULL, 0);
        show_head(s, LEASED "+1:x", 90);
        script_expect_done(s, LIST_MISSING);
        assert_int_equal(s->call.number, 0);
        assert_int_equal(s->call.answer.bytes, 0);
    }
    script_submit(s, LIST_HAS, &item, 1);
    show_head(s, LEASED "+1:x", 90);
    script_expect_done(s, LIST_MISSING);
}

/* Nothing is stored, or what is stored is still to be collected. Also when the worker has known the
 * list. */
static void test_changes_find_nothing(void **state)
{
    struct script *s = *state;
    const struct {
        enum list_verb verb;
        enum list_status status;
    } changes[] = {{LIST_ADD, LIST_NOT_STORED},
                   {LIST_DEL, LIST_MISSING},
                   {LIST_ADDX, LIST_NOT_STORED},
                   {LIST_DELX, LIST_MISSING}};
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, "^1\n+1:x", -1);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, "^1 ?0.0\n" YOUNG, -1);
    script_expect_done(s, LIST_MISSING);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        script_submit(s, changes[i].verb, &item, 1);
        show_head(s, "^1 ?0.0\n" YOUNG, -1);
        script_expect_done(s, changes[i].status);
    }
}

/* What the client with the lease has read may be older than the change: that stands behind the
 * fill. Also when the lease is over, since a late fill may still go through. */
static void test_blind_changes_under_a_lease_are_kept(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_ADD, &item, 1);
    show_head(s, LEASED, 90);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_DEL, &item, 1);
    show_head(s, OVER "+1:x", 90);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    /* The head has gone in between. */
    script_submit(s, LIST_ADD, &item, 1);
    show_head(s, LEASED, 90);
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    rig_answer(&s->rig, rig_take(&s->rig, BE_GET, "k#"), BE_MISS, NULL, -1);
    script_expect_done(s, LIST_NOT_STORED);
}

/* The head takes no append: it is folded, and its deletions stay, since the fill will lie below. */
static void test_kept_deletions_survive_a_fold(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_ADD, &item, 1);
    show_head(s, LEASED "-1:y", -1);
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    show_head(s, LEASED "-1:y", -1);
    expect_write(s, BE_CAS, "^1 ?77.1700000030\n-1:y+1:x", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* Nothing is known of the list, so an exact change cannot be kept: no older lease may fill it. */
static void test_exact_changes_end_a_lease(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_ADDX, &item, 1);
    show_head(s, LEASED, 90);
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_NOT_STORED);
    script_submit(s, LIST_DELX, &item, 1);
    show_head(s, LEASED YOUNG, -1);
    expect_write(s, BE_CAS, "^1 ?0.0\n" YOUNG, 0, BE_STORED);
    script_expect_done(s, LIST_MISSING);
}

/* Another writer was faster: the list is there by now. */
static void test_exact_change_meets_the_fill(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_ADDX, &item, 1);
    show_head(s, LEASED, 90);
    script_expect(s, BE_CAS_DELETE, "k#", BE_EXISTS, NULL);
    s->rig.now.mono_us += 1000 * 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    show_head(s, "^1\n+1:y", -1);
    expect_write(s, BE_CAS, "^1\n+1:y+1:x", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
}

/* A worker that takes the list for one that is there appends, and is answered so. */
static void test_append_on_its_way_is_kept(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, "^1\n+1:x", -1);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

static void test_compaction_finds_nothing(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_COMPACT, NULL, 0);
    show_head(s, LEASED, 90);
    script_expect_done(s, LIST_MISSING);
}

/* Another proxy has removed the head while what it named was deleted: no list was there before. */
static void test_compaction_of_what_is_left_finds_nothing(void **state)
{
    struct script *s = *state;
    static const char left[] = "^1 ?0.0 -aaaaaaaaaaaaa.1\n";
    script_submit(s, LIST_COMPACT, NULL, 0);
    show_head(s, left, -1);
    script_expect(s, BE_DELETE, "k#aaaaaaaaaaaaa.0", BE_DELETED, NULL);
    show_head(s, left, -1);
    expect_write(s, BE_CAS, "^1 ?0.0\n", 0, BE_STORED);
    show_head(s, "^1 ?0.0\n", -1);
    script_expect(s, BE_CAS_DELETE, "k#", BE_EXISTS, NULL);
    s->rig.now.mono_us += 10000;
    (void)engine_run(s->rig.engine, s->rig.now);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_MISSING);
}

/* With on_missing = create a missing list is an empty one: what is appended is in it. */
static void test_others_see_what_was_appended(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_CREATE;
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, LEASED "+1:x", 90);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    assert_int_equal(s->call.number, 1);
    /* And it does not go when the lease would have: the list is written anew. */
    show_head(s, LEASED "+1:x", 90);
    show_head(s, LEASED "+1:x", 90);
    expect_write(s, BE_CAS, "^1\n+1:x", 0, BE_STORED);
}

/* ---- it is filled ---- */

static void test_lset_fills(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_SET, &item, 1);
    show_head(s, LEASED "+1:y" YOUNG, 90);
    expect_write(s, BE_CAS, "^1\n" YOUNG "!0:+1:x", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
    /* From now on the worker knows the list. */
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* It gets the time of a new list, but for one that other lists ask for what was decided. */
static void test_filled_primary_does_not_expire(void **state)
{
#define DECIDES "?35:" NAME ".1700000000 2 k other &15:" NAME " c"
    struct script *s = *state;
    s->rig.config->lists[0].ttl_s = 600;
    script_submit(s, LIST_SET, &item, 1);
    show_head(s, LEASED, 90);
    expect_write(s, BE_CAS, "^1\n!0:+1:x", 600, BE_STORED);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, "^1 ?0.0\n" DECIDES, -1);
    script_expect_done(s, LIST_MISSING);
    script_submit(s, LIST_SET, &item, 1);
    show_head(s, "^1 ?0.0\n" DECIDES, -1);
    expect_write(s, BE_CAS, "^1\n" DECIDES "!0:+1:x", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* What was appended stands behind the items. */
static void test_lcreate_fills(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_CREATE, &item, 1);
    show_head(s, LEASED "+1:y-1:z", 90);
    expect_write(s, BE_CAS, "^1\n+1:x+1:y-1:z", 0, BE_EXISTS);
    show_head(s, "^1\n+1:x", -1);
    script_expect_done(s, LIST_NOT_STORED);
    script_submit(s, LIST_CREATE, NULL, 0);
    show_head(s, LEASED, 90);
    expect_write(s, BE_CAS, "^1\n", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* An lset that did not see it is in the log: the list is there, and stays. */
static void test_clear_in_the_log_fills(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, LEASED "+1:y!0:+1:x", 90);
    script_expect_answer(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
    show_head(s, LEASED "+1:y!0:+1:x", 90);
    show_head(s, LEASED "+1:y!0:+1:x", 90);
    expect_write(s, BE_CAS, "^1\n+1:x", 0, BE_STORED);
}

/* It is written anew with the cap of the file: an absent head has none. Also shortly after the cap
 * was set before: that it is not there was not done by another file. */
static void test_clear_in_the_log_fills_a_capped_list(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].max_items = 2;
    for (int i = 0; i < 2; i++) {
        script_submit(s, LIST_LEN, NULL, 0);
        show_head(s, LEASED "+1:y!0:+1:x+1:y+1:z", 90);
        script_expect_answer(s, LIST_OK);
        show_head(s, LEASED "+1:y!0:+1:x+1:y+1:z", 90);
        show_head(s, LEASED "+1:y!0:+1:x+1:y+1:z", 90);
        expect_write(s, BE_CAS, "^1 #2.drop\n+1:y+1:z", 0, BE_STORED);
        (void)engine_run(s->rig.engine, s->rig.now);
        struct list_request *again = engine_take_request(s->rig.engine);
        if (again != NULL) {
            rig_answer(&s->rig, again, BE_HIT, "^1 #2.drop\n+1:y+1:z", -1);
        }
        s->rig.now.mono_us += 1000000;
    }
}

static void put(struct script *s, enum list_condition condition, uint64_t token)
{
    s->call.condition = condition;
    s->call.expected = token;
    script_submit(s, LIST_PUT, &item, 1);
}

/* The token decides; what was appended stands behind the content. */
static void test_put_with_its_token_fills(void **state)
{
    struct script *s = *state;
    put(s, LIST_IF_LEASED, 77);
    show_head(s, LEASED "+1:y-1:z", 90);
    expect_write(s, BE_CAS, "^1\n+1:x+1:y-1:z", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
    put(s, LIST_IF_LEASED, 77);
    show_head(s, OVER, 20); /* late, and no other client has asked */
    expect_write(s, BE_CAS, "^1\n+1:x", 0, BE_STORED);
    script_expect_done(s, LIST_OK);
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_fills_late), 0);
}

static void test_put_with_another_token_does_nothing(void **state)
{
    struct script *s = *state;
    const char *const heads[] = {LEASED, "^1 ?0.0\n" YOUNG, "^1\n+1:y", LEASED "!0:"};
    const uint64_t tokens[] = {78, 77, 77, 77};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        put(s, LIST_IF_LEASED, tokens[i]);
        show_head(s, heads[i], -1);
        script_expect_answer(s, LIST_EXISTS);
    }
    show_head(s, heads[3], -1); /* it is to be written anew */
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_fills_late), 4);
}

static void test_put_whose_lease_has_gone_does_nothing(void **state)
{
    struct script *s = *state;
    put(s, LIST_IF_LEASED, 77);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_EXISTS);
    /* It was dropped between look and write. */
    put(s, LIST_IF_LEASED, 77);
    show_head(s, LEASED, 90);
    script_expect(s, BE_CAS, "k#", BE_NOT_FOUND, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_EXISTS);
    /* 0 is no token. */
    put(s, LIST_IF_LEASED, 0);
    show_head(s, "^1 ?0.0\n" YOUNG, -1);
    script_expect_done(s, LIST_EXISTS);
}

/* A whole content without a token is all that the list holds. */
static void test_put_without_token_replaces_what_was_appended(void **state)
{
    struct script *s = *state;
    s->call.has_exptime = true;
    s->call.exptime = 5;
    put(s, LIST_ALWAYS, 0);
    show_head(s, LEASED "+1:y" YOUNG, 90);
    expect_write(s, BE_CAS, "^1\n+1:x" YOUNG, 5, BE_STORED);
    script_expect_done(s, LIST_OK);
}

/* A content that fits no log. */
static void put_long(struct script *s, enum list_condition condition, uint64_t token)
{
    static struct slice items[40];
    static char text[40][8];
    for (int i = 0; i < 40; i++) {
        items[i] = slice_make(text[i], (size_t)snprintf(text[i], sizeof text[i], "item%d", i));
    }
    s->rig.config->lists[0].log_limit_bytes = 256;
    s->call.has_exptime = true; /* else it would be an lset */
    s->call.condition = condition;
    s->call.expected = token;
    script_submit(s, LIST_PUT, items, 40);
}

static void expect_sublist(struct script *s, enum be_verb verb, enum be_status status)
{
    (void)engine_run(s->rig.engine, s->rig.now);
    struct list_request *request = engine_take_request(s->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->be.verb, verb);
    assert_int_equal(request->be.key.len, sizeof "k#aaaaaaaaaaaaa.0" - 1);
    rig_answer(&s->rig, request, status, NULL, -1);
}

/* The head that names the run, and nothing else. */
static void expect_filled(struct script *s, enum be_verb verb)
{
    struct list_request *request = rig_take(&s->rig, verb, "k#");
    assert_int_equal(request->be.exptime, 0);
    assert_int_equal(request->be.value.len, sizeof "^1 aaaaaaaaaaaaa.1:364:40\n" - 1);
    rig_answer(&s->rig, request, BE_STORED, NULL, -1);
}

/* A head to announce in could be appended to, by a worker that takes the list for one that is
 * there. */
static void test_long_put_makes_no_head_to_announce_in(void **state)
{
    struct script *s = *state;
    put_long(s, LIST_ALWAYS, 0);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_sublist(s, BE_ADD, BE_STORED);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_filled(s, BE_ADD);
    script_expect_done(s, LIST_OK);
}

/* Nor does it announce in a head that is there, and goes by itself. */
static void test_long_put_leaves_the_lease_its_time(void **state)
{
    struct script *s = *state;
    put_long(s, LIST_IF_LEASED, 77);
    show_head(s, LEASED, 90);
    expect_sublist(s, BE_ADD, BE_STORED);
    show_head(s, LEASED, 80);
    expect_filled(s, BE_CAS);
    script_expect_done(s, LIST_OK);
    /* The lease has gone in the meantime. */
    put_long(s, LIST_IF_LEASED, 77);
    show_head(s, LEASED, 90);
    expect_sublist(s, BE_ADD, BE_STORED);
    show_head(s, "^1 ?0.0\n", -1);
    script_expect_answer(s, LIST_EXISTS);
    expect_sublist(s, BE_DELETE, BE_DELETED);
    /* There is nothing to withdraw; what is left of the lease is looked at, to be removed. */
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
}

/* A list that another client has made is announced in, as ever, under another name. */
static void test_long_put_meets_a_list(void **state)
{
    struct script *s = *state;
    put_long(s, LIST_ALWAYS, 0);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_sublist(s, BE_ADD, BE_STORED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:y");
    expect_sublist(s, BE_DELETE, BE_DELETED);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:y");
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    assert_int_equal(append->be.value.p[0], '~');
    rig_answer(&s->rig, append, BE_REFUSED, NULL, -1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:y");
    script_expect_done(s, LIST_SERVER_ERROR);
}

/* scripts/sweep could have deleted what no head names. */
static void test_long_put_that_takes_long_is_given_up(void **state)
{
    struct script *s = *state;
    put_long(s, LIST_ALWAYS, 0);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    expect_sublist(s, BE_ADD, BE_STORED);
    struct list_request *get = rig_take(&s->rig, BE_GET, "k#");
    s->rig.now.wall_s += 150;
    rig_answer(&s->rig, get, BE_MISS, NULL, -1);
    script_expect_answer(s, LIST_SERVER_ERROR);
    expect_sublist(s, BE_DELETE, BE_DELETED);
}

/* An lset of a worker that has not noticed: it looks behind it, and has the head written anew. */
static void test_lset_does_not_keep_the_time_of_a_lease(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, "^1\n+1:x", -1);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_SET, &item, 1);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    show_head(s, LEASED "!0:+1:x", 90);
    script_expect_answer(s, LIST_OK);
    show_head(s, LEASED "!0:+1:x", 90);
    show_head(s, LEASED "!0:+1:x", 90);
    expect_write(s, BE_CAS, "^1\n+1:x", 0, BE_STORED);
}

#define NOW_S 1800000000

/* A list is flipped that was dropped, leased and filled by a clear in the moment before. Returns
 * until when the sublist lives. */
static int32_t flip_filled(struct script *s, bool looks)
{
    char head[160];
    s->rig.config->lists[0].log_limit_bytes = 4;
    script_submit(s, LIST_COMPACT, NULL, 0);
    show_head(s, "^1\n+1:y+1:z", -1);
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    snprintf(head, sizeof head, LEASED "!0:+1:a+1:b%.*s", SLICE_ARGS(append->be.value));
    rig_answer(&s->rig, append, BE_STORED, NULL, -1);
    show_head(s, head, 90);
    if (looks) {
        rig_answer_clock(&s->rig, BE_HIT, 90, NOW_S);
    }
    struct list_request *sublist = engine_take_request(s->rig.engine);
    assert_non_null(sublist);
    assert_int_equal(sublist->be.verb, BE_ADD);
    int32_t exptime = sublist->be.exptime;
    rig_answer(&s->rig, sublist, BE_STORED, NULL, -1);
    return exptime;
}

/* until: what the head says of its sublists. */
static void expect_flipped(struct script *s, const char *until, int32_t exptime)
{
    char text[160];
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    snprintf(text, sizeof text, "%.*s", SLICE_ARGS(cas->be.value));
    assert_int_equal(cas->be.exptime, exptime);
    assert_null(strchr(text, '?'));
    assert_true(*until == '\0' ? strchr(text, '@') == NULL : strstr(text, until) != NULL);
    rig_answer(&s->rig, cas, BE_STORED, NULL, -1);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
}

/* What becomes of it lives as a new list does, not as the lease did: so do its sublists. */
static void test_a_filled_list_does_not_outlive_its_sublists(void **state)
{
    struct script *s = *state;
    assert_int_equal(flip_filled(s, false), 0);
    expect_flipped(s, "", 0);
}

static void test_a_filled_list_with_a_time_has_sublists_with_one(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].ttl_s = 7200;
    assert_in_range(flip_filled(s, true), 14400, 14410);
    rig_answer_clock(&s->rig, BE_HIT, 90, NOW_S);
    expect_flipped(s, " @1800014400 ", NOW_S + 7200);
}

/* ---- it is dropped ---- */

static void test_drop_takes_the_lease_away(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_DROP, NULL, 0);
    show_head(s, LEASED "+1:x", 90);
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_MISSING);
}

/* What it names has to be found again: the head stays, without a lease. */
static void test_drop_takes_the_lease_from_a_head_with_names(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_DROP, NULL, 0);
    show_head(s, LEASED "+1:x" YOUNG, -1);
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_answer(s, LIST_MISSING);
    script_expect(s, BE_DELETE, "k#" NAME ".0", BE_DELETED, NULL);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_false(engine_busy(s->rig.engine));
}

/* A list with runs is missing from one step on, not empty; what a server does not delete at once is
 * deleted again. */
static void test_drop_leaves_no_empty_list(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_DROP, NULL, 0);
    show_head(s, "^1 " NAME ".1:18:1 -" OTHER ".1\n+1:x", -1);
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
    script_expect(s, BE_DELETE, "k#" OTHER ".0", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "k#" NAME ".0", BE_DOWN, NULL);
    script_expect(s, BE_DELETE, "k#" NAME ".0", BE_LOST, NULL);
    script_expect(s, BE_DELETE, "k#" NAME ".0", BE_DELETED, NULL);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_false(engine_busy(s->rig.engine));
}

/* A drop that deletes nothing: its request to remove the head is answered so, and the call so. */
static void drop_and_delete_nothing(struct script *s, enum be_status removal,
                                    enum list_status status)
{
    script_submit(s, LIST_DROP, NULL, 0);
    show_head(s, "^1 " NAME ".1:18:1\n+1:x", -1);
    script_expect(s, BE_CAS_DELETE, "k#", removal, NULL);
    script_expect_done(s, status);
    assert_false(engine_busy(s->rig.engine));
}

/* It was removed or not: what it names may be in use. */
static void test_drop_whose_outcome_is_unknown_deletes_nothing(void **state)
{
    struct script *s = *state;
    drop_and_delete_nothing(s, BE_LOST, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "outcome unknown"));
}

/* Another client has removed the head: what it named is for that one to delete. */
static void test_drop_of_a_list_that_is_gone_by_now(void **state)
{
    drop_and_delete_nothing(*state, BE_NOT_FOUND, LIST_MISSING);
}

/* A list that was filled between the look and the write is dropped like any other. */
static void test_drop_of_a_list_that_was_filled_meanwhile(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_DROP, NULL, 0);
    show_head(s, LEASED, 90);
    script_expect(s, BE_CAS_DELETE, "k#", BE_EXISTS, NULL);
    show_head(s, "^1\n+1:x", -1);
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* ---- it goes ---- */

static void expect_read_then_remove(struct script *s, const char *head)
{
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, head, -1);
    script_expect_answer(s, LIST_MISSING);
    show_head(s, head, -1);
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
}

static void test_idle_head_is_removed(void **state)
{
    expect_read_then_remove(*state, "^1 ?0.0\n+1:x");
    expect_read_then_remove(*state, OVER);
}

/* Names of a dead filler are deleted; those of one at work stay, and with them the head. */
static void test_dead_announcement_is_swept(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, OVER YOUNG, -1);
    script_expect_done(s, LIST_MISSING);
    script_submit(s, LIST_LEN, NULL, 0);
    show_head(s, OVER DEAD, -1);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_ptr_equal(engine_take_done(s->rig.engine), &s->call);
    show_head(s, OVER DEAD, -1);
    show_head(s, OVER DEAD, -1);
    expect_write(s, BE_CAS, "^1 ?77.1699999999 -" NAME ".1\n", 0, BE_STORED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        refuse_test(test_reads_find_nothing),
        refuse_test(test_changes_find_nothing),
        refuse_test(test_append_on_its_way_is_kept),
        refuse_test(test_blind_changes_under_a_lease_are_kept),
        refuse_test(test_kept_deletions_survive_a_fold),
        refuse_test(test_exact_changes_end_a_lease),
        refuse_test(test_exact_change_meets_the_fill),
        refuse_test(test_compaction_finds_nothing),
        refuse_test(test_compaction_of_what_is_left_finds_nothing),
        refuse_test(test_others_see_what_was_appended),
        refuse_test(test_lset_fills),
        refuse_test(test_filled_primary_does_not_expire),
        refuse_test(test_lcreate_fills),
        refuse_test(test_clear_in_the_log_fills),
        refuse_test(test_clear_in_the_log_fills_a_capped_list),
        refuse_test(test_put_with_its_token_fills),
        refuse_test(test_put_with_another_token_does_nothing),
        refuse_test(test_put_whose_lease_has_gone_does_nothing),
        refuse_test(test_put_without_token_replaces_what_was_appended),
        refuse_test(test_long_put_makes_no_head_to_announce_in),
        refuse_test(test_long_put_leaves_the_lease_its_time),
        refuse_test(test_long_put_meets_a_list),
        refuse_test(test_long_put_that_takes_long_is_given_up),
        refuse_test(test_lset_does_not_keep_the_time_of_a_lease),
        refuse_test(test_a_filled_list_does_not_outlive_its_sublists),
        refuse_test(test_a_filled_list_with_a_time_has_sublists_with_one),
        refuse_test(test_drop_takes_the_lease_away),
        refuse_test(test_drop_takes_the_lease_from_a_head_with_names),
        refuse_test(test_drop_leaves_no_empty_list),
        refuse_test(test_drop_whose_outcome_is_unknown_deletes_nothing),
        refuse_test(test_drop_of_a_list_that_is_gone_by_now),
        refuse_test(test_drop_of_a_list_that_was_filled_meanwhile),
        refuse_test(test_idle_head_is_removed),
        refuse_test(test_dead_announcement_is_swept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
