/* SPDX-License-Identifier: BSD-3-Clause */
#include "list/content/locator.h"

#include <stdlib.h>

#include "base/array.h"
#include "list/format/entry.h"

/* Slots of a bucket on average: two lines of a processor's cache, and a quarter of a byte for each
 * entry to say where it begins. */
#define BUCKET_SLOTS 16u
/* Entries of a partition on average: so many are sorted within the processor's cache. */
#define PARTITION_ENTRIES 32768u
#define PARTITION_BITS_MAX 9u
#define CHUNK_ENTRIES 510u

struct locator_chunk {
    struct locator_chunk *next;
    uint64_t used;
    uint64_t hashes[CHUNK_ENTRIES]; /* upper half of the hash | slot */
};

struct locator *locator_ref(struct locator *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void locator_unref(struct locator **slot)
{
    struct locator *l = *slot;
    *slot = NULL;
    if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    free(l->counts);
    free(l->starts);
    free(l->slots);
    free(l);
}

static uint64_t table_bytes(uint64_t entries)
{
    return (entries + entries / BUCKET_SLOTS + 2) * sizeof(uint32_t);
}

size_t locator_bytes(const struct locator *l)
{
    return sizeof *l + l->sublists * sizeof *l->counts + table_bytes(l->entries);
}

/* ---- collecting ---- */

void locator_builder_init(struct locator_builder *b, uint32_t sublists_max, uint64_t entries,
                          unsigned check_bits)
{
    *b = (struct locator_builder){0};
    struct locator *l = calloc(1, sizeof *l);
    CHECK(l != NULL);
    atomic_init(&l->refs, 1);
    l->all_add = true;
    while (l->part_bits < 32 && (sublists_max - 1) >> l->part_bits != 0) {
        l->part_bits++;
    }
    unsigned left = 32 - l->part_bits, bits = check_bits < left ? check_bits : left;
    l->check_mask = (uint32_t)((UINT64_C(1) << bits) - 1);
    b->locator = l;
    while (b->partition_bits < PARTITION_BITS_MAX &&
           entries >> b->partition_bits > PARTITION_ENTRIES) {
        b->partition_bits++;
    }
    b->partitions = calloc(1u << b->partition_bits, sizeof(struct locator_chunk *));
    CHECK(b->partitions != NULL);
}

static struct locator_chunk *get_chunk(struct locator_builder *b, uint64_t partition)
{
    struct locator_chunk *chunk = b->partitions[partition];
    if (chunk == NULL || chunk->used == CHUNK_ENTRIES) {
        struct locator_chunk *fresh = malloc(sizeof *fresh);
        CHECK(fresh != NULL);
        fresh->next = chunk;
        fresh->used = 0;
        b->partitions[partition] = chunk = fresh;
        b->chunk_bytes += sizeof *fresh;
    }
    return chunk;
}

/* Counts has one place more than there are sublists: of the one that has not ended. */
static uint32_t *open_count(struct locator_builder *b)
{
    struct locator *l = b->locator;
    size_t cap = b->count_cap;
    l->counts = array_room(l->counts, l->sublists, &b->count_cap, sizeof *l->counts);
    if (cap != b->count_cap) {
        memset(l->counts + cap, 0, (b->count_cap - cap) * sizeof *l->counts);
    }
    return &l->counts[l->sublists];
}

void locator_builder_add(struct locator_builder *b, char op, struct slice item)
{
    struct locator *l = b->locator;
    CHECK(b->state == LOCATOR_COLLECTS && l->entries < 1u << 31);
    uint64_t hash = locator_hash(item);
    uint64_t check = (uint32_t)hash & l->check_mask;
    uint32_t slot = (uint32_t)(check << l->part_bits | l->sublists);
    struct locator_chunk *chunk = get_chunk(b, (hash >> 32) >> (32 - b->partition_bits));
    chunk->hashes[chunk->used++] = hash >> 32 << 32 | slot;
    l->all_add = l->all_add && op == ENTRY_ADD;
    l->entries++;
    (*open_count(b))++;
}

void locator_builder_end_sublist(struct locator_builder *b)
{
    (void)open_count(b);
    b->locator->sublists++;
}

uint64_t locator_builder_bytes(const struct locator_builder *b)
{
    return b->chunk_bytes + b->count_cap * sizeof(uint32_t) + table_bytes(b->locator->entries) +
           sizeof *b->locator;
}

/* ---- sorting ---- */

static void make_tables(struct locator *l)
{
    l->buckets = l->entries / BUCKET_SLOTS + 1;
    l->starts = calloc(l->buckets + 1, sizeof *l->starts);
    l->slots = malloc((l->entries + 1) * sizeof *l->slots);
    CHECK(l->starts != NULL && l->slots != NULL);
}

/* Into starts[i + 1], so that what begins a bucket can stand at its place when all is counted. */
static void count_chunk(struct locator *l, const struct locator_chunk *chunk)
{
    for (uint64_t i = 0; i < chunk->used; i++) {
        l->starts[locator_bucket(l, chunk->hashes[i]) + 1]++;
    }
}

/* From here on starts[i + 1] is where the next slot of bucket i goes, and where it ends when all
 * are there. */
static void sum_counts(struct locator *l)
{
    uint32_t sum = 0;
    for (uint32_t i = 1; i <= l->buckets; i++) {
        uint32_t count = l->starts[i];
        l->starts[i] = sum;
        sum += count;
    }
}

static void place_chunks(struct locator_builder *b)
{
    struct locator *l = b->locator;
    struct locator_chunk *chunk;
    while ((chunk = b->partitions[b->at]) != NULL) {
        for (uint64_t i = 0; i < chunk->used; i++) {
            l->slots[l->starts[locator_bucket(l, chunk->hashes[i]) + 1]++] =
                (uint32_t)chunk->hashes[i];
        }
        b->partitions[b->at] = chunk->next;
        b->chunk_bytes -= sizeof *chunk;
        free(chunk);
    }
}

bool locator_builder_sort(struct locator_builder *b)
{
    uint32_t partitions = 1u << b->partition_bits;
    if (b->state == LOCATOR_COLLECTS) {
        make_tables(b->locator);
        b->state = LOCATOR_COUNTS;
    } else if (b->state == LOCATOR_COUNTS && b->at < partitions) {
        const struct locator_chunk *chunk = b->partitions[b->at++];
        for (; chunk != NULL; chunk = chunk->next) {
            count_chunk(b->locator, chunk);
        }
    } else if (b->state == LOCATOR_COUNTS) {
        sum_counts(b->locator);
        b->at = 0;
        b->state = LOCATOR_SORTS;
    } else if (b->state == LOCATOR_SORTS && b->at < partitions) {
        place_chunks(b);
        b->at++;
    } else {
        b->state = LOCATOR_READY;
    }
    return b->state == LOCATOR_READY;
}

struct locator *locator_builder_take(struct locator_builder *b)
{
    CHECK(b->state == LOCATOR_READY);
    struct locator *l = b->locator;
    b->locator = NULL;
    return l;
}

void locator_builder_fini(struct locator_builder *b)
{
    for (uint32_t i = 0; b->partitions != NULL && i < 1u << b->partition_bits; i++) {
        while (b->partitions[i] != NULL) {
            struct locator_chunk *chunk = b->partitions[i];
            b->partitions[i] = chunk->next;
            free(chunk);
        }
    }
    free(b->partitions);
    locator_unref(&b->locator);
    *b = (struct locator_builder){0};
}
