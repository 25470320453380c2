/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_intents.h"
#include "support_list.h"

#define NAME_A "aaaaaaaaaaaaa"
#define NAME_B "bbbbbbbbbbbbb"
#define NAME_C "ccccccccccccc"
#define NAME_D "ddddddddddddd"

static void assert_value(const struct layout *layout, const char *want)
{
    struct block *value = layout_value(layout);
    assert_int_equal(value->used, strlen(want));
    assert_memory_equal(value->data, want, value->used);
    block_unref(&value);
}

static void init_from(struct layout *layout, const char *text)
{
    struct head *head = head_of(slice_of(text));
    assert_non_null(head);
    layout_init(layout, head);
    head_unref(&head);
}

static void test_a_layout_begins_with_runs_and_garbage_and_no_log(void **state)
{
    (void)state;
    struct layout layout;
    init_from(&layout, "^1 " NAME_A ".1:23:3 -" NAME_B ".4 " NAME_C ".5:96:7 -" NAME_D ".8\n+1:a");
    assert_value(&layout, "^1 " NAME_A ".1:23:3 " NAME_C ".5:96:7 -" NAME_B ".4 -" NAME_D ".8\n");
    layout_fini(&layout);
    init_from(&layout, "^1\n+1:a");
    assert_value(&layout, "^1\n");
    block_append(&layout.log, "+1:a", 4);
    layout_fini(&layout);
    init_from(&layout, "^1 -" NAME_D ".8\n");
    layout_fini(&layout);
}

static void test_marks_are_carried(void **state)
{
    (void)state;
    struct layout layout;
    init_from(&layout, "^1 " NAME_A ".1:23:3 @1795229328\n+1:a");
    assert_value(&layout, "^1 @1795229328 " NAME_A ".1:23:3\n");
    layout_drop_runs(&layout, 0, 1);
    assert_value(&layout, "^1 -" NAME_A ".1\n");
    layout_fini(&layout);
    init_from(&layout, "^1 @2147483647 ?77.1795229328\n+1:a");
    assert_value(&layout, "^1 ?77.1795229328\n"); /* no run that "@" could be about */
    layout.marks = (struct head_marks){.absent = true};
    assert_value(&layout, "^1 ?0.0\n");
    layout.marks.absent = false;
    assert_value(&layout, "^1\n");
    layout_fini(&layout);
}

/* A fill by the token of before is refused then. */
static void test_what_is_made_absent_has_no_lease(void **state)
{
    (void)state;
    struct layout layout = {.marks = {.absent = true, .lease = 7, .lease_until_s = 1700000000}};
    layout_make_absent(&layout);
    assert_true(layout.marks.absent && layout.marks.lease == 0 && layout.marks.lease_until_s == 0);
}

static void test_runs_are_inserted_and_dropped_where_asked(void **state)
{
    (void)state;
    struct layout layout;
    init_from(&layout, "^1 " NAME_A ".1:17:1 " NAME_B ".2:34:2 " NAME_C ".3:51:3\n");
    struct run run = {{test_name('d'), 4}, 68, 4};
    layout_drop_runs(&layout, 1, 1);
    layout_insert_run(&layout, 1, &run);
    assert_value(&layout,
                 "^1 " NAME_A ".1:17:1 " NAME_D ".4:68:4 " NAME_C ".3:51:3 -" NAME_B ".2\n");
    layout_drop_runs(&layout, 3, 0);
    layout_drop_runs(&layout, 0, 3);
    assert_value(&layout, "^1 -" NAME_B ".2 -" NAME_A ".1 -" NAME_D ".4 -" NAME_C ".3\n");
    layout_insert_run(&layout, 0, &run);
    run.range.name = test_name('e');
    for (int i = 0; i < 20; i++) {
        layout_insert_run(&layout, 0, &run);
    }
    assert_int_equal(layout.run_count, 21);
    assert_int_equal(layout.runs[20].range.name.text[0], 'd');
    assert_int_equal(layout.runs[0].range.name.text[0], 'e');
    layout_fini(&layout);
}

static void test_garbage_is_removed_once(void **state)
{
    (void)state;
    struct layout layout;
    init_from(&layout, "^1 -" NAME_A ".1 -" NAME_B ".3 -" NAME_A ".4 -" NAME_A ".4\n");
    struct name_range garbage = {test_name('a'), 4};
    assert_true(layout_remove_garbage(&layout, &garbage));
    assert_value(&layout, "^1 -" NAME_A ".1 -" NAME_B ".3 -" NAME_A ".4\n");
    assert_true(layout_remove_garbage(&layout, &garbage));
    assert_false(layout_remove_garbage(&layout, &garbage));
    assert_value(&layout, "^1 -" NAME_A ".1 -" NAME_B ".3\n");
    layout_fini(&layout);
}

