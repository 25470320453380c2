/* SPDX-License-Identifier: BSD-3-Clause */
#include "memo.h"

#include <stdlib.h>
#include <string.h>

#include "records.h"

void memo_init(struct memo *m, uint32_t words)
{
    *m = (struct memo){.slot_count = 1024, .words = words};
    m->slots = history_alloc(m->slot_count, sizeof *m->slots);
}

void memo_fini(struct memo *m)
{
    free(m->slots);
    free(m->sets);
    *m = (struct memo){0};
}

static struct memo_slot *find(const struct memo *m, struct hash128 key)
{
    uint32_t at = (uint32_t)key.a;
    for (;; at++) {
        struct memo_slot *slot = &m->slots[at & (m->slot_count - 1)];
        if (slot->head == 0 || hash128_equal(slot->key, key)) {
            return slot;
        }
    }
}

static void widen(struct memo *m)
{
    struct memo_slot *old = m->slots;
    uint32_t old_count = m->slot_count;
    m->slot_count *= 2;
    CHECK(m->slot_count > old_count);
    m->slots = history_alloc(m->slot_count, sizeof *m->slots);
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i].head != 0) {
            *find(m, old[i].key) = old[i];
        }
    }
    free(old);
}

static bool is_subset(const uint64_t *a, const uint64_t *b, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) {
        if ((a[i] & ~b[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool memo_has(const struct memo *m, struct hash128 key, const uint64_t *used)
{
    size_t stride = (size_t)m->words + 1;
    for (uint64_t i = find(m, key)->head; i != 0; i = m->sets[(i - 1) * stride]) {
        if (is_subset(&m->sets[(i - 1) * stride + 1], used, m->words)) {
            return true;
        }
    }
    return false;
}

void memo_add(struct memo *m, struct hash128 key, const uint64_t *used)
{
    size_t stride = (size_t)m->words + 1;
    struct memo_slot *slot = find(m, key);
    if (m->set_count == m->set_cap) {
        m->set_cap = m->set_cap == 0 ? 1024 : m->set_cap * 2;
        m->sets = realloc(m->sets, m->set_cap * stride * sizeof *m->sets);
        CHECK(m->sets != NULL && m->set_cap < UINT32_MAX);
    }
    uint64_t *set = &m->sets[m->set_count++ * stride];
    set[0] = slot->head;
    if (m->words > 0) {
        memcpy(set + 1, used, m->words * sizeof *used);
    }
    if (slot->head == 0) {
        slot->key = key;
        m->used_slots++;
    }
    slot->head = (uint32_t)m->set_count;
    if (m->used_slots * 2 > m->slot_count) {
        widen(m);
    }
}
