/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine does for a call, and what it wants to know of that beforehand: its columns of the
 * table in proto/list_verbs.h.
 */
#ifndef LIST_CORE_LIST_VERB_H
#define LIST_CORE_LIST_VERB_H

#include <stdbool.h>

#include "proto/list_verbs.h"

enum list_verb {
#define LIST_VERB(id, kind, traits) LIST_##id,
#define LIST_WORD(id, word, takes, answer)
    LIST_VERB_TABLE(LIST_VERB, LIST_WORD)
#undef LIST_VERB
#undef LIST_WORD
        LIST_VERB_COUNT
};

/* The column "kind". */
enum list_kind {
#define LIST_KIND(id, changes) LIST_KIND_##id,
    LIST_KIND_TABLE(LIST_KIND)
#undef LIST_KIND
};

/* Those of which no verb changes anything: a bit for each. */
enum {
#define LIST_KIND(id, changes) +((changes) ? 0 : 1 << LIST_KIND_##id)
    LIST_KINDS_OF_READS = 0 LIST_KIND_TABLE(LIST_KIND)
#undef LIST_KIND
};

/* The column "traits", one bit each. */
enum list_trait {
    LIST_MAKES = 1 << 0,
    LIST_IN_TURNS = 1 << 1,
    LIST_LONG = 1 << 2,
    LIST_COUNTS = 1 << 3,
    LIST_WHOLE = 1 << 4,
    LIST_FROM_OLDEST = 1 << 5,
    LIST_FROM_NEWEST = 1 << 6,
    LIST_ALONE = 1 << 7,
    LIST_TAKES = 1 << 8,
    LIST_SAMPLES = 1 << 9,
    LIST_BEHIND = 1 << 10,
    LIST_AHEAD = 1 << 11,
    LIST_STORES = 1 << 12,

    /* Those with positions, those that look for an item, those that read/pick.h answers, and all
     * reads that are answered by items that the client has not named. */
    LIST_RANGES = LIST_FROM_OLDEST | LIST_FROM_NEWEST,
    LIST_PAGES = LIST_BEHIND | LIST_AHEAD,
    LIST_PICKS = LIST_SAMPLES | LIST_PAGES,
    LIST_GIVES_ITEMS = LIST_WHOLE | LIST_RANGES | LIST_PICKS,
};

struct list_verb_info {
    enum list_kind kind;
    unsigned traits;
};
extern const struct list_verb_info list_verbs[LIST_VERB_COUNT];

/* How calls of the verb travel. */
static inline enum list_kind list_verb_kind(enum list_verb verb)
{
    return list_verbs[verb].kind;
}

/* Has it the trait, or one of several? */
static inline bool list_verb_has(enum list_verb verb, enum list_trait traits)
{
    return (list_verbs[verb].traits & traits) != 0;
}

static inline bool list_verb_reads(enum list_verb verb)
{
    return (LIST_KINDS_OF_READS >> list_verb_kind(verb) & 1) != 0;
}

/* The word by which clients ask for it; the first one in the table, where there are several. */
const char *list_verb_word(enum list_verb verb);

/* Does it put items into the list or take some out? */
static inline bool list_verb_changes(enum list_verb verb)
{
    enum list_kind kind = list_verb_kind(verb);
    return kind == LIST_KIND_BLIND || kind == LIST_KIND_EXACT || kind == LIST_KIND_FILL ||
           kind == LIST_KIND_TX;
}

#endif
