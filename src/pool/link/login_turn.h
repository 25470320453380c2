/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose turn it is to log in at a node: one connection at a time, of all workers of the process.
 * Workers start together, and a node that comes back is found by all of them at once. A login costs
 * the node some thousand hashes, and small servers that speak Couchbase's protocol keep one login
 * for all their connections: two at the same time would both fail. Other processes log in there as
 * well, so after a login that failed there is no turn at the node for a while, longer and longer
 * until one succeeds: one of the processes finds the node at rest, and gets all its connections. A
 * courtesy: a connection that has waited for long goes ahead without a turn. Thread-safe. For this
 * folder only.
 */
#ifndef POOL_LINK_LOGIN_TURN_H
#define POOL_LINK_LOGIN_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* The longest time without a turn, after so many failures. */
#define LOGIN_REST_MS_MAX 640

/* True when from now on it is the turn of that connection at the node of that name. now_us: of the
 * monotonic clock. */
bool login_turn_take(const char *node, const void *connection, uint64_t now_us);
/* The connection, which has the turn, is done: it has not failed at the login. */
void login_turn_end(const char *node, const void *connection);
/* The login has failed: a random time begins in which there is no turn. */
void login_turn_fail(const char *node, const void *connection, uint64_t now_us, struct rng *rng);

#endif
