/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/outline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_life.h"

/* A list's life, and the outline that is carried along. Locators are made anew for each head. */
struct outlined {
    struct life life;
    struct outline outline;
    struct locator *locators[RUNS_MAX];
    unsigned check_bits;
    unsigned looked; /* sublists that were looked into */
};

static struct locator *make_locator(const struct test_run *run, unsigned check_bits)
{
    struct locator_builder b;
    locator_builder_init(&b, run->run.range.count, run->run.items, check_bits);
    for (uint32_t n = 0; n < run->run.range.count; n++) {
        for (uint32_t i = 0; i < run->sublists[n]->count; i++) {
            locator_builder_add(&b, run->sublists[n]->ops[i], sublist_item(run->sublists[n], i));
        }
        locator_builder_end_sublist(&b);
    }
    while (!locator_builder_sort(&b)) {
    }
    struct locator *locator = locator_builder_take(&b);
    locator_builder_fini(&b);
    return locator;
}

static void answer_all(struct outlined *s)
{
    struct life *l = &s->life;
    for (size_t run = 0; run < s->outline.view.run_count; run++) {
        for (uint32_t n = 0; n < l->runs[run].run.range.count; n++) {
            if (outline_asks(&s->outline, run, n)) {
                outline_answer(&s->outline, run, n, l->runs[run].sublists[n]);
                s->looked++;
            }
        }
    }
    assert_false(outline_has_questions(&s->outline));
    outline_forget_questions(&s->outline);
}

static void drop_locators(struct outlined *s)
{
    for (size_t i = 0; i < RUNS_MAX; i++) {
        locator_unref(&s->locators[i]);
    }
}

static void add_run(struct outlined *s, size_t at)
{
    const struct test_run *run = &s->life.runs[at];
    view_begin_counts(&s->outline.view, &run->run.range.name);
    s->outline.locators = s->locators;
    if (at == 0 && s->locators[0]->all_add) {
        outline_add_counts(&s->outline, s->locators[0]);
        return;
    }
    for (uint32_t n = 0; n < run->run.range.count; n++) {
        outline_add_sublist(&s->outline, run->sublists[n]);
        if (rng_below(&s->life.rng, 2) == 0) {
            answer_all(s); /* now, or together with those of others */
        }
    }
    answer_all(s);
}

static void bring_up_to_date(struct outlined *s, const struct head *head)
{
    drop_locators(s);
    for (size_t i = 0; i < s->life.run_count; i++) {
        s->locators[i] = make_locator(&s->life.runs[i], s->check_bits);
    }
    for (size_t i = outline_keep(&s->outline, head); i < s->life.run_count; i++) {
        add_run(s, i);
    }
    assert_true(view_has_runs(&s->outline.view, head));
    s->outline.locators = s->locators;
    view_take_log(&s->outline.view, head);
}

static void settle(struct outlined *s)
{
    outline_ask_log(&s->outline);
    answer_all(s);
    outline_settle(&s->outline);
}

static void write_all(struct outlined *s, bool back, struct output *output)
{
    const struct life *l = &s->life;
    if (back) {
        view_write_rest(&s->outline.view, true, output);
    }
    for (size_t r = 0; r < l->run_count; r++) {
        size_t run = back ? l->run_count - 1 - r : r;
        uint32_t count = l->runs[run].run.range.count;
        for (uint32_t n = 0; n < count; n++) {
            uint32_t part = back ? count - 1 - n : n;
            assert_true(outline_write_part(&s->outline, run, part, l->runs[run].sublists[part],
                                           back, output));
        }
    }
    if (!back) {
        view_write_rest(&s->outline.view, false, output);
    }
}

static void assert_range(struct outlined *s, uint64_t from, uint64_t to)
{
    for (int back = 0; back < 2; back++) {
        struct chain out;
        chain_init(&out);
        struct output output = {
            .from = from, .to = to, .out = &out, .delimiter = ',', .limit_bytes = UINT64_MAX};
        struct block *want = life_joined(&s->life, from, to, back != 0);
        write_all(s, back != 0, &output);
        assert_written_as(&out, want);
        block_unref(&want);
        chain_fini(&out);
    }
}

static void assert_memberships(struct outlined *s)
{
    bool known[ITEMS_MAX], has[ITEMS_MAX];
    struct outline_found found[ITEMS_MAX] = {0};
    s->outline.answers = found;
    for (unsigned n = 0; n < s->life.shape.items; n++) {
        known[n] = outline_ask_item(&s->outline, test_item(n), n, &has[n]);
    }
    answer_all(s);
    for (unsigned n = 0; n < s->life.shape.items; n++) {
        assert_int_equal(known[n] ? has[n] : found[n].found,
                         model_has(&s->life.model, test_item(n)));
    }
}

static void assert_right(struct outlined *s)
{
    struct life *l = &s->life;
    assert_memberships(s);
    settle(s);
    assert_int_equal(view_count(&s->outline.view), l->model.count);
    assert_memberships(s);
    assert_range(s, 0, UINT64_MAX);
    uint64_t from = rng_below(&l->rng, l->model.count + 2);
    assert_range(s, from, from + rng_below(&l->rng, 20));
}

static void begin(struct outlined *s, uint64_t seed, unsigned check_bits)
{
    *s = (struct outlined){.check_bits = check_bits};
    life_init(&s->life, seed);
    outline_init(&s->outline);
}

static void end(struct outlined *s)
{
    drop_locators(s);
    outline_fini(&s->outline);
    life_fini(&s->life);
}

