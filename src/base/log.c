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
/* Time, level and blanks in front of the text, and the line's end. */
#define LINE_MARGIN_BYTES 33
/* Of a byte of text in JSON. */
#define ESCAPED_BYTES_MAX 6

static struct {
    _Atomic int fd;
    _Atomic int level;
    _Atomic int format;
    char *path;
} sink = {.fd = STDERR_FILENO, .level = LOG_INFO_LEVEL, .format = LOG_TEXT};

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

void log_set_level(enum log_level level)
{
    atomic_store(&sink.level, (int)level);
}

void log_set_format(enum log_format format)
{
    atomic_store(&sink.format, (int)format);
}

/* One write per line: lines of several threads never mix. A full disk must not stop the proxy. */
static void write_line(const char *line, size_t n)
{
    if (log_ring_started()) {
        log_ring_put(line, n);
        return;
    }
    ssize_t ignored = write(atomic_load_explicit(&sink.fd, memory_order_relaxed), line, n);
    (void)ignored;
}

/* How many bytes of a character of UTF-8 begin here, or 0 where it is none. */
static size_t character_bytes(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = p[0] < 0x80                    ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0  ? 2
               : p[0] >= 0xe0 && p[0] < 0xf0  ? 3
               : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                              : 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool is_long = p[0] == 0xe0 ? p[1] < 0xa0 : p[0] == 0xf0 && p[1] < 0x90;
    bool is_beyond = p[0] == 0xed ? p[1] >= 0xa0 : p[0] == 0xf4 && p[1] >= 0x90;
    return n > 1 && (is_long || is_beyond) ? 0 : n;
}

/* Writes text as it stands within the quotes of JSON; a byte that is no character becomes the one
 * of its number. Returns the end. */
static char *escape_json(const char *text, char *out)
{
    while (*text != '\0') {
        size_t n = character_bytes(text);
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            *out++ = '\\';
        } else if (n == 0 || byte < 0x20 || byte == 0x7f) {
            out += snprintf(out, ESCAPED_BYTES_MAX + 1, "\\u%04x", byte);
            text++;
            continue;
        }
        memcpy(out, text, n);
        out += n;
        text += n;
    }
    return out;
}

/* A line stays one line, and does nothing to a terminal, whatever name is in it. */
static void hide_control(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
        }
    }
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES * ESCAPED_BYTES_MAX + 128], time[32];
    char text[LINE_MAX_BYTES - LINE_MARGIN_BYTES];
    struct timespec ts;
    struct tm tm;
    if (level > log_get_level()) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(time + n, sizeof time - n, ".%03ldZ", ts.tv_nsec / 1000000);
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0) {
        text[0] = '\0';
    }
    va_end(args);
    if (atomic_load_explicit(&sink.format, memory_order_relaxed) == LOG_JSON) {
        int n_head =
            snprintf(line, sizeof line, "{\"time\":\"%s\",\"level\":\"%s\",\"pid\":%d,\"text\":\"",
                     time, level_names[level], (int)getpid());
        char *end = escape_json(text, line + n_head);
        memcpy(end, "\"}\n", 3);
        write_line(line, (size_t)(end + 3 - line));
    } else {
        hide_control(text);
        write_line(line, (size_t)snprintf(line, sizeof line, "%s %-5s %s\n", time,
                                          level_names[level], text));
    }
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
