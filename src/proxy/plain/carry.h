/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies the value of a plain key from its old server to its new one (pool.next), so that no change
 * is undone that is made meanwhile:
 *
 *     new  ADD of a lease               an item that is no value, for seconds
 *     old  get                          behind it
 *     new  CAS of the lease: the value  fails if anything has changed the key since: all changes
 *                                       touch the new server behind the old one
 *     old  delete, by CAS               only where the old one is to be emptied
 *
 * Where both servers have a value, that on the new one counts. docs/model/servers/plain.py has the
 * argument.
 */
#ifndef PROXY_PLAIN_CARRY_H
#define PROXY_PLAIN_CARRY_H

#include "pool/link/exchange.h"
#include "proxy/core/worker.h"

/* Flags that tell a lease from a value, whatever else the item says: what is appended to a lease is
 * lost. */
#define CARRY_LEASE_FLAGS UINT32_C(0xc1a90001)
/* How long one lives that is left by a proxy that has died, in seconds. Nothing that is promised
 * depends on it. */
#define CARRY_LEASE_S 3

enum carry_end {
    CARRY_DONE, /* the old server has no value, or was not to be emptied */
    CARRY_BUSY, /* another client changes the key, or copies it */
    CARRY_FAILED,
};

/* reply: of CARRY_FAILED, during the call. */
typedef void carry_done_fn(void *arg, enum carry_end end, const struct be_reply *reply);

/* Copies the value of that key, which moves, of the pool with that index. odd_key: it has bytes
 * that no line can hold; then its value is deleted instead. empties: the old server is to hold
 * nothing behind it. done is called once, never from within this call; NULL: no client waits, and
 * then nothing is done beyond what next_bytes allows. The key need not live on. */
void carry_start(struct worker *worker, uint32_t pool_index, struct slice key, bool odd_key,
                 bool empties, carry_done_fn *done, void *arg);

/* Fills an exchange that adds a lease for the key, whose answer has the CAS number. */
void carry_fill_lease(struct exchange *exchange, struct slice key, bool odd_key);

#endif
