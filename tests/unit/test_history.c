/* SPDX-License-Identifier: BSD-3-Clause */
#include "../history/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../history/brute.h"
#include "../history/check.h"
#include "../history/generate.h"
#include "base/rng.h"

#define CREATE "history 1 on_missing=create\n"
#define REFUSE "history 1 on_missing=refuse\n"

static struct history *read_text(const char *text, uint64_t limit)
{
    char error[HISTORY_ERROR_MAX];
    struct history *history;
    FILE *file = fmemopen((char *)text, strlen(text), "r");
    assert_non_null(file);
    if (!history_read(file, "test", limit, &history, error)) {
        fail_msg("%s", error);
    }
    fclose(file);
    return history;
}

static enum history_verdict verdict_of(const char *text)
{
    struct history *history = read_text(text, 0);
    enum history_verdict verdict = history_check(history, NULL, NULL);
    history_destroy(&history);
    return verdict;
}

#define GOOD(text) assert_int_equal(verdict_of(text), HISTORY_LINEARIZABLE)
#define BAD(text) assert_int_equal(verdict_of(text), HISTORY_VIOLATED)

static void test_an_added_item_stays(void **state)
{
    (void)state;
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 3 2 lget L = ok a\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 2 lget L = missing\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 2 llen L = ok 0\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 2 lhas L a = missing\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 3 2 lget L = ok a\n");
    /* Touching in time, they are concurrent. */
    GOOD(CREATE "0 2 1 ladd L a = ok\n2 3 2 lget L = missing\n");
    GOOD(CREATE "0 9 1 ladd L a = ok\n2 3 2 lget L = ok a\n4 5 2 lget L = ok a\n");
    /* A read that goes back in time. */
    BAD(CREATE "0 9 1 ladd L a = ok\n2 3 2 lget L = ok a\n4 5 2 lget L = missing\n");
    /* A later read sees less. */
    BAD(CREATE "0 9 1 ladd L a = ok\n0 9 1 ladd L b = ok\n2 3 2 lhas L a = ok a\n"
               "4 5 3 lget L = ok b\n");
    /* All or nothing. */
    BAD(CREATE "0 9 1 ladd L a b = ok\n1 2 2 lget L = ok a\n3 4 2 lget L = ok a b\n");
    BAD(CREATE "0 9 1 ladd L a = ok\n0 9 1 ladd L b = error\n1 2 2 lget L = ok b\n");
}

static void test_a_deleted_item_does_not_come_back(void **state)
{
    (void)state;
    GOOD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 ldel L a = ok\n4 5 2 lget L = ok b\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 ldel L a = ok\n4 5 2 lget L = ok a b\n");
    GOOD(CREATE "0 1 1 ladd L a b = ok\n2 9 1 ldel L a = ok\n3 4 2 lget L = ok a b\n"
                "5 6 2 lget L = ok b\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 9 1 ldel L a = ok\n3 4 2 lget L = ok b\n"
               "5 6 2 lget L = ok a b\n");
    GOOD(CREATE "0 1 1 ldel L a = ok\n2 3 1 llen L = ok 0\n");
}

static void test_items_stand_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 3 1 ladd L b = ok\n4 5 2 lget L = ok a b\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 1 ladd L b = ok\n4 5 2 lget L = ok b a\n");
    GOOD(CREATE "0 3 1 ladd L a = ok\n0 3 2 ladd L b = ok\n4 5 2 lget L = ok b a\n");
    /* Each order may be, but not one after the other. */
    BAD(CREATE "0 3 1 ladd L a = ok\n0 3 2 ladd L b = ok\n4 5 2 lget L = ok b a\n"
               "6 7 3 lget L = ok a b\n");
    /* Added again it stays; deleted and added again it moves. */
    GOOD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 ladd L a = ok\n4 5 2 lget L = ok a b\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 ladd L a = ok\n4 5 2 lget L = ok b a\n");
    GOOD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 ldel L a = ok\n4 5 1 ladd L a = ok\n"
                "6 7 2 lget L = ok b a\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 ldel L a = ok\n4 5 1 ladd L a = ok\n"
               "6 7 2 lget L = ok a b\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 2 lget L = ok a a\n");
}

