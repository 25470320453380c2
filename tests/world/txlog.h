/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the log of a head says of changes of several lists in one step (docs/list-format.md), read
 * once more, slowly and simply and without any code of src/list:
 *
 *     ?LEN:NAME.CREATED N KEY1 ... KEYN ENTRIES     an intent; the list KEY1, the primary, decides
 *     &LEN:NAME c                                   committed; a: aborted; d: done
 *
 * What is read points into the bytes given.
 */
#ifndef WORLD_TXLOG_H
#define WORLD_TXLOG_H

#include "base/block.h"
#include "base/slice.h"

#define TXLOG_KEYS_MAX 16

enum txlog_state {
    TXLOG_NONE, /* no such intent */
    TXLOG_OPEN,
    TXLOG_COMMITTED,
    TXLOG_ABORTED,
};

struct txlog_intent {
    struct slice name, entries;
    struct slice keys[TXLOG_KEYS_MAX];
    size_t key_count;
    uint64_t created_s;
    bool is_primary; /* its first key is the list's own */
    enum txlog_state state;
    bool done;      /* a '&..d' stands behind the commit */
    bool crossed;   /* a plain entry that conflicts stands behind it, in front of its state's */
    size_t at, end; /* where the entry stands in the log */
};

struct txlog {
    struct txlog_intent *intents; /* in the order of the log */
    size_t count, cap;
};

/* The parts of the bytes of a '?'. False when they are malformed. */
bool txlog_parse(struct slice bytes, struct txlog_intent *out);
/* Is this well-formed as the bytes of that entry, '?' or '&'? Of others true. */
bool txlog_entry_is_valid(char op, struct slice bytes);

/* Reads a head's log. own: the key of its list; capped: it has a cap, so each plain entry conflicts
 * with each intent. False when it is malformed; txlog_fini is needed in both cases. */
bool txlog_read(struct txlog *out, struct slice log, struct slice own, bool capped);
void txlog_fini(struct txlog *txlog);
/* The intent of that name, or NULL. */
const struct txlog_intent *txlog_find(const struct txlog *txlog, struct slice name);

/* May both stand in front of one another in one list? Not when both are about an item, or one of
 * them clears the list. */
bool txlog_conflict(struct slice entries, struct slice others);

/* Is that intent committed, which its own list leaves open? */
typedef bool txlog_ask(void *arg, const struct txlog_intent *intent);
/* The log as it would be without transactions: what was committed stands where its intent does.
 * Returns a block of the caller's, or NULL when the log is malformed. */
struct block *txlog_resolve(struct slice log, struct slice own, bool capped, txlog_ask *ask,
                            void *arg);

#endif
