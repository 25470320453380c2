/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists with a cap: folds of random logs beside a plain array to which each change is done.
 */
#include "list/format/cap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "list/change/capped.h"
#include "list/format/fold.h"
#include "support_list.h"

/* Items are the letters from 'a' on: few, so that they meet again. */
#define ITEMS 14
#define ROUNDS 4000

struct plain {
    char items[ITEMS + 1];
    struct cap cap; /* max 0: none */
};

static void take_out(struct plain *p, char item)
{
    char *at = strchr(p->items, item);
    if (at != NULL) {
        memmove(at, at + 1, strlen(at));
    }
}

/* '+' and '-', '=' and '!', as the documents say it. False: the cap refuses. */
static bool plain_apply(struct plain *p, char op, char item)
{
    bool in = strchr(p->items, item) != NULL;
    size_t count = strlen(p->items);
    if (op == '!') {
        p->items[0] = '\0';
    } else if (op == '-') {
        take_out(p, item);
    } else if (in && op == '=') {
        take_out(p, item);
        p->items[count - 1] = item;
    } else if (!in) {
        if (p->cap.max != 0 && count == p->cap.max) {
            if (p->cap.refuses) {
                return false;
            }
            take_out(p, p->items[0]);
            count--;
        }
        p->items[count] = item;
        p->items[count + 1] = '\0';
    }
    return true;
}

static struct slice letter(const char *item)
{
    return slice_make(item, 1);
}

static void assert_same(const struct fold *fold, const struct plain *p)
{
    char items[ITEMS + 1] = "";
    struct entry entry;
    uint32_t at = 0;
    for (size_t n = 0; fold_next_entry(fold, true, ENTRY_NEVER_OVER, &at, &entry); n++) {
        assert_true(n < ITEMS && entry.op == ENTRY_ADD && entry.bytes.len == 1);
        items[n] = entry.bytes.p[0];
        items[n + 1] = '\0';
    }
    assert_string_equal(items, p->items);
    assert_int_equal(fold->live, strlen(p->items));
}

static struct cap random_cap(struct rng *rng)
{
    return (struct cap){.max = (uint32_t)rng_below(rng, 7) + 1, .refuses = rng_below(rng, 2) != 0};
}

/* The content of the fold goes on under that cap: what a compaction writes, and a change of the
 * cap. */
static void lay_anew(struct fold *fold, struct cap cap)
{
    struct fold fresh;
    struct entry entry;
    uint32_t at = 0;
    fold_init(&fresh);
    fold_set_cap(&fresh, cap);
    while (fold_next_entry(fold, true, ENTRY_NEVER_OVER, &at, &entry)) {
        fold_apply_entry(&fresh, &entry);
    }
    fold_fini(fold);
    *fold = fresh;
}

static void plain_set_cap(struct plain *p, struct cap cap)
{
    struct plain cut = {.cap = cap};
    for (size_t i = 0; p->items[i] != '\0'; i++) {
        (void)plain_apply(&cut, '+', p->items[i]);
    }
    *p = cut;
}

static void test_folds_come_to_what_a_replay_comes_to(void **state)
{
    (void)state;
    struct rng rng;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        rng_init_seed(&rng, seed);
        struct plain plain = {.cap = random_cap(&rng)};
        struct fold fold;
        fold_init(&fold);
        fold_set_cap(&fold, plain.cap);
        bool recent = rng_below(&rng, 2) != 0;
        for (uint64_t left = rng_below(&rng, 60); left > 0; left--) {
            char item = (char)('a' + rng_below(&rng, ITEMS));
            uint64_t draw = rng_below(&rng, 100);
            char op = draw < 65 ? (recent ? '=' : '+') : draw < 70 ? '=' : draw < 97 ? '-' : '!';
            (void)plain_apply(&plain, op, item);
            fold_apply(&fold, (enum entry_op)op, op == '!' ? SLICE_NONE : letter(&item));
            if (rng_below(&rng, 20) == 0) {
                lay_anew(&fold, plain.cap);
            }
            if (rng_below(&rng, 30) == 0) {
                plain_set_cap(&plain, random_cap(&rng));
                lay_anew(&fold, plain.cap);
            }
            assert_same(&fold, &plain);
        }
        fold_fini(&fold);
    }
}