static void test_a_replaced_list_shows_nothing_of_what_it_held(void **state)
{
    (void)state;
    GOOD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 lset L c b = ok\n4 5 2 lget L = ok c b\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 lset L c b = ok\n4 5 2 lget L = ok a c b\n");
    BAD(CREATE "0 1 1 ladd L a b = ok\n2 3 1 lset L c b = ok\n4 5 2 lget L = ok b c\n");
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 3 1 lset L = ok\n4 5 2 lget L = missing\n");
    /* One step: no read sees it empty in between. */
    BAD(CREATE "0 1 1 ladd L a = ok\n2 9 1 lset L b = ok\n4 5 2 lget L = missing\n");
    /* An lset overtaken by an older one. */
    BAD(CREATE "0 1 1 lset L a = ok\n2 3 1 lset L b = ok\n4 5 2 lget L = ok a\n");
    GOOD(CREATE "0 3 1 lset L a = ok\n2 3 1 lset L b = ok\n4 5 2 lget L = ok a\n");
}

static void test_exact_changes_count_what_they_changed(void **state)
{
    (void)state;
    GOOD(CREATE "0 1 1 laddx L a b a = ok 2\n2 3 1 laddx L b c = ok 1\n4 5 1 ldelx L a x = ok 1\n"
                "6 7 1 lget L = ok b c\n");
    BAD(CREATE "0 1 1 laddx L a b = ok 1\n");
    BAD(CREATE "0 1 1 laddx L a = ok 2\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 1 ldelx L a = ok 0\n");
    /* Two of them cannot both have added it. */
    BAD(CREATE "0 9 1 laddx L a = ok 1\n0 9 2 laddx L a = ok 1\n");
    GOOD(CREATE "0 9 1 laddx L a = ok 1\n0 9 2 laddx L a = ok 0\n");
    GOOD(CREATE "0 9 1 laddx L a = ok 1\n0 9 2 laddx L a = ok 1\n0 9 3 ldelx L a = ok 1\n");
    BAD(CREATE "0 9 1 laddx L a = ok 1\n0 9 3 ldelx L a = ok 1\n0 9 4 ldelx L a = ok 1\n");
    /* Done twice: another client's deletion came between. */
    BAD(CREATE "0 1 1 laddx L a = ok 1\n2 3 2 ldelx L a = ok 1\n4 5 1 lget L = ok a\n");
}

static void test_lcreate_succeeds_for_one(void **state)
{
    (void)state;
    GOOD(CREATE "0 9 1 lcreate L a = ok\n0 9 2 lcreate L b = not_stored\n10 11 1 lget L = ok a\n");
    BAD(CREATE "0 9 1 lcreate L a = ok\n0 9 2 lcreate L b = ok\n");
    BAD(CREATE "0 1 1 lcreate L a = not_stored\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 1 lcreate L b = ok\n");
    GOOD(CREATE "0 1 1 lset L = ok\n2 3 1 lcreate L b = ok\n");
    BAD(REFUSE "0 1 1 lset L = ok\n2 3 1 lcreate L b = ok\n");
    GOOD(REFUSE "0 1 1 lset L = ok\n2 3 1 lcreate L b = not_stored\n");
    GOOD(REFUSE "0 1 1 lcreate L = ok\n2 3 1 ladd L b = ok\n4 5 1 lget L = ok b\n");
}

