/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the items of lists lie, compared with where the pool's rule (servers, distribution, hash)
 * looks for them. Clients that keep lists by hand have a rule of their own. Where the two differ,
 * the proxy does not find most lists, and begins them a second time. The memcacheds themselves name
 * their items (`lru_crawler metadump`), so this can be seen before anything is written.
 *
 *     the memcacheds --- names ---> which of them belong to lists --- counted for each rule
 */
#ifndef POOL_PLACEMENT_H
#define POOL_PLACEMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "config/config.h"
#include "pool/locate/resolver.h"
#include "pool/locate/shard.h"

struct placement_found {
    uint64_t names;   /* items of lists that the servers have named */
    uint64_t fitting; /* of these, where the rule in force puts them */
    /* The rule that the most of them fit: that in force where no other one is better. */
    enum pool_distribution distribution;
    enum pool_hash hash;
    uint64_t best;
    size_t equal;  /* other rules that as many fit */
    size_t silent; /* servers that could not be asked for all of their names */
};

/* Can lists of the pool be looked for in the wrong place? Only where it has several memcacheds.
 * With only_dialects, only where lists that other clients keep by hand are in it. */
bool placement_matters(const struct config *config, size_t pool_index, bool only_dialects);

/* Asks the servers of the pool for up to placement_names names each, and compares. Blocks, for
 * long_timeout_ms at most, or until *stop. resolver may be NULL: then servers that have a name are
 * silent. */
void placement_look(const struct config *config, size_t pool_index, struct resolver *resolver,
                    const atomic_bool *stop, struct placement_found *found);

/* Room for what placement_text writes. */
#define PLACEMENT_TEXT_MAX (CONFIG_NAME_MAX + 640)
/* What was found, in one line. Returns out. */
const char *placement_text(const struct pool_config *pool, const struct placement_found *found,
                           char out[PLACEMENT_TEXT_MAX]);

/* A thread that looks once at each pool with lists of dialects, and logs what it finds. */
struct placement_watch;
/* Returns it, to be ended by placement_stop; NULL when there is nothing to look at, or no thread to
 * be had, which is logged. config and resolver must live as long. Signals must be blocked where
 * threads are to have them blocked. */
struct placement_watch *placement_start(const struct config *config, struct resolver *resolver);
/* Ends the thread, in the middle of its look if need be; false: it was not done. *placement may be
 * NULL. */
bool placement_stop(struct placement_watch **placement);

/* The mapping of the pool's servers by that rule: DISTRIBUTION/HASH, or "-" for that in force. The
 * caller's until shard_destroy; NULL when there is no such rule, or this libmemcached lacks it. */
struct shard *placement_rule(const struct pool_config *pool, struct slice rule);

#endif
