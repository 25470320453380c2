/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heads with intents: what decides them, what the plain log is, what a primary keeps.
 *
 * Logs are written in short here: "?t(+1:a)" is an intent of transaction "ttttttttttttt", with the
 * list as its primary; "?T(+1:a)" one whose primary is another list; "&tc" a decision, whatever the
 * case of its letter. All else is copied.
 */
#include "list/format/resolve.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "list/format/intent.h"
#include "list/format/layout.h"
#include "list/format/log_fold.h"
#include "support_list.h"

#define CREATED 1795229331

static void append_intent(struct block **b, char letter, struct slice entries)
{
    bool primary = islower((unsigned char)letter);
    struct intent intent = {.name = test_name((char)tolower((unsigned char)letter)),
                            .created_s = CREATED,
                            .keys = {primary ? SLICE_LIT("list") : SLICE_LIT("first"),
                                     primary ? SLICE_LIT("other") : SLICE_LIT("list")},
                            .key_count = 2,
                            .entries = entries};
    intent_append(b, &intent);
}

/* The log in full, in a block that the caller owns. */
static struct block *log_of(const char *text)
{
    struct block *b = block_new(64);
    while (*text != '\0') {
        if (text[0] == '?' && isalpha((unsigned char)text[1])) {
            const char *end = strchr(text, ')');
            append_intent(&b, text[1], slice_make(text + 3, (size_t)(end - text - 3)));
            text = end + 1;
        } else if (text[0] == '&') {
            struct name name = test_name((char)tolower((unsigned char)text[1]));
            decision_append(&b, &name, (enum decision)text[2]);
            text += 3;
        } else {
            block_append(&b, text++, 1);
        }
    }
    return b;
}

/* A head with that header and the log written in short. */
static struct head *head_in_short(const char *header, const char *text)
{
    struct block *log = log_of(text), *b = block_new(64);
    block_append(&b, header, strlen(header));
    block_append(&b, log->data, log->used);
    struct head *head = head_of(block_slice(b));
    block_unref(&log);
    block_unref(&b);
    return head;
}

static bool is_text(struct slice a, const char *text)
{
    struct block *b = log_of(text);
    bool same = slice_equal(a, block_slice(b));
    block_unref(&b);
    return same;
}

static void assert_plain(struct slice log, const char *want, const char *of)
{
    if (!slice_equal(log, slice_of(want))) {
        print_error("%s: plain log %.*s, not %s\n", of, SLICE_ARGS(log), want);
    }
    assert_true(slice_equal(log, slice_of(want)));
}

/* What is found without all others is the same. */
static void assert_state_alone(const struct head *head, const struct name *name,
                               enum intent_state expected)
{
    struct be_reply reply = {.status = BE_HIT, .value = head->value};
    enum intent_state state;
    assert_int_equal(head_read_state(&reply, SLICE_LIT("list"), name, &state), HEAD_OK);
    assert_int_equal(state, expected);
}

struct row {
    const char *log;
    const char *plain;
    const char *residue;     /* in short; NULL: none */
    enum intent_state state; /* of t */
    bool crossed;
};