static void test_reads_of_parts(void **state)
{
    (void)state;
    const char *const good[] = {
        "lhas L c x a c = ok c a c", "lhas L x = missing",        "llen L = ok 4",
        "lrange L 0 1 = ok a b",     "lrange L -1 -1 = ok d",     "lrange L 1 -2 = ok b c",
        "lrange L 2 99 = ok c d",    "lrange L -9 0 = ok a",      "lrange L 4 9 = missing",
        "lrange L 3 1 = none",       "lrange L 0 -1 = ok a b c d"};
    const char *const bad[] = {"lhas L c x a = ok a c",   "lhas L a = ok b",
                               "lhas L a a = ok a",       "llen L = ok 3",
                               "lrange L 0 1 = ok b a",   "lrange L -1 -1 = ok c",
                               "lrange L 1 -2 = ok b d",  "lrange L 2 99 = ok c",
                               "lrange L -9 0 = missing", "lrange L 0 -1 = ok a b c",
                               "lrange L 3 9 = missing",  "lget L = ok a b c"};
    char text[256];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, CREATE "0 1 1 ladd L a b c d = ok\n2 3 1 %s\n", good[i]);
        GOOD(text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, CREATE "0 1 1 ladd L a b c d = ok\n2 3 1 %s\n", bad[i]);
        BAD(text);
    }
}

static void test_unknown_outcomes(void **state)
{
    (void)state;
    GOOD(CREATE "0 - 1 ladd L a = unknown\n2 3 2 lget L = missing\n4 5 2 lget L = ok a\n");
    GOOD(CREATE "0 1 1 ladd L a = unknown\n2 3 2 lget L = missing\n");
    /* Once seen, it was done. */
    BAD(CREATE "0 - 1 ladd L a = unknown\n2 3 2 lget L = ok a\n4 5 2 lget L = missing\n");
    /* Once at most. */
    BAD(CREATE "0 - 1 ladd L a = unknown\n2 3 2 lget L = ok a\n4 5 2 ldel L a = ok\n"
               "6 7 2 lget L = ok a\n");
    GOOD(CREATE "0 - 1 ladd L a = unknown\n0 - 3 ladd L a = unknown\n2 3 2 lget L = ok a\n"
                "4 5 2 ldel L a = ok\n6 7 2 lget L = ok a\n");
    /* Not before it was asked for. */
    BAD(CREATE "0 1 2 lget L = ok a\n2 - 1 ladd L a = unknown\n");
    BAD(CREATE "0 1 1 ladd L a = error\n2 3 2 lget L = ok a\n");
    BAD(CREATE "0 1 1 ladd L a = damaged\n2 3 2 lget L = ok a\n");
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 3 1 lget L = damaged\n4 5 1 lget L = unknown\n");
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 - 1 lset L b = unknown\n9 10 1 lget L = ok b\n");
    /* In its time, or never. */
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 3 9 ldrop L = maybe\n4 5 2 lget L = missing\n");
    GOOD(CREATE "0 1 1 ladd L a = ok\n2 3 9 ldrop L = maybe\n4 5 2 lget L = ok a\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 3 9 ldrop L = maybe\n4 5 2 lget L = ok a\n"
               "6 7 2 lget L = missing\n");
}

static void test_missing_lists_are_refused(void **state)
{
    (void)state;
    GOOD(REFUSE "0 1 1 ladd L a = not_stored\n2 3 1 ldel L a = missing\n4 5 1 ldelx L a = missing\n"
                "6 7 1 laddx L a = not_stored\n8 9 1 ldrop L = missing\n"
                "10 11 1 lcompact L = missing\n12 13 1 lget L = missing\n14 15 1 llen L = ok 0\n");
    BAD(REFUSE "0 1 1 ladd L a = ok\n");
    BAD(REFUSE "0 1 1 lset L = ok\n2 3 1 ladd L a = not_stored\n");
    BAD(REFUSE "0 1 1 lset L = ok\n2 3 1 lget L = missing\n");
    GOOD(REFUSE "0 1 1 lset L = ok\n2 3 1 lget L = ok\n4 5 1 lrange L 0 1 = none\n");
    GOOD(REFUSE "0 1 1 lset L a = ok\n2 3 1 ldel L a = ok\n4 5 1 lget L = ok\n6 7 1 ldrop L = ok\n"
                "8 9 1 lget L = missing\n");
    BAD(REFUSE "0 1 1 lset L a = ok\n2 3 1 ldrop L = ok\n4 5 1 lget L = ok a\n");
    BAD(REFUSE "0 1 1 lset L a = ok\n2 3 1 lcompact L = missing\n");
    BAD(CREATE "0 1 1 ladd L a = not_stored\n");
    BAD(CREATE "0 1 1 ldel L a = missing\n");
    /* A list is dropped in one step: it is not seen empty in between. */
    BAD(REFUSE "0 1 1 lset L a = ok\n2 9 1 ldrop L = ok\n3 4 2 lget L = ok\n");
    BAD(REFUSE "0 1 1 lset L a = ok\n2 9 1 ldrop L = missing\n3 4 2 lget L = ok\n");
    BAD(CREATE "0 1 1 ladd L a = ok\n2 9 1 ldrop L = ok\n3 4 2 ladd L b = ok\n"
               "5 6 2 lget L = ok b\n7 8 2 ladd L c = ok\n10 11 2 lget L = missing\n");
}

