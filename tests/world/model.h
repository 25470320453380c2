/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a list holds, as a plain sequence, and how it is read from what is stored: slowly, simply,
 * and without any of the engine's code, so that both are not wrong in the same way.
 */
#ifndef WORLD_MODEL_H
#define WORLD_MODEL_H

#include "reference.h"
#include "store.h"

#define ITEMS_MAX 4096
#define ITEM_NAME_MAX 64
#define SERVERS_MAX 4
/* Between a look at the server's clock and the write that follows lie the stalls of servers. */
#define LOOK_AGE_MAX_S 100

/* Items are numbers here; on the wire they have names that look like the format's own syntax. */
struct ids {
    uint16_t *ids;    /* in order of insertion */
    uint32_t *untils; /* of each, the second in which it is over; 0: never */
    uint32_t count, cap;
    uint32_t max; /* ids_add adds no more: the oldest goes; 0: any number. Not copied */
    bool refuses; /* or the new one is not added */
};

void ids_fini(struct ids *items);
void ids_copy(struct ids *to, const struct ids *from);
bool ids_equal(const struct ids *a, const struct ids *b);
bool ids_has(const struct ids *items, uint16_t id);
/* Where it is; it is looked for from that place on, and then before it. items->count: nowhere. */
uint32_t ids_find(const struct ids *items, uint16_t id, uint32_t from);
void ids_clear(struct ids *items);
/* Puts it at the end, whatever is there already. */
void ids_push(struct ids *items, uint16_t id);
void ids_push_timed(struct ids *items, uint16_t id, uint32_t until_s);
/* Until when the item is there; 0: for ever, or it is not there. */
uint32_t ids_until(const struct ids *items, uint16_t id);
/* Those that are not over in that second. */
void ids_copy_at(struct ids *to, const struct ids *from, int64_t now_s);
/* Returns whether it was new; one that is there keeps its place. False as well where it finds no
 * place. */
bool ids_add(struct ids *items, uint16_t id);
/* Returns whether it was there. */
bool ids_remove(struct ids *items, uint16_t id);

size_t item_name(char out[ITEM_NAME_MAX], uint16_t id);
/* From now on, names without the bytes that a dialect gives a meaning to. Before any is asked for.
 */
void item_names_for_dialects(void);
/* The same, kept for ever. */
struct slice item_text(uint16_t id);
/* False when no item has that name. */
bool item_of_name(struct slice name, uint16_t *id);

struct stored {
    bool exists; /* there is a head */
    bool malformed;
    bool sublist_missing; /* one that the head names */
    bool cleared;         /* the log makes all runs void */
    bool absent;          /* the header says that the list is missing: "?TOKEN.UNTIL" */
    uint64_t token; /* of the lease to fill it, which leaves the log as it is; 0: there is none */
    int64_t until_s;
    char missing[KEY_BYTES_MAX + 1];
    unsigned runs, garbage, announcements, entries, adds;
    /* Of the log: intents; those that it leaves open; those that it must keep, as their primary's,
     * since other lists may have to learn of the commit; decisions, whatever they are about. */
    unsigned intents, unsettled, unfinished, decisions;
};

/* The servers, and which of them has a key. */
struct cluster {
    struct store *stores;
    unsigned count;
    bool spread;                 /* sublists are placed by their own names */
    bool moving;                 /* lists go from their servers to the next ones: cluster_place */
    const struct store *leaving; /* of these, the one that is not among the new ones; or NULL */
    bool left;                   /* it is gone for good: no proxy asks it */
};
/* Is the server of that key by the old list the one that is gone for good? */
bool cluster_is_gone(const struct cluster *cluster, struct slice placement);
/* Where it is now. */
struct store *cluster_store(const struct cluster *cluster, struct slice placement);
/* The head of a list that is there, or NULL: of one that has moved, also a copy that counts. */
const struct item *cluster_head(const struct cluster *cluster, struct slice head_key,
                                int64_t now_s);
/* By the old list of servers, or by the new one. */
struct store *cluster_place(const struct cluster *cluster, struct slice placement, bool by_new);

/* What reference.h reads in a head, or NULL where there is no item, or it is none. Valid, with the
 * bytes that it points into, until the next call of a function of this file. */
const struct ref_head *model_read_head(const struct item *item);
/* Reads the list's content from the stores. items is complete unless malformed, or
 * sublist_missing and not cleared. Of transactions that the list leaves open those count that their
 * primaries say are committed. */
void model_decode(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                  struct ids *items, struct stored *out);
#define MODEL_NO_HEAD UINT32_MAX
/* What the head says of a cap; 0 when it says nothing, MODEL_NO_HEAD when there is none. */
uint32_t model_cap(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                   bool *refuses);
/* Lays the head's log over items. There must be a head that is not malformed. */
void model_lay_log(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                   struct ids *items);
/* Does the head say for how long its sublists live, and is it so? Returns what is wrong, or NULL.
 * Clocks of servers count; a second of grace. all_end: each list has had a time to live always. */
const char *model_lives(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                        bool all_end);
/* Does the list's head name this sublist, in a run, as garbage or by an announcement? */
bool model_head_names(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                      struct slice sublist);
/* Does it announce it? */
bool model_head_announces(const struct cluster *cluster, struct slice list_key, int64_t now_s,
                          struct slice sublist);
/* Did one that was removed? What it named is left to scripts/sweep where the proxy that removed it
 * dies, or does not reach the servers. */
bool model_removed_head_names(const struct cluster *cluster, struct slice list_key,
                              struct slice sublist);

#endif