static void check_rows(const char *header, const struct row *rows, size_t count)
{
    struct name t = test_name('t');
    for (size_t i = 0; i < count; i++) {
        struct head *head = head_in_short(header, rows[i].log);
        if (head == NULL) {
            print_error("%s: foreign\n", rows[i].log);
        }
        assert_non_null(head);
        assert_plain(head->log, rows[i].plain, rows[i].log);
        if (head_intent_state(head, &t) != rows[i].state ||
            head_intent_is_crossed(head, &t) != rows[i].crossed) {
            print_error("%s: state %d, crossed %d\n", rows[i].log, (int)head_intent_state(head, &t),
                        head_intent_is_crossed(head, &t));
        }
        assert_int_equal(head_intent_state(head, &t), rows[i].state);
        assert_state_alone(head, &t, rows[i].state);
        assert_int_equal(head_intent_is_crossed(head, &t), rows[i].crossed);
        assert_int_equal(head->residue != NULL, rows[i].residue != NULL);
        if (head->residue != NULL) {
            assert_true(is_text(block_slice(head->residue), rows[i].residue));
        }
        assert_true(is_text(head_raw_log(head), rows[i].log));
        assert_int_equal(head_header_bytes(head), strlen(header));
        assert_int_equal(head_spent_bytes(head) + head->log.len +
                             (head->residue != NULL ? head->residue->used : 0),
                         head->raw_log_bytes);
        head_unref(&head);
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static void assert_value(const struct layout *layout, const char *want)
{
    struct block *value = layout_value(layout), *text = log_of(want);
    assert_true(slice_equal(block_slice(value), block_slice(text)));
    block_unref(&value);
    block_unref(&text);
}

static void test_effects_stand_where_the_intent_stands(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"+1:a?T(+1:b)+1:c&Tc+1:d", "+1:a+1:b+1:c+1:d", NULL, INTENT_COMMITTED, false},
        {"+1:a?T(+1:b)+1:c&Ta+1:d", "+1:a+1:c+1:d", NULL, INTENT_ABORTED, false},
        {"+1:a?T(+1:b)+1:c", "+1:a+1:c", NULL, INTENT_OPEN, false},
        {"?T(!0:=1:b-1:c)&Tc", "!0:=1:b-1:c", NULL, INTENT_COMMITTED, false},
        {"?T(.1:x+1:b.1:y)&Tc", "+1:b", NULL, INTENT_COMMITTED, false},
        {"?T()&Tc", "", NULL, INTENT_COMMITTED, false},
        {"?T(.1:x)&Tc", "", NULL, INTENT_COMMITTED, false},
        {"?T(+1:a)?U(+1:b)&Uc&Tc", "+1:a+1:b", NULL, INTENT_COMMITTED, false},
        {"?U(+1:b)?T(+1:a)&Ua&Tc", "+1:a", NULL, INTENT_COMMITTED, false},
        {"+1:a", "+1:a", NULL, INTENT_GONE, false},
    };
    check_rows("^1\n", rows, COUNT(rows));
    check_rows("^1 aaaaaaaaaaaaa.1:23:3 -bbbbbbbbbbbbb.4\n", rows, COUNT(rows));
}

static void test_the_first_decision_behind_the_intent_counts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"?T(+1:b)&Tc&Ta", "+1:b", NULL, INTENT_COMMITTED, false},
        {"?T(+1:b)&Ta&Tc", "", NULL, INTENT_ABORTED, false},
        {"&Tc?T(+1:b)", "", NULL, INTENT_OPEN, false},
        {"&Tc?T(+1:b)&Ta", "", NULL, INTENT_ABORTED, false},
        {"&Tc", "", NULL, INTENT_GONE, false},
        {"+1:a&Ta&Td+1:b", "+1:a+1:b", NULL, INTENT_GONE, false},
        {"?T(+1:b)&Uc", "", NULL, INTENT_OPEN, false},
        {"?T(+1:b)&Td", "", NULL, INTENT_OPEN, false},
        {"?T(+1:b)&Td&Tc", "+1:b", NULL, INTENT_COMMITTED, false},
        {"?T(+1:b)&Ta&Td", "", NULL, INTENT_ABORTED, false},
    };
    check_rows("^1\n", rows, COUNT(rows));
}

