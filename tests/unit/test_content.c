/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/content.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_memory.h"

#include "proto/client/list_format.h"
#include "support_list.h"

#define RUNS_MAX 5

static const struct list_policy roomy = {
    .delimiter = ',',
    .max_answer_bytes = UINT64_MAX,
    .fold_memory_bytes = UINT64_MAX,
};

/* A list in memory, what the model says of it, and one reading of it. */
struct fixture {
    struct test_run runs[RUNS_MAX];
    struct block *entries[RUNS_MAX];
    size_t run_count;
    struct block *log;
    struct head *head;
    struct model model;
    struct content c;
    struct chain out;
};

/* Reads the head made of the runs and the log; takes over log. */
static void fixture_finish(struct fixture *f, struct block *log)
{
    struct run runs[RUNS_MAX];
    for (size_t i = 0; i < f->run_count; i++) {
        runs[i] = f->runs[i].run;
    }
    f->log = log;
    model_replay(&f->model, block_slice(log));
    f->head = head_with(runs, f->run_count, block_slice(log));
}

static void fixture_add_run(struct fixture *f, struct block *entries, uint32_t per_sublist)
{
    size_t i = f->run_count++;
    f->entries[i] = entries;
    model_replay(&f->model, block_slice(entries));
    test_run_init(&f->runs[i], block_slice(entries), per_sublist, ',');
    if (f->runs[i].run.range.count == 0) { /* no header names an empty run */
        test_run_fini(&f->runs[i]);
        block_unref(&f->entries[i]);
        f->run_count--;
        return;
    }
    f->runs[i].run.range.name = test_name((char)('a' + i));
}

static void fixture_init_random(struct fixture *f, struct rng *rng)
{
    *f = (struct fixture){.run_count = 0};
    struct log_shape shape = {
        .items = 1 + (unsigned)rng_below(rng, 60), .entries = 40, .readd = true};
    shape.readd = rng_below(rng, 2) == 0;
    for (uint64_t n = rng_below(rng, RUNS_MAX + 1); n > 0; n--) {
        struct block *log = random_log(rng, &shape);
        bool oldest = f->run_count == 0 && rng_below(rng, 3) > 0;
        fixture_add_run(f, fold_entries(block_slice(log), oldest, NULL),
                        1 + (uint32_t)rng_below(rng, 12));
        block_unref(&log);
    }
    shape.entries = (unsigned)rng_below(rng, 3) * 10;
    shape.clear_in = rng_below(rng, 6) == 0 ? 20 : 0;
    shape.announcements = true;
    fixture_finish(f, random_log(rng, &shape));
}

static void fixture_fini_list(struct fixture *f)
{
    for (size_t i = 0; i < f->run_count; i++) {
        test_run_fini(&f->runs[i]);
        block_unref(&f->entries[i]);
    }
    block_unref(&f->log);
    head_unref(&f->head);
}

/* What a scan does: visits all sublists of these runs until the visitor has enough. */
static void visit(const struct fixture *f, const struct run *runs, size_t count, bool backwards,
                  enum visited (*visitor)(void *arg, struct sublist *sublist), void *arg)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(runs + i - f->head->runs);
        assert_true(at < f->run_count);
        uint32_t sublists = f->runs[at].run.range.count;
        for (uint32_t n = 0; n < sublists; n++) {
            struct sublist *sublist = f->runs[at].sublists[backwards ? sublists - 1 - n : n];
            enum visited visited;
            while ((visited = visitor(arg, sublist)) == VISITED_PART) {
            }
            if (visited == VISITED_ENOUGH) {
                return;
            }
        }
    }
}

/* Begins a reading: what it writes goes to f->out. */
static struct content *begin(struct fixture *f, const struct list_policy *policy)
{
    chain_init(&f->out);
    content_init(&f->c, f->head, policy);
    f->c.output.delimiter = policy->delimiter;
    f->c.output.limit_bytes = policy->max_answer_bytes;
    f->c.output.out = &f->out;
    return &f->c;
}

static void end(struct fixture *f)
{
    content_fini(&f->c);
    chain_fini(&f->out);
}

static void fixture_fini(struct fixture *f)
{
    end(f);
    fixture_fini_list(f);
}

