/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of dialects that take several items of memcached, and change while a look reads them one
 * by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "support_engine.h"

static void begin(struct script *s, enum list_dialect dialect)
{
    s->rig.config->lists[0].dialect = dialect;
    s->rig.config->lists[0].key_bytes_max = LIST_KEY_BYTES_MAX;
}

/* Over two connections, so answers come in any order. */
static void begin_apart(struct script *s, enum list_dialect dialect)
{
    begin(s, dialect);
    s->rig.config->pools[0].connections = 2;
}

static void answer_cas(struct script *s, enum be_verb verb, const char *key, const char *value,
                       uint64_t cas)
{
    enum be_status status = value != NULL ? BE_HIT : BE_MISS;
    rig_answer_cas(&s->rig, rig_take(&s->rig, verb, key), status, value, -1, cas);
}

/* ---- flip ---- */

static void answer_logs(struct script *s, const char *a, const char *b, uint64_t pointer_cas)
{
    answer_cas(s, BE_GET, "k.a", a, 1);
    answer_cas(s, BE_GET, "k.b", b, 1);
    answer_cas(s, BE_GET, "k.active", pointer_cas == 1 ? "k.a" : "k.b", pointer_cas);
}

static void confirm_others(struct script *s, const char *b, uint64_t pointer_cas)
{
    answer_cas(s, BE_SIZE, "k.b", b, 1);
    answer_cas(s, BE_SIZE, "k.active", "k.a", pointer_cas);
}