static void test_lists_are_judged_apart(void **state)
{
    (void)state;
    struct history_result result;
    struct history *history = read_text(CREATE "0 1 1 ladd A a = ok\n2 3 1 lget B = missing\n"
                                               "4 5 1 lget A = missing\n4 5 1 lget C = ok x\n",
                                        0);
    assert_int_equal(history_check(history, NULL, &result), HISTORY_VIOLATED);
    assert_int_equal(result.lists, 3);
    assert_int_equal(result.violated, 2);
    assert_int_equal(result.undecided, 0);
    assert_int_equal(result.operations, 4);
    history_destroy(&history);
}

static void test_a_limit_that_is_reached_is_no_verdict(void **state)
{
    (void)state;
    const char *text = CREATE "0 9 1 ladd L a = ok\n0 9 1 ladd L b = ok\n0 9 1 ladd L c = ok\n"
                              "10 11 1 lrange L 0 0 = ok c\n10 11 1 lrange L 1 2 = ok b a\n";
    struct history_result result;
    struct history *history = read_text(text, 1);
    assert_int_equal(history_check(history, NULL, &result), HISTORY_UNDECIDED);
    assert_int_equal(result.undecided, 1);
    assert_int_equal(result.violated, 0);
    history_destroy(&history);
    GOOD(text);
}

static void test_evidence_is_small(void **state)
{
    (void)state;
    char *report = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&report, &bytes);
    assert_non_null(file);
    struct history *history = read_text(
        CREATE "0 1 1 ladd L p a q = ok\n2 3 1 ladd L b c = ok\n4 5 1 ldel L p = ok\n"
               "6 7 1 ladd L kept = ok\n8 9 2 lget L = ok a q b c kept\n10 11 1 ladd L d = ok\n"
               "12 13 2 lget L = ok a q b c d\n14 15 1 lget L = ok a q b c d\n",
        0);
    assert_int_equal(history_check(history, file, NULL), HISTORY_VIOLATED);
    fclose(file);
    assert_non_null(strstr(report, "list L is not linearizable"));
    assert_non_null(strstr(report, "looking only at: kept\n"));
    assert_non_null(strstr(report, "these 2 operations suffice"));
    assert_non_null(strstr(report, "op 6: 8 9 2 lget L = ok kept\n"));
    assert_non_null(strstr(report, "* (shortened, of 0 + 5 items) op 8: 12 13 2 lget L = ok\n"));
    assert_non_null(strstr(report, "the list then (1): kept\n"));
    free(report);
    history_destroy(&history);
}

/* --- the file --- */

