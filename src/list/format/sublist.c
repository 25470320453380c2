/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/format/sublist.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

#define HEADER_MARK "^1 "

/* Splits the stored value's header off; false when it is not one. */
static bool take_header(struct slice *value, uint64_t *count)
{
    if (value->len < SUBLIST_HEADER_BYTES || !slice_starts_with(*value, SLICE_LIT(HEADER_MARK))) {
        return false;
    }
    struct slice header = slice_take(value, SUBLIST_HEADER_BYTES);
    (void)slice_take(&header, sizeof HEADER_MARK - 1);
    return header.p[header.len - 1] == '\n' &&
           slice_to_u64(slice_make(header.p, header.len - 1), count);
}

static void set_until(struct sublist *s, uint32_t i, uint32_t until_s)
{
    if (s->until_s == NULL) {
        s->until_s = calloc(s->count, sizeof *s->until_s);
        CHECK(s->until_s != NULL);
    }
    s->until_s[i] = until_s;
    s->earliest_s = until_s < s->earliest_s ? until_s : s->earliest_s;
}

static bool fill(struct sublist *s, struct slice entries, int delimiter)
{
    struct entry entry;
    enum entry_status status;
    char *text = s->text->data;
    uint32_t at = 0, i = 0;
    s->all_add = s->all_in = true;
    s->earliest_s = ENTRY_UNTIL_MAX_S;
    s->until_s = NULL;
    while ((status = entry_next(&entries, &entry)) == ENTRY_OK) {
        if (i == s->count || (entry.op != ENTRY_ADD && entry.op != ENTRY_DEL &&
                              entry.op != ENTRY_READD && entry.op != ENTRY_TIMED)) {
            return false;
        }
        s->all_add = s->all_add && entry.op == ENTRY_ADD;
        s->all_in = s->all_in && entry.op != ENTRY_DEL;
        if (entry.op == ENTRY_TIMED) {
            set_until(s, i, entry.until_s);
        }
        s->ops[i] = entry.op;
        s->starts[i++] = at;
        memcpy(text + at, entry.bytes.p, entry.bytes.len);
        at += (uint32_t)entry.bytes.len;
        text[at++] = (char)(delimiter < 0 ? ',' : delimiter);
    }
    s->starts[i] = at;
    s->text->used = at;
    return status == ENTRY_END && i == s->count;
}

struct sublist *sublist_decode(struct slice value, int delimiter)
{
    uint64_t count;
    /* The shortest entry has three bytes: a count that cannot be true must not choose how much is
     * allocated. */
    if (!take_header(&value, &count) || count > value.len / 3) {
        return NULL;
    }
    struct sublist *s = malloc(sizeof *s + (count + 1) * sizeof s->starts[0] + count);
    CHECK(s != NULL);
    atomic_init(&s->refs, 1);
    atomic_init(&s->index, NULL);
    atomic_init(&s->keepers, 0);
    s->count = (uint32_t)count;
    s->ops = (char *)&s->starts[count + 1];
    /* An entry is at least two bytes longer than its item: the text with its delimiters is never
     * longer than the value. */
    s->text = block_new_exact(value.len + 1);
    if (!fill(s, value, delimiter)) {
        sublist_unref(&s);
    }
    return s;
}

struct sublist *sublist_ref(struct sublist *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void sublist_unref(struct sublist **slot)
{
    struct sublist *s = *slot;
    *slot = NULL;
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    block_unref(&s->text);
    free(s->until_s);
    free(atomic_load_explicit(&s->index, memory_order_relaxed));
    free(s);
}

void sublist_keep(struct sublist *s)
{
    if (atomic_fetch_add_explicit(&s->keepers, 1, memory_order_relaxed) == 0) {
        memory_give(sizeof *s->text + s->text->cap);
    }
}

void sublist_unkeep(struct sublist *s)
{
    if (atomic_fetch_sub_explicit(&s->keepers, 1, memory_order_relaxed) == 1) {
        memory_take(sizeof *s->text + s->text->cap);
    }
}

static uint32_t index_size(const struct sublist *s)
{
    uint32_t size = 16;
    while (size < s->count * 2) {
        size *= 2;
    }
    return size;
}

static uint32_t *build_index(struct sublist *s)
{
    uint32_t size = index_size(s);
    uint32_t *index = calloc(size, sizeof *index);
    CHECK(index != NULL);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t at = item_hash(sublist_item(s, i)) & (size - 1);
        while (index[at] != 0) {
            at = (at + 1) & (size - 1);
        }
        index[at] = i + 1;
    }
    uint32_t *expected = NULL;
    if (!atomic_compare_exchange_strong(&s->index, &expected, index)) {
        /* Another worker was faster. */
        free(index);
        return expected;
    }
    return index;
}

uint32_t sublist_place(struct sublist *s, struct slice item)
{
    const uint32_t *index = atomic_load_explicit(&s->index, memory_order_acquire);
    if (index == NULL) {
        index = build_index(s);
    }
    uint32_t mask = index_size(s) - 1;
    for (uint32_t at = item_hash(item) & mask; index[at] != 0; at = (at + 1) & mask) {
        if (slice_equal(sublist_item(s, index[at] - 1), item)) {
            return index[at];
        }
    }
    return 0;
}

char sublist_find(struct sublist *s, struct slice item)
{
    uint32_t place = sublist_place(s, item);
    return place == 0 ? 0 : s->ops[place - 1];
}

size_t sublist_memory_bytes(const struct sublist *s)
{
    size_t times = s->until_s == NULL ? 0 : s->count * sizeof *s->until_s;
    return sizeof *s + (s->count + 1) * sizeof s->starts[0] + s->count + times + sizeof *s->text +
           s->text->cap + index_size(s) * sizeof(uint32_t);
}

struct block *sublist_begin(size_t limit_bytes)
{
    struct block *b = block_new(limit_bytes);
    b->used = SUBLIST_HEADER_BYTES;
    return b;
}

void sublist_finish(struct block *b, uint32_t count)
{
    char header[SUBLIST_HEADER_BYTES + 1];
    int n = snprintf(header, sizeof header, HEADER_MARK "%010u\n", count);
    CHECK(n == (int)SUBLIST_HEADER_BYTES);
    memcpy(b->data, header, SUBLIST_HEADER_BYTES);
}
