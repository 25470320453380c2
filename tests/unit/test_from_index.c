/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads by the indexes of runs: what comes for a head while others of the same head are answered.
 * Operations on several lists ask so, with inner calls.
 */
#include "list/read/from_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dialect/dialects.h"
#include "list/core/engine_state.h"
#include "list/core/run_index.h"
#include "list/read/question.h"
#include "support_engine.h"
#include "support_list.h"

#define RUN "aaaaaaaaaaaaa"
#define HEAD "^1 " RUN ".2:52:6\n+1:x"
#define FIRST_SUBLIST "^1 0000000003\n+1:a+1:b+1:c"
#define SECOND_SUBLIST "^1 0000000003\n+1:d+1:e+1:f"

struct index_test {
    struct rig rig;
    struct run_indexes *indexes;
    struct list *list;
    struct head *head;
};

/* It asks for as much as the test does, and stays until that is answered. */
struct op_asker {
    struct op op;
    struct question questions[2];
    bool all_asked;
};

static enum progress asker_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_asker *o = (struct op_asker *)op;
    struct co *co = &op->co;
    (void)e;
    (void)event;
    CO_BEGIN(co);
    while (!o->all_asked) {
        CO_AWAIT(co, "reading by an index");
    }
    CO_CALL(co, question_step(&o->questions[0], op, "reading by an index"));
    CO_CALL(co, question_step(&o->questions[1], op, "reading by an index"));
    CO_END(co);
}

static void asker_fini(struct engine *e, struct op *op)
{
    struct op_asker *o = (struct op_asker *)op;
    question_forget(e, &o->questions[0]);
    question_forget(e, &o->questions[1]);
}

static int setup(void **state)
{
    static struct index_test t;
    t = (struct index_test){0};
    rig_init(&t.rig);
    engine_destroy(&t.rig.engine);
    t.rig.config->view_bytes = 0;
    t.rig.engine = engine_create(t.rig.config, &t.rig.cache, &dialects, &t.rig.rng, &t.rig.metrics);
    t.indexes = run_indexes_create(1 << 20, LOCATOR_CHECK_BITS);
    engine_set_run_indexes(t.rig.engine, t.indexes);
    t.list = lists_get(&t.rig.engine->lists, SLICE_LIT("k"), &t.rig.config->lists[0]);
    t.head = head_of_list(SLICE_LIT("k"), SLICE_LIT(HEAD));
    t.head->read_s = t.rig.now.wall_s;
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct index_test *t = *state;
    head_unref(&t->head);
    rig_fini(&t->rig);
    run_indexes_destroy(&t->indexes);
    return 0;
}

/* Asks by the head: for the item, or for all seven. */
static void ask(struct index_test *t, struct op_asker *o, size_t i, bool range,
                const struct slice *item)
{
    struct engine *e = t->rig.engine;
    if (range) {
        question_range(e, &o->questions[i], &o->op, t->list, t->head, true, 7, NULL);
    } else {
        question_items(e, &o->questions[i], &o->op, t->list, t->head, item, 1);
    }
}

static struct list_request *next_request(struct index_test *t)
{
    struct engine *e = t->rig.engine;
    struct list_request *r = engine_take_request(e);
    for (unsigned turns = 0; r == NULL && turns < 100; turns++) {
        (void)engine_run(e, t->rig.now);
        r = engine_take_request(e);
    }
    return r;
}

static void give_sublist(struct index_test *t, struct list_request *r)
{
    assert_int_equal(r->be.verb, BE_GET);
    struct slice key = r->be.key;
    bool first = slice_equal(key, SLICE_LIT("k#" RUN ".0"));
    assert_true(first || slice_equal(key, SLICE_LIT("k#" RUN ".1")));
    rig_answer(&t->rig, r, BE_HIT, first ? FIRST_SUBLIST : SECOND_SUBLIST, -1);
}

static void assert_answered(const struct question *q, bool range)
{
    assert_true(q->read->done);
    if (range) {
        assert_int_equal(q->read->call.status, LIST_OK);
        assert_int_equal(q->read->call.number, 7);
    } else {
        assert_true(members_has(&q->members, 0));
    }
}

/* The first one needs a sublist besides the index: the second one comes while that is fetched. */
static void test_calls_of_one_head_that_come_meanwhile(void **state)
{
    enum { SUBLISTS_OF_THE_INDEX = 2 };
    static const struct slice items[] = {{"a", 1}, {"e", 1}};
    for (size_t i = 0; i < 4; i++) {
        (void)setup(state);
        struct index_test *t = *state;
        struct op_asker *o = op_create(t->rig.engine, t->list, sizeof *o, asker_step, asker_fini);
        op_run(t->rig.engine, &o->op);
        ask(t, o, 0, i / 2 == 1, &items[0]);
        bool asked_both = false;
        struct list_request *r;
        for (unsigned n = 0; (r = next_request(t)) != NULL; n++) {
            if (n == SUBLISTS_OF_THE_INDEX) {
                assert_false(o->questions[0].read->done);
                ask(t, o, 1, i % 2 == 1, &items[1]);
                asked_both = true;
            }
            give_sublist(t, r);
        }
        assert_true(asked_both);
        assert_answered(&o->questions[0], i / 2 == 1);
        assert_answered(&o->questions[1], i % 2 == 1);
        o->all_asked = true; /* that is all that it has waited for */
        op_wake(t->rig.engine, &o->op);
        assert_null(next_request(t));
        (void)teardown(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_of_one_head_that_come_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