/* Begins one, up to the pass over the oldest run. */
static struct content *prepare(struct fixture *f, const struct list_policy *policy)
{
    size_t count;
    struct content *c = begin(f, policy);
    const struct run *runs = content_overlay_runs(c, &count);
    visit(f, runs, count, false, content_fold_visit, c);
    if (!c->too_large) {
        content_fold_log(c, f->head->log);
    }
    return c;
}

/* Makes a list of one run and no log, and prepares a reading of it. */
static struct content *prepare_run(struct fixture *f, const char *entries, uint32_t per_sublist)
{
    *f = (struct fixture){.run_count = 0};
    fixture_add_run(f, block_of(slice_of(entries)), per_sublist);
    fixture_finish(f, block_of(SLICE_NONE));
    return prepare(f, &roomy);
}

static void pass(struct fixture *f)
{
    struct content *c = &f->c;
    size_t count;
    output_rewind(&c->output);
    const struct run *runs = content_base_run(c, &count);
    if (c->backwards) {
        content_rest(c);
    }
    if (!output_satisfied(&c->output)) {
        visit(f, runs, count, c->backwards, content_base_visit, c);
    }
    if (!c->backwards) {
        content_rest(c);
    }
}

static void assert_chain_is(const struct chain *chain, struct slice want)
{
    assert_int_equal(chain->bytes, want.len);
    struct iovec *iov = malloc((chain->count + 1) * sizeof *iov);
    assert_non_null(iov);
    size_t n = chain_iov(chain, iov, chain->count + 1), at = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(at + iov[i].iov_len <= want.len);
        assert_memory_equal(iov[i].iov_base, want.p + at, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    assert_int_equal(at, want.len);
    free(iov);
}

/* The answer that the model gives for positions from..to. */
static struct block *expected(const struct model *m, uint64_t from, uint64_t to, bool items_form,
                              bool backwards)
{
    struct block *b = block_new(64);
    for (uint64_t at = from; at < m->count && at <= to; at++) {
        uint64_t i = backwards ? m->count - 1 - at : at;
        if (items_form) {
            char line[40];
            block_append(&b, "ITEM key ", 9);
            block_append(&b, line, format_u64(line, m->items[i].len));
            block_append(&b, "\r\n", 2);
            block_append(&b, m->items[i].p, m->items[i].len);
            block_append(&b, "\r\n", 2);
        } else {
            block_append(&b, ",", at > from);
            block_append(&b, m->items[i].p, m->items[i].len);
        }
    }
    return b;
}

static void assert_range(struct fixture *f, uint64_t from, uint64_t to)
{
    struct content *c = &f->c;
    c->output.from = from;
    c->output.to = to;
    pass(f);
    struct block *want = expected(&f->model, from, to, c->output.items_form, c->backwards);
    assert_chain_is(&f->out, block_slice(want));
    uint64_t end = to < f->model.count ? to + 1 : f->model.count;
    assert_int_equal(c->output.written, end > from ? end - from : 0);
    assert_false(c->output.too_large);
    block_unref(&want);
    chain_fini(&f->out);
    chain_init(&f->out);
}

static void assert_random_ranges(struct fixture *f, struct rng *rng)
{
    assert_range(f, 0, UINT64_MAX);
    for (int i = 0; i < 5; i++) {
        uint64_t from = rng_below(rng, f->model.count + 3);
        assert_range(f, from, from + rng_below(rng, f->model.count + 3));
    }
}

static void test_random_lists_are_streamed_as_the_model_has_them(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 12);
    for (int round = 0; round < 3000; round++) {
        struct fixture f;
        fixture_init_random(&f, &rng);
        struct content *c = prepare(&f, &roomy);
        c->output.items_form = rng_below(&rng, 2) == 0;
        c->output.key = SLICE_LIT("key");
        if (rng_below(&rng, 2) == 0) {
            /* Counting first must not change what follows. */
            c->output.out = NULL;
            pass(&f);
            c->output.out = &f.out;
            assert_int_equal(c->output.position, f.model.count);
            assert_int_equal(c->output.written, 0);
        }
        assert_random_ranges(&f, &rng);
        assert_range(&f, 1, UINT64_MAX);
        c->backwards = true; /* one pass has gone before */
        assert_random_ranges(&f, &rng);
        fixture_fini(&f);
    }
}