static void test_a_conflicting_entry_aborts_in_the_primary_only(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"?t(+1:b)-1:b&tc", "-1:b", NULL, INTENT_ABORTED, true},
        {"?t(+1:b)+1:b&tc", "+1:b", NULL, INTENT_ABORTED, true},
        {"?t(+1:b)=1:b&tc", "=1:b", NULL, INTENT_ABORTED, true},
        {"?t(-1:b)@12:1795229331:b&tc", "@12:1795229331:b", NULL, INTENT_ABORTED, true},
        {"?t(+1:b)!0:&tc", "!0:", NULL, INTENT_ABORTED, true},
        {"?t()!0:&tc", "!0:", NULL, INTENT_ABORTED, true},
        {"?t(.1:b)+1:b&tc", "+1:b", NULL, INTENT_ABORTED, true},
        {"?t(+1:x!0:)+1:b&tc", "+1:b", NULL, INTENT_ABORTED, true},
        {"?t(+1:x+1:b+1:y)+1:b", "+1:b", NULL, INTENT_ABORTED, true},
        /* what does not */
        {"?t(+1:b)+1:c&tc", "+1:b+1:c", "?t()&tc", INTENT_COMMITTED, false},
        {"?t(+1:b)+2:bb&tc", "+1:b+2:bb", "?t()&tc", INTENT_COMMITTED, false},
        {"?t(+1:b)&tc-1:b", "+1:b-1:b", "?t()&tc", INTENT_COMMITTED, false},
        {"-1:b?t(+1:b)&tc", "-1:b+1:b", "?t()&tc", INTENT_COMMITTED, false},
        {"?t(!0:)~17:aaaaaaaaaaaaa.1.1&tc", "!0:~17:aaaaaaaaaaaaa.1.1", "?t()&tc", INTENT_COMMITTED,
         false},
        {"?t(+1:b)?U(-1:b)&Uc&tc", "+1:b-1:b", "?t()&tc", INTENT_COMMITTED, false},
        {"?t()+1:b&tc", "+1:b", "?t()&tc", INTENT_COMMITTED, false},
        /* elsewhere it is for the primary to say */
        {"?T(+1:b)-1:b&Tc", "+1:b-1:b", NULL, INTENT_COMMITTED, true},
        {"?T(+1:b)-1:b", "-1:b", NULL, INTENT_OPEN, true},
        {"?T(+1:b)+1:c", "+1:c", NULL, INTENT_OPEN, false},
        {"?T(+1:b)&Tc-1:b", "+1:b-1:b", NULL, INTENT_COMMITTED, false},
    };
    check_rows("^1\n", rows, COUNT(rows));
}

static void test_each_entry_crosses_under_a_cap(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"?t(+1:b)+1:c&tc", "+1:c", NULL, INTENT_ABORTED, true},
        {"?t()-1:c&tc", "-1:c", NULL, INTENT_ABORTED, true},
        {"?t(+1:b)&tc+1:c", "+1:b+1:c", "?t()&tc", INTENT_COMMITTED, false},
        {"?t(+1:b)~17:aaaaaaaaaaaaa.1.1&tc", "+1:b~17:aaaaaaaaaaaaa.1.1", "?t()&tc",
         INTENT_COMMITTED, false},
        {"?T(+1:b)+1:c", "+1:c", NULL, INTENT_OPEN, true},
        {"?T(+1:b)?U(+1:x)&Uc", "+1:x", NULL, INTENT_OPEN, false},
    };
    check_rows("^1 #5.drop\n", rows, COUNT(rows));
}

static void test_a_primary_keeps_what_is_committed_until_it_is_done(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"+1:a?t(+1:b.1:c)&tc+1:d", "+1:a+1:b+1:d", "?t()&tc", INTENT_COMMITTED, false},
        {"+1:a?t(+1:b)&tc&td+1:d", "+1:a+1:b+1:d", NULL, INTENT_COMMITTED, false},
        {"?t(+1:b)&td&tc", "+1:b", "?t()&tc", INTENT_COMMITTED, false},
        {"?t(+1:b)&ta", "", NULL, INTENT_ABORTED, false},
        {"?t(+1:b)", "", NULL, INTENT_OPEN, false},
        {"?t()&tc?u(+1:a)&uc", "+1:a", "?t()&tc?u()&uc", INTENT_COMMITTED, false},
        {"?t()&tc?u(+1:a)&uc&td", "+1:a", "?u()&uc", INTENT_COMMITTED, false},
        {"?t()&tc-1:x!0:", "-1:x!0:", "?t()&tc", INTENT_COMMITTED, false},
        {"?T(+1:b)&Tc", "+1:b", NULL, INTENT_COMMITTED, false},
    };
    check_rows("^1\n", rows, COUNT(rows));
}