/* A list that the worker knows, whose log never was a copy. */
static void know_the_list(struct script *s)
{
    begin_apart(s, DIALECT_FLIP);
    script_submit(s, LIST_LEN, NULL, 0);
    for (unsigned look = 0; look < 3; look++) {
        answer_logs(s, "+x+y", NULL, 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* k.b and the pointer were read before a folding, and k.a after it was emptied and an append came
 * late. Nothing in k.a shows that. */
static void test_a_log_may_have_been_emptied_since_the_pointer_was_read(void **state)
{
    static const char copy[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y"
                               "+@4:9c1f0a77d3b2e845-@4:9c1f0a77d3b2e845";
    struct script *s = *state;
    know_the_list(s);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_logs(s, "+late", NULL, 1);
    confirm_others(s, copy, 2);
    for (unsigned look = 0; look < 3; look++) {
        answer_logs(s, "+late", copy, 2);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
}

static void test_a_log_that_grows_is_confirmed(void **state)
{
    struct script *s = *state;
    know_the_list(s);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_logs(s, "+x+y+z", NULL, 1);
    confirm_others(s, NULL, 1);
    answer_cas(s, BE_SIZE, "k.a", "", 1);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_logs(s, "+x+y+z", NULL, 1);
    confirm_others(s, NULL, 1);
    answer_cas(s, BE_SIZE, "k.a", "", 2);
    answer_cas(s, BE_GET, "k.a", "+x+y+z+v", 2);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 4);
}

/* k.a was read before a folding by others wrote into it what k.b held, and k.b behind that. */
static void test_a_log_may_have_taken_over_the_other_since_it_was_read(void **state)
{
    static const char taken[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y"
                                "+@2:9c1f0a77d3b2e845-@2:9c1f0a77d3b2e845";
    struct script *s = *state;
    begin_apart(s, DIALECT_FLIP);
    script_submit(s, LIST_LEN, NULL, 0);
    for (unsigned look = 0; look < 3; look++) {
        answer_logs(s, "+x", "+y", 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_cas(s, BE_GET, "k.a", "+x", 1);
    answer_cas(s, BE_GET, "k.b", "", 3);
    answer_cas(s, BE_GET, "k.active", "k.a", 1);
    answer_cas(s, BE_SIZE, "k.b", "", 3);
    answer_cas(s, BE_SIZE, "k.active", "k.a", 1);
    answer_cas(s, BE_SIZE, "k.a", "", 2);
    answer_cas(s, BE_GET, "k.a", taken, 2);
    for (unsigned look = 0; look < 3; look++) {
        answer_cas(s, BE_GET, "k.a", taken, 2);
        answer_cas(s, BE_GET, "k.b", "", 3);
        answer_cas(s, BE_GET, "k.active", "k.a", 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* One connection, which is lost with the question after k.a sent and the others not: they go first
 * on the next one, and k.a is asked for again behind them, when it was emptied and appended to. */
static void test_a_question_that_was_repeated_is_out_of_order(void **state)
{
    static const char copy[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y"
                               "+@4:9c1f0a77d3b2e845-@4:9c1f0a77d3b2e845";
    struct script *s = *state;
    know_the_list(s);
    s->rig.config->pools[0].connections = 1;
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k.a", BE_LOST, NULL);
    answer_cas(s, BE_GET, "k.b", NULL, 1);
    answer_cas(s, BE_GET, "k.active", "k.a", 1);
    answer_cas(s, BE_GET, "k.a", "+late", 2);
    confirm_others(s, copy, 2);
    for (unsigned look = 0; look < 3; look++) {
        answer_logs(s, "+late", copy, 2);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
}

/* ---- marker ---- */

static void answer_both(struct script *s, const char *a, uint64_t a_cas, const char *b,
                        uint64_t b_cas)
{
    answer_cas(s, BE_GET, "k.a", a, a_cas);
    answer_cas(s, BE_GET, "k.b", b, b_cas);
}

/* A writer that had found no list has made k.a anew, after a folding that has removed it. */
static void test_a_log_may_have_been_removed_since_the_other_was_read(void **state)
{
    static const char copy[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y";
    struct script *s = *state;
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, "+x+y", 1, NULL, 1);
    }
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, "+late", 2, NULL, 1);
    answer_cas(s, BE_SIZE, "k.b", copy, 1);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, "+late", 2, copy, 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
}

/* k.b, made by a writer who was late, was read before it was closed and k.a took over what it held.
 * So k.a, the active log, looks like a copy that is being made of k.b. */
static void test_a_log_that_was_taken_over_is_not_the_active_one(void **state)
{
    static const char late[] = "+late";
    struct script *s = *state;
    char taken[160];
    uint64_t hash = hash_stable(slice_of(late), hash_stable(slice_of(late), 0));
    snprintf(taken, sizeof taken,
             "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y+late+@5:%016" PRIx64 "-@5:%016" PRIx64,
             hash, hash);
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, taken, 2, late, 1);
    answer_cas(s, BE_SIZE, "k.a", "", 2);
    answer_cas(s, BE_SIZE, "k.b", "", 2);
    answer_cas(s, BE_GET, "k.b", "^+late", 2);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, taken, 2, "^+late", 2);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 3);
}

/* k.a was a copy in the making when k.b was read, and a client by hand had appended to it. By the
 * time it is asked for it has become active, was folded into another k.b, and is gone. */
static void test_a_copy_may_have_come_and_gone_since_the_active_log_was_read(void **state)
{
    static const char before[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x",
                      after[] = "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+x+by-hand";
    struct script *s = *state;
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, NULL, 1, before, 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, NULL, 1, before, 1);
    answer_cas(s, BE_SIZE, "k.a", NULL, 1);
    answer_cas(s, BE_SIZE, "k.b", "", 2);
    answer_cas(s, BE_GET, "k.b", after, 2);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, NULL, 1, after, 2);
    }
    answer_cas(s, BE_SIZE, "k.a", NULL, 1);
    answer_cas(s, BE_SIZE, "k.b", "", 2);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* The active log has been closed by the time that it is asked about: the copy, which was still
 * being made when the others were, is active since. */
static void test_an_active_log_that_was_closed_is_not_confirmed(void **state)
{
    static const char log[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y",
                      copy[] = "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+z";
    struct script *s = *state;
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, log, 1, NULL, 1);
    answer_both(s, log, 1, NULL, 1);
    answer_both(s, log, 1, NULL, 1);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, log, 1, "^", 1);
    answer_cas(s, BE_SIZE, "k.b", "^", 1);
    answer_cas(s, BE_SIZE, "k.a", "", 2);
    answer_cas(s, BE_GET, "k.a", "^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y", 2);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, "^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37", 3, copy, 2);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
}

/* The active log is gone when it is read again: other foldings may have brought it back by the time
 * that the other one is asked about. */
static void test_an_active_log_that_is_gone_is_not_confirmed(void **state)
{
    static const char copy[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y";
    struct script *s = *state;
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, "+x+y", 1, NULL, 1);
    answer_both(s, "+x+y", 1, NULL, 1);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_both(s, "+x+y", 1, NULL, 1);
    answer_cas(s, BE_SIZE, "k.b", NULL, 1);
    answer_cas(s, BE_SIZE, "k.a", NULL, 1);
    answer_cas(s, BE_GET, "k.a", NULL, 1);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, copy, 3, NULL, 1);
    }
    answer_cas(s, BE_SIZE, "k.b", NULL, 1);
    answer_cas(s, BE_SIZE, "k.a", "", 3);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* memcached refuses a PREPEND, so the log that was copied is closed by a CAS. What comes late to it
 * must not look like what the copy has taken. */
static void test_a_log_that_is_closed_whole_has_a_number(void **state)
{
    static const char first[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x";
    static const struct slice item = {"y", 1};
    struct script *s = *state;
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_SET, &item, 1);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, first, 1, NULL, 1);
    }
    char place[160], copy[160], closed[160];
    struct list_request *r = rig_take(&s->rig, BE_ADD, "k.b");
    snprintf(place, sizeof place, "%.*s", SLICE_ARGS(r->be.value));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    answer_both(s, first, 1, place, 1);
    answer_cas(s, BE_SIZE, "k.b", "", 1);
    answer_cas(s, BE_SIZE, "k.a", "", 1);
    r = rig_take(&s->rig, BE_CAS, "k.b");
    snprintf(copy, sizeof copy, "%.*s", SLICE_ARGS(r->be.value));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    for (unsigned try = 0; try < 2; try++) {
        answer_both(s, first, 1, copy, 2);
        if (try == 0) {
            answer_cas(s, BE_SIZE, "k.b", "", 2);
            answer_cas(s, BE_SIZE, "k.a", "", 1);
            script_expect(s, BE_PREPEND, "k.a", BE_NOT_STORED, NULL);
        }
    }
    r = rig_take(&s->rig, BE_CAS, "k.a");
    snprintf(closed, sizeof closed, "%.*s", SLICE_ARGS(r->be.value));
    assert_memory_equal(closed, "^+@0:", 5);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    script_expect_answer(s, LIST_OK);
}

/* script_next_write of a list whose pointer is at k.a. */
static struct list_request *next_write(struct script *s, const char *a, const char *b)
{
    return script_next_write(s, a, b, "k.a");
}

static void expect_items_after(struct script *s, unsigned looks, const char *a, const char *b,
                               uint64_t items)
{
    begin(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    for (unsigned look = 0; look < looks; look++) {
        answer_both(s, a, 1, b, 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, items);
}

static void expect_items(struct script *s, const char *a, const char *b, uint64_t items)
{
    expect_items_after(s, 2, a, b, items);
}

#define COPY \
    "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+x+y+@59:943e53c4bf3be66d-@59:943e53c4bf3be66d"

/* k.b is a copy of what k.a was. That was written anew as it was closed, with a number in place of
 * what was copied; or it was removed, and made anew by a writer who was late. All that it holds
 * came late, deletions, too; but none counts against what came to the copy since. */
static void test_late_deletions_count_beside_a_copy(void **state)
{
    struct script *s = *state;
    expect_items_after(s, 3, "^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37-y", COPY, 1);
    expect_items(s, "+v-y", COPY, 2);
    expect_items(s, "^-x-y", COPY "+y", 1);
    expect_items(s, "^+x", COPY "-x", 2);
}

/* Such a log is closed first, and gets a number behind the mark before it is taken over. */
static void test_a_log_that_was_made_anew_is_closed_and_numbered(void **state)
{
    struct script *s = *state;
    begin(s, DIALECT_MARKER);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = next_write(s, "-y", COPY);
    assert_int_equal(r->be.verb, BE_PREPEND);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.a")));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    r = next_write(s, "^-y", COPY);
    assert_int_equal(r->be.verb, BE_CAS);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.a")));
    assert_memory_equal(r->be.value.p, "^+@0:", 5);
    rig_answer(&s->rig, r, BE_EXISTS, NULL, -1);
}

/* k.a was closed whole when k.b had taken all of it; k.b, which is active, by a folding that was
 * slow. */
static void test_a_log_that_was_taken_whole_does_not_become_active_again(void **state)
{
    struct script *s = *state;
    expect_items_after(s, 3, "^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37", "^" COPY, 2);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = next_write(s, "^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37", "^" COPY);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    rig_answer(&s->rig, r, BE_EXISTS, NULL, -1);
}

/* The same of what came late to k.a, which was numbered before k.b takes it over. */
static void test_a_log_that_got_a_number_late_does_not_become_active(void **state)
{
    expect_items_after(*state, 3, "^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37-y", "^" COPY, 1);
}

/* Two clients by hand begin a list at once, each in another log, and a proxy that takes the second
 * log for the active one has added y to it. Whatever the first one says of y, that is not lost. */
static void test_a_list_that_was_begun_twice_loses_nothing(void **state)
{
    static const char a[] = "+x-y", b[] = "+z+y";
    struct script *s = *state;
    expect_items(s, a, b, 3);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = next_write(s, a, b);
    assert_int_equal(r->be.verb, BE_CAS);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.a")));
    assert_memory_equal(r->be.value.p, "+@0:", 4);
    rig_answer(&s->rig, r, BE_EXISTS, NULL, -1);
}

/* But a copy that a client by hand is about to make active is of what the first log said before. */
static void test_a_copy_by_hand_brings_nothing_back(void **state)
{
    struct script *s = *state;
    expect_items(s, "+x+y-y", "+x+y", 1);
    expect_items(s, "+x+v-v+y-y", "+x+y", 1);
    expect_items(s, "+x+v+y-y", "+x+y", 3);
    expect_items(s, "+x+y-y", "+x+y-x", 2);
}

#define TAKEN "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x-v"
#define SET "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+w"

/* A copy with the items of an lset, which has taken the beginning of the active log. */
static void make_copy(char *copy, size_t cap)
{
    size_t bytes = strlen(TAKEN);
    uint64_t hash = hash_stable(SLICE_LIT(TAKEN), hash_stable(SLICE_LIT(TAKEN), 0));
    snprintf(copy, cap, SET "+@%zu:%016" PRIx64 "-@%zu:%016" PRIx64, bytes, hash, bytes, hash);
}

/* An lcompact finds that copy, and the log with what came late to it. Memory is short. */
static struct list_request *compact_where_memory_is_short(struct script *s, const char *log,
                                                          const char *copy)
{
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = next_write(s, log, copy);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    rig_answer(&s->rig, r, BE_NO_MEMORY, NULL, -1);
    return next_write(s, log, copy);
}

/* The proxy of the lset may close the log behind this CAS, and answer that its items count. */
static void test_a_copy_that_is_made_shorter_keeps_the_items_of_an_lset(void **state)
{
    static const char log[] = TAKEN "+y+x-y";
    struct script *s = *state;
    char copy[240], value[240];
    make_copy(copy, sizeof copy);
    struct list_request *r = compact_where_memory_is_short(s, log, copy);
    assert_int_equal(r->be.verb, BE_CAS);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    snprintf(value, sizeof value, "%.*s", SLICE_ARGS(r->be.value));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    assert_memory_equal(value, SET "+x+@", strlen(SET "+x+@"));
}

/* A folding that others have begun goes on, in a log that has no room for a mark: all of it has to
 * be taken before it is closed. To fold what is not taken yet would make of it what came late,
 * beside a copy that another proxy brings up to date meanwhile. */
static void test_a_log_without_room_for_a_mark_is_taken_before_it_is_closed(void **state)
{
    static const char log[] = TAKEN "+y+x-y";
    struct script *s = *state;
    char copy[240], value[240];
    make_copy(copy, sizeof copy);
    struct list_request *r = compact_where_memory_is_short(s, log, copy);
    for (unsigned tries = 0; tries < 6; tries++, r = next_write(s, log, copy)) {
        assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
        snprintf(value, sizeof value, "%.*s", SLICE_ARGS(r->be.value));
        rig_answer(&s->rig, r, tries < 5 ? BE_EXISTS : BE_STORED, NULL, -1);
        if (tries == 5) {
            memcpy(copy, value, sizeof copy);
        }
    }
    assert_int_equal(r->be.verb, BE_PREPEND);
    rig_answer(&s->rig, r, BE_NOT_STORED, NULL, -1);
    r = next_write(s, log, copy);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.a")));
    assert_int_equal(r->be.value.len, strlen("^+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37"));
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
}

/* Else a writer who has found no list, and slept until this log was copied and removed, might make
 * it anew with the very bytes that the copy's note is about. */
static void test_a_log_gets_a_number_before_it_is_copied(void **state)
{
    static const struct slice item = {"y", 1};
    struct script *s = *state;
    begin_apart(s, DIALECT_MARKER);
    script_submit(s, LIST_SET, &item, 1);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, "+x", 1, NULL, 1);
    }
    struct list_request *r = rig_take(&s->rig, BE_CAS, "k.a");
    char value[160];
    snprintf(value, sizeof value, "%.*s", SLICE_ARGS(r->be.value));
    assert_memory_equal(value, "+@0:", 4);
    assert_string_equal(value + 40, "+x");
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, value, 2, NULL, 1);
    }
    answer_cas(s, BE_SIZE, "k.b", NULL, 1);
    answer_cas(s, BE_SIZE, "k.a", "", 2);
    script_expect(s, BE_ADD, "k.b", BE_STORED, NULL);
}

