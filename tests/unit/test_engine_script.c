/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scripted conversations of the list engine with a backend: what it sends, what it is answered, how
 * the call ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support_engine.h"

#define FIRST_RUN "aaaaaaaaaaaaa"
#define SECOND_RUN "bbbbbbbbbbbbb"

/* value: of a hit, or NULL. */
static void answer(struct script *s, struct list_request *request, enum be_status status,
                   const char *value)
{
    rig_answer(&s->rig, request, status, value, -1);
}

/* The append of an ldrop found no head, but there is one after all, so it is cleared by CAS. What
 * others add from there on belongs to a time after the ldrop and stays. */
static void test_drop_clears_only_once(void **state)
{
    struct script *s = *state;
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:b");
    script_expect_done(s, LIST_OK);
}

/* A node of a bucket says that a head has no room for an append, memcached that it is not stored:
 * the head is looked at, and folded, in both cases. */
static void test_an_append_that_is_too_large_is_looked_into(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    for (int tries = 0; tries < 2; tries++) {
        script_expect(s, BE_APPEND, "k#", BE_TOO_LARGE, NULL);
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:b-1:b");
    }
    struct list_request *folded = engine_take_request(s->rig.engine);
    assert_true(slice_equal(folded->be.value, SLICE_LIT("^1\n+1:x")));
    answer(s, folded, BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_APPEND, "k#", BE_TOO_LARGE, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:x");
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
}

/* An append reaches any item, also a foreign one: a change of a list that this worker does not know
 * looks first, and leaves alone what is no list. */
static void test_change_of_what_is_no_list_is_refused(void **state)
{
    struct script *s = *state;
    const enum list_verb verbs[] = {LIST_ADD, LIST_DEL, LIST_SET, LIST_DROP};
    struct slice item = SLICE_LIT("x");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        script_submit(s, verbs[i], &item, verbs[i] != LIST_DROP);
        script_expect(s, BE_GET, "k#", BE_HIT, "<html>");
        script_expect_done(s, LIST_SERVER_ERROR);
        assert_string_equal(s->call.error, "k# holds no list that this version can read");
    }
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_foreign), 4);
}

/* A list that this worker has read, changed or made is known: one request per change. */
static void test_change_of_a_known_list_does_not_look(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_ADD, "k#", BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    for (int i = 0; i < 3; i++) {
        script_submit(s, LIST_ADD, &item, 1);
        script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        script_expect_done(s, LIST_OK);
    }
    /* It was removed, and something else has its name: what is not known any more is looked at. */
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "something else");
    script_expect_done(s, LIST_SERVER_ERROR);
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "something else");
    script_expect_done(s, LIST_SERVER_ERROR);
}

/* Of two ldrops that meet an empty list, one removes it; the other found nothing. */
static void test_drop_that_was_overtaken_found_nothing(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n");
    script_expect(s, BE_CAS_DELETE, "k#", BE_NOT_FOUND, NULL);
    script_expect_done(s, LIST_MISSING);
}

/* What is left of a list that has been dropped is tidied up behind the answer. */
static void test_drop_under_refuse_is_one_step(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    script_submit(s, LIST_DROP, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1\n+1:a");
    script_expect(s, BE_CAS_DELETE, "k#", BE_STORED, NULL);
    script_expect(s, BE_DELETE, "k#" FIRST_RUN ".0", BE_DELETED, NULL);
    script_expect_done(s, LIST_OK);
}

/* The newer run alone outgrows the memory allowed: its deletions are not all known, so nothing may
 * be said about the older one. */
static void test_create_does_not_guess_when_memory_is_short(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    s->rig.config->lists[0].fold_memory_bytes = 1;
    script_submit(s, LIST_CREATE, &item, 1);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1 " SECOND_RUN ".1:18:0\n");
    script_expect(s, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000001\n-1:a");
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "fold_memory_bytes"));
}

