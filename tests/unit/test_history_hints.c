/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../history/generate.h"

/* Many operations at once, a third of them with an unknown outcome. */
static struct generate_options crowd(unsigned seed)
{
    return (struct generate_options){.seed = seed,
                                     .operations = 300,
                                     .lists = 1,
                                     .clients = 6,
                                     .depth = 3,
                                     .items = seed % 2 == 0 ? 6 : 200,
                                     .items_max = 3,
                                     .unknown_permille = 300,
                                     .wipe_permille = seed > 4 ? 60 : 20,
                                     .duration = 100,
                                     .refuse = seed > 4,
                                     .hints = true};
}

static enum history_verdict check_ops(const struct history_op *ops, unsigned count, bool refuse,
                                      bool hints)
{
    struct history_options options = {.configurations_max = 2000, .refuse = refuse};
    struct history *history = history_create(&options);
    for (unsigned i = 0; i < count; i++) {
        struct history_op op = ops[i];
        op.hint = hints ? op.hint : 0;
        assert_null(history_add(history, &op));
    }
    enum history_verdict verdict = history_check(history, NULL, NULL);
    history_destroy(&history);
    return verdict;
}

/* A full read behind the middle that found several items. */
static struct history_op *late_read(const struct generated *g)
{
    for (unsigned i = g->count / 2; i < g->count; i++) {
        if (g->ops[i].verb == HISTORY_LGET && g->ops[i].outcome == HISTORY_OK &&
            g->ops[i].answer_count > 2) {
            return &g->ops[i];
        }
    }
    fail_msg("no such read");
    return NULL;
}

static void test_hints_decide_what_a_search_does_not(void **state)
{
    unsigned undecided = 0;
    (void)state;
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct generate_options options = crowd(seed);
        struct generated g;
        generate(&options, &g);
        undecided += check_ops(g.ops, g.count, options.refuse, false) == HISTORY_UNDECIDED;
        assert_int_equal(check_ops(g.ops, g.count, options.refuse, true), HISTORY_LINEARIZABLE);
        /* With an item that no call added. */
        struct history_op *read = late_read(&g);
        struct slice answer[256];
        memcpy(answer, read->answer, read->answer_count * sizeof *answer);
        answer[1] = SLICE_LIT("stranger");
        read->answer = answer;
        assert_int_equal(check_ops(g.ops, g.count, options.refuse, true), HISTORY_VIOLATED);
        generated_fini(&g);
    }
    assert_true(undecided >= 4);
}

static void test_hints_are_not_believed(void **state)
{
    (void)state;
    struct slice a = SLICE_LIT("a"), b = SLICE_LIT("b"), ba[] = {b, a};
    struct history_op ops[] = {
        {.list = a, .items = &a, .item_count = 1, .completed = 3, .hint = 2},
        {.list = a, .items = &b, .item_count = 1, .completed = 3, .hint = 3},
        {.verb = HISTORY_LGET,
         .list = a,
         .answer = ba,
         .answer_count = 2,
         .invoked = 4,
         .completed = 5},
    };
    assert_int_equal(check_ops(ops, 3, false, true), HISTORY_LINEARIZABLE);
    ops[0].hint = 4;
    assert_int_equal(check_ops(ops, 3, false, true), HISTORY_LINEARIZABLE);
    /* Asked for behind a, b cannot have come first. */
    ops[1].invoked = ops[1].completed = 4;
    assert_int_equal(check_ops(ops, 3, false, true), HISTORY_VIOLATED);
    /* One that was never done, by what is believed, and one that changed nothing. */
    ops[1].invoked = 0;
    ops[0].hint = 0;
    ops[1].hint = HISTORY_HINT_NOTHING;
    assert_int_equal(check_ops(ops, 3, false, true), HISTORY_LINEARIZABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hints_decide_what_a_search_does_not),
        cmocka_unit_test(test_hints_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