/* ---- paired ---- */

#define MARK "@5d0c81f2a4b69e37"
#define LATER_MARK "@7a0d12157b1e434d"

/* A look between whose two readings of the additions these have changed. */
static void answer_changing(struct script *s, const char *adds, const char *deletes, uint64_t cas)
{
    answer_cas(s, BE_GET, "follow-k", adds, cas);
    answer_cas(s, BE_GET, "unfollow-k", deletes, cas);
    answer_cas(s, BE_SIZE, "follow-k", adds, cas + 1);
}

/* Until the look takes what it reads where the marks fit. */
static void answer_until_fast(struct script *s, const char *adds, const char *deletes)
{
    for (uint64_t cas = 1; cas < 4; cas++) {
        answer_changing(s, adds, deletes, cas);
    }
}

/* The deletion may be of an addition that came after the additions were read: then the item was
 * there all the time, and is to be deleted. */
static void test_a_deletion_is_not_done_by_a_look_that_may_be_wrong(void **state)
{
    static const struct slice item = {"x", 1};
    struct script *s = *state;
    begin(s, DIALECT_PAIRED);
    script_submit(s, LIST_DEL, &item, 1);
    answer_until_fast(s, "x,y," MARK ",", MARK ",");
    answer_changing(s, "x,y," MARK ",", MARK ",x,,@9e8d2184b19fff6d,", 4);
    struct list_request *r = rig_take(&s->rig, BE_CAS, "follow-k");
    rig_answer(&s->rig, r, BE_EXISTS, NULL, -1);
    answer_cas(s, BE_GET, "follow-k", "x,y," MARK ",x,", 5);
    answer_cas(s, BE_GET, "unfollow-k", MARK ",x,,@9e8d2184b19fff6d,", 5);
    answer_cas(s, BE_SIZE, "follow-k", "x,y," MARK ",x,", 5);
    r = rig_take(&s->rig, BE_CAS, "follow-k");
    assert_int_equal(r->be.cas, 5);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    script_expect_answer(s, LIST_OK);
    script_expect(s, BE_CAS, "unfollow-k", BE_STORED, NULL);
    answer_cas(s, BE_GET, "follow-k", "y,@9e8d2184b19fff6d,", 6);
    answer_cas(s, BE_GET, "unfollow-k", "@9e8d2184b19fff6d,", 6);
    answer_cas(s, BE_SIZE, "follow-k", "y,@9e8d2184b19fff6d,", 6);
    (void)engine_run(s->rig.engine, s->rig.now);
    assert_null(engine_take_request(s->rig.engine));
    assert_false(engine_busy(s->rig.engine));
}

