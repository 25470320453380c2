/* SPDX-License-Identifier: BSD-3-Clause */
#include "support_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct slice test_item(unsigned n)
{
    static const struct slice odd[] = {
        {"", 0},
        {"+1:a", 4},
        {"\0\0", 2},
        {"-", 1},
        {"\r\n", 2},
        {"^1\n", 3},
        {"\xff\xfe,\x00", 4},
        {" ", 1},
        {"!0:", 3},
        {"1234567", 7},
        {"12345678", 8},
        {"123456789abcdef0", 16},
        {"\0", 1},
        {"~3:abc", 6},
        {"=", 1},
        {"123456789abcdef01", 17},
    };
    static char names[ITEMS_MAX][16];
    assert_true(n < ITEMS_MAX);
    if (n < sizeof odd / sizeof odd[0]) {
        return odd[n];
    }
    snprintf(names[n], sizeof names[n], "user-%u", n);
    return slice_of(names[n]);
}

static size_t find(const struct model *m, struct slice item)
{
    size_t i = 0;
    while (i < m->count && !slice_equal(m->items[i], item)) {
        i++;
    }
    return i;
}

bool model_has(const struct model *m, struct slice item)
{
    return find(m, item) < m->count;
}

void model_apply(struct model *m, char op, struct slice item)
{
    size_t at = find(m, item);
    if (op == '!') {
        m->count = 0;
        return;
    }
    if ((op == '-' || op == '=') && at < m->count) {
        m->count--;
        memmove(&m->items[at], &m->items[at + 1], (m->count - at) * sizeof m->items[0]);
    }
    if ((op == '+' || op == '=') && !model_has(m, item)) {
        assert_true(m->count < ITEMS_MAX);
        m->items[m->count++] = item;
    }
}

void model_replay(struct model *m, struct slice entries)
{
    struct entry entry;
    enum entry_status status;
    while ((status = entry_next(&entries, &entry)) == ENTRY_OK) {
        if (entry.op != ENTRY_ANNOUNCE) {
            model_apply(m, entry.op, entry.bytes);
        }
    }
    assert_int_equal(status, ENTRY_END);
}

void assert_same_model(const struct model *a, const struct model *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->items[i].len, b->items[i].len);
        assert_true(slice_equal(a->items[i], b->items[i]));
    }
}

static void append_announcement(struct block **b, struct rng *rng)
{
    struct announcement a = {.created_s = (int64_t)rng_below(rng, 2000)};
    a.range.name = test_name((char)('a' + rng_below(rng, 4)));
    a.range.count = (uint32_t)rng_below(rng, 3);
    announcement_append(b, &a);
}

struct block *random_log(struct rng *rng, const struct log_shape *shape)
{
    struct block *b = block_new(64);
    for (unsigned i = 0; i < shape->entries; i++) {
        if (shape->announcements && rng_below(rng, 8) == 0) {
            append_announcement(&b, rng);
        }
        if (shape->clear_in > 0 && rng_below(rng, shape->clear_in) == 0) {
            entry_append(&b, ENTRY_CLEAR, SLICE_NONE);
            continue;
        }
        static const char ops[] = {ENTRY_ADD, ENTRY_ADD, ENTRY_DEL, ENTRY_READD};
        char op = ops[rng_below(rng, shape->readd ? 4 : 3)];
        entry_append(&b, (enum entry_op)op, test_item((unsigned)rng_below(rng, shape->items)));
    }
    return b;
}

struct block *block_of(struct slice bytes)
{
    struct block *b = block_new_exact(bytes.len);
    block_append(&b, bytes.p, bytes.len);
    return b;
}

static void append_rest(struct block **b, const struct fold *fold, bool oldest)
{
    uint32_t at = 0;
    struct entry entry;
    while (fold_next_entry(fold, oldest, ENTRY_NEVER_OVER, &at, &entry)) {
        entry_put(b, &entry);
    }
}