static void test_malformed_lines_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0 1 1 ladd L a = ok",
        "history 2 on_missing=create",
        CREATE "x 1 1 ladd L a = ok",
        CREATE "0 y 1 ladd L a = ok",
        CREATE "0 1 z ladd L a = ok",
        CREATE "0 1 1 lput L a = ok",
        CREATE "0 1 1 ladd L = ok",
        CREATE "0 1 1 ladd  a = ok",
        CREATE "0 1 1 ladd L a",
        CREATE "0 1 1 ladd L a = fine",
        CREATE "0 1 1 ladd L a = ok b",
        CREATE "0 1 1 ladd L a%2 = ok",
        CREATE "0 1 1 ladd L a%zz = ok",
        CREATE "0 1 1 ladd L a\tb = ok",
        CREATE "0 1 1 ladd L a = ok ",
        CREATE "5 1 1 ladd L a = ok",
        CREATE "0 - 1 ladd L a = ok",
        CREATE "0 1 1 laddx L a = ok",
        CREATE "0 1 1 laddx L a = ok -1",
        CREATE "0 1 1 lget L a = ok",
        CREATE "0 1 1 lget L = missing a",
        CREATE "0 1 1 lrange L 1 = ok a",
        CREATE "0 1 1 llen L = none",
        CREATE "0 1 1 ladd L a=b = ok",
        CREATE "99999999999999999999 1 1 ladd L a = ok",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char error[HISTORY_ERROR_MAX] = "";
        struct history *history;
        FILE *file = fmemopen((char *)bad[i], strlen(bad[i]), "r");
        if (history_read(file, "name", 0, &history, error)) {
            fail_msg("taken: %s", bad[i]);
        }
        fclose(file);
        assert_null(history);
        assert_int_equal(strncmp(error, i < 2 ? "name:1: " : "name:2: ", 8), 0);
    }
}

static void test_any_bytes_survive_the_file(void **state)
{
    (void)state;
    static const char bytes[] = "\0 \r\n%=\x7f\xff-->a";
    const struct slice items[] = {slice_make(bytes, sizeof bytes - 1), SLICE_LIT("="),
                                  SLICE_LIT("ok")};
    struct history_op add = {
        .list = SLICE_LIT("% ="), .items = items, .item_count = 3, .completed = 1};
    struct history_op get = {.verb = HISTORY_LGET,
                             .list = SLICE_LIT("% ="),
                             .answer = items,
                             .answer_count = 3,
                             .invoked = 2,
                             .completed = 3};
    char *text = NULL, error[HISTORY_ERROR_MAX];
    size_t length = 0;
    struct history *history;
    FILE *file = open_memstream(&text, &length);
    history_write_header(file, false);
    fprintf(file, "# a remark\n\n");
    history_write(file, &add);
    history_write(file, &get);
    fclose(file);
    file = fmemopen(text, length, "r");
    assert_true(history_read(file, "name", 0, &history, error));
    fclose(file);
    assert_int_equal(history_check(history, NULL, NULL), HISTORY_LINEARIZABLE);
    history_destroy(&history);
    free(text);
}

/* --- at random --- */

static enum history_verdict check_ops(bool refuse, const struct history_op *ops, unsigned count,
                                      FILE *report)
{
    struct history_options options = {.refuse = refuse};
    struct history *history = history_create(&options);
    for (unsigned i = 0; i < count; i++) {
        assert_null(history_add(history, &ops[i]));
    }
    enum history_verdict verdict = history_check(history, report, NULL);
    history_destroy(&history);
    return verdict;
}

/* Changes an answer, so that it is wrong, or perhaps not. False when this operation has none. */
static bool mutate(struct rng *rng, struct generated *g, struct history_op *op, unsigned items)
{
    if (op->outcome > HISTORY_NONE) {
        return false;
    }
    if (op->outcome == HISTORY_OK &&
        (op->verb == HISTORY_LADDX || op->verb == HISTORY_LDELX || op->verb == HISTORY_LLEN)) {
        op->count += op->count > 0 && rng_below(rng, 2) == 0 ? UINT64_MAX : 1;
        return true;
    }
    if (op->verb != HISTORY_LGET && op->verb != HISTORY_LRANGE && op->verb != HISTORY_LHAS) {
        return false;
    }
    size_t n = op->answer_count, at = n == 0 ? 0 : rng_below(rng, n);
    struct slice *answer = arena_alloc(&g->arena, (n + 1) * sizeof *answer);
    for (size_t i = 0; i < n; i++) {
        answer[i] = op->answer[i];
    }
    op->answer = answer;
    if (n > 1 && rng_below(rng, 2) == 0) {
        size_t other = (at + 1) % n;
        struct slice one = answer[at];
        answer[at] = answer[other];
        answer[other] = one;
    } else if (n > 0 && rng_below(rng, 2) == 0) {
        answer[at] = answer[--op->answer_count];
    } else {
        answer[op->answer_count++] = g->ops[rng_below(rng, g->count)].list; /* no item's name */
        for (unsigned i = 0; i < g->count && items > 0; i++) {
            if (g->ops[i].item_count > 0) {
                answer[op->answer_count - 1] = g->ops[i].items[0];
            }
        }
        op->outcome = HISTORY_OK;
    }
    return true;
}