/* Additions without a mark beside deletions that begin with one: the deletions were replaced by
 * hand. Then a folding puts marks into both, and cuts the deletions, while a look reads. */
static void test_deletions_that_were_cut_meanwhile_do_not_fit(void **state)
{
    struct script *s = *state;
    begin(s, DIALECT_PAIRED);
    script_submit(s, LIST_LEN, NULL, 0);
    answer_until_fast(s, "x,y,", MARK ",x,");
    answer_changing(s, "x,y,", MARK ",x,", 4);
    answer_changing(s, "x,y,", LATER_MARK ",", 5);
    answer_changing(s, "y," LATER_MARK ",", LATER_MARK ",", 6);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
}

/* ---- the place for a copy ---- */

#define LOG "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x+y-y"

static struct list_request *expect_write(struct script *s, const char *a, const char *b,
                                         enum be_verb verb, char *value, size_t cap)
{
    struct list_request *r = next_write(s, a, b);
    assert_int_equal(r->be.verb, verb);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    snprintf(value, cap, "%.*s", SLICE_ARGS(r->be.value));
    return r;
}

/* The proxy may be slower than an ldrop: what it adds holds no items, and it copies what it reads
 * behind that, by CAS. What a slow writer has appended to the place stands behind the copy. */
static void expect_place_then_copy(struct script *s, enum list_dialect dialect, const char *late,
                                   const char *begins, const char *ends)
{
    char place[200], copy[300];
    begin(s, dialect);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = expect_write(s, LOG, NULL, BE_ADD, place, sizeof place);
    assert_null(strchr(place, 'x'));
    assert_int_equal(strncmp(place, begins, strlen(begins)), 0);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    (void)snprintf(place + strlen(place), sizeof place - strlen(place), "%s", late);
    r = expect_write(s, LOG, place, BE_CAS, copy, sizeof copy);
    assert_non_null(strstr(copy, "+x"));
    assert_string_equal(copy + strlen(copy) - strlen(ends), ends);
    rig_answer(&s->rig, r, BE_NOT_FOUND, NULL, -1);
}

