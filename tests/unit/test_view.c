/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_life.h"

/* A list's life, and the view that is carried along. */
struct shown {
    struct life life;
    struct view view;
};

static void bring_up_to_date(struct shown *s, const struct head *head)
{
    struct life *l = &s->life;
    for (size_t i = view_keep(&s->view, head); i < l->run_count; i++) {
        for (uint32_t n = 0; n < l->runs[i].run.range.count; n++) {
            view_add_sublist(&s->view, &l->runs[i].run, i, l->runs[i].sublists[n]);
        }
    }
    view_take_log(&s->view, head);
}

static void assert_written(struct shown *s, uint64_t from, uint64_t to, bool back)
{
    struct life *l = &s->life;
    struct chain out;
    chain_init(&out);
    struct output output = {
        .from = from, .to = to, .out = &out, .delimiter = ',', .limit_bytes = UINT64_MAX};
    struct block *want = life_joined(l, from, to, back);
    if (back) {
        view_write_back(&s->view, &output);
    } else {
        view_write(&s->view, &output);
    }
    assert_written_as(&out, want);
    block_unref(&want);
    chain_fini(&out);
}

static void assert_range(struct shown *s, uint64_t from, uint64_t to)
{
    assert_written(s, from, to, false);
    assert_written(s, from, to, true);
}

static void assert_memberships(const struct shown *s)
{
    const struct life *l = &s->life;
    for (unsigned n = 0; n < l->shape.items; n++) {
        assert_int_equal(view_has(&s->view, test_item(n)), model_has(&l->model, test_item(n)));
    }
}

/* What entries of a newer run would change: it takes the view's log away. */
static void assert_changes(struct shown *s)
{
    struct life *l = &s->life;
    struct model below = {.count = 0};
    for (size_t i = 0; i < l->flipped_count; i++) {
        model_replay(&below, block_slice(l->pieces[i]));
    }
    for (unsigned n = 0; n < l->shape.items; n++) {
        bool has = model_has(&below, test_item(n));
        assert_int_equal(view_changes(&s->view, ENTRY_ADD, test_item(n)), !has);
        assert_int_equal(view_changes(&s->view, ENTRY_DEL, test_item(n)), has);
        assert_true(view_changes(&s->view, ENTRY_READD, test_item(n)));
    }
}

static void assert_right(struct shown *s)
{
    struct life *l = &s->life;
    assert_memberships(s);
    assert_int_equal(view_count(&s->view), l->model.count);
    assert_memberships(s);
    assert_range(s, 0, UINT64_MAX);
    uint64_t from = rng_below(&l->rng, l->model.count + 2);
    assert_range(s, from, from + rng_below(&l->rng, 20));
}

static void live(struct shown *s)
{
    struct life *l = &s->life;
    for (int step = 0; step < 60; step++) {
        life_go(l);
        /* Not every head is read. */
        if (rng_below(&l->rng, 3) > 0) {
            struct head *head = life_head(l);
            bring_up_to_date(s, head);
            if (rng_below(&l->rng, 3) > 0) {
                assert_right(s);
            } else {
                assert_memberships(s);
                assert_changes(s);
            }
            head_unref(&head);
        }
    }
}

static void begin(struct shown *s, uint64_t seed)
{
    life_init(&s->life, seed);
    view_init(&s->view);
}

static void end(struct shown *s)
{
    view_fini(&s->view);
    life_fini(&s->life);
}

static void test_it_shows_every_head_of_a_random_life(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct shown s;
        begin(&s, seed);
        live(&s);
        end(&s);
    }
}

/* Runs that were added while the log was hiding items: these come back before. */
static void test_a_flip_of_deletions(void **state)
{
    struct shown s;
    struct life *l = &s.life;
    (void)state;
    begin(&s, 1);
    l->shape.items = 3;
    static const char *const logs[] = {"+3:one+3:two+5:three", "-3:two", "+3:two", "-3:one+3:one"};
    for (size_t i = 0; i < 4; i++) {
        life_append_text(l, logs[i]);
        for (int flipped = 0; flipped < 2; flipped++) {
            struct head *head = life_head(l);
            bring_up_to_date(&s, head);
            assert_int_equal(view_count(&s.view), l->model.count);
            assert_range(&s, 0, UINT64_MAX);
            head_unref(&head);
            if (flipped == 0) {
                life_flip(l);
            }
        }
    }
    end(&s);
}

static void test_memory_is_counted(void **state)
{
    struct shown s;
    (void)state;
    begin(&s, 5);
    life_append(&s.life);
    life_flip(&s.life);
    size_t before = view_memory_bytes(&s.view);
    struct head *head = life_head(&s.life);
    bring_up_to_date(&s, head);
    assert_true(view_memory_bytes(&s.view) >
                before + sublist_memory_bytes(s.life.runs[0].sublists[0]) - 1);
    head_unref(&head);
    view_clear(&s.view);
    assert_int_equal(view_memory_bytes(&s.view), before);
    end(&s);
}

/* A machine that does not know the time yet: what is built then was cleared at once, for ever. */
static void test_a_second_before_1970_clears_nothing(void **state)
{
    struct shown s;
    (void)state;
    begin(&s, 6);
    life_append(&s.life);
    life_flip(&s.life);
    struct head *head = life_head(&s.life);
    view_advance(&s.view, -5);
    bring_up_to_date(&s, head);
    view_advance(&s.view, -5);
    assert_true(view_has_runs(&s.view, head));
    head_unref(&head);
    end(&s);
}

/* An item of the log is over without any change of the head. */
static void test_an_item_that_is_over_is_counted_no_longer(void **state)
{
    (void)state;
    struct view view;
    struct block *log = block_new(64);
    entry_put(&log, &(struct entry){ENTRY_TIMED, 100, SLICE_LIT("a")});
    entry_append(&log, ENTRY_ADD, SLICE_LIT("b"));
    struct head *head = head_with(NULL, 0, block_slice(log));
    head->cas = 1;
    view_init(&view);
    view_advance(&view, 99);
    view_keep(&view, head);
    view_take_log(&view, head);
    assert_int_equal(view_count(&view), 2);
    view_advance(&view, 100);
    view_take_log(&view, head);
    assert_int_equal(view_count(&view), 1);
    view_fini(&view);
    head_unref(&head);
    block_unref(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_shows_every_head_of_a_random_life),
        cmocka_unit_test(test_a_flip_of_deletions),
        cmocka_unit_test(test_memory_is_counted),
        cmocka_unit_test(test_a_second_before_1970_clears_nothing),
        cmocka_unit_test(test_an_item_that_is_over_is_counted_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