/* Begins a flip: announced, and its sublist on its way, under that name. */
static void begin_flip(struct script *s, char run[32])
{
    const char *log = "+1:a+1:b+1:c+1:d+1:e+1:f+1:g+1:h+1:i+1:j";
    char head[160];
    s->rig.config->lists[0].log_limit_bytes = 32;
    snprintf(head, sizeof head, "^1\n%s", log);
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    snprintf(head, sizeof head, "^1\n%s%.*s", log, (int)append->be.value.len, append->be.value.p);
    snprintf(run, 32, "k#%.13s.0", strchr(strchr(head, '~'), ':') + 1);
    answer(s, append, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_ADD, run, BE_STORED, NULL);
}

/* A client has stored something else in the list's place, and the flip has seen it: its own sublist
 * goes, and nothing is appended to what is no list. */
static void test_flip_that_meets_what_is_no_list_leaves_it_alone(void **state)
{
    struct script *s = *state;
    char run[32];
    begin_flip(s, run);
    script_expect(s, BE_CAS, "k#", BE_EXISTS, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "[5,1,1,3]");
    script_expect(s, BE_DELETE, run, BE_DELETED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "[5,1,1,3]");
    script_expect_done(s, LIST_SERVER_ERROR);
}

/* Of another list it cannot know whether the announcement is in it. */
static void test_flip_that_meets_another_list_withdraws(void **state)
{
    struct script *s = *state;
    char run[32];
    begin_flip(s, run);
    script_expect(s, BE_CAS, "k#", BE_EXISTS, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:z");
    script_expect(s, BE_DELETE, run, BE_DELETED, NULL);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:z");
    script_expect_done(s, LIST_OK);
}

/* The list was dropped before the announcement came, and another client has the lease to fill it:
 * no run is written for a list that is missing. */
static void test_flip_that_meets_a_lease_withdraws(void **state)
{
    struct script *s = *state;
    char head[160];
    s->rig.config->lists[0].on_missing = ON_MISSING_REFUSE;
    s->rig.config->lists[0].log_limit_bytes = 32;
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b+1:c+1:d+1:e+1:f+1:g+1:h+1:i+1:j");
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    snprintf(head, sizeof head, "^1 ?7.1700000100\n%.*s", SLICE_ARGS(append->be.value));
    answer(s, append, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 ?7.1700000100\n");
    script_expect_done(s, LIST_MISSING);
}

/* Another proxy's flip was faster: own changes would wait for one of next to nothing. */
static void test_flip_of_a_log_that_was_flipped_meanwhile_withdraws(void **state)
{
    struct script *s = *state;
    char head[160];
    s->rig.config->lists[0].log_limit_bytes = 40;
    script_submit(s, LIST_LEN, NULL, 0);
    const char *log = "+1:a+1:b+1:c+1:d+1:e+1:f+1:g+1:h+1:i+1:j+1:k+1:l+1:m+1:n+1:o+1:p";
    snprintf(head, sizeof head, "^1\n%s", log);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect_answer(s, LIST_OK);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
    snprintf(head, sizeof head, "^1 " FIRST_RUN ".1:80:16\n%.*s+1:q", SLICE_ARGS(append->be.value));
    answer(s, append, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *withdrawal = rig_take(&s->rig, BE_APPEND, "k#");
    assert_true(slice_starts_with(withdrawal->be.value, SLICE_LIT("~26:")));
    answer(s, withdrawal, BE_STORED, NULL);
}

/* A run is announced, but what stands in the head then cannot be read: the announcement is taken
 * back at once, by an append. It would take room in the log until its grace is over. */
static void test_announcement_is_withdrawn_when_the_head_cannot_be_read(void **state)
{
    struct script *s = *state;
    const char *heads[] = {"^1\n+1:a+1:b", "^1 " FIRST_RUN ".1:18:1 " SECOND_RUN ".1:18:1\n"};
    s->rig.config->lists[0].log_limit_bytes = 4;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        script_submit(s, LIST_COMPACT, NULL, 0);
        script_expect(s, BE_GET, "k#", BE_HIT, heads[i]);
        script_expect(s, BE_APPEND, "k#", BE_STORED, NULL);
        script_expect(s, BE_GET, "k#", BE_REFUSED, NULL);
        struct list_request *append = rig_take(&s->rig, BE_APPEND, "k#");
        struct slice entry = append->be.value;
        assert_true(slice_starts_with(entry, SLICE_LIT("~26:")));
        entry = slice_make(entry.p + 4 + 13, entry.len - 4 - 13);
        assert_true(slice_starts_with(entry, SLICE_LIT(".0.")));
        answer(s, append, BE_STORED, NULL);
        script_expect_done(s, LIST_SERVER_ERROR);
    }
}

/* Nor is such a list counted as far as it was read. */
static void test_read_does_not_guess_when_memory_is_short(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].fold_memory_bytes = 1;
    script_submit(s, LIST_STAT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 " FIRST_RUN ".1:18:1 " SECOND_RUN ".1:18:0\n");
    script_expect(s, BE_GET, "k#" SECOND_RUN ".0", BE_HIT, "^1 0000000001\n-1:a");
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "fold_memory_bytes"));
}