static void test_a_copy_of_flip_comes_by_cas_alone(void **state)
{
    expect_place_then_copy(*state, DIALECT_FLIP, "", "", "");
}

static void test_a_copy_of_marker_comes_by_cas_alone(void **state)
{
    expect_place_then_copy(*state, DIALECT_MARKER, "+z-v", "^+@46::", "+z-v");
}

/* The other log is empty, and has a time of its own; the list has none. A time that is left is
 * asked for first, where the copy would have it. */
static void expect_copy_that_stays(struct script *s, enum list_dialect dialect, const char *other,
                                   const char *begins)
{
    begin(s, dialect);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = rig_next(&s->rig);
    while (r->be.verb == BE_GET || r->be.verb == BE_SIZE) {
        bool b = slice_equal(r->be.key, SLICE_LIT("k.b"));
        const char *value = b ? other : slice_equal(r->be.key, SLICE_LIT("k.a")) ? LOG : "k.a";
        rig_answer_cas(&s->rig, r, BE_HIT, value, b ? 20 : -1, 1);
        r = rig_next(&s->rig);
    }
    assert_int_equal(r->be.verb, BE_CAS);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    assert_true(slice_starts_with(r->be.value, slice_of(begins)));
    assert_int_equal(r->be.exptime, 0);
    rig_answer(&s->rig, r, BE_NOT_FOUND, NULL, -1);
}