static void test_generated_histories_pass_and_mutated_ones_fail(void **state)
{
    (void)state;
    struct rng rng;
    unsigned mutated = 0, found = 0;
    rng_init_seed(&rng, 11);
    for (unsigned round = 0; round < 120; round++) {
        struct generate_options options = {.seed = round,
                                           .operations = 300,
                                           .lists = 2,
                                           .clients = 4,
                                           .depth = 1 + round % 4,
                                           .items = round % 2 == 0 ? 8 : 60,
                                           .items_max = 3,
                                           .unknown_permille = round % 3 * 15,
                                           .wipe_permille = 30,
                                           .duration = 100,
                                           .refuse = round % 5 == 0};
        struct generated g;
        generate(&options, &g);
        assert_int_equal(check_ops(options.refuse, g.ops, g.count, NULL), HISTORY_LINEARIZABLE);
        if (mutate(&rng, &g, &g.ops[150 + rng_below(&rng, 150)], options.items)) {
            enum history_verdict verdict = check_ops(options.refuse, g.ops, g.count, NULL);
            assert_int_not_equal(verdict, HISTORY_UNDECIDED);
            mutated++;
            found += verdict == HISTORY_VIOLATED;
        }
        generated_fini(&g);
    }
    print_message("%u of %u mutated histories violated\n", found, mutated);
    assert_true(mutated > 30);
    assert_true(found * 10 > mutated * 7);
}

/* Answers drawn at random, as the list might give them. */
static void draw_outcome(struct rng *rng, struct history_op *op)
{
    static const enum history_outcome outcomes[] = {
        HISTORY_OK,    HISTORY_OK,    HISTORY_MISSING,   HISTORY_UNKNOWN,
        HISTORY_MAYBE, HISTORY_ERROR, HISTORY_NOT_STORED};
    op->outcome = outcomes[rng_below(rng, sizeof outcomes / sizeof *outcomes)];
    op->completed = op->completed == HISTORY_NEVER ? op->invoked + 60 : op->completed;
    op->count = rng_below(rng, 3);
    if (op->outcome != HISTORY_OK) {
        op->answer_count = 0;
    }
}

static void fail_with(bool refuse, const struct generated *g, const char *what)
{
    history_write_header(stderr, refuse);
    for (unsigned i = 0; i < g->count; i++) {
        history_write(stderr, &g->ops[i]);
    }
    fail_msg("%s", what);
}

/* Looks at parts, as is done to make a violation small: when the whole has a solution, so have
 * they. A verdict that was given in spite of a limit is right, too. */
static void try_weaker(struct rng *rng, bool refuse, const struct generated *g, bool solvable)
{
    struct history_options options = {.refuse = refuse, .configurations_max = 1};
    struct history *history = history_create(&options);
    uint8_t fates[BRUTE_OPS_MAX];
    for (unsigned i = 0; i < g->count; i++) {
        bool read = g->ops[i].verb >= HISTORY_LGET && g->ops[i].verb <= HISTORY_LRANGE;
        assert_null(history_add(history, &g->ops[i]));
        fates[i] = rng_below(rng, 3) != 0 ? FATE_KEEP : read ? FATE_DROP : FATE_FREE;
    }
    enum history_verdict limited = history_check(history, NULL, NULL);
    if (limited != HISTORY_UNDECIDED && (limited == HISTORY_LINEARIZABLE) != solvable) {
        fail_with(refuse, g, "verdict in spite of the limit");
    }
    struct checker c = {.history = history};
    projector_init(&c.projector, history);
    for (unsigned n = 0; solvable && n < 12 && history->items.count > 0; n++) {
        struct evidence e = {.view = view_of_list(0), .beginning = NO_RECORD};
        e.view.until = n % 2 == 0 ? INT64_MAX : (int64_t)rng_below(rng, 800);
        e.view.fates = n % 3 == 0 ? NULL : fates;
        if (n % 4 != 0) {
            e.items[0] = (uint32_t)rng_below(rng, history->items.count);
            e.items[1] = (uint32_t)rng_below(rng, history->items.count);
            e.view.items = e.items;
            e.view.item_count = e.items[0] == e.items[1] ? 1 : 2;
            e.any_beginning = n % 4 != 1;
            e.view.cut_from = e.any_beginning ? (int64_t)rng_below(rng, 800) : INT64_MIN;
            e.view.cut_to = e.view.cut_from;
        }
        if (check_evidence(&c, &e, 100000) != SEARCH_FOUND) {
            fail_with(refuse, g, "a part has no solution");
        }
    }
    projector_fini(&c.projector);
    history_destroy(&history);
}

