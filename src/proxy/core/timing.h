/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long clients' requests take, from the turn in which a worker has read the last byte to that
 * in which the answer is whole; which keys they ask for most; and which requests were slow. A
 * worker adds, any thread may read.
 */
#ifndef PROXY_CORE_TIMING_H
#define PROXY_CORE_TIMING_H

#include "base/clock.h"
#include "base/histogram.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/slice.h"
#include "proxy/core/metrics.h"

/* A class for each counter of requests, METRIC_cmd_get and those behind it. */
#define TIMING_CLASSES (METRIC_cmd_list_read - METRIC_cmd_get + 1)

struct timing {
    struct histogram requests[TIMING_CLASSES];
    struct hot keys;
    struct log_limit slow_limit;
    unsigned last_counted;  /* of the last request that was added: METRIC_cmd_... */
    struct histogram *last; /* and its histogram; NULL: there was none */
};

/* Adds a request that took so long, by its counter. */
void timing_add(struct timing *timing, unsigned counted, uint64_t us);

/* The same if it is as the one before. */
static inline bool timing_add_again(struct timing *t, unsigned counted, uint64_t us)
{
    return counted == t->last_counted && t->last != NULL && histogram_add_again(t->last, us);
}

/* The next one is not as the one before, whatever it is. */
static inline void timing_forget_last(struct timing *t)
{
    t->last = NULL;
}

/* Of all workers. */
struct timing_baseline {
    pthread_mutex_t lock;
    struct histogram_sum requests[TIMING_CLASSES]; /* at the last `stats reset` */
};

void timing_init(struct timing *timing);
void timing_fini(struct timing *timing);

/* Slow requests that are kept: the last ones. */
#define SLOW_KEPT 64
/* What is kept of a request's key, and of its client. */
#define SLOW_KEY_BYTES 64
#define SLOW_PEER_BYTES 64

struct slow_request {
    int64_t wall_s; /* when it was answered */
    uint64_t us;
    uint64_t waited_us; /* of these, until it was begun: earlier requests of its client went first
                         */
    char verb[16];
    uint8_t key_len; /* SLOW_KEY_BYTES where it was cut */
    char key[SLOW_KEY_BYTES];
    char peer[SLOW_PEER_BYTES];
};

/* Of all workers. */
struct slow_log;
struct slow_log *slow_log_create(void);
void slow_log_destroy(struct slow_log **log);
/* Thread-safe. */
void slow_log_add(struct slow_log *log, const struct slow_request *request);
/* Copies the last ones, the newest first. Returns how many. Thread-safe. */
size_t slow_log_read(struct slow_log *log, struct slow_request out[SLOW_KEPT]);

#endif
