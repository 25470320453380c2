/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/hot_keys.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "proxy/core/shared.h"
#include "proxy/core/worker.h"

void hot_keys_init(struct hot_keys *hot)
{
    CHECK(pthread_mutex_init(&hot->lock, NULL) == 0);
}

void hot_keys_fini(struct hot_keys *hot)
{
    pthread_mutex_destroy(&hot->lock);
}

size_t hot_keys_read(struct hot_keys *hot, struct hot_key out[HOT_KEYS_MAX])
{
    pthread_mutex_lock(&hot->lock);
    size_t count = hot->count;
    memcpy(out, hot->keys, count * sizeof *out);
    pthread_mutex_unlock(&hot->lock);
    return count;
}

static const struct hot_key *find(const struct hot_key *keys, size_t count, uint64_t hash)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i].name.hash == hash) {
            return &keys[i];
        }
    }
    return NULL;
}

/* Requests of all clients per second, since the last look. */
static uint64_t requests_per_s(struct shared *s, const struct now *now)
{
    struct hot_keys *hot = &s->hot_keys;
    uint64_t requests = 0, per_s = 0;
    for (size_t i = 0; i < s->worker_count; i++) {
        for (unsigned class = 0; class < TIMING_CLASSES; class ++) {
            requests += metric_get(&s->workers[i]->metrics, METRIC_cmd_get + class);
        }
    }
    if (hot->looked_us != 0 && now->mono_us > hot->looked_us) {
        per_s = (requests - hot->requests) * 1000000 / (now->mono_us - hot->looked_us);
    }
    hot->requests = requests;
    hot->looked_us = now->mono_us;
    return per_s;
}

/* One that was hot is so until it has less than half of what it takes to become it. */
static size_t choose(struct shared *s, uint64_t per_s, const struct hot_sum *sum,
                     struct hot_key chosen[HOT_KEYS_MAX])
{
    const struct config *config = s->config;
    const struct hot_keys *hot = &s->hot_keys;
    size_t count = 0;
    for (size_t i = 0; i < sum->count && count < HOT_KEYS_MAX && config->hot_percent != 0; i++) {
        struct hot_key key = {.name = sum->names[i]};
        unsigned times = find(hot->keys, hot->count, key.name.hash) != NULL ? 2 : 1;
        key.percent = (unsigned)(100 * key.name.count / sum->total);
        key.per_s = (uint64_t)((double)per_s * (double)key.name.count / (double)sum->total);
        if (key.percent * times >= config->hot_percent &&
            key.per_s * times >= config->hot_requests_s) {
            chosen[count++] = key;
        }
    }
    return count;
}

static const char *shown(const struct hot_key *key, char out[4 * HOT_NAME_BYTES + 1])
{
    return slice_escape(slice_make(key->name.bytes, key->name.len), out, 4 * HOT_NAME_BYTES + 1);
}

void hot_keys_look(struct shared *s, const struct now *now)
{
    struct hot_keys *hot = &s->hot_keys;
    struct hot_key chosen[HOT_KEYS_MAX];
    struct hot_sum sum = {.count = 0};
    char text[4 * HOT_NAME_BYTES + 1];
    for (size_t i = 0; i < s->worker_count; i++) {
        hot_sum_add(&sum, &s->workers[i]->timing.keys);
    }
    hot_sum_sort(&sum);
    size_t count = choose(s, requests_per_s(s, now), &sum, chosen);
    hot_sum_fini(&sum);
    for (size_t i = 0; i < count; i++) {
        if (find(hot->keys, hot->count, chosen[i].name.hash) == NULL) {
            log_warn("hot: key %s gets %u%% of all requests, %" PRIu64
                     " a second (hot_percent, hot_requests_s); see \"A key or list is hot\" in "
                     "operations.md",
                     shown(&chosen[i], text), chosen[i].percent, chosen[i].per_s);
        }
    }
    for (size_t i = 0; i < hot->count; i++) {
        if (find(chosen, count, hot->keys[i].name.hash) == NULL) {
            log_info("hot: key %s is no longer hot", shown(&hot->keys[i], text));
        }
    }
    pthread_mutex_lock(&hot->lock);
    memcpy(hot->keys, chosen, count * sizeof *chosen);
    hot->count = count;
    pthread_mutex_unlock(&hot->lock);
}
