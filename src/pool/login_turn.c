/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/login_turn.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"

/* Nodes that share a place wait for each other, which costs them milliseconds. */
#define PLACES 256

static _Atomic(const void *) places[PLACES];

static _Atomic(const void *) *place_of(const char *node)
{
    return &places[hash_bytes(node, strlen(node), 0) % PLACES];
}

bool login_turn_take(const char *node, const void *connection)
{
    const void *none = NULL;
    return atomic_compare_exchange_strong(place_of(node), &none, connection);
}

void login_turn_end(const char *node, const void *connection)
{
    const void *holder = connection;
    CHECK(atomic_compare_exchange_strong(place_of(node), &holder, NULL));
}
