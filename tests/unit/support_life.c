/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_life.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void life_init(struct life *l, uint64_t seed)
{
    *l = (struct life){.next_name = 'a'};
    rng_init_seed(&l->rng, seed);
    l->shape = (struct log_shape){.items = 1 + (unsigned)rng_below(&l->rng, 80),
                                  .entries = 12,
                                  .clear_in = rng_below(&l->rng, 3) == 0 ? 40 : 0,
                                  .announcements = true};
    l->log = block_new(16);
}

void life_fini(struct life *l)
{
    for (size_t i = 0; i < l->run_count; i++) {
        test_run_fini(&l->runs[i]);
        block_unref(&l->entries[i]);
    }
    for (size_t i = 0; i < l->piece_count; i++) {
        block_unref(&l->pieces[i]);
    }
    block_unref(&l->log);
}

void life_append_piece(struct life *l, struct block *piece)
{
    assert_true(l->piece_count < PIECES_MAX);
    l->pieces[l->piece_count++] = piece;
    model_replay(&l->model, block_slice(piece));
    block_append(&l->log, piece->data, piece->used);
}

void life_append(struct life *l)
{
    life_append_piece(l, random_log(&l->rng, &l->shape));
}

void life_append_text(struct life *l, const char *entries)
{
    life_append_piece(l, block_of(slice_of(entries)));
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

void life_flip(struct life *l)
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

void life_merge(struct life *l)
{
    size_t at = rng_below(&l->rng, l->run_count - 1);
    struct block *run =
        merge_entries(block_slice(l->entries[at]), block_slice(l->entries[at + 1]), at == 0);
    remove_run(l, at + 1);
    remove_run(l, at);
    insert_run(l, at, run);
}

void life_go(struct life *l)
{
    uint64_t n = rng_below(&l->rng, 10);
    if (n < 7) {
        life_append(l);
    } else if (n < 9 && l->run_count < RUNS_MAX) {
        life_flip(l);
    } else if (l->run_count > 1) {
        life_merge(l);
    }
}

struct head *life_head(struct life *l)
{
    struct run runs[RUNS_MAX];
    for (size_t i = 0; i < l->run_count; i++) {
        runs[i] = l->runs[i].run;
    }
    struct head *head = head_with(runs, l->run_count, block_slice(l->log));
    head->cas = ++l->cas;
    return head;
}

struct block *life_joined(const struct life *l, uint64_t from, uint64_t to, bool back)
{
    const struct model *m = &l->model;
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

void assert_written_as(struct chain *out, const struct block *want)
{
    size_t at = 0;
    assert_int_equal(out->bytes, want->used);
    while (out->bytes > 0) {
        struct iovec iov;
        assert_int_equal(chain_iov(out, &iov, 1), 1);
        assert_memory_equal(iov.iov_base, want->data + at, iov.iov_len);
        at += iov.iov_len;
        chain_consume(out, iov.iov_len);
    }
}
