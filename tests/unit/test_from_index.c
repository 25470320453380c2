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
#include "list/core/inner.h"
#include "list/core/run_index.h"
#include "list/read/from_view.h"
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
    struct inner *reads[2];
};

static enum progress asker_step(struct engine *e, struct op *op, const struct op_event *event)
{
    struct op_asker *o = (struct op_asker *)op;
    struct co *co = &op->co;
    (void)e;
    (void)event;
    CO_BEGIN(co);
    while (o->reads[1] == NULL || !o->reads[0]->done || !o->reads[1]->done) {
        CO_AWAIT(co, "reading by an index");
    }
    CO_END(co);
}

static void asker_fini(struct engine *e, struct op *op)
{
    struct op_asker *o = (struct op_asker *)op;
    inner_drop(e, &o->reads[0]);
    inner_drop(e, &o->reads[1]);
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

/* Asks by the head; an lhas is about the item, a range has all. */
static struct inner *ask(struct index_test *t, struct op_asker *o, enum list_verb verb,
                         const struct slice *item)
{
    struct call_queue calls;
    struct inner *read = inner_new(t->rig.engine, &o->op, t->list, verb);
    TAILQ_INIT(&calls);
    read->pinned = true;
    read->call.items = item;
    read->call.item_count = verb == LIST_HAS;
    read->call.from = 0;
    read->call.to = -1;
    TAILQ_INSERT_TAIL(&calls, &read->call, link);
    TAILQ_INSERT_TAIL(&t->list->active, &read->call, active);
    view_start_reads(t->rig.engine, t->list, &calls, t->head);
    return read;
}

static struct be_request *next_request(struct index_test *t)
{
    struct engine *e = t->rig.engine;
    struct be_request *r = engine_take_request(e);
    for (unsigned turns = 0; r == NULL && turns < 100; turns++) {
        (void)engine_run(e, t->rig.now);
        r = engine_take_request(e);
    }
    return r;
}

static void give_sublist(struct index_test *t, struct be_request *r)
{
    assert_int_equal(r->verb, BE_GET);
    struct slice key = slice_make(r->key, r->key_len);
    bool first = slice_equal(key, SLICE_LIT("k#" RUN ".0"));
    assert_true(first || slice_equal(key, SLICE_LIT("k#" RUN ".1")));
    rig_answer(&t->rig, r, BE_HIT, first ? FIRST_SUBLIST : SECOND_SUBLIST, -1);
}

static void assert_answered(const struct inner *read)
{
    assert_true(read->done);
    assert_int_equal(read->call.status, LIST_OK);
    assert_int_equal(read->call.number, read->call.verb == LIST_HAS ? 1 : 7);
}

/* The first one needs a sublist besides the index: the second one comes while that is fetched. */
static void test_calls_of_one_head_that_come_meanwhile(void **state)
{
    enum { SUBLISTS_OF_THE_INDEX = 2 };
    static const enum list_verb verbs[] = {LIST_HAS, LIST_REVRANGE};
    static const struct slice items[] = {{"a", 1}, {"e", 1}};
    for (size_t i = 0; i < 4; i++) {
        (void)setup(state);
        struct index_test *t = *state;
        struct op_asker *o = op_create(t->rig.engine, t->list, sizeof *o, asker_step, asker_fini);
        op_start(t->rig.engine, &o->op);
        o->reads[0] = ask(t, o, verbs[i / 2], &items[0]);
        struct inner *second = NULL;
        struct be_request *r;
        for (unsigned n = 0; (r = next_request(t)) != NULL; n++) {
            if (n == SUBLISTS_OF_THE_INDEX) {
                assert_false(o->reads[0]->done);
                second = ask(t, o, verbs[i % 2], &items[1]);
            }
            give_sublist(t, r);
        }
        assert_non_null(second);
        assert_answered(o->reads[0]);
        assert_answered(second);
        o->reads[1] = second; /* that is all that its operation has waited for */
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
