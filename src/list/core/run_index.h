/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The indexes of runs (content/locator.h), kept beside the cache within a limit of their own, those
 * that are being made included.
 *
 *     build = run_index_begin(...)        NULL: no room, or another worker is making it
 *     run_index_add, run_index_end_sublist ...
 *     while (!run_index_sort(build)) others get their turn
 *     locator = run_index_end(&build)     and kept from here on
 */
#ifndef LIST_CORE_RUN_INDEX_H
#define LIST_CORE_RUN_INDEX_H

#include "list/content/locator.h"
#include "list/core/lru.h"
#include "list/format/name.h"
#include "list/format/sublist.h"

struct run_indexes;
struct run_index_build;

/* Room for indexes of up to limit_bytes (0: keeps nothing), owned by the caller until
 * run_indexes_destroy. check_bits: LOCATOR_CHECK_BITS, or fewer. */
struct run_indexes *run_indexes_create(uint64_t limit_bytes, unsigned check_bits);
void run_indexes_destroy(struct run_indexes **indexes);
uint64_t run_indexes_limit_bytes(const struct run_indexes *indexes);

/* The index of that list's run, with a reference for the caller (locator_unref), or NULL. Key and
 * name are copied. */
struct locator *run_indexes_get(struct run_indexes *indexes, struct slice list_key,
                                const struct name *name);

/* Forgets it, if it is there: the run will never be published. */
void run_indexes_drop(struct run_indexes *indexes, struct slice list_key, const struct name *name);

void run_indexes_get_stats(struct run_indexes *indexes, struct lru_stats *out);

/* Is there room for an index of so many entries, while it is made? */
bool run_indexes_would_fit(const struct run_indexes *indexes, uint64_t entries);

/* Begins the index of a run of at most so many sublists, and about so many entries. The caller's
 * until run_index_end or run_index_give_up. */
struct run_index_build *run_index_begin(struct run_indexes *indexes, struct slice list_key,
                                        const struct name *name, uint32_t sublists_max,
                                        uint64_t entries);
void run_index_add(struct run_index_build *build, char op, struct slice item);
/* Behind the last entry of each sublist. False: there is no room for it any more, it can only be
 * given up. */
bool run_index_end_sublist(struct run_index_build *build);
/* A step of about a millisecond; true when there are no more. */
bool run_index_sort(struct run_index_build *build);
/* Keeps it; the locator with a reference for the caller. */
struct locator *run_index_end(struct run_index_build **build);
/* Also of none (NULL). */
void run_index_give_up(struct run_index_build **build);

#endif
