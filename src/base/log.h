/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one line per event, with time and level, to standard error or a file. Callable from any
 * thread. Repeated events are limited by their callers with log_limit, so that a failing backend
 * cannot fill a disk.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"

enum log_level { LOG_ERROR_LEVEL, LOG_WARN_LEVEL, LOG_INFO_LEVEL, LOG_DEBUG_LEVEL };
/* JSON: an object for each line, with the members time, level, pid and text. */
enum log_format { LOG_TEXT, LOG_JSON };

/* Sends lines up to level to path (NULL: standard error). Returns 0, or -1 with errno when path
 * cannot be opened. */
MUST_CHECK int log_open(const char *path, enum log_level level);
/* Would log_open open that path? Returns 0, or -1 with errno. Opens and creates nothing. */
MUST_CHECK int log_check(const char *path);
/* Opens the path anew (after the file was moved away). Returns 0 or -1 with errno; then the old
 * file stays in use. */
MUST_CHECK int log_reopen(void);
/* From now on a thread of the log's own writes the lines, which wait for it in buffer_bytes of
 * memory: no caller of log_write waits for a pipe that is not read. Lines that find no room are
 * dropped and counted. Once in a process. Returns 0 or an errno. */
MUST_CHECK int log_start_thread(size_t buffer_bytes);
/* Gives the log file, if there is one, to the user that the process is about to become, so that it
 * can open it anew. */
void log_give(uid_t uid, gid_t gid);
/* Returns once all lines are written, at the latest after timeout_ms: to be called before the
 * process ends. */
void log_flush(uint32_t timeout_ms);
/* Lines dropped since the start. */
uint64_t log_dropped(void);
enum log_level log_get_level(void);
/* Which lines are written from now on, and how they look. Thread-safe. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);

void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_write(LOG_ERROR_LEVEL, __VA_ARGS__)
#define log_warn(...) log_write(LOG_WARN_LEVEL, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO_LEVEL, __VA_ARGS__)
#define log_debug(...) \
    (log_get_level() >= LOG_DEBUG_LEVEL ? log_write(LOG_DEBUG_LEVEL, __VA_ARGS__) : (void)0)

/* Lets through one event per second. Zero-initialise; one per kind of event, used by one thread. */
struct log_limit {
    int64_t last_s;
    uint64_t suppressed;
};
/* Room for what log_limit_pass says of events that were not logged. */
#define LOG_MORE_MAX 96
/* True when the event may be logged now. Then more is what the line should end with: nothing, or
 * " (12 more such EVENTS since the last message)" when that many were kept back. */
MUST_CHECK bool log_limit_pass(struct log_limit *limit, int64_t wall_s, const char *events,
                               char more[LOG_MORE_MAX]);

#endif
