/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose turn it is to log in at a node: one connection at a time, of all workers of the process.
 * Workers start together, and a node that comes back is found by all of them at once. A login costs
 * the node some thousand hashes, and small servers that speak Couchbase's protocol keep one login
 * for all their connections: two at the same time would both fail. A courtesy: a connection that
 * has waited for long goes ahead without a turn. Thread-safe. For this folder only.
 */
#ifndef POOL_LOGIN_TURN_H
#define POOL_LOGIN_TURN_H

#include <stdbool.h>

/* True when from now on it is the turn of that connection at the node of that name. */
bool login_turn_take(const char *node, const void *connection);
/* The connection, which has the turn, is done. */
void login_turn_end(const char *node, const void *connection);

#endif
