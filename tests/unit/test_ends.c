/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support_life.h"

/* A list's life, and what a worker remembers of its ends. */
struct queue {
    struct life life;
    struct ends ends;
    uint64_t visits; /* sublists that a walk has opened */
};

static void show(const struct queue *q, const struct run *runs, size_t count, bool *more,
                 enum visited (*visit)(void *, struct sublist *), struct walk *w)
{
    for (size_t i = count; i-- > 0 && *more;) {
        const struct test_run *run = &q->life.runs[&runs[i] - w->head->runs];
        for (uint32_t n = 0; n < run->run.range.count && *more; n++) {
            *more = visit(w, run->sublists[n]);
        }
    }
}

/* All that an lpop does but the write. */
static void walk(struct queue *q, struct walk *w)
{
    while (walk_next(w)) {
        if (!w->in_log) {
            q->visits++;
            (void)walk_open(w, q->life.runs[w->run].sublists[walk_number(w)]);
        }
        while (walk_gather(w)) {
            size_t count;
            bool more = true;
            const struct run *runs = walk_newer(w, &count);
            show(q, runs, count, &more, walk_kill, w);
            runs = walk_older(w, &count);
            more = true;
            show(q, runs, count, &more, walk_seek, w);
            walk_decide(w);
        }
    }
}

static void assert_ends(struct queue *q, struct walk *w, const struct head *head, bool back,
                        uint64_t wanted)
{
    const struct model *m = &q->life.model;
    walk_begin(w, &q->ends, head, back, wanted, UINT64_MAX);
    walk(q, w);
    assert_int_equal(w->count, wanted < m->count ? wanted : m->count);
    for (size_t i = 0; i < w->count; i++) {
        struct slice expected = m->items[back ? m->count - 1 - i : i];
        assert_true(slice_equal(w->items[i], expected));
    }
    assert_true(w->exhausted || w->count == wanted);
    assert_false(w->exhausted && w->count == wanted && wanted < m->count);
}

static void begin(struct queue *q, uint64_t seed)
{
    *q = (struct queue){0};
    life_init(&q->life, seed);
    ends_init(&q->ends);
}

static void end(struct queue *q)
{
    ends_fini(&q->ends);
    life_fini(&q->life);
}

static void take_off(struct queue *q, const struct walk *w)
{
    struct block *piece = block_new(64);
    for (size_t i = 0; i < w->count; i++) {
        entry_append(&piece, ENTRY_DEL, w->items[i]);
    }
    life_append_piece(&q->life, piece);
}

/* Now and then what was found is taken off, now and then another writer was faster. */
static void test_the_ends_of_every_head_of_a_random_life(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct queue q;
        struct life *l = &q.life;
        begin(&q, seed);
        for (int step = 0; step < 40 && l->piece_count + 3 < PIECES_MAX; step++) {
            struct walk w = {0};
            life_go(l);
            struct head *head = life_head(l);
            bool back = rng_below(&l->rng, 2) == 0;
            assert_ends(&q, &w, head, back, 1 + rng_below(&l->rng, rng_below(&l->rng, 2) ? 3 : 60));
            if (rng_below(&l->rng, 2) == 0) {
                take_off(&q, &w);
            }
            walk_fini(&w);
            head_unref(&head);
        }
        end(&q);
    }
}

/* Of a queue of many sublists, of which most items were taken: the next item costs one sublist, how
 * many were taken before notwithstanding. */
static void test_what_was_taken_is_not_gone_through_again(void **state)
{
    (void)state;
    struct queue q;
    struct life *l = &q.life;
    begin(&q, 1);
    struct block *piece = block_new(64);
    for (unsigned n = 1; n < ITEMS_MAX; n++) {
        entry_append(&piece, ENTRY_ADD, test_item(n));
    }
    life_append_piece(l, piece);
    life_flip(l);
    for (int round = 0; round < 20; round++) {
        struct walk w = {0};
        struct head *head = life_head(l);
        assert_ends(&q, &w, head, false, 10);
        take_off(&q, &w);
        walk_fini(&w);
        head_unref(&head);
        if (round % 5 == 4 && l->run_count < RUNS_MAX) {
            life_flip(l);
        }
    }
    struct walk w = {0};
    struct head *head = life_head(l);
    q.visits = 0;
    assert_ends(&q, &w, head, false, 1);
    assert_true(l->runs[0].run.range.count > 3);
    assert_in_range(q.visits, 1, 2);
    walk_fini(&w);
    head_unref(&head);
    end(&q);
}

/* Behind another connection the list may be an older one: what was void there lives here. */
static void test_another_connection_is_another_history(void **state)
{
    (void)state;
    struct queue q;
    struct life *l = &q.life;
    struct walk w = {0};
    begin(&q, 1);
    life_append_text(l, "+1:a+1:b+1:c");
    life_flip(l);
    struct head *old = life_head(l);
    struct model before = l->model;
    life_append_text(l, "-1:a");
    struct head *head = life_head(l);
    assert_ends(&q, &w, head, false, 1);
    old->epoch = head->epoch + 1;
    l->model = before;
    assert_ends(&q, &w, old, false, 2);
    walk_fini(&w);
    head_unref(&head);
    head_unref(&old);
    end(&q);
}

static void test_what_was_found_stays_within_its_bytes(void **state)
{
    (void)state;
    struct queue q;
    struct life *l = &q.life;
    struct walk w = {0};
    begin(&q, 1);
    life_append_text(l, "+1:a+1:b+1:c");
    struct head *head = life_head(l);
    for (uint64_t bytes = 1; bytes < 13; bytes++) { /* "-1:a" has four */
        walk_begin(&w, &q.ends, head, false, 9, bytes);
        walk(&q, &w);
        assert_int_equal(w.count, bytes < 8 ? 1 : bytes < 12 ? 2 : 3);
        assert_int_equal(w.exhausted, w.count == 3);
    }
    walk_fini(&w);
    head_unref(&head);
    end(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ends_of_every_head_of_a_random_life),
        cmocka_unit_test(test_what_was_taken_is_not_gone_through_again),
        cmocka_unit_test(test_another_connection_is_another_history),
        cmocka_unit_test(test_what_was_found_stays_within_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
