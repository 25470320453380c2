/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_list.h"

#define RUNS_MAX 12
#define PIECES_MAX 64

/* The life of a list: its runs and log now, what the model says of it, and the view that is carried
 * along. What was replayed stays in memory. */
struct life {
    struct rng rng;
    struct log_shape shape;
    struct test_run runs[RUNS_MAX];
    struct block *entries[RUNS_MAX]; /* of the runs */
    size_t run_count;
    char next_name;
    struct block *log;
    struct model model;
    struct view view;
    uint64_t cas;
    struct block *pieces[PIECES_MAX];
    size_t piece_count, flipped_count; /* flipped: the runs say what these say */
};

static void life_init(struct life *l, uint64_t seed)
{
    *l = (struct life){.next_name = 'a'};
    rng_init_seed(&l->rng, seed);
    l->shape = (struct log_shape){.items = 1 + (unsigned)rng_below(&l->rng, 80),
                                  .entries = 12,
                                  .clear_in = rng_below(&l->rng, 3) == 0 ? 40 : 0,
                                  .announcements = true};
    l->log = block_new(16);
    view_init(&l->view);
}

static void life_fini(struct life *l)
{
    view_fini(&l->view);
    for (size_t i = 0; i < l->run_count; i++) {
        test_run_fini(&l->runs[i]);
        block_unref(&l->entries[i]);
    }
    for (size_t i = 0; i < l->piece_count; i++) {
        block_unref(&l->pieces[i]);
    }
    block_unref(&l->log);
}

static void append_some(struct life *l)
{
    struct block *piece = random_log(&l->rng, &l->shape);
    assert_true(l->piece_count < PIECES_MAX);
    l->pieces[l->piece_count++] = piece;
    model_replay(&l->model, block_slice(piece));
    block_append(&l->log, piece->data, piece->used);
}

static void remove_run(struct life *l, size_t at)
{
    test_run_fini(&l->runs[at]);
    block_unref(&l->entries[at]);
    l->run_count--;
    for (size_t i = at; i < l->run_count; i++) {
        l->runs[i] = l->runs[i + 1];
        l->entries[i] = l->entries[i + 1];
    }
}

/* Puts a run of these entries, which are taken over, at that place; none when there are no entries.
 */
static void insert_run(struct life *l, size_t at, struct block *entries)
{
    if (entries->used == 0) {
        block_unref(&entries);
        return;
    }
    assert_true(l->run_count < RUNS_MAX);
    for (size_t i = l->run_count++; i > at; i--) {
        l->runs[i] = l->runs[i - 1];
        l->entries[i] = l->entries[i - 1];
    }
    l->entries[at] = entries;
    test_run_init(&l->runs[at], block_slice(entries), 1 + (uint32_t)rng_below(&l->rng, 9), ',');
    l->runs[at].run.range.name = test_name(l->next_name);
    l->next_name = l->next_name == 'z' ? 'a' : (char)(l->next_name + 1);
}

static void flip(struct life *l)
{
    bool cleared = false;
    struct block *run = fold_entries(block_slice(l->log), l->run_count == 0, &cleared);
    while (cleared && l->run_count > 0) {
        remove_run(l, l->run_count - 1);
    }
    insert_run(l, l->run_count, run);
    l->log->used = 0;
    l->flipped_count = l->piece_count;
}

static void merge(struct life *l)
{
    size_t at = rng_below(&l->rng, l->run_count - 1);
    struct block *run =
        merge_entries(block_slice(l->entries[at]), block_slice(l->entries[at + 1]), at == 0);
    remove_run(l, at + 1);
    remove_run(l, at);
    insert_run(l, at, run);
}

static struct head *life_head(struct life *l)
{
    struct run runs[RUNS_MAX];
    for (size_t i = 0; i < l->run_count; i++) {
        runs[i] = l->runs[i].run;
    }
    struct head *head = head_with(runs, l->run_count, block_slice(l->log));
    head->cas = ++l->cas;
    return head;
}

static void bring_up_to_date(struct life *l, const struct head *head)
{
    for (size_t i = view_keep(&l->view, head); i < l->run_count; i++) {
        for (uint32_t n = 0; n < l->runs[i].run.range.count; n++) {
            view_add_sublist(&l->view, &l->runs[i].run, i, l->runs[i].sublists[n]);
        }
    }
    view_take_log(&l->view, head);
}

static struct block *joined(const struct model *m, uint64_t from, uint64_t to, bool back)
{
    struct block *b = block_new(64);
    for (uint64_t at = from; at <= to && at < m->count; at++) {
        uint64_t i = back ? m->count - 1 - at : at;
        if (at > from) {
            block_append(&b, ",", 1);
        }
        block_append(&b, m->items[i].p, m->items[i].len);
    }
    return b;
}