static void live(struct outlined *s)
{
    for (int step = 0; step < 60; step++) {
        life_go(&s->life);
        struct head *head = life_head(&s->life);
        /* Not every head is read. Where the log clears the list, there is nothing to look up. */
        if (rng_below(&s->life.rng, 3) > 0 && !head->clears) {
            bring_up_to_date(s, head);
            if (rng_below(&s->life.rng, 3) > 0) {
                assert_right(s);
            } else {
                assert_memberships(s);
            }
        }
        head_unref(&head);
    }
}

static void test_it_shows_every_head_of_a_random_life(void **state)
{
    static const unsigned bits[] = {0, 3, LOCATOR_CHECK_BITS};
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct outlined s;
        begin(&s, seed, bits[seed % 3]);
        live(&s);
        end(&s);
    }
}

/* What was hidden by a run, or by the log, comes back when that is not the list's any more. */
static void test_what_hid_items_goes(void **state)
{
    struct outlined s;
    struct life *l = &s.life;
    (void)state;
    begin(&s, 1, LOCATOR_CHECK_BITS);
    l->shape.items = 3;
    static const char *const logs[] = {"+3:one+3:two+5:three", "-3:two", "+3:two", "-3:one+3:one"};
    for (size_t i = 0; i < 4; i++) {
        life_append_text(l, logs[i]);
        for (int round = 0; round < 3; round++) {
            struct head *head = life_head(l);
            bring_up_to_date(&s, head);
            settle(&s);
            assert_int_equal(view_count(&s.outline.view), l->model.count);
            assert_range(&s, 0, UINT64_MAX);
            head_unref(&head);
            if (round == 0) {
                life_flip(l);
            } else if (round == 1 && l->run_count > 1) {
                life_merge(l);
            }
        }
    }
    end(&s);
}

static void show(struct outlined *s, const char *log)
{
    block_unref(&s->life.log);
    s->life.log = block_of(slice_of(log));
    s->life.cas++;
    struct head *head = life_head(&s->life);
    bring_up_to_date(s, head);
    settle(s);
    head_unref(&head);
}

/* A log that does not go on from the one before, over the same runs: as a failover leaves it, or a
 * fold of a deletion that an addition has made void. */
static void test_another_log_hides_other_items(void **state)
{
    struct outlined s;
    (void)state;
    begin(&s, 1, LOCATOR_CHECK_BITS);
    show(&s, "+1:a+1:b");
    life_flip(&s.life);
    static const struct {
        const char *log;
        uint64_t count;
    } rows[] = {{"", 2}, {"-1:a", 1}, {"", 2}, {"-1:b-1:a", 0}, {"-1:b", 1}, {"+1:c", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        show(&s, rows[i].log);
        assert_int_equal(view_count(&s.outline.view), rows[i].count);
    }
    end(&s);
}

/* Items that are in no run are known not to be there without a look into any sublist. */
static void test_new_items_need_no_sublists(void **state)
{
    struct outlined s;
    (void)state;
    begin(&s, 1, LOCATOR_CHECK_BITS);
    static const char *const logs[] = {"+1:a+1:b+1:c", "+1:d+1:e", "+1:f+1:g"};
    for (size_t i = 0; i < 3; i++) {
        life_append_text(&s.life, logs[i]);
        struct head *head = life_head(&s.life);
        bring_up_to_date(&s, head);
        settle(&s);
        assert_int_equal(view_count(&s.outline.view), s.life.model.count);
        bool has = true;
        struct outline_found found = {0};
        s.outline.answers = &found;
        assert_true(outline_ask_item(&s.outline, SLICE_LIT("new"), 0, &has));
        assert_false(has);
        head_unref(&head);
        life_flip(&s.life);
    }
    assert_int_equal(s.looked, 0);
    end(&s);
}

/* A server may answer another sublist for a name than it did before. */
static void test_another_sublist_is_not_written(void **state)
{
    struct outlined s;
    struct chain out;
    (void)state;
    begin(&s, 1, LOCATOR_CHECK_BITS);
    show(&s, "+1:a+1:b");
    life_flip(&s.life);
    show(&s, "-1:a");
    struct block *value = sublist_begin(1000);
    for (unsigned n = 0; n < 3; n++) {
        entry_append(&value, ENTRY_ADD, test_item(n));
    }
    sublist_finish(value, 3);
    struct sublist *other = sublist_decode(block_slice(value), -1);
    assert_non_null(other);
    chain_init(&out);
    struct output output = {.to = UINT64_MAX, .out = &out, .limit_bytes = UINT64_MAX};
    assert_false(outline_write_part(&s.outline, 0, 0, other, false, &output));
    assert_false(outline_write_part(&s.outline, 0, 0, other, true, &output));
    assert_int_equal(out.bytes, 0);
    chain_fini(&out);
    sublist_unref(&other);
    block_unref(&value);
    end(&s);
}

static void test_memory_is_counted(void **state)
{
    struct outlined s;
    (void)state;
    begin(&s, 5, LOCATOR_CHECK_BITS);
    life_append(&s.life);
    life_flip(&s.life);
    size_t before = view_memory_bytes(&s.outline.view);
    struct head *head = life_head(&s.life);
    bring_up_to_date(&s, head);
    assert_true(view_memory_bytes(&s.outline.view) >= before + sizeof(struct view_part));
    head_unref(&head);
    outline_clear(&s.outline);
    assert_int_equal(view_memory_bytes(&s.outline.view), before);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_shows_every_head_of_a_random_life),
        cmocka_unit_test(test_what_hid_items_goes),
        cmocka_unit_test(test_another_log_hides_other_items),
        cmocka_unit_test(test_new_items_need_no_sublists),
        cmocka_unit_test(test_another_sublist_is_not_written),
        cmocka_unit_test(test_memory_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
