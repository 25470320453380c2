/* SPDX-License-Identifier: BSD-3-Clause */
/* Why an exchange ends without an answer. For this folder only. */
#ifndef POOL_LINK_FAILURE_H
#define POOL_LINK_FAILURE_H

#include "proto/server/backend.h"

/* FAILURE(name, what the submitter is told, text after "backend NAME") */
#define FAILURE_TABLE(FAILURE) \
    FAILURE(DOWN, BE_DOWN, " down") \
    FAILURE(UNRESOLVED, BE_DOWN, " down: name not resolved") \
    FAILURE(UNFIT, BE_DOWN, "")   /* the text is made at the handshake */ \
    FAILURE(EJECTED, BE_DOWN, "") /* the text is made at the start */ \
    FAILURE(DRAINED, BE_DOWN, " down: drained by an operator, not sent") \
    FAILURE(NO_DESCRIPTOR, BE_DOWN, \
            ": not sent, this proxy has no file descriptor left to connect") \
    FAILURE(QUEUE_FULL, BE_DOWN, ": queue full") \
    FAILURE(STALE, BE_EXISTS, ": connected anew since") \
    FAILURE(NO_CAS, BE_DOWN, ": runs without CAS (-C): start it without -C") \
    FAILURE(NO_META, BE_REFUSED, ": memcached before 1.6.10 has no meta commands") \
    FAILURE(NO_TIMES, BE_REFUSED, ": memcached before 1.6.10 tells no times to live") \
    FAILURE(TIMEOUT, BE_DOWN, ": timeout, not sent") \
    FAILURE(NO_NODE, BE_DOWN, "") /* a cluster's, not a node's: see cluster_deliver */ \
    FAILURE(WITHDRAWN, BE_DOWN, ": withdrawn, not sent") \
    FAILURE(KEY_LONG, BE_DOWN, "") /* as well: it depends on the collection */ \
    FAILURE(CLOSING, BE_DOWN, ": shutting down, not sent") \
    FAILURE(TIMEOUT_LOST, BE_LOST, ": timeout, outcome unknown") \
    FAILURE(LOST, BE_LOST, ": connection lost, outcome unknown") \
    FAILURE(TIMEOUT_READ, BE_LOST, ": timeout") /* of an exchange that changes nothing */ \
    FAILURE(LOST_READ, BE_LOST, ": connection lost")

enum exchange_failure {
    FAILURE_NONE,
#define FAILURE_ENUM(name, status, text) FAILURE_##name,
    FAILURE_TABLE(FAILURE_ENUM)
#undef FAILURE_ENUM
        FAILURE_COUNT
};

/* Does it say that no request gets to the server now? */
static inline bool failure_is_outage(enum exchange_failure failure)
{
    return failure == FAILURE_DOWN || failure == FAILURE_UNRESOLVED || failure == FAILURE_UNFIT ||
           failure == FAILURE_EJECTED || failure == FAILURE_DRAINED || failure == FAILURE_NO_NODE;
}

#endif