static void test_a_copy_has_the_time_of_what_it_copies(void **state)
{
    expect_copy_that_stays(*state, DIALECT_FLIP, "", "+@0:");
}

static void test_a_copy_in_a_place_has_the_time_of_what_it_copies(void **state)
{
    char place[160];
    uint64_t hash = hash_stable(SLICE_LIT(LOG), hash_stable(SLICE_LIT(LOG), 0));
    size_t len = strlen(LOG);
    (void)snprintf(place, sizeof place, "^+@%zu::%016" PRIx64 "-@%zu::%016" PRIx64, len, hash, len,
                   hash);
    expect_copy_that_stays(*state, DIALECT_MARKER, place, "+@0:");
}

/* Another proxy's copy, which was made before the list got another time. */
static void test_a_copy_that_takes_late_entries_has_their_time(void **state)
{
    expect_copy_that_stays(*state, DIALECT_FLIP,
                           "+@0:9c1f0a77d3b2e845-@0:9c1f0a77d3b2e845+x"
                           "+@42:8a55951ff349e39d-@42:8a55951ff349e39d",
                           "+@0:9c");
}

/* The log was read, the list was dropped, and another proxy has added the place: the log is asked
 * about behind the place. */
static void test_what_is_copied_was_read_behind_the_place(void **state)
{
    struct script *s = *state;
    char place[200];
    begin(s, DIALECT_FLIP);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = expect_write(s, LOG, NULL, BE_ADD, place, sizeof place);
    rig_answer(&s->rig, r, BE_EXISTS, NULL, -1);
    answer_logs(s, LOG, "", 1);
    confirm_others(s, "", 1);
    answer_cas(s, BE_SIZE, "k.a", NULL, 0);
    answer_cas(s, BE_GET, "k.a", NULL, 0);
}

