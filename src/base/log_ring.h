/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where lines of the log wait for the thread that writes them:
 *
 *     workers -- log_ring_put --> [ ring of bytes ] -- thread --> write(2)
 *
 * Only the thread ever waits for the descriptor. A pipe that its reader has stopped reading, or a
 * disk that hangs, therefore stops the thread and nothing else. Lines that find the ring full are
 * dropped and counted; the thread says how many as soon as it can write again. So it does with
 * lines that could not be written, a full disk's for example, in front of the next one that can.
 */
#ifndef BASE_LOG_RING_H
#define BASE_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* Starts the thread, which writes to *fd, with room for bytes of lines. All signals are blocked in
 * it. To be called once in a process. Returns 0 or an errno. */
MUST_CHECK int log_ring_start(size_t bytes, const _Atomic int *fd);
/* False before log_ring_start: then the caller writes by itself. */
bool log_ring_started(void);
/* Takes a copy of one line with its line end. Never waits for the descriptor. */
void log_ring_put(const char *line, size_t len);
/* Returns once all lines are written, or after timeout_ms. */
void log_ring_flush(uint32_t timeout_ms);
/* Lines that were dropped since the start: the ring was full, or they could not be written. */
uint64_t log_ring_dropped(void);

#endif
