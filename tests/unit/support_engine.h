/* SPDX-License-Identifier: BSD-3-Clause */
/* A list engine with a configuration of its own, whose backend is the test. */
#ifndef SUPPORT_ENGINE_H
#define SUPPORT_ENGINE_H

#include "list/cache.h"
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

#endif