/* The list was dropped meanwhile: nothing of the folding stays. */
static void test_a_place_goes_where_its_list_is_gone(void **state)
{
    struct script *s = *state;
    char place[200], nothing[8];
    begin(s, DIALECT_MARKER);
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = expect_write(s, LOG, NULL, BE_ADD, place, sizeof place);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    r = expect_write(s, NULL, place, BE_CAS_DELETE, nothing, sizeof nothing);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    answer_both(s, NULL, 0, NULL, 0);
}

/* Another proxy, which was slow, closes the log that was copied the time before: but that is the
 * active one again, and its items stand nowhere else. */
static void test_a_place_is_no_copy(void **state)
{
    static const char log[] = TAKEN;
    char place[160];
    uint64_t hash = hash_stable(SLICE_LIT(TAKEN), hash_stable(SLICE_LIT(TAKEN), 0));
    (void)snprintf(place, sizeof place, "^+@%zu::%016" PRIx64 "-@%zu::%016" PRIx64 "+z",
                   strlen(log), hash, strlen(log), hash);
    struct script *s = *state;
    begin(s, DIALECT_MARKER);
    script_submit(s, LIST_LEN, NULL, 0);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, "^" TAKEN, 1, place, 1);
    }
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* ---- ldrop beside a folding ---- */

static const char copy_of_x[] = "+@0:5d0c81f2a4b69e37-@0:5d0c81f2a4b69e37+x"
                                "+@2:9c1f0a77d3b2e845-@2:9c1f0a77d3b2e845";

/* Another proxy that has read the list writes its copy while the items are removed one by one: that
 * goes as well, or all would be back. */
static void test_a_copy_that_comes_while_a_list_is_dropped_goes_too(void **state)
{
    struct script *s = *state;
    begin(s, DIALECT_FLIP);
    script_submit(s, LIST_DROP, NULL, 0);
    for (unsigned look = 0; look < 3; look++) {
        answer_logs(s, "+x", NULL, 1);
    }
    script_expect(s, BE_DELETE, "k.b", BE_NOT_FOUND, NULL);
    script_expect(s, BE_DELETE, "k.active", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "k.a", BE_DELETED, NULL);
    answer_cas(s, BE_GET, "k.a", NULL, 0);
    answer_cas(s, BE_GET, "k.b", copy_of_x, 2);
    answer_cas(s, BE_GET, "k.active", NULL, 0);
    script_expect(s, BE_DELETE, "k.b", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "k.active", BE_NOT_FOUND, NULL);
    script_expect(s, BE_DELETE, "k.a", BE_NOT_FOUND, NULL);
    answer_cas(s, BE_GET, "k.a", NULL, 0);
    answer_cas(s, BE_GET, "k.b", NULL, 0);
    answer_cas(s, BE_GET, "k.active", NULL, 0);
    script_expect_done(s, LIST_OK);
}

/* k.b is a copy of k.a, which is closed. k.a alone would be the list as it was at that time, with
 * what has been deleted since: it goes first, and where k.b stays, nothing is known of it. */
