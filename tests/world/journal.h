/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a failover of a Couchbase node may lose. A replica has each vBucket as it was some writes
 * ago: a change that is durable is there, and with it all earlier ones of its vBucket; of those
 * behind it the last ones may be missing. The journal of a vBucket holds what its items were
 * before each of these.
 *
 * CAS numbers are a hybrid clock of each vBucket: they go on over restarts, and never go back but
 * for those that were lost.
 */
#ifndef WORLD_JOURNAL_H
#define WORLD_JOURNAL_H

#include "base/rng.h"
#include "store.h"

#define STORE_VBUCKETS 8

struct undo;

/* From now on the store is a node of a cluster. forget frees notes of journal_note, or is NULL. */
void journal_create(struct store *store, void (*forget)(void *note));
void journal_fini(struct store *store);
unsigned store_vbucket(struct slice key);

/* For the store: around a change of the item, which may be NULL. */
struct undo *journal_begin(struct store *store, struct slice key, const struct item *item);
void journal_end(struct store *store, struct undo *undo, bool changed, bool durable);
uint64_t journal_next_cas(struct store *store, struct slice key, int64_t clock_s);

/* The change that was made last, which was not durable: its note goes with it. */
void journal_note(struct store *store, struct slice key, void *note);
/* A replica takes over: some of the last changes of each vBucket are lost. undone is called for
 * each of them, the newest of its vBucket first, once the item is as it was before; the note is its
 * own then. is_behind: the clock of the new node is; it gives the CAS numbers of lost changes
 * again. */
void journal_fail_over(struct store *store, struct rng *rng, bool is_behind,
                       void (*undone)(void *arg, struct slice key, void *note), void *arg);

#endif
