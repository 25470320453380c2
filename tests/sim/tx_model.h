/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the oracle of transactions share: tx_model.c reads logs, tx_check.c knows what
 * lists hold then, and what must be so when one is committed.
 */
#ifndef SIM_TX_MODEL_H
#define SIM_TX_MODEL_H

#include "txs.h"

enum { TX_NAME_LEN = 13 };

enum fate { OPEN, COMMITTED, ABORTED };

/* A transaction in one of its lists. */
struct tx_part {
    unsigned list;
    uint64_t put_at; /* the moment when its intent was stored; 0: not yet */
    bool is_there;   /* the intent is in the log */
    enum fate local; /* what this list's log says by itself */
    struct block *entries;
};

struct tx {
    char name[TX_NAME_LEN + 1];
    struct sim_call *call;
    struct tx_part parts[JOINT_LISTS_MAX]; /* the primary first */
    unsigned part_count;
    enum fate fate; /* the primary's */
    bool doomed;    /* one of its lists says aborted already: it must not be committed any more */
    bool done;      /* and it says that all others know */
    bool forgotten; /* the primary was lost before that: each list decides by itself */
    uint64_t low;   /* its instant is later than that moment */
    struct ids moved;
    struct tx *next; /* of the same hash; the older ones behind */
};

/* What has happened in a list since its first intent that is not settled: a change, or an intent
 * with whatever becomes of it. */
struct tail_op {
    uint64_t at;
    const struct sim_call *call;
    struct tx *tx;
    bool clears;
};

struct tail {
    struct ids base; /* the content before */
    struct tail_op *ops;
    size_t count, cap;
    struct tx **there; /* whose intents are in the log */
    size_t there_count, there_cap;
};

enum { BUCKETS = 4096 };
struct txs {
    struct tx *buckets[BUCKETS];
    struct tail *tails; /* of each list */
    unsigned lists;
    uint64_t committed, aborted;
};

/* ---- tx_model.c ---- */

struct tx_part *tx_part_of(struct tx *tx, unsigned list);
/* What counts in that list. */
enum fate tx_fate_in(const struct tx *tx, const struct tx_part *part);
/* New versions of all its lists, where their contents are others now. */
void tx_renew_all(struct oracle *o, struct tx *tx);
void __attribute__((noreturn)) tx_wrong(const struct tx *tx, unsigned list, const char *what);

/* ---- tx_check.c ---- */

/* The list's content as of all that is known now; until: in front of that transaction's intent.
 * False when there is none of it. */
bool tx_replay(const struct oracle *o, unsigned list, const struct tx *until, struct ids *items);
/* Notes what has happened in the list, while an intent in it is not settled. */
void tx_push_op(struct oracle *o, unsigned list, struct tail_op op);
/* Which items its intent takes off the list. */
void tx_read_moved(struct tx *tx, struct slice entries);
/* It is committed now: is there an instant for it, and was then what it asks for? */
void tx_check(struct oracle *o, struct tx *tx);

#endif
