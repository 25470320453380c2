/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log_ring.h"

/* A line longer than this is cut: keys are escaped and limited, so only a foreign error text could
 * be longer. */
#define LINE_MAX_BYTES 1024

static struct {
    _Atomic int fd;
    _Atomic int level;
    char *path;
} sink = {.fd = STDERR_FILENO, .level = LOG_INFO_LEVEL};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Returns a descriptor, or -1 with errno. Not to wait for the reader of a named pipe, it is opened
 * without blocking: without a reader that fails (ENXIO). */
static int open_append(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, O_APPEND);
    }
    return fd;
}

int log_open(const char *path, enum log_level level)
{
    atomic_store(&sink.level, (int)level);
    if (path == NULL) {
        return 0;
    }
    int fd = open_append(path);
    if (fd < 0) {
        return -1;
    }
    free(sink.path);
    sink.path = strdup(path);
    CHECK(sink.path != NULL);
    atomic_store(&sink.fd, fd);
    return 0;
}

int log_check(const char *path)
{
    struct stat file;
    if (stat(path, &file) == 0) {
        errno = S_ISDIR(file.st_mode) ? EISDIR : errno;
        return S_ISDIR(file.st_mode) ? -1 : access(path, W_OK);
    }
    if (errno != ENOENT) {
        return -1;
    }
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    CHECK(folder != NULL);
    int rc = access(folder, W_OK | X_OK);
    int saved = errno;
    free(folder);
    errno = saved;
    return rc;
}

int log_reopen(void)
{
    if (sink.path == NULL) {
        return 0;
    }
    int fd = open_append(sink.path);
    if (fd < 0) {
        return -1;
    }
    /* dup2 keeps the number, so that a thread that is just writing never meets a closed descriptor.
     */
    int moved = dup3(fd, atomic_load(&sink.fd), O_CLOEXEC);
    int saved = errno;
    close(fd);
    errno = saved;
    return moved < 0 ? -1 : 0;
}

int log_start_thread(size_t buffer_bytes)
{
    return log_ring_start(buffer_bytes, &sink.fd);
}

void log_give(uid_t uid, gid_t gid)
{
    if (sink.path != NULL && fchown(atomic_load(&sink.fd), uid, gid) != 0) {
        log_warn("log file %s cannot be given to user %u: %s", sink.path, (unsigned)uid,
                 strerror(errno));
    }
}

void log_flush(uint32_t timeout_ms)
{
    log_ring_flush(timeout_ms);
}

uint64_t log_dropped(void)
{
    return log_ring_dropped();
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&sink.level, memory_order_relaxed);
}

void log_write(enum log_level level, const char *format, ...)
{
    if (level > log_get_level()) {
        return;
    }
    char line[LINE_MAX_BYTES];
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %-5s ", ts.tv_nsec / 1000000,
                          level_names[level]);
    va_list args;
    va_start(args, format);
    int body = vsnprintf(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    size_t room = sizeof line - n - 2;
    n += body < 0 ? 0 : (size_t)body > room ? room : (size_t)body;
    line[n++] = '\n';
    if (log_ring_started()) {
        log_ring_put(line, n);
        return;
    }
    /* One write per line: lines of several threads never mix. A full disk must not stop the proxy.
     */
    ssize_t ignored = write(atomic_load_explicit(&sink.fd, memory_order_relaxed), line, n);
    (void)ignored;
}

bool log_limit_pass(struct log_limit *limit, int64_t wall_s, const char *events,
                    char more[LOG_MORE_MAX])
{
    if (limit->last_s == wall_s) {
        limit->suppressed++;
        return false;
    }
    more[0] = '\0';
    if (limit->suppressed > 0) {
        snprintf(more, LOG_MORE_MAX, " (%" PRIu64 " more such %s since the last message)",
                 limit->suppressed, events);
    }
    limit->suppressed = 0;
    limit->last_s = wall_s;
    return true;
}