static void test_an_item_with_a_time_is_not_added(void **state)
{
    (void)state;
    struct fold fold;
    struct plain plain = {.items = "b"};
    fold_init(&fold);
    fold_set_cap(&fold, (struct cap){.max = 2});
    assert_true(fold_apply_entries(&fold, SLICE_LIT("@12:1795229331:a+1:b@12:1795229331:b")));
    assert_same(&fold, &plain);
    fold_fini(&fold);
}

/* A fold that only gathers forgets what the cap has dropped, and is right all the same. */
static void test_dropped_items_are_forgotten(void **state)
{
    (void)state;
    struct fold fold;
    char item[16];
    fold_init(&fold);
    fold_set_cap(&fold, (struct cap){.max = 3});
    for (unsigned n = 0; n < 30000; n++) {
        (void)snprintf(item, sizeof item, "%u", n);
        fold_apply(&fold, ENTRY_ADD, slice_of(item));
        fold_trim_often(&fold);
        assert_true(fold.count < 10000);
    }
    struct entry entry;
    uint32_t at = 0;
    for (unsigned n = 29997; n < 30000; n++) {
        (void)snprintf(item, sizeof item, "%u", n);
        assert_true(fold_next_entry(&fold, true, ENTRY_NEVER_OVER, &at, &entry));
        assert_true(slice_equal(entry.bytes, slice_of(item)));
    }
    assert_false(fold_next_entry(&fold, true, ENTRY_NEVER_OVER, &at, &entry));
    fold_fini(&fold);
}

static void fill_both(struct fold *fold, struct plain *plain, struct rng *rng)
{
    fold_init(fold);
    fold_set_cap(fold, plain->cap);
    for (uint64_t left = rng_below(rng, 12); left > 0; left--) {
        char item = (char)('a' + rng_below(rng, ITEMS));
        (void)plain_apply(plain, '+', item);
        fold_apply(fold, ENTRY_ADD, letter(&item));
    }
}

/* An exact change answers how many items it changed. Where the cap refuses one of its items, none
 * is done. What it appends is what it has done. */
static void test_exact_changes_are_done_as_a_whole(void **state)
{
    (void)state;
    struct rng rng;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        rng_init_seed(&rng, seed);
        struct plain plain = {.cap = random_cap(&rng)};
        struct fold fold, appended;
        struct list_policy policy = {0};
        struct slice items[8];
        char letters[8];
        fill_both(&fold, &plain, &rng);
        fold_init(&appended);
        fold_set_cap(&appended, plain.cap);
        for (size_t i = 0; plain.items[i] != '\0'; i++) {
            fold_apply(&appended, ENTRY_ADD, letter(&plain.items[i]));
        }
        struct list_call call = {.policy = &policy, .items = items};
        call.verb = rng_below(&rng, 3) == 0 ? LIST_DELX : LIST_ADDX;
        call.item_count = rng_below(&rng, 8) + 1;
        struct plain after = plain;
        bool done = true;
        uint64_t number = 0;
        for (size_t i = 0; i < call.item_count; i++) {
            letters[i] = (char)('a' + rng_below(&rng, ITEMS));
            items[i] = letter(&letters[i]);
            bool named = memchr(letters, letters[i], i) != NULL;
            bool deletes = call.verb == LIST_DELX;
            number += !named && (strchr(plain.items, letters[i]) != NULL) == deletes;
            done = plain_apply(&after, deletes ? '-' : '+', letters[i]) && done;
        }
        struct block *entries = block_new(64);
        assert_int_equal(capped_decide(&fold, &call, &entries), done);
        assert_int_equal(call.number, done ? number : 0);
        assert_same(&fold, done ? &after : &plain);
        assert_true(fold_apply_entries(&appended, slice_make(entries->data, entries->used)));
        assert_same(&appended, done ? &after : &plain);
        block_unref(&entries);
        fold_fini(&appended);
        fold_fini(&fold);
    }
}