/* Answers what a merge asks for, until it publishes. The sublist of each run deletes twenty items
 * that no other one has. */
static struct list_request *next_publication(struct script *s, char *head, size_t cap)
{
    struct list_request *r = rig_next(&s->rig);
    for (; r->be.verb != BE_CAS; r = rig_next(&s->rig)) {
        if (r->be.verb == BE_APPEND) {
            size_t used = strlen(head);
            snprintf(head + used, cap - used, "%.*s", SLICE_ARGS(r->be.value));
            answer(s, r, BE_STORED, NULL);
        } else if (slice_equal(r->be.key, SLICE_LIT("k#"))) {
            answer(s, r, BE_HIT, head);
        } else {
            char sublist[160] = "^1 0000000020\n";
            for (char item = 'a'; item < 'a' + 20; item++) {
                size_t used = strlen(sublist);
                snprintf(sublist + used, sizeof sublist - used, "-2:%c%c", r->be.key.p[2], item);
            }
            assert_int_equal(r->be.verb, BE_GET);
            answer(s, r, BE_HIT, sublist);
        }
    }
    return r;
}

/* A head says nothing of the deletions in a run, and they take more memory than the plan gives
 * them. */
static void test_a_merge_that_does_not_fit_takes_fewer_runs(void **state)
{
    struct script *s = *state;
    char runs[256] = "", head[512], value[512];
    for (char run = 'a'; run < 'f'; run++) {
        size_t used = strlen(runs);
        snprintf(runs + used, sizeof runs - used, " %c%s.1:100:0", run, &FIRST_RUN[1]);
    }
    snprintf(head, sizeof head, "^1%s\n", runs);
    s->rig.config->lists[0].fold_memory_bytes = 6500;
    script_submit(s, LIST_COMPACT, NULL, 0);
    struct list_request *r = next_publication(s, head, sizeof head);
    snprintf(value, sizeof value, "%.*s", SLICE_ARGS(r->be.value));
    assert_null(strstr(value, "baaaaaaaaaaaa.1:"));
    assert_non_null(strstr(value, "caaaaaaaaaaaa.1:"));
    answer(s, r, BE_STORED, NULL);
}

/* Announcements of crashed proxies fill the log and no change fits any more: they are swept without
 * waiting for a change to fold. */
static void test_log_full_of_dead_announcements_is_swept(void **state)
{
    struct script *s = *state;
    char head[256];
    s->rig.config->lists[0].log_limit_bytes = 32;
    strncpy(head, "^1\n~26:" FIRST_RUN ".1.1600000000~26:" SECOND_RUN ".1.1600000000", sizeof head);
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
}

/* The names of a dead proxy are deleted as other garbage is, in the step behind the one that has
 * taken its announcement off. */