static void test_open_intents_are_told(void **state)
{
    (void)state;
    struct head *head = head_in_short("^1\n", "?s(+1:a)&sc?T(+1:b)?u(+1:c)+1:d&ua?V(+1:e)");
    struct name t = test_name('t'), x = test_name('x');
    assert_non_null(head);
    assert_int_equal(head->intent_count, 4);
    assert_int_equal(head->open_count, 2);
    const struct head_intent *intent = head_find_intent(head, &t);
    assert_non_null(intent);
    assert_false(intent->primary);
    assert_int_equal(intent->key_at, 1);
    assert_int_equal(intent->created_s, CREATED);
    struct intent read;
    assert_true(intent_parse(intent->bytes, &read));
    assert_true(slice_equal(read.keys[0], SLICE_LIT("first")));
    assert_true(slice_equal(read.entries, SLICE_LIT("+1:b")));
    assert_true(
        slice_starts_with(slice_make(head_raw_log(head).p + intent->at, 1), SLICE_LIT("?")));
    assert_null(head_find_intent(head, &x));
    assert_true(head_find_intent(head, &(struct name){"sssssssssssss"})->primary);
    head_unref(&head);
}

static void test_the_log_in_front_of_an_intent(void **state)
{
    (void)state;
    struct head *head = head_in_short("^1 aaaaaaaaaaaaa.1:23:3\n",
                                      "+1:a?S(!0:)?t(+1:b)+1:c~17:bbbbbbbbbbbbb.1.1&Sc&tc");
    struct name s = test_name('s'), t = test_name('t');
    assert_non_null(head);
    assert_true(head->clears);
    struct head *front = head_in_front(head, &t);
    assert_plain(front->log, "+1:a!0:", "in front of t");
    assert_true(front->clears);
    assert_int_equal(front->announcements.len, 0);
    assert_int_equal(front->run_count, 1);
    assert_int_equal(front->cas, head->cas);
    head_unref(&head);
    struct head *before = head_in_front(front, &s);
    head_unref(&front);
    assert_plain(before->log, "+1:a", "in front of s");
    assert_false(before->clears);
    assert_int_equal(before->runs[0].items, 3);
    assert_int_equal(head_intent_state(before, &s), INTENT_COMMITTED);
    head_unref(&before);
}

