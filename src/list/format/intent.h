/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of several lists in one step, as they stand in the log of each of these lists:
 *
 *     ?43:NAME.1795229331 2 alice bob +3:bob       intent: what the transaction changes here
 *     &15:NAME c                                   decision: commit, abort, done
 *
 * The first key names the primary: the list whose log decides. What follows the keys are entries:
 * '+', '-', '=' and '!', which count where the intent stands if the transaction is committed, and
 * '.', an item that one of its conditions is about.
 */
#ifndef LIST_FORMAT_INTENT_H
#define LIST_FORMAT_INTENT_H

#include "list/format/entry.h"
#include "list/format/fold.h"
#include "list/format/name.h"

/* The lists of one transaction at most. */
#define INTENT_KEYS_MAX 16

struct intent {
    struct name name;  /* of the transaction: fresh, as a run's */
    int64_t created_s; /* wall clock of the proxy that wrote it, in seconds since 1970. Only what
                          cleans up looks at it */
    struct slice keys[INTENT_KEYS_MAX]; /* of all its lists, each once, the primary first */
    size_t key_count;
    struct slice entries; /* well-formed */
};

/* Parses the bytes of an ENTRY_INTENT; false when they are malformed. On true the slices of *out
 * point into them. */
bool intent_parse(struct slice bytes, struct intent *out);
/* Appends the intent as a log entry. */
void intent_append(struct block **b, const struct intent *intent);
/* Bytes that this entry takes. */
size_t intent_size(const struct intent *intent);

/* What an intent is about, by its entries, to be held against many others of the same list. */
struct intent_items {
    struct fold fold;
    bool all; /* it holds a '!' */
};
void intent_items_init(struct intent_items *items, struct slice entries);
void intent_items_fini(struct intent_items *items);
/* Do the two conflict: does one of them change or ask for what the other one, with those entries,
 * changes or asks for? A condition in common counts as well. Without a cap: under a cap any two do.
 * Takes time in proportion to the other one. */
bool intent_items_meet(const struct intent_items *items, struct slice entries);

enum decision {
    DECISION_COMMIT = 'c', /* the first of these two behind the intent counts */
    DECISION_ABORT = 'a',
    DECISION_DONE = 'd', /* in the primary: all other lists have the commit, or are gone */
};

/* Parses the bytes of an ENTRY_DECISION; false when they are malformed. */
bool decision_parse(struct slice bytes, struct name *name, enum decision *out);
/* Appends the decision as a log entry. */
void decision_append(struct block **b, const struct name *name, enum decision decision);

#endif
