/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool/link/login_turn.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"

/* Nodes that share a place wait for each other, which costs them milliseconds. */
#define PLACES 256
/* The time without a turn after the first failure; each further one doubles it. */
#define REST_MS 20

static struct place {
    _Atomic(const void *) holder;
    /* Only the holder writes these. */
    _Atomic uint64_t rests_until_us;
    _Atomic uint64_t rest_ms; /* after the next failure, at most; 0: the first one */
} places[PLACES];

static struct place *place_of(const char *node)
{
    return &places[hash_bytes(node, strlen(node), 0) % PLACES];
}

bool login_turn_take(const char *node, const void *connection, uint64_t now_us)
{
    struct place *p = place_of(node);
    const void *none = NULL;
    return now_us >= atomic_load(&p->rests_until_us) &&
           atomic_compare_exchange_strong(&p->holder, &none, connection);
}

static void give_back(struct place *p, const void *connection)
{
    const void *holder = connection;
    CHECK(atomic_compare_exchange_strong(&p->holder, &holder, NULL));
}

void login_turn_end(const char *node, const void *connection)
{
    struct place *p = place_of(node);
    atomic_store(&p->rest_ms, 0);
    give_back(p, connection);
}

void login_turn_fail(const char *node, const void *connection, uint64_t now_us, struct rng *rng)
{
    struct place *p = place_of(node);
    uint64_t ms = atomic_load(&p->rest_ms);
    ms = ms == 0 ? REST_MS : ms;
    atomic_store(&p->rests_until_us, now_us + rng_below(rng, ms * 1000));
    atomic_store(&p->rest_ms, ms * 2 < LOGIN_REST_MS_MAX ? ms * 2 : LOGIN_REST_MS_MAX);
    give_back(p, connection);
}