/* What becomes of a log, at the wall clock 1000 with a grace of 60 s. */
struct carry_case {
    const char *log;
    bool keep_ops;
    const char *want_log;
    const char *want_garbage; /* header behind "^1" */
    size_t want_swept;
};

static const struct carry_case carry_cases[] = {
    {"", false, "", "", 0},
    {"+1:a-1:b=1:c!0:", false, "", "", 0},
    {"+1:a-1:b=1:c!0:", true, "+1:a-1:b=1:c!0:", "", 0},
    /* one's own */
    {"+1:x~19:" NAME_A ".1.999+1:y", false, "", "", 0},
    {"+1:x~19:" NAME_A ".1.999+1:y", true, "+1:x+1:y", "", 0},
    /* one's own is taken off however old, and no garbage */
    {"~17:" NAME_A ".7.1", false, "", "", 0},
    /* another's, young: as old as the grace, or from a clock that is ahead */
    {"+1:x~19:" NAME_B ".1.940+1:y", false, "~19:" NAME_B ".1.940", "", 0},
    {"~20:" NAME_B ".1.1060", false, "~20:" NAME_B ".1.1060", "", 0},
    /* another's, dead; or from a clock that was wrong */
    {"~20:" NAME_B ".1.1061", false, "", " -" NAME_B ".1", 1},
    {"+1:x~19:" NAME_B ".7.939+1:y", false, "", " -" NAME_B ".7", 1},
    {"+1:x~19:" NAME_B ".7.939+1:y", true, "+1:x+1:y", " -" NAME_B ".7", 1},
    {"~17:" NAME_B ".7.1~17:" NAME_C ".8.2", false, "", " -" NAME_B ".7 -" NAME_C ".8", 2},
    /* withdrawn: nothing of that name is stored, so nothing is to be deleted */
    {"~19:" NAME_B ".7.990+1:x~19:" NAME_B ".0.990", true, "+1:x", "", 0},
    {"~17:" NAME_B ".7.1~17:" NAME_B ".0.1", false, "", "", 0},
    {"~19:" NAME_B ".0.990", false, "", "", 0},
    /* all together */
    {"~19:" NAME_C ".1.990~19:" NAME_A ".2.990~17:" NAME_B ".3.1~17:" NAME_D ".4.1+1:x~17:" NAME_D
     ".0.1",
     true, "~19:" NAME_C ".1.990+1:x", " -" NAME_B ".3", 1},
};

static void test_announcements_are_carried_by_the_rules(void **state)
{
    (void)state;
    struct name own = test_name('a');
    for (size_t i = 0; i < sizeof carry_cases / sizeof carry_cases[0]; i++) {
        const struct carry_case *c = &carry_cases[i];
        struct layout layout;
        init_from(&layout, "^1\n");
        struct carry carry = {.own = &own, .now_s = 1000, .grace_s = 60, .keep_ops = c->keep_ops};
        assert_int_equal(layout_carry(&layout, slice_of(c->log), &carry), c->want_swept);
        struct block *want = block_new(1);
        block_append(&want, "^1", 2);
        block_append(&want, c->want_garbage, strlen(c->want_garbage));
        block_append(&want, "\n", 1);
        block_append(&want, c->want_log, strlen(c->want_log));
        struct block *value = layout_value(&layout);
        assert_true(slice_equal(block_slice(value), block_slice(want)));
        block_unref(&value);
        block_unref(&want);
        layout_fini(&layout);
    }
}

static void test_a_sweep_of_all_spares_no_young_ones_and_one_without_own_keeps_all(void **state)
{
    (void)state;
    struct slice log = SLICE_LIT("~19:" NAME_A ".1.990~20:" NAME_B ".2.1060");
    struct layout layout;
    init_from(&layout, "^1\n");
    struct carry carry = {.now_s = 1000, .grace_s = GRACE_NONE};
    assert_int_equal(layout_carry(&layout, log, &carry), 2);
    assert_value(&layout, "^1 -" NAME_A ".1 -" NAME_B ".2\n");
    layout_fini(&layout);
    init_from(&layout, "^1\n");
    carry.grace_s = 60;
    assert_int_equal(layout_carry(&layout, log, &carry), 0);
    assert_value(&layout, "^1\n~19:" NAME_A ".1.990~20:" NAME_B ".2.1060");
    layout_fini(&layout);
}