static void test_verdicts_are_those_of_trying_everything(void **state)
{
    (void)state;
    struct rng rng;
    unsigned good = 0, bad = 0;
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    rng_init_seed(&rng, 5);
    for (unsigned round = 0; round < 6000; round++) {
        struct generate_options options = {.seed = 1000 + round,
                                           .operations = 4 + (unsigned)rng_below(&rng, 5),
                                           .lists = 1,
                                           .clients = 1 + (unsigned)rng_below(&rng, 4),
                                           .depth = 1,
                                           .items = 2 + (unsigned)rng_below(&rng, 2),
                                           .items_max = 2,
                                           .unknown_permille = round % 4 * 100,
                                           .wipe_permille = round % 3 * 200,
                                           .duration = 50,
                                           .refuse = rng_below(&rng, 3) == 0,
                                           .hints = round % 3 == 1};
        struct generated g;
        generate(&options, &g);
        for (unsigned n = (unsigned)rng_below(&rng, 3); n > 0; n--) {
            (void)mutate(&rng, &g, &g.ops[rng_below(&rng, g.count)], options.items);
        }
        if (rng_below(&rng, 2) == 0) {
            draw_outcome(&rng, &g.ops[rng_below(&rng, g.count)]);
        }
        for (unsigned i = 0; round % 3 == 2 && i < g.count; i++) {
            g.ops[i].hint = rng_below(&rng, 5);
        }
        bool expected = brute_linearizable(options.refuse, g.ops, g.count);
        if (round % 4 == 0) {
            try_weaker(&rng, options.refuse, &g, expected);
        }
        enum history_verdict verdict =
            check_ops(options.refuse, g.ops, g.count, round % 8 == 0 ? nowhere : NULL);
        if (verdict != (expected ? HISTORY_LINEARIZABLE : HISTORY_VIOLATED)) {
            fail_with(options.refuse, &g, expected ? "must be linearizable" : "must be violated");
        }
        *(expected ? &good : &bad) += 1;
        generated_fini(&g);
    }
    fclose(nowhere);
    print_message("%u linearizable, %u not\n", good, bad);
    assert_true(good > 1500 && bad > 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_added_item_stays),
        cmocka_unit_test(test_a_deleted_item_does_not_come_back),
        cmocka_unit_test(test_items_stand_in_the_order_in_which_they_came),
        cmocka_unit_test(test_a_replaced_list_shows_nothing_of_what_it_held),
        cmocka_unit_test(test_exact_changes_count_what_they_changed),
        cmocka_unit_test(test_lcreate_succeeds_for_one),
        cmocka_unit_test(test_reads_of_parts),
        cmocka_unit_test(test_unknown_outcomes),
        cmocka_unit_test(test_missing_lists_are_refused),
        cmocka_unit_test(test_lists_are_judged_apart),
        cmocka_unit_test(test_a_limit_that_is_reached_is_no_verdict),
        cmocka_unit_test(test_evidence_is_small),
        cmocka_unit_test(test_malformed_lines_are_named),
        cmocka_unit_test(test_any_bytes_survive_the_file),
        cmocka_unit_test(test_generated_histories_pass_and_mutated_ones_fail),
        cmocka_unit_test(test_verdicts_are_those_of_trying_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
