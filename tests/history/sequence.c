/* SPDX-License-Identifier: BSD-3-Clause */
#include "sequence.h"

#include <stdlib.h>

#include "records.h"

static uint64_t scramble(uint64_t v)
{
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
}

struct hash128 hash128_of(uint64_t value)
{
    return (struct hash128){scramble(value + 0x9e3779b97f4a7c15u),
                            scramble(~value * 0xd6e8feb86659fd93u)};
}

static struct hash128 hash_of_pair(uint32_t before, uint32_t behind)
{
    return hash128_of((uint64_t)before << 32 | behind);
}

struct hash128 hash128_of_items(const uint32_t *items, uint32_t count)
{
    struct hash128 sum = {0, 0};
    uint32_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        hash128_add(&sum, hash_of_pair(before, items[i] + 1));
        before = items[i] + 1;
    }
    hash128_add(&sum, hash_of_pair(before, 0));
    return sum;
}

struct hash128 hash128_of_set(const uint32_t *items, uint32_t count)
{
    struct hash128 sum = {0, 0};
    for (uint32_t i = 0; i < count; i++) {
        hash128_add(&sum, hash128_of((uint64_t)items[i] + 1));
    }
    return sum;
}

void sequence_init(struct sequence *s, uint32_t item_max)
{
    *s = (struct sequence){
        .prev = history_alloc((size_t)item_max + 1, sizeof *s->prev),
        .next = history_alloc((size_t)item_max + 1, sizeof *s->next),
        .order = hash128_of_items(NULL, 0),
    };
    for (uint32_t i = 1; i <= item_max; i++) {
        s->next[i] = SEQUENCE_ABSENT;
    }
}

void sequence_fini(struct sequence *s)
{
    free(s->prev);
    free(s->next);
    *s = (struct sequence){0};
}

/* The item goes in between two neighbours, or leaves them. */
static void count_in(struct sequence *s, uint32_t before, uint32_t node, uint32_t behind)
{
    hash128_sub(&s->order, hash_of_pair(before, behind));
    hash128_add(&s->order, hash_of_pair(before, node));
    hash128_add(&s->order, hash_of_pair(node, behind));
    hash128_add(&s->set, hash128_of(node));
    s->count++;
}

static void count_out(struct sequence *s, uint32_t before, uint32_t node, uint32_t behind)
{
    hash128_add(&s->order, hash_of_pair(before, behind));
    hash128_sub(&s->order, hash_of_pair(before, node));
    hash128_sub(&s->order, hash_of_pair(node, behind));
    hash128_sub(&s->set, hash128_of(node));
    s->count--;
}

static void link_behind(struct sequence *s, uint32_t node, uint32_t before)
{
    uint32_t behind = s->next[before];
    CHECK_SLOW(s->next[node] == SEQUENCE_ABSENT);
    s->prev[node] = before;
    s->next[node] = behind;
    s->next[before] = node;
    s->prev[behind] = node;
    count_in(s, before, node, behind);
}

static void unlink_node(struct sequence *s, uint32_t node)
{
    uint32_t before = s->prev[node], behind = s->next[node];
    CHECK_SLOW(behind != SEQUENCE_ABSENT);
    s->next[before] = behind;
    s->prev[behind] = before;
    s->next[node] = SEQUENCE_ABSENT;
    count_out(s, before, node, behind);
}

void sequence_push(struct sequence *s, uint32_t item)
{
    link_behind(s, item + 1, s->prev[0]);
}

void sequence_pop(struct sequence *s)
{
    unlink_node(s, s->prev[0]);
}

void sequence_cut(struct sequence *s, uint32_t item, uint32_t *before)
{
    *before = s->prev[item + 1];
    unlink_node(s, item + 1);
}

void sequence_restore(struct sequence *s, uint32_t item, uint32_t before)
{
    link_behind(s, item + 1, before);
}

bool sequence_equals(const struct sequence *s, const uint32_t *items, uint32_t count)
{
    uint32_t node = s->next[0];
    for (uint32_t i = 0; i < count; i++) {
        if (node == 0 || node != items[i] + 1) {
            return false;
        }
        node = s->next[node];
    }
    return node == 0;
}

bool sequence_range_equals(const struct sequence *s, int64_t from, int64_t to,
                           const uint32_t *items, uint32_t count)
{
    int64_t n = s->count;
    from = from < 0 ? n + from : from;
    to = to < 0 ? n + to : to;
    from = from < 0 ? 0 : from;
    to = to >= n ? n - 1 : to;
    if (from > to) {
        return count == 0;
    }
    if (to - from + 1 != count) {
        return false;
    }
    uint32_t node;
    if (from <= n / 2) {
        node = s->next[0];
        for (int64_t i = 0; i < from; i++) {
            node = s->next[node];
        }
    } else {
        node = s->prev[0];
        for (int64_t i = n - 1; i > from; i--) {
            node = s->prev[node];
        }
    }
    for (uint32_t i = 0; i < count; i++, node = s->next[node]) {
        if (node != items[i] + 1) {
            return false;
        }
    }
    return true;
}