/* The ages of the oldest and of the newest announcements there can be are computed without
 * overflow. */
static void test_extreme_times_are_survived(void **state)
{
    (void)state;
    struct slice log = SLICE_LIT("~35:" NAME_A ".1.9223372036854775807~17:" NAME_B ".1.0");
    static const int64_t graces[] = {GRACE_NONE, 0, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct layout layout;
        init_from(&layout, "^1\n");
        struct carry carry = {.now_s = INT64_MAX - 1, .grace_s = graces[i]};
        assert_int_equal(layout_carry(&layout, log, &carry), i < 2 ? 2 : 1);
        layout_fini(&layout);
    }
}

static void test_a_fold_is_appended_as_entries(void **state)
{
    (void)state;
    struct fold fold;
    fold_init(&fold);
    assert_true(fold_apply_entries(&fold, SLICE_LIT("+1:a-1:b+1:c-1:d+1:d")));
    struct layout layout;
    init_from(&layout, "^1\n");
    layout_append_fold(&layout, &fold, false, ENTRY_NEVER_OVER);
    assert_value(&layout, "^1\n+1:a-1:b+1:c=1:d");
    layout_fini(&layout);
    init_from(&layout, "^1\n");
    layout_append_fold(&layout, &fold, true, ENTRY_NEVER_OVER);
    assert_value(&layout, "^1\n+1:a+1:c+1:d");
    layout_fini(&layout);
    fold_fini(&fold);
}

