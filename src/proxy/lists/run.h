/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only place that knows both the list engine and the pools: carries the engine's requests to
 * the pools, the replies to engine_reply, and finished calls to their clients.
 */
#ifndef PROXY_LISTS_RUN_H
#define PROXY_LISTS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng;
struct worker;

/* What the engine is to leave free behind each request: the exchange with a pool lies there. */
extern const size_t run_room_bytes;

/* Lets the engine work if there is anything for it; returns whether anything was. Sets *next_us to
 * when the engine wants to be called again. */
bool run_engine(struct worker *worker, uint64_t *next_us);

/* For pools whose lists move: before the first run_engine; and the end of it, when the pools are no
 * more and the engine is. */
void run_create_moves(struct worker *worker, struct rng *rng);
void run_destroy_moves(struct worker *worker);

/* Writes what exchanges and engine have queued for the servers. */
void run_flush_pools(struct worker *worker);

#endif
