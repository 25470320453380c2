/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate: proxies that have other servers for a pool, or another layout for its lists, are found
 * before they make lists a second time elsewhere. Each server of a pool with lists holds a small
 * item that says what all proxies must agree on (pool/gate_item.h). The first worker reads it on
 * each server every gate_s, and at the start before any client is heard:
 *
 *     no item on any server    the proxy's own is written (ADD)
 *     one that agrees          is renewed (CAS), and written where a server has none
 *     one with a lower change  is replaced (CAS); lists that move rest for two rounds, in which
 *                              the other proxies see the new one
 *     one with a later step    of the same change of servers: this proxy takes that step, too
 *     any other                this proxy is the unequal one: it writes nothing, says so, and
 *                              refuses lists that are kept elsewhere or otherwise
 *     foreign data             stays, is said once
 *
 * Two that differ and start at once may each have written its item on some servers. Of those that
 * both know, the first one by name that holds an item decides: ADD stored one there, so the other
 * proxy was told NOT_STORED, and has served no list. Who is first there replaces the others' items,
 * as with a higher change. Who has been unequal does not become right in this way.
 *
 * The item lives for GATE_LIFE_ROUNDS: what no living proxy agrees with goes by itself.
 *
 * A proxy that has not read it for GATE_FRESH_ROUNDS, since it slept or reached no server, may be
 * two steps behind the others. It sends nothing for lists until it has read it again, and of what
 * it has asked for before that the outcome counts as unknown, whatever the server answers.
 *
 * A pool that no section [lists] of the file belongs to has no gate until the first list verb.
 */
#ifndef PROXY_CORE_GATE_H
#define PROXY_CORE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/slice.h"
#include "pool/gate_item.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"

/* An item lives for so many times gate_s, and is renewed at half of that. No setting: all proxies
 * of a pool, of whatever release, must mean the same by it, and gate_s changes it. */
#define GATE_LIFE_ROUNDS 6
#define GATE_FRESH_ROUNDS 2
/* Behind the step `move`, a proxy leaves the others so many gate_s before it moves a list. Until
 * then each of those that know no marks has read that step, or its item has gone: from then on they
 * refuse lists. */
#define GATE_MOVES_AFTER_ROUNDS 6

enum gate_state {
    GATE_QUIET, /* nothing to ask */
    GATE_IDLE,  /* no list verb came yet */
    GATE_UNEQUAL,
};

/* Makes shared.gate; before the workers. */
void gate_create(struct shared *shared);
/* Behind the last worker; where there is no gate, does nothing. */
void gate_destroy(struct shared *shared);

/* The worker has its pools: the first one begins to ask. */
void gate_attach(struct worker *worker);
/* Before its pools go. */
void gate_detach(struct worker *worker);
/* The worker was woken, perhaps for the gate. */
void gate_woken(struct worker *worker);
/* Has each gate that can refuse lists been read once, as far as servers answer? Any thread. */
bool gate_is_read(const struct shared *shared);

/* Has the gate not been read for too long? */
static inline bool gate_is_stale(const struct worker *worker, size_t pool_index)
{
    return worker->now.mono_us >
           atomic_load_explicit(&worker->shared->gate_fresh[pool_index].until_us,
                                memory_order_relaxed);
}

/* May the answer to what was asked at that time be taken for one? */
static inline bool gate_trusts(const struct worker *worker, size_t pool_index, uint64_t since_us)
{
    return !gate_is_stale(worker, pool_index) &&
           since_us >= atomic_load_explicit(&worker->shared->gate_fresh[pool_index].gap_us,
                                            memory_order_relaxed);
}

/* Of an outcome that is unknown since the answer may not. */
#define GATE_DISTRUST_TEXT \
    "the proxy has slept, or reached no server, for too long, outcome unknown"

/* Must a list verb on lists of that pool ask gate_refuses? */
static inline bool gate_must_ask(const struct worker *worker, size_t pool_index)
{
    return atomic_load_explicit(&worker->shared->gate_states[pool_index], memory_order_relaxed) !=
               GATE_QUIET ||
           gate_is_stale(worker, pool_index);
}

/* Room for the text of a refusal. */
#define GATE_REFUSAL_MAX 256
/* Is the list kept elsewhere, or otherwise, by other proxies, or may it be, since the gate was not
 * read? Then text is the error for its verb. */
bool gate_refuses(struct worker *worker, struct slice key, char text[GATE_REFUSAL_MAX]);

/* What differs in the pool, as the log has it; "" if nothing does. Any thread. Returns why. */
const char *gate_why(struct shared *shared, size_t pool_index, char why[GATE_WHY_MAX]);

#endif