struct block *fold_entries(struct slice log, bool oldest, bool *cleared)
{
    struct fold fold;
    fold_init(&fold);
    bool whole = fold_apply_entries(&fold, log);
    assert_true(whole);
    struct block *b = block_new(64);
    append_rest(&b, &fold, oldest || fold.cleared);
    if (cleared != NULL) {
        *cleared = fold.cleared;
    }
    fold_fini(&fold);
    return b;
}

struct block *merge_entries(struct slice base, struct slice newer, bool oldest)
{
    struct fold fold;
    fold_init(&fold);
    bool whole = fold_apply_entries(&fold, newer);
    assert_true(whole);
    oldest = oldest || fold.cleared;
    struct block *b = block_new(64);
    struct entry entry;
    while (entry_next(&base, &entry) == ENTRY_OK) {
        char op = fold_over(&fold, entry.op, entry.bytes);
        if (op != 0 && !(oldest && op == ENTRY_DEL)) {
            entry_append(&b, oldest ? ENTRY_ADD : (enum entry_op)op, entry.bytes);
        }
    }
    append_rest(&b, &fold, oldest);
    fold_fini(&fold);
    return b;
}

static void add_sublist(struct test_run *run, struct block **b, uint32_t count, int delimiter)
{
    sublist_finish(*b, count);
    uint32_t n = run->run.range.count++;
    run->sublists = realloc(run->sublists, run->run.range.count * sizeof *run->sublists);
    assert_non_null(run->sublists);
    run->sublists[n] = sublist_decode(block_slice(*b), delimiter);
    assert_non_null(run->sublists[n]);
    run->run.bytes += (*b)->used;
    block_unref(b);
}

void test_run_init(struct test_run *run, struct slice entries, uint32_t per_sublist, int delimiter)
{
    *run = (struct test_run){0};
    run->run.range.name = test_name('a');
    struct block *b = NULL;
    uint32_t count = 0;
    struct entry entry;
    while (entry_next(&entries, &entry) == ENTRY_OK) {
        if (b == NULL) {
            b = sublist_begin(64);
        }
        entry_append(&b, (enum entry_op)entry.op, entry.bytes);
        run->run.items += entry.op != ENTRY_DEL;
        if (++count == per_sublist) {
            add_sublist(run, &b, count, delimiter);
            count = 0;
        }
    }
    if (b != NULL) {
        add_sublist(run, &b, count, delimiter);
    }
}

void test_run_fini(struct test_run *run)
{
    for (uint32_t i = 0; i < run->run.range.count; i++) {
        sublist_unref(&run->sublists[i]);
    }
    free(run->sublists);
    *run = (struct test_run){0};
}

struct name test_name(char letter)
{
    struct name name;
    memset(name.text, letter, sizeof name.text);
    return name;
}

struct head *head_of(struct slice value)
{
    return head_of_list(SLICE_LIT("list"), value);
}

struct head *head_of_list(struct slice key, struct slice bytes)
{
    struct block *block = block_of(bytes);
    struct be_reply reply = {
        .status = BE_HIT,
        .ttl_s = -1,
        .cas = 7,
        .epoch = 3,
        .flags = 5,
        .size_bytes = bytes.len,
        .value = block_slice(block),
        .block = block,
    };
    struct head *head = NULL;
    if (head_read(&reply, key, &head) == HEAD_FOREIGN) {
        assert_null(head);
    }
    block_unref(&block);
    return head;
}

struct head *head_with(const struct run *runs, size_t run_count, struct slice log)
{
    struct block *b = block_new(64);
    head_append_header(&b, NULL, runs, run_count, NULL, 0);
    block_append(&b, log.p, log.len);
    struct head *head = head_of(block_slice(b));
    block_unref(&b);
    assert_non_null(head);
    return head;
}

struct sublist *decode_exact(struct slice bytes, int delimiter)
{
    struct block *block = block_of(bytes);
    struct sublist *sublist = sublist_decode(block_slice(block), delimiter);
    block_unref(&block);
    return sublist;
}
