/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/core/timing.h"

#include <stdlib.h>

void timing_init(struct timing *t)
{
    hot_init(&t->keys);
}

void timing_fini(struct timing *t)
{
    hot_fini(&t->keys);
}

void timing_add(struct timing *t, unsigned counted, uint64_t us)
{
    t->last_counted = counted;
    t->last = &t->requests[counted - METRIC_cmd_get];
    histogram_add(t->last, us);
}

struct slow_log {
    pthread_mutex_t lock;
    uint64_t count; /* of all that were added */
    struct slow_request last[SLOW_KEPT];
};

struct slow_log *slow_log_create(void)
{
    struct slow_log *log = calloc(1, sizeof *log);
    CHECK(log != NULL && pthread_mutex_init(&log->lock, NULL) == 0);
    return log;
}

void slow_log_destroy(struct slow_log **slot)
{
    if (*slot != NULL) {
        pthread_mutex_destroy(&(*slot)->lock);
        free(*slot);
        *slot = NULL;
    }
}

void slow_log_add(struct slow_log *log, const struct slow_request *request)
{
    pthread_mutex_lock(&log->lock);
    log->last[log->count++ % SLOW_KEPT] = *request;
    pthread_mutex_unlock(&log->lock);
}

size_t slow_log_read(struct slow_log *log, struct slow_request out[SLOW_KEPT])
{
    pthread_mutex_lock(&log->lock);
    size_t count = log->count < SLOW_KEPT ? (size_t)log->count : SLOW_KEPT;
    for (size_t i = 0; i < count; i++) {
        out[i] = log->last[(log->count - 1 - i) % SLOW_KEPT];
    }
    pthread_mutex_unlock(&log->lock);
    return count;
}