static void test_a_count_known_without_a_pass_is_right(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 13);
    unsigned known = 0;
    for (int round = 0; round < 3000; round++) {
        struct fixture f;
        fixture_init_random(&f, &rng);
        uint64_t count;
        if (content_known_count(prepare(&f, &roomy), &count)) {
            assert_int_equal(count, f.model.count);
            known++;
        } else {
            assert_true(f.run_count > 0);
        }
        fixture_fini(&f);
    }
    assert_true(known > 300);
}

static void test_every_range_of_a_small_list_is_right(void **state)
{
    (void)state;
    struct fixture f = {.run_count = 0};
    fixture_add_run(&f, block_of(SLICE_LIT("+1:a+1:b+0:+1:d+1:e+1:f")), 2);
    fixture_add_run(&f, block_of(SLICE_LIT("-1:b+1:g=1:a")), 10);
    fixture_finish(&f, block_of(SLICE_LIT("+1:h-1:e")));
    assert_int_equal(f.model.count, 6);
    struct content *c = prepare(&f, &roomy);
    for (int form = 0; form < 2; form++) {
        c->output.items_form = form == 1;
        c->output.key = SLICE_LIT("key");
        for (uint64_t from = 0; from < 8; from++) {
            for (uint64_t to = from; to < 9; to++) {
                c->backwards = false;
                assert_range(&f, from, to);
                c->backwards = true;
                assert_range(&f, from, to);
            }
        }
    }
    fixture_fini(&f);
}

static void test_a_cleared_list_needs_no_run(void **state)
{
    (void)state;
    struct fixture f = {.run_count = 0};
    fixture_add_run(&f, block_of(SLICE_LIT("+1:a")), 2);
    fixture_add_run(&f, block_of(SLICE_LIT("+1:b")), 2);
    fixture_finish(&f, block_of(SLICE_LIT("+1:c!0:+1:d")));
    size_t count;
    struct content *c = begin(&f, &roomy);
    (void)content_overlay_runs(c, &count);
    assert_int_equal(count, 0);
    (void)content_base_run(c, &count);
    assert_int_equal(count, 0);
    content_fold_log(c, f.head->log);
    assert_range(&f, 0, UINT64_MAX);
    fixture_fini(&f);
}

static void test_a_range_that_is_complete_asks_for_no_more_sublists(void **state)
{
    (void)state;
    struct fixture f;
    struct content *c = prepare_run(&f, "+1:a+1:b+1:c+1:d", 2);
    c->output.to = 1;
    assert_false(output_satisfied(&c->output));
    assert_false(content_base_visit(c, f.runs[0].sublists[0]));
    assert_true(output_satisfied(&c->output));
    assert_chain_is(&f.out, SLICE_LIT("a,b"));
    fixture_fini(&f);
}

/* From the last sublist on, of a list without newer runs or a log, and without a pass before. */
static void test_the_newest_items_of_a_run_ask_for_its_last_sublist_alone(void **state)
{
    (void)state;
    struct fixture f;
    struct content *c = prepare_run(&f, "+1:a+1:b+1:c+1:d", 2);
    assert_false(content_needs_places(c));
    c->output.to = 1;
    c->backwards = true;
    content_rest(c);
    assert_false(output_satisfied(&c->output));
    assert_false(content_base_visit(c, f.runs[0].sublists[1]));
    assert_chain_is(&f.out, SLICE_LIT("d,c"));
    fixture_fini(&f);
}

static void test_an_answer_from_the_newest_ends_at_its_limit(void **state)
{
    (void)state;
    struct fixture f;
    struct content *c = prepare_run(&f, "+1:a+1:b+1:c+1:d+1:e+1:f", 6);
    c->output.limit_bytes = 4;
    c->backwards = true;
    assert_false(content_base_visit(c, f.runs[0].sublists[0]));
    assert_true(c->output.too_large);
    assert_chain_is(&f.out, SLICE_LIT("f,e,d")); /* one item more, and no other */
    fixture_fini(&f);
}

