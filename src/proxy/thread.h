/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's thread: how it starts and stops, and its loop. */
#ifndef PROXY_THREAD_H
#define PROXY_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/check.h"
#include "config/config.h"

struct shared;
struct worker;

enum thread_order { THREAD_RUN, THREAD_DRAIN, THREAD_STOP };

/* Work for a worker between two of its turns, in its thread. */
struct job {
    void (*run)(struct worker *worker, void *arg);
    void *arg;
    enum { JOB_WAITS, JOB_RUNS, JOB_IS_DONE } state; /* under shared->asking.lock */
};

/* Builds everything of a worker but its thread. Returns NULL with a text in error. */
MUST_CHECK struct worker *thread_create(struct shared *shared, size_t index,
                                        char error[CONFIG_ERROR_MAX]);
/* The thread must be over. */
void thread_destroy(struct worker **worker);

/* Returns 0 or an errno. */
MUST_CHECK int thread_start(struct worker *worker);
/* Tells the thread; returns at once. Thread-safe. */
void thread_order(struct worker *worker, enum thread_order order);
/* Hands it a job, which must stay until thread_await has returned; one at a time. */
void thread_post(struct worker *worker, struct job *job);
/* Waits until the job is done. Returns 0, or -1: it was not begun at the time until, on the clock
 * that nothing sets back, and will not be. */
MUST_CHECK int thread_await(struct worker *worker, struct job *job, const struct timespec *until);
/* The configuration has changed; in the worker's thread. */
void thread_take_config(struct worker *worker);
/* Has it answered and closed everything since THREAD_DRAIN? Thread-safe. */
bool thread_is_drained(struct worker *worker);
/* Waits for the end of a thread that was ordered to stop. */
void thread_join(struct worker *worker);

#endif