static void test_names_of_a_dead_proxy_are_deleted(void **state)
{
    struct script *s = *state;
    const char *head = "^1\n+1:a~26:" FIRST_RUN ".2.1600000000";
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(cas->be.value, SLICE_LIT("^1 -" FIRST_RUN ".2\n+1:a")));
    answer(s, cas, BE_STORED, NULL);
    head = "^1 -" FIRST_RUN ".2\n+1:a";
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    script_expect(s, BE_DELETE, "k#" FIRST_RUN ".0", BE_DELETED, NULL);
    script_expect(s, BE_DELETE, "k#" FIRST_RUN ".1", BE_NOT_FOUND, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    cas = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(cas->be.value, SLICE_LIT("^1\n+1:a")));
    answer(s, cas, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    script_expect_done(s, LIST_OK);
}

/* Answers the requests of collecting as a server would on which these names have an item: those
 * below so many of the run of that letter. Returns the next request that is none of these. counts:
 * by verb. */
static struct list_request *serve_collecting(struct script *s, const uint32_t stored[128],
                                             uint64_t counts[BE_DELETE + 1])
{
    for (;;) {
        struct list_request *r = engine_take_request(s->rig.engine);
        if (r == NULL) {
            (void)engine_run(s->rig.engine, s->rig.now);
            r = engine_take_request(s->rig.engine);
            assert_non_null(r);
        }
        if (r->be.key.len < 4) {
            return r;
        }
        uint64_t number = 0;
        struct slice digits = slice_make(r->key + 16, r->be.key.len - 16u);
        assert_true(slice_to_u64(digits, &number));
        bool there = number < stored[(unsigned char)r->key[2]];
        counts[r->be.verb]++;
        answer(s, r, there ? BE_DELETED : BE_NOT_FOUND, NULL);
    }
}

/* One item that any client could write would have millions of others deleted: that stops where
 * nothing more can be. What is there is found all the same. */
static void test_deleting_stops_where_nothing_is(void **state)
{
    struct script *s = *state;
    const char *head = "^1 -" FIRST_RUN ".9999999\n";
    uint64_t counts[BE_DELETE + 1] = {0};
    const uint32_t stored[128] = {['a'] = 20000};
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *r = serve_collecting(s, stored, counts);
    assert_int_equal(r->be.verb, BE_GET);
    assert_int_equal(counts[BE_DELETE], 20000 + 65536);
    answer(s, r, BE_HIT, head);
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(cas->be.value, SLICE_LIT("^1\n")));
    answer(s, cas, BE_STORED, NULL);
}

/* Nor do many such names in one head: the rest stays for another compaction, and the caller hears
 * of it. */
static void test_collecting_leaves_what_is_too_much(void **state)
{
    struct script *s = *state;
    const char *head = "^1 -" FIRST_RUN ".9999999 -" SECOND_RUN ".9999999 -ccccccccccccc.5\n";
    uint64_t counts[BE_DELETE + 1] = {0};
    const uint32_t stored[128] = {0};
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    struct list_request *r = serve_collecting(s, stored, counts);
    assert_int_equal(counts[BE_DELETE], 65536);
    answer(s, r, BE_HIT, head);
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(
        slice_equal(cas->be.value, SLICE_LIT("^1 -" SECOND_RUN ".9999999 -ccccccccccccc.5\n")));
    answer(s, cas, BE_STORED, NULL);
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error, "the head names more garbage than can exist: "
                                       "the rest is left for later");
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_purges_cut), 1);
}

/* Names that are about to fill the head are collected first. When that cannot be done, because a
 * server is down, the log is folded all the same: it must not fill up. */
