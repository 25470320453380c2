/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/compact/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "list/format/layout.h"
#include "list/format/log_fold.h"
#include "support_list.h"

#define NAME_A "aaaaaaaaaaaaa"
#define NAME_B "bbbbbbbbbbbbb"
#define NAME_C "ccccccccccccc"
#define NAME_D "ddddddddddddd"
#define RUN_A " " NAME_A ".1:1000:9"
#define RUN_B " " NAME_B ".1:1000:9"
#define RUN_C " " NAME_C ".1:100:9"
#define RUN_D " " NAME_D ".1:100:9"

/* Ten entries of 13 bytes each: different ones, the same ten times. */
#define TEN_ITEMS \
    "+10:aaaaaaaaa0+10:aaaaaaaaa1+10:aaaaaaaaa2+10:aaaaaaaaa3+10:aaaaaaaaa4+10:aaaaaaaaa5" \
    "+10:aaaaaaaaa6+10:aaaaaaaaa7+10:aaaaaaaaa8+10:aaaaaaaaa9"
#define SAME_ITEM \
    "+10:aaaaaaaaa0+10:aaaaaaaaa0+10:aaaaaaaaa0+10:aaaaaaaaa0+10:aaaaaaaaa0+10:aaaaaaaaa0" \
    "+10:aaaaaaaaa0+10:aaaaaaaaa0+10:aaaaaaaaa0+10:aaaaaaaaa0"
/* Intents of the list as a primary and not, with what decides them. */
#define COMMIT "&15:ttttttttttttt c"
#define ABORT "&15:ttttttttttttt a"
#define DONE "&15:ttttttttttttt d"
#define OWN "?35:ttttttttttttt.990 2 list other +1:a"
#define THEIR "?35:ttttttttttttt.990 2 first list +1:a"
#define RESIDUE "?31:ttttttttttttt.990 2 list other " COMMIT
#define RESIDUE_U "?31:uuuuuuuuuuuuu.990 2 list other &15:uuuuuuuuuuuuu c"
#define LONG_INTENT "?131:ttttttttttttt.990 2 list other .96:" LONG_ITEM
#define LONG_ITEM \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaa"
/* At the wall clock 1000 with a grace of 60 s. */
#define YOUNG "~19:" NAME_D ".7.990"
#define DEAD "~17:" NAME_D ".7.1"
#define GARBAGE " -" NAME_A ".1 -" NAME_B ".1 -" NAME_C ".1"
#define WITHDRAWN "~19:" NAME_D ".7.990~19:" NAME_D ".0.990"

struct plan_case {
    const char *head;
    enum compact_goal goal;
    bool refuse; /* on_missing */
    enum plan_kind kind;
    size_t first, count;
};