/* No proxy writes one, but what the backend holds must not bring us down. */
static void test_sublists_without_items_add_nothing(void **state)
{
    (void)state;
    static const char *const logs[] = {"", "-1:x"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = {.run_count = 0};
        fixture_add_run(&f, block_of(SLICE_LIT("+1:a+1:b+1:c")), 1);
        fixture_finish(&f, block_of(slice_of(logs[i])));
        f.model.count = 2;
        f.model.items[1] = SLICE_LIT("c");
        sublist_unref(&f.runs[0].sublists[1]);
        f.runs[0].sublists[1] = decode_exact(SLICE_LIT("^1 0000000000\n"), ',');
        assert_non_null(f.runs[0].sublists[1]);
        prepare(&f, &roomy);
        assert_range(&f, 0, UINT64_MAX);
        assert_range(&f, 1, 1);
        fixture_fini(&f);
    }
}

static void test_an_overlay_beyond_its_memory_stops_the_reading(void **state)
{
    (void)state;
    struct fixture f = {.run_count = 0};
    fixture_add_run(&f, block_of(SLICE_LIT("+1:a")), 1);
    fixture_add_run(&f, block_of(SLICE_LIT("+1:b+1:c")), 1);
    fixture_finish(&f, block_of(SLICE_NONE));
    struct list_policy policy = roomy;
    policy.fold_memory_bytes = 100;
    struct content *c = begin(&f, &policy);
    assert_false(content_fold_visit(c, f.runs[1].sublists[0]));
    assert_true(c->too_large);
    end(&f);
    policy.fold_memory_bytes = 1 << 20;
    begin(&f, &policy);
    assert_true(content_fold_visit(c, f.runs[1].sublists[0]));
    assert_false(c->too_large);
    fixture_fini(&f);
}

/* A long sublist is folded in parts, so that others have their turn in between. */
static void test_a_long_sublist_is_folded_in_parts(void **state)
{
    (void)state;
    enum { COUNT = 2 * VISIT_PART_ITEMS + 1 };
    struct fixture f = {.run_count = 0};
    struct block *entries = block_new(64);
    for (int i = 0; i < COUNT; i++) {
        char item[16];
        (void)snprintf(item, sizeof item, "item-%d", i);
        entry_append(&entries, ENTRY_ADD, slice_of(item));
    }
    fixture_add_run(&f, block_of(SLICE_LIT("+1:a")), 1);
    fixture_add_run(&f, entries, COUNT);
    fixture_finish(&f, block_of(SLICE_NONE));
    struct content *c = begin(&f, &roomy);
    for (int part = 1; part <= 2; part++) {
        assert_int_equal(content_fold_visit(c, f.runs[1].sublists[0]), VISITED_PART);
        assert_int_equal(c->overlay.count, part * VISIT_PART_ITEMS);
    }
    assert_int_equal(content_fold_visit(c, f.runs[1].sublists[0]), VISITED_WHOLE);
    assert_int_equal(c->overlay.count, COUNT);
    /* The next one begins at its front. */
    assert_int_equal(content_fold_visit(c, f.runs[0].sublists[0]), VISITED_WHOLE);
    assert_int_equal(c->overlay.count, COUNT + 1);
    fixture_fini(&f);
}

static void test_an_answer_beyond_its_limit_is_noticed(void **state)
{
    (void)state;
    struct fixture f = {.run_count = 0};
    fixture_add_run(&f, block_of(SLICE_LIT("+4:aaaa+4:bbbb+4:cccc")), 1);
    fixture_finish(&f, block_of(SLICE_LIT("+4:dddd+4:eeee")));
    struct list_policy policy = roomy;
    for (uint64_t limit = 1; limit < 30; limit++) {
        policy.max_answer_bytes = limit;
        struct content *c = prepare(&f, &policy);
        pass(&f);
        assert_int_equal(c->output.too_large, limit < 24);
        if (limit < 24) {
            assert_true(output_satisfied(&c->output));
            assert_true(f.out.bytes <= limit + 5);
        }
        end(&f);
    }
    fixture_fini_list(&f);
}