static void assert_written(struct life *l, uint64_t from, uint64_t to, bool back)
{
    struct chain out;
    chain_init(&out);
    struct output output = {
        .from = from, .to = to, .out = &out, .delimiter = ',', .limit_bytes = UINT64_MAX};
    struct block *want = joined(&l->model, from, to, back);
    if (back) {
        view_write_back(&l->view, &output);
    } else {
        view_write(&l->view, &output);
    }
    assert_int_equal(out.bytes, want->used);
    size_t at = 0;
    while (out.bytes > 0) {
        struct iovec iov;
        assert_int_equal(chain_iov(&out, &iov, 1), 1);
        assert_memory_equal(iov.iov_base, want->data + at, iov.iov_len);
        at += iov.iov_len;
        chain_consume(&out, iov.iov_len);
    }
    block_unref(&want);
    chain_fini(&out);
}

static void assert_range(struct life *l, uint64_t from, uint64_t to)
{
    assert_written(l, from, to, false);
    assert_written(l, from, to, true);
}

static void assert_memberships(const struct life *l)
{
    for (unsigned n = 0; n < l->shape.items; n++) {
        assert_int_equal(view_has(&l->view, test_item(n)), model_has(&l->model, test_item(n)));
    }
}

/* What entries of a newer run would change: it takes the view's log away. */
static void assert_changes(struct life *l)
{
    struct model below = {.count = 0};
    for (size_t i = 0; i < l->flipped_count; i++) {
        model_replay(&below, block_slice(l->pieces[i]));
    }
    for (unsigned n = 0; n < l->shape.items; n++) {
        bool has = model_has(&below, test_item(n));
        assert_int_equal(view_changes(&l->view, ENTRY_ADD, test_item(n)), !has);
        assert_int_equal(view_changes(&l->view, ENTRY_DEL, test_item(n)), has);
        assert_true(view_changes(&l->view, ENTRY_READD, test_item(n)));
    }
}

static void assert_right(struct life *l)
{
    assert_memberships(l);
    assert_int_equal(view_count(&l->view), l->model.count);
    assert_memberships(l);
    assert_range(l, 0, UINT64_MAX);
    uint64_t from = rng_below(&l->rng, l->model.count + 2);
    assert_range(l, from, from + rng_below(&l->rng, 20));
}

static void live(struct life *l)
{
    for (int step = 0; step < 60; step++) {
        uint64_t n = rng_below(&l->rng, 10);
        if (n < 7) {
            append_some(l);
        } else if (n < 9 && l->run_count < RUNS_MAX) {
            flip(l);
        } else if (l->run_count > 1) {
            merge(l);
        }
        /* Not every head is read. */
        if (rng_below(&l->rng, 3) > 0) {
            struct head *head = life_head(l);
            bring_up_to_date(l, head);
            if (rng_below(&l->rng, 3) > 0) {
                assert_right(l);
            } else {
                assert_memberships(l);
                assert_changes(l);
            }
            head_unref(&head);
        }
    }
}

static void test_it_shows_every_head_of_a_random_life(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct life l;
        life_init(&l, seed);
        live(&l);
        life_fini(&l);
    }
}

/* Runs that were added while the log was hiding items: these come back before. */
static void test_a_flip_of_deletions(void **state)
{
    struct life l;
    (void)state;
    life_init(&l, 1);
    l.shape.items = 3;
    static const char *const logs[] = {"+3:one+3:two+5:three", "-3:two", "+3:two", "-3:one+3:one"};
    for (size_t i = 0; i < 4; i++) {
        struct block *piece = block_of(slice_of(logs[i]));
        l.pieces[l.piece_count++] = piece;
        model_replay(&l.model, block_slice(piece));
        block_append(&l.log, piece->data, piece->used);
        for (int flipped = 0; flipped < 2; flipped++) {
            struct head *head = life_head(&l);
            bring_up_to_date(&l, head);
            assert_int_equal(view_count(&l.view), l.model.count);
            assert_range(&l, 0, UINT64_MAX);
            head_unref(&head);
            if (flipped == 0) {
                flip(&l);
            }
        }
    }
    life_fini(&l);
}

static void test_memory_is_counted(void **state)
{
    struct life l;
    (void)state;
    life_init(&l, 5);
    append_some(&l);
    flip(&l);
    size_t before = view_memory_bytes(&l.view);
    struct head *head = life_head(&l);
    bring_up_to_date(&l, head);
    assert_true(view_memory_bytes(&l.view) >
                before + sublist_memory_bytes(l.runs[0].sublists[0]) - 1);
    head_unref(&head);
    view_clear(&l.view);
    assert_int_equal(view_memory_bytes(&l.view), before);
    life_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_shows_every_head_of_a_random_life),
        cmocka_unit_test(test_a_flip_of_deletions),
        cmocka_unit_test(test_memory_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