/* log_limit_bytes is 100. */
static const struct plan_case cases[] = {
    /* what sizes ask for */
    {"^1\n", COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    {"^1\n", COMPACT_AUTO, false, PLAN_REMOVE, 0, 0},
    {"^1\n+1:a", COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n+1:a-1:a", COMPACT_AUTO, false, PLAN_REMOVE, 0, 0},
    {"^1\n!0:", COMPACT_AUTO, false, PLAN_REMOVE, 0, 0},
    {"^1\n+1:a-1:a", COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    {"^1" RUN_A "\n-1:a", COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1" RUN_A "\n!0:", COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n-1:a" YOUNG, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n" TEN_ITEMS, COMPACT_AUTO, false, PLAN_FLIP, 0, 0},
    {"^1\n" SAME_ITEM, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1\n" TEN_ITEMS "!0:", COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n" SAME_ITEM, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n" SAME_ITEM "+10:aaaaaaaaa1", COMPACT_AUTO, false, PLAN_FLIP, 0, 0},
    {"^1" RUN_A "\n!0:" SAME_ITEM "+10:aaaaaaaaa1", COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A RUN_B RUN_C "\n+1:a", COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1" RUN_A RUN_B RUN_C RUN_D "\n+1:a", COMPACT_AUTO, false, PLAN_MERGE, 0, 4},
    {"^1 -" NAME_A ".1\n+1:a", COMPACT_AUTO, false, PLAN_COLLECT, 0, 0},
    {"^1 -" NAME_A ".1\n", COMPACT_AUTO, true, PLAN_COLLECT, 0, 0},
    {"^1 -" NAME_A ".1\n" TEN_ITEMS, COMPACT_AUTO, true, PLAN_FLIP, 0, 0},
    {"^1" GARBAGE GARBAGE "\n" TEN_ITEMS, COMPACT_AUTO, true, PLAN_COLLECT_FIRST, 0, 0},
    {"^1\n" DEAD, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n" DEAD DEAD DEAD DEAD DEAD, COMPACT_AUTO, false, PLAN_COLLECT_FIRST, 0, 0},
    {"^1\n" WITHDRAWN WITHDRAWN WITHDRAWN, COMPACT_AUTO, false, PLAN_COLLECT_FIRST, 0, 0},
    {"^1\n" YOUNG YOUNG YOUNG YOUNG YOUNG, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n+1:a" YOUNG YOUNG YOUNG YOUNG YOUNG, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n+1:a" DEAD DEAD DEAD DEAD DEAD, COMPACT_AUTO, false, PLAN_COLLECT_FIRST, 0, 0},
    {"^1\n+1:a+1:a" YOUNG YOUNG YOUNG YOUNG YOUNG, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    /* lcompact */
    {"^1\n+1:a+1:b", COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1\n+1:a-1:b", COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    {"^1\n+1:a~019:" NAME_D ".7.990", COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1\n" TEN_ITEMS, COMPACT_FULL, false, PLAN_FLIP, 0, 0},
    {"^1\n" SAME_ITEM, COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n+1:a", COMPACT_FULL, false, PLAN_FLIP, 0, 0},
    {"^1" RUN_A "\n!0:+1:a", COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n", COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1 aaaaaaaaaaaaa.1:18:0\n", COMPACT_FULL, false, PLAN_MERGE, 0, 1},
    {"^1" RUN_A RUN_B "\n", COMPACT_FULL, false, PLAN_MERGE, 0, 2},
    {"^1" RUN_A "\n" YOUNG, COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1" RUN_A "\n" DEAD, COMPACT_FULL, false, PLAN_COLLECT, 0, 0},
    {"^1" RUN_A GARBAGE "\n" TEN_ITEMS, COMPACT_FULL, false, PLAN_FLIP, 0, 0},
    {"^1" RUN_A GARBAGE GARBAGE "\n" TEN_ITEMS, COMPACT_FULL, false, PLAN_COLLECT_FIRST, 0, 0},
    {"^1" RUN_A "\n" TEN_ITEMS DEAD DEAD, COMPACT_FULL, false, PLAN_COLLECT_FIRST, 0, 0},
    {"^1" RUN_A "\n" WITHDRAWN, COMPACT_FULL, false, PLAN_COLLECT, 0, 0},
    {"^1" RUN_A " -" NAME_B ".1\n", COMPACT_FULL, false, PLAN_COLLECT, 0, 0},
    {"^1\n", COMPACT_FULL, false, PLAN_REMOVE, 0, 0},
    {"^1\n", COMPACT_FULL, true, PLAN_NOTHING, 0, 0},
    /* ldrop: a '!' was appended before */
    {"^1" RUN_A "\n+1:a!0:", COMPACT_DROP, false, PLAN_FOLD, 0, 0},
    {"^1\n!0:", COMPACT_DROP, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n+1:a!0:", COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1\n+1:a!0:", COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1\n+1:a", COMPACT_DROP, false, PLAN_NOTHING, 0, 0},
    {"^1\n", COMPACT_DROP, false, PLAN_REMOVE, 0, 0},
    {"^1\n", COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1\n" YOUNG, COMPACT_DROP, false, PLAN_COLLECT, 0, 0},
    /* a damaged list is given up */
    {"^1" RUN_A "\n", COMPACT_CLEAR, false, PLAN_CLEAR, 0, 0},
    {"^1\n+1:a", COMPACT_CLEAR, false, PLAN_REMOVE, 0, 0},
    {"^1\n+1:a" YOUNG, COMPACT_CLEAR, false, PLAN_CLEAR, 0, 0},
    {"^1 -" NAME_A ".1\n", COMPACT_CLEAR, false, PLAN_COLLECT, 0, 0},
    {"^1\n" YOUNG, COMPACT_CLEAR, true, PLAN_REMOVE, 0, 0},
    {"^1\n", COMPACT_CLEAR, true, PLAN_REMOVE, 0, 0},
    /* it says that the list is missing: with a lease, without, with one that is over */
    {"^1 ?7.1010\n", COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    {"^1 ?7.1010\n+1:a", COMPACT_FULL, true, PLAN_NOTHING, 0, 0},
    {"^1 ?7.1010\n" DEAD, COMPACT_AUTO, true, PLAN_COLLECT, 0, 0},
    {"^1 ?7.1010 -" NAME_A ".1\n", COMPACT_AUTO, true, PLAN_COLLECT, 0, 0},
    {"^1 ?7.1010\n" TEN_ITEMS, COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    {"^1 ?7.1010\n" TEN_ITEMS TEN_ITEMS, COMPACT_AUTO, true, PLAN_FOLD, 0, 0},
    {"^1 ?7.1010\n+1:a", COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1 ?7.1010\n+1:a" YOUNG, COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1 ?7.1010 -" NAME_A ".1\n", COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1 ?7.1010\n", COMPACT_TIDY, true, PLAN_NOTHING, 0, 0},
    {"^1\n", COMPACT_TIDY, true, PLAN_NOTHING, 0, 0}, /* made since, by another client */
    {"^1 ?7.1010\n" YOUNG, COMPACT_TIDY, true, PLAN_NOTHING, 0, 0},
    {"^1 ?7.1010\n", COMPACT_HEAL, true, PLAN_NOTHING, 0, 0},
    {"^1 ?7.1000\n+1:a", COMPACT_AUTO, true, PLAN_REMOVE, 0, 0},
    {"^1 ?7.1000\n" YOUNG, COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    {"^1 ?0.0\n+1:a", COMPACT_AUTO, true, PLAN_REMOVE, 0, 0},
    {"^1 ?0.0\n", COMPACT_TIDY, true, PLAN_REMOVE, 0, 0},
    {"^1 ?0.0 -" NAME_A ".1\n", COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1 ?0.0 -" NAME_A ".1\n", COMPACT_TIDY, true, PLAN_COLLECT, 0, 0},
    /* not any more: a '!', or no difference between missing and empty */
    {"^1 ?7.1010\n+1:a!0:", COMPACT_AUTO, true, PLAN_FOLD, 0, 0},
    {"^1 ?7.1010\n+1:a", COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    /* intents and decisions that are over are taken off, what a primary keeps is not */
    {"^1\n" OWN COMMIT DONE, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n" LONG_INTENT ABORT, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n" LONG_INTENT ABORT, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1\n" LONG_INTENT COMMIT, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1\n" RESIDUE RESIDUE_U, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE RESIDUE_U TEN_ITEMS, COMPACT_AUTO, false, PLAN_FLIP, 0, 0},
    {"^1 #1.drop\n" LONG_INTENT ABORT, COMPACT_AUTO, false, PLAN_FOLD, 0, 0},
    {"^1 #1.drop\n" RESIDUE RESIDUE_U, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n" OWN COMMIT, COMPACT_FULL, false, PLAN_NOTHING, 0, 0}, /* no byte less */
    {"^1\n" THEIR COMMIT, COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n" THEIR COMMIT, COMPACT_FULL, false, PLAN_FLIP, 0, 0},
    {"^1" RUN_A "\n" THEIR ABORT, COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n" ABORT, COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    {"^1" RUN_A "\n" RESIDUE, COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE "+1:a", COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE "+1:a" DONE, COMPACT_FULL, false, PLAN_FOLD, 0, 0},
    /* it is not removed either, until that is over */
    {"^1\n" RESIDUE, COMPACT_AUTO, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE, COMPACT_FULL, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE, COMPACT_DROP, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE, COMPACT_DROP, true, PLAN_CLEAR, 0, 0},
    {"^1\n" RESIDUE "+1:a", COMPACT_DROP, true, PLAN_CLEAR, 0, 0},
    {"^1\n" RESIDUE "+1:a", COMPACT_CLEAR, false, PLAN_CLEAR, 0, 0},
    {"^1\n" RESIDUE, COMPACT_TIDY, false, PLAN_NOTHING, 0, 0},
    {"^1\n" RESIDUE DONE, COMPACT_AUTO, false, PLAN_REMOVE, 0, 0},
    {"^1\n" THEIR ABORT, COMPACT_AUTO, false, PLAN_REMOVE, 0, 0},
    {"^1\n" THEIR COMMIT, COMPACT_DROP, true, PLAN_REMOVE, 0, 0},
    {"^1 ?0.0\n" RESIDUE, COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    {"^1 ?0.0\n" RESIDUE, COMPACT_DROP, true, PLAN_NOTHING, 0, 0},
    {"^1 ?0.0\n" RESIDUE "+1:a", COMPACT_DROP, true, PLAN_CLEAR, 0, 0},
    {"^1 ?0.0\n" RESIDUE DONE, COMPACT_AUTO, true, PLAN_REMOVE, 0, 0},
    {"^1 ?7.1010\n" LONG_INTENT ABORT, COMPACT_AUTO, true, PLAN_FOLD, 0, 0},
    {"^1 ?7.1010\n" RESIDUE RESIDUE_U, COMPACT_AUTO, true, PLAN_NOTHING, 0, 0},
    /* healing of run b */
    {"^1" RUN_A RUN_B RUN_C "\n" TEN_ITEMS, COMPACT_HEAL, false, PLAN_MERGE, 1, 1},
    {"^1" RUN_A RUN_C "\n" TEN_ITEMS, COMPACT_HEAL, false, PLAN_NOTHING, 0, 0},
    {"^1" RUN_A " -" NAME_B ".1\n", COMPACT_HEAL, false, PLAN_COLLECT, 0, 0},
    {"^1" RUN_A RUN_B GARBAGE GARBAGE "\n", COMPACT_HEAL, false, PLAN_COLLECT_FIRST, 0, 0},
};

/* With the fold of the head's log. */
static struct plan choose(const struct head *head, const struct list_policy *policy,
                          enum compact_goal goal, const struct name *run)
{
    struct log_fold log;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    struct plan plan = plan_choose(head, &log.fold, policy, policy->log_limit_bytes, goal, run,
                                   1000, 1000 - CLOCK_SKEW_S, false);
    log_fold_fini(&log);
    return plan;
}

static void test_each_head_asks_for_its_step(void **state)
{
    (void)state;
    struct name heal = test_name('b');
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct plan_case *c = &cases[i];
        struct list_policy policy = {
            .log_limit_bytes = 100,
            .fold_memory_bytes = UINT64_MAX,
            .announcement_grace_s = 60,
            .on_missing = c->refuse ? ON_MISSING_REFUSE : ON_MISSING_CREATE,
        };
        struct head *head = head_of(slice_of(c->head));
        if (head == NULL) {
            print_error("case %zu is foreign: %s\n", i, c->head);
        }
        assert_non_null(head);
        struct plan plan = choose(head, &policy, c->goal, c->goal == COMPACT_HEAL ? &heal : NULL);
        if (plan.kind != c->kind) {
            print_error("case %zu: %s\n", i, c->head);
        }
        assert_int_equal(plan.kind, c->kind);
        if (plan.kind == PLAN_MERGE) {
            assert_int_equal(plan.first, c->first);
            assert_int_equal(plan.count, c->count);
        }
        head_unref(&head);
    }
}

static void test_windows_of_runs(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes[8];
        size_t count;
        bool found;
        size_t first;
    } windows[] = {
        {{0}, 0, false, 0},
        {{1, 1, 1}, 3, false, 0},
        {{1, 1, 1, 1}, 4, true, 0},
        {{3, 1, 1, 1}, 4, true, 0},
        {{4, 1, 1, 1}, 4, false, 0},
        {{9, 1, 1, 1, 1}, 5, true, 1},
        {{4, 1, 1, 1, 1}, 5, true, 0},
        {{99, 40, 20, 10, 5}, 5, false, 0},
        {{64, 8, 2, 1, 1, 1, 1}, 7, true, 2},
        {{0, 0, 0, 0}, 4, true, 0},
        {{5, 0, 0, 0, 0}, 5, true, 1},
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        struct run runs[8] = {0};
        for (size_t k = 0; k < 8; k++) {
            runs[k].bytes = windows[i].bytes[k];
        }
        size_t first = 99, count = 99;
        assert_int_equal(plan_merge_window(runs, windows[i].count, &first, &count),
                         windows[i].found);
        if (windows[i].found) {
            assert_int_equal(first, windows[i].first);
            assert_int_equal(first + count, windows[i].count);
        }
    }
}

/* The head of a primary has to stay: an ldrop makes it one of a missing list, once; without
 * on_missing = refuse it is left empty. */
static void test_ldrop_of_a_primary_leaves_its_head(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        enum compact_goal goal;
        bool refuse;
        enum plan_kind kind;
    } rows[] = {
        {"^1\n" RESIDUE "+1:a", COMPACT_DROP, true, PLAN_CLEAR},
        {"^1" RUN_A "\n" RESIDUE, COMPACT_DROP, true, PLAN_CLEAR},
        {"^1\n" RESIDUE, COMPACT_DROP, true, PLAN_CLEAR},
        {"^1\n" RESIDUE, COMPACT_CLEAR, true, PLAN_CLEAR},
        {"^1 ?0.0\n" RESIDUE, COMPACT_DROP, true, PLAN_NOTHING},
        {"^1 ?7.1010\n" RESIDUE, COMPACT_DROP, true, PLAN_CLEAR},
        {"^1 ?7.1010\n" RESIDUE DONE, COMPACT_DROP, true, PLAN_REMOVE},
        {"^1\n" RESIDUE DONE, COMPACT_DROP, true, PLAN_REMOVE},
        {"^1\n" RESIDUE "!0:", COMPACT_DROP, false, PLAN_FOLD},
        {"^1\n" RESIDUE, COMPACT_DROP, false, PLAN_NOTHING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct list_policy policy = {
            .log_limit_bytes = 100,
            .fold_memory_bytes = UINT64_MAX,
            .announcement_grace_s = 60,
            .on_missing = rows[i].refuse ? ON_MISSING_REFUSE : ON_MISSING_CREATE,
        };
        struct head *head = head_of(slice_of(rows[i].head));
        assert_non_null(head);
        struct plan plan = choose(head, &policy, rows[i].goal, NULL);
        if (plan.kind != rows[i].kind) {
            print_error("row %zu: %s\n", i, rows[i].head);
        }
        assert_int_equal(plan.kind, rows[i].kind);
        head_unref(&head);
    }
}

/* However sizes fall, there are never many runs for long: headers stay short. */
static void test_too_many_runs_are_merged_whatever_their_sizes(void **state)
{
    (void)state;
    struct run runs[33] = {0};
    for (size_t i = 0; i < 33; i++) {
        runs[i].bytes = 1ULL << (50 - i);
    }
    size_t first, count;
    assert_false(plan_merge_window(runs, 32, &first, &count));
    assert_true(plan_merge_window(runs, 33, &first, &count));
    assert_int_equal(first, 16);
    assert_int_equal(count, 17);
}

/* How many runs there were at most, and how many bytes were written for each that came in. */
struct amplification {
    double written_per_byte;
    size_t runs_max;
};

/* Flips of 8 to 16 kB each, nothing shrinks; merges are looked for after every so many flips. */
static struct amplification amplify(int flips, int look_after, uint64_t seed)
{
    struct run runs[100] = {0};
    size_t run_count = 0, first, count;
    struct amplification result = {0};
    uint64_t in = 0, out = 0;
    struct rng rng;
    rng_init_seed(&rng, seed);
    for (int i = 1; i <= flips; i++) {
        uint64_t bytes = 8000 + rng_below(&rng, 8000);
        assert_true(run_count < sizeof runs / sizeof runs[0]);
        runs[run_count++].bytes = bytes;
        in += bytes;
        out += bytes;
        while (i % look_after == 0 && plan_merge_window(runs, run_count, &first, &count)) {
            assert_true(count >= 2 && first + count == run_count);
            for (size_t k = first + 1; k < run_count; k++) {
                runs[first].bytes += runs[k].bytes;
            }
            run_count = first + 1;
            out += runs[first].bytes;
        }
        result.runs_max = run_count > result.runs_max ? run_count : result.runs_max;
    }
    result.written_per_byte = (double)out / (double)in;
    return result;
}

static void test_a_byte_is_rewritten_few_times_in_its_life(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        for (int look_after = 1; look_after <= 10; look_after += 9) {
            struct amplification small = amplify(1000, look_after, seed);
            struct amplification large = amplify(10000, look_after, seed);
            assert_true(small.written_per_byte <= 10 && large.written_per_byte <= 10);
            /* Ten times as much costs a few rewrites more, not ten times as many. */
            assert_true(large.written_per_byte - small.written_per_byte <= 4);
            assert_true(small.runs_max <= 32 && large.runs_max <= 32);
        }
    }
}

/* The head after a step, as the operations would leave it when no other proxy interferes. */
static struct head *after(struct head *head, struct plan plan, bool dropping, unsigned *names)
{
    struct carry carry = {.now_s = 1000, .grace_s = dropping ? GRACE_NONE : 500};
    struct layout layout;
    struct fold fold;
    layout_init(&layout, head);
    fold_init(&fold);
    bool clear = plan.kind == PLAN_CLEAR;
    bool collects = plan.kind == PLAN_COLLECT || plan.kind == PLAN_COLLECT_FIRST;
    bool whole = clear || fold_apply_entries(&fold, head->log);
    assert_true(whole);
    struct run run = {{test_name((char)('e' + *names % 20)), 1}, 500, 5};
    if (plan.kind == PLAN_MERGE) {
        layout_drop_runs(&layout, plan.first, plan.count);
        layout_insert_run(&layout, plan.first, &run);
        (*names)++;
    } else if (collects) {
        layout.garbage_count = 0;
    } else if (clear || fold.cleared) {
        layout_drop_runs(&layout, 0, layout.run_count);
    }
    carry.keep_ops = plan.kind == PLAN_MERGE || collects;
    (void)layout_carry(&layout, head->log, &carry);
    if (plan.kind == PLAN_FLIP) {
        layout_insert_run(&layout, layout.run_count, &run);
        (*names)++;
    } else if (plan.kind == PLAN_FOLD) {
        layout_append_fold(&layout, &fold, layout.run_count == 0, ENTRY_NEVER_OVER);
    }
    struct block *value = layout_value(&layout);
    struct head *next = head_of(block_slice(value));
    assert_non_null(next);
    block_unref(&value);
    fold_fini(&fold);
    layout_fini(&layout);
    head_unref(&head);
    return next;
}

static struct head *random_head(struct rng *rng)
{
    struct run runs[8] = {0};
    for (size_t i = 0; i < 8; i++) {
        runs[i] = (struct run){{test_name((char)('e' + i)), 1}, 23 + rng_below(rng, 2000), 3};
    }
    struct name_range garbage[2] = {{test_name('z'), 1}, {test_name('y'), 1}};
    struct log_shape shape = {
        .items = 1 + (unsigned)rng_below(rng, 60),
        .entries = (unsigned)rng_below(rng, 40),
        .clear_in = rng_below(rng, 2) == 0 ? 30 : 0,
        .announcements = rng_below(rng, 2) == 0,
    };
    struct block *log = random_log(rng, &shape), *value = block_new(1);
    head_append_header(&value, NULL, runs, (size_t)rng_below(rng, 9), garbage,
                       (size_t)rng_below(rng, 3));
    block_append(&value, log->data, log->used);
    struct head *head = head_of(block_slice(value));
    assert_non_null(head);
    block_unref(&value);
    block_unref(&log);
    return head;
}

static bool adds_nothing(const struct head *head)
{
    struct log_fold log;
    struct entry entry;
    uint32_t at = 0;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    bool adds = fold_next_entry(&log.fold, true, 1000 - CLOCK_SKEW_S, &at, &entry);
    log_fold_fini(&log);
    return !adds;
}

/* A compaction that no other proxy interferes with ends, and soon. */
static void test_step_after_step_leads_to_an_end(void **state)
{
    (void)state;
    static const enum compact_goal goals[] = {COMPACT_AUTO, COMPACT_FULL, COMPACT_DROP,
                                              COMPACT_CLEAR};
    struct rng rng;
    rng_init_seed(&rng, 77);
    for (int round = 0; round < 5000; round++) {
        enum compact_goal goal = goals[round % 4];
        bool dropping = goal == COMPACT_DROP || goal == COMPACT_CLEAR;
        struct list_policy policy = {
            .log_limit_bytes = 120,
            .fold_memory_bytes = UINT64_MAX,
            .announcement_grace_s = 500,
            .on_missing = rng_below(&rng, 2) == 0 ? ON_MISSING_REFUSE : ON_MISSING_CREATE,
        };
        struct head *head = random_head(&rng);
        unsigned steps = 0, names = 0;
        struct plan plan = choose(head, &policy, goal, NULL);
        while (plan.kind != PLAN_NOTHING && plan.kind != PLAN_REMOVE) {
            assert_true(++steps <= 6);
            head = after(head, plan, dropping, &names);
            plan = choose(head, &policy, goal, NULL);
        }
        if (goal == COMPACT_FULL) {
            assert_true(head->run_count <= 1 && head->garbage_count == 0);
        } else if (goal == COMPACT_CLEAR) {
            assert_int_equal(plan.kind, PLAN_REMOVE);
        }
        if (plan.kind == PLAN_REMOVE) {
            bool in_one_step = dropping && policy.on_missing == ON_MISSING_REFUSE;
            bool with_content = goal == COMPACT_CLEAR || in_one_step;
            assert_true(in_one_step || (head->run_count == 0 && head->garbage_count == 0));
            assert_true(head->log.len == 0 || with_content || adds_nothing(head));
        }
        head_unref(&head);
    }
}

/* Items of one length: the limit is a multiple of what the log folds to, and the log meets it to
 * the byte. The proxy whose append did that compacts, and is not asked a second time. */
static void test_a_capped_log_is_folded_at_its_limit(void **state)
{
    (void)state;
    struct list_policy policy = {.log_limit_bytes = 12, .fold_memory_bytes = UINT64_MAX};
    const struct head_case {
        const char *head;
        enum plan_kind kind;
    } heads[] = {
        {"^1 #1.drop\n+1:a+1:b", PLAN_NOTHING},
        {"^1 #1.drop\n+1:a+1:b+1:c", PLAN_FOLD},
        {"^1 #3.drop\n+1:a+1:b+1:c", PLAN_NOTHING}, /* is folded */
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct head *head = head_of(slice_of(heads[i].head));
        assert_non_null(head);
        assert_int_equal(choose(head, &policy, COMPACT_AUTO, NULL).kind, heads[i].kind);
        head_unref(&head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_capped_log_is_folded_at_its_limit),
        cmocka_unit_test(test_each_head_asks_for_its_step),
        cmocka_unit_test(test_ldrop_of_a_primary_leaves_its_head),
        cmocka_unit_test(test_windows_of_runs),
        cmocka_unit_test(test_too_many_runs_are_merged_whatever_their_sizes),
        cmocka_unit_test(test_a_byte_is_rewritten_few_times_in_its_life),
        cmocka_unit_test(test_step_after_step_leads_to_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