static void test_long_texts_are_passed_on_without_a_copy(void **state)
{
    (void)state;
    struct fixture f = {.run_count = 0};
    struct block *entries = block_new(1);
    for (unsigned i = 20; i < 220; i++) {
        entry_append(&entries, ENTRY_ADD, test_item(i));
    }
    fixture_add_run(&f, entries, 1000);
    fixture_finish(&f, block_of(SLICE_NONE));
    prepare(&f, &roomy);
    pass(&f);
    struct iovec iov[2];
    assert_int_equal(chain_iov(&f.out, iov, 2), 1);
    assert_ptr_equal(iov[0].iov_base, f.runs[0].sublists[0]->text->data);
    content_fini(&f.c);
    fixture_fini_list(&f);
    assert_memory_equal(iov[0].iov_base, "user-20,user-21,", 16);
    chain_fini(&f.out);
}

/* Items of a log go out in pieces that fit the blocks of the answer, one longer than the rest. */
static void test_items_of_a_log_fill_the_blocks_of_the_answer(void **state)
{
    (void)state;
    enum { ITEMS = 9000 };
    static char expected[ITEMS * 32], long_item[BLOCK_BYTES + 100];
    struct block *entries = block_new(ITEMS * 32);
    size_t len = 0;
    memset(long_item, 'x', sizeof long_item);
    for (int i = 0; i < ITEMS; i++) {
        char item[16];
        int item_len = snprintf(item, sizeof item, "%d", i * i % 99991);
        bool is_long = i == ITEMS / 2;
        entry_append(&entries, ENTRY_ADD,
                     is_long ? slice_make(long_item, sizeof long_item)
                             : slice_make(item, (size_t)item_len));
    }
    struct fold fold;
    struct slice item;
    fold_init(&fold);
    assert_true(fold_apply_held(&fold, block_slice(entries)));
    for (uint32_t at = 0; fold_next_item(&fold, ENTRY_NEVER_OVER, &at, &item);) {
        len += (size_t)snprintf(expected + len, sizeof expected - len, "%s%.*s",
                                len == 0 ? "" : ",", SLICE_ARGS(item));
    }
    for (unsigned over = 0; over < 2; over++) {
        struct chain out;
        chain_init(&out);
        struct output output = {
            .to = UINT64_MAX, .out = &out, .delimiter = ',', .limit_bytes = len - over};
        output_fold(&output, &fold, ENTRY_NEVER_OVER, false);
        assert_int_equal(output.too_large, over == 1);
        assert_int_equal(output.written, fold.count);
        assert_int_equal(output.position, fold.count);
        struct iovec iov[16];
        size_t at = 0, pieces = chain_iov(&out, iov, sizeof iov / sizeof iov[0]);
        for (size_t i = 0; i < pieces; at += iov[i++].iov_len) {
            assert_memory_equal(iov[i].iov_base, expected + at, iov[i].iov_len);
        }
        assert_int_equal(at, len);
        chain_fini(&out);
    }
    fold_fini(&fold);
    block_unref(&entries);
}

/* A read that lost its connection begins anew. */
static void test_another_pass_gathers_anew(void **state)
{
    (void)state;
    struct gather gather;
    gather_init(&gather, 1 << 20);
    struct output output = {.to = UINT64_MAX, .gather = &gather};
    output_item(&output, SLICE_LIT("a"));
    output_rewind(&output);
    output_item(&output, SLICE_LIT("a"));
    assert_int_equal(gather.count, 1);
    gather_fini(&gather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_pass_gathers_anew),
        cmocka_unit_test(test_items_of_a_log_fill_the_blocks_of_the_answer),
        cmocka_unit_test(test_random_lists_are_streamed_as_the_model_has_them),
        cmocka_unit_test(test_a_count_known_without_a_pass_is_right),
        cmocka_unit_test(test_every_range_of_a_small_list_is_right),
        cmocka_unit_test(test_a_cleared_list_needs_no_run),
        cmocka_unit_test(test_a_range_that_is_complete_asks_for_no_more_sublists),
        cmocka_unit_test(test_the_newest_items_of_a_run_ask_for_its_last_sublist_alone),
        cmocka_unit_test(test_an_answer_from_the_newest_ends_at_its_limit),
        cmocka_unit_test(test_sublists_without_items_add_nothing),
        cmocka_unit_test(test_an_overlay_beyond_its_memory_stops_the_reading),
        cmocka_unit_test(test_a_long_sublist_is_folded_in_parts),
        cmocka_unit_test(test_an_answer_beyond_its_limit_is_noticed),
        cmocka_unit_test(test_long_texts_are_passed_on_without_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
