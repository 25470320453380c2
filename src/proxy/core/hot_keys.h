/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that are hot: that get a large part of all requests, and many. One server has all of them,
 * whatever other servers there are. The first worker looks for them now and then, by what all
 * workers have counted (base/hot.h); any thread may read.
 */
#ifndef PROXY_CORE_HOT_KEYS_H
#define PROXY_CORE_HOT_KEYS_H

#include <pthread.h>

#include "base/clock.h"
#include "base/hot.h"

struct shared;

/* Of more keys at once, the hottest. With hot_percent from 13 on there cannot be more. */
#define HOT_KEYS_MAX 8

struct hot_key {
    struct hot_name name;
    unsigned percent;
    uint64_t per_s;
};

struct hot_keys {
    pthread_mutex_t lock; /* for the next two */
    size_t count;
    struct hot_key keys[HOT_KEYS_MAX];
    uint64_t requests; /* these two: at the last look, of the worker that looks */
    uint64_t looked_us;
};

void hot_keys_init(struct hot_keys *hot);
void hot_keys_fini(struct hot_keys *hot);
/* Looks anew. Logs which keys have become hot, and which are not any more. */
void hot_keys_look(struct shared *shared, const struct now *now);
/* Copies those that were hot at the last look; returns how many. */
size_t hot_keys_read(struct hot_keys *hot, struct hot_key out[HOT_KEYS_MAX]);

#endif
