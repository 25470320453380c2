/* SPDX-License-Identifier: BSD-3-Clause */
/* A list engine with a configuration of its own, whose backend is the test. */
#ifndef SUPPORT_ENGINE_H
#define SUPPORT_ENGINE_H

#include "list/core/cache.h"
#include "list/engine.h"

struct rig {
    struct config *config;
    struct cache *cache;
    struct rng rng;
    struct metrics metrics;
    struct engine *engine;
    struct now now;
};

/* One pool, one list policy with defaults, nothing cached, a fixed time and fixed random numbers.
 */
void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);
/* Gives the request back with a reply; value: of a hit, or NULL. ttl_s: -1 = no expiry. */
void rig_answer(struct rig *rig, struct be_request *request, enum be_status status,
                const char *value, int64_t ttl_s);

#endif
