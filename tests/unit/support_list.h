/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of lists share: a naive list that replays entries one by one, made-up items and
 * logs, heads read from text, and runs cut into sublists in memory.
 */
#ifndef SUPPORT_LIST_H
#define SUPPORT_LIST_H

#include "base/rng.h"
#include "list/format/fold.h"
#include "list/format/head.h"
#include "list/format/sublist.h"

/* How many different items there are to play with. */
#define ITEMS_MAX 300

/* Item n, always the same bytes: empty, binary, looking like entries, or just a name. */
struct slice test_item(unsigned n);

/* A list of items in order, each at most once. Items are not copied: what was replayed must stay.
 */
struct model {
    struct slice items[ITEMS_MAX];
    size_t count;
};

void model_apply(struct model *m, char op, struct slice item);
/* Replays all entries; announcements are passed over. */
void model_replay(struct model *m, struct slice entries);
bool model_has(const struct model *m, struct slice item);
void assert_same_model(const struct model *a, const struct model *b);

/* What random_log makes: of which items, with one '!' in so many entries (0: none), with '='. */
struct log_shape {
    unsigned items, entries, clear_in;
    bool readd;
    bool announcements;
};

/* A block with random entries, owned by the caller. */
struct block *random_log(struct rng *rng, const struct log_shape *shape);

/* The filled part of a block. */
static inline struct slice block_slice(const struct block *b)
{
    return slice_make(b->data, b->used);
}
/* A block with these bytes and no room behind them, owned by the caller: sanitizers see who reads
 * on. */
struct block *block_of(struct slice bytes);

/* What the log folds to, as entries, in a block that the caller owns. cleared may be NULL. */
struct block *fold_entries(struct slice log, bool oldest, bool *cleared);
/* Run or base entries with newer entries laid over them, in a block that the caller owns. */
struct block *merge_entries(struct slice base, struct slice newer, bool oldest);

/* A run in memory: its entries cut into decoded sublists. */
struct test_run {
    struct run run;
    struct sublist **sublists;
};

/* Cuts entries into sublists of up to per_sublist entries each. delimiter as for sublist_decode. */
void test_run_init(struct test_run *run, struct slice entries, uint32_t per_sublist, int delimiter);
void test_run_fini(struct test_run *run);

/* A name made of 13 times the same letter. */
struct name test_name(char letter);

/* Reads a head from its bytes, with CAS 7, epoch 3, ttl_s -1. NULL when it is foreign. */
struct head *head_of(struct slice value);
/* The same of the list of that key, not "list". */
struct head *head_of_list(struct slice key, struct slice value);
/* Reads a head made of a header for these runs and a log. Never NULL. */
struct head *head_with(const struct run *runs, size_t run_count, struct slice log);

/* sublist_decode of bytes behind which nothing may be read. */
struct sublist *decode_exact(struct slice bytes, int delimiter);

#endif