/* What is cut off stays as it is stored; what a primary keeps of the part in front stays, too. */
static void test_a_head_is_cut_in_front_of_what_is_not_decided(void **state)
{
    (void)state;
    static const struct {
        const char *log, *plain, *value; /* of the head written anew, folded */
    } rows[] = {
        {"+1:a-1:a?T(+1:b)+1:c", "+1:a-1:a", "?T(+1:b)+1:c"},
        {"+1:a?t(+1:b)", "+1:a", "+1:a?t(+1:b)"},
        {"+1:a?s(+1:d)&sc?T(+1:b)-1:a", "+1:a+1:d", "?s()&sc+1:a+1:d?T(+1:b)-1:a"},
        {"?s(+1:d)?T(+1:b)&sc&sd", "+1:d", "+1:d?T(+1:b)&sc&sd"},
        {"?s(+1:d)?T(+1:b)&sc", "+1:d", "?s()&sc+1:d?T(+1:b)&sc"},
        {"?T(+1:b)?s(+1:d)&sc", "", "?T(+1:b)?s(+1:d)&sc"}, /* it is in the tail */
        {"?S(+1:d)?T(+1:b)&Sa", "", "?T(+1:b)&Sa"},
        {"?s(+1:d)+1:d?T(+1:b)", "+1:d", "+1:d?T(+1:b)"},
        {"+1:a?T(+1:b)?U(-1:b)&Ua", "+1:a", "+1:a?T(+1:b)?U(-1:b)&Ua"},
        {"+1:a!0:?T(+1:b)", "+1:a!0:", "?T(+1:b)"},
        {"+1:a?T(+1:b)!0:", "+1:a", "+1:a?T(+1:b)!0:"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct head *whole = head_in_short("^1\n", rows[i].log);
        assert_non_null(whole);
        struct head *head = head_cut(whole);
        assert_plain(head->log, rows[i].plain, rows[i].log);
        assert_int_equal(head_front_bytes(head) + head_tail(head).len, whole->raw_log_bytes);
        head_unref(&whole);
        struct layout layout;
        struct log_fold log;
        struct carry carry = {.grace_s = INT64_MAX};
        log_fold_init(&log);
        (void)log_fold_take(&log, head);
        layout_init(&layout, head);
        (void)layout_fold_log(&layout, head, &log.fold, &carry);
        struct block *value = layout_value(&layout), *want = log_of(rows[i].value);
        if (!slice_equal(slice_make(value->data + 3, value->used - 3), block_slice(want))) {
            print_error("%s: %.*s\n", rows[i].log, (int)value->used, value->data);
        }
        assert_true(slice_equal(slice_make(value->data + 3, value->used - 3), block_slice(want)));
        struct head *again = head_of(block_slice(value));
        assert_non_null(again);
        struct head *cut = head_cut(again);
        assert_int_equal(head_spent_bytes(cut), 0);
        head_unref(&cut);
        head_unref(&again);
        block_unref(&value);
        block_unref(&want);
        layout_fini(&layout);
        log_fold_fini(&log);
        head_unref(&head);
    }
}

static void test_announcements_are_found_behind_a_cut(void **state)
{
    (void)state;
    struct head *whole = head_in_short(
        "^1\n", "~17:aaaaaaaaaaaaa.1.1?T(+1:b)~17:bbbbbbbbbbbbb.1.1+1:x~17:ccccccccccccc.1.1");
    assert_non_null(whole);
    struct head *head = head_cut(whole);
    head_unref(&whole);
    struct name a = test_name('a'), b = test_name('b'), d = test_name('d');
    assert_true(head_announces(head, &a));
    assert_true(head_announces(head, &b));
    assert_false(head_announces(head, &d));
    struct layout layout;
    layout_init(&layout, head);
    struct carry carry = {.own = &b, .grace_s = INT64_MAX, .keep_ops = true};
    (void)layout_carry(&layout, head->log, &carry);
    assert_value(&layout, "^1\n~17:aaaaaaaaaaaaa.1.1?T(+1:b)+1:x~17:ccccccccccccc.1.1");
    layout_fini(&layout);
    head_unref(&head);
}

static void test_what_no_proxy_writes_is_foreign(void **state)
{
    (void)state;
    static const char *const logs[] = {
        "?t(+1:a)?t(+1:b)",
        "?t(+1:a)&tc?t(+1:a)",
        "?t(@12:1795229331:a)",
        "?t(+1:a",
        "+1:a.1:b",
        "&t",
        "?t(+1:a)&tx",
        "?t(?u())",
        "?t(+1:a)x",
        "?t(+1:a)~1:a",
        "&tc+1:",
        "?t(~17:aaaaaaaaaaaaa.1.1)",
    };
    for (size_t i = 0; i < COUNT(logs); i++) {
        struct block *b = block_new(64);
        const char *p = logs[i];
        block_append(&b, "^1\n", 3);
        if (strcmp(p, "&t") == 0) {
            block_append(&b, "&13:ttttttttttttt", 17);
        } else if (strcmp(p, "?t(+1:a") == 0) {
            block_append(&b, "?30:ttttttttttttt.1 1 list +1:a", 31);
            b->used--;
        } else {
            struct block *log = log_of(p);
            block_append(&b, log->data, log->used);
            block_unref(&log);
        }
        struct head *head = head_of(block_slice(b));
        if (head != NULL) {
            print_error("taken for a head: %s\n", p);
        }
        assert_null(head);
        block_unref(&b);
    }
    /* Of other lists. */
    struct block *b = log_of("^1\n?t(+1:a)&tc");
    struct head *head = head_of_list(SLICE_LIT("lists"), block_slice(b));
    assert_null(head);
    head = head_of_list(SLICE_LIT("other"), block_slice(b));
    assert_non_null(head);
    assert_false(head->intents[0].primary);
    head_unref(&head);
    block_unref(&b);
}

/* Whatever is appended to a log in which all is decided, its plain log stays the beginning. */
static void test_plain_logs_grow_at_their_ends(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "+1:a", "-1:b",     "!0:",      "=1:c",     "&tc",  "&ta", "&uc",         "&ua", "&vc",
        "&td",  "?t(+1:a)", "?U(-1:b)", "?v(.1:c)", "+1:d", "&va", "?W(!0:+1:a)", "&wc"};
    struct rng rng;
    rng_init_seed(&rng, 7);
    unsigned compared = 0;
    for (unsigned n = 0; n < 4000; n++) {
        char text[256] = "";
        size_t text_bytes = 0;
        bool used[4] = {false};
        struct head *before = NULL;
        for (unsigned i = 0; i < 14; i++) {
            const char *piece = pieces[rng_below(&rng, COUNT(pieces))];
            size_t letter = (size_t)(tolower((unsigned char)piece[1]) - 't');
            if (piece[0] == '?' && used[letter]) {
                continue;
            }
            used[letter & 3] = used[letter & 3] || piece[0] == '?';
            text_bytes +=
                (size_t)snprintf(text + text_bytes, sizeof text - text_bytes, "%s", piece);
            struct head *head = head_in_short("^1\n", text);
            assert_non_null(head);
            if (before != NULL) {
                compared++;
                assert_true(slice_starts_with(head->log, before->log));
            }
            if (head->open_count == 0) {
                head_unref(&before);
                before = head_ref(head);
            }
            head_unref(&head);
        }
        head_unref(&before);
    }
    assert_true(compared > 10000);
}

