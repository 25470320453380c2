/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_memory.h"

#include "base/rng.h"

/* All bytes of the chain in one piece of memory, for the caller to free. */
static char *flatten(const struct chain *c)
{
    char *all = malloc(c->bytes + 1);
    struct iovec *iov = malloc((c->count + 1) * sizeof *iov);
    assert_true(all != NULL && iov != NULL);
    size_t n = chain_iov(c, iov, c->count + 1), at = 0;
    assert_int_equal(n, c->count);
    for (size_t i = 0; i < n; i++) {
        assert_true(iov[i].iov_len > 0);
        assert_true(at + iov[i].iov_len <= c->bytes);
        memcpy(all + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    assert_int_equal(at, c->bytes);
    free(iov);
    return all;
}

static void assert_holds(const struct chain *c, const char *p, size_t len)
{
    assert_int_equal(c->bytes, len);
    char *all = flatten(c);
    assert_memory_equal(all, p, len);
    free(all);
}

static void test_small_copies_share_one_piece(void **state)
{
    (void)state;
    struct chain c;
    chain_init(&c);
    chain_copy(&c, "ab", 2);
    chain_copy_slice(&c, SLICE_LIT("cd"));
    chain_copy(&c, "", 0);
    chain_copy(&c, "e", 1);
    assert_int_equal(c.count, 1);
    assert_holds(&c, "abcde", 5);
    chain_fini(&c);
}

/* From wherever they begin in a block, up to its end and into the next one. */
static void test_pieces_behind_a_byte_of_their_own(void **state)
{
    (void)state;
    enum { LEN = 2 * BLOCK_BYTES };
    static char bytes[LEN + 16];
    struct chain c;
    chain_init(&c);
    chain_copy_behind(&c, false, '?', SLICE_LIT("ab"));
    chain_copy_behind(&c, true, ',', SLICE_LIT("c"));
    assert_int_equal(c.count, 1);
    assert_holds(&c, "ab,c", 4);
    chain_clear(&c);
    size_t n = 0;
    for (unsigned i = 0; n < LEN; i++) {
        struct slice piece = slice_make("abcdefg", 1 + i % 7);
        chain_copy_behind(&c, i > 0, ',', piece);
        n += (size_t)snprintf(bytes + n, 16, "%s%.*s", i > 0 ? "," : "", SLICE_ARGS(piece));
    }
    assert_holds(&c, bytes, n);
    chain_fini(&c);
}

static void test_copies_larger_than_a_block_are_cut_into_several(void **state)
{
    (void)state;
    enum { LEN = 3 * BLOCK_BYTES + 100 };
    static char bytes[LEN];
    for (size_t i = 0; i < LEN; i++) {
        bytes[i] = (char)(i / 7);
    }
    struct chain c;
    chain_init(&c);
    chain_copy(&c, bytes, 10);
    chain_copy(&c, bytes + 10, LEN - 10);
    assert_in_range(c.count, 4, 5);
    assert_holds(&c, bytes, LEN);
    chain_fini(&c);
}

static void test_large_pieces_are_referred_to_and_small_ones_copied(void **state)
{
    (void)state;
    struct block *b = block_new(4000);
    memset(b->data, 'x', 4000);
    b->used = 4000;
    struct chain c;
    chain_init(&c);
    chain_add(&c, b, b->data, CHAIN_COPY_MAX);
    assert_int_equal(atomic_load(&b->refs), 1);
    chain_add(&c, b, b->data, CHAIN_COPY_MAX + 1);
    assert_int_equal(atomic_load(&b->refs), 2);
    struct block *mine = b;
    block_unref(&b);
    assert_int_equal(c.bytes, 2 * CHAIN_COPY_MAX + 1);
    struct iovec iov[3];
    assert_int_equal(chain_iov(&c, iov, 3), 2);
    assert_ptr_equal(iov[1].iov_base, mine->data);
    assert_int_equal(atomic_load(&mine->refs), 1);
    chain_fini(&c);
}

static void test_only_as_many_pieces_as_asked_for_are_given(void **state)
{
    (void)state;
    struct block *b = block_new(4000);
    b->used = 4000;
    struct chain c;
    chain_init(&c);
    struct iovec iov[4];
    assert_int_equal(chain_iov(&c, iov, 4), 0);
    for (int i = 0; i < 4; i++) {
        chain_add(&c, b, b->data, 2000);
    }
    assert_int_equal(chain_iov(&c, iov, 2), 2);
    assert_int_equal(chain_iov(&c, iov, 0), 0);
    chain_fini(&c);
    assert_int_equal(atomic_load(&b->refs), 1);
    block_unref(&b);
}

static void test_consuming_goes_across_pieces_and_drops_their_blocks(void **state)
{
    (void)state;
    struct block *b = block_new(4000);
    for (int i = 0; i < 4000; i++) {
        b->data[i] = (char)(i * 3);
    }
    b->used = 4000;
    struct chain c;
    chain_init(&c);
    chain_add(&c, b, b->data, 2000);
    chain_add(&c, b, b->data + 2000, 2000);
    chain_consume(&c, 0);
    chain_consume(&c, 1);
    assert_holds(&c, b->data + 1, 3999);
    chain_consume(&c, 1999);
    assert_int_equal(c.count, 1);
    assert_int_equal(atomic_load(&b->refs), 2);
    chain_add(&c, b, b->data, 1500);
    chain_consume(&c, 2100);
    assert_holds(&c, b->data + 100, 1400);
    chain_consume(&c, 1400);
    assert_int_equal(c.bytes, 0);
    assert_int_equal(c.count, 0);
    assert_int_equal(atomic_load(&b->refs), 1);
    chain_copy(&c, "on", 2);
    assert_holds(&c, "on", 2);
    chain_fini(&c);
    block_unref(&b);
}

static void test_reserved_room_counts_only_as_far_as_it_is_committed(void **state)
{
    (void)state;
    struct chain c;
    chain_init(&c);
    memcpy(chain_reserve(&c, 10), "abcdefghij", 10);
    chain_commit(&c, 0);
    assert_int_equal(c.bytes, 0);
    assert_int_equal(c.count, 0);
    memcpy(chain_reserve(&c, 10), "abcdefghij", 10);
    chain_commit(&c, 3);
    memcpy(chain_reserve(&c, 10), "defghijklm", 10);
    chain_commit(&c, 10);
    assert_holds(&c, "abcdefghijklm", 13);
    memset(chain_reserve(&c, BLOCK_BYTES), 'z', BLOCK_BYTES);
    chain_commit(&c, BLOCK_BYTES);
    assert_int_equal(c.bytes, 13 + BLOCK_BYTES);
    chain_fini(&c);
}

static void test_moving_takes_everything_and_leaves_nothing(void **state)
{
    (void)state;
    struct block *b = block_new(4000);
    memset(b->data, 'b', 4000);
    b->used = 4000;
    struct chain from, to;
    chain_init(&from);
    chain_init(&to);
    chain_copy(&to, "to:", 3);
    chain_copy(&from, "from:", 5);
    chain_add(&from, b, b->data, 4000);
    chain_copy(&from, "end", 3);
    chain_move(&to, &from);
    assert_int_equal(from.bytes, 0);
    assert_int_equal(from.count, 0);
    assert_int_equal(atomic_load(&b->refs), 2);
    assert_int_equal(to.bytes, 4011);
    char *all = flatten(&to);
    assert_memory_equal(all, "to:from:b", 9);
    assert_memory_equal(all + 4007, "bend", 4);
    free(all);
    chain_copy(&from, "again", 5);
    assert_holds(&from, "again", 5);
    chain_move(&to, &from);
    chain_move(&to, &from);
    assert_int_equal(to.bytes, 4016);
    chain_fini(&from);
    chain_fini(&to);
    assert_int_equal(atomic_load(&b->refs), 1);
    block_unref(&b);
}

static void test_clearing_drops_references_and_large_arrays(void **state)
{
    (void)state;
    struct block *b = block_new(4000);
    b->used = 4000;
    struct chain c;
    chain_init(&c);
    for (int i = 0; i < 1000; i++) {
        chain_add(&c, b, b->data, 4000);
    }
    chain_clear(&c);
    assert_int_equal(c.bytes, 0);
    assert_int_equal(atomic_load(&b->refs), 1);
    assert_true(c.cap <= 64);
    chain_copy(&c, "x", 1);
    assert_holds(&c, "x", 1);
    chain_fini(&c);
    block_unref(&b);
}

/* What the chains of the random test hold, byte for byte. */
struct shadow {
    struct chain chain;
    char *bytes;
    size_t from, to;
};

#define SHADOW_BYTES ((size_t)8000000)

static void shadow_append(struct shadow *s, const char *p, size_t len)
{
    if (s->to + len > SHADOW_BYTES) {
        memmove(s->bytes, s->bytes + s->from, s->to - s->from);
        s->to -= s->from;
        s->from = 0;
    }
    assert_true(s->to + len <= SHADOW_BYTES);
    memcpy(s->bytes + s->to, p, len);
    s->to += len;
}

static void random_step(struct rng *rng, struct shadow *s, struct shadow *other, struct block *b)
{
    size_t max = rng_below(rng, 4) == 0 ? 30000 : 1500;
    size_t len = (size_t)rng_below(rng, max);
    const char *p = b->data + rng_below(rng, b->used - len);
    switch (rng_below(rng, 6)) {
    case 0:
        chain_copy(&s->chain, p, len);
        shadow_append(s, p, len);
        break;
    case 1:
        chain_add(&s->chain, b, p, len);
        shadow_append(s, p, len);
        break;
    case 2:
        len = len > BLOCK_BYTES ? BLOCK_BYTES : len;
        memcpy(chain_reserve(&s->chain, len), p, len);
        len = (size_t)rng_below(rng, len + 1);
        chain_commit(&s->chain, len);
        shadow_append(s, p, len);
        break;
    case 3:
        chain_move(&s->chain, &other->chain);
        shadow_append(s, other->bytes + other->from, other->to - other->from);
        other->from = other->to;
        break;
    default:
        len = (size_t)rng_below(rng, 4 * len + 1);
        len = len > s->chain.bytes ? s->chain.bytes : len;
        chain_consume(&s->chain, len);
        s->from += len;
        break;
    }
}

static void test_random_use_keeps_every_byte_in_order(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 5);
    struct block *b = block_new(70000);
    for (b->used = 0; b->used < 70000; b->used++) {
        b->data[b->used] = (char)rng_next(&rng);
    }
    struct shadow shadows[2];
    for (int i = 0; i < 2; i++) {
        shadows[i] = (struct shadow){.bytes = malloc(SHADOW_BYTES)};
        assert_non_null(shadows[i].bytes);
        chain_init(&shadows[i].chain);
    }
    for (int step = 0; step < 4000; step++) {
        unsigned which = (unsigned)rng_below(&rng, 2);
        random_step(&rng, &shadows[which], &shadows[1 - which], b);
        struct shadow *s = &shadows[which];
        assert_holds(&s->chain, s->bytes + s->from, s->to - s->from);
    }
    for (int i = 0; i < 2; i++) {
        chain_fini(&shadows[i].chain);
        free(shadows[i].bytes);
    }
    assert_int_equal(atomic_load(&b->refs), 1);
    block_unref(&b);
}

/* Few bytes take few; more go on in ordinary blocks, in their order. */
static void test_a_chain_that_begins_small(void **state)
{
    static char bytes[3 * BLOCK_BYTES];
    struct chain c;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 7);
    }
    chain_init(&c);
    chain_begin_small(&c);
    chain_copy(&c, bytes, 100);
    assert_true(c.tail->cap < BLOCK_BYTES / 16);
    chain_begin_small(&c);
    chain_copy(&c, bytes + 100, sizeof bytes - 100);
    assert_int_equal(c.bytes, sizeof bytes);
    size_t at = 0;
    for (size_t i = 0; i < c.count; i++) {
        const struct chain_seg *seg = &c.segs[c.first + i];
        assert_memory_equal(seg->p, bytes + at, seg->len);
        at += seg->len;
    }
    assert_int_equal(at, sizeof bytes);
    chain_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_copies_share_one_piece),
        cmocka_unit_test(test_pieces_behind_a_byte_of_their_own),
        cmocka_unit_test(test_copies_larger_than_a_block_are_cut_into_several),
        cmocka_unit_test(test_large_pieces_are_referred_to_and_small_ones_copied),
        cmocka_unit_test(test_only_as_many_pieces_as_asked_for_are_given),
        cmocka_unit_test(test_consuming_goes_across_pieces_and_drops_their_blocks),
        cmocka_unit_test(test_reserved_room_counts_only_as_far_as_it_is_committed),
        cmocka_unit_test(test_moving_takes_everything_and_leaves_nothing),
        cmocka_unit_test(test_clearing_drops_references_and_large_arrays),
        cmocka_unit_test(test_random_use_keeps_every_byte_in_order),
        cmocka_unit_test(test_a_chain_that_begins_small),
    };
    return cmocka_run_group_tests(tests, NULL, give_back_blocks);
}