/* What fills a list that is missing will lie below its log: deletions stay. A '!' fills it. */
static void test_a_fold_of_a_missing_list_keeps_deletions(void **state)
{
    (void)state;
    const struct {
        const char *head, *folded;
    } cases[] = {
        {"^1 ?7.1010\n+1:a-1:b+1:c-1:d+1:d", "^1 ?7.1010\n+1:a-1:b+1:c=1:d"},
        {"^1 ?7.1010\n-1:a!0:-1:b+1:c", "^1\n+1:c"},
        {"^1\n+1:a-1:b-1:d+1:d", "^1\n+1:a+1:d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct head *head = head_of(slice_of(cases[i].head));
        struct carry carry = {.now_s = 1000, .grace_s = 60};
        struct fold fold;
        struct layout layout;
        fold_init(&fold);
        assert_non_null(head);
        assert_true(fold_apply_entries(&fold, head->log));
        layout_init(&layout, head);
        assert_int_equal(layout_fold_log(&layout, head, &fold, &carry), 0);
        assert_value(&layout, cases[i].folded);
        layout_fini(&layout);
        fold_fini(&fold);
        head_unref(&head);
    }
}

/* Rule 6: an announcement that is neither one's own nor withdrawn stays in the log or becomes
 * garbage. */
/* Of list "k". */
static void assert_decided(const char *text, const char *decisions, bool rolls_back,
                           const char *want)
{
    struct head *head = head_of_list(SLICE_LIT("k"), slice_of(text));
    assert_non_null(head);
    head->rolls_back = rolls_back;
    struct block *value = layout_decided(head, SLICE_LIT("k"), slice_of(decisions));
    if (!slice_equal(slice_make(value->data, value->used), slice_of(want))) {
        print_error("made: %.*s\nwanted: %s\n", (int)value->used, value->data, want);
    }
    assert_int_equal(value->used, strlen(want));
    assert_memory_equal(value->data, want, value->used);
    block_unref(&value);
    head_unref(&head);
}

static void test_decisions_stand_in_place_of_their_intents(void **state)
{
#define RUNS "^1 @1795229328 " NAME_A ".1:23:3 -" NAME_B ".4\n"
#define ANNOUNCED "~26:" NAME_C ".3.1795229329"
#define V_OPEN "?39:vvvvvvvvvvvvv.1700000000 2 other k +1:c"
    (void)state;
    assert_decided(RUNS "+1:a" INTENT(T) ANNOUNCED "-1:b" INTENT(U), COMMITS(T) ABORTS(U), false,
                   RUNS "+1:a+1:b" ANNOUNCED "-1:b");
    /* A mark goes, so that this head is another one than before the intent. */
    assert_decided("^1\n+1:a~26:" NAME_C ".0.1795229329" INTENT(T), ABORTS(T), false, "^1\n+1:a");
    /* A decision that stands there counts, and not that of a proxy that was slower. */
    assert_decided("^1\n" INTENT(T) COMMITS(T), ABORTS(T), false, "^1\n+1:b");
    /* The primary keeps what the others ask for, until they have it. */
    assert_decided("^1\n+1:a" OWN_INTENT(T) COMMITS(T) "-1:a", ABORTS(U), false,
                   "^1\n" RESIDUE "+1:a+1:b-1:a");
    assert_decided("^1\n+1:a" OWN_INTENT(T) COMMITS(T), "&15:" T " d", false, "^1\n+1:a+1:b");
    /* Behind one that stays open, what was committed would cross it: it waits. */
    assert_decided("^1\n+1:a" V_OPEN INTENT(T) "+1:d" OWN_INTENT(U), COMMITS(T) ABORTS(U), false,
                   "^1\n+1:a" V_OPEN INTENT(T) "+1:d" COMMITS(T));
    /* The decision of what the primary keeps stands with it, and not behind the cut as well. */
    assert_decided("^1\n" OWN_INTENT(T) V_OPEN OWN_INTENT(U) COMMITS(T), ABORTS(U), false,
                   "^1\n" RESIDUE "+1:b" V_OPEN);
    /* An entry that may be taken back crosses nothing by itself. */
    assert_decided("^1\n" OWN_INTENT(T) "+1:b" INTENT(U), ABORTS(U), false, "^1\n+1:b");
    assert_decided("^1\n" OWN_INTENT(T) "+1:b" INTENT(U), ABORTS(U), true,
                   "^1\n" OWN_INTENT(T) "+1:b");
    assert_decided("^1\n" OWN_INTENT(T) "+1:b", ABORTS(T), true, "^1\n+1:b");
}

static void test_no_announcement_is_ever_lost(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 9);
    for (int round = 0; round < 2000; round++) {
        struct log_shape shape = {
            .items = 9, .entries = 40, .clear_in = 20, .readd = true, .announcements = true};
        struct block *log = random_log(&rng, &shape);
        struct name own = test_name('a');
        struct carry carry = {
            .own = &own, .now_s = 1000, .grace_s = 500, .keep_ops = rng_below(&rng, 2) == 0};
        struct layout layout;
        init_from(&layout, "^1\n");
        size_t swept = layout_carry(&layout, block_slice(log), &carry);
        assert_int_equal(swept, layout.garbage_count);
        for (char letter = 'a'; letter <= 'd'; letter++) {
            struct name name = test_name(letter);
            size_t found = 0;
            for (size_t i = 0; i < layout.garbage_count; i++) {
                found += name_equal(&layout.garbage[i].name, &name);
            }
            bool live = letter != 'a' && log_has_announcement(block_slice(log), &name) &&
                        !log_has_withdrawal(block_slice(log), &name);
            assert_int_equal(live,
                             found > 0 || log_has_announcement(block_slice(layout.log), &name));
        }
        struct model before = {.count = 0}, after = {.count = 0};
        model_replay(&before, block_slice(log));
        model_replay(&after, block_slice(layout.log));
        if (carry.keep_ops) {
            assert_same_model(&before, &after);
        } else {
            assert_int_equal(after.count, 0);
        }
        struct block *value = layout_value(&layout);
        struct head *head = head_of(block_slice(value));
        assert_non_null(head);
        assert_int_equal(head->garbage_count, swept);
        head_unref(&head);
        block_unref(&value);
        layout_fini(&layout);
        block_unref(&log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_layout_begins_with_runs_and_garbage_and_no_log),
        cmocka_unit_test(test_marks_are_carried),
        cmocka_unit_test(test_what_is_made_absent_has_no_lease),
        cmocka_unit_test(test_runs_are_inserted_and_dropped_where_asked),
        cmocka_unit_test(test_garbage_is_removed_once),
        cmocka_unit_test(test_announcements_are_carried_by_the_rules),
        cmocka_unit_test(test_a_sweep_of_all_spares_no_young_ones_and_one_without_own_keeps_all),
        cmocka_unit_test(test_extreme_times_are_survived),
        cmocka_unit_test(test_a_fold_is_appended_as_entries),
        cmocka_unit_test(test_a_fold_of_a_missing_list_keeps_deletions),
        cmocka_unit_test(test_decisions_stand_in_place_of_their_intents),
        cmocka_unit_test(test_no_announcement_is_ever_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