/* Many intents of the same items, each decided at the end, and crossing entries: time in proportion
 * to the log, or this test takes minutes. */
static void test_long_logs_are_resolved(void **state)
{
    (void)state;
    enum { INTENTS = 8000 };
    struct block *b = block_new(64);
    struct rng rng;
    rng_init_seed(&rng, 1);
    struct name *names = calloc(INTENTS, sizeof *names);
    block_append(&b, "^1\n", 3);
    for (unsigned i = 0; i < INTENTS; i++) {
        name_fresh(&names[i], &rng);
        struct intent intent = {.name = names[i],
                                .keys = {SLICE_LIT("list")},
                                .key_count = 1,
                                .entries = SLICE_LIT("+1:a+1:b")};
        intent_append(&b, &intent);
    }
    for (unsigned i = 0; i < INTENTS; i++) {
        entry_append(&b, ENTRY_ADD, SLICE_LIT("c"));
        entry_append(&b, i % 2 == 0 ? ENTRY_ADD : ENTRY_DEL, SLICE_LIT("b"));
        decision_append(&b, &names[i], DECISION_COMMIT);
    }
    struct head *head = head_of(block_slice(b));
    assert_non_null(head);
    assert_int_equal(head->intent_count, INTENTS);
    assert_int_equal(head->open_count, 0);
    assert_null(head->residue);
    assert_int_equal(head->log.len, INTENTS * 8);
    head_unref(&head);
    block_unref(&b);
    free(names);
}

