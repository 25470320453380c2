/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's thread: how it starts and stops, and its loop. */
#ifndef PROXY_THREAD_H
#define PROXY_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "config/config.h"

struct shared;
struct worker;

enum thread_order { THREAD_RUN, THREAD_DRAIN, THREAD_STOP };

/* Builds everything of a worker but its thread. Returns NULL with a text in error. */
MUST_CHECK struct worker *thread_create(struct shared *shared, size_t index,
                                        char error[CONFIG_ERROR_MAX]);
/* The thread must be over. */
void thread_destroy(struct worker **worker);

/* Returns 0 or an errno. */
MUST_CHECK int thread_start(struct worker *worker);
/* Tells the thread; returns at once. Thread-safe. */
void thread_order(struct worker *worker, enum thread_order order);
/* Has it answered and closed everything since THREAD_DRAIN? Thread-safe. */
bool thread_is_drained(struct worker *worker);
/* Waits for the end of a thread that was ordered to stop. */
void thread_join(struct worker *worker);

#endif