static void random_entries(struct rng *rng, struct block **b, char *log, bool additions)
{
    for (uint64_t left = rng_below(rng, 10); left > 0; left--) {
        char item = (char)('a' + rng_below(rng, ITEMS));
        char op = additions || rng_below(rng, 3) > 0 ? '+' : '-';
        entry_append(b, (enum entry_op)op, letter(&item));
        *log++ = op;
        *log++ = item;
    }
    *log = '\0';
}

/* The log of an absent head counts by what it amounts to without a cap. */
static void test_fills_are_cut_together_with_what_was_appended(void **state)
{
    (void)state;
    struct rng rng;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        rng_init_seed(&rng, seed);
        struct plain plain = {.cap = random_cap(&rng)};
        struct plain all = {{0}, {0}};
        struct block *fill = block_new(64), *log = block_new(64), *out = block_new(64);
        char fill_text[32], log_text[32];
        random_entries(&rng, &fill, fill_text, true);
        random_entries(&rng, &log, log_text, false);
        for (const char *at = fill_text; *at != '\0'; at += 2) {
            (void)plain_apply(&plain, at[0], at[1]);
        }
        memcpy(all.items, plain.items, sizeof all.items);
        for (const char *at = log_text; *at != '\0'; at += 2) {
            (void)plain_apply(&all, at[0], at[1]);
        }
        plain_set_cap(&all, plain.cap);
        capped_fill(&out, plain.cap, slice_make(fill->data, fill->used),
                    slice_make(log->data, log->used));
        struct fold fold;
        fold_init(&fold);
        fold_set_cap(&fold, plain.cap);
        assert_true(fold_apply_entries(&fold, slice_make(out->data, out->used)));
        assert_same(&fold, &all);
        fold_fini(&fold);
        block_unref(&fill);
        block_unref(&log);
        block_unref(&out);
    }
}

static void test_fields_are_written_and_read(void **state)
{
    (void)state;
    const struct cap caps[] = {{1, false}, {30, true}, {CAP_ITEMS_MAX, false}};
    const char *texts[] = {" #1.drop", " #30.refuse", " #10000.drop"};
    const char *wrong[] = {"",         "#",        "#.drop", "#0.drop",  "#10001.drop", "#1",
                           "#1.dropx", "#1.refus", "1.drop", "#1 .drop", "#-1.drop"};
    for (size_t i = 0; i < 3; i++) {
        char text[CAP_FIELD_MAX];
        struct cap cap;
        uint32_t len = cap_format(text, caps[i]);
        assert_true(slice_equal(slice_make(text, len), slice_of(texts[i])));
        assert_true(cap_parse(slice_make(text + 1, len - 1), &cap));
        assert_true(cap_equal(cap, caps[i]));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct cap cap;
        assert_false(cap_parse(slice_of(wrong[i]), &cap));
    }
}

/* At their first places or, where additions move items, at their last. */
static void test_items_of_a_whole_content_stand_once(void **state)
{
    static const struct {
        const char *items;
        bool recent;
        const char *once;
    } cases[] = {{"abcda", false, "abcd"}, {"abcda", true, "bcda"}, {"", false, ""},
                 {"aaaa", false, "a"},     {"aaaa", true, "a"},     {"abab", true, "ab"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slice items[8];
        size_t count = strlen(cases[i].items);
        for (size_t n = 0; n < count; n++) {
            items[n] = slice_make(cases[i].items + n, 1);
        }
        count = capped_once(items, count, cases[i].recent);
        assert_int_equal(count, strlen(cases[i].once));
        for (size_t n = 0; n < count; n++) {
            assert_int_equal(*items[n].p, cases[i].once[n]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folds_come_to_what_a_replay_comes_to),
        cmocka_unit_test(test_an_item_with_a_time_is_not_added),
        cmocka_unit_test(test_dropped_items_are_forgotten),
        cmocka_unit_test(test_exact_changes_are_done_as_a_whole),
        cmocka_unit_test(test_fills_are_cut_together_with_what_was_appended),
        cmocka_unit_test(test_fields_are_written_and_read),
        cmocka_unit_test(test_items_of_a_whole_content_stand_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