static void test_a_layout_keeps_the_residue(void **state)
{
    (void)state;
    struct head *head =
        head_in_short("^1 aaaaaaaaaaaaa.1:23:3\n", "+1:a?t(+1:b)&tc-1:a?S(+1:c)&Sc");
    struct layout layout;
    layout_init(&layout, head);
    assert_value(&layout, "^1 aaaaaaaaaaaaa.1:23:3\n?t()&tc");
    layout_drop_runs(&layout, 0, 1);
    (void)layout_remove_garbage(&layout, &(struct name_range){.name = test_name('a'), .count = 1});
    assert_value(&layout, "^1\n?t()&tc");
    struct carry carry = {.grace_s = INT64_MAX, .keep_ops = true};
    (void)layout_carry(&layout, head->log, &carry);
    assert_value(&layout, "^1\n?t()&tc+1:a+1:b-1:a+1:c");
    layout_fini(&layout);

    struct log_fold log;
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    carry.keep_ops = false;
    layout_init(&layout, head);
    layout_drop_runs(&layout, 0, 1);
    (void)layout_fold_log(&layout, head, &log.fold, &carry);
    assert_value(&layout, "^1 -aaaaaaaaaaaaa.1\n?t()&tc+1:b+1:c");
    struct block *value = layout_value(&layout);
    layout_fini(&layout);
    struct head *again = head_of(block_slice(value));
    assert_non_null(again);
    assert_int_equal(head_spent_bytes(again), 0);
    assert_int_equal(head_intent_state(again, &(struct name){"ttttttttttttt"}), INTENT_COMMITTED);
    layout_init(&layout, again);
    layout_make_absent(&layout);
    assert_value(&layout, "^1 ?0.0 -aaaaaaaaaaaaa.1\n?t()&tc");
    layout_fini(&layout);
    head_unref(&again);
    block_unref(&value);
    log_fold_fini(&log);
    head_unref(&head);
}

static void test_a_done_transaction_leaves_nothing(void **state)
{
    (void)state;
    struct head *head = head_in_short("^1\n", "?t(+1:b)&tc&td-1:b?S(+1:c)&Sa");
    struct layout layout;
    struct log_fold log;
    struct carry carry = {.grace_s = INT64_MAX};
    log_fold_init(&log);
    (void)log_fold_take(&log, head);
    layout_init(&layout, head);
    (void)layout_fold_log(&layout, head, &log.fold, &carry);
    layout_fini(&layout);
    log_fold_fini(&log);
    head_unref(&head);
}

/* A log is folded on over heads with intents, and what was folded lives on without its head. */
static void test_logs_with_intents_are_folded_on(void **state)
{
    (void)state;
    struct log_fold log;
    log_fold_init(&log);
    static const char *const steps[] = {"+1:a?t(+1:b)&tc", "+1:a?t(+1:b)&tc+1:c",
                                        "+1:a?t(+1:b)&tc+1:c&td?S(-1:b)&Sa-1:a"};
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct head *head = head_in_short("^1\n", steps[i]);
        bool goes_on = log_fold_take(&log, head);
        assert_true(goes_on);
        head_unref(&head);
        assert_int_equal(fold_outcome(&log.fold, SLICE_LIT("b")), '+');
    }
    assert_int_equal(fold_outcome(&log.fold, SLICE_LIT("a")), '-');
    struct head *head = head_in_short("^1\n", "+1:a?t(+1:b)&ta+1:c");
    assert_false(log_fold_take(&log, head));
    assert_int_equal(fold_outcome(&log.fold, SLICE_LIT("b")), 0);
    head_unref(&head);
    log_fold_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_effects_stand_where_the_intent_stands),
        cmocka_unit_test(test_the_first_decision_behind_the_intent_counts),
        cmocka_unit_test(test_a_conflicting_entry_aborts_in_the_primary_only),
        cmocka_unit_test(test_each_entry_crosses_under_a_cap),
        cmocka_unit_test(test_a_primary_keeps_what_is_committed_until_it_is_done),
        cmocka_unit_test(test_open_intents_are_told),
        cmocka_unit_test(test_the_log_in_front_of_an_intent),
        cmocka_unit_test(test_a_head_is_cut_in_front_of_what_is_not_decided),
        cmocka_unit_test(test_announcements_are_found_behind_a_cut),
        cmocka_unit_test(test_what_no_proxy_writes_is_foreign),
        cmocka_unit_test(test_plain_logs_grow_at_their_ends),
        cmocka_unit_test(test_long_logs_are_resolved),
        cmocka_unit_test(test_a_layout_keeps_the_residue),
        cmocka_unit_test(test_a_done_transaction_leaves_nothing),
        cmocka_unit_test(test_logs_with_intents_are_folded_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
