/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of several lists in one step (ltx, lmove, lpopto): what clients ask, and what the oracle
 * makes of it.
 *
 * The oracle sees each intent and each decision when a server stores it. What the primary's log
 * says decides, from that moment on in all lists: each gets a new version then, in which the
 * transaction's effect stands where its intent stands. While an undecided intent is in a list, no
 * answer may come from the list's versions of that time: so an answer that was given never loses
 * its order when the decision comes, and nothing is seen of one list without the others.
 *
 * Beside that, one instant must explain each transaction: behind all its intents, in front of all
 * that conflicts and stands behind one of them, and behind the instants of those that conflict and
 * stand in front.
 */
#ifndef SIM_TXS_H
#define SIM_TXS_H

#include "oracle.h"

struct client;
struct txs;

/* Of one client's call: what its lists are to become. */
#define TX_CHANGES_MAX 3
#define TX_ITEMS_MAX 4
struct tx_plan {
    struct tx_change changes[JOINT_LISTS_MAX][TX_CHANGES_MAX];
    uint16_t ids[JOINT_LISTS_MAX][TX_CHANGES_MAX][TX_ITEMS_MAX];
    struct slice items[JOINT_LISTS_MAX][TX_CHANGES_MAX][TX_ITEMS_MAX];
};

static inline bool is_tx(const struct sim_call *call)
{
    return list_verb_kind(call->call.verb) == LIST_KIND_TX;
}

/* ---- clients: txs.c ---- */

/* Does the client ask such a call next? By draws of its own. */
bool txs_wants(struct client *client, enum list_verb *verb);
void txs_choose(struct client *client, struct sim_call *call);
/* The items are the client's again. */
void txs_forget_items(struct sim_call *call);
/* Writes what is asked of the lists; returns its length. */
size_t txs_describe(const struct sim_call *call, char *out, size_t cap);

/* ---- the oracle: tx_model.c ---- */

struct txs *txs_create(unsigned lists);
void txs_destroy(struct txs **txs);
/* What was asked for in transactions, and how many were committed, aborted. */
void txs_count(const struct txs *txs, uint64_t *committed, uint64_t *aborted);

/* A head was changed by that request: what it may have said of transactions. The list's current
 * version has the request's own effect already. */
void txs_changed(struct oracle *o, unsigned list, const struct purpose *purpose, int64_t now_s);
/* Heads may have been lost. */
void txs_lost(struct oracle *o, unsigned list, int64_t now_s);
/* Does the list hold an intent that is not decided? */
bool txs_is_open(const struct oracle *o, unsigned list);
/* Does its log decide for other lists, of which some may not know it yet? */
bool txs_is_primary(const struct oracle *o, unsigned list);
/* Of a call that was committed: the items that it has moved, in order. */
const struct ids *txs_moved(const struct sim_call *call);
/* Do all its lists know that it is committed? Those that were lost count. */
bool txs_is_published(const struct sim_call *call);

/* ---- answers: txs.c ---- */

/* Calls visit for each item that the call, which was committed, has added. */
void txs_each_added(const struct sim_call *call,
                    void (*visit)(void *arg, unsigned list, uint16_t id), void *arg);
/* The call is answered. */
void txs_answered(struct oracle *o, const struct sim_call *call);

/* What is wrong with the answer, which is no error, or NULL. */
const char *txs_judge(const struct oracle *o, struct sim_call *call);

#endif