static void test_compaction_goes_on_without_collecting(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].log_limit_bytes = 4;
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 -" FIRST_RUN ".1\n+1:a-1:a+1:b-1:b");
    script_expect(s, BE_DELETE, "k#" FIRST_RUN ".0", BE_DOWN, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 -" FIRST_RUN ".1\n+1:a-1:a+1:b-1:b");
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 -" FIRST_RUN ".1\n+1:a-1:a+1:b-1:b");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 -" FIRST_RUN ".1\n+1:a-1:a+1:b-1:b");
    struct list_request *cas = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_equal(cas->be.value, SLICE_LIT("^1 -" FIRST_RUN ".1\n")));
    answer(s, cas, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1 -" FIRST_RUN ".1\n");
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_string_equal(s->call.error, "backend refused the change");
    assert_int_equal(metric_get(&s->rig.metrics, METRIC_list_folds), 1);
}

/* A call may wait too long although nothing is under way for its list: the log says so too. */
static void test_log_says_what_calls_waited_for(void **state)
{
    struct script *s = *state;
    char path[] = "/tmp/mclistd-test-XXXXXX", text[1024] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(log_open(path, LOG_INFO_LEVEL), 0);
    s->call.deadline_us = s->rig.now.mono_us + 1000000;
    script_submit(s, LIST_LEN, NULL, 0);
    s->rig.now.mono_us += 5000000;
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_int_equal(log_open(NULL, LOG_INFO_LEVEL), 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(path);
    assert_non_null(strstr(text, "what they waited for: a busy worker"));
}

/* The list is dropped between the look at it and the announcement of a flip: there is nothing to
 * compact any more. */
static void test_compact_of_a_list_that_is_dropped_meanwhile(void **state)
{
    struct script *s = *state;
    s->rig.config->lists[0].log_limit_bytes = 4;
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
}

/* A head that extstore has moved to disk takes no appends: the flip is announced by CAS. */
static void test_compact_of_a_head_on_disk(void **state)
{
    struct script *s = *state;
    char head[256];
    s->rig.config->lists[0].log_limit_bytes = 4;
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    struct list_request *request = rig_take(&s->rig, BE_CAS, "k#");
    assert_true(slice_starts_with(request->be.value, SLICE_LIT("^1\n+1:a+1:b~")));
    snprintf(head, sizeof head, "%.*s", SLICE_ARGS(request->be.value));
    answer(s, request, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, head);
    request = engine_take_request(s->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->be.verb, BE_ADD);
    answer(s, request, BE_STORED, NULL);
    script_expect(s, BE_CAS, "k#", BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
}

/* An item that is full takes no announcement. Returns the ADD of the run's sublist, whose key goes
 * to sublist, of 64 bytes. */
static struct list_request *begin_full_flip(struct script *s, char *sublist)
{
    s->rig.config->lists[0].log_limit_bytes = 4;
    script_submit(s, LIST_COMPACT, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect(s, BE_APPEND, "k#", BE_NOT_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect(s, BE_CAS, "k#", BE_TOO_LARGE, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    struct list_request *request = engine_take_request(s->rig.engine);
    assert_non_null(request);
    assert_int_equal(request->be.verb, BE_ADD);
    snprintf(sublist, 64, "%.*s", SLICE_ARGS(request->be.key));
    return request;
}

/* It is deleted, and the list has gone when it is looked at once more. */
static void expect_undone(struct script *s, const char *sublist)
{
    script_expect(s, BE_DELETE, sublist, BE_DELETED, NULL);
    s->rig.now.mono_us += 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
}

static void test_compact_of_a_head_that_is_full(void **state)
{
    struct script *s = *state;
    char sublist[64];
    answer(s, begin_full_flip(s, sublist), BE_STORED, NULL);
    struct list_request *request = rig_take(&s->rig, BE_CAS, "k#");
    assert_int_equal(request->be.value.len, strlen("^1 nnnnnnnnnnnnn.1:22:2\n"));
    answer(s, request, BE_STORED, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect_done(s, LIST_OK);
}

/* Nothing is published in a head that is another one by now: nothing there would say that the name
 * has not been swept. */
static void test_compact_of_a_full_head_that_changes(void **state)
{
    struct script *s = *state;
    char sublist[64];
    struct list_request *request = begin_full_flip(s, sublist);
    answer(s, request, BE_STORED, NULL);
    script_expect(s, BE_CAS, "k#", BE_EXISTS, NULL);
    s->rig.now.mono_us += 1000;
    (void)engine_run(s->rig.engine, s->rig.now);
    request = rig_take(&s->rig, BE_GET, "k#");
    rig_answer_cas(&s->rig, request, BE_HIT, "^1\n+1:a+1:b+1:c", -1, 8);
    (void)engine_run(s->rig.engine, s->rig.now);
    expect_undone(s, sublist);
}

/* Nor by a proxy that has slept: the sublists may have been swept. */
static void test_compact_of_a_full_head_that_takes_too_long(void **state)
{
    struct script *s = *state;
    char sublist[64];
    struct list_request *request = begin_full_flip(s, sublist);
    s->rig.now.wall_s += s->rig.config->lists[0].announcement_grace_s / 2;
    answer(s, request, BE_STORED, NULL);
    expect_undone(s, sublist);
}

/* The next request that changes something; all before it read that head. */
static struct list_request *next_change(struct script *s, const char *head)
{
    struct list_request *request = rig_next(&s->rig);
    while (request->be.verb == BE_GET || request->be.verb == BE_SIZE) {
        answer(s, request, BE_HIT, head);
        request = rig_next(&s->rig);
    }
    return request;
}

/* A change that is the first of its worker waits for room as any other, and is not answered that it
 * should be tried again. */
static void test_a_first_change_waits_for_room(void **state)
{
    struct script *s = *state;
    static const char full[] = "^1\n+1:a+1:b+1:d+1:e";
    static const enum be_verb steps[] = {BE_APPEND, BE_APPEND, BE_CAS, BE_ADD, BE_CAS};
    static const enum be_status answers[] = {BE_NOT_STORED, BE_NOT_STORED, BE_TOO_LARGE, BE_STORED,
                                             BE_STORED};
    struct slice item = SLICE_LIT("c");
    s->rig.config->lists[0].log_limit_bytes = 4;
    s->rig.config->lists[0].log_hard_limit_bytes = 12;
    script_submit(s, LIST_ADD, &item, 1);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct list_request *request = next_change(s, full);
        assert_int_equal(request->be.verb, steps[i]);
        answer(s, request, answers[i], NULL);
        assert_null(engine_take_done(s->rig.engine));
    }
    struct list_request *again = next_change(s, "^1\n+1:a");
    assert_true(slice_equal(again->be.value, SLICE_LIT("+1:c")));
    answer(s, again, BE_STORED, NULL);
    script_expect_answer(s, LIST_OK);
}

/* Moving a long list takes longer than a call may wait for its turn: that is not why it failed. */
static void test_conversion_may_take_long(void **state)
{
    struct script *s = *state;
    const char *moved = "\1mclistd moved 1 11 0\n^1\n+1:a+1:b";
    s->rig.config->lists[0].dialect = DIALECT_SIMPLE;
    s->rig.config->lists[0].migrate = MIGRATE_NATIVE;
    script_submit(s, LIST_CONVERT, NULL, 0);
    script_expect(s, BE_GET, "k", BE_HIT, "a,b,");
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k", BE_HIT, "a,b,");
    script_expect(s, BE_GET, "k", BE_HIT, "a,b,");
    script_expect(s, BE_CAS, "k", BE_STORED, NULL);
    script_expect(s, BE_GET, "k", BE_HIT, moved);
    script_expect(s, BE_ADD, "k#", BE_STORED, NULL);
    s->rig.now.mono_us += 100000000;
    script_expect(s, BE_DELETE, "k", BE_DELETED, NULL);
    script_expect(s, BE_GET, "k", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 2);
}

/* A change that was written to the old items while the list moved may be in the new one. */
static void test_change_beside_a_conversion_is_in_doubt(void **state)
{
    struct script *s = *state;
    struct slice item = SLICE_LIT("x");
    struct list_policy *policy = &s->rig.config->lists[0];
    policy->dialect = DIALECT_PAIRED;
    policy->changes = CHANGES_BLIND;
    policy->migrate = MIGRATE_NATIVE;
    policy->key_bytes_max = LIST_KEY_BYTES_MAX;
    script_submit(s, LIST_ADD, &item, 1);
    script_expect(s, BE_GET, "k", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "follow-k", BE_HIT, "a,b,");
    script_expect(s, BE_GET, "unfollow-k", BE_MISS, NULL);
    script_expect(s, BE_SIZE, "follow-k", BE_HIT, "a,b,");
    script_expect(s, BE_APPEND, "follow-k", BE_STORED, NULL);
    script_expect(s, BE_GET, "k", BE_MISS, NULL);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a+1:b");
    script_expect(s, BE_GET, "follow-k", BE_HIT, "a,b,x,"); /* is it the list's? */
    script_expect(s, BE_GET, "unfollow-k", BE_MISS, NULL);
    script_expect(s, BE_SIZE, "follow-k", BE_HIT, "");
    struct list_request *adds = rig_take(&s->rig, BE_DELETE, "follow-k");
    struct list_request *deletes = rig_take(&s->rig, BE_DELETE, "unfollow-k");
    answer(s, adds, BE_DELETED, NULL);
    answer(s, deletes, BE_NOT_FOUND, NULL);
    script_expect(s, BE_GET, "k", BE_DOWN, NULL);
    script_expect_done(s, LIST_SERVER_ERROR);
    assert_non_null(strstr(s->call.error, "outcome unknown: the list has moved"));
}

/* There is no room for the record: the sublists that it would have named go again. */
static void test_conversion_without_room_leaves_nothing(void **state)
{
    struct script *s = *state;
    struct list_policy *policy = &s->rig.config->lists[0];
    policy->dialect = DIALECT_SIMPLE;
    policy->migrate = MIGRATE_NATIVE;
    policy->log_limit_bytes = 8;
    script_submit(s, LIST_CONVERT, NULL, 0);
    script_expect(s, BE_GET, "k", BE_HIT, "a,b,");
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    script_expect(s, BE_GET, "k", BE_HIT, "a,b,");
    script_expect(s, BE_GET, "k", BE_HIT, "a,b,");
    char sublist[KEY_BYTES_MAX + 1] = "";
    struct list_request *request = engine_take_request(s->rig.engine);
    assert_non_null(request);
    memcpy(sublist, request->key, request->be.key.len);
    assert_int_equal(request->be.verb, BE_ADD);
    answer(s, request, BE_STORED, NULL);
    script_expect(s, BE_CAS, "k", BE_NO_MEMORY, NULL);
    script_expect(s, BE_DELETE, sublist, BE_DELETED, NULL);
    script_expect_done(s, LIST_SERVER_ERROR);
}

/* The sublists of a short list that is copied go while they are read: the copy holds nothing of
 * what was read before. */
static void test_short_copy_begins_anew(void **state)
{
    struct script *s = *state;
    s->call.source = SLICE_LIT("s");
    s->call.source_policy = &s->rig.config->lists[0];
    script_submit(s, LIST_COPY, NULL, 0);
    script_expect(s, BE_GET, "s#", BE_HIT, "^1 " FIRST_RUN ".2:36:2\n");
    script_expect(s, BE_GET, "s#" FIRST_RUN ".0", BE_HIT, "^1 0000000001\n+1:a");
    script_expect(s, BE_GET, "s#" FIRST_RUN ".1", BE_MISS, NULL);
    script_expect(s, BE_GET, "s#", BE_HIT, "^1\n+1:b");
    script_expect(s, BE_GET, "k#", BE_MISS, NULL);
    struct list_request *add = rig_take(&s->rig, BE_ADD, "k#");
    assert_true(slice_equal(add->be.value, SLICE_LIT("^1\n+1:b")));
    answer(s, add, BE_STORED, NULL);
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
}

/* A compaction takes the sublists of a long list while they tell whether it holds an item: its next
 * head is asked. */
static void test_copy_of_a_list_that_turns_out_empty(void **state)
{
    struct script *s = *state;
    s->call.source = SLICE_LIT("s");
    s->call.source_policy = &s->rig.config->lists[0];
    s->call.condition = LIST_IF_MISSING;
    script_submit(s, LIST_COPY, NULL, 0);
    script_expect(s, BE_GET, "s#", BE_HIT, "^1 " FIRST_RUN ".1:100000:1\n-1:a");
    script_expect(s, BE_GET, "s#" FIRST_RUN ".0", BE_MISS, NULL);
    script_expect(s, BE_GET, "s#", BE_HIT, "^1\n-1:a"); /* does it name that still? */
    script_expect(s, BE_GET, "s#", BE_HIT, "^1\n-1:a");
    script_expect_done(s, LIST_MISSING);
}

/* One that is empty is a missing one, whether it has a head or not; an llen of it is not. */
static void test_copy_over_itself_of_an_empty_list(void **state)
{
    struct script *s = *state;
    for (int i = 0; i < 2; i++) {
        s->call.source = SLICE_LIT("k");
        s->call.source_policy = &s->rig.config->lists[0];
        script_submit(s, LIST_COPY, NULL, 0);
        script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a-1:a");
        script_expect_done(s, LIST_MISSING);
    }
    script_submit(s, LIST_COPY, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n+1:a");
    script_expect_done(s, LIST_OK);
    assert_int_equal(s->call.number, 1);
    s->call.source = SLICE_NONE;
    script_submit(s, LIST_LEN, NULL, 0);
    script_expect(s, BE_GET, "k#", BE_HIT, "^1\n-1:a");
    script_expect_done(s, LIST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        script_test(test_copy_of_a_list_that_turns_out_empty),
        script_test(test_drop_clears_only_once),
        script_test(test_an_append_that_is_too_large_is_looked_into),
        script_test(test_change_of_what_is_no_list_is_refused),
        script_test(test_change_of_a_known_list_does_not_look),
        script_test(test_flip_that_meets_what_is_no_list_leaves_it_alone),
        script_test(test_flip_that_meets_another_list_withdraws),
        script_test(test_drop_that_was_overtaken_found_nothing),
        script_test(test_drop_under_refuse_is_one_step),
        script_test(test_create_does_not_guess_when_memory_is_short),
        script_test(test_flip_that_meets_a_lease_withdraws),
        script_test(test_flip_of_a_log_that_was_flipped_meanwhile_withdraws),
        script_test(test_announcement_is_withdrawn_when_the_head_cannot_be_read),
        script_test(test_read_does_not_guess_when_memory_is_short),
        script_test(test_a_merge_that_does_not_fit_takes_fewer_runs),
        script_test(test_names_of_a_dead_proxy_are_deleted),
        script_test(test_deleting_stops_where_nothing_is),
        script_test(test_collecting_leaves_what_is_too_much),
        script_test(test_compaction_goes_on_without_collecting),
        script_test(test_log_says_what_calls_waited_for),
        script_test(test_log_full_of_dead_announcements_is_swept),
        script_test(test_compact_of_a_list_that_is_dropped_meanwhile),
        script_test(test_compact_of_a_head_on_disk),
        script_test(test_a_first_change_waits_for_room),
        script_test(test_compact_of_a_head_that_is_full),
        script_test(test_compact_of_a_full_head_that_changes),
        script_test(test_compact_of_a_full_head_that_takes_too_long),
        script_test(test_conversion_may_take_long),
        script_test(test_conversion_without_room_leaves_nothing),
        script_test(test_change_beside_a_conversion_is_in_doubt),
        script_test(test_short_copy_begins_anew),
        script_test(test_copy_over_itself_of_an_empty_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
