/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs with intents (intent.h): what they say of each transaction, and the plain log that all
 * others read. In that, what a committed one changes stands where its intent stands; intents that
 * are aborted, or not decided yet, and all decisions are left out. So the plain log of a longer log
 * begins with that of a shorter one in which all were decided.
 *
 * What decides an intent, of all that stands behind it:
 *
 *   - the first commit or abort of its name;
 *   - in the primary, a conflicting plain entry in front of that: then it is aborted.
 *
 * Where a failover may take plain entries back, such an entry alone decides nothing yet: the intent
 * is open until a commit or an abort stands behind both. Those are durable, and the entry is with
 * them; then it is aborted, whichever comes.
 *
 * A decision without an intent in front of it means nothing.
 */
#ifndef LIST_FORMAT_RESOLVE_H
#define LIST_FORMAT_RESOLVE_H

#include "list/format/entry.h"
#include "list/format/name.h"

enum intent_state {
    INTENT_GONE, /* there is none of that name */
    INTENT_OPEN, /* not decided yet, as far as this log tells */
    INTENT_COMMITTED,
    INTENT_ABORTED,
};

/* What a log says of one of its intents. */
struct head_intent {
    struct name name;
    enum intent_state state;
    bool primary; /* this list's log decides */
    bool crossed; /* a conflicting plain entry stands behind it, in front of what decides it */
    bool done;    /* committed, and all other lists have the commit */
    int64_t created_s;
    size_t key_at;        /* this list's key among its keys */
    size_t at, plain;     /* where it stands in the log, and in the plain log */
    struct slice bytes;   /* for intent_parse */
    struct slice entries; /* of these: what it changes here, and asks for */
};

struct resolved {
    struct head_intent *intents; /* in the order of the log; the caller's to free */
    size_t intent_count, open_count;
    struct block *log;     /* the plain log */
    struct block *residue; /* what a primary keeps: for each committed intent that is not done one
                              without entries, and the commit. NULL: nothing */
};

/* Resolves the log of the list of that key. capped: each plain entry conflicts with each intent.
 * rolls_back: plain entries may be taken back. Returns false when it is malformed; otherwise what
 * *out holds is the caller's. */
MUST_CHECK bool resolve_log(struct slice log, struct slice key, bool capped, bool rolls_back,
                            struct resolved *out);
/* No more of the same than the state of one intent: all others are passed over, whatever they hold,
 * and no plain log is made. */
MUST_CHECK bool resolve_state(struct slice log, struct slice key, bool capped, bool rolls_back,
                              const struct name *name, enum intent_state *state);
/* Appends to *residue, which may be NULL, what a primary keeps of that intent: nothing, unless it
 * is its primary, and it is committed and not done. */
void residue_append(struct block **residue, const struct head_intent *intent);

#endif