static void test_the_log_that_counts_is_dropped_last(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("z");
    begin(s, DIALECT_MARKER);
    script_submit(s, LIST_DROP, NULL, 0);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, "^" TAKEN, 1, COPY, 1);
    }
    script_expect(s, BE_DELETE, "k.a", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "k.b", BE_LOST, NULL);
    script_expect_done(s, LIST_SERVER_ERROR);
    script_submit(s, LIST_ADD, &item, 1);
    for (unsigned look = 0; look < 3; look++) {
        answer_both(s, NULL, 0, COPY, 1);
    }
    script_expect(s, BE_APPEND, "k.b", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* Drops k, and answers that its log k.b has been begun by hand since, as "+y". */
static void drop_what_begins_anew(struct script *s)
{
    begin(s, DIALECT_MARKER);
    script_submit(s, LIST_DROP, NULL, 0);
    for (unsigned look = 0; look < 2; look++) {
        answer_both(s, "+x", 1, NULL, 0);
    }
    script_expect(s, BE_DELETE, "k.b", BE_NOT_FOUND, NULL);
    script_expect(s, BE_DELETE, "k.a", BE_DELETED, NULL);
    answer_both(s, NULL, 0, "+y", 3);
}

/* The same, and it has become that by the time at which it is written once more. */
static void drop_what_changes(struct script *s, const char *b)
{
    drop_what_begins_anew(s);
    script_expect(s, BE_CAS, "k.b", BE_EXISTS, NULL);
    answer_both(s, NULL, 0, b, 4);
}

/* What others begin by hand is theirs. Where that came between the deletions, another proxy that
 * folds may be about to write into it what k.a held. It does so by CAS, and no longer can once the
 * log has another CAS number. */
static void test_a_list_that_begins_beside_an_ldrop_stays(void **state)
{
    struct script *s = *state;
    drop_what_begins_anew(s);
    struct list_request *r = rig_next(&s->rig);
    assert_int_equal(r->be.verb, BE_CAS);
    assert_true(slice_equal(r->be.key, SLICE_LIT("k.b")));
    assert_true(slice_equal(r->be.value, SLICE_LIT("+y")));
    assert_int_equal(r->be.cas, 3);
    rig_answer(&s->rig, r, BE_STORED, NULL, -1);
    script_expect_done(s, LIST_OK);
}

static void test_a_log_that_took_items_beside_an_ldrop_goes(void **state)
{
    struct script *s = *state;
    drop_what_changes(s, copy_of_x);
    script_expect(s, BE_DELETE, "k.b", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "k.a", BE_NOT_FOUND, NULL);
    answer_both(s, NULL, 0, NULL, 0);
    script_expect_done(s, LIST_OK);
}

/* A client by hand has appended to it. */
static void test_a_log_that_grows_beside_an_ldrop_stays(void **state)
{
    struct script *s = *state;
    drop_what_changes(s, "+y+z");
    script_expect_done(s, LIST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_a_log_may_have_been_emptied_since_the_pointer_was_read),
        script_test(test_a_log_that_grows_is_confirmed),
        script_test(test_a_log_may_have_taken_over_the_other_since_it_was_read),
        script_test(test_a_question_that_was_repeated_is_out_of_order),
        script_test(test_a_log_may_have_been_removed_since_the_other_was_read),
        script_test(test_a_log_that_was_taken_over_is_not_the_active_one),
        script_test(test_a_copy_may_have_come_and_gone_since_the_active_log_was_read),
        script_test(test_an_active_log_that_is_gone_is_not_confirmed),
        script_test(test_a_log_that_is_closed_whole_has_a_number),
        script_test(test_late_deletions_count_beside_a_copy),
        script_test(test_a_log_that_was_made_anew_is_closed_and_numbered),
        script_test(test_a_log_that_was_taken_whole_does_not_become_active_again),
        script_test(test_a_log_that_got_a_number_late_does_not_become_active),
        script_test(test_a_list_that_was_begun_twice_loses_nothing),
        script_test(test_a_copy_by_hand_brings_nothing_back),
        script_test(test_a_copy_that_is_made_shorter_keeps_the_items_of_an_lset),
        script_test(test_a_log_without_room_for_a_mark_is_taken_before_it_is_closed),
        script_test(test_a_log_gets_a_number_before_it_is_copied),
        script_test(test_a_deletion_is_not_done_by_a_look_that_may_be_wrong),
        script_test(test_deletions_that_were_cut_meanwhile_do_not_fit),
        script_test(test_a_copy_of_flip_comes_by_cas_alone),
        script_test(test_a_copy_of_marker_comes_by_cas_alone),
        script_test(test_a_copy_has_the_time_of_what_it_copies),
        script_test(test_a_copy_in_a_place_has_the_time_of_what_it_copies),
        script_test(test_a_copy_that_takes_late_entries_has_their_time),
        script_test(test_what_is_copied_was_read_behind_the_place),
        script_test(test_a_place_goes_where_its_list_is_gone),
        script_test(test_a_place_is_no_copy),
        script_test(test_an_active_log_that_was_closed_is_not_confirmed),
        script_test(test_a_copy_that_comes_while_a_list_is_dropped_goes_too),
        script_test(test_the_log_that_counts_is_dropped_last),
        script_test(test_a_list_that_begins_beside_an_ldrop_stays),
        script_test(test_a_log_that_took_items_beside_an_ldrop_goes),
        script_test(test_a_log_that_grows_beside_an_ldrop_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
